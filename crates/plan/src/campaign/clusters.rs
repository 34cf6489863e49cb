//! Clusters of devices that synchronise by SAE AS6802.

use serde::{Deserialize, Serialize};
use wg_core::as6802::{Behaviour, Parameters};
use wg_frame::time::Span;

use super::Hop;
use crate::network::NodeIndex;

/// A cluster: its devices, and the ways between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// What all its devices know.
    pub parameters: Parameters,
    /// The greatest difference of synchronised clocks that is to be.
    pub precision_bound: Span,
    /// The longest from the last device having power to all being synchronised.
    pub startup_bound: Span,
    /// Devices have power at a time drawn from the beginning of the run up to this; nothing: at its beginning.
    pub powered_within: Span,
    /// Synchronisation masters, in the order of their bits.
    pub masters: Vec<ClusterMaster>,
    /// Compression masters by channel.
    pub channels: Vec<ClusterChannel>,
    /// Synchronisation clients.
    pub clients: Vec<NodeIndex>,
}

/// A synchronisation master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMaster {
    /// The end system.
    pub node: NodeIndex,
    /// How it behaves.
    #[serde(default)]
    pub behaviour: Behaviour,
}

/// A redundant channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterChannel {
    /// Its compression master, a switch.
    pub compression_master: NodeIndex,
    /// From the compression master to all other devices, each link once; masters send the other way.
    pub ways: Vec<Hop>,
}

impl Cluster {
    /// Every device.
    pub fn devices(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let masters = self.masters.iter().map(|master| master.node);
        let compression = self.channels.iter().map(|channel| channel.compression_master);
        masters.chain(compression).chain(self.clients.iter().copied())
    }
}
