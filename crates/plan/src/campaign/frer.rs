//! Frame replication and elimination of a flow (IEEE Std 802.1CB-2017): where, and how copies are told.

use serde::{Deserialize, Serialize};
use wg_core::frer::{Algorithm, LatentErrorConfig, RecoveryConfig};
use wg_frame::time::Span;

use super::flows::{Flow, FlowId};
use crate::network::{MacAddress, NodeIndex};

/// What is done to the frames of a flow whose routes are those of its member streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frer {
    /// Where its frames are numbered and copied: its sender, or a switch that all routes pass before they part.
    pub replicate_at: NodeIndex,
    /// Where the copies are removed: its receiver, or a switch that all routes pass after they met.
    pub eliminate_at: NodeIndex,
    /// Sequence numbers that vector recovery remembers; absent for match recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Any sequence number is accepted after so long without one that passed.
    pub reset: Span,
    /// How repetitions within a member stream are told before the streams meet, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub individual: Option<IndividualRecovery>,
    /// Whether missing copies are noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent_errors: Option<LatentErrorConfig>,
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
    /// How copies are told.
    pub fn recovery(&self) -> RecoveryConfig {
        let vector = |history_length| Algorithm::Vector { history_length };
        let algorithm = self.history_length.map_or(Algorithm::Match, vector);
        RecoveryConfig { algorithm, reset: self.reset, take_no_sequence: false, individual: false }
    }

    /// How repetitions within a member stream are told, where they are.
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

    /// The address that frames of member stream `member` of `flow`, counted from 0, have on each link of its route.
    pub fn addresses(&self, flow: &Flow, member: usize) -> Vec<MacAddress> {
        let Some(route) = flow.routes.get(member) else { return Vec::new() };
        let mut own = 0;
        let address = |hop: &super::Hop| {
            if hop.from.node == self.replicate_at {
                own = member + 1;
            }
            if hop.from.node == self.eliminate_at {
                own = 0;
            }
            Self::address(flow.id, own)
        };
        route.hops.iter().map(address).collect()
    }
}
