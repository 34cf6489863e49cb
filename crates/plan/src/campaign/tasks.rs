//! Tasks: what end systems do with flows, and the load and captures beside them.

use serde::{Deserialize, Serialize};
pub use wg_core::generator::Activity;
pub use wg_core::pacing::Pacing;
pub use wg_core::relay::FaultKind;
use wg_core::relay::Faults;
use wg_frame::time::Span;

use super::flows::FlowId;
use super::routes::Route;
use crate::distribution::Distribution;
use crate::network::NodeIndex;
use crate::trace::Replay;

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
    /// The flow that it sends.
    pub flow: FlowId,
    /// Time between intended sends.
    pub period: Span,
    /// Intended send of message 0, after the end of the warm-up.
    pub offset: Span,
    /// Payload in bytes: UDP payload, or payload of the Ethernet frame; the probe header is its first part.
    pub payload: u32,
    /// Content of the payload after the probe header.
    pub fill: Fill,
    /// Messages of the measured part.
    pub count: u32,
    /// Messages of the warm-up, numbered separately from 0.
    pub warm_up_count: u32,
    /// How messages are spaced.
    #[serde(default, skip_serializing_if = "Pattern::is_periodic")]
    pub pattern: Pattern,
    /// Maximum rate on the wire in bit/s, preamble and gap included; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_bps: Option<u64>,
    /// Sub-virtual-link of a rate-constrained flow, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sub_link: u8,
    /// Cycle of sending and silence; absent: it never pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Seed of its exponential intervals; absent: that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What it keeps when a message is late; absent: the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// How its frames leave a real host; absent: the simplest backend that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Whether the interface of a real host sends its frames at their exact times; absent: if a card can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<bool>,
    /// Offset of the transmit time in the payload, in bytes; absent: messages carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_time: Option<u16>,
    /// The capture whose frames it sends; `period` is then the mean gap, `payload` that of the longest frame. Absent:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Time from the release of a message to the dispatch of its time-triggered flow, where `offset` follows from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_dispatch: Option<Span>,
    /// Whether `offset` puts messages at a fixed place of the network's cycle, by the clock of their end system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_cycle: bool,
}

/// A message is late that is sent more than its sender's period divided by this after its intended instant: a tenth of the period
/// is what validity grades a sender by, in every bench and in the measures.
pub const LATE_DIVISOR: i64 = 10;

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
            before_dispatch: None,
            on_cycle: false,
            payload,
            fill: Fill::Sequential,
            count,
            warm_up_count: 0,
            pattern: Pattern::Periodic,
            rate_limit_bps: None,
            sub_link: 0,
            activity: None,
            seed: None,
            pacing: None,
            backend: None,
            launch: None,
            transmit_time: None,
            replay: None,
        }
    }

    /// How long after its intended instant a message may be sent and not be late.
    pub const fn late_after(&self) -> Span {
        Span::from_picos(self.period.as_picos() / LATE_DIVISOR)
    }

    /// Whether a real host sends it as a stream: by a thread of its own, from a template.
    pub const fn is_stream(&self) -> bool {
        self.pacing.is_some()
            || self.backend.is_some()
            || self.launch.is_some()
            || self.transmit_time.is_some()
            || self.replay.is_some()
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
    /// The flow that it receives.
    pub flow: FlowId,
    /// The end system it runs on.
    pub on: NodeIndex,
}

/// A relay task: sends every message of the flow back to where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The flow that it returns.
    pub flow: FlowId,
    /// The end system it runs on, one of the flow's receivers.
    pub on: NodeIndex,
    /// Number of the virtual link on which messages of a rate-constrained flow return; absent: the flow has another
    /// protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vl: Option<u16>,
    /// The flow number that its answers carry where several relays answer one flow, so that the sender can tell them
    /// apart; absent: the flow's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<FlowId>,
    /// Where it returns a message.
    pub through: Turn,
    /// Planted faults.
    pub faults: Vec<Fault>,
    /// Routes of the messages that faults misdirect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Route>,
}

/// Where a relay returns a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// On the servicing thread: least delay.
    Servicing,
    /// In a task thread behind queues, as an application would.
    Task,
}

/// A planted fault of a relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What the fault does.
    pub kind: FaultKind,
    /// Sequence numbers of the messages, as inclusive ranges, ascending and disjoint.
    pub sequences: Vec<(u32, u32)>,
}

/// Background load: bursts of UDP frames that nobody measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inject {
    /// The end system that sends it.
    pub on: NodeIndex,
    /// The end system that receives it.
    pub to: NodeIndex,
    /// The route from one to the other.
    pub route: Route,
    /// UDP payload of each frame in bytes.
    pub payload: u32,
    /// Frames sent back to back.
    pub burst: u32,
    /// Time between bursts; the load is `burst · wire size / interval`. Zero load has no task.
    pub interval: Span,
    /// The load this makes on the sender's link, in parts per million of its rate; with pauses, while it is active.
    pub load_ppm: u32,
    /// Whether bursts come at exponential intervals, whose mean is `interval`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exponential: bool,
    /// Threads that send a burst and sleep, each for as many intervals as there are threads; absent: the schedule is
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<SendingThreads>,
    /// Cycle of sending and silence; absent: it never pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What it keeps when a burst is late; absent: the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// How its frames leave a real host; absent: the simplest backend that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Whether the interface of a real host sends its frames at their exact times; absent: if a card can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<bool>,
}

impl Relay {
    /// The number that its answers carry in their probe headers and records.
    pub fn answers_as(&self) -> FlowId {
        self.back.unwrap_or(self.flow)
    }

    /// Its planted faults, as the core of a relay takes them.
    pub fn planted(&self) -> Faults {
        let range = |fault: &Fault, (first, last)| (first, last, fault.kind);
        Faults::new(self.faults.iter().flat_map(|f| f.sequences.iter().map(|sequences| range(f, *sequences))))
    }
}

impl Inject {
    /// Bursts at a constant interval.
    pub fn periodic(route: Route, payload: u32, burst: u32, interval: Span, load_ppm: u32) -> Self {
        Self {
            on: route.sender().unwrap_or_default(),
            to: route.receiver().unwrap_or_default(),
            route,
            payload,
            burst,
            interval,
            load_ppm,
            exponential: false,
            threads: None,
            activity: None,
            pacing: None,
            backend: None,
            launch: None,
        }
    }
}

/// Remote logging: what a host's applications send and receive is logged, and the records go to another end system as UDP
/// frames over the network under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteLog {
    /// The end system that logs.
    pub on: NodeIndex,
    /// The end system that receives its records.
    pub to: NodeIndex,
    /// The route from one to the other.
    pub route: Route,
    /// Size of a record, in bytes.
    pub record: u32,
    /// Number of records in a frame.
    pub records: u32,
}

/// A capture task: every frame at the node's ports, written as pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The end system or switch.
    pub on: NodeIndex,
    /// Bytes stored of each frame.
    pub snap: u32,
}

/// Threads of an injector that send and sleep, instead of a schedule that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingThreads {
    /// Number of threads.
    pub number: u16,
    /// Time that the call that sends one frame takes a thread.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub send_cost: Distribution,
    /// Time by which a thread sleeps longer than asked.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub sleep_overhead: Distribution,
}
