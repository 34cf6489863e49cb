//! Tasks: what end systems do with flows, and the load and captures beside them.

use serde::{Deserialize, Serialize};
pub use wg_core::generator::Activity;
pub use wg_core::pacing::Pacing;
pub use wg_core::relay::FaultKind;
use wg_core::relay::Faults;
use wg_frame::time::Span;

use super::flows::FlowId;
use super::routes::Route;
use crate::imperfections::SendingThreads;
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
    pub pacing: Option<Pacing>,
    /// How its frames leave a real host; absent: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Whether the interface of a real host launches its frames; absent: where a card does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<bool>,
    /// Where the transmit time lies in the payload, in bytes; absent: messages carry none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_time: Option<u16>,
    /// The frames of a capture, with its gaps and sizes. `period` is then the mean gap, `payload` that of the longest frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Where `offset` follows from the dispatch of a time-triggered flow: how long before it messages are released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_dispatch: Option<Span>,
    /// `offset` is such that messages are at one place of the network's cycle, as the clock of their end system shows it.
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
    /// The end system it runs on, one of the flow's receivers.
    pub on: NodeIndex,
    /// Number of the virtual link that a rate-constrained flow's messages go back on; else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vl: Option<u16>,
    /// What its answers carry in the place of the flow's number, where several relays answer one flow: at the sender their
    /// messages are then told apart. Absent: the flow's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<FlowId>,
    /// Where the message is turned round.
    pub through: Turn,
    /// Planted faults.
    pub faults: Vec<Fault>,
    /// Routes of the messages that faults misdirect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detours: Vec<Route>,
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

/// Background load: bursts of UDP frames that nobody measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inject {
    /// The flooding end system.
    pub on: NodeIndex,
    /// The end system flooded.
    pub to: NodeIndex,
    /// The route to it.
    pub route: Route,
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
    /// Simulated threads that send and sleep, each a burst in as many intervals as there are threads, later by what its
    /// sending and sleeping takes; absent: the schedule is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<SendingThreads>,
    /// Sends only in the active part of each cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What is kept when a burst is late; absent: the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// How its frames leave a real host; absent: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Whether the interface of a real host launches its frames; absent: where a card does.
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
    /// The one its records go to.
    pub to: NodeIndex,
    /// The route to it.
    pub route: Route,
    /// Bytes of one record.
    pub record: u32,
    /// Records in a frame.
    pub records: u32,
}

/// A capture task: every frame at the node's ports, written as pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The end system or switch.
    pub on: NodeIndex,
    /// Bytes kept of each frame.
    pub snap: u32,
}
