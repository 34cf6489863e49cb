//! The simulated network, built from the plan: nodes, directions of links, tasks, all by index.

use std::collections::{BTreeMap, VecDeque};

use wg_core::end_system::{Host, HostConfig};
use wg_core::forwarding::{Forwarding, Learning};
use wg_core::frame::{Frame, Mac, Marks, NetworkId, TrafficClass};
use wg_core::line::LineRate;
use wg_core::oscillator::TrueTime;
use wg_core::port::{AlwaysOpen, EgressPort, PortConfig};
use wg_core::queue::Limit;
use wg_core::switch::{AdmitAll, Switch, SwitchConfig};
use wg_frame::time::{RunTime, Span};
use wg_plan::wire::frame_length;
use wg_plan::{FlowId, Inject, Network, NodeIndex, NodeKind, Protocol, Run, Turn};
use wg_record::FLOW_FOREIGN;

use crate::error::SimError;
use crate::models::Models;
use crate::random::{Purpose, Stream};
use crate::relay::{Faults, Held};

/// Addresses a switch learns at most, and for how long (IEEE Std 802.1Q-2022, 8.8.3).
const LEARNING: Learning = Learning { ageing: Span::from_millis(300_000), places: 8_192 };

/// A frame on its way over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    /// When the far end takes note of it.
    pub(crate) at: RunTime,
    /// When its last bit is in.
    pub(crate) complete: RunTime,
    pub(crate) frame: Frame,
}

/// One direction of a link. Its delay is constant, so frames come out in the order they went in.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) to: Place,
    /// Port of the far end, by index.
    pub(crate) to_port: usize,
    pub(crate) line: LineRate,
    /// Propagation.
    pub(crate) delay: Span,
    /// From the driver to the wire, where a host sends.
    pub(crate) lead: Span,
    pub(crate) in_flight: VecDeque<Flying>,
}

/// Where a node is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Host(usize),
    Switch(usize),
}

#[derive(Debug)]
pub(crate) struct HostNode {
    pub(crate) node: NodeIndex,
    pub(crate) core: Host<EgressPort<AlwaysOpen>>,
    pub(crate) channel: usize,
    pub(crate) wake_ups: Stream,
    /// By protocol.
    pub(crate) access: [AccessFigures; 2],
    pub(crate) strays: Strays,
    pub(crate) records: u64,
}

#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub(crate) node: NodeIndex,
    pub(crate) core: Switch<EgressPort<AlwaysOpen>, AdmitAll>,
    /// By port.
    pub(crate) ports: Vec<SwitchPort>,
}

#[derive(Debug)]
pub(crate) struct SwitchPort {
    pub(crate) number: u16,
    pub(crate) channel: usize,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessFigures {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) refused: u64,
    pub(crate) overrun: u64,
}

/// What came to an end system that no task there expected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strays {
    pub(crate) damaged: u64,
    pub(crate) elsewhere: u64,
}

/// What an end of a flow received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reception {
    pub(crate) received: u64,
    pub(crate) damaged: u64,
    pub(crate) elsewhere: u64,
    pub(crate) gaps: u64,
    pub(crate) repeats: u64,
    next: [u32; 2],
}

impl Reception {
    /// Takes the number of an intact message; warm-up messages are numbered on their own.
    pub(crate) fn follow(&mut self, sequence: u32, warm_up: bool) {
        self.received += 1;
        let next = &mut self.next[usize::from(warm_up)];
        match sequence.cmp(next) {
            std::cmp::Ordering::Greater => self.gaps += 1,
            std::cmp::Ordering::Less => self.repeats += 1,
            std::cmp::Ordering::Equal => {}
        }
        if sequence >= *next {
            *next = sequence.saturating_add(1);
        }
    }
}

#[derive(Debug)]
pub(crate) struct FlowState {
    pub(crate) id: FlowId,
    pub(crate) protocol: Protocol,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) relay: Option<usize>,
    pub(crate) planned: u64,
    /// What came back to its sender.
    pub(crate) at_from: Reception,
    /// What came to its destination.
    pub(crate) at_to: Reception,
}

#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) flow: usize,
    pub(crate) host: usize,
    /// All but number and marks.
    pub(crate) frame: Frame,
    pub(crate) first_measured: RunTime,
    pub(crate) period: Span,
    pub(crate) warm_up_count: u32,
    pub(crate) count: u32,
    /// Messages sent so far, both phases.
    pub(crate) next: u64,
    pub(crate) wake_ups: Stream,
    pub(crate) done: u64,
    pub(crate) late: u64,
}

impl Sender {
    /// Messages in all.
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.warm_up_count) + u64::from(self.count)
    }

    /// Intended send, number and phase of message `index`, counted over both phases.
    pub(crate) fn at(&self, index: u64) -> (RunTime, u32, bool) {
        let warm_up_count = u64::from(self.warm_up_count);
        let from_first = index as i64 - warm_up_count as i64;
        let due = self.first_measured + Span::from_picos(self.period.as_picos() * from_first);
        let warm_up = index < warm_up_count;
        (due, (if warm_up { index } else { index - warm_up_count }) as u32, warm_up)
    }
}

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) flow: usize,
    pub(crate) host: usize,
    pub(crate) node: NodeIndex,
    pub(crate) through: Turn,
    pub(crate) faults: Faults,
    pub(crate) held: Held<Frame>,
    /// Messages on their way to the turn; ascending.
    pub(crate) coming: VecDeque<(RunTime, Frame)>,
    pub(crate) wake_ups: Stream,
    pub(crate) handled: u64,
}

#[derive(Debug)]
pub(crate) struct Injector {
    pub(crate) host: usize,
    pub(crate) frame: Frame,
    pub(crate) burst: u32,
    pub(crate) interval: Span,
    pub(crate) due: RunTime,
    pub(crate) planned: u64,
    pub(crate) done: u64,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) places: Vec<Place>,
    pub(crate) addresses: Vec<Mac>,
    pub(crate) hosts: Vec<HostNode>,
    pub(crate) switches: Vec<SwitchNode>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) flows: Vec<FlowState>,
    /// Place in `flows` by flow number; `u16::MAX`: none.
    pub(crate) flow_of_id: Box<[u16]>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) relays: Vec<Relay>,
    pub(crate) injectors: Vec<Injector>,
    /// Protocols of the run, ascending.
    pub(crate) protocols: Vec<Protocol>,
    /// The last intended send.
    pub(crate) last_send: RunTime,
    /// When everything stops.
    pub(crate) end: RunTime,
}

/// Marks of a frame as it leaves its sender.
pub(crate) fn phase(warm_up: bool) -> Marks {
    if warm_up { Marks::WARM_UP } else { Marks::none() }
}

/// Position of a protocol's figures.
pub(crate) fn access(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Udp | Protocol::Be | Protocol::Rc => 0,
        Protocol::Raw | Protocol::Tt => 1,
    }
}

impl World {
    pub(crate) fn build(network: &Network, run: &Run, models: &Models) -> Result<Self, SimError> {
        let mut world = Self {
            places: Vec::new(),
            addresses: network.nodes.iter().map(|node| Mac(node.mac)).collect(),
            hosts: Vec::new(),
            switches: Vec::new(),
            channels: Vec::new(),
            flows: Vec::new(),
            flow_of_id: vec![u16::MAX; usize::from(u16::MAX) + 1].into_boxed_slice(),
            senders: Vec::new(),
            relays: Vec::new(),
            injectors: Vec::new(),
            protocols: run.flows.iter().map(|flow| flow.protocol).collect(),
            last_send: RunTime::ZERO + run.warm_up + run.duration,
            end: RunTime::ZERO,
        };
        world.protocols.sort_unstable();
        world.protocols.dedup();
        world.build_network(network, run, models)?;
        world.build_tasks(run)?;
        world.end = world.last_send + run.drain;
        Ok(world)
    }

    fn build_network(&mut self, network: &Network, run: &Run, models: &Models) -> Result<(), SimError> {
        let ports = ports(network)?;
        let (mut hosts, mut switches) = (0, 0);
        for node in &network.nodes {
            let counter = if node.is_end_system() { &mut hosts } else { &mut switches };
            let at = *counter;
            *counter += 1;
            self.places.push(if node.is_end_system() { Place::Host(at) } else { Place::Switch(at) });
        }
        for (number, link) in network.links.iter().enumerate() {
            let rate = run.link_rate_bps.unwrap_or(link.rate_bps);
            let line = LineRate::new(rate)
                .ok_or_else(|| SimError::plan(format!("link {number} has a rate of {rate} bit/s")))?;
            for side in [0, 1] {
                let (from, to) = (link.ends[side], link.ends[1 - side]);
                let is_host = matches!(self.places[usize::from(from.node)], Place::Host(_));
                self.channels.push(Channel {
                    to: self.places[usize::from(to.node)],
                    to_port: position(&ports[usize::from(to.node)], to.port),
                    line,
                    delay: link.delay,
                    lead: if is_host { models.host.interface_delay } else { Span::ZERO },
                    in_flight: VecDeque::new(),
                });
            }
        }
        let next_ports = next_ports(network, &ports);
        for (index, node) in (0..).zip(&network.nodes) {
            let own = &ports[usize::from(index)];
            match &node.kind {
                NodeKind::EndSystem { .. } => {
                    let [(_, channel)] = own[..] else {
                        let links = own.len();
                        let problem = format!("end system '{}' has {links} links, not 1", node.name);
                        return Err(SimError::plan(problem));
                    };
                    self.add_host(index, channel, run, models);
                }
                NodeKind::Switch(switch) => {
                    let bytes = switch.port_buffer.bytes;
                    self.add_switch(index, own, bytes, &next_ports[usize::from(index)], models);
                }
                NodeKind::Hub { .. } => return Err(SimError::plan(format!("'{}' is a hub", node.name))),
            }
        }
        Ok(())
    }

    fn add_host(&mut self, node: NodeIndex, channel: usize, run: &Run, models: &Models) {
        let model = &models.host;
        let line = self.channels[channel].line;
        let config = HostConfig {
            transmit: model.transmit,
            receive: model.receive,
            backlog: model.backlog,
            ring: model.ring,
            interrupts: model.interrupts,
            interrupt_latency: model.interrupt_latency,
        };
        // One queue: the host's own queueing discipline knows no priorities, as on the live bench.
        let port = PortConfig::first_in_first_out(line, Limit::bytes(model.egress_bytes));
        let ports = vec![(NetworkId::A, EgressPort::new(port, AlwaysOpen))];
        self.hosts.push(HostNode {
            node,
            core: Host::new(config, ports, None, TrueTime),
            channel,
            wake_ups: Stream::new(run.seed, Purpose::ReceivingThread, u32::from(node)),
            access: Default::default(),
            strays: Strays::default(),
            records: 0,
        });
    }

    fn add_switch(
        &mut self,
        node: NodeIndex,
        own: &[(u16, usize)],
        buffer_bytes: u64,
        next_ports: &[(NodeIndex, usize)],
        models: &Models,
    ) {
        let mut forwarding = Forwarding::new(own.len(), Some(LEARNING));
        // Fixed entries, as on the live bench: no flooding among the measured frames.
        for &(station, port) in next_ports {
            forwarding.set_station(0, self.addresses[usize::from(station)], port);
        }
        let limit = Limit::bytes(buffer_bytes);
        let config = SwitchConfig {
            processing_delay: models.switch.processing_delay,
            mode: models.switch.mode,
            shared: Limit::bytes(u64::MAX),
        };
        let egress = own.iter().map(|&(_, channel)| {
            EgressPort::new(PortConfig::first_in_first_out(self.channels[channel].line, limit), AlwaysOpen)
        });
        let egress = egress.collect();
        let ports = own.iter().map(|&(number, channel)| SwitchPort {
            number,
            channel,
            frames: 0,
            bytes: 0,
            dropped: BTreeMap::new(),
        });
        self.switches.push(SwitchNode {
            node,
            ports: ports.collect(),
            core: Switch::new(config, egress, forwarding, AdmitAll, TrueTime),
        });
    }

    fn build_tasks(&mut self, run: &Run) -> Result<(), SimError> {
        for (at, flow) in (0_u16..).zip(&run.flows) {
            let slot = &mut self.flow_of_id[usize::from(flow.id)];
            if *slot != u16::MAX || flow.id == FLOW_FOREIGN {
                return Err(SimError::plan(format!("flow {} is defined twice or reserved", flow.id)));
            }
            *slot = at;
            self.flows.push(FlowState {
                id: flow.id,
                protocol: flow.protocol,
                from: flow.from,
                to: flow.to,
                relay: None,
                planned: 0,
                at_from: Reception::default(),
                at_to: Reception::default(),
            });
        }
        let mut last = None;
        for send in &run.sends {
            let flow = self.flow(send.flow)?;
            let facts = &run.flows[flow];
            let (host, to) = (self.host(facts.from)?, self.host(facts.to)?);
            let length = frame_length(facts.protocol, facts.vlan, send.payload);
            let length = u16::try_from(length).ok().filter(|length| *length <= 1_522).ok_or_else(|| {
                SimError::plan(format!("a message of flow {} does not fit into one frame", facts.id))
            })?;
            if send.period <= Span::ZERO {
                return Err(SimError::plan(format!("the period of flow {} is not positive", facts.id)));
            }
            let first_measured = run.warm_up.checked_add(send.offset);
            let longest = send.period.checked_mul(i64::from(send.count.max(send.warm_up_count)));
            let first_measured = match (first_measured, longest) {
                (Some(first), Some(longest)) if first.checked_add(longest).is_some() => first,
                _ => return Err(SimError::plan(format!("flow {} is sent for more than 106 days", facts.id))),
            };
            let sender = Sender {
                flow,
                host,
                frame: Frame {
                    destination: self.addresses[usize::from(self.hosts[to].node)],
                    source: self.addresses[usize::from(self.hosts[host].node)],
                    length,
                    vlan: facts.vlan.map_or(0, |tag| tag.id),
                    flow: facts.id,
                    virtual_link: 0,
                    sequence: 0,
                    priority: facts.vlan.map_or(0, |tag| tag.priority),
                    class: TrafficClass::BestEffort,
                    network: NetworkId::A,
                    virtual_link_sequence: 0,
                    marks: Marks::none(),
                },
                first_measured: RunTime::ZERO + first_measured,
                period: send.period,
                warm_up_count: send.warm_up_count,
                count: send.count,
                next: 0,
                wake_ups: Stream::new(run.seed, Purpose::SendingThread, u32::from(facts.id)),
                done: 0,
                late: 0,
            };
            self.flows[flow].planned = sender.total();
            if let Some(index) = sender.total().checked_sub(1) {
                last = last.max(Some(sender.at(index).0));
            }
            self.senders.push(sender);
        }
        self.last_send = last.unwrap_or(self.last_send);
        self.build_relays(run)?;
        self.build_injectors(run)
    }

    fn build_relays(&mut self, run: &Run) -> Result<(), SimError> {
        for relay in &run.relays {
            let flow = self.flow(relay.flow)?;
            for fault in &relay.faults {
                if let wg_plan::FaultKind::Misdirect { to } = fault.kind {
                    self.host(to)?;
                }
            }
            let period = run.sends.iter().find(|send| send.flow == relay.flow).map(|send| send.period);
            self.flows[flow].relay = Some(self.relays.len());
            self.relays.push(Relay {
                flow,
                host: self.host(relay.on)?,
                node: relay.on,
                through: relay.through,
                faults: Faults::new(&relay.faults),
                held: Held::new(period.unwrap_or(Span::ZERO), run.drain),
                coming: VecDeque::new(),
                wake_ups: Stream::new(run.seed, Purpose::RelayTask, u32::from(relay.flow)),
                handled: 0,
            });
        }
        Ok(())
    }

    fn build_injectors(&mut self, run: &Run) -> Result<(), SimError> {
        for (number, inject) in (0..).zip(&run.injects) {
            let (host, to) = (self.host(inject.on)?, self.host(inject.to)?);
            let length = frame_length(Protocol::Udp, None, inject.payload);
            let length = u16::try_from(length).ok().filter(|length| *length <= 1_518);
            let (Some(length), true) = (length, inject.interval > Span::ZERO) else {
                return Err(SimError::plan("a background load has no interval or too large a payload"));
            };
            let frame = Frame {
                destination: self.addresses[usize::from(self.hosts[to].node)],
                source: self.addresses[usize::from(self.hosts[host].node)],
                length,
                vlan: 0,
                flow: FLOW_FOREIGN,
                virtual_link: 0,
                // Which injector made it.
                sequence: number,
                priority: 0,
                class: TrafficClass::BestEffort,
                network: NetworkId::A,
                virtual_link_sequence: 0,
                marks: Marks::none(),
            };
            self.injectors.push(Injector {
                host,
                frame,
                burst: inject.burst,
                interval: inject.interval,
                due: RunTime::ZERO,
                planned: planned(inject, self.last_send),
                done: 0,
            });
        }
        Ok(())
    }

    fn flow(&self, id: FlowId) -> Result<usize, SimError> {
        let at = usize::from(self.flow_of_id[usize::from(id)]);
        let known = at < self.flows.len();
        known
            .then_some(at)
            .ok_or_else(|| SimError::plan(format!("a task uses flow {id}, which is not defined")))
    }

    fn host(&self, node: NodeIndex) -> Result<usize, SimError> {
        match self.places.get(usize::from(node)) {
            Some(Place::Host(host)) => Ok(*host),
            _ => Err(SimError::plan(format!("node {node} is used as an end system, which it is not"))),
        }
    }
}

/// Frames the schedule of `inject` asks for before `until`.
fn planned(inject: &Inject, until: RunTime) -> u64 {
    let until = until.as_picos().max(0).unsigned_abs();
    until.div_ceil(inject.interval.as_picos().unsigned_abs()) * u64::from(inject.burst)
}

/// By node: its ports, ascending, each with the channel that leads out of it.
fn ports(network: &Network) -> Result<Vec<Vec<(u16, usize)>>, SimError> {
    let mut ports = vec![Vec::new(); network.nodes.len()];
    for (number, link) in network.links.iter().enumerate() {
        for side in [0, 1] {
            let end = link.ends[side];
            ports
                .get_mut(usize::from(end.node))
                .ok_or_else(|| {
                    SimError::plan(format!("link {number} ends at node {}, which is not there", end.node))
                })?
                .push((end.port, 2 * number + side));
        }
    }
    for own in &mut ports {
        own.sort_unstable();
        if own.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(SimError::plan("two links end at one port"));
        }
    }
    Ok(ports)
}

fn position(ports: &[(u16, usize)], number: u16) -> usize {
    ports.partition_point(|(port, _)| *port < number)
}

/// By node: for every end system the port on the shortest way to it; among equals, the first link of the plan.
fn next_ports(network: &Network, ports: &[Vec<(u16, usize)>]) -> Vec<Vec<(NodeIndex, usize)>> {
    let mut next = vec![Vec::new(); network.nodes.len()];
    let mut neighbours = vec![Vec::new(); network.nodes.len()];
    for link in &network.links {
        let [a, b] = link.ends;
        neighbours[usize::from(a.node)].push(b);
        neighbours[usize::from(b.node)].push(a);
    }
    let is_host = |node: NodeIndex| network.nodes[usize::from(node)].is_end_system();
    for target in (0..).take(network.nodes.len()).filter(|node| is_host(*node)) {
        let mut seen = vec![false; network.nodes.len()];
        seen[usize::from(target)] = true;
        let mut front = VecDeque::from([target]);
        while let Some(at) = front.pop_front() {
            if at != target && is_host(at) {
                continue;
            }
            for end in &neighbours[usize::from(at)] {
                let node = usize::from(end.node);
                if !seen[node] {
                    seen[node] = true;
                    next[node].push((target, position(&ports[node], end.port)));
                    front.push_back(end.node);
                }
            }
        }
    }
    next
}
