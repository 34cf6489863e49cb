//! Places of a test that can drop frames: queues of limited size, and filters.
//!
//! Each is a [`Place`] of the model, and an answer either proves that all frames pass, or reports the flows that may
//! lose frames. Every cause for which a core drops frames (`wg_core::cause::Cause`) is here, refused by name, or
//! reported as planted by the test. Time-triggered frames have no curves, and are handled separately (`scheduled.rs`).

use std::collections::BTreeMap;

use wg_frame::time::Span;
use wg_plan::{
    Attachment, Capacity, Flow as PlannedFlow, ForwardingMode, NodeIndex, NodeKind, Pattern, Policing,
    StreamFilter, SwitchKind, SwitchModel,
};

use super::buffers::most_bits;
use super::classes::rank;
use super::{AROUND_FRAME, PREAMBLE, Reading, frame_bits, most, seconds};
use crate::curve::Bucket;
use crate::model::{Place, Takes};
use crate::openings::{Comes, Openings};
use crate::rational::Rational;

/// Index of a flow of the model and of its step.
type At = (usize, usize);
/// Bytes of a frame with one 802.1Q tag outside its service data unit: addresses, type, check sequence; the tag.
const AROUND_SDU: i128 = 18;
const TAG: i128 = 4;
const WHEN_UNKNOWN: &str = "it is closed now and then, and when their frames come is not known here, as it is of one periodic \
                            sender with exact clocks, without a virtual link or a relay";

fn whole(value: impl Into<i128>) -> Rational {
    Rational::integer(value.into())
}

impl Reading<'_> {
    /// Collects every place that can drop frames.
    pub(super) fn places(&mut self) {
        let mut places = Vec::new();
        for (index, node) in (0..).zip(&self.network.nodes) {
            match &node.kind {
                NodeKind::Switch(switch) => {
                    self.buffers_of(index, switch, &mut places);
                    self.classes_of(index, switch, &mut places);
                    self.filters_of(index, switch, &mut places);
                    self.policing_of(index, switch, &mut places);
                }
                NodeKind::EndSystem { .. } => self.host_of(index, &mut places),
                NodeKind::Hub { .. } => {}
            }
        }
        self.regulators(&mut places);
        self.model.places.extend(places.into_iter().filter(|place| !place.flows.is_empty()));
    }

    fn planned(&self, flow: usize) -> Option<&PlannedFlow> {
        let name = &self.model.flows[flow].name;
        self.run.flows.iter().find(|planned| planned.id.to_string() == *name)
    }

    /// Flows and steps at a server.
    fn at_server(&self, server: usize) -> Vec<At> {
        let flows = self.model.flows.iter().enumerate();
        let steps = flows.flat_map(|(flow, one)| (0..one.steps.len()).map(move |step| (flow, step)));
        steps.filter(|(flow, step)| self.model.flows[*flow].steps[*step].server == server).collect()
    }

    /// A queue: bits of frames on the wire that certainly fit, whatever their lengths.
    fn room(&self, name: String, capacity: Capacity, parts: Vec<(Vec<At>, Option<Rational>)>) -> Place {
        let at: Vec<At> = parts.iter().flat_map(|(at, _)| at).copied().collect();
        let lengths = at.iter().map(|(flow, _)| self.lengths[*flow]);
        let (shortest, longest) =
            lengths.fold((i128::MAX, 1), |(short, long), one| (short.min(one.0), long.max(one.1)));
        let bytes = &whole(8 * i128::from(capacity.bytes)) * &Rational::new(longest + AROUND_FRAME, longest);
        let frames = &whole(8 * (shortest.min(longest) + AROUND_FRAME)) * &whole(capacity.frames);
        let bits = if capacity.frames == u32::MAX { bytes } else { (&bytes).min(&frames).clone() };
        let flows = flows_of(&at);
        Place { name, flows, takes: Takes::Room { parts, bits } }
    }

    fn ports_of(&self, node: NodeIndex) -> impl Iterator<Item = (Attachment, usize)> + '_ {
        self.servers.iter().filter(move |(port, _)| port.node == node).map(|(port, server)| (*port, *server))
    }

    /// Greatest number of bits of these flows in a queue.
    fn held(&self, capacity: Capacity, at: &[At]) -> Rational {
        let lengths = at.iter().map(|(flow, _)| self.lengths[*flow]);
        let ends = lengths.fold((i128::MAX, 1), |(short, long), one| (short.min(one.0), long.max(one.1)));
        Rational::integer(most_bits(capacity, ends))
    }

    fn buffers_of(&self, node: NodeIndex, switch: &SwitchModel, places: &mut Vec<Place>) {
        let mut all = Vec::new();
        for (port, server) in self.ports_of(node) {
            let at = self.at_server(server);
            let mut classes: BTreeMap<u8, Vec<At>> = BTreeMap::new();
            for (flow, step) in &at {
                let class = self.model.flows[*flow].steps[*step].class;
                classes.entry(class).or_default().push((*flow, *step));
            }
            let queue = |at: &Vec<At>| switch.queue_buffer.map(|queue| self.held(queue, at));
            let parts: Vec<(Vec<At>, Option<Rational>)> =
                classes.into_values().map(|at| (at.clone(), queue(&at))).collect();
            if let Some(queue) = switch.queue_buffer {
                let name = format!("a queue of port \"{}:{}\"", self.name(node), port.port);
                let each =
                    parts.iter().map(|(at, _)| self.room(name.clone(), queue, vec![(at.clone(), None)]));
                places.extend(each);
            }
            let name = format!("the buffer of port \"{}:{}\"", self.name(node), port.port);
            places.push(self.room(name, switch.port_buffer, parts));
            let most = self.held(switch.port_buffer, &at);
            all.push((at, Some(most)));
        }
        if let Some(shared) = switch.shared_buffer {
            places.push(self.room(format!("the shared buffer of \"{}\"", self.name(node)), shared, all));
        }
    }

    /// Frames that no class or no port takes.
    fn classes_of(&self, node: NodeIndex, switch: &SwitchModel, places: &mut Vec<Place>) {
        for (port, server) in self.ports_of(node) {
            let Some(tsn) = switch.tsn_of(port.port) else { continue };
            for (number, class) in tsn.classes.iter().enumerate() {
                let Some(longest) = class.longest_frame else { continue };
                let rank = rank(tsn, number);
                let at = self.at_server(server).into_iter().filter(|(flow, step)| {
                    self.model.flows[*flow].steps[*step].class == rank
                        && self.lengths[*flow].1 > i128::from(longest)
                });
                places.push(Place {
                    name: format!("class {number} of port \"{}:{}\"", self.name(node), port.port),
                    flows: flows_of(&at.collect::<Vec<_>>()),
                    takes: Takes::NotAll(format!("their frames are longer than its {longest} B")),
                });
            }
        }
        let lengths = switch.frame_lengths;
        let wrong = |flow: &usize| {
            let tag = self.planned(*flow).and_then(|planned| planned.vlan).map_or(0, |_| TAG);
            let (shortest, longest) = self.lengths[*flow];
            shortest < i128::from(lengths.shortest) || longest > i128::from(lengths.longest) + tag
        };
        let entering = self.entering(node).into_keys().map(|(flow, _)| flow);
        let mut flows: Vec<usize> = entering.filter(wrong).collect();
        flows.dedup();
        places.push(Place {
            name: format!("switch \"{}\"", self.name(node)),
            flows,
            takes: Takes::NotAll("their frames are shorter or longer than it takes".to_owned()),
        });
    }

    /// Flows that enter a switch, by ingress port: the step after which they are judged there.
    fn entering(&self, node: NodeIndex) -> BTreeMap<(usize, u16), At> {
        let mut found = BTreeMap::new();
        for (flow, one) in self.model.flows.iter().enumerate() {
            let Some(planned) = self.planned(flow) else { continue };
            for hop in planned.routes.iter().flat_map(|route| &route.hops).filter(|hop| hop.to.node == node) {
                let leaves = |step: &crate::model::Step| {
                    self.servers.iter().any(|(port, server)| port.node == node && *server == step.server)
                };
                if let Some(step) = one.steps.iter().position(leaves) {
                    found.insert((flow, hop.to.port), (flow, step));
                }
            }
        }
        found
    }

    /// Least time from a flow's entry into the network to a step: its shortest frame on every line before.
    fn least_before(&self, (flow, step): At) -> Rational {
        let one = &self.model.flows[flow];
        let bits = whole(8 * (self.lengths[flow].0 + AROUND_FRAME));
        let mut sum = Rational::ZERO;
        let mut before = one.steps[step].before;
        while let Some(at) = before {
            let capacity = self.model.servers[one.steps[at].server].capacity.clone();
            sum = &sum + &capacity.map_or(Rational::ZERO, |rate| &bits / &rate);
            before = one.steps[at].before;
        }
        sum
    }

    fn filters_of(&self, node: NodeIndex, switch: &SwitchModel, places: &mut Vec<Place>) {
        let entering = self.entering(node);
        let mut applied: Vec<(&StreamFilter, At)> = Vec::new();
        for ((flow, port), at) in &entering {
            let id = self.planned(*flow).map(|planned| planned.id);
            let own = switch.filters_of(*port).iter().filter(|filter| Some(filter.flow) == id);
            applied.extend(own.map(|filter| (filter, *at)));
        }
        let all: Vec<StreamFilter> = switch.tsn.iter().flat_map(|tsn| &tsn.filters).cloned().collect();
        let mut meters: BTreeMap<u16, Vec<At>> = BTreeMap::new();
        let mut gates: BTreeMap<u16, Vec<At>> = BTreeMap::new();
        for (filter, at) in &applied {
            let tag = self.planned(at.0).and_then(|planned| planned.vlan).map_or(0, |_| TAG);
            let sdu = self.lengths[at.0].1 - AROUND_SDU - tag;
            if filter.max_sdu.is_some_and(|most| sdu > i128::from(most)) {
                places.push(Place {
                    name: format!("the stream filter of flow {} in \"{}\"", filter.flow, self.name(node)),
                    flows: vec![at.0],
                    takes: Takes::NotAll(format!(
                        "their service data units have {sdu} B, more than it lets pass"
                    )),
                });
            }
            if filter.meter_among(&all).is_some() {
                meters.entry(filter.meter_of.unwrap_or(filter.flow)).or_default().push(*at);
            }
            if filter.gate_among(&all).is_some() {
                gates.entry(filter.gate_of.unwrap_or(filter.flow)).or_default().push(*at);
            }
        }
        self.meters_of(node, &all, meters, places);
        self.gates_of(node, &all, gates, places);
    }

    fn meters_of(
        &self,
        node: NodeIndex,
        all: &[StreamFilter],
        meters: BTreeMap<u16, Vec<At>>,
        places: &mut Vec<Place>,
    ) {
        let slow = &whole(2) - &self.fast(node);
        for (owner, at) in meters {
            let Some(meter) = all.iter().find(|filter| filter.flow == owner).and_then(|filter| filter.meter)
            else {
                continue;
            };
            let bucket = Bucket {
                burst: whole(8 * i128::from(meter.burst)),
                rate: &whole(i128::from(meter.rate_bps)) * &slow,
            };
            places.push(self.contract(
                format!("the flow meter of flow {owner} in \"{}\"", self.name(node)),
                at,
                bucket,
            ));
        }
    }

    fn gates_of(
        &self,
        node: NodeIndex,
        all: &[StreamFilter],
        gates: BTreeMap<u16, Vec<At>>,
        places: &mut Vec<Place>,
    ) {
        let slow = &whole(2) - &self.fast(node);
        for (owner, at) in gates {
            let Some(gate) =
                all.iter().find(|filter| filter.flow == owner).and_then(|filter| filter.gate.as_ref())
            else {
                continue;
            };
            let name = format!("the stream gate of flow {owner} in \"{}\"", self.name(node));
            if gate.entries.iter().any(|entry| !entry.open) {
                let comes: Option<Vec<Comes>> = at.iter().map(|at| self.comes(node, *at)).collect();
                let entries = gate.entries.iter().map(|entry| (entry.open, entry.length.as_picos()));
                let openings = Openings::new(gate.base_time.as_picos(), entries);
                let takes = comes.map_or_else(
                    || Takes::NotAll(WHEN_UNKNOWN.to_owned()),
                    |of| Takes::Opening { of, openings },
                );
                places.push(Place { name: name.clone(), flows: flows_of(&at), takes });
            }
            for entry in &gate.entries {
                let Some(octets) = entry.max_octets else { continue };
                // The traffic of one interval is its burst and what comes during its length.
                let window = &seconds(entry.length) / &slow;
                let rates =
                    at.iter().fold(Rational::ZERO, |sum, (flow, _)| &sum + self.model.flows[*flow].rate());
                let burst = &whole(8 * i128::from(octets)) - &(&rates * &window);
                places.push(self.contract(name.clone(), at.clone(), Bucket { burst, rate: rates }));
            }
        }
    }

    /// Arrival times of a flow at a gate of a switch, if the plan determines them: for one periodic sender on exact
    /// clocks, without a regulator that delays its frames.
    fn comes(&self, node: NodeIndex, at: At) -> Option<Comes> {
        let planned = self.planned(at.0).filter(|_| self.model.flows[at.0].regulator.is_none())?;
        let mut sends = self.run.sends.iter().filter(|send| send.flow == planned.id);
        let (send, others) = (sends.next()?, sends.next());
        let is_exact = |node: NodeIndex| self.network.nodes[usize::from(node)].clock.is_perfect();
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(node)].kind else { return None };
        let is_periodic =
            send.pattern.is_periodic() && send.replay.is_none() && send.rate_limit_bps.is_none();
        let is_known = others.is_none()
            && is_periodic
            && planned.virtual_link.is_none()
            && switch.forwarding_mode == ForwardingMode::StoreAndForward
            && is_exact(node)
            && is_exact(planned.from)
            && !self.run.relays.iter().any(|relay| relay.flow == planned.id);
        let hops = || planned.routes.iter().flat_map(|route| &route.hops);
        let wire = hops().find(|hop| hop.to.node == node).filter(|_| is_known)?.link;
        let one = &self.model.flows[at.0];
        let path = one.path(at.1);
        let (_, before) = path.split_last()?;
        let woken = self.handed_over(planned, send).soonest;
        let mut fixed = &woken + &seconds(self.network.links[wire as usize].delay);
        let mut lines = Rational::ZERO;
        let bits = whole(8 * (self.lengths[at.0].0 + PREAMBLE));
        for (place, step) in before.iter().map(|step| &one.steps[*step]).enumerate() {
            // The variation of the first step precedes its wait; that of others is part of it.
            let varies = if place == 0 { Rational::ZERO } else { step.variation.clone() };
            fixed = &fixed + &(&step.wait - &varies);
            let rate = self.model.servers[step.server].capacity.as_ref()?;
            lines = &lines + &(&bits / rate);
        }
        Some(Comes {
            at,
            first: (self.run.warm_up + send.offset).as_picos(),
            period: send.period.as_picos(),
            least: &fixed + &lines,
            fixed,
        })
    }

    fn contract(&self, name: String, at: Vec<At>, bucket: Bucket<Rational>) -> Place {
        let flows = flows_of(&at);
        let is_shaped_next = |(flow, step): &At| *step == 0 && self.model.flows[*flow].regulator.is_some();
        if at.iter().any(is_shaped_next) {
            let why = "what comes to it in front of an asynchronous shaper is not known here";
            return Place { name, flows, takes: Takes::NotAll(why.to_owned()) };
        }
        let of = at.into_iter().map(|at| (at, self.least_before(at))).collect();
        let run = seconds(self.run.warm_up + self.run.duration + self.run.drain);
        Place { name, flows, takes: Takes::Contract { of, bucket, run } }
    }

    /// Accounts of virtual links at input ports (ARINC 664 part 7).
    fn policing_of(&self, node: NodeIndex, switch: &SwitchModel, places: &mut Vec<Place>) {
        if switch.kind < SwitchKind::Arinc664 || switch.policing == Policing::Off {
            return;
        }
        for ((flow, port), at) in self.entering(node) {
            let Some(link) = self.planned(flow).and_then(|planned| planned.virtual_link.as_ref()) else {
                continue;
            };
            let (bag, jitter) = (seconds(link.contract.bag().span()), seconds(link.jitter));
            // In bits on the wire: each frame costs no more of these than of the account.
            let bytes = match switch.policing {
                Policing::Frames => self.lengths[flow].0,
                _ => i128::from(link.contract.lmax()),
            };
            let bits = whole(8 * (bytes + AROUND_FRAME));
            let rate = &bits / &bag;
            let burst = &bits + &(&rate * &jitter);
            let name = format!("the policing of virtual link {} at \"{}:{port}\"", link.id, self.name(node));
            places.push(self.contract(name, vec![at], Bucket { burst, rate }));
        }
    }

    fn host_of(&self, node: NodeIndex, places: &mut Vec<Place>) {
        let host = self.host(node);
        for (_, server) in self.ports_of(node) {
            let name = format!("the egress queue of \"{}\"", self.name(node));
            places.push(self.room(
                name,
                Capacity::bytes(host.egress_bytes),
                vec![(self.at_server(server), None)],
            ));
        }
        let name = format!("the receive ring of \"{}\"", self.name(node));
        let buffers = host.receive_buffers.as_ref();
        let slots = self.slots(node);
        let fifo = buffers.and_then(|buffers| buffers.iter().filter_map(|one| one.fifo_bytes).min());
        // The frame being read takes a slot, too.
        let frames = slots.saturating_sub(1);
        let bytes = fifo.map_or(u64::MAX >> 8, u64::from);
        match self.readers.get(&node) {
            Some(server) => {
                places.push(self.room(
                    name,
                    Capacity { bytes, frames },
                    vec![(self.at_server(*server), None)],
                ));
            }
            None => self.unread(node, (name, slots), places),
        }
        self.backlog_of(node, places);
    }

    /// Slots of the receive ring of a host, or of its smallest receive buffer.
    pub(super) fn slots(&self, node: NodeIndex) -> u32 {
        let host = self.host(node);
        let smallest = host.receive_buffers.map(|buffers| buffers.iter().map(|one| one.slots).min());
        smallest.map_or(host.ring, |slots| slots.unwrap_or(1))
    }

    /// Frames without reading time stay in the ring until the host is interrupted: as many as come meanwhile.
    fn unread(&self, node: NodeIndex, (name, slots): (String, u32), places: &mut Vec<Place>) {
        let comes = |flow: &usize| {
            self.planned(*flow).is_some_and(|planned| planned.receivers().any(|receiver| receiver == node))
        };
        let flows: Vec<usize> = (0..self.model.flows.len()).filter(comes).collect();
        if let Some(why) = self.ring_full(node, slots) {
            places.push(Place { name, flows, takes: Takes::NotAll(why) });
        }
    }

    /// Why the ring of a host without a reader may overrun, from all traffic of its links.
    pub(super) fn ring_full(&self, node: NodeIndex, slots: u32) -> Option<String> {
        let told = self.told(node);
        let comes = |planned: &&PlannedFlow| planned.receivers().any(|receiver| receiver == node);
        let own = self.run.flows.iter().filter(comes);
        let shortest = own.flat_map(|planned| self.sizes(planned)).min().unwrap_or(64);
        let links = self.network.links.iter().filter(|link| link.ends.iter().any(|end| end.node == node));
        let rates: i128 = links.map(|link| i128::from(link.rate.bits_per_second())).sum();
        let most = &whole(1) + &(&(&whole(rates) * &told) / &whole(8 * (shortest + AROUND_FRAME)));
        (told.signum() > 0 && most > whole(slots)).then(|| {
            format!("so many may come before the host reads them that its {slots} places are too few")
        })
    }

    /// Frame lengths of a flow, destination address to FCS.
    pub(super) fn sizes(&self, planned: &PlannedFlow) -> Vec<i128> {
        let own = self.run.sends.iter().filter(|send| send.flow == planned.id);
        own.map(|send| i128::from(frame_bits(planned, send.payload)) / 8 - AROUND_FRAME).collect()
    }

    /// Frames of a flow that may be due at once, if the host may be late by `late`.
    fn at_once(&self, planned: &PlannedFlow, late: &Rational) -> Rational {
        let fast = self.fast(planned.from);
        let mut sum = Rational::ZERO;
        for send in self.run.sends.iter().filter(|send| send.flow == planned.id) {
            let frames = match send.pattern {
                Pattern::Bursts { size, .. } => size,
                _ => 1,
            };
            let period = match send.pattern {
                Pattern::Ramp { to, .. } => send.period.min(to),
                _ => send.period,
            };
            if period <= Span::ZERO {
                continue;
            }
            let frames = whole(frames);
            let meanwhile = &(&(&frames / &seconds(period)) * &fast) * late;
            sum = &(&sum + &frames) + &meanwhile;
        }
        sum
    }

    /// Greatest lateness of a host: by its ticks, waking up, reading its clock, events and other frames.
    fn late(&self, node: NodeIndex) -> Rational {
        let work = self.busy.get(&node).cloned().unwrap_or_default();
        let woken =
            &(&most(&self.host(node).send_wake_up) + &self.held_up(node, true)) + &self.read_cost(node).1;
        let from = |flow| self.run.flows.iter().any(|planned| planned.id == flow && planned.from == node);
        let own = self.run.sends.iter().filter(|send| from(send.flow));
        let behind = own.map(|send| self.behind(node, send)).max().unwrap_or_default();
        &(&(&self.coarse(node) + &behind) + &woken) + &work
    }

    fn sent_by(&self, node: NodeIndex) -> Vec<usize> {
        let from = |flow: &usize| self.planned(*flow).is_some_and(|planned| planned.from == node);
        (0..self.model.flows.len()).filter(from).collect()
    }

    /// Places for messages on their way to the egress queue.
    fn backlog_of(&self, node: NodeIndex, places: &mut Vec<Place>) {
        if let Some((name, why)) = self.backlog_full(node) {
            places.push(Place { name, flows: self.sent_by(node), takes: Takes::NotAll(why) });
        }
    }

    /// The send queue of a host and why it may overrun, from all that the host sends.
    pub(super) fn backlog_full(&self, node: NodeIndex) -> Option<(String, String)> {
        let late = self.late(node);
        let due = self.run.flows.iter().filter(|planned| planned.from == node);
        let due = due.fold(Rational::ZERO, |sum, planned| &sum + &self.at_once(planned, &late));
        let backlog = self.host(node).backlog;
        (late.signum() > 0 && due > whole(backlog)).then(|| {
            let why = format!("more may be due at once than the {backlog} messages it has on their way");
            (format!("the send queue of \"{}\"", self.name(node)), why)
        })
    }

    /// Places for the queues of virtual links.
    fn regulators(&self, places: &mut Vec<Place>) {
        for flow in 0..self.model.flows.len() {
            let enters = |_: &&PlannedFlow| self.model.flows[flow].regulator.is_none();
            let Some(planned) = self.planned(flow).filter(enters) else { continue };
            let Some(link) = &planned.virtual_link else { continue };
            let most = self.at_once(planned, &self.late(planned.from));
            if most >= whole(i128::from(link.queue) + 1) {
                let why = format!("more frames may be due at once than the {} it holds", link.queue);
                places.push(Place {
                    name: format!("the queue of virtual link {}", link.id),
                    flows: vec![flow],
                    takes: Takes::NotAll(why),
                });
            }
        }
    }
}

fn flows_of(at: &[At]) -> Vec<usize> {
    let mut flows: Vec<usize> = at.iter().map(|(flow, _)| *flow).collect();
    flows.sort_unstable();
    flows.dedup();
    flows
}
