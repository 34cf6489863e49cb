//! Results of tracking: one row per message, and the counts of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_frame::time::RunTime;
use wg_plan::{FlowId, NodeIndex};

use super::passages::Passage;
use super::series::Distributions;
use wg_record::segment::Damage;
use wg_record::{DropReason, Gap, Point, coded};

coded! {
    /// Outcome of a message; exactly one per message.
    Outcome {
        /// One intact copy arrived, in order and in time.
        Delivered = 0 "delivered",
        /// More than one intact copy arrived.
        Duplicated = 1 "duplicated",
        /// First intact copy after a message with a higher sequence number (RFC 4737, 3.3).
        Reordered = 2 "reordered",
        /// Arrival after the deadline.
        Late = 3 "late",
        /// No copy was seen at its destination, nor a damaged or misdirected one anywhere.
        Lost = 4 "lost",
        /// Not delivered; a copy arrived at another end system.
        Misdirected = 5 "misdirected",
        /// Not delivered; a damaged copy arrived (RFC 7680, 2.5: lost).
        Corrupted = 6 "corrupted",
        /// No delivery was seen, but its records may have been lost.
        Unknown = 7 "unknown",
    }
}

impl Outcome {
    /// Whether at least one intact copy reached the application at its destination.
    pub const fn is_delivered(self) -> bool {
        matches!(self, Self::Delivered | Self::Duplicated | Self::Reordered | Self::Late)
    }
}

/// The tracking history of one sent message. Times are the earliest at their point; `None` if the message was not seen
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its flow.
    pub flow: FlowId,
    /// The receiver whose copy this row follows; a multicast message has a row for each.
    pub to: NodeIndex,
    /// Its sequence number; the warm-up is numbered separately.
    pub sequence: u32,
    /// Life of its sender: counts up when the sender restarts its numbers; 65 535 for that or later.
    pub life: u16,
    /// Whether it was sent in the warm-up, and so is excluded from every measure and count.
    pub warm_up: bool,
    /// Its outcome.
    pub outcome: Outcome,
    /// Intended sending time.
    pub intended: Option<RunTime>,
    /// Time at the sender's application.
    pub tx_app: Option<RunTime>,
    /// Time at the sender's driver.
    pub tx_drv: Option<RunTime>,
    /// Time at the driver of the receiver or relay.
    pub rx_drv: Option<RunTime>,
    /// Time at the application of the receiver or relay, first intact copy.
    pub rx_app: Option<RunTime>,
    /// Time at the relay's application, sending it back.
    pub back_tx_app: Option<RunTime>,
    /// Time at the relay's driver, sending it back.
    pub back_tx_drv: Option<RunTime>,
    /// Time at the sender's driver, coming back.
    pub back_rx_drv: Option<RunTime>,
    /// Time at the sender's application, coming back, first intact copy.
    pub back_rx_app: Option<RunTime>,
    /// First bit on the wire at the sender; on network A for a flow on both.
    pub tx_wire: Option<RunTime>,
    /// First bit on the wire at the sender on network B, for a flow on both networks.
    pub tx_wire_b: Option<RunTime>,
    /// Last bit off the wire at the receiver; from network A for a flow on both.
    pub rx_wire: Option<RunTime>,
    /// Last bit off the wire at the receiver from network B, for a flow on both networks.
    pub rx_wire_b: Option<RunTime>,
    /// Frame length in bytes, DA to FCS, as seen nearest to the sender.
    pub length: u16,
    /// Number of intact copies at the final destination; 65 535 stands for that many or more.
    pub copies: u16,
    /// Number of damaged copies, limited likewise.
    pub corrupted_copies: u16,
    /// Number of copies at other end systems, limited likewise.
    pub misdirected_copies: u16,
    /// Whether it was reordered, see [`Outcome::Reordered`]; also set if the outcome is another.
    pub reordered: bool,
    /// Reordering extent in messages (RFC 4737, 4.2.1); 0 if not reordered.
    pub reorder_extent: u32,
    /// Whether it exceeded the flow's deadline; also set if the outcome is another.
    pub late: bool,
    /// Node that saw an undelivered message last on its path; `None`: no node saw it, or it was delivered.
    pub last_node: Option<u16>,
    /// Observation point there.
    pub last_point: Option<Point>,
    /// Reason of the drop farthest on the path, the removal of second copies excluded.
    pub drop_reason: DropReason,
}

/// All messages of a run and their totals.
#[derive(Debug)]
pub struct Tracked {
    /// Messages by flow, receiver in the order of the plan, warm-up first, then life and sequence; for a run too big
    /// for the windows, in parts that are each in this order.
    pub messages: Vec<Message>,
    /// Passages through switches, in the order of their ends.
    pub passages: Vec<Passage>,
    /// Distributions of the measures.
    pub distributions: Distributions,
    /// Counts of the run.
    pub summary: RunSummary,
}

/// One entry of `runs` in `tracking.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Index of the run in the plan.
    pub index: u32,
    /// Number of records judged.
    pub records: u64,
    /// Size of the window: how many numbers behind the newest one of its flow a message stayed open.
    #[serde(default)]
    pub window: u64,
    /// Counts of flows, by flow number, then receiver in the order of the plan.
    pub flows: Vec<FlowSummary>,
    /// Frames that belong to no sent message.
    pub unplanned: UnplannedCounts,
    /// Number of records that came too late to be sorted into their place.
    #[serde(default)]
    pub out_of_order: u64,
    /// Gaps in the records, as given.
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// Nodes whose clock went back during the run.
    #[serde(default)]
    pub clock_jumps: Vec<ClockJump>,
    /// Segment files that could not be read to their end.
    pub damaged_segments: Vec<Damage>,
}

/// A node whose clock went back by more than the disorder of records explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockJump {
    /// Index of the node in the plan.
    pub node: u16,
    /// Number of jumps.
    pub times: u64,
    /// Greatest jump back, ps.
    pub farthest_ps: i64,
}

/// Counts of one flow at one receiver, in measured messages unless stated otherwise. `sent = delivered + lost +
/// unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Number of the flow.
    pub flow: FlowId,
    /// The receiver; a multicast flow has an entry for each.
    pub to: NodeIndex,
    /// Messages in the plan.
    pub planned: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages of which at least one intact copy arrived at the destination.
    pub delivered: u64,
    /// Messages sent and not delivered, for whatever reason.
    pub lost: u64,
    /// Messages either delivered or lost: their records may have been lost.
    #[serde(default)]
    pub unknown: u64,
    /// Messages of which more than one intact copy arrived.
    pub duplicated: u64,
    /// Intact copies beyond the first, in copies.
    pub extra_copies: u64,
    /// Messages that arrived after one with a higher number.
    pub reordered: u64,
    /// Messages that arrived after the deadline.
    pub late: u64,
    /// Messages of which a copy arrived at another end system, whatever their outcome.
    pub misdirected: u64,
    /// Messages of which a damaged copy arrived, whatever their outcome.
    pub corrupted: u64,
    /// Messages by outcome; adds up to `sent`.
    pub outcomes: OutcomeCounts,
    /// Messages of the warm-up, which count nowhere else.
    pub warm_up: WarmUpCounts,
    /// Messages with a drop record, by its reason.
    pub drop_reasons: BTreeMap<String, u64>,
    /// Messages that are known to have been sent only because they were received.
    pub missing_send_records: u64,
    /// Copies removed as second copies, in copies.
    pub redundant_discarded: u64,
    /// Number of times the sender restarted its numbers, by a restart or an overflow.
    #[serde(default)]
    pub restarts: u64,
    /// Records whose message was closed already, because its number was too far behind; they count nowhere else.
    #[serde(default)]
    pub behind_window: u64,
    /// Frames that left a switch without a remembered arrival: beyond 8192 frames in one switch at a time, or more
    /// departures than arrivals. They have no residence time. Counted for the first receiver of a flow.
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

    /// Number of all messages.
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

/// Counts of warm-up messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpCounts {
    /// Messages sent.
    pub sent: u64,
    /// Messages delivered.
    pub delivered: u64,
}

/// Frames that reached an application and belong to no sent message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedCounts {
    /// Frames without a probe header of Wiregauge.
    pub foreign: u64,
    /// Frames of a flow that is not in the plan.
    pub unknown_flow: u64,
    /// Frames of a flow in the plan, but of a message that was never sent.
    pub never_sent: u64,
    /// Frames too damaged to identify their message.
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
