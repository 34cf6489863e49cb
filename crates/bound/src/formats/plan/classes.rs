//! Traffic classes of ports: their rules, and features without a bound.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;
use wg_plan::host_tsn::{GateEntry, Shaper};
use wg_plan::{
    Attachment, CyclicQueuing, Flow as PlannedFlow, ForwardingMode, Integration, LinkPriority, NodeIndex,
    NodeKind, PortClass, PortSchedule, PortTsn, SwitchKind,
};

use super::{AROUND_FRAME, Reading, seconds};
use crate::curve::Bucket;
use crate::rational::Rational;
use crate::rules::{Behind, Closed, Cycles, Fragments, Gates, Rule, Slope};

/// Number of ranks before all classes: virtual links that no class takes, those of high priority before those of low.
const BEFORE_CLASSES: u8 = 2;

/// Ranks at a port without traffic classes: virtual links, priorities, frames that nothing distinguishes.
pub(super) const LINKS: u8 = 1;
pub(super) const FIRST_COME: u8 = of_priority(0);

pub(super) const fn of_priority(priority: u8) -> u8 {
    LINKS + 2 + (7 - if priority > 7 { 7 } else { priority })
}

/// Rank of a class at its port; less is more urgent. Classes of cyclic queuing take turns, and have one rank.
pub(super) fn rank(tsn: &PortTsn, class: usize) -> u8 {
    let turns = tsn.cyclic.map(|cyclic| cyclic.classes.map(usize::from));
    let class = turns
        .filter(|both| both.contains(&class))
        .map_or(class, |both| both.into_iter().max().unwrap_or(class));
    let after = tsn.classes.len().saturating_sub(1 + class);
    u8::try_from(after).unwrap_or(u8::MAX).saturating_add(BEFORE_CLASSES)
}

impl Reading<'_> {
    /// TSN settings of a port, if any.
    pub(super) fn tsn(&self, at: Attachment) -> Option<PortTsn> {
        let node = &self.network.nodes[usize::from(at.node)];
        match &node.kind {
            NodeKind::Switch(switch) => switch.tsn_of(at.port).cloned(),
            NodeKind::EndSystem { .. } => node.tsn.as_ref().and_then(|tsn| tsn.port()),
            NodeKind::Hub { .. } => None,
        }
    }

    /// Rank of a priority at a port with traffic classes; less is more urgent.
    pub(super) fn rank(tsn: &PortTsn, priority: u8) -> u8 {
        rank(tsn, usize::from(tsn.classes_of_priorities()[usize::from(priority & 7)]))
    }

    /// Names of the ranks of a port.
    pub(super) fn class_names(&self, at: Attachment) -> BTreeMap<u8, String> {
        let links = |first: u8| {
            let named = |(rank, which)| (rank, format!("virtual links of {which} priority"));
            [(first, "high"), (first + 1, "low")].map(named)
        };
        if let Some(tsn) = self.tsn(at) {
            let mut names = BTreeMap::from(links(0));
            for class in 0..tsn.classes.len() {
                let turns = tsn.cyclic.filter(|cyclic| cyclic.classes.map(usize::from).contains(&class));
                let name = match turns.map(|cyclic| cyclic.classes) {
                    Some([one, other]) => format!("classes {one} and {other}"),
                    None => format!("class {class}"),
                };
                names.insert(rank(&tsn, class), name);
            }
            return names;
        }
        let strict = matches!(&self.network.nodes[usize::from(at.node)].kind, NodeKind::Switch(one) if one.strict_priority);
        let mut names = BTreeMap::from([(FIRST_COME, "other frames".to_owned())]);
        if strict {
            names.extend((0..8).map(|priority| (of_priority(priority), format!("priority {priority}"))));
        }
        names.extend(links(LINKS));
        names
    }

    /// Rank of a virtual link: before all classes, or that of the class that takes it.
    pub(super) fn rank_of_link(tsn: &PortTsn, priority: u8) -> u8 {
        let priority = LinkPriority::of(priority);
        match (tsn.class_of_link(priority), priority) {
            (Some(class), _) => rank(tsn, class),
            (None, LinkPriority::High) => 0,
            (None, LinkPriority::Low) => 1,
        }
    }

    /// Whether a device distinguishes virtual links from other frames.
    pub(super) fn knows_links(&self, node: NodeIndex) -> bool {
        match &self.network.nodes[usize::from(node)].kind {
            NodeKind::Switch(switch) => switch.kind >= SwitchKind::Arinc664,
            NodeKind::EndSystem { .. } => true,
            NodeKind::Hub { .. } => false,
        }
    }

    /// Priority of a flow's frames at a port with traffic classes.
    pub(super) fn priority(&self, at: NodeIndex, flow: &PlannedFlow) -> u8 {
        let tag = flow.vlan.map(|tag| tag.priority);
        match &self.network.nodes[usize::from(at)].tsn {
            Some(tsn) => tsn.priority_of(flow.id, tag),
            None => flow.virtual_link.map_or(tag.unwrap_or(0), |link| link.priority),
        }
    }

    /// Features of used traffic classes at a node without a curve, with the ports that have them.
    pub(super) fn unruled(&self, node: NodeIndex) -> BTreeMap<Unruled, Vec<u16>> {
        let mut found: BTreeMap<Unruled, Vec<u16>> = BTreeMap::new();
        for at in self.taken_ports().into_iter().filter(|at| at.node == node) {
            let Some(tsn) = self.tsn(at) else { continue };
            for one in unruled_of(&tsn).into_iter().chain(self.unruled_beside_windows(at, &tsn)) {
                found.entry(one).or_default().push(at.port);
            }
        }
        let classes = self.network.nodes[usize::from(node)].tsn.iter().flat_map(|tsn| &tsn.classes);
        if classes.into_iter().any(|class| matches!(class.shaper, Some(Shaper::Etf { .. }))) {
            found.insert(LAUNCHED, Vec::new());
        }
        if let NodeKind::Switch(switch) = &self.network.nodes[usize::from(node)].kind {
            let waits = |tsn: &&PortTsn| {
                tsn.cyclic.is_some() || tsn.classes.iter().any(|class| class.asynchronous.is_some())
            };
            if switch.forwarding_mode == ForwardingMode::CutThrough
                && switch.tsn.iter().any(|tsn| waits(&tsn))
            {
                found.insert(CUT_THROUGH, Vec::new());
            }
            // Frames that enter by these ports have another class wherever they leave. A filter that only drops reduces
            // load.
            let filters = switch.tsn.iter().filter(|tsn| changes_priorities(tsn));
            for tsn in filters {
                found.entry(OTHER_PRIORITIES).or_default().extend(&tsn.ports);
            }
        }
        found
    }

    /// A shaper charges the part sent of a frame that is cut off, and then the complete frame again.
    fn unruled_beside_windows(&self, at: Attachment, tsn: &PortTsn) -> Option<Unruled> {
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(at.node)].kind else { return None };
        let windows = self.run.flows.iter().filter_map(|flow| flow.schedule.as_ref());
        let has_windows = windows.flat_map(|schedule| &schedule.windows).any(|window| window.at == at);
        (has_windows && switch.integration == Integration::Preemption && is_shaped(tsn)).then_some(CUT_OFF)
    }

    /// Ports by which flows or loads leave.
    fn taken_ports(&self) -> BTreeSet<Attachment> {
        let mut taken = BTreeSet::new();
        for flow in &self.run.flows {
            let returns = self.run.relays.iter().any(|relay| relay.flow == flow.id);
            for hop in flow.routes.iter().flat_map(|route| &route.hops) {
                taken.insert(hop.from);
                taken.extend(returns.then_some(hop.to));
            }
        }
        taken.extend(self.run.injects.iter().flat_map(|inject| &inject.route.hops).map(|hop| hop.from));
        taken
    }

    /// Rules of the classes of a port.
    pub(super) fn rules(&self, at: Attachment) -> BTreeMap<u8, Rule<Rational>> {
        let Some(tsn) = self.tsn(at) else { return BTreeMap::new() };
        let rank = |class: usize| rank(&tsn, class);
        let fast = self.fast(at.node);
        let slow = &Rational::integer(2) - &fast;
        // Gates open and close at the next tick, so an interval lies within one that ends a tick later, and a frame
        // that fits by the clock's reading may last beyond its gate.
        let ticks = self.coarse(at.node);
        let Some(schedule) = tsn.schedules.first() else {
            let cyclic = tsn
                .cyclic
                .map(|cyclic| (rank(usize::from(cyclic.classes[0])), self.cycles(at.node, &tsn, cyclic)));
            let slopes = tsn.classes.iter().enumerate().filter_map(|(class, one)| {
                let slope = Rational::integer(i128::from(one.idle_slope_bps?));
                let (least, most) = (&slope * &slow, &slope * &fast);
                Some((rank(class), Rule::Shaped(Slope { least, most, behind: None })))
            });
            return slopes.chain(cyclic).collect();
        };
        let every = 0..tsn.classes.len();
        let gates = |class: usize| Gates {
            cycle: &seconds(schedule.cycle()) / &fast,
            closed: closed(schedule, class)
                .into_iter()
                .map(|(length, straddled)| Closed {
                    length: &(&seconds(length) / &slow) + &ticks,
                    // With a guard band a frame may last beyond the closing of its own gate.
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
                // Virtual links before all classes have no gate.
                .chain(0..BEFORE_CLASSES)
                .collect(),
        };
        let rule = |class: usize| match tsn.classes[class].idle_slope_bps {
            None => Rule::Gated(gates(class)),
            Some(slope) => {
                let slope = while_open(slope, schedule, class);
                let open = open_in_any_time(schedule, class, (&fast, &slow, &ticks));
                let behind = Some(Behind { gates: gates(class), open });
                Rule::Shaped(Slope { least: &slope * &slow, most: &slope * &fast, behind })
            }
        };
        every.clone().map(|class| (rank(class), rule(class))).collect()
    }

    /// Cycles of cyclic queues at a port.
    fn cycles(&self, node: NodeIndex, tsn: &PortTsn, cyclic: CyclicQueuing) -> Rule<Rational> {
        let fast = self.fast(node);
        let slow = &Rational::integer(2) - &fast;
        let ticks = self.coarse(node);
        Rule::Cyclic(Cycles {
            most: &(&seconds(cyclic.cycle) / &slow) + &ticks,
            least: (&(&seconds(cyclic.cycle) / &fast) - &ticks).max(Rational::ZERO),
            guard: tsn.guard_band.map_or(Rational::ZERO, |guard| &seconds(guard) / &slow),
            picos: i128::from(cyclic.cycle.as_picos()),
            base: i128::from(cyclic.base_time.as_picos()) - self.clock_offset(node),
            deviation: self.deviation(node),
        })
    }

    /// Preemptable classes of a port, and the uncuttable part of a frame: less than the shortest fragment and, without
    /// its check sequence, the shortest rest (IEEE Std 802.3-2022, clause 99), with preamble and gap.
    pub(super) fn fragments(&self, at: Attachment) -> Option<Fragments<Rational>> {
        let tsn = self.tsn(at)?;
        let preemptable = tsn.classes.iter().enumerate().filter(|(_, class)| class.preemptable);
        let classes: BTreeSet<u8> = preemptable.map(|(class, _)| rank(&tsn, class)).collect();
        let shortest = i128::from(tsn.shortest_fragment.unwrap_or(64));
        let uncut = Rational::integer(8 * (shortest + 60 - 1 + AROUND_FRAME));
        (!classes.is_empty()).then_some(Fragments { classes, uncut })
    }

    /// Refuses classes with more traffic than their slope passes: their frames wait without end.
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
                let least = slope.over_all_time();
                if rate > least {
                    let names: Vec<&str> = flows.iter().take(20).map(|flow| flow.name.as_str()).collect();
                    said.push((
                        format!("server \"{}\"", server.name),
                        format!(
                            "a shaped class has an idle slope of {:.0} bit/s, and flows {} bring it {:.0} bit/s",
                            least.to_f64_down(),
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

/// A feature without a curve: its name, its bounded substitute, and the cure.
pub(super) type Unruled = (&'static str, &'static str, &'static str);

const LAUNCHED: Unruled = (
    "a class whose frames name their time",
    "frames that leave as soon as they may",
    "leave the etf shaper out",
);
const CUT_OFF: Unruled = (
    "credit-based shapers beside windows that cut frames off",
    "windows that nothing is cut off for",
    "write integration=\"timely-block\" or \"shuffling\"",
);

const CUT_THROUGH: Unruled = (
    "frames that are cut through and then wait for a shaper or a cycle",
    "frames that come completely first",
    "write forwarding-mode=\"store-and-forward\"",
);

const OTHER_PRIORITIES: Unruled = (
    "stream gates with internal priorities",
    "the priority of the tag",
    "leave priority out of the <stream-gate-entry> elements",
);

fn changes_priorities(tsn: &PortTsn) -> bool {
    let gates = tsn.filters.iter().filter_map(|filter| filter.gate.as_ref());
    gates.flat_map(|gate| &gate.entries).any(|entry| entry.priority.is_some())
}

fn is_shaped(tsn: &PortTsn) -> bool {
    tsn.classes.iter().any(|class| class.idle_slope_bps.is_some())
}

fn unruled_of(tsn: &PortTsn) -> Vec<Unruled> {
    let mut found = Vec::new();
    let preemptable = |class: &PortClass| {
        // Every field is named: a new one does not compile until somebody has said what bounds make of it.
        let PortClass {
            priorities: _,
            virtual_links: _,
            idle_slope_bps: _,
            longest_frame: _,
            preemptable,
            asynchronous: _,
        } = class;
        *preemptable
    };
    if tsn.classes.iter().any(|class| class.preemptable && class.idle_slope_bps.is_some()) {
        let cure = "leave preemptable out of the classes with <cbs>";
        found.push(("shaped classes that are preemptable", "shaped classes that are express", cure));
    }
    if !tsn.classes.is_sorted_by_key(|class| !class.preemptable) {
        let cure = "make the classes with the smallest numbers preemptable";
        found.push(("express classes below preemptable ones", "express classes above all others", cure));
    }
    let mut entries = tsn.schedules.iter().flat_map(|schedule| &schedule.entries);
    if tsn.classes.iter().any(preemptable) && entries.any(GateEntry::sets_mac) {
        let cure = "leave mac out of the <gate-entry> elements";
        found.push(("gates that hold the MAC", "gates that leave the MAC as it is", cure));
    }
    found.extend(tsn.cyclic.and_then(|cyclic| unruled_cycles(tsn, cyclic)));
    if tsn.schedules.len() > 1 {
        found.push(("gate schedules that take over one another", "1 gate schedule", "keep one of them"));
    }
    found
}

/// A feature of cyclic queues without a curve.
fn unruled_cycles(tsn: &PortTsn, cyclic: CyclicQueuing) -> Option<Unruled> {
    let [one, other] = cyclic.classes.map(usize::from);
    let both = || [one, other].into_iter().filter_map(|class| tsn.classes.get(class));
    if one.abs_diff(other) != 1 {
        let cure = "give cyclic queuing two classes with numbers in a row";
        return Some(("a class between those of cyclic queuing", "classes in a row", cure));
    }
    if both().any(|class| class.idle_slope_bps.is_some() || class.asynchronous.is_some()) {
        let cure = "leave <cbs> and <ats> out of the classes of <cyclic-queuing>";
        return Some(("cyclic queuing of classes with a shaper", "cyclic queuing alone", cure));
    }
    if both().any(|class| class.preemptable) {
        let cure = "leave preemptable out of the classes of <cyclic-queuing>";
        return Some(("cyclic queuing of preemptable classes", "cyclic queuing of express ones", cure));
    }
    None
}

/// Idle slope of a class while its gate is open (operIdleSlope of IEEE Std 802.1Q-2022, 8.6.8.2), to a bit per second.
fn while_open(slope: u64, schedule: &PortSchedule, class: usize) -> Rational {
    let (open, cycle) = (schedule.open_in_cycle(class).as_picos(), schedule.cycle().as_picos());
    let scaled = i128::from(slope) * i128::from(cycle) / i128::from(open.max(1));
    Rational::integer(if open == 0 { i128::from(slope) } else { scaled })
}

/// Greatest open time of a class's gate in any time: `o·(1 − o/c) + t·o/c` for an open time `o` of a cycle `c`.
fn open_in_any_time(
    schedule: &PortSchedule,
    class: usize,
    (fast, slow, ticks): (&Rational, &Rational, &Rational),
) -> Bucket<Rational> {
    let openings = Rational::integer(closed(schedule, class).len() as i128);
    let open = &(&seconds(schedule.open_in_cycle(class)) / slow) + &(&openings * ticks);
    let cycle = &seconds(schedule.cycle()) / fast;
    let share = (&open / &cycle).min(Rational::ONE);
    Bucket { burst: &open * &(&Rational::ONE - &share), rate: share }
}

pub(super) fn is_open(entry: &GateEntry, class: usize) -> bool {
    entry.open.iter().any(|open| usize::from(*open) == class)
}

/// Closed intervals of a class's gate in a cycle, and whether another class's gate is open across their end.
fn closed(schedule: &PortSchedule, class: usize) -> Vec<(Span, bool)> {
    let entries = &schedule.entries;
    // An interval may continue from the end of the cycle to its beginning.
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
