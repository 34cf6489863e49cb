//! Reasons why a simulation could not be run to its end.

use wg_plan::NodeIndex;
use wg_record::RecordError;

/// Each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The plan contradicts itself. A compiled plan does not; this one was built or changed by other means.
    #[error("the plan cannot be simulated: {problem}")]
    Plan {
        /// The contradiction, with its place.
        problem: String,
    },
    /// Records could not be written: a fault of the environment.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The observer of the simulation asked it to stop.
    #[error("the simulation was stopped before its end")]
    Stopped,
    /// `statime` panicked at this node.
    #[error("the PTP stack of node {0} failed; this is a defect of statime, or of how wiregauge drives it")]
    PtpStack(NodeIndex),
    /// A simulating thread ended without a result: our fault.
    #[error("a simulating thread failed; this is a defect of wiregauge")]
    Defect,
}

impl SimError {
    pub(crate) fn plan(problem: impl Into<String>) -> Self {
        Self::Plan { problem: problem.into() }
    }
}
