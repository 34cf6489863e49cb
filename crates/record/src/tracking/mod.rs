//! The tracking history: what became of every message.
//!
//! [`Tracker`] takes records in any order and [`finish`](Tracker::finish) gives every message exactly one
//! outcome. The definitions are those of `docs/reference/run-directory.md`; they are stated over the whole set
//! of records, so a duplicate or a swap has no state to upset and can never turn into a stream of errors. A
//! tracker that follows an expected sequence number as frames come in was not taken for that reason.
//!
//! Memory: about 130 bytes a message, in pages that are made when a record first touches them.

mod judge;
mod message;
mod store;

use std::collections::BTreeMap;

use wg_plan::{FlowId, Network, Run};

pub use message::{
    FlowSummary, Message, Outcome, OutcomeCounts, RunSummary, Tracked, UnplannedCounts, WarmUpCounts,
};

use crate::schema::{Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};
use store::{Instant, Messages, Way};

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
    flows: Vec<FlowState>,
    unplanned: UnplannedCounts,
    records: u64,
}

#[derive(Debug)]
struct FlowState {
    id: FlowId,
    from: u16,
    to: u16,
    relayed: bool,
    deadline_ps: Option<i64>,
    /// Number of nodes on the way.
    hops: u16,
    /// By node: its place on the outward way, or `hops` when it is not on it.
    places: Vec<u16>,
    measured: Messages,
    warm_up: Messages,
}

impl Tracker {
    /// A tracker for `run`, which was or is to be run on `network`.
    pub fn new(network: &Network, run: &Run) -> Self {
        let flows: BTreeMap<FlowId, FlowState> =
            run.flows.iter().map(|flow| (flow.id, FlowState::new(network, run, flow))).collect();
        let flows: Vec<FlowState> = flows.into_values().collect();
        let mut slots = vec![NO_FLOW; usize::from(u16::MAX) + 1].into_boxed_slice();
        for (slot, flow) in (0..NO_FLOW).zip(&flows) {
            slots[usize::from(flow.id)] = slot;
        }
        slots[usize::from(FLOW_FOREIGN)] = NO_FLOW;
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
        if !flow.observe(record, order) && record.point == Point::ApplicationReceive {
            self.unplanned.damaged += 1;
        }
    }

    /// Judges every message from the records so far.
    pub fn finish(self) -> Tracked {
        let mut messages = Vec::new();
        let mut unplanned = self.unplanned;
        let flows =
            self.flows.into_iter().map(|flow| judge::flow(flow, &mut messages, &mut unplanned)).collect();
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

impl FlowState {
    fn new(network: &Network, run: &Run, flow: &wg_plan::Flow) -> Self {
        let hops = u16::try_from(flow.path.len()).unwrap_or(u16::MAX);
        let mut places = vec![hops; network.nodes.len()];
        for (place, &node) in (0..hops).zip(&flow.path) {
            if let Some(entry) = places.get_mut(usize::from(node)) {
                *entry = place;
            }
        }
        let sends = || run.sends.iter().filter(|send| send.flow == flow.id);
        Self {
            id: flow.id,
            from: flow.from,
            to: flow.to,
            relayed: run.relays.iter().any(|relay| relay.flow == flow.id),
            deadline_ps: flow.deadline.map(wg_frame::time::Span::as_picos),
            hops,
            places,
            measured: Messages::new(sends().map(|send| send.count).max().unwrap_or(0)),
            warm_up: Messages::new(sends().map(|send| send.warm_up_count).max().unwrap_or(0)),
        }
    }

    /// Notes the record with its message. False when it is damaged and was seen off the flow's way: then its
    /// header cannot be believed.
    fn observe(&mut self, record: &Record, order: u64) -> bool {
        let returning = record.flags.has(RecordFlags::RETURN);
        let outward_place = self.places.get(usize::from(record.node)).copied().unwrap_or(self.hops);
        let on_the_way = outward_place < self.hops;
        let damaged = record.crc == Crc::Bad;
        if damaged && !on_the_way {
            return false;
        }
        let place = if returning && on_the_way { self.hops - 1 - outward_place } else { outward_place };
        let way = Way::new(returning, place, record.point, record.node);
        let (at_from, at_to) = (record.node == self.from, record.node == self.to);
        let messages =
            if record.flags.has(RecordFlags::WARM_UP) { &mut self.warm_up } else { &mut self.measured };
        let seen = messages.entry(record.sequence);

        seen.last = seen.last.max(way);
        if record.point == Point::Drop && record.reason != DropReason::None {
            seen.drop = seen.drop.max((way, record.reason.code()));
        }
        if damaged {
            seen.corrupted += u32::from(record.point == Point::ApplicationReceive);
            return true;
        }
        seen.first = seen.first.min((way, record.length));
        if at_from && !returning && is_send_side(record.point) {
            seen.send_recorded = true;
        } else if record.crc == Crc::Ok {
            seen.verified = true;
        }

        // A one-way flow has no return leg: what comes back of it is meant for nobody.
        let leg_is_planned = self.relayed || !returning;
        let (at_source, at_destination) = if returning { (at_to, at_from) } else { (at_from, at_to) };
        let arrived = record.point == Point::ApplicationReceive;
        let intact = arrived && record.crc == Crc::Ok;
        let is_final = returning == self.relayed;
        if leg_is_planned
            && (intact || !arrived)
            && let Some(instant) = Instant::of(record.point, returning, at_source, at_destination)
        {
            let is_earliest = seen.note(instant, record.time);
            if intact && is_final && is_earliest {
                seen.first_copy_order = order;
            }
        }
        seen.arrivals += u32::from(arrived);
        if intact && !(leg_is_planned && at_destination) {
            seen.misdirected += 1;
        } else if intact && is_final {
            seen.copies += 1;
        }
        true
    }
}

/// Whether a record of this point at the sender proves that the message was sent, or that sending was tried
/// and refused.
fn is_send_side(point: Point) -> bool {
    matches!(point, Point::ApplicationSend | Point::DriverSend | Point::WireSend | Point::Drop)
}
