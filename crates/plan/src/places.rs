//! What names a place in a network, and a flow.

use serde::{Deserialize, Serialize};

/// Index of a node in [`Network::nodes`].
pub type NodeIndex = u16;

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attachment {
    /// The node.
    pub node: NodeIndex,
    /// Its port, counted from 1. An end system has port 1, and port 2 where it is on both networks.
    pub port: u16,
}

/// Number of a flow as the test gives it (1 to [`LAST_FLOW`]); it travels in the probe header.
pub type FlowId = u16;

/// The highest number of a flow. The next one stands for frames that are of none.
pub const LAST_FLOW: FlowId = 65_534;

/// Ports of one switch.
pub(crate) const MOST_PORTS: u16 = 1_024;
