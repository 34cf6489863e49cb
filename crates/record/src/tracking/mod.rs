//! The tracking history: what became of every message.
//!
//! [`Tracker`] takes records in any order and [`finish`](Tracker::finish) gives every message exactly one
//! outcome. The definitions are those of `docs/reference/run-directory.md`; they are stated over the whole set
//! of records, so a duplicate or a swap has no state to upset and can never turn into a stream of errors. A
//! tracker that follows an expected sequence number as frames come in was not taken for that reason.
//!
//! Memory: about 170 bytes a message and receiver, in pages that are made when a record first touches them.

mod flow;
mod judge;
mod message;
mod store;

use std::collections::BTreeMap;

use wg_plan::{Flow, FlowId, Network, Run};

pub use message::{
    FlowSummary, Message, Outcome, OutcomeCounts, RunSummary, Tracked, UnplannedCounts, WarmUpCounts,
};

use crate::schema::{Crc, FLOW_FOREIGN, Point, Record};
use flow::FlowState;

/// `slots` entry of a flow that is not in the plan.
const NO_FLOW: u16 = u16::MAX;

/// Gathers the records of one run and judges its messages.
///
/// ```
/// # use wg_record::tracking::Tracker;
/// # fn example(network: &wg_plan::Network, run: &wg_plan::Run, records: &[wg_record::Record]) {
/// let mut tracker = Tracker::new(network, run);
/// tracker.observe_all(records);
/// let tracked = tracker.finish();
/// assert!(tracked.summary.flows.iter().all(|f| f.sent == f.delivered + f.lost));
/// # }
/// ```
#[derive(Debug)]
pub struct Tracker {
    run_index: u32,
    /// Place in `flows` by flow number.
    slots: Box<[u16]>,
    /// Each flow as its receivers see it, one entry per receiver.
    flows: Vec<Vec<FlowState>>,
    unplanned: UnplannedCounts,
    records: u64,
}

impl Tracker {
    /// A tracker for `run`, which was or is to be run on `network`.
    pub fn new(network: &Network, run: &Run) -> Self {
        let seen_by_all = |flow: &Flow| -> Vec<FlowState> {
            flow.receivers().map(|to| FlowState::new(network, run, flow, to)).collect()
        };
        let flows: BTreeMap<FlowId, Vec<FlowState>> =
            run.flows.iter().map(|flow| (flow.id, seen_by_all(flow))).collect();
        let ids: Vec<FlowId> = flows.keys().copied().collect();
        let mut slots = vec![NO_FLOW; usize::from(u16::MAX) + 1].into_boxed_slice();
        for (slot, id) in (0..NO_FLOW).zip(ids) {
            slots[usize::from(id)] = slot;
        }
        slots[usize::from(FLOW_FOREIGN)] = NO_FLOW;
        let flows = flows.into_values().collect();
        Self { run_index: run.index, slots, flows, unplanned: UnplannedCounts::default(), records: 0 }
    }

    /// Takes records; their order matters only between copies of a message that arrived at the same time, and
    /// between messages that did.
    pub fn observe_all(&mut self, records: &[Record]) {
        for record in records {
            self.observe(record);
        }
    }

    /// Takes one record.
    pub fn observe(&mut self, record: &Record) {
        let order = self.records;
        self.records += 1;
        let slot = self.slots[usize::from(record.flow)];
        let Some(flow) = self.flows.get_mut(usize::from(slot)) else {
            // A frame is counted once, where an application got it; its other records are other views of it.
            if record.point == Point::ApplicationReceive {
                let counts = &mut self.unplanned;
                match (record.flow, record.crc) {
                    (FLOW_FOREIGN, _) => counts.foreign += 1,
                    (_, Crc::Bad) => counts.damaged += 1,
                    _ => counts.unknown_flow += 1,
                }
            }
            return;
        };
        let believed = match flow.as_mut_slice() {
            [only] => only.observe(record, order),
            receivers => observe_multicast(receivers, record, order),
        };
        if !believed && record.point == Point::ApplicationReceive {
            self.unplanned.damaged += 1;
        }
    }

    /// Judges every message from the records so far.
    pub fn finish(self) -> Tracked {
        let mut messages = Vec::new();
        let mut unplanned = self.unplanned;
        let flows = self
            .flows
            .into_iter()
            .flatten()
            .map(|flow| judge::flow(flow, &mut messages, &mut unplanned))
            .collect();
        let summary = RunSummary {
            index: self.run_index,
            records: self.records,
            flows,
            unplanned,
            damaged_segments: Vec::new(),
        };
        Tracked { messages, summary }
    }
}

/// Notes a record with every receiver whose copy it tells of: one taken at a receiver with that one, one taken before
/// the ways part with all behind it. What concerns nobody (a frame gone astray) goes to the first, so that
/// it is counted once.
fn observe_multicast(receivers: &mut [FlowState], record: &Record, order: u64) -> bool {
    let at = receivers.iter().position(|flow| flow.to == record.node);
    let is_arrival = record.point == Point::ApplicationReceive;
    let concerned = |at_place: usize, flow: &FlowState| match at {
        Some(at) => at == at_place,
        None => !is_arrival && flow.is_passed_by(record),
    };
    let mut told = false;
    let mut believed = true;
    for (place, flow) in receivers.iter_mut().enumerate() {
        if concerned(place, flow) {
            told = true;
            believed &= flow.observe(record, order);
        }
    }
    if !told && let Some(first) = receivers.first_mut() {
        believed = first.observe(record, order);
    }
    if record.crc == Crc::Ok {
        receivers.iter_mut().for_each(|flow| flow.vouch(record));
    }
    believed
}
