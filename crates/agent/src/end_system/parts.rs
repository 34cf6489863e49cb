//! Parts of an assignment: the flows of a run as one end system sees them, and its tasks.

use wg_frame::arinc664::VirtualLinkId;
use wg_plan::schedule::Schedule;
use wg_plan::{FlowId, Inject, NodeIndex, Protocol, Relay, Send};

use crate::end_system::addressing::{AccessKind, FrameHeaders};

/// Role of this end system for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRole {
    /// No message of the flow is expected here.
    Unexpected,
    /// Receiver of the flow, for messages on the way out.
    Receiver,
    /// Relay on the servicing thread; index into [`Assignment::relays`](super::assignment::Assignment::relays).
    Relay(usize),
    /// Relay in the relay task.
    RelayInTask(usize),
    /// Sender of a flow that a relay returns.
    RoundTripSender,
}

/// Properties of a flow for this end system.
#[derive(Clone, Debug)]
pub struct FlowFacts {
    /// Flow number.
    pub id: FlowId,
    /// Protocol of the messages.
    pub protocol: Protocol,
    /// Sending end system.
    pub from: NodeIndex,
    /// Receiving end systems, at least one, in the order of the file.
    pub receivers: Box<[NodeIndex]>,
    /// Payload in bytes; 0 when nothing sends it.
    pub payload: u16,
    /// Frame length, DA to FCS.
    pub length: u16,
    /// Time between messages, ns; the mean for a replay; 0 if nothing sends it.
    pub period_ns: i64,
    /// Delay after the intended send time above which a message is late, ns.
    pub late_after_ns: i64,
    /// Maximum number of messages in half a second.
    pub in_half_a_second: u64,
    /// 802.1Q tag control information.
    pub vlan_tci: Option<u16>,
    /// Headers of the frames.
    pub headers: FrameHeaders,
    /// Access point of its messages.
    pub access: AccessKind,
    /// Number of messages that its sender sends, warm-up included.
    pub planned: u64,
    /// True if a relay returns it.
    pub relayed: bool,
    /// Virtual links on which relays return its messages.
    pub links_back: Vec<VirtualLinkId>,
    /// Position of the flow answered by messages of this number, if its relays use their own numbers.
    pub answers: Option<u16>,
    /// True if the sequence number of its virtual link is within the payload.
    pub(super) number_within: bool,
    /// True if its sender is its receiver.
    pub is_loopback: bool,
    /// True for a clock comparison, which is not a flow under test.
    pub exchange: bool,
    /// Role of this end system.
    pub role: FlowRole,
}

impl FlowFacts {
    /// The first of its receivers.
    pub fn first_receiver(&self) -> NodeIndex {
        self.receivers.first().copied().unwrap_or(self.from)
    }
}

/// A sender task of this end system.
#[derive(Clone, Debug)]
pub struct SendTask {
    /// The task.
    pub send: Send,
    /// Position of its flow in the table.
    pub flow: u16,
    /// Times of the messages.
    pub schedule: Schedule,
    /// True if a thread of its own sends it from a template.
    pub stream: bool,
}

/// Injector task of this end system.
#[derive(Clone, Debug)]
pub struct LoadTask {
    /// Index in the plan, from 0.
    pub number: u32,
    /// The task.
    pub inject: Inject,
    /// Times of the bursts.
    pub schedule: Schedule,
}

impl LoadTask {
    /// Flow number in the probe headers of the load.
    pub fn flow(&self) -> u16 {
        // A plan has 4096 injectors at most.
        u16::try_from(self.number % 65_534).unwrap_or(0) + 1
    }
}

/// A relay task of this end system.
#[derive(Clone, Debug)]
pub struct RelayTask {
    /// The task.
    pub relay: Relay,
    /// Position of its flow in the table.
    pub flow: u16,
}
