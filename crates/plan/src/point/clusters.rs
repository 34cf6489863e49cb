//! Clusters of AS6802: who takes part, the ways between them, and whether they can synchronise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wg_core::as6802::{Behaviour, ParameterError, Parameters, Thresholds};
use wg_core::line::{LONGEST_TAGGED_FRAME, SMALLEST_FRAME};
use wg_frame::time::Span;

use super::Carried;
use super::check::PointCheck;
use crate::campaign::{Cluster, ClusterChannel, ClusterMaster, Hop};
use crate::diagnostic::Findings;
use crate::language::values::Failing;
use crate::network::{Attachment, NodeIndex, NodeKind};
use crate::reader::Sourced;
use crate::statements::ClusterStatement;

/// Length of a protocol control frame, in bytes.
const CONTROL_FRAME: u16 = SMALLEST_FRAME;
/// What a compression master reckons with.
const CALCULATION: Span = Span::from_nanos(500);
/// What rounding takes from an instant on its way.
const ROUNDING: Span = Span::from_picos(200);
const SECOND: i64 = 1_000_000_000_000;
/// Parts per billion in one.
const BILLION: i64 = 1_000_000_000;

impl PointCheck<'_> {
    /// Every cluster that is whole.
    pub(super) fn clusters(&self, carried: &Carried, run: Span, found: &mut Findings) -> Vec<Cluster> {
        let mut taken: BTreeMap<NodeIndex, u32> = BTreeMap::new();
        let statements = &self.test.clusters;
        let mut networks = BTreeSet::new();
        for statement in statements {
            if let (Some(domain), Some(priority)) = (&statement.domain, &statement.priority)
                && !networks.insert((domain.value, priority.value))
            {
                let message = format!(
                    "there are two clusters of domain {} and priority {}",
                    domain.value, priority.value
                );
                found.error(&statement.place, message, "1", "give one of them another domain or priority");
            }
        }
        let named: Vec<_> = statements.iter().map(|one| self.members(one, &mut taken, found)).collect();
        let mut clusters = Vec::new();
        for (statement, members) in statements.iter().zip(named) {
            let Some(mut members) = members else { continue };
            if statement.clients.is_none() {
                let free = |node: &NodeIndex| !taken.contains_key(node) && !self.topology.is_hub(*node);
                let nodes = 0..self.topology.network.nodes.len();
                let others: Vec<_> =
                    nodes.filter_map(|node| NodeIndex::try_from(node).ok()).filter(free).collect();
                for node in &others {
                    taken.insert(*node, statement.place.line);
                }
                members.clients = others;
            }
            clusters.extend(self.cluster(statement, members, carried, run, found));
        }
        clusters
    }

    fn members(
        &self,
        statement: &ClusterStatement,
        taken: &mut BTreeMap<NodeIndex, u32>,
        found: &mut Findings,
    ) -> Option<Members> {
        let mut take = |name: &Sourced<String>, node: NodeIndex, found: &mut Findings| {
            let line = *taken.entry(node).or_insert(statement.place.line);
            let is_first = line == statement.place.line && !statement_names_twice(statement, &name.value);
            if !is_first {
                let message = format!("{} already has a part in a cluster", name.named());
                found.error(&name.place, message, "1 part in 1 cluster", "name every device once");
            }
            is_first
        };
        let mut masters = Vec::new();
        for name in &statement.masters {
            let node = self.topology.end_system(name, found)?;
            take(name, node, found).then_some(())?;
            masters.push(node);
        }
        let mut compression = Vec::new();
        for name in &statement.compression_masters {
            let node = self.topology.node(name, found)?;
            if !matches!(self.topology.network.nodes[usize::from(node)].kind, NodeKind::Switch(_)) {
                let message = format!("{} is no switch", name.named());
                let cure = "name a switch: it compresses the frames of the masters";
                found.error(&name.place, message, "", cure);
                return None;
            }
            take(name, node, found).then_some(())?;
            compression.push(node);
        }
        let mut clients = Vec::new();
        for name in statement.clients.iter().flatten() {
            let node = self.topology.node(name, found)?;
            if self.topology.is_hub(node) {
                found.error(
                    &name.place,
                    format!("{} is a hub and has no clock", name.named()),
                    "",
                    "leave it out",
                );
                return None;
            }
            take(name, node, found).then_some(())?;
            clients.push(node);
        }
        Some(Members { masters, compression, clients })
    }

    #[expect(clippy::too_many_lines, reason = "one check after the other, each with its message")]
    fn cluster(
        &self,
        statement: &ClusterStatement,
        mut members: Members,
        carried: &Carried,
        run: Span,
        found: &mut Findings,
    ) -> Option<Cluster> {
        if members.masters.is_empty() || members.compression.is_empty() {
            return None;
        }
        let channels = members.compression.iter().map(|root| self.ways(statement, *root, &members, found));
        let channels: Vec<ClusterChannel> = channels.collect::<Option<_>>()?;
        self.reached(statement, &channels, &mut members, found)?;
        let masters = self.behaviours(statement, &members, found)?;
        let derived = self.longest_way(&channels, members.masters.len(), carried);
        let max_delay = match &statement.max_delay {
            Some(written) => written.as_ref()?.value,
            None => derived,
        };
        let drift_ppb = self.drift(statement, &members, run, found)?;
        let faulty_masters = statement.faulty_masters.as_ref()?.value;
        #[expect(clippy::cast_possible_truncation, reason = "names are counted below; more is refused there")]
        let (count, redundant) = (members.masters.len().min(255) as u8, channels.len().min(255) as u8);
        let usual = Thresholds::of(count, faulty_masters);
        let thresholds = match &statement.sync_threshold {
            Some(written) => Thresholds { sync: written.as_ref()?.value, ..usual },
            None => usual,
        };
        let slowest = channels.iter().flat_map(|channel| &channel.ways).map(|hop| self.line(hop.link));
        let slowest = slowest.map(|line| line.occupation(CONTROL_FRAME)).max().unwrap_or(Span::ZERO);
        let mut parameters = Parameters {
            integrity: statement.integrity.as_ref()?.value,
            domain: statement.domain.as_ref()?.value,
            priority: statement.priority.as_ref()?.value,
            integration_cycle: statement.cycle.as_ref()?.value,
            cycles: statement.cycles.as_ref()?.value,
            precision: Span::from_micros(1),
            max_transmission_delay: max_delay,
            calculation_overhead: CALCULATION,
            frame_time: slowest,
            masters: count,
            faulty_masters,
            channels: redundant,
            thresholds,
            stable_cycles: statement.stable_cycles.as_ref()?.value,
            unstable_cycles: statement.unstable_cycles.as_ref()?.value,
        };
        let bound = |parameters: &Parameters| {
            let ways = i128::from((parameters.receive_pit() + parameters.max_transmission_delay).as_picos());
            let drifted = (ways * i128::from(drift_ppb)).div_euclid(i128::from(BILLION)) + 1;
            let reading = Span::from_picos(i64::try_from(drifted).unwrap_or(SECOND)) + ROUNDING;
            parameters.precision_bound(drift_ppb, reading)
        };
        match &statement.precision {
            // The windows are part of what the bound is about.
            None => (0..8).for_each(|_| parameters.precision = bound(&parameters)),
            Some(written) => {
                let written = written.as_ref()?;
                parameters.precision = written.value;
                let least = bound(&parameters);
                if written.value < least {
                    let message = format!(
                        "{} is less than clocks can keep to that drift by {drift_ppb} ppb between corrections",
                        written.named()
                    );
                    let cure = "write a greater precision, a shorter cycle, or clocks that drift less";
                    found.error(&written.place, message, format!("at least {}", show(least)), cure);
                    return None;
                }
            }
        }
        if let Err(error) = parameters.check() {
            // What to do about it is said in words of the test language.
            let told = error.to_string();
            let message = told.split_once(';').map_or(told.as_str(), |(message, _)| message);
            let (message, limit) = match error {
                ParameterError::Cycle { cycle, needed } => (
                    format!("an integration cycle of {} is too short for its windows", show(cycle)),
                    format!("at least {}", show(needed)),
                ),
                _ => (message.to_owned(), String::new()),
            };
            found.error(&statement.place, message, limit, cure_of(&error));
            return None;
        }
        for window in carried.schedules.values() {
            let cluster = parameters.cluster_cycle().as_picos();
            if cluster % window.period.as_picos().max(1) != 0 {
                let message = format!(
                    "time-triggered flow {} has a period of {}, which does not divide the cluster cycle of {}",
                    window.id,
                    show(window.period),
                    show(parameters.cluster_cycle())
                );
                let cure = "choose cycle and cycles so that their product is a multiple of every period";
                found.error(&statement.place, message, "", cure);
                return None;
            }
        }
        Some(Cluster {
            precision_bound: bound(&parameters),
            startup_bound: parameters.startup_bound(),
            parameters,
            powered_within: statement.powered_within.as_ref()?.value,
            masters,
            channels,
            clients: members.clients,
        })
    }

    /// Clients nobody named are those that a channel reaches; a device that is named is one of them.
    fn reached(
        &self,
        statement: &ClusterStatement,
        channels: &[ClusterChannel],
        members: &mut Members,
        found: &mut Findings,
    ) -> Option<()> {
        let reached: BTreeSet<NodeIndex> =
            channels.iter().flat_map(|channel| &channel.ways).map(|hop| hop.to.node).collect();
        if statement.clients.is_none() {
            members.clients.retain(|client| reached.contains(client));
        }
        let lonely = members.masters.iter().chain(&members.clients).find(|node| !reached.contains(node));
        let Some(lonely) = lonely.filter(|_| self.topology.links_whole) else { return Some(()) };
        let message =
            format!("no compression master reaches \"{}\" over switches", self.topology.name(*lonely));
        let cure = "add the link that joins their parts of the network, or leave it out";
        found.error(&statement.place, message, "", cure);
        None
    }

    fn behaviours(
        &self,
        statement: &ClusterStatement,
        members: &Members,
        found: &mut Findings,
    ) -> Option<Vec<ClusterMaster>> {
        let master = |node: &NodeIndex| ClusterMaster { node: *node, behaviour: Behaviour::Correct };
        let mut masters: Vec<ClusterMaster> = members.masters.iter().map(master).collect();
        for faulty in &statement.faulty {
            let name = faulty.master.as_ref()?;
            let node = self.topology.end_system(name, found)?;
            let Some(master) = masters.iter_mut().find(|master| master.node == node) else {
                let message = format!("{} is no synchronisation master of this cluster", name.named());
                found.error(&faulty.place, message, "", "name one of masters");
                return None;
            };
            if master.behaviour != Behaviour::Correct {
                found.error(&faulty.place, format!("{} fails twice", name.named()), "1", "keep one of them");
                return None;
            }
            let by = match &faulty.by {
                Some(by) => by.as_ref()?.value,
                None => Span::ZERO,
            };
            master.behaviour = match faulty.behaviour.as_ref()?.value {
                Failing::Early => Behaviour::Early(by),
                Failing::Late => Behaviour::Late(by),
                Failing::Silent => Behaviour::Silent,
                Failing::Inconsistent => Behaviour::Inconsistent(by),
            };
            if statement.cycle.as_ref().is_some_and(|cycle| by.as_picos() > cycle.value.as_picos() / 4) {
                let message = format!("{} fails by more than a quarter of the cycle", name.named());
                found.error(&faulty.place, message, "a quarter of the cycle", "write a shorter time");
                return None;
            }
        }
        Some(masters)
    }

    /// The shortest ways from a compression master to all other devices; the first link written of several.
    fn ways(
        &self,
        statement: &ClusterStatement,
        root: NodeIndex,
        members: &Members,
        found: &mut Findings,
    ) -> Option<ClusterChannel> {
        let mut reached: BTreeMap<NodeIndex, Option<Hop>> = BTreeMap::from([(root, None)]);
        let mut next = VecDeque::from([root]);
        while let Some(node) = next.pop_front() {
            let passes = matches!(self.topology.network.nodes[usize::from(node)].kind, NodeKind::Switch(_));
            for hop in self.topology.leaving[usize::from(node)].iter().filter(|_| passes) {
                let to = hop.to.node;
                if !self.topology.is_hub(to) && !reached.contains_key(&to) {
                    reached.insert(to, Some(*hop));
                    next.push_back(to);
                }
            }
        }
        let mut ways = BTreeMap::new();
        let mut missing = Vec::new();
        for node in members.masters.iter().chain(&members.clients) {
            let mut at = *node;
            if !reached.contains_key(&at) {
                missing.push(at);
            }
            while let Some(Some(hop)) = reached.get(&at) {
                ways.insert((hop.from, hop.to), *hop);
                at = hop.from.node;
            }
        }
        let masters = missing.iter().filter(|node| members.masters.contains(node)).count();
        if masters == members.masters.len() {
            let message = format!(
                "no synchronisation master reaches the compression master \"{}\" over switches",
                self.topology.name(root)
            );
            found.error(&statement.place, message, "", "add the link that joins their parts of the network");
            return None;
        }
        Some(ClusterChannel { compression_master: root, ways: ways.into_values().collect() })
    }

    /// The longest that a frame can be under way between an end system and a compression master: at every hop behind a
    /// frame that has just begun, the control frames of all masters and the windows of its port.
    fn longest_way(&self, channels: &[ClusterChannel], masters: usize, carried: &Carried) -> Span {
        let mut windows: BTreeMap<Attachment, Span> = BTreeMap::new();
        for schedule in carried.schedules.values() {
            for window in &schedule.windows {
                let guard = plus(window.length, window.length);
                let at = windows.entry(window.at).or_insert(Span::ZERO);
                *at = plus(*at, guard);
            }
        }
        let network = &self.topology.network;
        let lead = |node: NodeIndex| match &network.nodes[usize::from(node)].kind {
            NodeKind::EndSystem { host } => host.interface_delay,
            NodeKind::Switch(switch) => switch.processing_delay,
            NodeKind::Hub { .. } => Span::ZERO,
        };
        let masters = i64::try_from(masters).unwrap_or(32) + 1;
        let one = |hop: &Hop| {
            let line = self.line(hop.link);
            let control = Span::from_picos(line.occupation(CONTROL_FRAME).as_picos() * masters);
            let waits = [hop.from, hop.to].map(|at| windows.get(&at).copied().unwrap_or(Span::ZERO));
            let delay = network.links[hop.link as usize].delay;
            let others = plus(plus(line.occupation(LONGEST_TAGGED_FRAME), control), waits[0].max(waits[1]));
            plus(plus(others, delay), plus(lead(hop.from.node), lead(hop.to.node)))
        };
        let longest = channels.iter().map(|channel| {
            let mut at: BTreeMap<NodeIndex, Span> =
                BTreeMap::from([(channel.compression_master, Span::ZERO)]);
            // Ways are a tree: each pass reaches at least one hop further.
            for _ in 0..channel.ways.len() {
                for hop in &channel.ways {
                    if let Some(before) = at.get(&hop.from.node).copied() {
                        at.insert(hop.to.node, plus(before, one(hop)));
                    }
                }
                if at.len() > channel.ways.len() {
                    break;
                }
            }
            at.into_values().max().unwrap_or(Span::ZERO)
        });
        plus(longest.max().unwrap_or(Span::ZERO), Span::from_micros(1))
    }

    /// The most that an oscillator of the cluster is off by, in parts per billion.
    fn drift(
        &self,
        statement: &ClusterStatement,
        members: &Members,
        run: Span,
        found: &mut Findings,
    ) -> Option<i64> {
        let mut worst = (0, None);
        for node in members.masters.iter().chain(&members.compression).chain(&members.clients) {
            let clock = &self.topology.network.nodes[usize::from(*node)].clock;
            let (mut at, mut most) = (clock.drift_ppb, clock.drift_ppb.abs());
            for step in &clock.temperature {
                at = at.saturating_add(step.drift_ppb);
                most = most.max(at.abs());
            }
            // Six standard deviations of a walk of one step a second.
            let seconds = (run.as_picos() / SECOND).max(1);
            let walk = (0_i64..).find(|root| root.saturating_mul(*root) >= seconds).unwrap_or(i64::MAX);
            most =
                most.saturating_add(6_i64.saturating_mul(i64::from(clock.wander_ppb)).saturating_mul(walk));
            if most > worst.0 {
                worst = (most, Some(*node));
            }
        }
        let Some(written) = &statement.max_drift else { return Some(worst.0.max(1)) };
        let written = written.as_ref()?;
        if written.value < worst.0 {
            let name = worst.1.map_or("", |node| self.topology.name(node));
            let message =
                format!("{} is less than the clock of \"{name}\" drifts and wanders", written.named());
            let cure = "write a greater max-drift or leave it out";
            found.error(&written.place, message, format!("at least {}ppb", worst.0), cure);
            return None;
        }
        Some(written.value.max(1))
    }
}

struct Members {
    masters: Vec<NodeIndex>,
    compression: Vec<NodeIndex>,
    clients: Vec<NodeIndex>,
}

fn statement_names_twice(statement: &ClusterStatement, name: &str) -> bool {
    let all = statement.masters.iter().chain(&statement.compression_masters);
    all.chain(statement.clients.iter().flatten()).filter(|one| one.value == name).count() > 1
}

/// Their sum, or a second: no cycle is that long.
fn plus(one: Span, other: Span) -> Span {
    let second = Span::from_picos(SECOND);
    one.checked_add(other).map_or(second, |sum| sum.min(second))
}

fn show(span: Span) -> String {
    let ps = span.as_picos();
    match ps {
        _ if ps % 1_000_000_000 == 0 => format!("{}ms", ps / 1_000_000_000),
        _ if ps % 1_000_000 == 0 => format!("{}us", ps / 1_000_000),
        _ => format!("{}ns", ps.div_euclid(1_000) + i64::from(ps.rem_euclid(1_000) > 0)),
    }
}

fn cure_of(error: &wg_core::as6802::ParameterError) -> &'static str {
    use wg_core::as6802::ParameterError as Error;
    match error {
        Error::Masters(_) => "name 1 to 32 masters",
        Error::Faulty { .. } | Error::TooManyFaulty(_) => "name more masters or lower faulty-masters",
        Error::Threshold { .. } => "write a sync-threshold that correct masters alone reach, or leave it out",
        Error::NotPositive => "write positive times",
        Error::Cycle { .. } => "lengthen cycle, or shorten the ways or the precision",
        Error::Cycles(_) => "write fewer cycles",
        Error::Channels(_) => "name 1 to 3 compression masters",
    }
}
