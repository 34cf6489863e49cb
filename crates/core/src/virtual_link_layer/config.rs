//! Configuration of a virtual link layer.

use alloc::vec::Vec;

use wg_frame::time::Span;

use crate::arinc664::redundancy::{Redundancy, SkewError};
use crate::arinc664::regulator::RegulatorError;
use crate::arinc664::{Bag, Contract};
use crate::frame::{Frame, Marks, NetworkId};
use crate::tte::dispatch::{AcceptanceWindow, Instants, InstantsError, PortMode};

/// The networks on which a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networks {
    /// A single network.
    One(NetworkId),
    /// Both: a copy on each.
    Both,
}

impl Networks {
    /// The networks of a frame that no virtual link sends: both where it is marked so, else its own.
    #[inline]
    pub(crate) const fn of(frame: &Frame) -> Self {
        if frame.marks.has(Marks::BOTH_NETWORKS) { Self::Both } else { Self::One(frame.network) }
    }

    /// Whether a copy is sent on `network`.
    pub fn has(self, network: NetworkId) -> bool {
        self == Self::Both || self == Self::One(network)
    }
}

/// A virtual link that begins here.
#[derive(Clone, Debug)]
pub struct OutgoingLink {
    /// Number of the virtual link.
    pub id: u16,
    /// BAG and Lmax.
    pub contract: Contract,
    /// Capacity in frames of each sub-virtual-link; one to four of them.
    pub queues: Vec<usize>,
    /// Networks on which its frames are sent.
    pub networks: Networks,
    /// Greatest output jitter, usually [`output_jitter`](crate::arinc664::regulator::output_jitter).
    pub jitter_budget: Span,
}

/// A time-triggered flow that begins here.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingSchedule {
    /// Critical-traffic identifier.
    pub id: u16,
    /// Planned instants of sending, by the local clock.
    pub instants: Instants,
    /// Treatment of messages that come faster.
    pub mode: PortMode,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// Networks on which its frames are sent.
    pub networks: Networks,
}

/// A virtual link that ends here.
#[derive(Clone, Copy, Debug)]
pub struct IncomingLink {
    /// Number of the virtual link.
    pub id: u16,
    /// BAG of the virtual link.
    pub bag: Bag,
    /// Redundancy management.
    pub redundancy: Redundancy,
}

/// A time-triggered flow that ends here.
#[derive(Clone, Copy, Debug)]
pub struct IncomingSchedule {
    /// Critical-traffic identifier.
    pub id: u16,
    /// Time between two of its frames.
    pub period: Span,
    /// Acceptance window of a frame's last bit by network A and by network B, by the local clock; `None`: at any time.
    pub windows: [Option<AcceptanceWindow>; 2],
    /// Redundancy management.
    pub redundancy: Redundancy,
}

/// Configuration of the layer. Identifiers of virtual links and of schedules are separate name spaces.
#[derive(Clone, Debug, Default)]
pub struct VirtualLinkLayerConfig {
    /// Virtual links that begin here.
    pub outgoing_links: Vec<OutgoingLink>,
    /// Time-triggered flows that begin here.
    pub outgoing_schedules: Vec<OutgoingSchedule>,
    /// Virtual links that end here.
    pub incoming_links: Vec<IncomingLink>,
    /// Time-triggered flows that end here.
    pub incoming_schedules: Vec<IncomingSchedule>,
}

/// An invalid configuration of the layer: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirtualLinkLayerError {
    /// Invalid sub-virtual-links.
    #[error("virtual link {id}: {error}")]
    Regulator {
        /// Number of the virtual link.
        id: u16,
        /// The error.
        error: RegulatorError,
    },
    /// An invalid dispatch queue.
    #[error("time-triggered flow {id}: {error}")]
    Dispatch {
        /// Critical-traffic identifier.
        id: u16,
        /// The error.
        error: InstantsError,
    },
    /// An invalid skew of copies.
    #[error("flow {id}: {error}")]
    Skew {
        /// Number of the virtual link or schedule.
        id: u16,
        /// The error.
        error: SkewError,
    },
    /// Identifier that occurs twice in one list.
    #[error("identifier {0} is listed twice for one direction; list it once")]
    Twice(u16),
}
