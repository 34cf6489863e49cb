//! What a test does to its network: faults of links, and incidents at stated instants.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use super::flows::FlowId;
use crate::network::NodeIndex;

/// What a link does to frames. The bench writes what it did beside the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFault {
    /// Index into [`Network::links`](crate::Network::links).
    pub link: u32,
    /// The end frames come from; absent for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<NodeIndex>,
    /// What is done.
    pub kind: LinkFaultKind,
    /// To which frames.
    pub whom: Victims,
    /// Not before this time after the epoch.
    #[serde(default)]
    pub from: Span,
    /// Not from this time on; absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
}

/// What a link does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum LinkFaultKind {
    /// A bit of it is inverted: the receiver finds a wrong frame check sequence and drops it.
    BitError,
    /// It does not arrive.
    Loss,
    /// It arrives twice, back to back.
    Duplicate,
    /// It arrives so much later and may be overtaken.
    Delay {
        /// How much later.
        by: Span,
    },
    /// Its payload is altered behind the back of the frame check sequence.
    Corrupt,
    /// Its sender cuts it short, or runs on: it is a runt or a giant with a right frame check sequence.
    WrongLength {
        /// Destination address to FCS, in bytes.
        length: u16,
    },
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
        /// Index into [`Network::links`](crate::Network::links).
        link: u32,
        /// When it is restored, after the epoch; absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Span>,
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
        until: Span,
    },
    /// A node's clock is set.
    ClockStep {
        /// The node.
        node: NodeIndex,
        /// Forward by so much; back if negative.
        by: Span,
    },
}
