//! Traffic classes, shapers and gates of the output ports of a switch, as a plan has them (IEEE Std 802.1Q-2022, 8.6.8).

use serde::{Deserialize, Serialize};
use wg_core::queue::PRIORITIES;
use wg_frame::time::Span;

use crate::campaign::{Flow, Protocol};
use crate::host_tsn::GateEntry;
use crate::places::FlowId;
use crate::stream_filter::StreamFilter;

/// Entries of a gate control list of a switch; hardware has 8 to 1024.
pub const MOST_PORT_ENTRIES: usize = 1_024;

/// Traffic classes of ports, and when each may send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTsn {
    /// Ports with these settings, ascending; empty: those that no other settings name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Traffic classes by number, the most urgent last; none: the priorities of the switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<PortClass>,
    /// Guard band: time before its gate closes in which no frame begins; absent: a frame begins if it ends before the
    /// closing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard_band: Option<Span>,
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
    /// Cyclic queuing of two classes, in place of gate control lists; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cyclic: Option<CyclicQueuing>,
    /// Gate control lists in the order they take over; none: every gate is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<PortSchedule>,
    /// Filters of streams that enter by these ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<StreamFilter>,
}

/// A traffic class of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortClass {
    /// Priorities of its frames, ascending.
    pub priorities: Vec<u8>,
    /// Priorities of virtual links whose frames wait in it as well, ascending; other virtual links go before all
    /// classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_links: Vec<LinkPriority>,
    /// Idle slope of its credit-based shaper in bit/s, of frames with preamble and gap; absent: strict priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_slope_bps: Option<u64>,
    /// Longest frame that may enter, destination address to FCS; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_frame: Option<u16>,
    /// Whether its frames are sent in fragments where others wait: frame preemption (IEEE Std 802.3-2022, clause 99).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub preemptable: bool,
    /// Asynchronous shaping of its streams; absent: frames are eligible at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asynchronous: Option<AsynchronousShaper>,
}

/// The two priorities that switches of ARINC 664 part 7 know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkPriority {
    /// Virtual links with priority 0 to 3.
    Low,
    /// Virtual links with priority 4 to 7.
    High,
}

impl LinkPriority {
    /// The switch priority of a virtual link with this priority.
    pub const fn of(priority: u8) -> Self {
        if priority < 4 { Self::Low } else { Self::High }
    }
}

/// Asynchronous shaping (IEEE Std 802.1Q-2022, 8.6.11). Frames of flows without a scheduler are eligible at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsynchronousShaper {
    /// Longest time that a frame may wait for its eligibility time; a frame that would wait longer is dropped.
    pub longest_residence: Span,
    /// Token buckets of flows, at most one for each flow.
    pub schedulers: Vec<FlowScheduler>,
}

/// The token bucket of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowScheduler {
    /// The flow.
    pub flow: FlowId,
    /// Committed information rate in bit/s, of frames with preamble and gap.
    pub rate_bps: u64,
    /// Committed burst size in bytes, of frames with preamble and gap.
    pub burst: u32,
}

/// Cyclic queuing (IEEE Std 802.1Q-2022, Annex T): two classes take turns, and one sends the frames of the cycle
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CyclicQueuing {
    /// Numbers of the two classes.
    pub classes: [u8; 2],
    /// Time for which each class sends.
    pub cycle: Span,
    /// When a cycle begins, by the switch's own clock, after the epoch.
    pub base_time: Span,
}

/// A gate control list of a port. Times are of the switch's own clock, after the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSchedule {
    /// When a cycle begins; for a list after the first, when it takes over.
    pub base_time: Span,
    /// Time by which the last cycle before the next list may be longer.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub cycle_extension: Span,
    /// Its entries.
    pub entries: Vec<GateEntry>,
}

impl PortSchedule {
    /// Length of the cycle: sum of all entries.
    pub fn cycle(&self) -> Span {
        Span::from_picos(self.entries.iter().fold(0, |sum, entry| sum + entry.length.as_picos()))
    }

    /// Time in a cycle for which the gate of a class is open.
    pub fn open_in_cycle(&self, class: usize) -> Span {
        let open = self.entries.iter().filter(|entry| is_open(entry, class));
        Span::from_picos(open.fold(0, |sum, entry| sum + entry.length.as_picos()))
    }

    /// Longest time for which it is open without interruption; `None`: it is always open.
    pub fn longest_opening(&self, class: usize) -> Option<Span> {
        if self.entries.iter().all(|entry| is_open(entry, class)) {
            return None;
        }
        let (mut longest, mut stretch) = (Span::ZERO, Span::ZERO);
        for entry in self.entries.iter().chain(&self.entries) {
            stretch = if is_open(entry, class) { stretch + entry.length } else { Span::ZERO };
            longest = longest.max(stretch);
        }
        Some(longest)
    }
}

pub(crate) fn is_open(entry: &GateEntry, class: usize) -> bool {
    entry.open.iter().any(|open| usize::from(*open) == class)
}

impl PortTsn {
    /// The class that frames of this priority belong to.
    pub fn class_of(&self, priority: u8) -> Option<usize> {
        self.classes.iter().position(|class| class.priorities.contains(&priority))
    }

    /// The class that frames of virtual links of this priority wait in; `None`: they go before all classes.
    pub fn class_of_link(&self, priority: LinkPriority) -> Option<usize> {
        self.classes.iter().position(|class| class.virtual_links.contains(&priority))
    }

    /// The class that the frames of a flow wait in at a port of a switch; `None`: they go before all classes, in a window or as a
    /// virtual link.
    pub fn class_of_flow(&self, flow: &Flow) -> Option<usize> {
        match (flow.protocol, &flow.virtual_link) {
            (Protocol::Tt, _) => None,
            (Protocol::Rc, Some(link)) => self.class_of_link(LinkPriority::of(link.priority)),
            _ => self.class_of(flow.vlan.map_or(0, |tag| tag.priority)),
        }
    }

    /// By priority of a virtual link: its class.
    pub fn classes_of_links(&self) -> [Option<u8>; PRIORITIES] {
        core::array::from_fn(|priority| {
            let priority = LinkPriority::of(u8::try_from(priority).ok()?);
            self.class_of_link(priority).and_then(|class| u8::try_from(class).ok())
        })
    }

    /// The class of each priority.
    pub fn classes_of_priorities(&self) -> [u8; PRIORITIES] {
        core::array::from_fn(|priority| {
            let class = u8::try_from(priority).ok().and_then(|priority| self.class_of(priority));
            class.and_then(|class| u8::try_from(class).ok()).unwrap_or(0)
        })
    }
}
