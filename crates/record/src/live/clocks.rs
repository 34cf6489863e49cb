//! What the truth has told of clocks so far.

use std::collections::BTreeMap;

use serde::Serialize;
use wg_plan::NodeIndex;

use crate::{Truth, TruthKind};

/// The last that is known of a node's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockState {
    /// The node.
    pub node: NodeIndex,
    /// Latest entry, ns of the run.
    pub at_ns: i64,
    /// Its reading minus true time, ns; `None` until it was read in its present state.
    pub offset_ns: Option<i64>,
    /// State of the device in its AS6802 cluster ([`TruthKind::SyncState`]).
    pub sync_state: Option<i64>,
    /// State of each of its PTP ports ([`TruthKind::PtpState`]), by number.
    pub ptp_states: BTreeMap<u16, i64>,
    /// Node of its PTP grandmaster.
    pub grandmaster: Option<i64>,
}

/// Clocks of all nodes of which anything was told.
#[derive(Clone, Debug, Default)]
pub struct ClockStates(BTreeMap<NodeIndex, ClockState>);

impl ClockStates {
    /// Takes an entry; those that say nothing of a clock are passed over.
    pub fn take(&mut self, truth: &Truth) {
        let of_clocks = matches!(
            truth.kind,
            TruthKind::ClockOffset | TruthKind::SyncState | TruthKind::PtpState | TruthKind::PtpGrandmaster
        );
        if !of_clocks {
            return;
        }
        let state = self
            .0
            .entry(truth.node)
            .or_insert_with(|| ClockState { node: truth.node, ..ClockState::default() });
        state.at_ns = state.at_ns.max(truth.time.as_picos() / 1_000);
        if truth.kind == TruthKind::ClockOffset {
            state.offset_ns = Some(truth.value / 1_000);
            return;
        }
        state.offset_ns = None;
        match truth.kind {
            TruthKind::SyncState => state.sync_state = Some(truth.value),
            TruthKind::PtpState => drop(state.ptp_states.insert(truth.port, truth.value)),
            _ => state.grandmaster = Some(truth.value),
        }
    }

    /// All of them, by node.
    pub fn all(&self) -> Vec<ClockState> {
        self.0.values().cloned().collect()
    }
}
