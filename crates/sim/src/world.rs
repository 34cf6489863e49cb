//! The simulated network: nodes, directions of links, tasks, all by index. It is built from the plan in
//! [`build`](crate::build).

use std::collections::{BTreeMap, VecDeque};

use wg_core::Deadline;
use wg_core::clock::SharedClock;
use wg_core::end_system::Host;
use wg_core::fifo::Fifo;
use wg_core::frame::{Frame, NetworkId};
use wg_core::hub::Hub;
use wg_core::ingress::IngressRules;
use wg_core::line::LineRate;
use wg_core::port::Transmission;
use wg_core::selection::Selection;
use wg_core::switch::Switch;
use wg_frame::ethernet::MacAddress;
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::random::Stream;
use wg_plan::{FlowId, NodeIndex, Protocol};
use wg_record::DropReason;

use crate::clocks::NodeClock;
use crate::clusters::{ClusterState, ControlFrames, Synchroniser};
use crate::faults::{LinkEffect, Rule};
use crate::headers::HeaderNumbers;
use crate::imperfections::{Decision, OwnFrameSource, RecurringEvent, TimestampErrors};
use crate::incidents::NetworkEvent;
use crate::models::Draws;
pub(crate) use crate::traffic::{
    AddressesInTurn, Babbler, Injector, Paced, Reception, Relay, RemoteLog, Sender,
};

/// A frame on its way over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When the far end reacts to it.
    pub(crate) at: RunTime,
    /// Instant of its last bit.
    pub(crate) complete: RunTime,
    pub(crate) frame: Frame,
}

/// One direction of a link. Its delay is constant, so frames keep their order. Two cache lines.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Channel {
    pub(crate) to: CoreIndex,
    /// Index of the port at the far end.
    pub(crate) to_port: u32,
    pub(crate) line: LineRate,
    /// Propagation delay.
    pub(crate) delay: Span,
    /// Delay from the driver to the wire, if a host sends.
    pub(crate) lead: Span,
    /// Whether the far end reacts to the header of a frame, or to its last bit.
    pub(crate) by_header: bool,
    /// Least inter-packet gap, bytes.
    pub(crate) gap: u8,
    /// Whether another stage drives the far end alone.
    pub(crate) leaves_stage: bool,
    /// Processing time of the far end.
    pub(crate) processing: Span,
    pub(crate) in_flight: Fifo<InFlight>,
    /// State that few links need, behind one pointer.
    pub(crate) extra: Option<Box<Extra>>,
}

/// Optional state of a link: faults, cuts, captures.
#[derive(Debug)]
pub(crate) struct Extra {
    /// Node at the far end.
    pub(crate) node: NodeIndex,
    /// Port number at the far end.
    pub(crate) port: u16,
    pub(crate) rules: Vec<Rule>,
    /// Faults that make its sender send runts and giants.
    pub(crate) lengths: Vec<Rule>,
    /// Processing times of the far end, a switch, if they vary.
    pub(crate) decision: Option<Decision>,
    /// Number of cuts in force.
    pub(crate) cuts: u32,
    /// Frames held back or doubled, by arrival and then by departure.
    pub(crate) stragglers: BTreeMap<(RunTime, u64), InFlight>,
    pub(crate) departures: u64,
    /// Number of its event source for stragglers.
    pub(crate) source: usize,
    /// Captures at its near and far end: node and port number.
    pub(crate) taps: [Option<(NodeIndex, u16)>; 2],
}

/// A frame that was sent in part.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) in_flight: InFlight,
    /// Whether it is a straggler.
    pub(crate) late: bool,
    /// Expected end of its transmission, before it was cut.
    pub(crate) instead_of: RunTime,
}

/// Kind and index of a node's core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreIndex {
    Host(u32),
    Switch(u32),
    Hub(u32),
}

/// State that every kind of node has.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) place: CoreIndex,
    /// Its clock; `None`: it shows true time.
    pub(crate) clock: Option<Box<NodeClock>>,
    /// Its timestamp errors; `None`: timestamps are exact.
    pub(crate) timestamps: Option<Box<TimestampErrors>>,
}

impl NodeState {
    /// Reading of its clock at `time`.
    #[inline]
    pub(crate) fn read(&self, time: RunTime) -> RunTime {
        self.clock.as_ref().map_or(time, |clock| clock.read(time))
    }

    /// A handle on its clock, for a device.
    pub(crate) fn shared_clock(&self) -> Option<SharedClock> {
        self.clock.as_ref().map(|clock| clock.shared())
    }
}

/// An end system. Laid out by cache lines, as its [core](Host) is: the fields used for every frame come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct HostNode {
    // First line.
    pub(crate) node: NodeIndex,
    pub(crate) address: MacAddress,
    /// Deadline of its core.
    pub(crate) timer: Deadline,
    pub(crate) send_wake_up: Draws,
    pub(crate) receive_wake_up: Draws,
    /// State that few hosts need, behind one pointer.
    pub(crate) extra: Option<Box<HostExtra>>,
    pub(crate) ports: HostPorts,
    // Second line: random draws for a frame, and the counters of access points.
    pub(crate) wake_ups: Stream,
    /// Counters of each access point.
    pub(crate) access: [AccessFigures; ACCESS_POINTS.len()],
    pub(crate) core: Host<Selection, Option<SharedClock>>,
    // Fields that are rarely used.
    /// Whether it has stream functions.
    pub(crate) has_streams: bool,
    pub(crate) relay_wake_up: Draws,
    pub(crate) strays: Strays,
    /// Number of frames of background load read.
    pub(crate) load_read: u64,
    /// Number of frames that overran its ring or FIFO, by reason, background load included.
    pub(crate) unreceived: BTreeMap<&'static str, u64>,
}

const _: () = assert!(core::mem::offset_of!(HostNode, wake_ups) == 64, "the first line of cache");

/// Optional state of a host.
#[derive(Debug, Default)]
pub(crate) struct HostExtra {
    /// Indices of its host events.
    pub(crate) events: Vec<usize>,
    /// Index of its remote log, if any.
    pub(crate) log: Option<usize>,
    /// Whether background load for it costs processing time like any frame.
    pub(crate) receives_load: bool,
}

impl HostNode {
    /// Index of its remote log, if any.
    #[inline]
    pub(crate) fn log(&self) -> Option<usize> {
        self.extra.as_ref().and_then(|extra| extra.log)
    }

    /// Its optional state, created on first use.
    pub(crate) fn extra_mut(&mut self) -> &mut HostExtra {
        self.extra.get_or_insert_default()
    }

    #[cold]
    pub(crate) fn count_unreceived(&mut self, reason: DropReason) {
        *self.unreceived.entry(reason.name()).or_default() += 1;
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPort {
    pub(crate) number: u16,
    out: u32,
}

impl HostPort {
    #[expect(clippy::cast_possible_truncation, reason = "links are numbered in 32 bits")]
    pub(crate) const fn new(number: u16, channel: usize) -> Self {
        Self { number, out: channel as u32 }
    }

    /// Index of its outgoing channel.
    #[inline]
    pub(crate) const fn channel(&self) -> usize {
        self.out as usize
    }
}

/// The one or two ports of a host, ascending by number. Stored inline: a separate list would cost another cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPorts {
    /// A single port is stored twice.
    both: [HostPort; 2],
    count: u8,
}

impl HostPorts {
    /// `None` without a port.
    pub(crate) fn new(mut ports: impl Iterator<Item = HostPort>) -> Option<Self> {
        let first = ports.next()?;
        let second = ports.next();
        Some(Self { both: [first, second.unwrap_or(first)], count: 1 + u8::from(second.is_some()) })
    }
}

impl std::ops::Deref for HostPorts {
    type Target = [HostPort];
    #[inline]
    fn deref(&self) -> &[HostPort] {
        if self.count == 1 { &self.both[..1] } else { &self.both }
    }
}

/// Core of a switch.
pub(crate) type SwitchCore = Switch<Selection, IngressRules, Option<SharedClock>>;

#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub(crate) node: NodeIndex,
    pub(crate) core: SwitchCore,
    /// Deadline of its core.
    pub(crate) timer: Deadline,
    pub(crate) processing_delay: Span,
    /// Whether its processing time is drawn.
    pub(crate) is_drawn: bool,
    /// End of its last restart.
    pub(crate) back_at: Option<RunTime>,
    /// Its ports, by index.
    pub(crate) ports: Vec<SwitchPort>,
    /// Flow and port of each of its stream filters.
    pub(crate) filters: Vec<(FlowId, u16)>,
}

/// A port of a switch; two of them fill a cache line.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct SwitchPort {
    pub(crate) number: u16,
    out: u32,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// Whether it may interrupt its transmissions.
    pub(crate) preempts: bool,
    pub(crate) stats: Box<PortStats>,
}

impl SwitchPort {
    #[expect(clippy::cast_possible_truncation, reason = "links are numbered in 32 bits")]
    pub(crate) fn new(number: u16, channel: usize, preempts: bool) -> Self {
        Self { number, out: channel as u32, preempts, frames: 0, bytes: 0, stats: Box::default() }
    }

    /// Index of its outgoing channel.
    #[inline]
    pub(crate) const fn channel(&self) -> usize {
        self.out as usize
    }
}

/// State of a switch port that frames passing through do not touch.
#[derive(Debug, Default)]
pub(crate) struct PortStats {
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    /// A frame that the port has begun and may still cut off: its record is written afterwards.
    pub(crate) begun: Option<(Frame, RunTime)>,
}

#[derive(Debug)]
pub(crate) struct HubNode {
    pub(crate) core: Hub<Frame>,
    /// Its stations, by index.
    pub(crate) stations: Vec<Station>,
    /// Frames between a driver and its station's transmitter, with their instants; ascending.
    pub(crate) coming: VecDeque<(RunTime, usize, Frame)>,
    pub(crate) backoff: Stream,
    /// Sent frames with bytes, each with the instant from which it is no longer on the medium.
    pub(crate) fading: VecDeque<(RunTime, Frame)>,
}

/// An end system at a hub.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) host: usize,
    pub(crate) host_port: usize,
    /// Channels to the hub, and back.
    pub(crate) channels: [usize; 2],
    /// Transmission of its port that is not answered yet.
    pub(crate) transmission: Option<Transmission>,
    /// When it last began to send.
    pub(crate) began: RunTime,
    /// Effect of the link to the hub on its last frame.
    pub(crate) effect: Option<LinkEffect>,
}

/// Access points: protocols with the names that agents use.
pub(crate) const ACCESS_POINTS: [(Protocol, &str); 5] = [
    (Protocol::Udp, "udp"),
    (Protocol::Raw, "raw"),
    (Protocol::Be, "be"),
    (Protocol::Rc, "rc"),
    (Protocol::Tt, "tt"),
];

/// Index of a protocol's access point.
pub(crate) const fn access(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Udp => 0,
        Protocol::Raw => 1,
        Protocol::Be => 2,
        Protocol::Rc => 3,
        Protocol::Tt => 4,
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessFigures {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) refused: u64,
}

/// Frames at an end system that belong to none of its tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strays {
    pub(crate) damaged: u64,
    pub(crate) elsewhere: u64,
}

/// An end of a flow, with the messages received there: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlowEnd {
    pub(crate) node: NodeIndex,
    pub(crate) came: Reception,
}

const _: () = assert!(core::mem::size_of::<FlowEnd>() == 64, "one line of cache");

/// A flow. One cache line, used for every frame that arrives at a host.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FlowState {
    pub(crate) id: FlowId,
    pub(crate) from: NodeIndex,
    /// Destination address of its frames, if it is not the receiver's.
    pub(crate) destination: Option<MacAddress>,
    /// Number of destination addresses, from that one on, that its messages use in turn.
    pub(crate) destinations: u32,
    /// Indices of its relays.
    pub(crate) relays: Vec<usize>,
    pub(crate) planned: u64,
    /// Its receivers.
    pub(crate) receivers: Box<[FlowEnd]>,
}

const _: () = assert!(core::mem::size_of::<FlowState>() == 64, "one line of cache");

impl FlowState {
    pub(crate) fn receiver(&self, node: NodeIndex) -> Option<usize> {
        self.receivers.iter().position(|end| end.node == node)
    }

    /// Whether this is a destination address that its frames were given.
    pub(crate) fn is_sent_to(&self, address: MacAddress) -> bool {
        self.destination
            .is_some_and(|first| address.bits().wrapping_sub(first.bits()) < u64::from(self.destinations))
    }
}

/// The whole simulated network.
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeState>,
    /// Nodes with a clock of their own, ascending: the numbers of their event sources.
    pub(crate) clocked: Vec<NodeIndex>,
    pub(crate) addresses: Vec<MacAddress>,
    pub(crate) hosts: Vec<HostNode>,
    pub(crate) switches: Vec<SwitchNode>,
    pub(crate) hubs: Vec<HubNode>,
    pub(crate) channels: Vec<Channel>,
    /// Frames that are sent in fragments, while another one is on the wire, by channel.
    pub(crate) held: BTreeMap<usize, Held>,
    /// Channels with optional state, by the number of their event source for stragglers.
    pub(crate) unusual: Vec<usize>,
    pub(crate) flows: Vec<FlowState>,
    /// Index in `flows` by flow number; `u16::MAX`: none.
    pub(crate) flow_of_id: Box<[u16]>,
    pub(crate) senders: Vec<Sender>,
    /// Number of senders with messages left.
    pub(crate) sending: usize,
    /// Number of flow ends that still expect measured messages.
    pub(crate) awaiting: usize,
    pub(crate) relays: Vec<Relay>,
    pub(crate) injectors: Vec<Injector>,
    pub(crate) babblers: Vec<Babbler>,
    pub(crate) logs: Vec<RemoteLog>,
    pub(crate) events: Vec<RecurringEvent>,
    pub(crate) own_frames: Vec<OwnFrameSource>,
    /// Devices of AS6802 clusters: numbers of their sources of events.
    /// Numbers of headers above Ethernet, if a switch needs them.
    pub(crate) headers: HeaderNumbers,
    pub(crate) synchronisers: Vec<Synchroniser>,
    /// Index of the AS6802 device of each node.
    pub(crate) synchroniser_of: BTreeMap<NodeIndex, usize>,
    pub(crate) clusters: Vec<ClusterState>,
    pub(crate) control_frames: ControlFrames,
    /// Whether clocks are perfect and timestamps exact, so that records are written unchanged.
    pub(crate) is_exact: bool,
    /// Incidents, ascending in time.
    pub(crate) network_events: Vec<(RunTime, NetworkEvent)>,
    /// Access points of the run's flows, by index, ascending.
    pub(crate) access_points: Vec<usize>,
    /// End of the measured part.
    pub(crate) measured_until: RunTime,
    /// When the last message is due, as far as the plan can tell; once it was sent, when it was.
    pub(crate) last_send: RunTime,
    /// When background load stops: the measured part is over and its messages have come. `None`: not yet.
    pub(crate) load_ends: Option<RunTime>,
    pub(crate) drain: Span,
    /// Between real hosts: a frame of each flow, by index, and of its way back as a virtual link.
    pub(crate) frames: Vec<[Frame; 2]>,
    /// Between real hosts: the first network of each node's end system.
    pub(crate) networks: Vec<NetworkId>,
}

impl World {
    /// The frames of a message's flow; `None` if the run has no such flow.
    #[inline]
    pub(crate) fn frame_of(&self, probe: &Probe) -> Option<Frame> {
        let flow = usize::from(*self.flow_of_id.get(usize::from(probe.flow))?);
        let is_back = probe.flags.has(ProbeFlags::RETURN);
        self.frames.get(flow).map(|frames| frames[usize::from(is_back)])
    }

    /// When the run ends: certain once the last message was sent.
    pub(crate) fn end(&self) -> RunTime {
        self.last_send + self.drain
    }

    /// When background load stops: at the end of the run, if measured messages are missing.
    pub(crate) fn load_until(&self) -> RunTime {
        self.load_ends.map_or(self.end(), |at| at.min(self.end()))
    }

    /// A flow end has all its measured messages, or all were sent, at `now`: if no more are expected, background load
    /// stops with the measured part, or now if that is over.
    pub(crate) fn note_complete(&mut self, now: RunTime) {
        if self.sending == 0 && self.awaiting == 0 {
            self.load_ends = Some(now.max(self.measured_until));
        }
    }

    /// The first true time from `now` on at which the clock of `node` shows `local`; `None`: never.
    #[inline]
    pub(crate) fn instant(&self, node: NodeIndex, local: RunTime, now: RunTime) -> Option<RunTime> {
        match &self.nodes[usize::from(node)].clock {
            None => Some(local.max(now)),
            Some(clock) => clock.instant(local, now),
        }
    }
}
