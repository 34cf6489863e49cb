//! Flows whose messages are sent at known instants, and gates that open at known instants.
//!
//! Curves forget when frames come, so that every closed interval of a gate may meet every frame. Where a periodic
//! sender's offset and the gates of its path are known, each frame has an interval of arrival at each hop, from the
//! earliest to the latest instant, and so do the frames of other such flows of its class. The latest departure follows
//! from the busy periods that may contain the frame: each begins with a frame of the class, is delayed by what the gate
//! takes from there on (its closed times, frames that do not fit before a closing, a frame of another class that is on
//! the line), and by classes above; traffic at unknown instants counts by its curve. The earliest departure is that of
//! a frame alone. Ports without a rule for this (shapers, windows, fragments, hosts that read) delay the frame by at
//! most their bound by total flow analysis. The delay of a message is the latest arrival less the earliest call.
//!
//! Busy windows of time-driven gates: Craciunas, Serna Oliver, Chmelík, Steiner: "Scheduling real-time communication in
//! IEEE 802.1Qbv time sensitive networks", RTNS 2016 (conditions for windows); Zhao, Pop, Craciunas: "Worst-case latency
//! analysis for IEEE 802.1Qbv time sensitive networks using network calculus", IEEE Access 6, 2018 (non-exclusive gates).
//! The intervals of arrival are ours.

mod port;

use std::collections::BTreeMap;

use num_integer::Integer;

use port::{Port, Timed, Traffic};

use crate::instants::{
    Curve, GateTimes, Lost, PICOS_PER_SECOND, Pattern, WHOLE, picos_down, picos_up, rounded,
};
use crate::model::{Flow, Model, Server};
use crate::nodes::Layout;
use crate::number::Number;
use crate::rational::Rational;
use crate::rules::{GAP, Rule};
use crate::tfa::{Total, exact};

/// Greatest number of frames of one class of a port in a common period; flows beyond it are taken by their curves.
const MOST_FRAMES: i128 = 512;

/// Bounds of flows by their instants.
pub(crate) struct Known {
    /// Names of these flows.
    pub flows: Vec<String>,
    /// Delays to the targets of every flow.
    pub ends: Vec<Vec<Option<Rational>>>,
    /// Longest stay at each hop.
    pub stays: Vec<Option<Rational>>,
}

/// Whether a flow with known instants passes a gate with known instants: other flows are bounded for any phase.
fn is_known(model: &Model, flow: &Flow) -> bool {
    let gated = |step: &crate::model::Step| {
        let server = &model.servers[step.server];
        matches!(server.rules.get(&step.class), Some(Rule::Gated(_)))
            && server.gate_times.get(&step.class).is_some_and(|gate| !gate.open.is_empty())
    };
    flow.sent.is_some() && flow.steps.iter().any(gated)
}

/// Bounds flows by their instants; `None`: there are none.
pub(crate) fn analyse<N: Number>(model: &Model, layout: &Layout, total: &Total<N>) -> Option<Known> {
    let known: Vec<bool> = model.flows.iter().map(|flow| is_known(model, flow)).collect();
    if !known.contains(&true) {
        return None;
    }
    let delays: Vec<Option<Rational>> = total
        .bounds
        .iter()
        .map(|bound| {
            let delay = bound.delay.as_ref().filter(|_| !bound.full)?;
            delay.exact().or_else(|| Rational::from_f64(delay.upper()))
        })
        .collect();
    let shifts = exact(&total.shifts);
    let mut analysis = Analysis {
        model,
        layout,
        delays,
        shifts,
        known,
        came: vec![None; layout.hops.len()],
        left: vec![None; layout.hops.len()],
    };
    for together in &layout.order {
        analysis.nodes(together);
    }
    Some(analysis.answer())
}

struct Analysis<'a> {
    model: &'a Model,
    layout: &'a Layout,
    /// Delay of each node by total flow analysis.
    delays: Vec<Option<Rational>>,
    shifts: Vec<Option<Rational>>,
    known: Vec<bool>,
    /// Arrivals at each hop, as far as they are known.
    came: Vec<Option<Pattern>>,
    /// Departures from each hop, without the gap.
    left: Vec<Option<Pattern>>,
}

impl<'a> Analysis<'a> {
    /// Nodes that depend on one another, or one.
    fn nodes(&mut self, together: &[usize]) {
        if let [node] = together[..] {
            for hop in self.hops_of(node) {
                self.came[hop] = self.arrival(hop);
            }
            let departures = self.port(node);
            for hop in self.hops_of(node) {
                self.left[hop] = self.leaves(hop, departures.get(&hop));
            }
            return;
        }
        let mut hops: Vec<usize> = together.iter().flat_map(|node| self.hops_of(*node)).collect();
        // Hops of a flow are in the order of its path.
        hops.sort_unstable();
        for hop in hops {
            self.came[hop] = self.arrival(hop);
            self.left[hop] = self.leaves(hop, None);
        }
    }

    fn hops_of(&self, node: usize) -> Vec<usize> {
        self.layout.nodes[node].groups.iter().flat_map(|group| group.hops.iter().copied()).collect()
    }

    fn flow(&self, hop: usize) -> &'a Flow {
        &self.model.flows[self.layout.hops[hop].flow]
    }

    fn server(&self, node: usize) -> &'a Server {
        &self.model.servers[self.layout.nodes[node].server]
    }

    fn arrival(&self, hop: usize) -> Option<Pattern> {
        let described = &self.layout.hops[hop];
        let flow = self.flow(hop);
        let step = &flow.steps[hop - self.layout.first[described.flow]];
        let Some(before) = described.before else {
            let sent = flow.sent.as_ref().filter(|_| self.known[described.flow])?;
            let frames =
                vec![(sent.first + picos_down(&step.wait), sent.first + sent.varies + picos_up(&step.wait))];
            return Some(Pattern { every: sent.period, frames });
        };
        let least = &step.wait - &step.variation;
        Some(self.left[before].as_ref()?.moved(picos_down(&least), picos_up(&step.wait)))
    }

    /// Departures: no later than by total flow analysis.
    fn leaves(&self, hop: usize, latest: Option<&Pattern>) -> Option<Pattern> {
        let came = self.came[hop].as_ref()?;
        let node = self.layout.hops[hop].node;
        let server = self.server(node);
        if server.cuts_through {
            return None;
        }
        let bits = &self.flow(hop).longest_frame - &Rational::integer(GAP);
        let length = server.capacity.as_ref().map_or(0, |rate| picos_down(&(&bits / rate)).max(0));
        let gate = self.gate(node);
        let delay = self.delays[node].as_ref().map(picos_up);
        let came = latest.map_or_else(|| came.clone(), |latest| came.over(latest.every));
        let mut frames = Vec::with_capacity(came.frames.len());
        for (index, (early, late)) in came.frames.iter().enumerate() {
            let known = latest.map(|latest| latest.frames[index].1);
            let bounded = delay.map(|delay| late + delay);
            let least = gate.as_ref().map_or(early + length, |gate| gate.earliest(*early, length));
            frames.push((least, known.into_iter().chain(bounded).min()?));
        }
        Some(Pattern { every: came.every, frames })
    }

    /// Instants of the gate of a node, always open without a rule; `None` for other rules.
    fn gate(&self, node: usize) -> Option<GateTimes> {
        let (server, class) = (self.server(node), self.layout.nodes[node].class);
        let plain = server.reserved.is_none()
            && server.fragments.is_none()
            && !server.cuts_through
            && server.capacity.is_some()
            && matches!(&server.service[..], [one] if one.latency.is_zero());
        if !plain {
            return None;
        }
        match server.rules.get(&class) {
            None => Some(GateTimes::always()),
            Some(Rule::Gated(_)) => server.gate_times.get(&class).filter(|one| !one.open.is_empty()).cloned(),
            Some(Rule::Shaped(_) | Rule::Cyclic(_)) => None,
        }
    }

    /// Latest departures of the known flows of a node; nothing where its rule or its traffic has none.
    fn port(&self, node: usize) -> BTreeMap<usize, Pattern> {
        self.departures(node).unwrap_or_default()
    }

    fn departures(&self, node: usize) -> Option<BTreeMap<usize, Pattern>> {
        if !self.hops_of(node).iter().any(|hop| self.came[*hop].is_some()) {
            return None;
        }
        let gate = self.gate(node)?;
        let (server, class) = (self.server(node), self.layout.nodes[node].class);
        let rate = server.rate();
        let beside = |other: usize| match server.rules.get(&class) {
            Some(Rule::Gated(gates)) => gates.beside.contains(&self.layout.nodes[other].class),
            _ => true,
        };
        let (mut every, mut frames) = (gate.cycle, 0);
        let (mut own, mut hops) = (Traffic::default(), Vec::new());
        for hop in self.hops_of(node) {
            let length = self.length(hop, rate);
            let timed = self.came[hop].as_ref().and_then(|pattern| {
                let common = every.lcm(&pattern.every);
                let all = frames * (common / every) + common / pattern.every * pattern.frames.len() as i128;
                (all <= MOST_FRAMES).then_some((pattern, common, all))
            });
            let Some((pattern, common, all)) = timed else {
                own.others.push(self.curve(hop, None)?);
                continue;
            };
            (every, frames) = (common, all);
            own.timed.push(Timed { pattern: pattern.clone(), length });
            hops.push(hop);
        }
        let mut above = Traffic::default();
        for higher in self.layout.nodes[node].higher.iter().copied().filter(|other| beside(*other)) {
            for hop in self.hops_of(higher) {
                match self.served_pattern(hop) {
                    Some(pattern) if every % pattern.every == 0 => {
                        above.timed.push(Timed { pattern, length: self.length(hop, rate) });
                    }
                    _ => above.others.push(self.curve(hop, Some(self.delays[higher].as_ref()?))?),
                }
            }
        }
        let longest = |of: &dyn Fn(usize) -> bool| {
            let nodes = 0..self.layout.nodes.len();
            let others = nodes.filter(|other| {
                self.layout.nodes[*other].server == self.layout.nodes[node].server
                    && *other != node
                    && of(*other)
            });
            others.flat_map(|other| self.hops_of(other)).map(|hop| self.length(hop, rate)).max().unwrap_or(0)
        };
        let below = longest(&|other| self.layout.nodes[other].class > class && beside(other));
        let across = if gate.overrun { longest(&|_| true) } else { below };
        let lost = Lost {
            at_start: across,
            at_opening: across,
            before: if longest(&|_| true) > 0 { picos_up(&(&Rational::integer(GAP) / rate)) } else { 0 },
            own: self.hops_of(node).into_iter().map(|hop| self.length(hop, rate)).max().unwrap_or(0),
            gap: picos_down(&(&Rational::integer(GAP) / server.capacity.as_ref()?)),
        };
        let departures = Port { gate: &gate, lost, own, above, every }.departures()?;
        Some(hops.into_iter().zip(departures).collect())
    }

    /// Frames of a hop from their earliest arrival to their latest departure, with the gap.
    fn served_pattern(&self, hop: usize) -> Option<Pattern> {
        let (came, left) = (self.came[hop].as_ref()?, self.left[hop].as_ref()?);
        let gap = picos_up(&(&Rational::integer(GAP) / self.server(self.layout.hops[hop].node).rate()));
        let came = came.over(left.every);
        let frames = came.frames.iter().zip(&left.frames).map(|((early, _), (_, late))| (*early, late + gap));
        Some(Pattern { every: left.every, frames: frames.collect() })
    }

    /// Line time of a frame of a hop, with its gap.
    fn length(&self, hop: usize, rate: &Rational) -> i128 {
        picos_up(&(&self.flow(hop).longest_frame / rate))
    }

    /// Line time of a hop by its curve, shifted by its path and by `more`.
    fn curve(&self, hop: usize, more: Option<&Rational>) -> Option<Curve> {
        let rate = self.server(self.layout.hops[hop].node).rate();
        let shift = self.shifts[hop].as_ref()?;
        let shift = more.map_or_else(|| shift.clone(), |more| shift + more);
        let line = |bucket: &crate::curve::Bucket<Rational>| {
            let burst = &(&bucket.burst + &(&bucket.rate * &shift)) / rate;
            let share = &(&bucket.rate / rate) * &Rational::integer(WHOLE);
            (picos_up(&burst), rounded(share.to_f64_up().ceil()))
        };
        Some(Curve(self.flow(hop).arrival.iter().map(line).collect()))
    }

    fn answer(self) -> Known {
        let seconds = |picos: i128| Rational::new(picos, PICOS_PER_SECOND);
        let mut known =
            Known { flows: Vec::new(), ends: Vec::new(), stays: vec![None; self.layout.hops.len()] };
        for (index, flow) in self.model.flows.iter().enumerate() {
            let end = |target: &crate::model::Target| {
                let (sent, left) =
                    (flow.sent.as_ref()?, self.left[self.layout.first[index] + target.last].as_ref()?);
                let calls = (0..).map(|turn| sent.first + turn * sent.period);
                let longest = left.frames.iter().zip(calls).map(|((_, late), call)| late - call).max()?;
                Some(&seconds(longest) + &target.wait)
            };
            let ends: Vec<Option<Rational>> = flow.targets.iter().map(end).collect();
            if ends.iter().any(Option::is_some) {
                known.flows.push(flow.name.clone());
            }
            known.ends.push(ends);
        }
        for (hop, stay) in known.stays.iter_mut().enumerate() {
            let (Some(came), Some(left)) = (&self.came[hop], &self.left[hop]) else { continue };
            let frames = came.over(left.every).frames;
            let longest = frames.iter().zip(&left.frames).map(|((early, _), (_, late))| late - early).max();
            *stay = longest.map(seconds);
        }
        known
    }
}
