//! Live figures of a run: the record writer's records, summed up once a second for the testmaster; the first figures are
//! sent as soon as there is data.
//!
//! The record writer has the lowest priority, and all work here is done on its thread: no other thread counts, waits or
//! allocates for it. Records lost before they reached the writer are missing and reported as such.

use std::sync::{Arc, Mutex, PoisonError};

use wg_frame::time::RunTime;
use wg_record::Record;
use wg_record::live::{ClockState, ClockStates, FlowSums, LiveSums, PortSums};
pub use wg_record::live::{LiveFlow, LivePart};

use crate::proto;

/// Interval between figures, ps.
const SECOND: i64 = 1_000_000_000_000;
/// Time from the first message of the measured part to the first figures, ps.
const FIRST: i64 = SECOND / 10;

/// Figures of the last second, shared with the control service.
#[derive(Debug, Default)]
pub struct LiveBoard(Mutex<Option<Arc<proto::LiveFigures>>>);

impl LiveBoard {
    /// Last figures, unless their number is `known`.
    pub fn newer_than(&self, known: u32) -> Option<Arc<proto::LiveFigures>> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.as_ref().filter(|figures| figures.number != known).map(Arc::clone)
    }

    fn show(&self, figures: proto::LiveFigures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(figures));
    }
}

impl From<FlowSums> for proto::LiveFlow {
    fn from(sums: FlowSums) -> Self {
        Self {
            flow: u32::from(sums.flow),
            sent: sums.sent,
            refused: sums.refused,
            received: sums.received,
            missing: sums.missing,
            repeats: sums.repeats,
            late_ns: sums.late_ns,
            arrives: sums.arrives,
            round_trip: sums.round_trip,
            measured: sums.measured,
            min_ns: sums.min_ns,
            max_ns: sums.max_ns,
            sum_ns: sums.sum_ns,
            buckets: sums.buckets,
            counts: sums.counts,
            worst_ns: sums.worst_ns,
        }
    }
}

impl From<PortSums> for proto::LivePort {
    fn from(sums: PortSums) -> Self {
        let PortSums { node, port, frames, longest_ns, queued } = sums;
        Self { node: u32::from(node), port: u32::from(port), frames, longest_ns, queued }
    }
}

impl From<ClockState> for proto::LiveClock {
    fn from(state: ClockState) -> Self {
        let ClockState { node, at_ns, offset_ns, sync_state, ptp_states, grandmaster } = state;
        let ptp_states = ptp_states.into_iter().map(|(port, state)| (u32::from(port), state)).collect();
        Self { node: u32::from(node), at_ns, offset_ns, sync_state, ptp_states, grandmaster }
    }
}

/// Clocks of a played network, from whoever writes its truth.
pub type SharedClocks = Arc<Mutex<ClockStates>>;

/// Live figures of an agent's flows, derived from its records.
#[derive(Debug)]
pub struct LiveFigures {
    sums: LiveSums,
    /// Of the agent that plays the network.
    clocks: Option<SharedClocks>,
    /// True after figures with a message were shown.
    said: bool,
    second: i64,
    number: u32,
    board: Arc<LiveBoard>,
}

impl LiveFigures {
    /// Follows these flows, up to the maximum number, and shows their figures on `board`; with `clocks` those of a played
    /// network, too.
    pub fn new(flows: Vec<LiveFlow>, clocks: Option<SharedClocks>, board: Arc<LiveBoard>) -> Self {
        Self { sums: LiveSums::new(flows), clocks, said: false, second: 0, number: 0, board }
    }

    /// Processes records, in the order of each thread that wrote them.
    pub fn take(&mut self, records: &[Record]) {
        self.sums.take(records);
    }

    /// Shows the figures once a second of run time, and once before; `dropped` returns the number of lost records.
    pub fn look(&mut self, now: Option<RunTime>, dropped: impl FnOnce() -> u64) {
        let Some(now) = now else { return };
        let second = now.as_picos() / SECOND;
        let settled = second > self.second;
        let is_watched = !self.sums.is_empty() || self.clocks.is_some();
        if !(settled || self.has_first(now)) || !is_watched {
            return;
        }
        self.said |= self.sums.has_begun();
        self.second = second;
        self.number = self.number.saturating_add(1);
        self.board.show(proto::LiveFigures {
            number: self.number,
            at_ns: now.as_picos() / 1_000,
            records_dropped: dropped(),
            flows: self.sums.look(settled).into_iter().map(Into::into).collect(),
            flows_left_out: self.sums.left_out(),
            network: self.clocks.as_ref().map(|clocks| proto::LiveNetwork {
                ports: self.sums.look_at_ports().into_iter().map(Into::into).collect(),
                clocks: all_of(clocks).into_iter().map(Into::into).collect(),
            }),
        });
    }

    /// True if there is data and no figures were shown yet.
    fn has_first(&self, now: RunTime) -> bool {
        let due = self.sums.first().is_some_and(|first| (now - first).as_picos() >= FIRST);
        !self.said && due && self.sums.has_begun()
    }
}

fn all_of(clocks: &SharedClocks) -> Vec<ClockState> {
    clocks.lock().unwrap_or_else(PoisonError::into_inner).all()
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
