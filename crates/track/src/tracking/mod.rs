//! The tracking history: the outcome of every message.
//!
//! A [`Tracker`] takes records in the order of time and gives every message exactly one outcome. The definitions are
//! those of `docs/reference/run-directory.md`; they refer to the whole set of records, and every stored fact of a
//! message is a minimum, a maximum, a sum or a flag, so that no duplicate or swap can cause a series of errors.
//!
//! Memory does not grow with the run. A message stays open while its number lies within a [window](window_for) of the
//! newest number of its flow; then it is judged, counted and removed. It takes a few ten bytes, depending on how many
//! points see the flow. A record that comes after its message was closed is counted as behind the window.

mod arrivals;
mod doubts;
mod due;
mod facts;
mod flow;
mod ledger;
mod message;
mod passages;
mod phase;
mod series;
mod window;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use wg_plan::{FlowId, Network, Run};

pub use message::{
    ClockJump, FlowSummary, Message, Outcome, OutcomeCounts, RunSummary, Tracked, UnplannedCounts,
    WarmUpCounts,
};
pub use passages::Passage;
pub use series::{Distributions, FlowSeries, Measure};

use crate::sighting::{Block, Grouper, Manner, Sighting};
use facts::Plan;
use flow::{FlowState, Kind};
use ledger::Closed;
use passages::Passing;
use wg_record::{Crc, FLOW_FOREIGN, Gap, Point, Record, RecordFlags};

/// Entry in `slots` of a flow that is not tracked here.
const NO_FLOW: u16 = u16::MAX;
/// Number of open messages in all windows of a run, unless the windows would fall below the least size.
const OPEN_MESSAGES: usize = 1 << 17;
/// Number of intended sends beyond the windows that all flows of a run store, unless each would store less than a
/// window.
const INTENDED: usize = 1 << 22;
/// Least and greatest number of messages in a window, for up to 4096 flows.
const WINDOW: [usize; 2] = [1 << 12, 1 << 17];
/// Greatest number of open messages in all windows of a run: with more flows the windows are smaller.
const MOST_OPEN: usize = 1 << 24;
/// Number of flow numbers whose last rows are handed over together.
const FLOWS_AT_ONCE: FlowId = 1 << 10;
/// Number of frames in switches remembered for all flows of a run, unless each would have too few.
const IN_SWITCHES: usize = 1 << 22;

/// Size of the window: how many numbers behind the newest one a message of `run` stays open.
///
/// A power of two from 256 to 131 072, smaller for more flows.
pub fn window_for(run: &Run) -> usize {
    let fair = OPEN_MESSAGES / views(run);
    let [least, most] = WINDOW;
    let least = least.min(MOST_OPEN / views(run));
    fair.clamp(least, most + 1).next_power_of_two().min(most)
}

/// Sum of the receivers of all flows of `run`; at least one.
fn views(run: &Run) -> usize {
    run.flows.iter().map(|flow| flow.receivers().count()).sum::<usize>().max(1)
}

/// Gathers the records of one run, or of some of its flows, and judges its messages.
///
/// ```
/// # use wg_track::tracking::Tracker;
/// # fn example(network: &wg_plan::Network, run: &wg_plan::Run, records: &[wg_record::Record]) {
/// let mut tracker = Tracker::new(network, run);
/// tracker.observe_all(records);
/// let tracked = tracker.finish();
/// assert!(tracked.summary.flows.iter().all(|f| f.sent == f.delivered + f.lost + f.unknown));
/// # }
/// ```
#[derive(Debug)]
pub struct Tracker {
    run_index: u32,
    window: usize,
    /// Index in `flows` by flow number.
    slots: Box<[u16]>,
    /// State of each flow, one entry per receiver.
    flows: Vec<Vec<FlowState>>,
    /// Frames of each flow in the switches.
    passing: Vec<Passing>,
    unplanned: UnplannedCounts,
    /// Whether records of no planned flow are counted here.
    counts_strays: bool,
    records: u64,
    messages: Option<Vec<Message>>,
    passages: Option<Vec<Passage>>,
    /// Groups records that come ungrouped; with their last block.
    grouper: Grouper,
    grouped: Block,
    /// Meaning of records for the only receiver of their flow, by key number.
    kinds: Vec<Kind>,
}

impl Tracker {
    /// A tracker for `run` on `network`. It collects the rows of messages.
    pub fn new(network: &Network, run: &Run) -> Self {
        Self::of_part(network, run, 0, 1, true)
    }

    /// A tracker for the flows of part `part` of `parts`; with `keeps_rows` it collects rows. Records of no planned
    /// flow are counted in part 0.
    pub fn of_part(network: &Network, run: &Run, part: usize, parts: usize, keeps_rows: bool) -> Self {
        Self::with_window(network, run, part, parts, keeps_rows, window_for(run))
    }

    /// As [`of_part`](Self::of_part), with a window of this many messages, a power of two.
    pub fn with_window(
        network: &Network,
        run: &Run,
        part: usize,
        parts: usize,
        keeps_rows: bool,
        window: usize,
    ) -> Self {
        let intended = (INTENDED / views(run)).max(window);
        let in_switches = IN_SWITCHES / run.flows.len().max(1);
        let plan = Plan::new(network, run);
        let seen_by_all = |flow: &wg_plan::Flow| -> Vec<FlowState> {
            flow.receivers().map(|to| FlowState::new(&plan, flow, to, [window, intended])).collect()
        };
        let mine: BTreeSet<FlowId> = part_of(run, part, parts).into_iter().collect();
        let flows: BTreeMap<FlowId, Vec<FlowState>> = run
            .flows
            .iter()
            .filter(|flow| mine.contains(&flow.id))
            .map(|flow| (flow.id, seen_by_all(flow)))
            .collect();
        let ids: Vec<FlowId> = flows.keys().copied().collect();
        let mut slots = vec![NO_FLOW; usize::from(u16::MAX) + 1].into_boxed_slice();
        for (slot, id) in (0..NO_FLOW).zip(&ids) {
            slots[usize::from(*id)] = slot;
        }
        for relay in run.relays.iter().filter(|relay| mine.contains(&relay.flow)) {
            slots[usize::from(relay.answers_as())] = slots[usize::from(relay.flow)];
        }
        slots[usize::from(FLOW_FOREIGN)] = NO_FLOW;
        let flows: Vec<Vec<FlowState>> = flows.into_values().collect();
        Self {
            run_index: run.index,
            window,
            slots,
            passing: ids.iter().map(|id| Passing::new(*id, in_switches)).collect(),
            grouper: Grouper::new(),
            grouped: Block::empty(),
            kinds: Vec::new(),
            flows,
            unplanned: UnplannedCounts::default(),
            counts_strays: part == 0,
            records: 0,
            messages: keeps_rows.then(Vec::new),
            passages: keeps_rows.then(Vec::new),
        }
    }

    /// Restricts the distributions to these measures; counts and rows stay the same.
    pub fn measuring(mut self, measures: &[Measure]) -> Self {
        for flow in self.flows.iter_mut().flatten() {
            flow.keep_only(measures);
        }
        self
    }

    /// Sets the gaps in the records: messages without a trace may then be unknown instead of lost.
    pub fn with_gaps(mut self, run: &Run, gaps: &[Gap]) -> Self {
        for flow in self.flows.iter_mut().flatten() {
            flow.doubt(run, gaps);
        }
        self
    }

    /// Takes records in the order of time. The order matters between copies of a message, between messages that arrived
    /// at the same time, and where a sender restarted its numbers.
    ///
    /// Flows are independent, so they are processed one after the other: the state of a flow is then in cache for all
    /// of its records.
    pub fn observe_all(&mut self, records: &[Record]) {
        let mut block = std::mem::replace(&mut self.grouped, Block::empty());
        for records in records.chunks(Grouper::MOST) {
            #[expect(clippy::cast_possible_truncation, reason = "a test has at most 65 534 flows")]
            let (slots, last) = (&self.slots, self.flows.len() as u16);
            self.grouper.note(records.iter().map(Manner::of), |flow| slots[usize::from(flow)].min(last));
            let rest = records.iter().map(|record| (record.time, record.sequence, record.length));
            self.grouper.group(rest, self.flows.len() + 1, &mut block);
            self.observe_block(&block, 0..block.ranks());
        }
        self.grouped = block;
    }

    /// Takes the records of these ranks of a block, which are in the order of time within each flow. A rank has records
    /// of one flow, or strays.
    pub(crate) fn observe_block(&mut self, block: &Block, ranks: Range<usize>) {
        let has_passages = self.learn(&block.manners);
        for sightings in block.by_rank(ranks) {
            self.records += sightings.len() as u64;
            let flow = sightings
                .first()
                .map_or(FLOW_FOREIGN, |first| block.manners[usize::from(first.manner)].flow());
            let slot = usize::from(self.slots[usize::from(flow)]);
            if slot < self.flows.len() {
                self.observe_flow(slot, sightings, &block.manners, has_passages);
            } else {
                let records = sightings.iter().map(|one| block.manners[usize::from(one.manner)].record(one));
                records.for_each(|record| self.note_stray(&record));
            }
        }
    }

    /// Ensures that `kinds` has entries for these keys. Returns whether any key is of a switch.
    fn learn(&mut self, manners: &[Manner]) -> bool {
        self.kinds.resize(manners.len().max(self.kinds.len()), Kind::UNKNOWN);
        let mut is_of_switch = false;
        for (kind, &manner) in self.kinds.iter_mut().zip(manners) {
            if !kind.is_of(manner) {
                let slot = usize::from(self.slots[usize::from(manner.flow())]);
                *kind = match self.flows.get(slot).map(Vec::as_slice) {
                    Some([only]) => only.kind(manner),
                    _ => Kind::refused(manner),
                };
            }
            is_of_switch |= kind.is_of_switch();
        }
        is_of_switch
    }

    fn observe_flow(&mut self, slot: usize, sightings: &[Sighting], manners: &[Manner], has_passages: bool) {
        let Some(flow) = self.flows.get_mut(slot) else { return };
        let record = |one: &Sighting| manners[usize::from(one.manner)].record(one);
        if has_passages {
            let passing = &mut self.passing[slot];
            let at_switch = sightings.iter().filter(|one| self.kinds[usize::from(one.manner)].is_of_switch());
            for passage in at_switch.filter_map(|one| passing.observe(&record(one))) {
                if let Some(passages) = &mut self.passages {
                    passages.push(passage);
                }
            }
        }
        let mut closed = Closed { rows: self.messages.as_mut(), unplanned: &mut self.unplanned };
        let disbelieved = match flow.as_mut_slice() {
            [only] => only.observe_all(sightings, &self.kinds, record, &mut closed),
            receivers => sightings
                .iter()
                .map(|one| {
                    let record = &record(one);
                    let believed = observe_multicast(receivers, record, &mut closed);
                    u64::from(!believed && record.point == Point::ApplicationReceive)
                })
                .sum(),
        };
        self.unplanned.damaged += disbelieved;
    }

    /// Counts a frame once, where an application received it; other records show the same frame.
    fn note_stray(&mut self, record: &Record) {
        if self.counts_strays && record.point == Point::ApplicationReceive {
            let counts = &mut self.unplanned;
            match (record.flow, record.crc) {
                (FLOW_FOREIGN, _) => counts.foreign += 1,
                (_, Crc::Bad) => counts.damaged += 1,
                _ => counts.unknown_flow += 1,
            }
        }
    }

    /// Takes the rows of the messages closed and the passages ended so far.
    pub fn take_rows(&mut self) -> (Vec<Message>, Vec<Passage>) {
        let taken = |rows: &mut Option<Vec<_>>| rows.as_mut().map(std::mem::take).unwrap_or_default();
        (taken(&mut self.messages), self.passages.as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Judges every message from the records so far.
    pub fn finish(self) -> Tracked {
        let mut rows = (Vec::new(), Vec::new());
        let tracked = self.finish_in_parts(|messages, passages| {
            append(&mut rows.0, messages);
            append(&mut rows.1, passages);
        });
        let (messages, passages) = rows;
        Tracked { messages, passages, ..tracked }
    }

    /// As [`finish`](Self::finish), but hands over the remaining rows in parts, flow by flow in ascending order, so
    /// that those of a run of many flows, whose messages may all be open at its end, are never all in memory. Trackers
    /// of one run have the same parts.
    pub(crate) fn finish_in_parts(
        mut self,
        mut hand_over: impl FnMut(Vec<Message>, Vec<Passage>),
    ) -> Tracked {
        let (mut messages, mut passages) = self.take_rows();
        // The first part at the end, from where it is taken without moving the others.
        messages.sort_by_key(|message| Reverse(message.flow));
        passages.sort_by_key(|passage| Reverse(passage.flow));
        let mut unplanned = self.unplanned;
        let mut summaries = Vec::new();
        let mut distributions = Distributions::default();
        let mut left = self.flows.into_iter().zip(self.passing).peekable();
        for last in (FLOWS_AT_ONCE - 1..=FlowId::MAX).step_by(usize::from(FLOWS_AT_ONCE)) {
            let mut rows = self.messages.as_ref().map(|_| up_to(&mut messages, last, |message| message.flow));
            while let Some((receivers, passing)) = left.next_if(|(_, passing)| passing.flow() <= last) {
                let id = passing.flow();
                for (place, flow) in receivers.into_iter().enumerate() {
                    let mut closed = Closed { rows: rows.as_mut(), unplanned: &mut unplanned };
                    let (mut summary, series) = flow.finish(&mut closed).into_parts();
                    if place == 0 {
                        summary.unpaired_departures = passing.unpaired_departures();
                    }
                    distributions.flows.push((summary.flow, summary.to, series));
                    summaries.push(summary);
                }
                let hops = passing.into_hops().into_iter();
                distributions.hops.extend(hops.map(|((node, port), sketch)| (id, node, port, sketch)));
            }
            let mut rows = rows.unwrap_or_default();
            let mut gone = up_to(&mut passages, last, |passage| passage.flow);
            // Stable: messages of a flow that were closed earlier precede those that were still open.
            rows.sort_by_key(|message| message.flow);
            gone.sort_by_key(|passage| passage.flow);
            hand_over(rows, gone);
        }
        let summary = RunSummary {
            index: self.run_index,
            records: self.records,
            window: self.window as u64,
            flows: summaries,
            unplanned,
            out_of_order: 0,
            gaps: Vec::new(),
            clock_jumps: Vec::new(),
            damaged_segments: Vec::new(),
        };
        Tracked { messages: Vec::new(), passages: Vec::new(), distributions, summary }
    }
}

/// Takes the rows of flows up to `last` from the end of rows in descending order of flows.
fn up_to<T>(rows: &mut Vec<T>, last: FlowId, flow: impl Fn(&T) -> FlowId) -> Vec<T> {
    rows.split_off(rows.partition_point(|row| flow(row) > last))
}

/// Appends `more`, without a copy if `rows` is empty.
fn append<T>(rows: &mut Vec<T>, mut more: Vec<T>) {
    if rows.is_empty() {
        *rows = more;
    } else {
        rows.append(&mut more);
    }
}

/// The flows of part `part` of `parts`, which have about the same number of planned messages.
pub fn part_of(run: &Run, part: usize, parts: usize) -> Vec<FlowId> {
    let sends = run.sends_by_flow();
    let weight = |flow: &wg_plan::Flow| -> u64 {
        let sends = sends.get(&flow.id).into_iter().flatten();
        sends.map(|send| u64::from(send.count)).sum::<u64>() * flow.receivers().count() as u64
    };
    let mut flows: Vec<(u64, FlowId)> = run.flows.iter().map(|flow| (weight(flow), flow.id)).collect();
    flows.sort_by_key(|&(weight, id)| (std::cmp::Reverse(weight), id));
    let mut loads = vec![0u64; parts.max(1)];
    let mut mine = Vec::new();
    for (weight, id) in flows {
        let least = (0..loads.len()).min_by_key(|&part| loads[part]).unwrap_or_default();
        loads[least] += weight.max(1);
        if least == part {
            mine.push(id);
        }
    }
    mine
}

/// Notes a record with every receiver whose copy it concerns: one taken at a receiver with that one, one taken before
/// the paths part with all behind it. A record that concerns none (a misdirected frame) goes to the first, so that it
/// is counted once. An answer of a relay concerns the receiver that relays, and no other.
fn observe_multicast(receivers: &mut [FlowState], record: &Record, closed: &mut Closed<'_>) -> bool {
    if record.flags.has(RecordFlags::RETURN)
        && let Some(relayed) = receivers.iter_mut().find(|flow| flow.is_answered_as(record.flow))
    {
        return relayed.observe(record, closed);
    }
    let at = receivers.iter().position(|flow| flow.to() == record.node);
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
            believed &= flow.observe(record, closed);
        }
    }
    if !told && let Some(first) = receivers.first_mut() {
        believed = first.observe(record, closed);
    }
    if flow::is_sound(record.point, record.crc) {
        for flow in receivers {
            flow.vouch(record, closed);
        }
    }
    believed
}
