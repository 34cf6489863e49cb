//! Routes: the directed links that frames take, resolved once. Simulator, tracking and views read them.

use serde::{Deserialize, Serialize};

use crate::network::{Attachment, NetworkId, NodeIndex};

/// One direction of a link: the port a frame leaves by and the port it comes in by.
///
/// In JSON five numbers: link, node and port it leaves, node and port it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u32, NodeIndex, u16, NodeIndex, u16)", into = "(u32, NodeIndex, u16, NodeIndex, u16)")]
pub struct Hop {
    /// Index into [`Network::links`](crate::Network::links).
    pub link: u32,
    /// The port that a frame leaves by.
    pub from: Attachment,
    /// The port that a frame enters by.
    pub to: Attachment,
}

impl Hop {
    /// The other direction of the same link.
    pub const fn reversed(self) -> Self {
        Self { link: self.link, from: self.to, to: self.from }
    }
}

impl From<(u32, NodeIndex, u16, NodeIndex, u16)> for Hop {
    fn from((link, out, out_port, into, into_port): (u32, NodeIndex, u16, NodeIndex, u16)) -> Self {
        let [from, to] = [(out, out_port), (into, into_port)].map(|(node, port)| Attachment { node, port });
        Self { link, from, to }
    }
}

impl From<Hop> for (u32, NodeIndex, u16, NodeIndex, u16) {
    fn from(Hop { link, from, to }: Hop) -> Self {
        (link, from.node, from.port, to.node, to.port)
    }
}

/// From one end system to another through one network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The network that it leads through.
    #[serde(default, skip_serializing_if = "NetworkId::is_a")]
    pub network: NetworkId,
    /// Directed links, the sender's own first; at least one.
    pub hops: Vec<Hop>,
}

impl Route {
    /// The sender; `None` for a route without hops, which no compiled plan has.
    pub fn sender(&self) -> Option<NodeIndex> {
        self.hops.first().map(|hop| hop.from.node)
    }

    /// The receiver; `None` for a route without hops.
    pub fn receiver(&self) -> Option<NodeIndex> {
        self.hops.last().map(|hop| hop.to.node)
    }

    /// The nodes on the route, the sender first and the receiver last.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.sender().into_iter().chain(self.hops.iter().map(|hop| hop.to.node))
    }

    /// The same links the other way.
    pub fn reversed(&self) -> Self {
        Self { network: self.network, hops: self.hops.iter().rev().map(|hop| hop.reversed()).collect() }
    }
}
