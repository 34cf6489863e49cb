//! What a simulated run says of itself beside its records.
//!
//! [`AgentReport`] has the shape of the message of that name in `agent.proto`, so that validity and measures are judged
//! by the same code on every bench. What a simulation cannot have (stolen time, clock steps, lost timestamps) is zero
//! because it is, not because it was left out.

use serde::Serialize;
use std::collections::BTreeMap;

/// All reports of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SimReport {
    /// By end system.
    pub agents: BTreeMap<String, AgentReport>,
    /// By switch.
    pub switches: BTreeMap<String, SwitchReport>,
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
    /// Frames the receive ring had no room for.
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
    /// `send`, `receive`, `relay`, `inject`, `watch`.
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
