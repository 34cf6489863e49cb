//! What a simulated run says of itself beside its records.
//!
//! [`AgentReport`] has the shape of the message of that name in `agent.proto`, so that validity and measures are judged
//! by the same code on every bench. What a simulation cannot have (stolen time, clock steps, lost timestamps) is zero
//! because it is, not because it was left out.

use std::collections::BTreeMap;

use serde::Serialize;
use wg_core::frer::Counters;

use crate::live::Fate;

/// All reports of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SimReport {
    /// By end system.
    pub agents: BTreeMap<String, AgentReport>,
    /// By switch.
    pub switches: BTreeMap<String, SwitchReport>,
    /// By flow whose copies were removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub frer: BTreeMap<u16, FrerReport>,
    /// What stream filters counted, by switch, port and flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stream_filters: Vec<FilterReport>,
    /// Credits of shaped queues, by node, port and class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<CreditReport>,
    /// Clusters that synchronise by AS6802, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterReport>,
    /// Domains that synchronise by PTP, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ptp_domains: Vec<PtpDomainReport>,
    /// Between real hosts: what became of background load, in the order of the plan. In virtual time agents say it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Fate>,
    /// Between real hosts: what became of frames that are neither messages nor load, by label less the number of loads.
    #[serde(skip)]
    pub foreign: Vec<Fate>,
    /// Records that were made.
    pub records: u64,
    /// Events that were handled.
    pub events: u64,
    /// Frames that were sent over a link, background load included.
    pub frame_hops: u64,
    /// Simulated time, ps.
    pub simulated_ps: i64,
}

/// An end system, as its agent would report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentReport {
    /// Its name.
    pub end_system: String,
    /// Always: a simulation that does not come to its end is an error.
    pub complete: bool,
    /// Empty.
    pub incomplete_reason: String,
    /// For each protocol of the run.
    pub access_points: Vec<AccessPointReport>,
    /// For each task.
    pub tasks: Vec<TaskReport>,
    /// Records of this end system.
    pub records_written: u64,
    /// None: there is no ring.
    pub records_dropped: u64,
    /// None.
    pub clock_steps: u32,
    /// None.
    pub largest_clock_step_ns: i64,
    /// None.
    pub involuntary_switches: u64,
    /// None.
    pub steal_ns: u64,
    /// The epoch.
    pub started_realtime_ns: i64,
    /// The end of the run, from the epoch.
    pub ended_realtime_ns: i64,
    /// Nothing was asked of a host.
    pub grants: Vec<()>,
    /// Of each background load that leads to this end system what became of it, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<LoadReport>,
    /// Frames of background load that the host read and discarded.
    #[serde(skip_serializing_if = "is_zero")]
    pub load_read: u64,
    /// Frames its receive ring or FIFO had no room for by reason, background load included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreceived: BTreeMap<String, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Background load where it is to arrive, in the shape of what an agent says of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadReport {
    /// `absorb`.
    pub kind: String,
    /// Its number in the plan.
    pub number: usize,
    /// `simulated`.
    pub backend: String,
    /// What was counted.
    pub figures: LoadFigures,
}

/// What was counted of a background load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadFigures {
    /// What arrived.
    pub account: LoadAccount,
    /// What did not, copies that went astray included: `link`, or the reason of the drop.
    pub lost: BTreeMap<String, u64>,
}

/// Frames of a background load that arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadAccount {
    /// Intact frames.
    pub received: u64,
    /// Those: none comes twice.
    pub distinct: u64,
}

/// An access point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AccessPointReport {
    /// `udp`, `raw`, `be`, `rc` or `tt`.
    pub protocol: String,
    /// Frames the host took.
    pub frames_sent: u64,
    /// Frames that reached the application.
    pub frames_received: u64,
    /// Frames the host had no room for on the way down.
    pub send_errors: u64,
    /// None: what the ring of a simulated host has no room for is lost in that host, and its records say so.
    pub socket_drops: u64,
    /// None.
    pub inbox_drops: u64,
    /// None.
    pub missing_tx_timestamps: u64,
    /// None.
    pub missing_rx_timestamps: u64,
    /// None reach it: background load goes to another port.
    pub foreign_frames: u64,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskReport {
    /// `send`, `receive`, `relay`, `inject`, `remote-log`, `watch`.
    pub kind: String,
    /// Its flow; 0 without one.
    pub flow: u32,
    /// Messages it should have handled.
    pub planned: u64,
    /// Messages it handled.
    pub done: u64,
    /// Sends more than a tenth of the period after their intended time.
    pub late: u64,
    /// Inject: bytes on the wire, preamble and gap included.
    pub wire_bytes: u64,
    /// Damaged messages.
    pub crc_errors: u64,
    /// Intact messages for another end system.
    pub wrong_destination: u64,
    /// None: every flow is known.
    pub unknown_flow: u64,
    /// Jumps forward in the sequence.
    pub sequence_gaps: u64,
    /// Numbers not above the one before.
    pub sequence_repeats: u64,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SwitchReport {
    /// Its linked ports, ascending.
    pub ports: Vec<PortReport>,
}

/// A port of a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortReport {
    /// Its number in the plan.
    pub port: u16,
    /// Frames sent, background load included.
    pub frames: u64,
    /// Their bytes, destination address to FCS.
    pub bytes: u64,
    /// Frames dropped here by reason, background load included.
    pub dropped: BTreeMap<String, u64>,
    /// Most bytes that waited here at a time.
    pub most_waiting_bytes: u64,
}

/// What the elimination of a flow's copies counted, warm-up included: the counters of IEEE Std 802.1CB-2017, 10.8.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FrerReport {
    /// The node where copies were removed.
    pub node: String,
    /// Frames that came there, by member stream.
    pub came: Vec<u64>,
    /// Sequence recovery.
    pub recovery: RecoveryReport,
    /// Individual recovery, by member stream; empty where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub individual: Vec<RecoveryReport>,
    /// How often latent error detection found an error; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latent_errors: Option<u64>,
    /// When it first did, ps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_latent_error_ps: Option<i64>,
    /// Where copies were removed on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub junctions: Vec<JunctionReport>,
}

/// What intermediate recovery of a flow counted at a switch, of one stream that leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JunctionReport {
    /// The switch.
    pub node: String,
    /// The number of the member stream as which frames go on.
    pub stream: usize,
    /// Frames that came, by member stream.
    pub came: Vec<u64>,
    /// Sequence recovery.
    pub recovery: RecoveryReport,
    /// Individual recovery, by member stream; empty where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub individual: Vec<RecoveryReport>,
}

/// What the filter of a stream counted up to the end, warm-up included: the counters of IEEE Std 802.1Q-2022, 8.6.5.3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilterReport {
    /// The switch.
    pub node: String,
    /// The port by which the stream enters.
    pub port: u16,
    /// The flow it is of.
    pub flow: u16,
    /// Frames of the stream (`MatchingFramesCount`).
    pub matching: u64,
    /// Frames that passed all of it.
    pub passed: u64,
    /// Too long, or of a stream that is blocked because one was (`NotPassingSDUCount`).
    pub not_passing_sdu: u64,
    /// Discarded by the gate (`NotPassingFramesCount`).
    pub not_passing: u64,
    /// Discarded by the meter (`RedFramesCount`).
    pub red: u64,
    /// Of those that passed, yellow.
    pub yellow: u64,
}

/// What the credit of a shaped queue was up to the end, warm-up included; in 10^-12 bits, exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CreditReport {
    /// The node.
    pub node: String,
    /// The port.
    pub port: u16,
    /// The traffic class.
    pub class: u8,
    /// The greatest it was.
    pub greatest_pbit: i128,
    /// When first, ps.
    pub greatest_at_ps: i64,
    /// The least it was.
    pub least_pbit: i128,
    /// When first, ps.
    pub least_at_ps: i64,
    /// From here, ps, truth has every corner of it.
    pub whole_from_ps: i64,
    /// To here.
    pub whole_to_ps: i64,
}

/// The counters of a recovery function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecoveryReport {
    /// Frames that passed.
    pub passed: u64,
    /// Frames discarded as repeated or rogue.
    pub discarded: u64,
    /// Of those, rogue.
    pub rogue: u64,
    /// Of those passed, out of order.
    pub out_of_order: u64,
    /// Numbers that never came.
    pub lost: u64,
    /// Frames without a number.
    pub tagless: u64,
    /// How often the reset timer ran out.
    pub resets: u64,
}

impl From<Counters> for RecoveryReport {
    fn from(counters: Counters) -> Self {
        let Counters { passed, discarded, rogue, out_of_order, lost, tagless, resets } = counters;
        Self { passed, discarded, rogue, out_of_order, lost, tagless, resets }
    }
}

/// A cluster that synchronises by AS6802.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterReport {
    /// Of its frames.
    pub domain: u8,
    /// Of its frames.
    pub priority: u8,
    /// What the differences of its clocks are to stay below, ps.
    pub precision_bound_ps: i64,
    /// The greatest difference of its correct, synchronised clocks once all were, ps.
    pub precision_ps: Option<i64>,
    /// The longest it may take from the last device having power, ps.
    pub startup_bound_ps: i64,
    /// The longest it took, ps; nothing where not all correct devices were synchronised at a time.
    pub startup_ps: Option<i64>,
    /// By name.
    pub devices: BTreeMap<String, SynchroniserReport>,
}

/// A device of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SynchroniserReport {
    /// `synchronisation-master`, `synchronisation-client` or `compression-master`.
    pub part: String,
    /// It fails on purpose.
    pub faulty: bool,
    /// Its state at the end, as the standard names it.
    pub state: String,
    /// It was synchronised at the end.
    pub synchronised: bool,
    /// When it was synchronised first, ps of the run.
    pub synchronised_at_ps: Option<i64>,
    /// How often it was no longer.
    pub losses: u64,
    /// How often it found itself in the wrong clique: synchronous, asynchronous and relative detection.
    pub cliques: [u64; 3],
    /// Masters in schedule at the end, a bit for each.
    pub membership: u32,
}

/// A domain that synchronises by PTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PtpDomainReport {
    /// domainNumber.
    pub number: u8,
    /// Offsets beyond are no synchronisation, ps.
    pub max_offset_ps: i64,
    /// The grandmaster that most clocks followed last, by name.
    pub grandmaster: Option<String>,
    /// How often it was another one, after all clocks were synchronised first.
    pub grandmaster_changes: u64,
    /// When all its clocks were synchronised first, ps of the run; nothing where they never were at a time.
    pub synchronised_at_ps: Option<i64>,
    /// The greatest difference of its synchronised clocks from then on, ps.
    pub precision_ps: Option<i64>,
    /// By name.
    pub clocks: BTreeMap<String, PtpClockReport>,
}

/// A clock of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PtpClockReport {
    /// `ordinary-clock`, `boundary-clock` or `transparent-clock`.
    pub part: String,
    /// States of its ports at the end, as the standard names them, by port number.
    pub states: BTreeMap<u16, String>,
    /// The grandmaster it has at the end, by name; nothing for a transparent clock.
    pub grandmaster: Option<String>,
    /// It was synchronised at the end.
    pub synchronised: bool,
    /// When it was synchronised first, ps of the run.
    pub synchronised_at_ps: Option<i64>,
    /// How often it was no longer.
    pub losses: u64,
    /// The greatest offset from the grandmaster while it was synchronised, ps.
    pub offset_ps: Option<i64>,
    /// The greatest that its clock was off by from true time in the measured part, ps.
    pub error_ps: i64,
    /// The greatest that it was off by from the grandmaster of its domain in the measured part, synchronised or not; from true
    /// time while there was none. ps.
    pub apart_ps: i64,
    /// How often its clock could not be steered as its filter wanted.
    pub refused: u64,
}
