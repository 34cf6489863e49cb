//! Clusters of devices that synchronise by SAE AS6802.

use serde::{Deserialize, Serialize};
use wg_core::as6802::{Behaviour, Parameters};
use wg_frame::time::Span;

use super::Hop;
use crate::network::NodeIndex;

/// A cluster: its devices, and the ways between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Parameters that all its devices share.
    pub parameters: Parameters,
    /// Bound of the difference between synchronised clocks.
    pub precision_bound: Span,
    /// Bound of the time from the last device being powered to all devices being synchronised.
    pub startup_bound: Span,
    /// Devices are powered at times drawn from the beginning of the run up to this; zero: all at its beginning.
    pub powered_within: Span,
    /// Synchronisation masters, in the order of their bits of the membership.
    pub masters: Vec<ClusterMaster>,
    /// Redundant channels, each with its compression master.
    pub channels: Vec<ClusterChannel>,
    /// Synchronisation clients.
    pub clients: Vec<NodeIndex>,
}

/// A synchronisation master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMaster {
    /// The end system.
    pub node: NodeIndex,
    /// How it behaves: `correct`, `silent`, or `early`, `late` or `inconsistent` with a time.
    #[serde(default)]
    pub behaviour: Behaviour,
}

/// A redundant channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterChannel {
    /// Its compression master, a switch.
    pub compression_master: NodeIndex,
    /// Links from the compression master to all other devices, each once; masters send the other way.
    pub ways: Vec<Hop>,
}

impl Cluster {
    /// Numbers of all devices of the cluster.
    pub fn devices(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let masters = self.masters.iter().map(|master| master.node);
        let compression = self.channels.iter().map(|channel| channel.compression_master);
        masters.chain(compression).chain(self.clients.iter().copied())
    }
}
