//! Whether TSN settings fit the flows of the test and the link of their host.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use super::{Departure, FrameMatch, HostTsn, Shaper, TsnOffload, arrivals, commands, departures};
use crate::campaign::{Backend, FlowId, Protocol, Run};
use crate::diagnostic::{Findings, Place};
use crate::hold;
use crate::network::{Network, NodeIndex, NodeKind, NodeStatement};
use crate::port_tsn_checks::{check_opens, check_room};
use crate::quantity;
use crate::statements::HostTsnStatement;
use crate::topology::Topology;
use crate::wire::frame_length;

/// Bits of the shortest frame as the kernel counts it, without its FCS (`ETH_ZLEN`).
const SHORTEST_BITS: u64 = 60 * 8;
/// Share of a link that shaped classes have together where nobody says otherwise, percent (IEEE Std 802.1Q-2022, 34.3.1).
const USUAL_SHARE: u64 = 75;

/// Checks the settings of every host against every run.
pub(crate) fn check(nodes: &[NodeStatement], topology: &Topology, runs: &[Run], found: &mut Findings) {
    let settings = nodes.iter().filter_map(|node| {
        let statement = node.tsn.as_ref().filter(|tsn| tsn.whole)?;
        let name = &node.name.as_ref()?.value;
        let index = topology.network.nodes.iter().position(|node| node.name == *name)?;
        Some((NodeIndex::try_from(index).ok()?, &**statement))
    });
    for (node, statement) in settings {
        check_some(&topology.network, runs, node, statement, found);
        for run in runs {
            let host = Host { network: &topology.network, run, node, statement };
            host.check_rate(found);
            host.check_room(found);
            host.check_gates(found);
            host.check_preemption(found);
            host.check_departures(found);
            host.check_launches(found);
            host.check_arrivals(found);
        }
    }
}

/// Settings set something: of an empty element that is the tags of udp flows.
fn check_some(
    network: &Network,
    runs: &[Run],
    node: NodeIndex,
    statement: &HostTsnStatement,
    found: &mut Findings,
) {
    let tsn = &statement.tsn;
    let tags = |run: &Run| departures(network, run, node).iter().any(|(_, leaves)| leaves.untagged);
    let sets = !tsn.classes.is_empty() || !tsn.ingress.is_empty() || tsn.channels.is_some();
    if !sets && !runs.iter().any(tags) {
        let cure = "add <traffic-class> or <ingress> elements, give a udp flow that leaves here a priority, or remove it";
        found.error(&statement.place, "nothing is set", "at least 1", cure);
    }
}

/// The settings of a host in one run.
struct Host<'a> {
    network: &'a Network,
    run: &'a Run,
    node: NodeIndex,
    statement: &'a HostTsnStatement,
}

impl Host<'_> {
    const fn tsn(&self) -> &HostTsn {
        &self.statement.tsn
    }

    fn name(&self) -> &str {
        &self.network.nodes[usize::from(self.node)].name
    }

    /// What is shaped and scheduled, against the rate of the link.
    fn check_rate(&self, found: &mut Findings) {
        let rate = commands::rate_of(self.network, self.run, self.node);
        let shown = quantity::show_rate(rate);
        let slopes = self.tsn().classes.iter().filter_map(|class| match class.shaper {
            Some(Shaper::Cbs { idle_slope_bps, .. }) => Some(idle_slope_bps),
            _ => None,
        });
        let sum = slopes.fold(0, u64::saturating_add);
        if sum >= rate && sum > 0 {
            let message = format!("the idle slopes add up to {}", quantity::show_rate(sum));
            let limit = format!("less than the {shown} of the link");
            found.error(&self.statement.place, message, limit, "lower an idle-slope or use a faster link");
        } else if sum > rate / 100 * USUAL_SHARE {
            found.warn(format!(
                "the idle slopes of \"{}\" add up to {} of {shown}: IEEE 802.1Q leaves {} % to other traffic",
                self.name(),
                quantity::show_rate(sum),
                100 - USUAL_SHARE
            ));
        }
        let shortest = Span::of_bits(SHORTEST_BITS, rate).unwrap_or(Span::ZERO);
        let entries = self.tsn().schedule.iter().flat_map(|schedule| &schedule.entries);
        for (entry, place) in entries.zip(&self.statement.entries) {
            if entry.length <= shortest {
                let message = format!("{} is too short for a frame at {shown}", entry.length);
                let limit = format!("more than {shortest}, a frame of 60B");
                found.error(place, message, limit, "lengthen it; the kernel takes no shorter entry");
            }
        }
    }

    /// Windows and virtual links that leave here leave its shaped classes their slopes.
    fn check_room(&self, found: &mut Findings) {
        let Some(port) = self.tsn().port() else { return };
        let whose = format!("\"{}\"", self.name());
        let cure = "lower an idle-slope, shorten windows, or lengthen a bag";
        let ends =
            self.network.links.iter().flat_map(|link| link.ends.iter().map(move |end| (*end, link.rate)));
        for (at, rate) in ends.filter(|(end, _)| end.node == self.node) {
            let line = self.run.link_rate.unwrap_or(rate);
            if !check_room(&port, (at, line), self.run, (&whose, &self.statement.place, cure), found) {
                return;
            }
        }
    }

    /// Flows that leave here find gates that open.
    fn check_gates(&self, found: &mut Findings) {
        let Some(schedule) = &self.tsn().schedule else { return };
        let leaving = departures(self.network, self.run, self.node);
        let used = |class: usize| {
            let of_class = |(flow, leaves): &&(FlowId, Departure)| {
                self.tsn().class_of(self.priority(*flow, leaves)) == Some(class)
            };
            leaving.iter().find(of_class).map(|(flow, _)| *flow)
        };
        let (classes, whose) = (self.tsn().classes.len(), format!("\"{}\"", self.name()));
        check_opens(classes, &schedule.entries, (&whose, &self.statement.place), used, found);
    }

    /// Preemption is of full-duplex links, and what the MAC is told in advance fits between the entries of the schedule.
    fn check_preemption(&self, found: &mut Findings) {
        let Some(port) = self.tsn().port().filter(|port| port.classes.iter().any(|class| class.preemptable))
        else {
            return;
        };
        for link in self.network.links.iter() {
            let [one, other] = link.ends;
            let Some(far) = [(one, other), (other, one)].into_iter().find(|(own, _)| own.node == self.node)
            else {
                continue;
            };
            let far = &self.network.nodes[usize::from(far.1.node)];
            if matches!(far.kind, NodeKind::Hub { .. }) {
                let message =
                    format!("a class is preemptable, and \"{}\" is at hub \"{}\"", self.name(), far.name);
                let cure = "write preemptable=\"off\", or use a switch";
                found.error(&self.statement.place, message, "full-duplex links", cure);
                return;
            }
            let line = self.run.link_rate.unwrap_or(link.rate);
            hold::check_advances(&port, line, &format!("\"{}\"", self.name()), &self.statement.place, found);
        }
    }

    /// Flows that are given a priority leave here, and their frames can be told apart.
    fn check_departures(&self, found: &mut Findings) {
        let leaving = departures(self.network, self.run, self.node);
        for (one, place) in self.tsn().classify.iter().zip(&self.statement.classify) {
            self.check_known(one.flow, &leaving, ("leaves", "sends or returns"), place, found);
        }
        let mut known: BTreeMap<FrameMatch, (FlowId, (u8, Option<u8>))> = BTreeMap::new();
        for (flow, leaves) in &leaving {
            // Without classes a priority within the host is nobody's.
            let within = if self.tsn().classes.is_empty() { 0 } else { self.priority(*flow, leaves) };
            let given = (within, leaves.priority.filter(|_| leaves.untagged));
            let (other, before) = *known.entry(leaves.frames).or_insert((*flow, given));
            if before != given {
                let message = format!(
                    "flows {other} and {flow} of \"{}\" have the same headers, but {}",
                    self.name(),
                    differently(before, given)
                );
                let cure = "give one of them a VLAN, a destination-port or an address of its own";
                found.error(&self.statement.place, message, "", cure);
            }
        }
    }

    fn check_known<T>(
        &self,
        flow: FlowId,
        there: &[(FlowId, T)],
        (what, which): (&str, &str),
        place: &Place,
        found: &mut Findings,
    ) {
        if !there.iter().any(|(other, _)| *other == flow) {
            let message = format!("no flow {flow} of protocol udp or raw {what} \"{}\"", self.name());
            found.error(place, message, "", format!("name a flow that it {which}"));
        }
    }

    /// Priority of a flow's frames within this host.
    fn priority(&self, flow: FlowId, leaves: &Departure) -> u8 {
        self.tsn().priority_of(flow, leaves.priority)
    }

    /// Launch times and classes that launch belong together, and nothing passes the queues by.
    fn check_launches(&self, found: &mut Findings) {
        if self.tsn().classes.is_empty() {
            return;
        }
        let by_socket = self.tsn().offload != TsnOffload::TxtimeAssist;
        for (flow, leaves) in departures(self.network, self.run, self.node) {
            let class = self.tsn().class_of(self.priority(flow, &leaves)).unwrap_or(0);
            let launches = matches!(self.tsn().classes[class].shaper, Some(Shaper::Etf { .. }));
            let own = self.run.sends.iter().filter(|send| send.flow == flow);
            let sender = self.run.flows.iter().any(|one| one.id == flow && one.from == self.node);
            let asks = sender && own.clone().any(|send| send.launch == Some(true));
            let place = self.statement.classes.get(class).unwrap_or(&self.statement.place);
            if asks && !launches {
                let message =
                    format!("flow {flow} asks for launch times, and its class {class} has no <etf>");
                found.error(place, message, "", "add <etf/> to the class, or remove launch=\"on\"");
            }
            if launches && by_socket && !asks {
                let message = format!(
                    "flow {flow} is in class {class}, whose <etf> drops frames that name no launch time"
                );
                found.error(
                    place,
                    message,
                    "",
                    "write launch=\"on\" in its <send>, or give it another priority",
                );
            }
            let passes = own.filter_map(|send| send.backend).any(passes_queues);
            if sender && passes {
                let message =
                    format!("flow {flow} asks for a backend that passes the queues of the interface by");
                found.error(
                    &self.statement.place,
                    message,
                    "",
                    "write backend=\"packet\", or remove backend",
                );
            }
        }
        for inject in self.run.injects.iter().filter(|inject| inject.on == self.node) {
            if inject.backend.is_some_and(passes_queues) || inject.launch == Some(true) {
                let message =
                    format!("the background load of \"{}\" asks for a way past its classes", self.name());
                found.error(
                    &self.statement.place,
                    message,
                    "",
                    "remove backend and launch from its <inject>",
                );
            }
        }
    }

    /// Rules are of flows that arrive here, whose frames are told apart and do meet them.
    fn check_arrivals(&self, found: &mut Findings) {
        let coming = arrivals(self.network, self.run, self.node);
        for (rule, place) in self.tsn().ingress.iter().zip(&self.statement.ingress) {
            self.check_known(rule.flow, &coming, ("arrives at", "receives"), place, found);
            let Some((_, frames)) = coming.iter().find(|(flow, _)| *flow == rule.flow) else { continue };
            if let Some((other, _)) =
                coming.iter().find(|(flow, other)| *flow != rule.flow && other == frames)
            {
                let message = format!("flows {} and {other} have the same headers", rule.flow);
                let cure = "give one of them a tag, a destination-port or an address of its own";
                found.error(place, message, "", cure);
            }
            let tagged = |flow: &crate::campaign::Flow| flow.protocol == Protocol::Raw && flow.vlan.is_some();
            if !rule.offload && frames.udp.is_none() && self.run.flows.iter().any(tagged) {
                let message = format!(
                    "flow {} is raw, and where raw flows have tags an agent receives them before the kernel's filters",
                    rule.flow
                );
                let cure = "write offload=\"on\" where the card filters, or protocol=\"udp\"";
                found.error(place, message, "", cure);
            }
            self.check_burst(rule.flow, rule.meter.map(|meter| meter.burst), place, found);
        }
    }

    fn check_burst(&self, flow: FlowId, burst: Option<u32>, place: &Place, found: &mut Findings) {
        let Some(burst) = burst else { return };
        let Some(plan) = self.run.flows.iter().find(|one| one.id == flow) else { return };
        let sends = self.run.sends.iter().filter(|send| send.flow == flow);
        // The kernel counts frames without their FCS.
        let longest = sends.map(|send| frame_length(plan.protocol, plan.vlan, send.payload) - 4).max();
        if let Some(longest) = longest.filter(|longest| *longest > burst) {
            let message =
                format!("its burst of {burst} B is less than a frame of flow {flow}: none would pass");
            found.error(place, message, format!("at least {longest}B"), "raise the burst");
        }
    }
}

/// In which of what a filter gives frames two flows differ.
fn differently(before: (u8, Option<u8>), now: (u8, Option<u8>)) -> String {
    if before.0 != now.0 {
        return format!("priorities {} and {}", before.0, now.0);
    }
    let tag = |priority: Option<u8>| priority.map_or("no tag".into(), |of| format!("a tag of priority {of}"));
    format!("{} and {}", tag(before.1), tag(now.1))
}

const fn passes_queues(backend: Backend) -> bool {
    matches!(backend, Backend::Xdp | Backend::XdpLive)
}
