//! What became of frames that are no messages of the test.

use std::collections::BTreeMap;

use serde::Serialize;

/// Labels there are for frames that are neither messages nor background load.
pub const MOST_FOREIGN: usize = 256;

/// What became of the frames of one label: of a background load, or of somebody else's of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Frames that came to a card.
    pub entered: u64,
    /// Frames that cards handed to hosts, every copy.
    pub left: u64,
    /// Frames and copies of them that were lost, by how.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<&'static str, u64>,
    /// For how long they had lines and media of hubs, all together, ps; attempts that ended in a collision are in it.
    #[serde(skip)]
    pub line_ps: i64,
}
