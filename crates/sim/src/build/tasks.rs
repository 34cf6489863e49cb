//! Flows and tasks.

use std::collections::{BTreeMap, VecDeque};

use wg_core::arinc664::VirtualLinkId;
use wg_core::frame::{Frame, Marks, NetworkId, TrafficClass};
use wg_core::line::{LONGEST_FRAME, LONGEST_TAGGED_FRAME, SMALLEST_FRAME};
use wg_core::pacing::Pacer;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::schedule::Schedule;
use wg_plan::wire::{frame_length, sized_as};
use wg_plan::{Flow, FlowId, IncidentKind, Network, NodeIndex, Protocol, Run};
use wg_record::FLOW_FOREIGN;

use super::places::destination;
use crate::error::SimError;
use crate::headers::Origin;
use crate::imperfections::Threads;
use crate::message::{Flags, Message};
use crate::models::{stack, traffic_class};
use crate::world::{
    AddressesInTurn, Babbler, CoreIndex, FlowEnd, FlowState, Injector, Paced, Reception, Relay, RemoteLog,
    Sender, World, access,
};

/// The addresses of a flow whose messages use several in turn.
fn in_turn(flow: &Flow, frame: &Frame) -> Option<Box<AddressesInTurn>> {
    let macs = &flow.addresses.macs;
    (!macs.is_none()).then(|| {
        Box::new(AddressesInTurn {
            sources: (frame.source, macs.source.unwrap_or(1)),
            destinations: (frame.destination, macs.destination.unwrap_or(1)),
        })
    })
}

impl World {
    /// Builds the flows, without senders.
    pub(super) fn build_flows(&mut self, run: &Run) -> Result<(), SimError> {
        for (at, flow) in (0_u16..).zip(&run.flows) {
            let slot = &mut self.flow_of_id[usize::from(flow.id)];
            if *slot != u16::MAX || flow.id == FLOW_FOREIGN {
                return Err(SimError::plan(format!("flow {} is defined twice or reserved", flow.id)));
            }
            *slot = at;
            self.host(flow.from)?;
            for receiver in flow.receivers() {
                self.host(receiver)?;
            }
            self.flows.push(FlowState {
                id: flow.id,
                from: flow.from,
                destination: flow.addresses.mac.destination,
                destinations: flow.addresses.macs.destination.unwrap_or(1),
                relays: Vec::new(),
                planned: 0,
                receivers: flow
                    .receivers()
                    .map(|node| FlowEnd { node, came: Reception::default() })
                    .collect(),
            });
            self.access_points.push(access(flow.protocol));
        }
        self.access_points.sort_unstable();
        self.access_points.dedup();
        Ok(())
    }

    pub(super) fn build_tasks(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        self.build_flows(run)?;
        self.build_senders(run)?;
        self.build_relays(run)?;
        self.await_messages(run);
        self.build_injectors(network, run)?;
        self.build_logs(network, run)?;
        self.build_babblers(run)
    }

    fn build_senders(&mut self, run: &Run) -> Result<(), SimError> {
        for send in &run.sends {
            let flow = self.flow(send.flow)?;
            let facts = &run.flows[flow];
            let host = self.host(facts.from)?;
            let within = facts.virtual_link.is_some_and(|link| link.number_within);
            let length = frame_length(sized_as(facts.protocol, within), facts.vlan, send.payload);
            let length =
                u16::try_from(length).ok().filter(|length| *length <= LONGEST_TAGGED_FRAME).ok_or_else(
                    || SimError::plan(format!("a message of flow {} does not fit into one frame", facts.id)),
                )?;
            let schedule = Schedule::new(run, send, length)
                .map_err(|error| SimError::plan(format!("flow {}: {error}", send.flow)))?;
            self.flows[flow].planned += schedule.total();
            self.sending += usize::from(schedule.total() > 0);
            let frame = self.frame(facts, length);
            let pacing = send.pacing.unwrap_or_default();
            self.senders.push(Sender {
                flow: flow as u32,
                host: host as u32,
                // Until its sender numbers it, a frame carries its sub-virtual-link.
                frame: Frame { sequence: send.sub_link.into(), ..frame },
                addresses: in_turn(facts, &frame),
                late_after: send.late_after(),
                schedule,
                due: None,
                paced: pacing
                    .follows_sends()
                    .then(|| Box::new(Paced { pacer: Pacer::new(pacing), last: None })),
                wake_ups: Stream::new(run.seed, Purpose::SendingThread, u32::from(facts.id)),
                done: 0,
                late: 0,
            });
        }
        Ok(())
    }

    /// Builds a frame of each flow and of its way back, for use between real hosts.
    pub(super) fn build_frames(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        for flow in &run.flows {
            let frame = self.frame(flow, 0);
            self.frames.push([frame, frame]);
        }
        for relay in &run.relays {
            let flow = self.flow(relay.flow)?;
            let own = &mut self.frames[flow][1];
            if let Some(link) = relay.vl {
                let destination = MacAddress(VirtualLinkId(link).destination().0);
                let network = run.flows[flow].network.unwrap_or_default();
                *own = Frame { virtual_link: link, network, destination, ..*own };
            }
            self.flow_of_id[usize::from(relay.answers_as())] = flow as u16;
        }
        for place in 0..network.nodes.len() {
            let networks = match self.nodes[place].place {
                CoreIndex::Host(host) => self.network(network, host as usize),
                _ => NetworkId::A,
            };
            self.networks.push(networks);
        }
        Ok(())
    }

    /// A frame of `flow`, not yet numbered.
    fn frame(&self, flow: &Flow, length: u16) -> Frame {
        let class = traffic_class(flow.protocol);
        let id = flow.virtual_link.map(|link| link.id).or(flow.schedule.as_ref().map(|schedule| schedule.id));
        let both = flow.network.is_none() && class == TrafficClass::BestEffort;
        let priority = match (class, &flow.virtual_link) {
            (TrafficClass::RateConstrained, Some(link)) => link.priority,
            _ => flow.vlan.map_or(0, |tag| tag.priority),
        };
        Frame {
            destination: destination(flow, &self.addresses),
            source: flow.addresses.mac.source.unwrap_or(self.addresses[usize::from(flow.from)]),
            length,
            vlan: flow.vlan.map_or(0, |tag| tag.id),
            virtual_link: id.unwrap_or_else(|| self.headers.of(Origin::Flow(flow.id))),
            sequence: 0,
            handle: Message { flow: flow.id, sequence: 0, flags: Flags::default() }.handle(),
            priority,
            class,
            network: flow.network.unwrap_or_default(),
            marks: Marks::of_stack(stack(flow.protocol))
                .with(if both { Marks::BOTH_NETWORKS } else { Marks::none() })
                .with(if flow.vlan.is_some() { Marks::TAGGED } else { Marks::none() }),
        }
    }

    fn build_relays(&mut self, run: &Run) -> Result<(), SimError> {
        let sends = run.sends_by_flow();
        for relay in &run.relays {
            let flow = self.flow(relay.flow)?;
            let facts = &run.flows[flow];
            let is_link = facts.virtual_link.is_some() && relay.vl.is_some();
            if traffic_class(facts.protocol) != TrafficClass::BestEffort && !is_link {
                let id = relay.flow;
                return Err(SimError::plan(format!("flow {id} leads one way only and cannot be relayed")));
            }
            for fault in &relay.faults {
                if let wg_plan::FaultKind::Misdirect { to } = fault.kind {
                    self.host(to)?;
                }
            }
            let period = sends.get(&relay.flow).and_then(|sends| sends.first()).map(|send| send.period);
            self.flows[flow].relays.push(self.relays.len());
            let answers_as = relay.answers_as();
            let own = self.flow_of_id[usize::from(relay.flow)];
            let slot = &mut self.flow_of_id[usize::from(answers_as)];
            if *slot != u16::MAX && *slot != own || answers_as == FLOW_FOREIGN {
                return Err(SimError::plan(format!(
                    "a relay answers as flow {answers_as}, which is another"
                )));
            }
            *slot = own;
            self.relays.push(Relay {
                flow,
                answers_as,
                came_back: Reception::default(),
                host: self.host(relay.on)?,
                node: relay.on,
                through: relay.through,
                vl: relay.vl.map(VirtualLinkId),
                network: facts.network.unwrap_or_default(),
                core: wg_core::relay::Relay::new(relay.planted(), period.unwrap_or(Span::ZERO), run.drain),
                coming: VecDeque::new(),
                wake_ups: Stream::new(run.seed, Purpose::RelayTask, u32::from(answers_as)),
                handled: 0,
            });
        }
        Ok(())
    }

    /// Counts what background load waits for: the measured messages at every receiver, and those that come back from
    /// its relays.
    fn await_messages(&mut self, run: &Run) {
        let sends = run.sends_by_flow();
        for flow in &mut self.flows {
            let sends = sends.get(&flow.id).into_iter().flatten();
            let planned = sends.map(|send| send.count).fold(0, u32::saturating_add);
            let relays = &mut self.relays;
            let receives =
                |end: &&mut FlowEnd| !flow.relays.iter().any(|relay| relays[*relay].node == end.node);
            let mut awaited = 0;
            for end in flow.receivers.iter_mut().filter(receives) {
                end.came.planned = planned;
                awaited += 1;
            }
            for &relay in &flow.relays {
                relays[relay].came_back.planned = planned;
                awaited += 1;
            }
            self.awaiting += if planned > 0 { awaited } else { 0 };
        }
    }

    fn build_injectors(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        for (number, inject) in (0_u32..).zip(&run.injects) {
            let (host, to) = (self.host(inject.on)?, self.host(inject.to)?);
            let length = frame_length(Protocol::Udp, None, inject.payload);
            let length = u16::try_from(length).ok().filter(|length| *length <= LONGEST_FRAME);
            let (Some(length), true) = (length, inject.interval > Span::ZERO) else {
                return Err(SimError::plan("a background load has no interval or too large a payload"));
            };
            let message = Message { flow: FLOW_FOREIGN, sequence: number, flags: Flags::default() };
            let headers = self.headers.of(Origin::Load(inject.on, inject.to));
            let frame = self.udp_frame(network, [host, to], length, message);
            let frame = Frame { virtual_link: headers, ..frame };
            let planned = Schedule::of_load(run, inject, number)
                .map_err(|error| SimError::plan(format!("a background load: {error}")))?;
            let mut schedule = planned.clone();
            let due = schedule.next().map(|due| due.at);
            self.injectors.push(Injector {
                host,
                frame,
                burst: inject.burst,
                planned,
                schedule,
                due,
                pacer: Pacer::new(inject.pacing.unwrap_or_default()),
                threads: match &inject.threads {
                    None => None,
                    Some(model) => {
                        let threads = Threads::new(model, inject.interval, inject.burst, number, run.seed)?;
                        Some(Box::new(threads))
                    }
                },
                done: 0,
                arrived: 0,
                lost: BTreeMap::new(),
            });
        }
        Ok(())
    }

    fn build_logs(&mut self, network: &Network, run: &Run) -> Result<(), SimError> {
        for log in &run.remote_logs {
            let (host, to) = (self.host(log.on)?, self.host(log.to)?);
            let length = frame_length(Protocol::Udp, None, log.record.saturating_mul(log.records));
            let length = u16::try_from(length).ok().filter(|length| *length <= LONGEST_FRAME);
            let (Some(length), true) = (length, log.records > 0) else {
                return Err(SimError::plan("the frames of a log hold no record, or too many"));
            };
            let headers = self.headers.of(Origin::Load(log.on, log.to));
            let frame = self.udp_frame(network, [host, to], length, Message::LOG);
            let frame = Frame { virtual_link: headers, ..frame };
            self.hosts[host].extra_mut().log = Some(self.logs.len());
            let (due, records) = (VecDeque::new(), log.records);
            self.logs.push(RemoteLog { host, frame, records, due, logged: 0, sent: 0 });
        }
        Ok(())
    }

    /// A UDP frame from one host to another that belongs to no flow.
    fn udp_frame(&self, network: &Network, [from, to]: [usize; 2], length: u16, message: Message) -> Frame {
        Frame {
            destination: self.address(to),
            source: self.address(from),
            length,
            vlan: 0,
            virtual_link: 0,
            sequence: 0,
            handle: message.handle(),
            priority: 0,
            class: TrafficClass::BestEffort,
            network: self.network(network, from),
            marks: Marks::of_stack(stack(Protocol::Udp)),
        }
    }

    pub(super) fn build_babblers(&mut self, run: &Run) -> Result<(), SimError> {
        for incident in &run.incidents {
            match incident.kind {
                IncidentKind::Babble { flow, period, length, until } => {
                    let at = self.flow(flow)?;
                    if period <= Span::ZERO || !(SMALLEST_FRAME..=LONGEST_TAGGED_FRAME).contains(&length) {
                        return Err(SimError::plan(format!(
                            "flow {flow} babbles without a period or a length"
                        )));
                    }
                    let count =
                        run.sends.iter().filter(|send| send.flow == flow).map(|send| send.count).max();
                    // Numbers above all planned ones, so that such a frame is never taken for a message.
                    let sequence = count.unwrap_or(0);
                    let handle = Message { flow, sequence, flags: Flags::default() }.handle();
                    let frame = Frame { handle, ..self.frame(&run.flows[at], length) };
                    let (host, node) = (self.host(run.flows[at].from)?, run.flows[at].from);
                    self.babblers.push(Babbler { host, node, frame, period, until: RunTime::ZERO + until });
                }
                IncidentKind::Restart { switch, .. } => {
                    if !matches!(self.place(switch), Some(CoreIndex::Switch(_))) {
                        return Err(SimError::plan(format!("node {switch} restarts and is no switch")));
                    }
                }
                IncidentKind::ClockStep { node, .. } => {
                    if self.place(node).is_none() {
                        return Err(SimError::plan(format!(
                            "the clock of node {node} is set, which is not there"
                        )));
                    }
                }
                IncidentKind::Cut { .. } => {}
            }
        }
        Ok(())
    }

    /// The network of a host's first port.
    fn network(&self, network: &Network, host: usize) -> NetworkId {
        let first = self.hosts[host].ports.first();
        first.map_or(NetworkId::A, |port| network.links[port.channel() / 2].network)
    }

    fn address(&self, host: usize) -> MacAddress {
        self.hosts[host].address
    }

    fn flow(&self, id: FlowId) -> Result<usize, SimError> {
        let at = usize::from(self.flow_of_id[usize::from(id)]);
        let known = at < self.flows.len();
        known
            .then_some(at)
            .ok_or_else(|| SimError::plan(format!("a task uses flow {id}, which is not defined")))
    }

    fn place(&self, node: NodeIndex) -> Option<CoreIndex> {
        self.nodes.get(usize::from(node)).map(|state| state.place)
    }

    fn host(&self, node: NodeIndex) -> Result<usize, SimError> {
        match self.place(node) {
            Some(CoreIndex::Host(host)) => Ok(host as usize),
            _ => Err(SimError::plan(format!("node {node} is used as an end system, which it is not"))),
        }
    }
}
