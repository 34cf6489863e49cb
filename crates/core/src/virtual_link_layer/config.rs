//! What a virtual link layer is built from.

use alloc::vec::Vec;

use wg_frame::time::Span;

use crate::arinc664::redundancy::{Redundancy, SkewError};
use crate::arinc664::regulator::RegulatorError;
use crate::arinc664::{Bag, Contract};
use crate::frame::NetworkId;
use crate::tte::dispatch::{AcceptanceWindow, Instants, InstantsError, PortMode};

/// The networks a frame is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networks {
    /// One of them.
    One(NetworkId),
    /// Both: a copy on each.
    Both,
}

impl Networks {
    /// Whether a copy is sent on `network`.
    pub fn has(self, network: NetworkId) -> bool {
        self == Self::Both || self == Self::One(network)
    }
}

/// A virtual link that begins here.
#[derive(Clone, Debug)]
pub struct OutgoingLink {
    /// Its number.
    pub id: u16,
    /// What it may send.
    pub contract: Contract,
    /// Frames each sub-virtual-link holds; one to four of them.
    pub queues: Vec<usize>,
    /// Where its frames go.
    pub networks: Networks,
    /// Most output jitter, usually [`output_jitter`](crate::arinc664::regulator::output_jitter).
    pub jitter_budget: Span,
}

/// A time-triggered flow that begins here.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingSchedule {
    /// Its critical-traffic identifier.
    pub id: u16,
    /// When it is sent, by the local clock.
    pub instants: Instants,
    /// What becomes of messages that are faster.
    pub mode: PortMode,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// Where its frames go.
    pub networks: Networks,
}

/// A virtual link that ends here.
#[derive(Clone, Copy, Debug)]
pub struct IncomingLink {
    /// Its number.
    pub id: u16,
    /// Its gap.
    pub bag: Bag,
    /// What becomes of second copies.
    pub redundancy: Redundancy,
}

/// A time-triggered flow that ends here.
#[derive(Clone, Copy, Debug)]
pub struct IncomingSchedule {
    /// Its critical-traffic identifier.
    pub id: u16,
    /// Time between two of its frames.
    pub period: Span,
    /// When a frame's last bit may come by network A and by network B, by the local clock; `None`: at any time.
    pub windows: [Option<AcceptanceWindow>; 2],
    /// What becomes of second copies.
    pub redundancy: Redundancy,
}

/// What the layer is built from. Identifiers of virtual links and of schedules are counted apart.
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

/// A configuration that makes no layer: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirtualLinkLayerError {
    /// Sub-virtual-links.
    #[error("virtual link {id}: {error}")]
    Regulator {
        /// Which.
        id: u16,
        /// What is wrong.
        error: RegulatorError,
    },
    /// The dispatch queue.
    #[error("time-triggered flow {id}: {error}")]
    Dispatch {
        /// Which.
        id: u16,
        /// What is wrong.
        error: InstantsError,
    },
    /// The skew of copies.
    #[error("flow {id}: {error}")]
    Skew {
        /// Which virtual link or schedule.
        id: u16,
        /// What is wrong.
        error: SkewError,
    },
    /// The same identifier twice in one list.
    #[error("identifier {0} is listed twice for one direction; list it once")]
    Twice(u16),
}
