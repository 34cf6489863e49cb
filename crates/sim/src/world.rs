//! The simulated network: nodes, directions of links, tasks, all by index. It is built from the plan in
//! [`build`](crate::build).

use std::collections::{BTreeMap, VecDeque};

use wg_core::Deadline;
use wg_core::arinc664::VirtualLinkId;
use wg_core::clock::SharedClock;
use wg_core::end_system::Host;
use wg_core::fifo::Fifo;
use wg_core::frame::{Frame, NetworkId};
use wg_core::hub::Hub;
use wg_core::ingress::IngressRules;
use wg_core::line::LineRate;
use wg_core::pacing::Pacer;
use wg_core::port::Transmission;
use wg_core::selection::Selection;
use wg_core::switch::Switch;
use wg_frame::ethernet::MacAddress;
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::random::Stream;
use wg_plan::schedule::{Due, Schedule};
use wg_plan::{FlowId, NodeIndex, Protocol, Turn};
use wg_record::DropReason;

use crate::clocks::NodeClock;
use crate::clusters::{ClusterState, ControlFrames, Synchroniser};
use crate::faults::{LinkEffect, Rule};
use crate::headers::HeaderNumbers;
use crate::imperfections::{Decision, OwnFrameSource, RecurringEvent, Threads, TimestampErrors};
use crate::incidents::NetworkEvent;
use crate::models::Draws;

/// A frame on its way over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// When the far end takes note of it.
    pub(crate) at: RunTime,
    /// When its last bit is in.
    pub(crate) complete: RunTime,
    pub(crate) frame: Frame,
}

/// One direction of a link. Its delay is constant, so frames come out in the order they went in. Two lines of cache.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Channel {
    pub(crate) to: CoreIndex,
    /// Port of the far end, by index.
    pub(crate) to_port: u32,
    pub(crate) line: LineRate,
    /// Propagation.
    pub(crate) delay: Span,
    /// From the driver to the wire, where a host sends.
    pub(crate) lead: Span,
    /// The far end takes note of a frame by its header; otherwise when all of it is in.
    pub(crate) by_header: bool,
    /// The least gap behind a frame, bytes.
    pub(crate) gap: u8,
    /// What the far end then takes to decide.
    pub(crate) processing: Span,
    pub(crate) in_flight: Fifo<InFlight>,
    /// What few links have; the many pay for it with this one look.
    pub(crate) extra: Option<Box<Extra>>,
}

/// What a link can have beside frames: faults, a cut, someone who listens.
#[derive(Debug)]
pub(crate) struct Extra {
    /// Its far end.
    pub(crate) node: NodeIndex,
    /// And the port there.
    pub(crate) port: u16,
    pub(crate) rules: Vec<Rule>,
    /// Faults by which its sender makes runts and giants.
    pub(crate) lengths: Vec<Rule>,
    /// How long its far end, a switch, takes for each frame, where that varies.
    pub(crate) decision: Option<Decision>,
    /// Cuts in force.
    pub(crate) cuts: u32,
    /// Frames that were held back or doubled, by arrival and then by departure.
    pub(crate) stragglers: BTreeMap<(RunTime, u64), InFlight>,
    pub(crate) departures: u64,
    /// Number of its source of stragglers.
    pub(crate) source: usize,
    /// Captures at its near and far end: node and port.
    pub(crate) taps: [Option<(NodeIndex, u16)>; 2],
}

/// A frame of which a fragment was sent and the rest was not.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) in_flight: InFlight,
    /// It is one that a fault holds back.
    pub(crate) late: bool,
    /// When the line was to be free of it.
    pub(crate) instead_of: RunTime,
}

/// Where a node is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreIndex {
    Host(u32),
    Switch(u32),
    Hub(u32),
}

/// What every node has.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(crate) place: CoreIndex,
    /// Its clock, where it is not perfect.
    pub(crate) clock: Option<Box<NodeClock>>,
    /// What its timestamps are off by, where they are.
    pub(crate) timestamps: Option<Box<TimestampErrors>>,
}

impl NodeState {
    /// What its clock shows at `time`.
    #[inline]
    pub(crate) fn read(&self, time: RunTime) -> RunTime {
        self.clock.as_ref().map_or(time, |clock| clock.read(time))
    }

    /// A handle on its clock for a device.
    pub(crate) fn shared_clock(&self) -> Option<SharedClock> {
        self.clock.as_ref().map(|clock| clock.shared())
    }
}

/// An end system. Laid out by lines of cache, as its [core](Host) is: what a frame or a message meets comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct HostNode {
    // First line.
    pub(crate) node: NodeIndex,
    pub(crate) address: MacAddress,
    /// When its timer goes off.
    pub(crate) timer: Deadline,
    pub(crate) send_wake_up: Draws,
    pub(crate) receive_wake_up: Draws,
    /// What few hosts have; the many pay for it with this one look.
    pub(crate) extra: Option<Box<HostExtra>>,
    pub(crate) ports: HostPorts,
    // Second line: what is drawn when a frame comes; and the figures, of which a frame meets those of its access point.
    pub(crate) wake_ups: Stream,
    /// By access point.
    pub(crate) access: [AccessFigures; ACCESS_POINTS.len()],
    pub(crate) core: Host<Selection, Option<SharedClock>>,
    // What seldom happens.
    /// It makes or removes copies of streams.
    pub(crate) has_streams: bool,
    pub(crate) relay_wake_up: Draws,
    pub(crate) strays: Strays,
    /// Frames of background load that were read.
    pub(crate) load_read: u64,
    /// Frames its ring or FIFO had no room for by reason, background load included.
    pub(crate) unreceived: BTreeMap<&'static str, u64>,
}

const _: () = assert!(core::mem::offset_of!(HostNode, wake_ups) == 64, "the first line of cache");

/// What a host can have beside ports, lanes and figures.
#[derive(Debug, Default)]
pub(crate) struct HostExtra {
    /// Its events, by index.
    pub(crate) events: Vec<usize>,
    /// Its log, where it logs over the network.
    pub(crate) log: Option<usize>,
    /// Background load for it costs it what any frame does.
    pub(crate) receives_load: bool,
}

impl HostNode {
    /// Its log, where it logs over the network.
    #[inline]
    pub(crate) fn log(&self) -> Option<usize> {
        self.extra.as_ref().and_then(|extra| extra.log)
    }

    /// What it has beside, to be added to.
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

    /// The channel out of it.
    #[inline]
    pub(crate) const fn channel(&self) -> usize {
        self.out as usize
    }
}

/// The one or two ports of a host, ascending by number. They lie with it: a list elsewhere would be one more line of cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPorts {
    /// Of one, twice the same.
    both: [HostPort; 2],
    count: u8,
}

impl HostPorts {
    /// Nothing where there is none.
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

/// A switch as the simulator has it.
pub(crate) type SwitchCore = Switch<Selection, IngressRules, Option<SharedClock>>;

#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub(crate) node: NodeIndex,
    pub(crate) core: SwitchCore,
    /// When its timer goes off.
    pub(crate) timer: Deadline,
    pub(crate) processing_delay: Span,
    /// What it takes for a frame is drawn.
    pub(crate) is_drawn: bool,
    /// When it is back from its last restart.
    pub(crate) back_at: Option<RunTime>,
    /// By port.
    pub(crate) ports: Vec<SwitchPort>,
    /// Its stream filters: of which flow and port each is.
    pub(crate) filters: Vec<(FlowId, u16)>,
}

/// A port of a switch; two of them are a line of cache.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct SwitchPort {
    pub(crate) number: u16,
    out: u32,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// It may cut off what it sends.
    pub(crate) preempts: bool,
    pub(crate) stats: Box<PortStats>,
}

impl SwitchPort {
    #[expect(clippy::cast_possible_truncation, reason = "links are numbered in 32 bits")]
    pub(crate) fn new(number: u16, channel: usize, preempts: bool) -> Self {
        Self { number, out: channel as u32, preempts, frames: 0, bytes: 0, stats: Box::default() }
    }

    /// The channel out of it.
    #[inline]
    pub(crate) const fn channel(&self) -> usize {
        self.out as usize
    }
}

/// What a port of a switch has that frames passing through do not touch.
#[derive(Debug, Default)]
pub(crate) struct PortStats {
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    /// A frame that a port has begun and may cut off: its record is written when nothing can cut it off any more.
    pub(crate) begun: Option<(Frame, RunTime)>,
}

#[derive(Debug)]
pub(crate) struct HubNode {
    pub(crate) core: Hub<Frame>,
    /// By station.
    pub(crate) stations: Vec<Station>,
    /// Frames between a driver and its station's transmitter; ascending.
    pub(crate) coming: VecDeque<(RunTime, usize, Frame)>,
    pub(crate) backoff: Stream,
    /// Frames with bytes that were sent, each with the instant from which on nobody hears it.
    pub(crate) fading: VecDeque<(RunTime, Frame)>,
}

/// An end system at a hub.
#[derive(Debug)]
pub(crate) struct Station {
    pub(crate) host: usize,
    pub(crate) host_port: usize,
    /// From it to the hub, and back.
    pub(crate) channels: [usize; 2],
    /// What its port waits for.
    pub(crate) transmission: Option<Transmission>,
    /// What became of its last frame on the way to the hub.
    pub(crate) effect: Option<LinkEffect>,
}

/// How applications reach the network; by the names agents use.
pub(crate) const ACCESS_POINTS: [(Protocol, &str); 5] = [
    (Protocol::Udp, "udp"),
    (Protocol::Raw, "raw"),
    (Protocol::Be, "be"),
    (Protocol::Rc, "rc"),
    (Protocol::Tt, "tt"),
];

/// Position of a protocol's figures.
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
    /// Measured messages that are to come.
    pub(crate) planned: u32,
    next: [u32; 2],
}

impl Reception {
    /// Takes the number of an intact message; warm-up messages are numbered on their own. Whether with it all measured
    /// messages came, each in its order: where one was lost or overtaken, nobody here can tell.
    pub(crate) fn follow(&mut self, sequence: u32, warm_up: bool) -> bool {
        self.received += 1;
        let next = &mut self.next[usize::from(warm_up)];
        match sequence.cmp(next) {
            std::cmp::Ordering::Greater => self.gaps += 1,
            std::cmp::Ordering::Less => self.repeats += 1,
            std::cmp::Ordering::Equal => {}
        }
        if sequence >= *next {
            *next = sequence.saturating_add(1);
            return *next == self.planned && !warm_up && self.gaps == 0;
        }
        false
    }
}

/// An end of a flow, and what came to it: one line of cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlowEnd {
    pub(crate) node: NodeIndex,
    pub(crate) came: Reception,
}

const _: () = assert!(core::mem::size_of::<FlowEnd>() == 64, "one line of cache");

/// A flow. One line of cache, which every frame that comes to a host meets.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FlowState {
    pub(crate) id: FlowId,
    pub(crate) from: NodeIndex,
    /// The address its frames were given in place of their receiver's.
    pub(crate) destination: Option<MacAddress>,
    /// How many addresses from that one on its messages have in turn.
    pub(crate) destinations: u32,
    /// Its relays.
    pub(crate) relays: Vec<usize>,
    pub(crate) planned: u64,
    /// Its receivers and what came to them.
    pub(crate) receivers: Box<[FlowEnd]>,
}

const _: () = assert!(core::mem::size_of::<FlowState>() == 64, "one line of cache");

impl FlowState {
    pub(crate) fn receiver(&self, node: NodeIndex) -> Option<usize> {
        self.receivers.iter().position(|end| end.node == node)
    }

    /// Whether its frames were given this destination address.
    pub(crate) fn is_sent_to(&self, address: MacAddress) -> bool {
        self.destination
            .is_some_and(|first| address.bits().wrapping_sub(first.bits()) < u64::from(self.destinations))
    }
}

/// Who sends the messages of a flow: three lines of cache, since between two of its messages all others have sent.
#[repr(align(64))]
pub(crate) struct Sender {
    pub(crate) flow: u32,
    pub(crate) host: u32,
    /// The frame of the next message. It is made when that is planned: a frame that was just made in parts cannot be copied
    /// before all of them are through to the cache.
    pub(crate) frame: Frame,
    /// The addresses its messages have in turn, where they are several.
    pub(crate) addresses: Option<Box<AddressesInTurn>>,
    /// One sent later than this after it was to be is late.
    pub(crate) late_after: Span,
    pub(crate) schedule: Schedule,
    /// The next message.
    pub(crate) due: Option<Due>,
    /// Where it paces by what it sent.
    pub(crate) paced: Option<Box<Paced>>,
    pub(crate) wake_ups: Stream,
    pub(crate) done: u64,
    pub(crate) late: u64,
}

const _: () = assert!(core::mem::size_of::<Sender>() == 192, "three lines of cache");

impl Sender {
    /// When a message is to be sent, by the clock of its host.
    #[inline]
    pub(crate) fn intended(&self, due: Due) -> RunTime {
        self.paced.as_ref().map_or(due.at, |paced| paced.pacer.intended(due.at))
    }
}

/// The pacing of a sender that goes by what it sent.
pub(crate) struct Paced {
    pub(crate) pacer: Pacer,
    /// When the last message was planned by its clock, and when it is sent.
    pub(crate) last: Option<(RunTime, RunTime)>,
}

/// Addresses that the messages of a sender have in turn, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressesInTurn {
    /// The first source address, and how many there are.
    pub(crate) sources: (MacAddress, u32),
    /// The same of destinations.
    pub(crate) destinations: (MacAddress, u32),
}

impl AddressesInTurn {
    /// Source and destination of message `sequence`.
    pub(crate) fn of(&self, sequence: u32) -> (MacAddress, MacAddress) {
        let at = |(first, count): (MacAddress, u32)| first.offset_by(u64::from(sequence % count.max(1)));
        (at(self.sources), at(self.destinations))
    }
}

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) flow: usize,
    /// The flow that its answers name.
    pub(crate) answers_as: FlowId,
    /// What of them came back to the sender.
    pub(crate) came_back: Reception,
    pub(crate) host: usize,
    pub(crate) node: NodeIndex,
    pub(crate) through: Turn,
    /// The virtual link back, where frames do not go by address.
    pub(crate) vl: Option<VirtualLinkId>,
    /// The network frames go back on, the first of two.
    pub(crate) network: NetworkId,
    pub(crate) core: wg_core::relay::Relay<Frame>,
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
    /// Its bursts from the beginning on.
    pub(crate) planned: Schedule,
    /// Those after the next one.
    pub(crate) schedule: Schedule,
    /// As planned, by the clock of its node; `None`: never again.
    pub(crate) due: Option<RunTime>,
    pub(crate) pacer: Pacer,
    /// Who sends, where it is no schedule.
    pub(crate) threads: Option<Box<Threads>>,
    pub(crate) done: u64,
    /// Frames that came to the host they are for, intact.
    pub(crate) arrived: u64,
    /// Frames that did not, copies that went astray included: lost by a link, or dropped by reason.
    pub(crate) lost: BTreeMap<&'static str, u64>,
}

/// A host's log of what its applications send and receive, on its way to another host.
#[derive(Debug)]
pub(crate) struct RemoteLog {
    pub(crate) host: usize,
    pub(crate) frame: Frame,
    /// In a frame.
    pub(crate) records: u32,
    /// When what is certain to happen will be logged; ascending.
    pub(crate) due: VecDeque<RunTime>,
    pub(crate) logged: u64,
    /// Frames that the host took.
    pub(crate) sent: u64,
}

/// A sender that has lost its senses.
#[derive(Debug)]
pub(crate) struct Babbler {
    pub(crate) host: usize,
    pub(crate) node: NodeIndex,
    pub(crate) frame: Frame,
    pub(crate) period: Span,
    pub(crate) until: RunTime,
}

/// Everything.
pub(crate) struct World {
    pub(crate) nodes: Vec<NodeState>,
    /// Nodes whose clocks are not perfect, ascending: numbers of their sources of events.
    pub(crate) clocked: Vec<NodeIndex>,
    pub(crate) addresses: Vec<MacAddress>,
    pub(crate) hosts: Vec<HostNode>,
    pub(crate) switches: Vec<SwitchNode>,
    pub(crate) hubs: Vec<HubNode>,
    pub(crate) channels: Vec<Channel>,
    /// By channel: a frame that is sent in fragments, while another one is on the wire.
    pub(crate) held: BTreeMap<usize, Held>,
    /// Channels with something extra, by the number of their source of stragglers.
    pub(crate) unusual: Vec<usize>,
    pub(crate) flows: Vec<FlowState>,
    /// CoreIndex in `flows` by flow number; `u16::MAX`: none.
    pub(crate) flow_of_id: Box<[u16]>,
    pub(crate) senders: Vec<Sender>,
    /// Senders that have messages left.
    pub(crate) sending: usize,
    /// Ends of flows to which measured messages are still to come.
    pub(crate) awaiting: usize,
    pub(crate) relays: Vec<Relay>,
    pub(crate) injectors: Vec<Injector>,
    pub(crate) babblers: Vec<Babbler>,
    pub(crate) logs: Vec<RemoteLog>,
    pub(crate) events: Vec<RecurringEvent>,
    pub(crate) own_frames: Vec<OwnFrameSource>,
    /// Devices of AS6802 clusters: numbers of their sources of events.
    /// What frames carry above Ethernet, where a switch asks.
    pub(crate) headers: HeaderNumbers,
    pub(crate) synchronisers: Vec<Synchroniser>,
    /// By node: which of them it is.
    pub(crate) synchroniser_of: BTreeMap<NodeIndex, usize>,
    pub(crate) clusters: Vec<ClusterState>,
    pub(crate) control_frames: ControlFrames,
    /// Clocks are perfect and timestamps are exact: records are written as they are.
    pub(crate) is_exact: bool,
    /// Ascending in time.
    pub(crate) network_events: Vec<(RunTime, NetworkEvent)>,
    /// Access points of the run's flows, by index, ascending.
    pub(crate) access_points: Vec<usize>,
    /// The measured part ends then.
    pub(crate) measured_until: RunTime,
    /// The last message is due then, as far as the plan can tell; the last one that was, once it was.
    pub(crate) last_send: RunTime,
    /// No background load begins from then on: the measured part is over and its messages have come. `None`: not yet.
    pub(crate) load_ends: Option<RunTime>,
    pub(crate) drain: Span,
    /// Between real hosts: a frame of each flow, by its position, or of the way back as a virtual link.
    pub(crate) frames: Vec<[Frame; 2]>,
    /// Between real hosts: by node the first network that an end system is on.
    pub(crate) networks: Vec<NetworkId>,
}

impl World {
    /// What frames of a message's flow are, where its flow is one of the run.
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

    /// Until when background load goes on: to the end of the run, where measured messages did not come.
    pub(crate) fn load_until(&self) -> RunTime {
        self.load_ends.map_or(self.end(), |at| at.min(self.end()))
    }

    /// An end of a flow has all its measured messages, or all were sent, at `now`: if nothing is left to come, background load
    /// ends with the measured part, or now if that is over.
    pub(crate) fn note_complete(&mut self, now: RunTime) {
        if self.sending == 0 && self.awaiting == 0 {
            self.load_ends = Some(now.max(self.measured_until));
        }
    }

    /// The true time at which the clock of `node` first shows `local`, from `now` on; none beyond all time.
    #[inline]
    pub(crate) fn instant(&self, node: NodeIndex, local: RunTime, now: RunTime) -> Option<RunTime> {
        match &self.nodes[usize::from(node)].clock {
            None => Some(local.max(now)),
            Some(clock) => clock.instant(local, now),
        }
    }
}
