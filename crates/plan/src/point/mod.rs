//! One point of the sweep: the checks that need every value at once, and the run it becomes.
//!
//! A value that an axis replaced carries the axis as its place, so a message about the one bad point of a
//! sweep names the axis and the value and not the task it overrode.

mod addresses;
mod carriers;
mod check;
mod clusters;
mod contracts;
mod course;
mod drifting;
mod faults;
mod frer;
mod ptp;
mod releases;
mod replays;
mod senders;
mod tables;
mod tasks;
mod whole_send;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use wg_core::line::SMALLEST_FRAME;
use wg_frame::time::Span;

use crate::campaign::Hop;
use crate::campaign::{FaultKind, Flow, FlowId, Protocol, Route, Run, TimeTriggered, VirtualLink};
use crate::diagnostic::Findings;
use crate::language::tasks::tasks as timing;
use crate::language::types::PROTOCOL;
use crate::model::{FlowModel, Model};
use crate::network::{LineRate, NodeIndex, NodeKind, SwitchKind};
use crate::schedule::Schedule;
use crate::statements::{Pace, homes};
use check::PICOS_PER_SECOND;
pub(crate) use check::{PointCheck, Said};
use senders::Senders;

/// Longest run. An `i64` of picoseconds lasts 106 days.
const LONGEST_RUN_DAYS: i64 = 100;
const DAY: i64 = 86_400 * 1_000_000_000_000;
/// Longest wait for stragglers that can be asked for.
const LONGEST_DRAIN: Span = Span::from_millis(600_000);
/// Largest wait that is derived from the buffers.
const LONGEST_DERIVED_DRAIN: i64 = 5_000_000_000_000;
/// What the flows of one point are held to.
#[derive(Debug, Default)]
struct Carried {
    virtual_links: BTreeMap<FlowId, VirtualLink>,
    schedules: BTreeMap<FlowId, TimeTriggered>,
}

impl PointCheck<'_> {
    /// Checks the point; the run is whole only when nothing was found, here or before.
    pub(crate) fn run(&self, said: &mut Said, found: &mut Findings) -> Run {
        self.flows(found);
        self.carriers(found);
        self.addresses(found);
        self.tables(found);
        let senders: Senders<'_> =
            self.model.sends.iter().filter_map(|send| self.send(send, found)).collect();
        senders.iter().for_each(|send| self.recovery(send, found));
        // Of a link that is not known nobody can say what fits onto it.
        let carried = match self.topology.links_whole && self.topology.rates_whole {
            true => self.carried(&senders, said, found),
            false => Carried::default(),
        };
        let (sends, length) = self.schedule(&senders, found);
        // What does not fit was refused by `length`; the clamp only keeps the type.
        let duration = Span::from_picos(i64::try_from(length).unwrap_or(i64::MAX));
        let counts = sends.iter().map(|send| (send.flow, send.count)).collect();
        let relays = self.relays(&counts, found);
        let injects = self.injects(&senders, found);
        let warm_up = self.test.warm_up.as_ref().map_or(Span::ZERO, |warm_up| warm_up.value);
        let drain = self.drain(found);
        self.length(warm_up, length, drain, found);
        let link_faults = self.link_faults(&counts, found);
        let incidents = self.incidents(&senders, &carried, found);
        // A run that is too long was refused by `length`.
        let lasts = warm_up.checked_add(duration).and_then(|span| span.checked_add(drain));
        let clusters = self.clusters(&carried, lasts.unwrap_or(duration), found);
        let ptp_domains = self.ptp_domains(&clusters, found);
        if found.clean() {
            self.warn_of_late_faults(warm_up + duration + drain, found);
            let together: Vec<BTreeSet<NodeIndex>> = clusters
                .iter()
                .map(|cluster| cluster.devices().collect())
                .chain(ptp_domains.iter().map(|domain| domain.clocks.iter().map(|one| one.node).collect()))
                .collect();
            self.warn_of_parting_clocks(&senders, &carried, &together, warm_up + duration, found);
        }
        let run = Run {
            link_rate: self.model.rate.as_ref().and_then(|rate| LineRate::new(rate.value)),
            switches: self.model.switches,
            warm_up,
            duration,
            drain,
            flows: self.planned_flows(carried),
            sends,
            receives: self.receives(),
            relays,
            injects,
            remote_logs: self.remote_logs(),
            captures: self.captures(),
            link_faults,
            incidents,
            clusters,
            ptp_domains,
            ..Run::default()
        };
        self.due(&run, found);
        run
    }

    /// What fits onto the links, and what flows are held to there.
    fn carried(&self, senders: &Senders<'_>, said: &mut Said, found: &mut Findings) -> Carried {
        let fast: BTreeSet<usize> =
            senders.iter().filter(|send| self.too_fast(send, found)).map(|send| send.send.flow).collect();
        self.load(senders.iter().filter(|send| !fast.contains(&send.send.flow)), said, found);
        Carried {
            virtual_links: self.virtual_links(senders, said, found),
            schedules: self.schedules(senders, said, found),
        }
    }

    /// Every sender has a schedule: what a bench will ask for is asked for here.
    fn due(&self, run: &Run, found: &mut Findings) {
        if !found.clean() {
            return;
        }
        for send in &run.sends {
            // Its length has no part in whether there is one.
            let Err(error) = Schedule::new(run, send, SMALLEST_FRAME) else { continue };
            let task = self.model.sends.iter().find(|task| self.model.flows[task.flow].id == send.flow);
            let Some(task) = task else { continue };
            let cure = "write a shorter period or offset, or fewer messages";
            found.error(&task.place, format!("flow {}: {error}", send.flow), "", cure);
        }
    }

    fn line(&self, link: u32) -> LineRate {
        let set = self.model.rate.as_ref().and_then(|rate| LineRate::new(rate.value));
        set.unwrap_or(self.topology.network.links[link as usize].rate)
    }

    fn rate(&self, link: u32) -> u64 {
        self.line(link).bits_per_second()
    }

    fn flows(&self, found: &mut Findings) {
        for flow in &self.model.flows {
            let Some(protocol) = &flow.protocol else { continue };
            let tag = flow.carriage.vlan.is_some() || flow.carriage.priority.is_some();
            let only_priority =
                flow.carriage.vlan.is_none() && matches!(protocol.value, Protocol::Udp | Protocol::Rc);
            let untagged = matches!(protocol.value, Protocol::Udp | Protocol::Tt | Protocol::Rc);
            if untagged && tag && !only_priority {
                let message = format!("flow {} has a VLAN tag, but {}", flow.id, protocol.named());
                let cure = "use protocol=\"raw\" or protocol=\"be\", or remove vlan and priority";
                let limit = "VLANs on raw and be flows only; a priority also on udp and rc flows";
                found.error(&protocol.place, message, limit, cure);
            }
            let both = flow.carriage.networks == Some(None);
            if both && !matches!(protocol.value, Protocol::Rc | Protocol::Tt) {
                let message = format!("flow {} takes both networks, but {}", flow.id, protocol.named());
                let cure = "write networks=\"A\" or networks=\"B\"; nothing would remove the second copies";
                found.error(&protocol.place, message, "rc and tt flows only", cure);
                continue;
            }
            self.reaches(flow, found);
            self.frer(flow, found);
            self.loopback(flow, found);
        }
        self.returns(found);
    }

    /// What needs a link is nothing for a flow that takes none.
    fn loopback(&self, flow: &FlowModel, found: &mut Findings) {
        let Some(protocol) = flow.protocol.as_ref().filter(|_| flow.is_loopback()) else { return };
        let what = format!("flow {} leads from an end system to itself", flow.id);
        if matches!(protocol.value, Protocol::Rc | Protocol::Tt) {
            let message = format!("{what}, but {} is carried by switches", protocol.named());
            let cure = "write protocol=\"udp\" or \"raw\", or name another end system";
            found.error(&protocol.place, message, "udp, raw and be flows", cure);
        }
        if !flow.addresses().is_none() {
            let message = format!("{what}, and its frames have addresses of their own");
            found.error(&flow.place, message, "", "remove the addresses");
        }
        let sends = self.model.sends.iter().filter(|send| std::ptr::eq(&self.model.flows[send.flow], flow));
        for load in sends.filter_map(|send| match &send.pace {
            Some(Pace::Load(load)) => Some(load),
            _ => None,
        }) {
            let message = format!("{what} and loads no link, so {} is nothing", load.named());
            found.error(&load.place, message, "", "write a period");
        }
    }

    /// Whether messages of relayed flows have a way back.
    fn returns(&self, found: &mut Findings) {
        for relay in &self.model.relays {
            let flow = &self.model.flows[relay.flow];
            let Some(protocol) = flow.protocol.as_ref() else { continue };
            if protocol.value == Protocol::Tt {
                let message = format!(
                    "flow {} has {}, whose windows lead one way, and cannot be relayed",
                    flow.id,
                    protocol.named()
                );
                let cure = "receive it, and declare a second flow with a sender and windows of its own for the way back";
                found.error(&relay.place, message, "udp, raw, be and rc flows", cure);
            }
            if protocol.value != Protocol::Rc {
                continue;
            }
            if self.model.relays_of(relay.flow).count() > 1 {
                let message = format!("flow {} has {} and several relays", flow.id, protocol.named());
                let cure = "name the one that relays with on, and receive at the others";
                found.error(&relay.place, message, "1 relay of an rc flow", cure);
                break;
            }
            if relay.vl.is_none() {
                let message = format!(
                    "flow {} has {}, whose virtual link leads one way, and its relay has none for the way back",
                    flow.id,
                    protocol.named()
                );
                let cure = "add vl=\"…\" to the relay, the number of a virtual link of its own; the contract is the flow's";
                found.error(&relay.place, message, "1 sender per virtual link", cure);
            }
            for fault in relay.faults.iter().filter(|f| matches!(f.kind, FaultKind::Misdirect { .. })) {
                let message = format!(
                    "flow {} has {}, whose way back is fixed in the switches",
                    flow.id,
                    protocol.named()
                );
                let cure = "remove the fault, or misdirect messages of a udp, raw or be flow";
                found.error(&fault.place, message, "", cure);
            }
        }
    }

    fn reaches(&self, flow: &FlowModel, found: &mut Findings) {
        let Some((from, _)) = &flow.ends else { return };
        if !self.topology.links_whole {
            return;
        }
        for (network, reach) in flow.used() {
            for to in &reach.missing {
                let on = match flow.used().count() > 1 || flow.carriage.networks.is_some() {
                    true => format!(" on network {network:?}"),
                    false => String::new(),
                };
                let (from, to) = (self.topology.name(*from), self.topology.name(*to));
                let message = format!("there is no route from \"{from}\" to \"{to}\"{on}");
                found.error(&flow.place, message, "", "add the link that joins their parts of the network");
            }
        }
    }

    /// Hops of a flow, and back from its relays.
    fn hops(&self, flow: usize) -> impl Iterator<Item = Hop> + '_ {
        self.model.flows[flow].hops().chain(self.hops_back(flow))
    }

    /// Hops of what the relays of the flow send back.
    fn hops_back(&self, flow: usize) -> impl Iterator<Item = Hop> + '_ {
        let relays: BTreeSet<_> = self.model.relays_of(flow).map(|relay| relay.on).collect();
        let ways = self.model.flows[flow].used().flat_map(|(_, reach)| &reach.routes);
        let home = ways.filter(move |way| way.receiver().is_some_and(|to| relays.contains(&to)));
        home.flat_map(|way| way.hops.iter().map(|hop| hop.reversed()))
    }

    fn planned_flows(&self, mut carried: Carried) -> Vec<Flow> {
        let flows = self.model.flows.iter().filter_map(|flow| {
            let (_, to) = flow.ends.as_ref()?;
            let networks: Vec<_> = flow.used().collect();
            let routes: Vec<Route> =
                networks.iter().flat_map(|(_, reach)| reach.routes.iter().cloned()).collect();
            let protocol = flow.protocol.as_ref()?.value;
            let plain = match flow.ends.as_ref().filter(|_| flow.is_loopback()) {
                Some((node, _)) => Flow::loopback(flow.id, protocol, *node),
                None => Flow::plain(flow.id, protocol, routes.first()?.clone()),
            };
            Some(Flow {
                also_to: to[1..].to_vec(),
                deadline: flow.deadline.as_ref().map(|deadline| deadline.value),
                vlan: flow.tag(),
                dscp: flow.dscp(),
                routes,
                network: (networks.len() == 1).then(|| networks[0].0),
                virtual_link: carried.virtual_links.remove(&flow.id),
                schedule: carried.schedules.remove(&flow.id),
                exchange: flow.exchange,
                frer: flow.frer,
                addresses: flow.addresses(),
                ..plain
            })
        });
        flows.collect()
    }

    fn drain(&self, found: &mut Findings) -> Span {
        let Some(written) = &self.test.drain else { return self.derived_drain() };
        let Some(drain) = written else { return Span::ZERO };
        if drain.value > LONGEST_DRAIN {
            let message = format!("{} is out of range", drain.named());
            found.error(&drain.place, message, "10min", "write a shorter time; frames do not live that long");
            return Span::ZERO;
        }
        drain.value
    }

    /// The usual wait and the time to empty every full buffer on the longest way, 5 s at most.
    fn derived_drain(&self) -> Span {
        let longest = (0..self.model.flows.len()).map(|flow| self.buffer_time(flow)).max().unwrap_or(0);
        let drain = u128::from(timing::DRAIN.usual().as_picos().unsigned_abs()) + longest;
        Span::from_picos(i64::try_from(drain).unwrap_or(i64::MAX).min(LONGEST_DERIVED_DRAIN))
    }

    fn buffer_time(&self, flow: usize) -> u128 {
        let network = &self.topology.network;
        let time = |hop: Hop| {
            match &network.nodes[usize::from(hop.from.node)].kind {
                NodeKind::EndSystem { .. } | NodeKind::Hub { .. } => 0,
                NodeKind::Switch(switch) => {
                    // What waits behind virtual links waits for their buffer, too.
                    let buffers =
                        if switch.kind >= SwitchKind::Arinc664 && switch.strict_priority { 2 } else { 1 };
                    let bits = u128::from(switch.port_buffer.bytes) * 8 * buffers;
                    bits * PICOS_PER_SECOND / u128::from(self.rate(hop.link).max(1))
                }
            }
        };
        self.hops(flow).map(time).sum()
    }

    fn length(&self, warm_up: Span, duration: i128, drain: Span, found: &mut Findings) {
        let total = i128::from(warm_up.as_picos()) + duration + i128::from(drain.as_picos());
        if total > i128::from(LONGEST_RUN_DAYS) * i128::from(DAY) {
            let days = total / i128::from(DAY);
            let message = format!("a run of this test lasts {days} days");
            let cure = "write a shorter duration, a smaller count or a shorter period";
            found.error(&self.test.tasks, message, format!("{LONGEST_RUN_DAYS} days"), cure);
        }
    }
}

/// Refuses attributes of flows, and of their senders, that belong to none of the protocols the flow takes in the test.
pub(crate) fn check_belongings(
    model: &Model,
    protocols_of: impl Fn(usize) -> Vec<Protocol>,
    found: &mut Findings,
) {
    for (index, flow) in model.flows.iter().enumerate() {
        let Some(written) = &flow.protocol else { continue };
        let taken = protocols_of(index);
        for attribute in &flow.carriage.special {
            let homes = homes(attribute);
            if taken.iter().any(|protocol| homes.contains(protocol)) {
                continue;
            }
            let able = PROTOCOL.choices().iter().filter(|protocol| homes.contains(&protocol.value));
            let names: Vec<&str> = able.map(|protocol| protocol.name).collect();
            let message = format!("{attribute} has no effect on a flow with {}", written.named());
            let cure =
                format!("remove {attribute} or write protocol=\"{}\"", names.join("\" or protocol=\""));
            found.error(&flow.place, message, format!("{} flows", names.join(" and ")), cure);
        }
    }
    for send in &model.sends {
        let Some(sub_link) = &send.sub_link else { continue };
        let flow = &model.flows[send.flow];
        let Some(written) = &flow.protocol else { continue };
        if !protocols_of(send.flow).contains(&Protocol::Rc) {
            let message =
                format!("{} has no effect on flow {} with {}", sub_link.named(), flow.id, written.named());
            found.error(&send.place, message, "rc flows", "remove sub-link or write protocol=\"rc\"");
        }
    }
    for relay in &model.relays {
        let Some(Some(vl)) = &relay.vl else { continue };
        let flow = &model.flows[relay.flow];
        let Some(written) = &flow.protocol else { continue };
        if !protocols_of(relay.flow).contains(&Protocol::Rc) {
            let message =
                format!("{} has no effect on flow {} with {}", vl.named(), flow.id, written.named());
            found.error(&relay.place, message, "rc flows", "remove vl or write protocol=\"rc\"");
        }
    }
}
