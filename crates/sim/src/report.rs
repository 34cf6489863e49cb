//! Report of a simulated run, beside its records.
//!
//! [`AgentReport`] has the shape of the message of that name in `agent.proto`, so that validity and measures are judged
//! by the same code on every bench. Figures that a simulation cannot have (stolen time, clock steps, lost timestamps)
//! are true zeros, not missing values.

use std::collections::BTreeMap;

use serde::Serialize;
use wg_core::frer::Counters;

use crate::live::Fate;

/// All reports of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SimReport {
    /// Reports of the end systems, by name.
    pub agents: BTreeMap<String, AgentReport>,
    /// Reports of the switches, by name.
    pub switches: BTreeMap<String, SwitchReport>,
    /// Sequence recovery counters of each flow whose copies were removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub frer: BTreeMap<u16, FrerReport>,
    /// Counters of stream filters, by switch, port and flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stream_filters: Vec<FilterReport>,
    /// Credits of shaped queues, by node, port and class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<CreditReport>,
    /// AS6802 clusters, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterReport>,
    /// PTP domains, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ptp_domains: Vec<PtpDomainReport>,
    /// Fates of background load between real hosts, in the order of the plan. In virtual time agents report them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Fate>,
    /// Fates of frames between real hosts that are neither messages nor load, by label less the number of loads.
    #[serde(skip)]
    pub foreign: Vec<Fate>,
    /// Number of records.
    pub records: u64,
    /// Number of events handled: how often a port waits for other frames of an instant depends on the stages.
    #[serde(skip)]
    pub events: u64,
    /// Number of frames sent over links, background load included.
    pub frame_hops: u64,
    /// Simulated time, ps.
    pub simulated_ps: i64,
}

/// The report of an end system, as its agent would send it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentReport {
    /// Name of the end system.
    pub end_system: String,
    /// Always true: a simulation that does not reach its end is an error.
    pub complete: bool,
    /// Empty.
    pub incomplete_reason: String,
    /// An entry for each protocol of the run.
    pub access_points: Vec<AccessPointReport>,
    /// An entry for each task.
    pub tasks: Vec<TaskReport>,
    /// Number of records of this end system.
    pub records_written: u64,
    /// Always 0: there is no ring.
    pub records_dropped: u64,
    /// Always 0.
    pub clock_steps: u32,
    /// Always 0.
    pub largest_clock_step_ns: i64,
    /// Always 0.
    pub involuntary_switches: u64,
    /// Always 0.
    pub steal_ns: u64,
    /// The epoch, ns.
    pub started_realtime_ns: i64,
    /// End of the run since the epoch, ns.
    pub ended_realtime_ns: i64,
    /// Empty: no privileges of a host are requested.
    pub grants: Vec<()>,
    /// Results of the background loads that lead to this end system, in the order of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<LoadReport>,
    /// Number of frames of background load that the host read and discarded.
    #[serde(skip_serializing_if = "is_zero")]
    pub load_read: u64,
    /// Number of frames that overran its receive ring or FIFO, by reason, background load included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unreceived: BTreeMap<String, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Background load at its receiver, in the shape of an agent's stream report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadReport {
    /// Always `absorb`.
    pub kind: String,
    /// Number of the load in the plan.
    pub number: usize,
    /// Always `simulated`.
    pub backend: String,
    /// Counts of the load.
    pub figures: LoadFigures,
}

/// Counts of a background load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadFigures {
    /// Frames that arrived.
    pub account: LoadAccount,
    /// Frames that did not, misdirected copies included, by cause: `link`, or the reason of the drop.
    pub lost: BTreeMap<String, u64>,
}

/// Frames of a background load that arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadAccount {
    /// Number of intact frames.
    pub received: u64,
    /// Equal to `received`, since no frame comes twice.
    pub distinct: u64,
}

/// Counters of an access point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AccessPointReport {
    /// `udp`, `raw`, `be`, `rc` or `tt`.
    pub protocol: String,
    /// Frames the host took.
    pub frames_sent: u64,
    /// Frames that reached the application.
    pub frames_received: u64,
    /// Frames that the host refused for lack of room.
    pub send_errors: u64,
    /// Always 0: an overrun of a simulated host's ring is a drop in that host's records.
    pub socket_drops: u64,
    /// Always 0.
    pub inbox_drops: u64,
    /// Always 0.
    pub missing_tx_timestamps: u64,
    /// Always 0.
    pub missing_rx_timestamps: u64,
    /// Always 0: background load goes to another port.
    pub foreign_frames: u64,
}

/// Counters of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskReport {
    /// `send`, `receive`, `relay`, `inject`, `remote-log`, `watch`.
    pub kind: String,
    /// Number of its flow; 0 without one.
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
    /// Always 0: every flow is known.
    pub unknown_flow: u64,
    /// Jumps forward in the sequence.
    pub sequence_gaps: u64,
    /// Numbers not above the one before.
    pub sequence_repeats: u64,
}

/// The report of a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SwitchReport {
    /// Its linked ports, ascending.
    pub ports: Vec<PortReport>,
}

/// Counters of a port of a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortReport {
    /// Number of the port in the plan.
    pub port: u16,
    /// Frames sent, background load included.
    pub frames: u64,
    /// Their bytes, destination address to FCS.
    pub bytes: u64,
    /// Frames dropped here by reason, background load included.
    pub dropped: BTreeMap<String, u64>,
    /// Greatest number of bytes that waited here at a time.
    pub most_waiting_bytes: u64,
}

/// Counters of the elimination of a flow's copies, warm-up included (IEEE Std 802.1CB-2017, 10.8).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FrerReport {
    /// Name of the node where copies were removed.
    pub node: String,
    /// Frames received there, by member stream.
    pub came: Vec<u64>,
    /// Counters of sequence recovery.
    pub recovery: RecoveryReport,
    /// Counters of individual recovery, by member stream; empty without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub individual: Vec<RecoveryReport>,
    /// Number of latent errors detected; absent without latent error detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latent_errors: Option<u64>,
    /// Instant of the first latent error, ps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_latent_error_ps: Option<i64>,
    /// Switches on the way where copies were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub junctions: Vec<JunctionReport>,
}

/// Counters of intermediate recovery of a flow at a switch, for one stream that leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JunctionReport {
    /// Name of the switch.
    pub node: String,
    /// The number of the member stream as which frames go on.
    pub stream: usize,
    /// Frames received, by member stream.
    pub came: Vec<u64>,
    /// Counters of sequence recovery.
    pub recovery: RecoveryReport,
    /// Counters of individual recovery, by member stream; empty without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub individual: Vec<RecoveryReport>,
}

/// Counters of a stream filter up to the end, warm-up included (IEEE Std 802.1Q-2022, 8.6.5.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilterReport {
    /// Name of the switch.
    pub node: String,
    /// Ingress port of the stream.
    pub port: u16,
    /// Number of the flow.
    pub flow: u16,
    /// Frames of the stream (`MatchingFramesCount`).
    pub matching: u64,
    /// Frames that passed filter, gate and meter.
    pub passed: u64,
    /// Frames too long, or of a stream blocked by one that was (`NotPassingSDUCount`).
    pub not_passing_sdu: u64,
    /// Frames discarded by the gate (`NotPassingFramesCount`).
    pub not_passing: u64,
    /// Frames discarded by the meter (`RedFramesCount`).
    pub red: u64,
    /// Frames that passed and were coloured yellow.
    pub yellow: u64,
}

/// Extremes of the credit of a shaped queue up to the end, warm-up included; in exact 10^-12 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CreditReport {
    /// Name of the node.
    pub node: String,
    /// Number of the port.
    pub port: u16,
    /// The traffic class.
    pub class: u8,
    /// Greatest credit.
    pub greatest_pbit: i128,
    /// First instant of the greatest credit, ps.
    pub greatest_at_ps: i64,
    /// Least credit.
    pub least_pbit: i128,
    /// First instant of the least credit, ps.
    pub least_at_ps: i64,
    /// Beginning of the interval in which the truth has every corner of the credit, ps.
    pub whole_from_ps: i64,
    /// End of that interval, ps.
    pub whole_to_ps: i64,
}

/// The counters of a recovery function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecoveryReport {
    /// Frames that passed.
    pub passed: u64,
    /// Frames discarded as repeated or rogue.
    pub discarded: u64,
    /// Discarded frames that were rogue.
    pub rogue: u64,
    /// Passed frames that were out of order.
    pub out_of_order: u64,
    /// Numbers that never came.
    pub lost: u64,
    /// Frames without a number.
    pub tagless: u64,
    /// Number of expiries of the reset timer.
    pub resets: u64,
}

impl From<Counters> for RecoveryReport {
    fn from(counters: Counters) -> Self {
        let Counters { passed, discarded, rogue, out_of_order, lost, tagless, resets } = counters;
        Self { passed, discarded, rogue, out_of_order, lost, tagless, resets }
    }
}

/// The report of an AS6802 cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterReport {
    /// Synchronisation domain of its control frames.
    pub domain: u8,
    /// Synchronisation priority of its control frames.
    pub priority: u8,
    /// Upper bound of the differences of its clocks, ps.
    pub precision_bound_ps: i64,
    /// Greatest difference of its correct, synchronised clocks once all were synchronised, ps.
    pub precision_ps: Option<i64>,
    /// Upper bound of the startup time, from the last device's power-up, ps.
    pub startup_bound_ps: i64,
    /// Greatest startup time, ps; `None` if the correct devices were never all synchronised.
    pub startup_ps: Option<i64>,
    /// Devices, by name.
    pub devices: BTreeMap<String, SynchroniserReport>,
}

/// The report of a device of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SynchroniserReport {
    /// `synchronisation-master`, `synchronisation-client` or `compression-master`.
    pub part: String,
    /// Whether the plan makes it fail.
    pub faulty: bool,
    /// State at the end, by its name in the standard.
    pub state: String,
    /// Whether it was synchronised at the end.
    pub synchronised: bool,
    /// Instant at which it was synchronised first, ps of the run.
    pub synchronised_at_ps: Option<i64>,
    /// Number of losses of synchronisation.
    pub losses: u64,
    /// Number of clique detections: synchronous, asynchronous and relative.
    pub cliques: [u64; 3],
    /// Masters in schedule at the end, a bit for each.
    pub membership: u32,
}

/// The report of a PTP domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PtpDomainReport {
    /// domainNumber.
    pub number: u8,
    /// Greatest offset at which a clock counts as synchronised, ps.
    pub max_offset_ps: i64,
    /// Name of the grandmaster that most clocks followed last.
    pub grandmaster: Option<String>,
    /// Number of changes of the grandmaster after all clocks were synchronised first.
    pub grandmaster_changes: u64,
    /// Instant at which all its clocks were synchronised first, ps of the run; `None` if they never were.
    pub synchronised_at_ps: Option<i64>,
    /// The greatest difference of its synchronised clocks from then on, ps.
    pub precision_ps: Option<i64>,
    /// Clocks, by name.
    pub clocks: BTreeMap<String, PtpClockReport>,
}

/// The report of a PTP clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PtpClockReport {
    /// `ordinary-clock`, `boundary-clock` or `transparent-clock`.
    pub part: String,
    /// States of its ports at the end, by their names in the standard and by port number.
    pub states: BTreeMap<u16, String>,
    /// Name of its grandmaster at the end; `None` for a transparent clock.
    pub grandmaster: Option<String>,
    /// Whether it was synchronised at the end.
    pub synchronised: bool,
    /// Instant at which it was synchronised first, ps of the run.
    pub synchronised_at_ps: Option<i64>,
    /// Number of losses of synchronisation.
    pub losses: u64,
    /// The greatest offset from the grandmaster while it was synchronised, ps.
    pub offset_ps: Option<i64>,
    /// Greatest error against true time in the measured part, ps.
    pub error_ps: i64,
    /// Greatest difference from the grandmaster of its domain in the measured part, synchronised or not, ps; from true
    /// time while there was none.
    pub apart_ps: i64,
    /// Number of corrections by its filter that its clock refused.
    pub refused: u64,
}
