//! Gaps in the records, and the messages whose outcome they leave open.
//!
//! A message without a record of its arrival is lost only if its arrival would have been recorded. If the records of
//! its receiver have a gap at the time at which it should have come, its outcome is unknown.

use serde::{Deserialize, Serialize};
use wg_plan::{FlowId, NodeIndex};

/// An interval in which the instrument may have lost records at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Index of the node in the plan; `None`: all nodes.
    #[serde(default)]
    pub node: Option<NodeIndex>,
    /// Flows concerned; empty: all flows.
    #[serde(default)]
    pub flows: Vec<FlowId>,
    /// Whether it lost frames as well, so that a relay did not send them back.
    #[serde(default)]
    pub frames: bool,
    /// Beginning, ps after the epoch; `None`: unknown, before everything.
    #[serde(default)]
    pub from_ps: Option<i64>,
    /// End, ps after the epoch; `None`: unknown, after everything.
    #[serde(default)]
    pub to_ps: Option<i64>,
    /// No interval, but the number of measured messages that the sender of these flows reports as handed over, some of
    /// which may have no record.
    #[serde(default)]
    pub handed_over: Option<u32>,
    /// Cause in words, for a reader.
    #[serde(default)]
    pub cause: String,
}
