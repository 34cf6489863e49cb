//! The executable test. Serialised as JSON it is also the contract between testmaster and agents and the
//! copy of the plan kept in the run directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::network::{Attachment, Network, NetworkId, NodeIndex, SwitchChange};

/// Number of a flow as the test gives it (1 to 65 534); it travels in the probe header.
pub type FlowId = u16;

/// Version of the JSON form of [`Campaign`]; raised when a reader of an older form would misread it.
pub const PLAN_SCHEMA: u32 = 2;

/// A whole test: one network and the runs its sweep expands to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// [`PLAN_SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the test.
    pub name: String,
    /// Seed every random choice of the campaign derives from.
    pub seed: u64,
    /// The bench it runs on where nobody says otherwise.
    #[serde(default)]
    pub bench: Bench,
    /// The network under test.
    pub network: Network,
    /// How the clocks of its end systems are kept together and compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronise: Option<Synchronise>,
    /// Swept parameters in the order of the file; empty for a single run.
    pub axes: Vec<Axis>,
    /// How often each point is measured.
    pub repeats: u32,
    /// The runs, points in the order of the axes (the last axis fastest), repeats innermost.
    pub runs: Vec<Run>,
    /// Limits the measures are judged against.
    pub limits: Vec<Limit>,
    /// What is allowed but worth knowing, one sentence each.
    pub warnings: Vec<String>,
}

/// Where a test runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bench {
    /// In virtual time.
    #[default]
    Sim,
    /// Between network namespaces of one machine.
    Netns,
}

/// How clocks are kept together and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synchronise {
    /// The end system whose clock the others are compared with.
    pub reference: NodeIndex,
    /// Most that the fixed delays of the two directions between two end systems differ by; absent where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asymmetry: Option<Span>,
    /// What the clocks have to keep to; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// What happens where they do not.
    #[serde(default)]
    pub otherwise: Otherwise,
    /// How long to wait for them before a run.
    pub wait: Span,
    /// Time between two exchanges with each end system; absent without exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Span>,
    /// linuxptp on every end system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptp: Option<Ptp>,
    /// chrony, which runs already, is watched.
    #[serde(default)]
    pub chrony: bool,
}

/// What happens where clocks are not within their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    /// The run takes place and is graded.
    #[default]
    Grade,
    /// It does not take place.
    Refuse,
}

/// The Precision Time Protocol through linuxptp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ptp {
    /// Where frames are stamped.
    pub stamps: Stamps,
    /// Whether clocks are set, or only compared.
    pub steer: bool,
    /// Time between two Sync messages, a power of two of a second.
    pub interval: Span,
    /// Proportional constant of phc2sys, in thousandths.
    pub kp_thousandths: u32,
    /// Its integral constant, in thousandths.
    pub ki_thousandths: u32,
}

/// Where the frames of a synchronisation protocol are stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stamps {
    /// By the interface's own clock.
    Hardware,
    /// By the kernel.
    Software,
}

/// One swept parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What is swept: `payload`, `load`, `protocol`, `period`, …
    pub of: String,
    /// The values as written, in order.
    pub values: Vec<String>,
}

/// One run: one point of the sweep, once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Position in [`Campaign::runs`].
    pub index: u32,
    /// The axis values of this run, as written; empty without a sweep.
    pub point: BTreeMap<String, String>,
    /// 0-based number of the repeat.
    pub repeat: u32,
    /// Seed of this run, derived from the campaign's.
    pub seed: u64,
    /// Rate of every link in bit/s where the sweep sets it; else each link has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_rate_bps: Option<u64>,
    /// What the sweep changes in the switches.
    #[serde(default, skip_serializing_if = "SwitchChange::is_none")]
    pub switches: SwitchChange,
    /// Time before the measured part. Messages sent in it are marked and excluded from every measure.
    pub warm_up: Span,
    /// Length of the measured part.
    pub duration: Span,
    /// Wait for frames still under way after the last planned send.
    pub drain: Span,
    /// Flows with the axis values applied.
    pub flows: Vec<Flow>,
    /// Sender tasks.
    pub sends: Vec<Send>,
    /// Receiver tasks.
    pub receives: Vec<Receive>,
    /// Relay tasks.
    pub relays: Vec<Relay>,
    /// Background load.
    pub injects: Vec<Inject>,
    /// Capture tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// Faults of links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_faults: Vec<LinkFault>,
    /// What befalls the network at stated instants, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Incident>,
}

/// Frames a flow is carried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDP over IPv4 through the kernel's socket.
    Udp,
    /// Ethernet II frames through a packet socket, EtherType 0x88B5.
    Raw,
    /// Best effort: UDP over IPv4 beside rate-constrained and time-triggered frames, forwarded by address.
    Be,
    /// Rate-constrained: a virtual link (ARINC 664 part 7).
    Rc,
    /// Time-triggered: sent and forwarded at planned instants (SAE AS6802).
    Tt,
}

/// A stream of numbered messages from one end system to one or several others (and back, where a relay returns it).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its number.
    pub id: FlowId,
    /// How it is carried.
    pub protocol: Protocol,
    /// Sending end system.
    pub from: NodeIndex,
    /// Receiving end system; the first of them where the flow is multicast.
    pub to: NodeIndex,
    /// The others of a multicast flow, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_to: Vec<NodeIndex>,
    /// A message older than this at the application is late.
    pub deadline: Option<Span>,
    /// 802.1Q tag of its frames.
    pub vlan: Option<VlanTag>,
    /// Nodes on the way, `from` first and `to` last, on the first of its networks.
    pub path: Vec<NodeIndex>,
    /// Every other way: to the other receivers, and over network B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_paths: Vec<Path>,
    /// The network it travels on; absent for both, each frame sent on A and on B.
    #[serde(default = "network_a", skip_serializing_if = "is_network_a")]
    pub network: Option<NetworkId>,
    /// Contract of a rate-constrained flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_link: Option<VirtualLink>,
    /// Schedule of a time-triggered flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<TimeTriggered>,
    /// Two-way exchange that compares clocks; no flow under test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exchange: bool,
}

fn network_a() -> Option<NetworkId> {
    Some(NetworkId::A)
}

fn is_network_a(network: &Option<NetworkId>) -> bool {
    *network == network_a()
}

impl Flow {
    /// A flow to one end system over network A, without anything optional.
    pub fn plain(id: FlowId, protocol: Protocol, path: Vec<NodeIndex>) -> Self {
        Self {
            id,
            protocol,
            from: path.first().copied().unwrap_or_default(),
            to: path.last().copied().unwrap_or_default(),
            also_to: Vec::new(),
            deadline: None,
            vlan: None,
            path,
            further_paths: Vec::new(),
            network: network_a(),
            virtual_link: None,
            schedule: None,
            exchange: false,
        }
    }

    /// Its receivers, in the order of the file.
    pub fn receivers(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        core::iter::once(self.to).chain(self.also_to.iter().copied())
    }

    /// Its ways, the first of them [`path`](Self::path).
    pub fn ways(&self) -> impl Iterator<Item = (NetworkId, &[NodeIndex])> {
        let first = (self.network.unwrap_or(NetworkId::A), &self.path[..]);
        core::iter::once(first).chain(self.further_paths.iter().map(|path| (path.network, &path.nodes[..])))
    }
}

/// A way through one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The network.
    pub network: NetworkId,
    /// Nodes on the way, the sender first and a receiver last.
    pub nodes: Vec<NodeIndex>,
}

/// The contract of a virtual link (ARINC 664 part 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualLink {
    /// Its number, which is the end of the destination address.
    pub id: u16,
    /// Bandwidth allocation gap: 1, 2, 4, … 128 ms.
    pub bag: Span,
    /// Longest frame, destination address to FCS, in bytes.
    pub lmax: u16,
    /// Sub-virtual-links, 1 to 4.
    pub sub_links: u8,
    /// Frames each sub-virtual-link holds.
    pub queue: u32,
    /// Most time between two copies of a frame.
    pub skew_max: Span,
    /// Whether second copies are removed.
    pub redundancy_management: bool,
    /// Jitter a switch grants it at an input port.
    pub jitter: Span,
    /// Which of the eight queues of a port with strict priority its frames wait in; they carry no tag.
    #[serde(default = "VirtualLink::usual_priority")]
    pub priority: u8,
}

impl VirtualLink {
    /// The priority of a virtual link that is given none: above everything untagged, below the highest ones.
    pub const fn usual_priority() -> u8 {
        4
    }
}

/// The schedule of a time-triggered flow (SAE AS6802). All instants are of the node's own clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeTriggered {
    /// Number of the critical-traffic identifier, the end of the destination address.
    pub id: u16,
    /// Time between two dispatches.
    pub period: Span,
    /// First dispatch.
    pub offset: Span,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// What the sender does with messages faster than the schedule: keep the last, or queue so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Windows of the egress ports on its ways, the sender's own port first.
    pub windows: Vec<TtWindow>,
    /// How long before the planned instant of reception a frame is accepted.
    pub early: Span,
    /// How long after it.
    pub late: Span,
    /// Planned instants of reception, by receiver: its last bit is in.
    pub receptions: Vec<TtReception>,
}

/// A window of one egress port; it repeats with the flow's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtWindow {
    /// The port.
    pub at: Attachment,
    /// When it first opens, less than the period.
    pub offset: Span,
    /// How long it is open.
    pub length: Span,
}

/// When a receiver expects a time-triggered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtReception {
    /// The port it comes in by.
    pub at: Attachment,
    /// The instant, less than the period.
    pub offset: Span,
}

/// 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanTag {
    /// VLAN identifier, 1 to 4094 (0: priority-tagged).
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

/// How payload after the probe header is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Bytes counting up.
    Sequential,
    /// Bytes from a generator seeded by run seed, flow and sequence number.
    Random,
}

/// A sender task: message `k` is due at `warm_up + offset + k · period` after the epoch; warm-up messages
/// are due at the same spacing before that. Other [`Pattern`]s space them otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// The flow it feeds.
    pub flow: FlowId,
    /// Time between intended sends.
    pub period: Span,
    /// Intended send of message 0, after the end of the warm-up.
    pub offset: Span,
    /// Payload in bytes: UDP payload, or payload of the Ethernet frame; the probe header is its first part.
    pub payload: u32,
    /// Its content after the probe header.
    pub fill: Fill,
    /// Messages of the measured part.
    pub count: u32,
    /// Messages before it, numbered on their own from 0.
    pub warm_up_count: u32,
    /// How messages are spaced.
    #[serde(default, skip_serializing_if = "Pattern::is_periodic")]
    pub pattern: Pattern,
    /// Most bits per second on the wire, preamble and gap included; messages wait for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_bps: Option<u64>,
    /// Sub-virtual-link of a rate-constrained flow, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sub_link: u8,
    /// Sends only in the active part of each cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Seed of exponential intervals where the test gives one; else the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What is kept when a message is late; absent: the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How its frames leave a real host; absent: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Where the transmit time lies in the payload, in bytes; absent: messages carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_time: Option<u16>,
}

/// A cycle of sending and silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// How long it sends.
    pub active: Span,
    /// How long it is silent then.
    pub pause: Span,
}

/// What a sender keeps when a message is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The schedule: what is due leaves at once.
    Rate,
    /// The time between two messages: everything after a late one is late as well.
    Gap,
}

/// How frames leave a real host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// UDP sockets.
    Udp,
    /// Packet sockets.
    Packet,
    /// `AF_XDP` sockets.
    Xdp,
    /// A BPF programme within the kernel.
    XdpLive,
}

impl Send {
    /// `count` messages at a constant period, without a warm-up.
    pub const fn periodic(flow: FlowId, period: Span, payload: u32, count: u32) -> Self {
        Self {
            flow,
            period,
            offset: Span::ZERO,
            payload,
            fill: Fill::Sequential,
            count,
            warm_up_count: 0,
            pattern: Pattern::Periodic,
            rate_limit_bps: None,
            sub_link: 0,
            activity: None,
            seed: None,
            mode: None,
            backend: None,
            transmit_time: None,
        }
    }

    /// Whether a real host sends it as a stream: by a thread of its own, from a template.
    pub const fn is_stream(&self) -> bool {
        self.mode.is_some() || self.backend.is_some() || self.transmit_time.is_some()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// How the messages of a sender are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Pattern {
    /// One every period.
    #[default]
    Periodic,
    /// At exponential intervals with the period as their mean. The last comes when chance has it: the run
    /// lasts until then.
    Exponential,
    /// `size` messages every period.
    Bursts {
        /// Messages of a burst.
        size: u32,
        /// Time between two of them; zero: as fast as the line takes them.
        spacing: Span,
    },
    /// Ever faster or slower: the rate changes evenly from one message every period at the end of the warm-up to one
    /// every `to` at the end of `length`.
    Ramp {
        /// Time between two messages at the end.
        to: Span,
        /// How long the rate changes.
        length: Span,
    },
}

impl Pattern {
    /// Whether messages come one by one at the period.
    pub fn is_periodic(&self) -> bool {
        *self == Self::Periodic
    }
}

/// A receiver task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive {
    /// The flow it expects.
    pub flow: FlowId,
    /// The end system it runs on.
    pub on: NodeIndex,
}

/// A relay task: sends every message of the flow back to where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The flow it returns.
    pub flow: FlowId,
    /// The end system it runs on; the flow's `to`.
    pub on: NodeIndex,
    /// Where the message is turned round.
    pub through: Turn,
    /// Planted faults.
    pub faults: Vec<Fault>,
}

/// Where a relay turns a message round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// On the servicing thread: least delay.
    Servicing,
    /// In a task thread behind queues, as an application would.
    Task,
}

/// A planted fault: what the relay does to the messages with these sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is done.
    pub kind: FaultKind,
    /// Inclusive ranges of sequence numbers, ascending, disjoint.
    pub sequences: Vec<(u32, u32)>,
}

/// What a planted fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FaultKind {
    /// The message is not sent on.
    Drop,
    /// It is sent on twice.
    Duplicate,
    /// It is sent on after its successor.
    Swap,
    /// One bit of its last payload byte is inverted after the CRC was written.
    Corrupt,
    /// It is sent to this end system instead.
    Misdirect {
        /// Where it goes.
        to: NodeIndex,
    },
}

/// Background load: bursts of UDP frames that nobody measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inject {
    /// The flooding end system.
    pub on: NodeIndex,
    /// The end system flooded.
    pub to: NodeIndex,
    /// UDP payload of each frame in bytes.
    pub payload: u32,
    /// Frames sent back to back.
    pub burst: u32,
    /// Time between bursts; the load is `burst · wire size / interval`. Zero load has no task.
    pub interval: Span,
    /// The load this makes on the sender's link, in parts per million of its rate; with pauses, while it is active.
    pub load_ppm: u32,
    /// Bursts come at exponential intervals with the interval as their mean.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exponential: bool,
    /// Sends only in the active part of each cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What is kept when a burst is late; absent: the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How its frames leave a real host; absent: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
}

impl Inject {
    /// Bursts at a constant interval.
    pub const fn periodic(
        on: NodeIndex,
        to: NodeIndex,
        payload: u32,
        burst: u32,
        interval: Span,
        load_ppm: u32,
    ) -> Self {
        Self {
            on,
            to,
            payload,
            burst,
            interval,
            load_ppm,
            exponential: false,
            activity: None,
            mode: None,
            backend: None,
        }
    }
}

/// A capture task: every frame at the node's ports, written as pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The end system or switch.
    pub on: NodeIndex,
    /// Bytes kept of each frame.
    pub snap: u32,
}

/// What a link does to frames. The bench writes what it did beside the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFault {
    /// Index into [`Network::links`].
    pub link: u32,
    /// The end frames come from; absent for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeIndex>,
    /// What is done.
    pub kind: LinkFaultKind,
    /// To which frames.
    pub whom: Victims,
    /// Not before this time after the epoch.
    #[serde(default)]
    pub begin: Span,
    /// Not from this time on; absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Span>,
}

/// What a link does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum LinkFaultKind {
    /// A bit of it is inverted: the receiver finds a wrong frame check sequence and drops it.
    BitError,
    /// It does not arrive.
    Lose,
    /// It arrives twice, back to back.
    Duplicate,
    /// It arrives so much later and may be overtaken.
    Delay {
        /// How much later.
        by: Span,
    },
    /// Its payload is altered behind the back of the frame check sequence.
    Corrupt,
}

/// The frames a link fault strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Victims {
    /// Each frame with this probability.
    Share {
        /// In parts per million.
        ppm: u32,
    },
    /// One bit in so many on average, all alike (a bit error rate of 1 / `mean_bits`).
    Bits {
        /// At least 1.
        mean_bits: u64,
    },
    /// These messages of a flow, in every copy and on both legs; warm-up messages are spared.
    Messages {
        /// The flow.
        flow: FlowId,
        /// Inclusive ranges of sequence numbers, ascending, disjoint.
        sequences: Vec<(u32, u32)>,
    },
}

/// What befalls the network at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// When, after the epoch.
    pub at: Span,
    /// What.
    pub kind: IncidentKind,
}

/// What befalls the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum IncidentKind {
    /// A link is cut; frames on it are lost.
    Cut {
        /// Index into [`Network::links`].
        link: u32,
        /// When it is restored, after the epoch; absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored: Option<Span>,
    },
    /// An end system sends a flow's frames past every regulator and schedule.
    Babble {
        /// The flow.
        flow: FlowId,
        /// Time between its frames.
        period: Span,
        /// Their length, destination address to FCS, in bytes.
        length: u16,
        /// When it ends, after the epoch.
        until: Span,
    },
    /// A switch restarts: what it holds and has learnt is lost, and nothing passes until it is back.
    Restart {
        /// The switch.
        switch: NodeIndex,
        /// When it is back, after the epoch.
        back: Span,
    },
    /// A node's clock is set.
    ClockStep {
        /// The node.
        node: NodeIndex,
        /// Forward by so much; back if negative.
        by: Span,
    },
}

/// A limit on a measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The flow it judges; all flows when absent.
    pub flow: Option<FlowId>,
    /// Name of the measure, for example `latency.p99` or `lost`.
    pub measure: String,
    /// Which side is allowed.
    pub bound: Bound,
    /// The limit in the measure's base unit: ns, messages, bit/s, one per second, or a share of 1.
    pub value: f64,
    /// The limit as written.
    pub written: String,
    /// Line in the test file; 0 when built in code.
    pub line: u32,
}

/// Which side of a limit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The measure must not exceed the value.
    AtMost,
    /// The measure must reach the value.
    AtLeast,
}
