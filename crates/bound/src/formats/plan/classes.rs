//! Traffic classes of ports: which rule each has, and what has none here.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;
use wg_plan::host_tsn::{GateEntry, Shaper};
use wg_plan::{Attachment, Flow as PlannedFlow, NodeIndex, NodeKind, PortSchedule, PortTsn};

use super::{Reading, seconds};
use crate::classes::{Closed, Gates, Rule, Slope};
use crate::rational::Rational;

impl Reading<'_> {
    /// What is set for a port, where anything is.
    pub(super) fn tsn(&self, at: Attachment) -> Option<PortTsn> {
        let node = &self.network.nodes[usize::from(at.node)];
        match &node.kind {
            NodeKind::Switch(switch) => switch.tsn_of(at.port).cloned(),
            NodeKind::EndSystem { .. } => node.tsn.as_ref().and_then(|tsn| tsn.port()),
            NodeKind::Hub { .. } => None,
        }
    }

    /// The class of a priority at a port with traffic classes; less is more urgent.
    pub(super) fn rank(tsn: &PortTsn, priority: u8) -> u8 {
        let class = tsn.classes_of_priorities()[usize::from(priority & 7)];
        u8::try_from(tsn.classes.len()).unwrap_or(u8::MAX).saturating_sub(1 + class)
    }

    /// The priority of a flow's frames at a port with traffic classes.
    pub(super) fn priority(&self, at: NodeIndex, flow: &PlannedFlow) -> u8 {
        let tag = flow.vlan.map(|tag| tag.priority);
        match &self.network.nodes[usize::from(at)].tsn {
            Some(tsn) => tsn.priority_of(flow.id, tag),
            None => flow.virtual_link.map_or(tag.unwrap_or(0), |link| link.priority),
        }
    }

    /// What of a node's traffic classes no curve bounds.
    pub(super) fn unruled(&self, node: NodeIndex) -> Vec<(&'static str, &'static str)> {
        let described = &self.network.nodes[usize::from(node)];
        let ports: Vec<PortTsn> = match &described.kind {
            NodeKind::Switch(switch) => switch.tsn.clone(),
            NodeKind::EndSystem { .. } => described.tsn.iter().filter_map(|tsn| tsn.port()).collect(),
            NodeKind::Hub { .. } => Vec::new(),
        };
        let mut found = BTreeSet::new();
        for tsn in &ports {
            let shaped = tsn.classes.iter().any(|class| class.idle_slope_bps.is_some());
            if tsn.classes.iter().any(|class| class.preemptable) {
                found.insert(("preemption", "leave preemptable out"));
            }
            if tsn.classes.iter().any(|class| class.asynchronous.is_some()) {
                found.insert(("asynchronous shaping", "leave <ats> out"));
            }
            if tsn.cyclic.is_some() {
                found.insert(("cyclic queuing", "leave <cyclic-queuing> out"));
            }
            // A filter that drops only takes load off what comes behind it; one that changes priorities does more.
            let entries = tsn.filters.iter().filter_map(|filter| filter.gate.as_ref());
            if entries.flat_map(|gate| &gate.entries).any(|entry| entry.priority.is_some()) {
                let cure = "leave priority out of the <stream-gate-entry> elements";
                found.insert(("stream gates with internal priorities", cure));
            }
            if tsn.schedules.len() > 1 {
                found.insert(("gate schedules that take over one another", "keep one of them"));
            }
            if shaped && !tsn.schedules.is_empty() {
                found.insert(("credit-based shapers behind gates", "bound the port with either of them"));
            }
        }
        if let NodeKind::Switch(switch) = &described.kind {
            let has_classes = |at: Attachment| at.node == node && switch.tsn_of(at.port).is_some();
            let relayed = |flow: &PlannedFlow| self.run.relays.iter().any(|relay| relay.flow == flow.id);
            let critical =
                self.run.flows.iter().filter(|flow| flow.virtual_link.is_some() || flow.schedule.is_some());
            let mut leave = critical.flat_map(|flow| {
                let hops = flow.routes.iter().flat_map(|route| &route.hops);
                hops.map(|hop| (hop.from, relayed(flow).then_some(hop.to)))
            });
            if leave.any(|(out, back)| has_classes(out) || back.is_some_and(has_classes)) {
                let cure = "leave <switch-tsn> out of the ports that rc and tt flows take";
                found.insert(("virtual links or windows beside traffic classes", cure));
            }
        }
        let classes = described.tsn.iter().flat_map(|tsn| &tsn.classes);
        if classes.into_iter().any(|class| matches!(class.shaper, Some(Shaper::Etf { .. }))) {
            found.insert(("a class whose frames name their time", "leave the etf shaper out"));
        }
        let links = self.run.flows.iter().any(|flow| flow.from == node && flow.virtual_link.is_some());
        if !ports.is_empty() && links && matches!(described.kind, NodeKind::EndSystem { .. }) {
            found.insert(("virtual links beside traffic classes", "leave <host-tsn> out"));
        }
        found.into_iter().collect()
    }

    /// The rules of the classes of a port.
    pub(super) fn rules(&self, at: Attachment) -> BTreeMap<u8, Rule<Rational>> {
        let Some(tsn) = self.tsn(at) else { return BTreeMap::new() };
        let rank = |class: usize| u8::try_from(tsn.classes.len() - 1 - class).unwrap_or(0);
        let fast = self.fast(at.node);
        let slow = &Rational::integer(2) - &fast;
        // Gates open and close at the next tick, so a stretch lies within one that ends a tick later, and a frame that
        // fits by the reading may last beyond its gate.
        let ticks = self.coarse(at.node);
        if let Some(schedule) = tsn.schedules.first() {
            let every = 0..tsn.classes.len();
            let gates = |class: usize| Gates {
                cycle: &seconds(schedule.cycle()) / &fast,
                closed: closed(schedule, class)
                    .into_iter()
                    .map(|(length, straddled)| Closed {
                        length: &(&seconds(length) / &slow) + &ticks,
                        // Behind a guard band a frame may last beyond the closing of its own gate.
                        straddled: straddled || tsn.guard_band.is_some() || ticks.signum() > 0,
                    })
                    .collect(),
                guard: tsn.guard_band.map(|guard| &seconds(guard) / &slow),
                beside: every
                    .clone()
                    .filter(|other| *other != class)
                    .filter(|other| {
                        schedule.entries.iter().any(|entry| is_open(entry, class) && is_open(entry, *other))
                    })
                    .map(rank)
                    .collect(),
            };
            return every.clone().map(|class| (rank(class), Rule::Gated(gates(class)))).collect();
        }
        let slopes = tsn.classes.iter().enumerate().filter_map(|(class, one)| {
            let slope = Rational::integer(i128::from(one.idle_slope_bps?));
            Some((rank(class), Rule::Shaped(Slope { least: &slope * &slow, most: &slope * &fast })))
        });
        slopes.collect()
    }

    /// Classes that are sent more than their slope lets pass wait without end.
    pub(super) fn check_slopes(&mut self) {
        let mut said = Vec::new();
        for (index, server) in self.model.servers.iter().enumerate() {
            for (class, rule) in &server.rules {
                let Rule::Shaped(slope) = rule else { continue };
                let here = |flow: &&crate::model::Flow| {
                    flow.steps.iter().any(|step| step.server == index && step.class == *class)
                };
                let flows: Vec<&crate::model::Flow> = self.model.flows.iter().filter(here).collect();
                let rate = flows.iter().fold(Rational::ZERO, |rate, flow| &rate + flow.rate());
                if rate > slope.least {
                    let names: Vec<&str> = flows.iter().take(20).map(|flow| flow.name.as_str()).collect();
                    said.push((
                        format!("server \"{}\"", server.name),
                        format!(
                            "a shaped class has an idle slope of {:.0} bit/s, and flows {} bring it {:.0} bit/s",
                            slope.least.to_f64_down(),
                            names.join(", "),
                            rate.to_f64_up()
                        ),
                    ));
                }
            }
        }
        for (element, message) in said {
            self.say(&element, &message, "raise the idle slope, or send less in this class");
        }
    }
}

fn is_open(entry: &GateEntry, class: usize) -> bool {
    entry.open.iter().any(|open| usize::from(*open) == class)
}

/// Stretches of a cycle in which the gate of a class is closed, and whether another class's is open across their end.
fn closed(schedule: &PortSchedule, class: usize) -> Vec<(Span, bool)> {
    let entries = &schedule.entries;
    // A stretch may go on from the end of the cycle to its beginning.
    let Some(first) = entries.iter().position(|entry| is_open(entry, class)) else {
        return vec![(schedule.cycle(), true)];
    };
    let around: Vec<&GateEntry> =
        (0..=entries.len()).map(|n| &entries[(first + n) % entries.len()]).collect();
    let mut found = Vec::new();
    let mut length = Span::ZERO;
    for pair in around.windows(2) {
        if !is_open(pair[0], class) {
            length += pair[0].length;
            if is_open(pair[1], class) {
                let across = pair[0].open.iter().any(|other| pair[1].open.contains(other));
                found.push((length, across));
                length = Span::ZERO;
            }
        }
    }
    found
}
