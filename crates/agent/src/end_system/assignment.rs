//! Tasks of one end system in one run, with every reference of the plan resolved.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use wg_core::pacing::Pacing;
use wg_frame::arinc664::{SEQUENCE_LEN, VirtualLinkId};
use wg_frame::ethernet::{self, FCS_LEN};
use wg_frame::layout::{DATAGRAM_HEADER_LEN, Envelope};
use wg_frame::time::{RunTime, Span};
use wg_net::{MacRange, Target};
use wg_plan::host_tsn::HostTsn;
use wg_plan::schedule::Schedule;
use wg_plan::wire::{frame_length, payload_range, sized_as};
use wg_plan::{FaultKind, Flow, FlowId, Network, NetworkId, NodeIndex, Protocol, Relay, Run, Send, Turn};

use crate::end_system::addressing::{AccessKind, Address, FrameHeaders, Station};
pub use crate::end_system::parts::{FlowFacts, FlowRole, LoadTask, RelayTask, SendTask};

pub use wg_plan::wire::{DISCARD_PORT, PROBE_PORT};
/// EtherType of raw messages: IEEE Std 802 local experimental EtherType 1.
pub const RAW_ETHER_TYPE: u16 = 0x88B5;

/// Reason why this agent cannot execute a plan, an error of the plan or its sender.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AssignmentError {
    /// A node index beyond the list.
    #[error("{what} names node {node}, but the plan has only {nodes} nodes")]
    UnknownNode {
        /// Task or flow with the reference.
        what: String,
        /// The index.
        node: NodeIndex,
        /// Number of nodes.
        nodes: usize,
    },
    /// Task of an unknown flow.
    #[error("a task of the plan uses flow {flow}, which the plan does not define")]
    UnknownFlow {
        /// Flow number.
        flow: FlowId,
    },
    /// Two flows with the same number.
    #[error("the plan defines flow {flow} twice")]
    TwiceFlow {
        /// Flow number.
        flow: FlowId,
    },
    /// Traffic that needs an interface card, and there is none.
    #[error(
        "flow {flow} {what}, which needs an interface card that a host by itself does not have; run the test with \
         --bench netns, where the network plays one, or with --bench sim"
    )]
    NoCard {
        /// Flow number.
        flow: FlowId,
        /// Function that needs a card.
        what: &'static str,
    },
    /// Critical traffic without an identifier.
    #[error("flow {flow} is critical traffic, but the plan gives it {what}")]
    Unnamed {
        /// Flow number.
        flow: FlowId,
        /// Missing identifier.
        what: &'static str,
    },
    /// Answer number of a relay that is also the number of a flow.
    #[error("a relay of flow {flow} answers as flow {answers_as}, which is another one")]
    AnswersAs {
        /// Flow number.
        flow: FlowId,
        /// Answer number.
        answers_as: FlowId,
    },
    /// Payload that does not fit in a frame.
    #[error("flow {flow} has a payload of {payload} B; it must be from {least} B to {most} B")]
    Payload {
        /// Flow number.
        flow: FlowId,
        /// Payload, bytes.
        payload: u32,
        /// Minimum, bytes.
        least: u32,
        /// Maximum, bytes.
        most: u32,
    },
    /// Schedule that no sender can keep.
    #[error("the schedule of {what} cannot be kept: {problem}")]
    Schedule {
        /// Task with the schedule.
        what: String,
        /// Problem.
        problem: String,
    },
    /// Task with a period or interval of zero.
    #[error("{what} has a period of {period}; it must be longer than 0")]
    Period {
        /// Task with the period.
        what: String,
        /// Period or interval.
        period: Span,
    },
}

/// Tasks, flows and settings of one end system in a run.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Name of this end system.
    pub name: String,
    /// Index in the plan.
    pub node: NodeIndex,
    /// Seed of the run.
    pub seed: u64,
    /// Addresses of all nodes, by index.
    pub addresses: Vec<Address>,
    /// All flows of the run.
    pub flows: Vec<FlowFacts>,
    /// Position in `flows` by flow number; `u16::MAX`: no such flow.
    by_id: Vec<u16>,
    /// Sender tasks here.
    pub sends: Vec<SendTask>,
    /// Due times of messages that end here, by flow position; only flows whose senders keep to the plan.
    pub due: Vec<(u16, Schedule)>,
    /// Flows with a receiver task here.
    pub receives: Vec<u16>,
    /// Relay tasks here.
    pub relays: Vec<RelayTask>,
    /// Injector tasks here.
    pub loads: Vec<Arc<LoadTask>>,
    /// Injector tasks of other end systems that send to this one.
    pub loads_to_here: Vec<Arc<LoadTask>>,
    /// Destination of this host's log over the network, records per frame, and bytes per record.
    pub remote_log: Option<(SocketAddrV4, u32, u32)>,
    /// Bytes kept of each captured frame, if there is a capture task here.
    pub capture_snap: Option<u32>,
    /// Port of this end system on the network under test, from 1, and the rate of its link.
    pub port: (u16, Option<u64>),
    /// Kinds of access points. UDP and raw ones are opened if the run uses them anywhere, so that unplanned messages
    /// are seen too; the others only if messages leave or arrive here by them.
    pub accesses: Vec<AccessKind>,
    /// End of the measured part: the last intended send of any sender, or the planned duration without one.
    pub last_send: RunTime,
    /// End of the measured part as the test declares it.
    measured_until: RunTime,
    /// Wait for frames in transit after the measured part.
    pub drain: Span,
    /// TSN settings of this host's interface.
    pub tsn: Option<Box<HostTsn>>,
}

/// Time for which messages may queue while a task has no core.
const HALF_A_SECOND: Span = Span::from_millis(500);
/// Shortest mean period, ns, that a servicing thread keeps beside its other duties.
const STREAM_PERIOD_NS: i64 = 50_000;

/// True if a thread of its own sends the flow: the test requests a function that only such a thread has, or the message
/// rate is too high for a servicing thread, whose spinning is limited.
fn is_stream(send: &Send, run: &Run) -> bool {
    let flow = run.flows.iter().find(|flow| flow.id == send.flow);
    let own = flow.is_some_and(|flow| !flow.addresses.is_none());
    let relayed = run.relays.iter().any(|relay| relay.flow == send.flow);
    let each_ns = match send.pattern {
        wg_plan::Pattern::Bursts { size, .. } => send.period.as_nanos_floor() / i64::from(size.max(1)),
        wg_plan::Pattern::Ramp { to, .. } => to.min(send.period).as_nanos_floor(),
        _ => send.period.as_nanos_floor(),
    };
    let fast = each_ns < STREAM_PERIOD_NS && send.fill == wg_plan::Fill::Sequential;
    // Raw messages from a host to itself use the loopback, which streams do not support.
    let to_itself = flow.is_some_and(|flow| flow.is_loopback() && flow.protocol == Protocol::Raw);
    !relayed && !to_itself && (send.is_stream() || fast || own)
}

/// Error if the run uses functions of an interface card and there is none.
fn refuse_without_card(run: &Run) -> Result<(), AssignmentError> {
    for flow in &run.flows {
        let what = match flow.protocol {
            Protocol::Rc => "is rate-constrained",
            Protocol::Tt => "is time-triggered",
            _ if flow.frer.is_some() => "is copied over several ways",
            _ if flow.network != Some(NetworkId::A) => "uses network B",
            _ => continue,
        };
        return Err(AssignmentError::NoCard { flow: flow.id, what });
    }
    Ok(())
}

/// True if filters of the hosts' interfaces tag the frames of this flow, relay hosts included.
fn is_tagged_by_hosts(network: &Network, run: &Run, flow: &Flow, card: bool) -> bool {
    let has_tsn = |node: NodeIndex| network.nodes.get(usize::from(node)).is_some_and(|one| one.tsn.is_some());
    let mut back = run.relays.iter().filter(|relay| relay.flow == flow.id).map(|relay| relay.on);
    !card && has_tsn(flow.from) && back.all(has_tsn)
}

impl Assignment {
    /// Assignment of end system `node` in `run`; `card`: an interface card, simulated by the network, is at the other
    /// end of its link.
    ///
    /// # Errors
    /// The plan contradicts itself or asks for what an agent cannot do.
    #[expect(clippy::too_many_lines, reason = "one pass over what a node has to do")]
    pub fn new(network: &Network, run: &Run, node: NodeIndex, card: bool) -> Result<Self, AssignmentError> {
        let nodes = network.nodes.len();
        let this = network.nodes.get(usize::from(node)).ok_or_else(|| AssignmentError::UnknownNode {
            what: "the agent".into(),
            node,
            nodes,
        })?;
        if !card {
            refuse_without_card(run)?;
        }
        let addresses =
            network.nodes.iter().map(|n| Address { mac: n.mac.0, ipv4: Ipv4Addr::from(n.ipv4) }).collect();
        let mut assignment = Self {
            name: this.name.clone(),
            node,
            seed: run.seed,
            addresses,
            flows: Vec::new(),
            by_id: vec![u16::MAX; usize::from(u16::MAX) + 1],
            sends: Vec::new(),
            due: Vec::new(),
            receives: Vec::new(),
            relays: Vec::new(),
            loads: Vec::new(),
            loads_to_here: Vec::new(),
            remote_log: None,
            capture_snap: run.captures.iter().filter(|task| task.on == node).map(|task| task.snap).max(),
            port: port_of(network, run, node),
            accesses: Vec::new(),
            last_send: RunTime::ZERO + run.warm_up + run.duration,
            measured_until: RunTime::ZERO + run.warm_up + run.duration,
            drain: run.drain,
            tsn: this.tsn.clone().filter(|_| !card),
        };
        for flow in &run.flows {
            let access = AccessKind::of(flow, is_tagged_by_hosts(network, run, flow, card));
            assignment.add_flow(flow, access)?;
        }
        assignment.add_sends(run)?;
        for receive in &run.receives {
            let flow = assignment.position(receive.flow)?;
            if receive.on == node {
                assignment.flows[usize::from(flow)].role = FlowRole::Receiver;
                assignment.receives.push(flow);
            }
        }
        for relay in &run.relays {
            assignment.add_relay(relay)?;
        }
        assignment.accesses = assignment.accesses_here(run);
        if let Some(log) = run.remote_logs.iter().find(|log| log.on == node) {
            assignment.check_node(log.to, "a remote log")?;
            let to = assignment.addresses[usize::from(log.to)].ipv4;
            assignment.remote_log = Some((SocketAddrV4::new(to, DISCARD_PORT), log.records, log.record));
        }
        for (number, inject) in (0..).zip(&run.injects) {
            assignment.check_node(inject.to, "a background load")?;
            if inject.interval <= Span::ZERO {
                let what = "a background load".into();
                return Err(AssignmentError::Period { what, period: inject.interval });
            }
            let schedule = Schedule::of_load(run, inject, number).map_err(|e| AssignmentError::Schedule {
                what: "a background load".into(),
                problem: e.to_string(),
            })?;
            let task = Arc::new(LoadTask { number, inject: inject.clone(), schedule });
            if inject.on == node {
                assignment.loads.push(Arc::clone(&task));
            }
            if inject.to == node {
                assignment.loads_to_here.push(task);
            }
        }
        Ok(assignment)
    }

    /// Access points of this end system.
    fn accesses_here(&self, run: &Run) -> Vec<AccessKind> {
        let misdirected_here = |flow: FlowId| {
            let faults = run.relays.iter().filter(|relay| relay.flow == flow).flat_map(|relay| &relay.faults);
            faults.map(|fault| fault.kind).any(|kind| kind == FaultKind::Misdirect { to: self.node })
        };
        let is_here = |facts: &&FlowFacts| {
            matches!(facts.access, AccessKind::Udp | AccessKind::Raw)
                || facts.from == self.node
                || facts.receivers.contains(&self.node)
                || misdirected_here(facts.id)
        };
        let kinds: BTreeSet<AccessKind> = self.flows.iter().filter(is_here).map(|f| f.access).collect();
        kinds.into_iter().collect()
    }

    fn add_flow(&mut self, flow: &Flow, access: AccessKind) -> Result<(), AssignmentError> {
        let what = format!("flow {}", flow.id);
        self.check_node(flow.from, &what)?;
        for receiver in flow.receivers() {
            self.check_node(receiver, &what)?;
        }
        let unnamed = |what| AssignmentError::Unnamed { flow: flow.id, what };
        match flow.protocol {
            Protocol::Rc if flow.virtual_link.is_none() => return Err(unnamed("no virtual link")),
            Protocol::Tt if flow.schedule.is_none() => return Err(unnamed("no schedule")),
            _ => {}
        }
        let slot = &mut self.by_id[usize::from(flow.id)];
        if *slot != u16::MAX {
            return Err(AssignmentError::TwiceFlow { flow: flow.id });
        }
        *slot = u16::try_from(self.flows.len()).unwrap_or(u16::MAX);
        self.flows.push(FlowFacts {
            id: flow.id,
            protocol: flow.protocol,
            from: flow.from,
            receivers: flow.receivers().collect(),
            payload: 0,
            length: 0,
            period_ns: 0,
            late_after_ns: 0,
            in_half_a_second: 0,
            headers: FrameHeaders::new(flow, access),
            access,
            vlan_tci: flow.vlan.map(|tag| u16::from(tag.priority & 7) << 13 | tag.id & 0x0FFF),
            planned: 0,
            relayed: false,
            links_back: Vec::new(),
            answers: None,
            number_within: flow.virtual_link.is_some_and(|link| link.number_within),
            is_loopback: flow.is_loopback(),
            exchange: flow.exchange,
            role: FlowRole::Unexpected,
        });
        Ok(())
    }

    fn add_sends(&mut self, run: &Run) -> Result<(), AssignmentError> {
        let mut last = None;
        for send in &run.sends {
            let flow = self.position(send.flow)?;
            let facts = &mut self.flows[usize::from(flow)];
            if send.period <= Span::ZERO {
                let what = format!("the sender of flow {}", send.flow);
                return Err(AssignmentError::Period { what, period: send.period });
            }
            let sized = sized_as(facts.protocol, facts.number_within);
            let (least, most) = payload_range(sized);
            if !(least..=most).contains(&send.payload) {
                let (flow, payload) = (send.flow, send.payload);
                return Err(AssignmentError::Payload { flow, payload, least, most });
            }
            let vlan = run.flows.get(usize::from(flow)).and_then(|flow| flow.vlan);
            facts.length = short(frame_length(sized, vlan, send.payload));
            facts.payload = message_length(facts.protocol, facts.length, short(send.payload));
            facts.period_ns = send.period.as_nanos_floor().max(1);
            facts.late_after_ns = send.late_after().as_nanos_floor();
            facts.in_half_a_second = match &send.replay {
                // Wherever a loop is when the half second begins, it ends within two of them.
                Some(replay) => replay.densest(HALF_A_SECOND).saturating_mul(2),
                None => (HALF_A_SECOND.as_nanos_floor() / facts.period_ns).unsigned_abs(),
            };
            let schedule = Schedule::new(run, send, facts.length).map_err(|e| AssignmentError::Schedule {
                what: format!("flow {}", send.flow),
                problem: e.to_string(),
            })?;
            last = last.max(schedule.last_due());
            facts.planned = schedule.total();
            if facts.from == self.node {
                let stream = is_stream(send, run);
                self.sends.push(SendTask { send: send.clone(), flow, schedule, stream });
            } else if facts.receivers.contains(&self.node) && send.pacing.unwrap_or_default() == Pacing::Rate
            {
                self.due.push((flow, schedule));
            }
        }
        if let Some(last) = last {
            self.last_send = last;
        }
        Ok(())
    }

    fn add_relay(&mut self, relay: &Relay) -> Result<(), AssignmentError> {
        let flow = self.position(relay.flow)?;
        for fault in &relay.faults {
            if let wg_plan::FaultKind::Misdirect { to } = fault.kind {
                self.check_node(to, &format!("the relay of flow {}", relay.flow))?;
            }
        }
        if let Some(answers_as) = relay.back {
            self.add_answers(relay, flow, answers_as)?;
        }
        let facts = &mut self.flows[usize::from(flow)];
        facts.relayed = true;
        facts.links_back.extend(relay.vl.map(VirtualLinkId));
        if facts.from == self.node && relay.back.is_none() {
            facts.role = FlowRole::RoundTripSender;
        }
        if relay.on == self.node {
            let index = self.relays.len();
            facts.role = match relay.through {
                Turn::Servicing => FlowRole::Relay(index),
                Turn::Task => FlowRole::RelayInTask(index),
            };
            self.relays.push(RelayTask { relay: relay.clone(), flow });
        }
        Ok(())
    }

    /// Adds answers with their own flow number, which distinguishes them from those of other relays.
    fn add_answers(&mut self, relay: &Relay, flow: u16, answers_as: FlowId) -> Result<(), AssignmentError> {
        let slot = &mut self.by_id[usize::from(answers_as)];
        if *slot != u16::MAX {
            return Err(AssignmentError::AnswersAs { flow: relay.flow, answers_as });
        }
        *slot = u16::try_from(self.flows.len()).unwrap_or(u16::MAX);
        let facts = &self.flows[usize::from(flow)];
        let is_sender = facts.from == self.node;
        let role = if is_sender { FlowRole::RoundTripSender } else { FlowRole::Unexpected };
        let answers = FlowFacts { id: answers_as, relayed: true, answers: Some(flow), role, ..facts.clone() };
        self.flows.push(answers);
        Ok(())
    }

    fn check_node(&self, node: NodeIndex, what: &str) -> Result<(), AssignmentError> {
        if usize::from(node) < self.addresses.len() {
            return Ok(());
        }
        Err(AssignmentError::UnknownNode { what: what.into(), node, nodes: self.addresses.len() })
    }

    fn position(&self, flow: FlowId) -> Result<u16, AssignmentError> {
        self.find(flow).ok_or(AssignmentError::UnknownFlow { flow })
    }

    /// End of background load: the end of the measured part plus half of the drain, so that the last messages still
    /// meet load and the last load frames still arrive.
    pub fn load_until(&self) -> RunTime {
        let half = Span::from_picos(self.drain.as_picos() / 2);
        (self.measured_until.max(self.last_send) + half).min(self.last_send + self.drain)
    }

    /// Position of a flow number in the flow table.
    pub fn find(&self, flow: FlowId) -> Option<u16> {
        Some(self.by_id[usize::from(flow)]).filter(|at| *at != u16::MAX)
    }

    /// Position and facts of a flow number.
    pub fn flow(&self, flow: FlowId) -> Option<(u16, &FlowFacts)> {
        let at = self.find(flow)?;
        self.flows.get(usize::from(at)).map(|facts| (at, facts))
    }

    /// Headers of message `sequence` of a flow from its sender.
    pub fn outward(&self, facts: &FlowFacts, sequence: u32) -> Envelope {
        facts.headers.outward(self.station(facts.from), self.first_address(facts), sequence)
    }

    /// Headers of a message that this end system returns to `to`, on the virtual link `link` if given.
    pub fn returned(&self, facts: &FlowFacts, to: NodeIndex, link: Option<VirtualLinkId>) -> Envelope {
        facts.headers.returned(self.station(self.node), self.addresses[usize::from(to)], link)
    }

    /// Destination addresses of a flow's messages that arrive here: as receiver, as sender of relayed messages, or
    /// misrouted.
    pub fn macs_here(&self, facts: &FlowFacts) -> Vec<MacRange> {
        let mut macs = Vec::new();
        if facts.receivers.contains(&self.node) {
            macs.push(facts.headers.macs(self.station(facts.from), self.first_address(facts)));
        }
        if facts.from == self.node {
            macs.extend(facts.links_back.iter().map(|link| MacRange::from(link.destination().0)));
        }
        macs
    }

    /// Matches for a flow's datagrams that arrive here, in the same cases.
    pub fn targets_here(&self, facts: &FlowFacts) -> Vec<Target> {
        let own = self.address();
        let mut targets = Vec::new();
        if facts.receivers.contains(&self.node) {
            targets.push(facts.headers.target(self.station(facts.from), self.first_address(facts)));
        }
        if facts.relayed {
            targets.push(Target { macs: own.mac.into(), at: own.probes() });
        }
        targets
    }

    fn station(&self, node: NodeIndex) -> Station {
        Station { node, address: self.addresses[usize::from(node)] }
    }

    fn first_address(&self, facts: &FlowFacts) -> Address {
        self.addresses[usize::from(facts.first_receiver())]
    }

    /// Address of this end system.
    pub fn address(&self) -> Address {
        self.addresses[usize::from(self.node)]
    }

    /// Number of senders, relays and injectors that use the link of this end system.
    pub fn sources_here(&self) -> usize {
        self.sends.len() + self.relays.len() + self.loads.len()
    }

    /// True if no other traffic uses this link and nothing delays frames, so that queues may be bypassed.
    pub fn may_pass_queues(&self) -> bool {
        self.sources_here() == 1 && self.tsn.as_ref().is_none_or(|tsn| tsn.classes.is_empty())
    }

    /// Priority that filters assign to frames of this flow on this host.
    pub fn priority(&self, facts: &FlowFacts) -> u8 {
        let tag = facts.vlan_tci.map(|tci| (tci >> 13) as u8);
        self.tsn.as_ref().map_or(0, |tsn| tsn.priority_of(facts.id, tag))
    }

    /// Number of messages that the senders of this end system send, warm-up included.
    pub fn to_send(&self) -> u64 {
        self.sends.iter().map(|task| task.schedule.total()).sum()
    }

    /// Estimated number of messages that arrive by `access`, for queue sizes.
    pub fn expected(&self, access: AccessKind) -> Expected {
        let expected = self.flows.iter().filter(|f| f.access == access && f.role != FlowRole::Unexpected);
        let mut arrivals = Expected { in_all: 0, at_once: 0 };
        for facts in expected {
            arrivals.in_all = arrivals.in_all.saturating_add(facts.planned);
            arrivals.at_once = arrivals.at_once.saturating_add(facts.in_half_a_second.min(facts.planned));
        }
        arrivals
    }
}

fn port_of(network: &Network, run: &Run, node: NodeIndex) -> (u16, Option<u64>) {
    let at = |link: &wg_plan::Link| link.ends.into_iter().find(|end| end.node == node);
    let ports = network.links.iter().filter_map(|link| Some((at(link)?.port, link.rate)));
    let found = ports.min_by_key(|(port, _)| *port);
    found.map_or((1, None), |(port, rate)| (port, Some(run.link_rate.unwrap_or(rate).bits_per_second())))
}

/// Number of messages that may arrive at an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Messages in the whole run.
    pub in_all: u64,
    /// Messages in half a second, which may queue while a task has no core.
    pub at_once: u64,
}

/// Bytes of a message with a payload of `payload` bytes. A sequence number within the payload is its last byte, unless
/// the frame is padded.
fn message_length(protocol: Protocol, frame: u16, payload: u16) -> u16 {
    let around = ethernet::HEADER_LEN + DATAGRAM_HEADER_LEN + SEQUENCE_LEN + FCS_LEN;
    match protocol {
        Protocol::Rc => {
            payload.min(u16::try_from(usize::from(frame).saturating_sub(around)).unwrap_or(payload))
        }
        _ => payload,
    }
}

/// Frame length of the plan as `u16`; the plan has no longer frames.
fn short(length: u32) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
