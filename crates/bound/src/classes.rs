//! Service of a traffic class at a port by its rule: a credit-based shaper, gates, or both (IEEE Std 802.1Q-2022,
//! 8.6.8).
//!
//! **Credit.** For a class `i` with idle slope `I` on a line of rate `C`, let `L` be the longest frame of the classes
//! below, `(b, r)` the traffic of strict classes and windows above, and `m_j = (C − I_j)·L_j / C` the greatest debt of
//! a shaped class above. While `i` waits with credit, `V_i·(C − ΣI_j − r) / I_i + ΣV_j` grows only by the frame below
//! and by `b`; no `V_j` is under `−m_j`. So `V_i ≤ I_i · (L + b + Σm_j) / (C − ΣI_j − r)` if `I_i` fits beside the
//! others (Daigmorte, Boyer, Zhao: "Modelling in network calculus a TSN architecture mixing time-triggered, credit
//! based shaper and best-effort queues", 2018, theorem 2, with strict classes above added). Since the last instant at
//! which the class had neither frames nor debt it sent `I·t − V_i`: it is served at `I` after `V_i / I`. At most `I·t +
//! V_i + m_i` leaves it in any time `t`. A window of time-triggered frames counts as a strict class here, with the time
//! before it in which no frame begins: credit rises meanwhile.
//!
//! **Gates.** Each closed interval of a class costs it its own length, one frame of its own that did not fit before,
//! and, where others may send across the opening, one of theirs. A frame of a class below costs it time only if both
//! gates may be open. Intervals come once a cycle: all of them together, `w` in a cycle `c`, take at most
//! `w·(1 − w/c) + t·w/c` in any time `t`. Classes above that may be open at the same time leave the rest; their traffic counts as
//! late as they may delay it.
//!
//! **Credit behind gates** rises at `I' = I·c / open` while the gate is open, and is constant while it is closed
//! (8.6.8.2); it also rises before a closing, where a frame does not fit any more (Zhao, Pop, Zheng, Daigmorte, Boyer:
//! "Latency analysis of multiple classes of AVB traffic in TSN with standard credit behavior using network calculus",
//! IEEE Transactions on Industrial Electronics 68(10), 2021). Let `a = B + ρ·t` be the greatest closed time of the gate
//! in `t`, and `(b, r)` all that others send, with the time in which no frame fits, in real time. If the gate is open
//! for `T` while `i` waits with credit, real time is at most `(T + B) / (1 − ρ)`; `i` has the line but for others: `V_i
//! ≤ (I' − C)·T + b + r·(T + B) / (1 − ρ)`, and no more than `I'·T`. Both meet at `T* = (b + r·B / (1 − ρ)) / (C − r /
//! (1 − ρ))`, so `V_i ≤ I'·T*` if `I'` fits beside the others. It is served at `I'·(1 − ρ)` after `(B + T*) / (1 − ρ)`.
//! With a gate that is always open this is the rule above.
//!
//! **Fragments** (IEEE Std 802.3-2022, clause 99). An express frame waits for the part of a preemptable one that cannot
//! be cut any more. A preemptable class waits for a complete frame of another one, and each express frame, or window,
//! may cut a frame of its own, which takes 24 B more on the line.

use crate::curve::{Arrival, Bucket, RateLatency, Service};
use crate::nodes::{Layout, Node};
use crate::number::Number;
use crate::rational::Rational;
use crate::rules::{Behind, Gates, Rule, Slope, in_any_time};
use crate::values::Values;

impl<N: Number> Values<N> {
    /// Service guaranteed to a class by its rule; `None`: nothing.
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
                let line = self.line(layout, node);
                let Some(behind) = &slope.behind else {
                    let latency = wait.plus(&line.latency);
                    return Some(Service::new(vec![RateLatency { rate: slope.least.clone(), latency }]));
                };
                let (closed, open) = behind.gates.closed_alone()?;
                let latency = closed.burst.plus(&wait).over(&open).plus(&line.latency);
                Some(Service::new(vec![RateLatency { rate: slope.least.times(&open), latency }]))
            }
            Rule::Cyclic(cycles) => {
                Some(Service::rate_latency(self.line(layout, node).rate.clone(), cycles.two()))
            }
            Rule::Gated(gates) => {
                let mut taken = self.beside_gates(layout, node, gates, true)?;
                for higher in self.beside(layout, node, gates) {
                    let sent = self.departure(layout, higher, shifts)?;
                    taken.push(self.with_cuts(layout, (node, higher), sent));
                }
                let whole = Service::new(vec![self.line(layout, node).clone()]);
                whole.left_over_arbitrary(&Arrival::sum(&taken.iter().collect::<Vec<_>>()))
            }
        }
    }

    /// Departures of a node, where a class below may be sent although it has frames.
    pub(crate) fn departure(&self, layout: &Layout, node: usize, shifts: &[Option<N>]) -> Option<Arrival<N>> {
        let came = self.aggregate(layout, node, shifts)?;
        let late = self.service(layout, node, shifts).and_then(|service| self.stay(&came, &service, false));
        let late = late.map(|late| came.delayed(&late));
        let Some(Rule::Shaped(slope)) = self.rule(node) else { return late };
        let wait = self.longest_credit_wait(layout, node, slope, shifts)?;
        let mut burst = slope.most.times(&wait).plus(&self.most_debt(layout, node, slope));
        let mut rate = slope.most.clone();
        if let Some(Behind { open, .. }) = &slope.behind {
            (burst, rate) = (burst.plus(&rate.times(&open.burst)), rate.times(&open.rate));
        }
        let shaped = Arrival::bucket(burst, rate);
        Some(late.map_or_else(|| shaped.clone(), |late| late.limited(&shaped)))
    }

    /// Longest time for which its credit may grow while others are sent.
    fn longest_credit_wait(
        &self,
        layout: &Layout,
        node: usize,
        slope: &Slope<N>,
        shifts: &[Option<N>],
    ) -> Option<N> {
        let line = self.line(layout, node);
        let gates = slope.behind.as_ref().map(|behind| &behind.gates);
        let is_open = |slope: &Slope<N>| slope.behind.as_ref().is_none_or(|own| own.gates.closed.is_empty());
        let mut others = match gates {
            Some(gates) => self.beside_gates(layout, node, gates, false)?,
            None => {
                let windows = self.reserved(node).cloned();
                [Arrival::bucket(self.blocking(node).clone(), N::zero())].into_iter().chain(windows).collect()
            }
        };
        let higher = gates.map_or_else(
            || layout.nodes[node].higher.clone(),
            |gates| self.beside(layout, node, gates).collect(),
        );
        for higher in higher {
            others.push(match self.rule(higher) {
                // Their credits and this one rise and fall together, unless gates separate them.
                Some(Rule::Shaped(above)) if is_open(above) && is_open(slope) => {
                    Arrival::bucket(self.most_debt(layout, higher, above), above.most.clone())
                }
                None if gates.is_none() => self.aggregate(layout, higher, shifts)?,
                _ => self.departure(layout, higher, shifts)?,
            });
        }
        let (closed, open) = match gates {
            Some(gates) => gates.closed_alone()?,
            None => (Bucket { burst: N::zero(), rate: N::zero() }, N::of(&Rational::ONE)),
        };
        let sum = |of: fn(&Bucket<N>) -> &N| {
            others.iter().fold(N::zero(), |sum, one| sum.plus(of(one.sustained())))
        };
        let rate = sum(|bucket| &bucket.rate).over(&open);
        let burst = sum(|bucket| &bucket.burst).plus(&rate.times(&closed.burst));
        let room = line.rate.minus(&rate);
        let fits = slope.most.minus(&room).is_not_positive() && room.is_positive();
        fits.then(|| burst.over(&room))
    }

    /// Greatest debt of a shaped class: its longest frame, begun without credit.
    fn most_debt(&self, layout: &Layout, node: usize, slope: &Slope<N>) -> N {
        let line = self.line(layout, node);
        let fastest = self.capacity(layout, node).unwrap_or_else(|| line.rate.clone());
        fastest.minus(&slope.least).times(&self.longest_of(layout, node)).over(&line.rate)
    }

    /// Classes above a node that may send while its gate is open.
    fn beside<'a>(
        &self,
        layout: &'a Layout,
        node: usize,
        gates: &'a Gates<N>,
    ) -> impl Iterator<Item = usize> + use<'a, N> {
        let higher = layout.nodes[node].higher.iter().copied();
        higher.filter(|higher| gates.beside.contains(&layout.nodes[*higher].class))
    }

    /// Line time that a node behind gates loses other than to classes above: a frame below, windows, and at each closed
    /// interval the time in which no frame fits before it and the frame on the wire after it; and the interval itself,
    /// if `closed`. `None`: all of it.
    fn beside_gates(
        &self,
        layout: &Layout,
        node: usize,
        gates: &Gates<N>,
        closed: bool,
    ) -> Option<Vec<Arrival<N>>> {
        let line = self.line(layout, node);
        let own = &layout.nodes[node];
        let longest_of = |of: &dyn Fn(&Node) -> bool| {
            let others = layout.nodes.iter().enumerate();
            others
                .filter(|(_, other)| other.server == own.server && other.class != own.class && of(other))
                .map(|(other, _)| self.hold_up(layout, node, other))
                .fold(N::zero(), |longest, frame| longest.greater(&frame))
        };
        let across = longest_of(&|_| true);
        // A frame of a class below is on the wire only if that may send at the same time, or a part of one that was
        // cut.
        let below = longest_of(&|other| {
            other.class > own.class && (gates.beside.contains(&other.class) || other.preemptable)
        });
        let mut taken = vec![Arrival::bucket(below, N::zero())];
        taken.extend(self.reserved(node).cloned());
        let before = match &gates.guard {
            Some(guard) => guard.times(&line.rate),
            None => self.longest_of(layout, node),
        };
        let in_fragments = layout.nodes.iter().any(|other| other.server == own.server && other.preemptable);
        let mut bits = N::zero();
        for stretch in &gates.closed {
            bits = bits.plus(&before);
            if closed {
                bits = bits.plus(&stretch.length.times(&line.rate));
            }
            if stretch.straddled || in_fragments {
                bits = bits.plus(&across);
            }
        }
        let lost = in_any_time(&bits.over(&line.rate), &gates.cycle)?;
        taken.push(Arrival::bucket(lost.burst.times(&line.rate), lost.rate.times(&line.rate)));
        Some(taken)
    }
}
