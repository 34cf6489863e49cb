//! What the instrument may have lost, and which messages that leaves in doubt.
//!
//! A message whose arrival nobody recorded is lost only where somebody would have recorded it. Where the records of its
//! receiver have a gap at the time it should have come, nobody knows what became of it.

use serde::{Deserialize, Serialize};
use wg_plan::{FlowId, NodeIndex};

/// A stretch of time in which the instrument may have lost something at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The node, index into the plan's nodes; all where none is named.
    #[serde(default)]
    pub node: Option<NodeIndex>,
    /// The flows it concerns; all where none is named.
    #[serde(default)]
    pub flows: Vec<FlowId>,
    /// Whether it lost frames as well, so that a relay did not send them back.
    #[serde(default)]
    pub frames: bool,
    /// When it began, ps after the epoch; before everything where that is not known …
    #[serde(default)]
    pub from_ps: Option<i64>,
    /// … and when it ended; after everything where that is not known.
    #[serde(default)]
    pub to_ps: Option<i64>,
    /// No stretch, but what the sender of these flows says: so many messages of the measured part it handed over, of which
    /// some may have no record.
    #[serde(default)]
    pub handed_over: Option<u32>,
    /// What happened, for a reader.
    #[serde(default)]
    pub cause: String,
}
