//! What a port promises a traffic class by its own rule: a credit-based shaper, or gates (IEEE Std 802.1Q-2022, 8.6.8).
//!
//! **Credit.** Of a class `i` with idle slope `I` on a line of rate `C`, let `L` be the longest frame of the classes
//! below, `(b, r)` what strict classes above bring, and `m_j = (C − I_j)·L_j / C` the most that a shaped class above may
//! owe. While `i` waits with credit, `V_i·(C − ΣI_j − r) / I_i + ΣV_j` grows only by the frame below and by `b`; no `V_j` is
//! under `−m_j`. So `V_i ≤ I_i · (L + b + Σm_j) / (C − ΣI_j − r)` where `I_i` fits beside the others (Daigmorte, Boyer,
//! Zhao: "Modelling in network calculus a TSN architecture mixing time-triggered, credit based shaper and best-effort
//! queues", 2018, theorem 2, with strict classes above added). Since the last instant at which the class had neither
//! frames nor debt it sent `I·t − V_i`: it is served at `I` after `V_i / I`. What leaves it in any time `t` is at most
//! `I·t + V_i + m_i`.
//!
//! **Gates.** Each closed stretch of a class costs it its own length, one frame of its own that did not fit before, and
//! where others may send across the opening one of theirs. A frame of a class below costs it time only where both may be
//! open. Stretches come once a cycle: what they take in any time is a
//! bucket. Classes above that may be open at the same time leave the rest, and bring what came to them, late by as much
//! as they may keep it.

use std::collections::BTreeSet;

use crate::curve::{Arrival, Bucket, RateLatency, Service};
use crate::nodes::Layout;
use crate::number::Number;
use crate::rational::Rational;
use crate::tfa::Values;

/// The rule of a class at a port.
#[derive(Clone, Debug)]
pub enum Rule<N> {
    /// A credit-based shaper.
    Shaped(Slope<N>),
    /// Gates that are not always open, or classes beside it whose gates are not.
    Gated(Gates<N>),
}

/// The idle slope of a credit-based shaper, by the port's own clock: in true time it lies between these.
#[derive(Clone, Debug)]
pub struct Slope<N> {
    /// At least.
    pub least: N,
    /// At most.
    pub most: N,
}

/// The gates of a class.
#[derive(Clone, Debug)]
pub struct Gates<N> {
    /// The cycle, at least.
    pub cycle: N,
    /// Stretches of it in which the gate is closed.
    pub closed: Vec<Closed<N>>,
    /// No frame begins for so long before a gate closes; `None`: one begins that is through by then.
    pub guard: Option<N>,
    /// Classes at the port whose gates are open at some instant at which that of this class is.
    pub beside: BTreeSet<u8>,
}

/// A stretch in which a gate is closed.
#[derive(Clone, Debug)]
pub struct Closed<N> {
    /// At most so long.
    pub length: N,
    /// Whether a frame of another class may be on the wire when it ends.
    pub straddled: bool,
}

impl Rule<Rational> {
    pub(crate) fn converted<N: Number>(&self) -> Rule<N> {
        match self {
            Self::Shaped(slope) => {
                Rule::Shaped(Slope { least: N::of(&slope.least), most: N::of(&slope.most) })
            }
            Self::Gated(gates) => Rule::Gated(Gates {
                cycle: N::of(&gates.cycle),
                closed: gates
                    .closed
                    .iter()
                    .map(|one| Closed { length: N::of(&one.length), straddled: one.straddled })
                    .collect(),
                guard: gates.guard.as_ref().map(N::of),
                beside: gates.beside.clone(),
            }),
        }
    }
}

impl<N: Number> Values<N> {
    /// What a class is guaranteed by its rule; `None`: nothing.
    pub(crate) fn ruled(
        &self,
        layout: &Layout,
        node: usize,
        rule: &Rule<N>,
        shifts: &[Option<N>],
    ) -> Option<Service<N>> {
        match rule {
            Rule::Shaped(slope) => {
                let wait = self.longest_credit_wait(layout, node, slope, shifts)?;
                let whole = self.line(layout, node);
                let latency = wait.plus(&whole.latency);
                Some(Service::new(vec![RateLatency { rate: slope.least.clone(), latency }]))
            }
            Rule::Gated(gates) => self.behind_gates(layout, node, gates, shifts),
        }
    }

    /// What leaves a node at most, where a class below may be sent although it has frames.
    pub(crate) fn departure(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<Arrival<N>> {
        let came = self.aggregate(layout, node, shifts)?;
        let late = self.service(layout, node, shifts).and_then(|service| self.stay(&came, &service, false));
        let late = late.map(|late| came.delayed(&late));
        let Some(Rule::Shaped(slope)) = self.rule(node) else { return late };
        let wait = self.longest_credit_wait(layout, node, slope, shifts)?;
        let burst = slope.most.times(&wait).plus(&self.most_debt(layout, node, slope));
        let shaped = Arrival::bucket(burst, slope.most.clone());
        Some(late.map_or_else(|| shaped.clone(), |late| late.limited(&shaped)))
    }

    /// How long its credit may grow while others are sent.
    fn longest_credit_wait(
        &self,
        layout: &Layout,
        node: usize,
        slope: &Slope<N>,
        shifts: &[Option<N>],
    ) -> Option<N> {
        let line = self.line(layout, node);
        let mut others = Bucket { burst: self.blocking(node).clone(), rate: N::zero() };
        for higher in &layout.nodes[node].higher {
            let more = match self.rule(*higher) {
                Some(Rule::Shaped(above)) => {
                    Bucket { burst: self.most_debt(layout, *higher, above), rate: above.most.clone() }
                }
                _ => self.aggregate(layout, *higher, shifts)?.sustained().clone(),
            };
            others.burst = others.burst.plus(&more.burst);
            others.rate = others.rate.plus(&more.rate);
        }
        let room = line.rate.minus(&others.rate);
        let fits = slope.most.minus(&room).is_not_positive() && room.is_positive();
        fits.then(|| others.burst.over(&room))
    }

    /// The most a shaped class may owe: its longest frame, begun without credit.
    fn most_debt(&self, layout: &Layout, node: usize, slope: &Slope<N>) -> N {
        let line = self.line(layout, node);
        let fastest = self.capacity(layout, node).unwrap_or_else(|| line.rate.clone());
        fastest.minus(&slope.least).times(&self.longest_of(layout, node)).over(&line.rate)
    }

    fn behind_gates(
        &self,
        layout: &Layout,
        node: usize,
        gates: &Gates<N>,
        shifts: &[Option<N>],
    ) -> Option<Service<N>> {
        let line = self.line(layout, node);
        let server = layout.nodes[node].server;
        let own = self.longest_of(layout, node);
        let class = layout.nodes[node].class;
        let longest_of = |of: &dyn Fn(u8) -> bool| {
            let others = layout.nodes.iter().enumerate();
            others
                .filter(|(_, other)| other.server == server && other.class != class && of(other.class))
                .map(|(other, _)| self.longest_of(layout, other))
                .fold(N::zero(), |longest, frame| longest.greater(&frame))
        };
        let across = longest_of(&|_| true);
        // A frame of a class below is on the wire only where that may send at the same time.
        let below = longest_of(&|other| other > class && gates.beside.contains(&other));
        let mut taken = vec![Arrival::bucket(below, N::zero())];
        for closed in &gates.closed {
            let before = match &gates.guard {
                Some(guard) => guard.times(&line.rate),
                None => own.clone(),
            };
            let mut bits = closed.length.times(&line.rate).plus(&before);
            if closed.straddled {
                bits = bits.plus(&across);
            }
            let rate = bits.over(&gates.cycle);
            // In any time t the stretches take at most one of them and the share of the rest of t.
            let share = rate.over(&line.rate);
            let least_one = N::of(&Rational::ONE).minus(&share);
            if !least_one.is_positive() {
                return None;
            }
            taken.push(Arrival::bucket(bits.times(&least_one), rate));
        }
        for higher in &layout.nodes[node].higher {
            if gates.beside.contains(&layout.nodes[*higher].class) {
                taken.push(self.departure(layout, *higher, shifts)?);
            }
        }
        let whole = Service::new(vec![line.clone()]);
        whole.left_over_arbitrary(&Arrival::sum(&taken.iter().collect::<Vec<_>>()))
    }
}
