//! What a test does to its network: faults of links, and incidents at stated instants.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use super::flows::FlowId;
use crate::network::NodeIndex;

/// A fault of a link. The bench writes what it did beside the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFault {
    /// Index into [`Network::links`](crate::Network::links).
    pub link: u32,
    /// The end whose frames it affects; absent: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<NodeIndex>,
    /// What the fault does.
    pub kind: LinkFaultKind,
    /// The frames that it affects.
    pub whom: Victims,
    /// When it begins, after the epoch.
    #[serde(default)]
    pub from: Span,
    /// When it ends, after the epoch; absent: with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
}

/// What a fault of a link does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum LinkFaultKind {
    /// A bit of the frame is inverted: the receiver finds a wrong frame check sequence and drops it.
    BitError,
    /// It does not arrive.
    Loss,
    /// It arrives twice, back to back.
    Duplicate,
    /// The frame is delayed and may be overtaken.
    Delay {
        /// Additional delay.
        by: Span,
    },
    /// The payload is altered, with a right frame check sequence.
    Corrupt,
    /// The sender cuts the frame short, or extends it: it is a runt or a giant with a right frame check sequence.
    WrongLength {
        /// Length that the frame then has, destination address to FCS, in bytes.
        length: u16,
    },
}

/// The frames that a fault of a link affects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Victims {
    /// Each frame with this probability.
    Share {
        /// Probability in parts per million.
        ppm: u32,
    },
    /// Each bit with the same probability (a bit error rate of 1 / `mean_bits`).
    Bits {
        /// Mean number of bits from one error to the next, at least 1.
        mean_bits: u64,
    },
    /// These messages of a flow, in every copy and on both legs; warm-up messages are spared.
    Messages {
        /// The flow.
        flow: FlowId,
        /// Sequence numbers of the messages, as inclusive ranges, ascending and disjoint.
        sequences: Vec<(u32, u32)>,
    },
}

/// An event in the network at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// When it happens, after the epoch.
    pub at: Span,
    /// What happens.
    pub kind: IncidentKind,
}

/// What an event does.
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
        /// Length of its frames, destination address to FCS, in bytes.
        length: u16,
        /// When it ends, after the epoch.
        until: Span,
    },
    /// A switch restarts: frames that it holds and addresses that it has learnt are lost, and nothing passes until it
    /// is back.
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
        /// Time by which the clock is set forward; negative: back.
        by: Span,
    },
}
