//! Outcomes of frames that are not messages of the test.

use std::collections::BTreeMap;

use serde::Serialize;

/// Number of labels for frames that are neither messages nor background load.
pub const MOST_FOREIGN: usize = 256;

/// Outcomes of the frames of one label: those of a background load, or foreign frames of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Frames that arrived at an interface card.
    pub entered: u64,
    /// Copies that interface cards handed to hosts.
    pub left: u64,
    /// Lost copies, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<&'static str, u64>,
    /// Total time on links and on the media of hubs, attempts that ended in a collision included, ps.
    #[serde(skip)]
    pub line_ps: i64,
}
