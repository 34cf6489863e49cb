//! Checks of `<switch-tsn>` against links and flows (IEEE Std 802.1Q-2022, 8.6.8). Its types are in `switch_tsn`.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::line::LineRate;
use wg_frame::time::Span;

use crate::campaign::{Flow, FlowId, Run};
use crate::diagnostic::{Findings, Place};
use crate::hold;
use crate::host_tsn::{GateEntry, HostTsn, Shaper};
use crate::network::{Attachment, Integration, NodeIndex, NodeKind, NodeStatement, SwitchKind};
use crate::quantity;
use crate::site::{Site, longest_frame, stream};
use crate::stream_filter_checks;
use crate::switch_tsn::{PortClass, PortSchedule, PortTsn, is_open};
use crate::topology::Topology;
use crate::wire::AROUND_FRAME;

/// Every class that a flow is in has a gate that opens; `used` gives such a flow, and `whose` says of what the classes are.
///
/// A class that nothing is in is only told of: gate control lists often name the classes in use and no others.
pub(crate) fn check_opens(
    classes: usize,
    entries: &[GateEntry],
    (whose, place): (&str, &Place),
    used: impl Fn(usize) -> Option<FlowId>,
    found: &mut Findings,
) {
    let closed = (0..classes).filter(|class| !entries.iter().any(|entry| is_open(entry, *class)));
    let (mut unused, cure) = (Vec::new(), "name it in open of a <gate-entry>");
    for class in closed {
        match used(class) {
            Some(flow) => {
                let message =
                    format!("class {class} is never open: the frames of flow {flow} would never leave");
                found.error(place, message, "", cure);
            }
            None => unused.push(class.to_string()),
        }
    }
    let named = unused.join(", ");
    match unused.len() {
        0 => {}
        1 => found.warn(format!(
            "class {named} of {whose} is never open: no flow is in it, and other frames of it would never leave"
        )),
        _ => found.warn(format!(
            "classes {named} of {whose} are never open: no flow is in them, and other frames of theirs would never leave"
        )),
    }
}

impl HostTsn {
    /// What the settings make of the port, where classes are set.
    pub fn port(&self) -> Option<PortTsn> {
        if self.classes.is_empty() {
            return None;
        }
        let class = |class: &crate::host_tsn::TrafficClass| PortClass {
            priorities: class.priorities.clone(),
            virtual_links: Vec::new(),
            idle_slope_bps: match class.shaper {
                Some(Shaper::Cbs { idle_slope_bps, .. }) => Some(idle_slope_bps),
                Some(Shaper::Etf { .. }) | None => None,
            },
            longest_frame: None,
            preemptable: class.preemptable,
            asynchronous: None,
        };
        let schedules = self.schedule.iter().map(|schedule| PortSchedule {
            base_time: schedule.base_time,
            cycle_extension: Span::ZERO,
            entries: schedule.entries.clone(),
        });
        Some(PortTsn {
            ports: Vec::new(),
            classes: self.classes.iter().map(class).collect(),
            guard_band: None,
            shortest_fragment: self.shortest_fragment,
            hold_advance: self.hold_advance,
            release_advance: self.release_advance,
            cyclic: None,
            schedules: schedules.collect(),
            filters: Vec::new(),
        })
    }
}

/// Checks the classes of every switch against its ports and the flows of every run.
pub(crate) fn check(nodes: &[NodeStatement], topology: &Topology, runs: &[Run], found: &mut Findings) {
    for (index, node) in topology.network.nodes.iter().enumerate() {
        let named =
            |statement: &&NodeStatement| statement.name.as_ref().is_some_and(|name| name.value == node.name);
        let Some((switch, parts)) = nodes.iter().find(named).and_then(NodeStatement::switch) else {
            continue;
        };
        let Ok(index) = NodeIndex::try_from(index) else { continue };
        for statement in parts.tsn.iter().filter(|statement| statement.whole) {
            let named: BTreeSet<u16> =
                switch.tsn.iter().flat_map(|other| other.ports.iter().copied()).collect();
            let has_queues =
                switch.strict_priority || switch.tsn.iter().any(|other| !other.classes.is_empty());
            let site = Site { network: &topology.network, node: index, statement, named, has_queues };
            if !topology.links_whole || site.check_ports(found) {
                runs.iter().for_each(|run| site.check_run(run, found));
            }
        }
    }
}

impl Site<'_> {
    pub(crate) const fn tsn(&self) -> &PortTsn {
        &self.statement.tsn
    }

    pub(crate) fn name(&self) -> &str {
        &self.network.nodes[usize::from(self.node)].name
    }

    pub(crate) fn applies(&self, port: u16) -> bool {
        if self.tsn().ports.is_empty() {
            !self.named.contains(&port)
        } else {
            self.tsn().ports.contains(&port)
        }
    }

    /// By port that has a link: its rate.
    pub(crate) fn lines(&self) -> BTreeMap<u16, LineRate> {
        let ends =
            self.network.links.iter().flat_map(|link| link.ends.iter().map(move |end| (end, link.rate)));
        ends.filter(|(end, _)| end.node == self.node).map(|(end, rate)| (end.port, rate)).collect()
    }

    fn check_ports(&self, found: &mut Findings) -> bool {
        let lines = self.lines();
        let missing: Vec<String> = self
            .tsn()
            .ports
            .iter()
            .filter(|port| !lines.contains_key(port))
            .map(ToString::to_string)
            .collect();
        if missing.is_empty() || lines.is_empty() {
            return true;
        }
        let have: Vec<String> = lines.keys().map(ToString::to_string).collect();
        let message = format!("switch \"{}\" has no link at port {}", self.name(), missing.join(", "));
        let cure = "list ports that links use; sw1:3 in a link's between sets one";
        found.error(&self.statement.place, message, format!("ports {}", have.join(", ")), cure);
        false
    }

    fn check_run(&self, run: &Run, found: &mut Findings) {
        stream_filter_checks::check(self, run, found);
        if self.tsn().classes.is_empty() {
            return;
        }
        self.check_preemption(run, found);
        self.check_named(run, found);
        let known = found.count();
        self.check_gates(run, found);
        if found.count() > known {
            return;
        }
        for (port, line) in self.lines().into_iter().filter(|(port, _)| self.applies(*port)) {
            let line = run.link_rate.unwrap_or(line);
            let whose = format!("port {port} of \"{}\"", self.name());
            let at = Attachment { node: self.node, port };
            let place = &self.statement.place;
            if !self.check_slopes(port, line, found)
                || !check_room(self.tsn(), (at, line), run, (&whose, place, MAKES_ROOM), found)
            {
                return;
            }
            hold::check_advances(self.tsn(), line, &whose, &self.statement.place, found);
            self.check_flows(port, line, run, found);
            self.check_schedulers(port, run, found);
        }
    }

    /// A port that cuts off whole frames for windows sends none in fragments.
    fn check_preemption(&self, run: &Run, found: &mut Findings) {
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(self.node)].kind else { return };
        let integration = run.switches.integration.unwrap_or(switch.integration);
        let aborts = switch.kind == SwitchKind::MixedCriticality && integration == Integration::Preemption;
        let preemptable = self.tsn().classes.iter().position(|class| class.preemptable);
        if let Some(class) = preemptable.filter(|_| aborts) {
            let message = format!(
                "\"{}\" cuts off whole frames for windows and sends them again, which the MAC of fragments cannot",
                self.name()
            );
            let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
            let cure = "write integration=\"timely-block\" or \"shuffling\", or remove preemptable";
            found.error(place, message, "1 kind of preemption at a port", cure);
        }
    }

    /// Flows that leave by these ports find gates that open.
    fn check_gates(&self, run: &Run, found: &mut Findings) {
        let is_here = |at: &Attachment| at.node == self.node && self.applies(at.port);
        let returns = |flow: FlowId| run.relays.iter().any(|relay| relay.flow == flow);
        let leaves = |flow: &Flow| {
            let mut hops = flow.routes.iter().flat_map(|route| &route.hops);
            hops.any(|hop| is_here(&hop.from) || returns(flow.id) && is_here(&hop.to))
        };
        let used = |class: usize| {
            let of_class = |flow: &&Flow| self.tsn().class_of_flow(flow) == Some(class);
            run.flows.iter().filter(of_class).find(|flow| leaves(flow)).map(|flow| flow.id)
        };
        let whose = format!("\"{}\"", self.name());
        for (schedule, place) in self.tsn().schedules.iter().zip(&self.statement.schedules) {
            check_opens(self.tsn().classes.len(), &schedule.entries, (&whose, place), used, found);
        }
    }

    /// What shaped classes have together fits the line, also while their gates are open.
    fn check_slopes(&self, port: u16, line: LineRate, found: &mut Findings) -> bool {
        let rate = line.bits_per_second();
        let shown = quantity::show_rate(rate);
        let slopes = || {
            self.tsn()
                .classes
                .iter()
                .enumerate()
                .filter_map(|(class, one)| Some((class, one.idle_slope_bps?)))
        };
        let sum = slopes().map(|(_, slope)| slope).fold(0, u64::saturating_add);
        if sum > rate {
            let message = format!(
                "the idle slopes of port {port} of \"{}\" add up to {}",
                self.name(),
                quantity::show_rate(sum)
            );
            let cure = "lower an idle-slope or use a faster link";
            found.error(&self.statement.place, message, format!("the {shown} of its link"), cure);
            return false;
        }
        for schedule in &self.tsn().schedules {
            for (class, slope) in slopes() {
                let (open, cycle) = (schedule.open_in_cycle(class).as_picos(), schedule.cycle().as_picos());
                let needed = u128::from(slope) * u128::from(cycle.unsigned_abs());
                if needed > u128::from(rate) * u128::from(open.unsigned_abs()) {
                    let message = format!(
                        "class {class} of port {port} of \"{}\" is to have {} and is open for {} of {}",
                        self.name(),
                        quantity::show_rate(slope),
                        schedule.open_in_cycle(class),
                        schedule.cycle(),
                    );
                    let limit = format!("no more than {shown} while it is open");
                    let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
                    found.error(place, message, limit, "lower its idle-slope or open its gate for longer");
                    return false;
                }
            }
        }
        true
    }

    /// Flows with schedulers pass here in their class, told apart from all others.
    fn check_schedulers(&self, port: u16, run: &Run, found: &mut Findings) {
        let at = Attachment { node: self.node, port };
        let passes =
            |flow: &&Flow| flow.routes.iter().any(|route| route.hops.iter().any(|hop| hop.from == at));
        let passing: Vec<&Flow> = run.flows.iter().filter(passes).collect();
        for (class, one) in self.tsn().classes.iter().enumerate() {
            let Some(shaper) = &one.asynchronous else { continue };
            let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
            let is_here = |flow: &Flow| self.tsn().class_of_flow(flow) == Some(class);
            for scheduler in &shaper.schedulers {
                // A flow may pass another port that the settings are for.
                let Some(flow) = passing.iter().find(|flow| flow.id == scheduler.flow) else { continue };
                if flow.frer.is_some() {
                    let message =
                        format!("flow {} has member streams, each with an address of its own", flow.id);
                    let cure = "remove the scheduler, or <frer> from the flow";
                    found.error(place, message, "1 stream for a scheduler", cure);
                    return;
                }
                if !is_here(flow) {
                    let message = format!("the frames of flow {} are not in class {class}", flow.id);
                    let cure =
                        "put the scheduler into the class of its priority, or give the flow another priority";
                    found.error(place, message, "", cure);
                    return;
                }
                if let Some(other) = passing.iter().find(|other| {
                    other.id != flow.id
                        && other.frer.is_none()
                        && is_here(other)
                        && stream(other) == stream(flow)
                }) {
                    let message = format!(
                        "\"{}\" cannot tell flow {} from flow {}: same destination address and VLAN",
                        self.name(),
                        flow.id,
                        other.id
                    );
                    found.error(
                        place,
                        message,
                        "",
                        "give one of them a vlan or a destination-mac of its own",
                    );
                    return;
                }
                let frame = longest_frame(run, flow).map_or(0, |length| length + AROUND_FRAME);
                if frame > scheduler.burst {
                    found.warn(format!(
                        "a frame of flow {} takes {frame} B on the wire, more than the burst of {} B that class {class} of \"{}\" allows: \
                         each waits for the difference",
                        flow.id, scheduler.burst, self.name()
                    ));
                }
            }
        }
    }

    /// Every flow that a scheduler names passes one of the ports.
    fn check_named(&self, run: &Run, found: &mut Findings) {
        for (class, one) in self.tsn().classes.iter().enumerate() {
            for scheduler in one.asynchronous.iter().flat_map(|shaper| &shaper.schedulers) {
                let leaves = |flow: &Flow| {
                    let mut hops = flow.routes.iter().flat_map(|route| &route.hops);
                    hops.any(|hop| hop.from.node == self.node && self.applies(hop.from.port))
                };
                if !run.flows.iter().any(|flow| flow.id == scheduler.flow && leaves(flow)) {
                    let message =
                        format!("no flow {} leaves \"{}\" by these ports", scheduler.flow, self.name());
                    let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
                    found.error(place, message, "", "name a flow that passes here, or remove the scheduler");
                }
            }
        }
    }

    /// Frames fit through the gates of their classes.
    fn check_flows(&self, port: u16, line: LineRate, run: &Run, found: &mut Findings) {
        let at = Attachment { node: self.node, port };
        let passes =
            |flow: &&Flow| flow.routes.iter().any(|route| route.hops.iter().any(|hop| hop.from == at));
        for flow in run.flows.iter().filter(passes) {
            let Some(class) = self.tsn().class_of_flow(flow) else { continue };
            let Some(length) = longest_frame(run, flow) else { continue };
            let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
            let whose = format!("flow {} in class {class} at port {port} of \"{}\"", flow.id, self.name());
            if let Some(longest) = self.tsn().classes[class].longest_frame
                && length > u32::from(longest)
            {
                found.warn(format!(
                    "the frames of {whose} have {length} B, {longest} B may enter: all are dropped there"
                ));
                continue;
            }
            let needs = line.transmission(u16::try_from(length).unwrap_or(u16::MAX));
            let shut =
                |schedule: &&PortSchedule| schedule.longest_opening(class).is_some_and(|open| open < needs);
            if self.tsn().guard_band.is_none()
                && let Some(schedule) = self.tsn().schedules.iter().find(shut)
            {
                let open = schedule.longest_opening(class).unwrap_or(Span::ZERO);
                let message = format!(
                    "a frame of {whose} takes {needs}, and its gate is open for {open} at a stretch: it would never leave"
                );
                found.error(
                    place,
                    message,
                    format!("at least {needs}"),
                    "open the gate for longer, or use smaller messages",
                );
                return;
            }
        }
    }
}

/// What makes room at a port of a switch.
const MAKES_ROOM: &str = "lower an idle-slope, shorten windows, or have a class take virtual-links";

/// What windows and virtual links before all classes leave of the line is enough for the shaped classes.
pub(crate) fn check_room(
    tsn: &PortTsn,
    (at, line): (Attachment, LineRate),
    run: &Run,
    (whose, place, cure): (&str, &Place, &str),
    found: &mut Findings,
) -> bool {
    let sum = tsn.classes.iter().filter_map(|class| class.idle_slope_bps).fold(0, u64::saturating_add);
    let (rate, before) = (line.bits_per_second(), taken_before(tsn, at, line, run));
    if sum == 0 || before == 0 || u128::from(sum) + before <= u128::from(rate) {
        return true;
    }
    let shown = |rate: u128| quantity::show_rate(u64::try_from(rate).unwrap_or(u64::MAX));
    let message = format!(
        "the idle slopes of {whose} add up to {}, and its windows and virtual links before all classes take {}",
        shown(u128::from(sum)),
        shown(before)
    );
    let limit = format!("the {} of its link", quantity::show_rate(rate));
    found.error(place, message, limit, cure);
    false
}

/// Bits per second of a port that go by windows, or by virtual links that no class has.
fn taken_before(tsn: &PortTsn, at: Attachment, line: LineRate, run: &Run) -> u128 {
    let picos = |span: Span| u128::from(span.as_picos().unsigned_abs());
    let mut taken = 0;
    for flow in &run.flows {
        for window in flow.schedule.iter().flat_map(|schedule| &schedule.windows).filter(|one| one.at == at) {
            let period = flow.schedule.as_ref().map_or(Span::ZERO, |schedule| schedule.period);
            taken += u128::from(line.bits_per_second()) * picos(window.length) / picos(period).max(1);
        }
        let Some(link) = flow.virtual_link.filter(|_| tsn.class_of_flow(flow).is_none()) else {
            continue;
        };
        let comes_back = run.relays.iter().any(|relay| relay.flow == flow.id);
        let mut hops = flow.routes.iter().flat_map(|route| &route.hops);
        if hops.any(|hop| hop.from == at || comes_back && hop.to == at) {
            let bits = 8 * u128::from(u32::from(link.contract.lmax()) + AROUND_FRAME);
            taken += bits * 1_000_000_000_000 / picos(link.contract.bag().span()).max(1);
        }
    }
    taken
}
