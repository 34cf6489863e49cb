//! Frame replication and elimination of a flow (IEEE Std 802.1CB-2017): where, and how copies are told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wg_core::frer::{Algorithm, LatentErrorConfig, RecoveryConfig};
use wg_frame::time::Span;

use super::routes::{Hop, Route};
use crate::network::MacAddress;
use crate::places::{FlowId, NodeIndex};

/// Frame replication and elimination (IEEE Std 802.1CB); the routes of the flow are those of its member streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frer {
    /// Node that numbers and copies its frames: its sender, or a switch that all routes pass before they part.
    pub replicate_at: NodeIndex,
    /// Node that removes the copies: its receiver, or a switch that all routes pass after they met.
    pub eliminate_at: NodeIndex,
    /// Whether switches on the way remove copies where routes meet and make them where routes part, so that each link
    /// carries one copy.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub intermediate: bool,
    /// Length of the history of vector recovery, in sequence numbers; absent: match recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Time without a passed frame after which any sequence number is accepted.
    pub reset: Span,
    /// Algorithm of individual recovery within each member stream; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub individual: Option<IndividualRecovery>,
    /// Latent error detection; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent_errors: Option<LatentErrorConfig>,
}

/// What a switch on the way of a flow's member streams does: of each stream that leaves, those that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamJunction {
    /// Numbers of member streams: the one that leaves, and those that come for it, ascending.
    pub leaves: BTreeMap<usize, BTreeSet<usize>>,
}

/// The algorithm of individual recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndividualRecovery {
    /// Match recovery.
    Match,
    /// Vector recovery, with the history of sequence recovery.
    Vector,
}

impl Frer {
    /// Configuration of sequence recovery.
    pub fn recovery(&self) -> RecoveryConfig {
        let vector = |history_length| Algorithm::Vector { history_length };
        let algorithm = self.history_length.map_or(Algorithm::Match, vector);
        RecoveryConfig { algorithm, reset: self.reset, take_no_sequence: false, individual: false }
    }

    /// Configuration of individual recovery; `None`: there is none.
    pub fn individual_recovery(&self) -> Option<RecoveryConfig> {
        let shared = RecoveryConfig { individual: true, ..self.recovery() };
        self.individual.map(|individual| match individual {
            IndividualRecovery::Match => RecoveryConfig { algorithm: Algorithm::Match, ..shared },
            IndividualRecovery::Vector => shared,
        })
    }

    /// Most member streams of a flow.
    pub const MOST_MEMBERS: usize = 8;

    /// The destination address of a stream, a locally assigned group: of member stream 1, 2, … of the flow, or with 0 of
    /// the flow before it is copied and after the copies are removed.
    #[expect(clippy::cast_possible_truncation, reason = "a flow has at most 8 member streams")]
    pub const fn address(flow: FlowId, member: usize) -> MacAddress {
        let [high, low] = flow.to_be_bytes();
        // "FR" behind the bits that say locally assigned and group.
        MacAddress([0x03, 0x46, 0x52, member as u8, high, low])
    }

    /// The stream that frames of a route are of on each of its links: 0 before they are copied and after the copies are removed, in
    /// between the number of the route, from 1. With intermediate recovery one stream has the frames of all routes on a link,
    /// and the number of the first of them.
    pub(super) fn streams(&self, routes: &[Route], route: &Route, member: usize) -> Vec<usize> {
        let mut is_copied = false;
        let stream = |hop: &Hop| {
            is_copied |= hop.from.node == self.replicate_at;
            is_copied &= hop.from.node != self.eliminate_at;
            let shares = |other: &Route| self.intermediate && other.hops.contains(hop);
            let first = routes.iter().position(shares).unwrap_or(member);
            if is_copied { first + 1 } else { 0 }
        };
        route.hops.iter().map(stream).collect()
    }

    /// Numbers of the streams that leave the node that makes copies.
    pub fn made(&self, routes: &[Route]) -> BTreeSet<usize> {
        self.on_links(routes)
            .filter(|(hop, _)| hop.from.node == self.replicate_at)
            .map(|(_, own)| own)
            .collect()
    }

    /// Numbers of the streams that arrive at the node that removes copies.
    pub fn removed(&self, routes: &[Route]) -> BTreeSet<usize> {
        self.on_links(routes)
            .filter(|(hop, _)| hop.to.node == self.eliminate_at)
            .map(|(_, own)| own)
            .collect()
    }

    /// Work of the switches between the node that makes copies and the node that removes them.
    pub fn junctions(&self, routes: &[Route]) -> BTreeMap<NodeIndex, StreamJunction> {
        let mut all: BTreeMap<NodeIndex, StreamJunction> = BTreeMap::new();
        for (member, route) in routes.iter().enumerate() {
            let streams = self.streams(routes, route, member);
            for (hop, pair) in route.hops.iter().zip(streams.windows(2)) {
                if let [into, out] = *pair
                    && into > 0
                    && out > 0
                {
                    let here = all.entry(hop.to.node).or_default();
                    here.leaves.entry(out).or_default().insert(into);
                }
            }
        }
        all.retain(|_, junction| {
            let comes: usize = junction.leaves.values().map(BTreeSet::len).sum();
            // One stream comes for each that leaves, and leaves as one.
            let plain = junction.leaves.values().flatten().collect::<BTreeSet<_>>().len();
            comes > plain || comes > junction.leaves.len()
        });
        all
    }

    /// Every link of every route with the stream there.
    fn on_links<'a>(&'a self, routes: &'a [Route]) -> impl Iterator<Item = (&'a Hop, usize)> {
        routes
            .iter()
            .enumerate()
            .flat_map(|(member, route)| route.hops.iter().zip(self.streams(routes, route, member)))
    }
}
