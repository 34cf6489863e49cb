//! The TSN settings of a host's interface: queue disciplines of Linux and what frames meet them.
//!
//! The plan says what is wanted in terms of IEEE Std 802.1Q; [`commands`] says it in those of tc(8) and ethtool(8), and is
//! the only place that does: an agent runs what it says, a dry run prints it.

mod check;
pub mod commands;
mod credits;
mod matching;

use serde::{Deserialize, Serialize};
use wg_core::selection::MacOperation;
use wg_frame::time::Span;

pub(crate) use self::check::check;
pub use self::credits::{Credits, credits};
pub use self::matching::{Departure, FrameMatch, arrivals, departures};
use crate::campaign::FlowId;

/// Traffic classes of an interface, at most (`TC_QOPT_MAX_QUEUE` of linux/pkt_sched.h).
pub const MOST_CLASSES: usize = 16;
/// Transmit queues of an interface, at most.
pub const MOST_QUEUES: u16 = 256;
/// Entries of a gate control list that tc(8) of iproute2 carries: it lays them into a message of 1024 bytes.
pub const MOST_GATE_ENTRIES: usize = 28;
/// The same of a stream gate, beside the filter that it belongs to.
pub const MOST_STREAM_GATE_ENTRIES: usize = 24;
/// Longest cycle that the kernel's queue discipline takes: nanoseconds of 31 bits.
pub const LONGEST_CYCLE: Span = Span::from_nanos(i32::MAX as i64);

/// TSN settings of an end system's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTsn {
    /// Queues the interface is to have, as `ethtool -L`; absent: as many as it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u16>,
    /// Whether the kernel or the card applies classes and schedule.
    #[serde(default)]
    pub offload: TsnOffload,
    /// Longest time from the queue discipline to the card, with [`TsnOffload::TxtimeAssist`]; absent: not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txtime_delay: Option<Span>,
    /// Shortest fragment that is not the last, check sequence included, bytes; absent: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortest_fragment: Option<u16>,
    /// How long before an entry that holds the MAC the MAC is told (holdAdvance); absent: as long as a fragment may
    /// take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_advance: Option<Span>,
    /// How long before an entry that releases the MAC the MAC is told (releaseAdvance); absent: not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_advance: Option<Span>,
    /// Traffic classes by number; none: the interface keeps its queue discipline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<TrafficClass>,
    /// Gate control list; absent: every gate is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<GateSchedule>,
    /// Priorities of flows that carry none in a tag, or another one within the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classify: Vec<Classify>,
    /// Rules for arriving frames, at most one for each flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<IngressRule>,
}

impl HostTsn {
    /// Whether frames of some class are sent in fragments.
    pub fn preempts(&self) -> bool {
        self.classes.iter().any(|class| class.preemptable)
    }

    /// The class that frames of this priority belong to, by its place.
    pub fn class_of(&self, priority: u8) -> Option<usize> {
        self.classes.iter().position(|class| class.priorities.contains(&priority))
    }

    /// The priority of a flow's frames within the host; `tag` is that of their tag.
    pub fn priority_of(&self, flow: FlowId, tag: Option<u8>) -> u8 {
        let stated = self.classify.iter().find(|one| one.flow == flow).map(|one| one.priority);
        stated.or(tag).unwrap_or(0)
    }

    /// Transmit queues of all classes.
    pub fn queues(&self) -> u16 {
        self.classes.iter().map(|class| class.queues).fold(0, u16::saturating_add)
    }

    /// The first transmit queue of a class: they follow one another in the order of the classes.
    pub fn first_queue(&self, class: usize) -> u16 {
        self.classes.iter().take(class).map(|class| class.queues).fold(0, u16::saturating_add)
    }
}

/// Whether the kernel or the card applies the classes and the schedule of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TsnOffload {
    /// The kernel.
    #[default]
    Off,
    /// The card.
    Full,
    /// The kernel says when each frame is to leave, the card launches it then (taprio with etf below it).
    TxtimeAssist,
}

/// A traffic class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficClass {
    /// Priorities of its frames, ascending.
    pub priorities: Vec<u8>,
    /// Number of its transmit queues, which follow those of the classes before it.
    pub queues: u16,
    /// Its shaper; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<Shaper>,
    /// Whether its frames are sent in fragments where others wait: frame preemption (IEEE Std 802.3-2022, clause 99).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub preemptable: bool,
}

/// The shaper of a traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Shaper {
    /// The credit-based shaper (IEEE Std 802.1Q-2022, 8.6.8.2).
    Cbs {
        /// Idle slope: bandwidth of the class, in bit/s.
        idle_slope_bps: u64,
        /// Largest frame of the class, on the wire, bytes.
        max_frame: u32,
        /// Largest frame of classes that are not shaped, on the wire, bytes.
        max_interference: u32,
        /// Whether the card does it.
        offload: bool,
    },
    /// Frames leave at the time that each of them names.
    Etf {
        /// How long before its time a frame is given to the driver.
        delta: Span,
        /// Whether the card launches frames.
        offload: bool,
        /// Whether the time is a deadline, before which a frame may leave.
        deadline: bool,
    },
}

/// A gate control list, which repeats (IEEE Std 802.1Q-2022, 8.6.9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateSchedule {
    /// An instant, in TAI since 1970, at which a cycle begins; others begin whole cycles before and after it.
    pub base_time: Span,
    /// Its entries.
    pub entries: Vec<GateEntry>,
}

impl GateSchedule {
    /// Length of the cycle: sum of all entries.
    pub fn cycle(&self) -> Span {
        Span::from_picos(self.entries.iter().fold(0, |sum, entry| sum + entry.length.as_picos()))
    }
}

/// A line of a gate control list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateEntry {
    /// Classes whose gates are open, ascending.
    pub open: Vec<u8>,
    /// Duration of the entry.
    pub length: Span,
    /// Whether it holds the MAC of a port with preemption, or releases it.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    pub mac: MacOperation,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_unchanged(mac: &MacOperation) -> bool {
    *mac == MacOperation::Unchanged
}

impl GateEntry {
    /// Whether it holds the MAC of a port with preemption, or releases it.
    pub fn sets_mac(&self) -> bool {
        !is_unchanged(&self.mac)
    }

    /// Its gates, the lowest bit that of class 0.
    pub fn mask(&self) -> u16 {
        self.open.iter().fold(0, |mask, class| mask | 1_u16.checked_shl(u32::from(*class)).unwrap_or(0))
    }
}

/// Gives the frames of a flow a priority within the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classify {
    /// The flow, which this host sends or returns.
    pub flow: FlowId,
    /// Priority of its frames, 0 to 7.
    pub priority: u8,
}

/// What the frames of a flow have to keep to where they arrive (IEEE Std 802.1Q-2022, 8.6.5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngressRule {
    /// The flow.
    pub flow: FlowId,
    /// Whether the card does it.
    #[serde(default)]
    pub offload: bool,
    /// Gate that its frames must pass; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<StreamGate>,
    /// Meter that its frames must pass; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<Meter>,
}

/// A stream gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGate {
    /// As in [`GateSchedule`].
    pub base_time: Span,
    /// Its entries.
    pub entries: Vec<StreamGateEntry>,
}

/// An entry of a stream gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGateEntry {
    /// Whether frames pass.
    pub open: bool,
    /// Duration of the entry.
    pub length: Span,
    /// Largest sum of frame lengths that passes in it, in bytes; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_octets: Option<u32>,
}

/// A flow meter: what is above it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// Rate in bit/s, by the length of frames without their FCS.
    pub rate_bps: u64,
    /// Burst size, in bytes.
    pub burst: u32,
}
