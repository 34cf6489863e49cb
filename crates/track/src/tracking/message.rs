//! What tracking says: one row per message, and the counts of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_frame::time::RunTime;
use wg_plan::{FlowId, NodeIndex};

use super::passages::Passage;
use super::series::Distributions;
use wg_record::segment::Damage;
use wg_record::{DropReason, Gap, Point, coded};

coded! {
    /// What became of a message; exactly one per message.
    Outcome {
        /// One intact copy came, in order and in time.
        Delivered = 0 "delivered",
        /// More than one intact copy came.
        Duplicated = 1 "duplicated",
        /// Its first intact copy came after one with a higher sequence number (RFC 4737, 3.3).
        Reordered = 2 "reordered",
        /// It came after its deadline.
        Late = 3 "late",
        /// No copy was seen where it should have come, nor a damaged or misdirected one anywhere.
        Lost = 4 "lost",
        /// Not delivered; a copy came to another end system.
        Misdirected = 5 "misdirected",
        /// Not delivered; a damaged copy came (RFC 7680, 2.5: lost).
        Corrupted = 6 "corrupted",
        /// Not seen to be delivered, while the instrument may have lost the records that would tell.
        Unknown = 7 "unknown",
    }
}

impl Outcome {
    /// Whether at least one intact copy reached the application it was meant for.
    pub const fn is_delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Duplicated | Self::Reordered | Self::Late)
    }
}

/// The tracking history of one message that was sent. Times are the earliest at their point; `None` where that
/// point did not see the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its flow.
    pub flow: FlowId,
    /// The receiver whose copy this row follows; a multicast message has a row for each.
    pub to: NodeIndex,
    /// Its number; the warm-up counts on its own.
    pub sequence: u32,
    /// Which life of its sender it is of: counts up when the sender began its numbers anew; 65 535 for that or later.
    pub life: u16,
    /// Sent in the warm-up, and so excluded from every measure and count.
    pub warm_up: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// When it should have been sent.
    pub intended: Option<RunTime>,
    /// Application at the sender.
    pub tx_app: Option<RunTime>,
    /// Driver at the sender.
    pub tx_drv: Option<RunTime>,
    /// Driver at the receiver or relay.
    pub rx_drv: Option<RunTime>,
    /// Application at the receiver or relay, first intact copy.
    pub rx_app: Option<RunTime>,
    /// Application at the relay, sending it back.
    pub back_tx_app: Option<RunTime>,
    /// Driver at the relay, sending it back.
    pub back_tx_drv: Option<RunTime>,
    /// Driver back at the sender.
    pub back_rx_drv: Option<RunTime>,
    /// Application back at the sender, first intact copy.
    pub back_rx_app: Option<RunTime>,
    /// First bit on the wire at the sender; of a flow on both networks, on A.
    pub tx_wire: Option<RunTime>,
    /// Likewise on network B, where the flow is on both.
    pub tx_wire_b: Option<RunTime>,
    /// Last bit off the wire at the receiver; of a flow on both networks, from A.
    pub rx_wire: Option<RunTime>,
    /// Likewise from network B, where the flow is on both.
    pub rx_wire_b: Option<RunTime>,
    /// Frame length in bytes, DA to FCS, where it was seen nearest to the sender.
    pub length: u16,
    /// Intact copies at the final destination; 65 535 stands for that many or more.
    pub copies: u16,
    /// Damaged copies, likewise.
    pub corrupted_copies: u16,
    /// Copies at end systems that were not meant to get them, likewise.
    pub misdirected_copies: u16,
    /// See [`Outcome::Reordered`]; also set when the outcome is another.
    pub reordered: bool,
    /// RFC 4737, 4.2.1, in messages; 0 when not reordered.
    pub reorder_extent: u32,
    /// Later than the flow's deadline; also set when the outcome is another.
    pub late: bool,
    /// Not delivered: the last observer on the way, where anybody saw it at all …
    pub last_node: Option<u16>,
    /// … and where there.
    pub last_point: Option<Point>,
    /// Reason of the farthest drop record, the removal of second copies apart.
    pub drop_reason: DropReason,
}

/// All messages of a run and what they add up to.
#[derive(Debug)]
pub struct Tracked {
    /// By flow, receiver in the order of the plan, warm-up first, then life and sequence; of a run too big for the windows
    /// in parts of which each is.
    pub messages: Vec<Message>,
    /// Passages through switches, as they ended.
    pub passages: Vec<Passage>,
    /// The measures' distributions.
    pub distributions: Distributions,
    /// The counts.
    pub summary: RunSummary,
}

/// One entry of `runs` in `tracking.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Index of the run in the plan.
    pub index: u32,
    /// Records that were judged.
    pub records: u64,
    /// How many numbers behind the newest one of its flow a message stayed open.
    #[serde(default)]
    pub window: u64,
    /// By flow number, then receiver in the order of the plan.
    pub flows: Vec<FlowSummary>,
    /// Frames that belong to no sent message.
    pub unplanned: UnplannedCounts,
    /// Records that came so long after later ones that they could not be put in their place.
    #[serde(default)]
    pub out_of_order: u64,
    /// What the instrument may have lost, as it was told.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Nodes whose clock went back while they recorded.
    #[serde(default)]
    pub clock_jumps: Vec<ClockJump>,
    /// Segment files that could not be read to their end.
    pub damaged_segments: Vec<Damage>,
}

/// A node whose clock went back by more than records are ever out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockJump {
    /// The node, index into the plan's nodes.
    pub node: u16,
    /// How often.
    pub times: u64,
    /// The farthest it went back, ps.
    pub farthest_ps: i64,
}

/// Counts of one flow at one receiver, in messages of the measured part unless said otherwise. `sent = delivered + lost + unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// The flow.
    pub flow: FlowId,
    /// The receiver; a multicast flow has an entry for each.
    pub to: NodeIndex,
    /// Messages the plan wanted sent.
    pub planned: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// At least one intact copy came where it should.
    pub delivered: u64,
    /// The others, whatever became of them.
    pub lost: u64,
    /// Delivered or lost, which nobody can tell: the instrument may have lost their records.
    #[serde(default)]
    pub unknown: u64,
    /// More than one intact copy came.
    pub duplicated: u64,
    /// Intact copies beyond the first, in copies.
    pub extra_copies: u64,
    /// Came after a message with a higher number.
    pub reordered: u64,
    /// Came after the deadline.
    pub late: u64,
    /// A copy came to an end system that was not meant to get it, whatever else happened.
    pub misdirected: u64,
    /// A damaged copy came, whatever else happened.
    pub corrupted: u64,
    /// By outcome; adds up to `sent`.
    pub outcomes: OutcomeCounts,
    /// The warm-up, which counts nowhere else.
    pub warm_up: WarmUpCounts,
    /// Messages with a drop record, by its reason.
    pub drop_reasons: BTreeMap<String, u64>,
    /// Messages known to have been sent only because somebody received them.
    pub missing_send_records: u64,
    /// Copies removed because that of the other network came first, in copies.
    pub redundant_discarded: u64,
    /// Times the sender began its numbers anew: it was restarted, or they ran over.
    #[serde(default)]
    pub restarts: u64,
    /// Records whose message was closed already, because they came so many numbers behind; they count nowhere else.
    #[serde(default)]
    pub behind_window: u64,
    /// Frames that left a switch whose coming is not remembered: of more than 8192 in one switch at a time, or more often than
    /// they came. They are in no residence time. Counted for the first receiver of a flow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpaired_departures: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Messages by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    /// [`Outcome::Delivered`]
    pub delivered: u64,
    /// [`Outcome::Duplicated`]
    pub duplicated: u64,
    /// [`Outcome::Reordered`]
    pub reordered: u64,
    /// [`Outcome::Late`]
    pub late: u64,
    /// [`Outcome::Lost`]
    pub lost: u64,
    /// [`Outcome::Misdirected`]
    pub misdirected: u64,
    /// [`Outcome::Corrupted`]
    pub corrupted: u64,
    /// [`Outcome::Unknown`]
    #[serde(default)]
    pub unknown: u64,
}

impl OutcomeCounts {
    pub(super) fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Delivered => &mut self.delivered,
            Outcome::Duplicated => &mut self.duplicated,
            Outcome::Reordered => &mut self.reordered,
            Outcome::Late => &mut self.late,
            Outcome::Lost => &mut self.lost,
            Outcome::Misdirected => &mut self.misdirected,
            Outcome::Corrupted => &mut self.corrupted,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
    }

    /// All messages.
    pub const fn total(&self) -> u64 {
        self.delivered
            + self.duplicated
            + self.reordered
            + self.late
            + self.lost
            + self.misdirected
            + self.corrupted
            + self.unknown
    }
}

/// Warm-up messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpCounts {
    /// Sent.
    pub sent: u64,
    /// Delivered.
    pub delivered: u64,
}

/// Frames that reached an application and belong to no sent message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedCounts {
    /// No probe header of ours.
    pub foreign: u64,
    /// A flow that is not in the plan.
    pub unknown_flow: u64,
    /// A flow of the plan, but a message that was never sent.
    pub never_sent: u64,
    /// Damaged so that its message cannot be told.
    pub damaged: u64,
}

impl UnplannedCounts {
    /// Adds the counts of another part of the run.
    pub(crate) fn add(&mut self, other: Self) {
        self.foreign += other.foreign;
        self.unknown_flow += other.unknown_flow;
        self.never_sent += other.never_sent;
        self.damaged += other.damaged;
    }
}
