//! Sums over the records of a run that goes on: counts of each flow, and the times of what arrived since the last look.
//!
//! They are provisional: the verdict of the run does not use them. A receiver of a one-way flow does not know the send
//! time of a message, but its intended send time follows from the schedule in the plan; a latency there starts at the
//! intended send time and includes the sender's delay. Where the records of both ends are at hand, it starts at the send.

use serde::Serialize;
use wg_frame::time::{RunTime, Span};
use wg_plan::schedule::Schedule;
use wg_plan::{FlowId, NodeIndex};

mod clocks;
mod ports;

pub use clocks::{ClockState, ClockStates};
pub use ports::PortSums;

use crate::{Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};
use ports::Stays;

/// Maximum number of flows that are followed; further flows are omitted and counted.
pub const MOST_FLOWS: usize = 256;
/// Maximum number of send times stored for all flows together.
const MOST_REMEMBERED: usize = 1 << 20;
const LEAST_REMEMBERED: usize = 64;
/// Number of sequence numbers within which a late message is distinguished from a duplicate.
const WINDOW: u32 = 1_024;
const WORDS: usize = WINDOW as usize / 64;
/// How far the schedule of a flow is recalled ahead of an arrival.
const AHEAD: Span = Span::from_picos(1_000_000_000_000);
/// Buckets per octave of the histogram: a percentile is at most a sixteenth too high.
const PARTS: u32 = 16;
const PARTS_LOG: u32 = 4;
/// Buckets up to 2^43 ns, which is more than two hours.
const BUCKETS: usize = (40 * PARTS) as usize;

/// Which records of a flow are at hand.
#[derive(Clone, Debug)]
pub enum LivePart {
    /// Sender.
    Sender,
    /// Receiver; the schedule gives the due times, if it follows from the plan.
    Receiver(Option<Schedule>),
    /// Sender of messages that a relay returns.
    RoundTrip,
    /// All of a one-way flow: its sender, and its receiver at this node.
    Both(NodeIndex),
}

/// Flow with live figures.
#[derive(Clone, Debug)]
pub struct LiveFlow {
    /// Flow number.
    pub id: FlowId,
    /// Relation of this agent to the flow.
    pub part: LivePart,
    /// Planned number of messages, warm-up included.
    pub planned: u64,
    /// Maximum number of messages in half a second.
    pub in_half_a_second: u64,
}

/// Sums of one flow; those of times since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowSums {
    /// Flow number.
    pub flow: FlowId,
    /// Messages sent; refused ones are not in it.
    pub sent: u64,
    /// Messages that the kernel refused.
    pub refused: u64,
    /// Different messages that arrived intact.
    pub received: u64,
    /// Numbers below the highest that arrived which have not arrived, without merely reordered ones.
    pub missing: u64,
    /// Messages that arrived once more, or too late to be told from these.
    pub repeats: u64,
    /// The most that a message was sent late, ns.
    pub late_ns: i64,
    /// It ends here.
    pub arrives: bool,
    /// It ends here and was sent here, too.
    pub round_trip: bool,
    /// Messages with a time.
    pub measured: u64,
    /// Their least time, ns.
    pub min_ns: i64,
    /// Their greatest time, ns.
    pub max_ns: i64,
    /// The sum of their times, ns.
    pub sum_ns: i64,
    /// Their distribution: numbers of buckets that are not empty.
    pub buckets: Vec<u32>,
    /// How many are in each of them.
    pub counts: Vec<u32>,
    /// The greatest time of all looks, ns.
    pub worst_ns: i64,
}

/// Log-linear histogram of times in ns.
#[derive(Debug)]
struct Histogram {
    counts: Box<[u32; BUCKETS]>,
    n: u64,
    minimum: i64,
    maximum: i64,
    sum: i64,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), n: 0, minimum: i64::MAX, maximum: i64::MIN, sum: 0 }
    }

    fn add(&mut self, ns: i64) {
        let count = &mut self.counts[bucket_of(ns)];
        *count = count.saturating_add(1);
        self.n += 1;
        self.minimum = self.minimum.min(ns);
        self.maximum = self.maximum.max(ns);
        self.sum = self.sum.saturating_add(ns);
    }

    /// Writes the percentiles to the figures of a flow and empties the histogram.
    fn drain_into(&mut self, figures: &mut FlowSums) {
        figures.measured = self.n;
        if self.n == 0 {
            return;
        }
        (figures.min_ns, figures.max_ns, figures.sum_ns) = (self.minimum, self.maximum, self.sum);
        for (bucket, count) in (0..).zip(self.counts.iter_mut()).filter(|(_, count)| **count > 0) {
            figures.buckets.push(bucket);
            figures.counts.push(std::mem::take(count));
        }
        (self.n, self.minimum, self.maximum, self.sum) = (0, i64::MAX, i64::MIN, 0);
    }
}

/// Bucket of a time; negative times, which only differing clocks produce, count as 0.
fn bucket_of(ns: i64) -> usize {
    let value = ns.max(0).unsigned_abs();
    if value < u64::from(PARTS) {
        return usize::try_from(value).unwrap_or(0);
    }
    let doubling = value.ilog2();
    let part = u32::try_from((value >> (doubling - PARTS_LOG)) & u64::from(PARTS - 1)).unwrap_or(0);
    let bucket = (doubling - PARTS_LOG + 1) * PARTS + part;
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// Times of the last messages of a flow, ps, by sequence number.
#[derive(Debug)]
struct Instants {
    ring: Vec<i64>,
    /// Lowest sequence number not stored yet.
    next: u32,
}

impl Instants {
    fn new(room: usize) -> Self {
        Self { ring: vec![0; room.next_power_of_two()], next: 0 }
    }

    fn place(&self, sequence: u32) -> usize {
        sequence as usize & (self.ring.len() - 1)
    }

    /// Stores the time of the next number; skipped numbers get the time of the number after them.
    fn put(&mut self, sequence: u32, at: i64) {
        if sequence < self.next {
            return;
        }
        let room = u32::try_from(self.ring.len()).unwrap_or(u32::MAX);
        for passed in self.next.max(sequence.saturating_sub(room - 1))..=sequence {
            let place = self.place(passed);
            self.ring[place] = at;
        }
        self.next = sequence.saturating_add(1);
    }

    /// Time of a message; for one older than stored, the oldest stored time, which gives a lower bound of its latency.
    fn of(&self, sequence: u32) -> Option<i64> {
        if sequence >= self.next {
            return None;
        }
        let oldest = self.next.saturating_sub(u32::try_from(self.ring.len()).unwrap_or(u32::MAX));
        Some(self.ring[self.place(sequence.max(oldest))])
    }
}

/// Arrived sequence numbers of a flow.
#[derive(Debug, Default)]
struct Arrivals {
    /// Lowest sequence number above all arrived ones.
    next: u32,
    /// Bits of the arrived numbers in the window below `next`.
    seen: [u64; WORDS],
    received: u64,
    repeats: u64,
    missing: u64,
    /// Lowest number of missing messages since the last figures, and in the second before.
    fewest: [u64; 2],
}

impl Arrivals {
    /// Registers an intact message; true on its first arrival.
    fn take(&mut self, sequence: u32) -> bool {
        let (word, bit) = (sequence as usize / 64 % WORDS, 1_u64 << (sequence % 64));
        if sequence >= self.next {
            let passed = sequence - self.next;
            self.forget(self.next, passed.min(WINDOW));
            self.missing += u64::from(passed);
            self.next = sequence.saturating_add(1);
            // The bit was used by the number one window before.
            self.seen[word] |= bit;
        } else if self.next - sequence > WINDOW || self.seen[word] & bit != 0 {
            self.repeats += 1;
            return false;
        } else {
            self.seen[word] |= bit;
            self.missing = self.missing.saturating_sub(1);
        }
        self.received += 1;
        self.fewest[0] = self.fewest[0].min(self.missing);
        true
    }

    fn forget(&mut self, from: u32, count: u32) {
        for sequence in from..from.saturating_add(count) {
            self.seen[sequence as usize / 64 % WORDS] &= !(1 << (sequence % 64));
        }
    }

    /// Number of missing messages, without merely reordered ones: the minimum over two seconds.
    fn settle(&mut self) -> u64 {
        let settled = self.fewest[0].min(self.fewest[1]);
        self.fewest = [self.missing, self.fewest[0]];
        settled
    }
}

#[derive(Debug)]
struct Followed {
    id: FlowId,
    sent: u64,
    refused: u64,
    /// Number and time of the last intended send.
    intended: (u32, i64),
    latest_ns: i64,
    planned: u32,
    schedule: Option<Schedule>,
    /// Times begin with the recorded send.
    timed_by_send: bool,
    /// Arrivals are those that a relay returned.
    returns: bool,
    arrives: bool,
    /// Receiver whose arrivals count; `None`: every one at hand.
    to: Option<NodeIndex>,
    instants: Instants,
    arrivals: Arrivals,
    latency: Histogram,
    worst_ns: i64,
}

impl Followed {
    fn new(flow: LiveFlow, room: usize) -> Self {
        let mut to = None;
        let (schedule, timed_by_send, returns, arrives) = match flow.part {
            LivePart::Sender => (None, false, false, false),
            LivePart::Receiver(schedule) => (schedule, false, false, true),
            LivePart::RoundTrip => (None, true, true, true),
            LivePart::Both(node) => {
                to = Some(node);
                (None, true, false, true)
            }
        };
        let wanted = usize::try_from(flow.in_half_a_second.saturating_mul(4)).unwrap_or(usize::MAX);
        let timed = schedule.is_some() || timed_by_send;
        Self {
            id: flow.id,
            sent: 0,
            refused: 0,
            intended: (u32::MAX, 0),
            latest_ns: 0,
            planned: u32::try_from(flow.planned).unwrap_or(u32::MAX),
            schedule,
            timed_by_send,
            returns,
            arrives,
            to,
            instants: Instants::new(if timed { wanted.clamp(LEAST_REMEMBERED, room) } else { 1 }),
            arrivals: Arrivals::default(),
            latency: Histogram::new(),
            worst_ns: i64::MIN,
        }
    }

    fn sent(&mut self, record: &Record) {
        self.sent += 1;
        let (sequence, at) = (record.sequence, record.time.as_picos());
        if self.intended.0 == sequence {
            self.latest_ns = self.latest_ns.max((at - self.intended.1) / 1_000);
        }
        if self.timed_by_send {
            self.instants.put(sequence, at);
        }
    }

    fn received(&mut self, record: &Record) {
        let back = record.flags.has(RecordFlags::RETURN);
        let elsewhere = self.to.is_some_and(|to| to != record.node);
        if !self.arrives || back != self.returns || elsewhere || record.sequence >= self.planned {
            return;
        }
        if !self.arrivals.take(record.sequence) {
            return;
        }
        self.recall(record.sequence, record.time);
        if let Some(begin) = self.instants.of(record.sequence) {
            let ns = record.time.as_picos().saturating_sub(begin) / 1_000;
            self.latency.add(ns);
            self.worst_ns = self.worst_ns.max(ns);
        }
    }

    /// Advances the schedule to a message, not far beyond `now`, since no message arrives before it is due.
    fn recall(&mut self, sequence: u32, now: RunTime) {
        let Some(schedule) = &mut self.schedule else { return };
        let until = now + AHEAD;
        while self.instants.next <= sequence {
            let Some(due) = schedule.next() else { return };
            if !due.warm_up {
                self.instants.put(due.sequence, due.at.as_picos());
            }
            if due.at > until {
                return;
            }
        }
    }

    /// True if there is data to report; for a receiver, an arrival.
    const fn begun(&self) -> bool {
        if self.arrives { self.arrivals.received > 0 } else { self.sent > 0 }
    }

    /// Figures since the last call. `settled`: a second has passed, after which missing messages count.
    fn figures(&mut self, settled: bool) -> FlowSums {
        let mut figures = FlowSums {
            flow: self.id,
            sent: self.sent - self.refused.min(self.sent),
            refused: self.refused,
            received: self.arrivals.received,
            missing: if settled { self.arrivals.settle() } else { 0 },
            repeats: self.arrivals.repeats,
            late_ns: std::mem::take(&mut self.latest_ns),
            arrives: self.arrives,
            round_trip: self.timed_by_send,
            worst_ns: self.worst_ns.max(0),
            ..FlowSums::default()
        };
        self.latency.drain_into(&mut figures);
        figures
    }
}

/// Sums of the flows of a run, or of those of one agent.
#[derive(Debug)]
pub struct LiveSums {
    flows: Vec<Followed>,
    /// Index in `flows` by flow number; `u16::MAX`: not followed.
    by_id: Vec<u16>,
    left_out: u32,
    /// Time of the first message of the measured part.
    first: Option<RunTime>,
    stays: Stays,
}

impl LiveSums {
    /// Follows these flows, up to the maximum number.
    pub fn new(mut flows: Vec<LiveFlow>) -> Self {
        let left_out = u32::try_from(flows.len().saturating_sub(MOST_FLOWS)).unwrap_or(u32::MAX);
        flows.truncate(MOST_FLOWS);
        let room = (MOST_REMEMBERED / flows.len().max(1)).min(1 << 16);
        let most = flows.iter().map(|flow| usize::from(flow.id) + 1).max().unwrap_or(0);
        let mut by_id = vec![u16::MAX; most];
        for (place, flow) in (0..).zip(&flows) {
            by_id[usize::from(flow.id)] = place;
        }
        let flows = flows.into_iter().map(|flow| Followed::new(flow, room)).collect();
        Self { flows, by_id, left_out, first: None, stays: Stays::default() }
    }

    /// Number of flows beyond the maximum.
    pub const fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Whether no flow is followed.
    pub const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Whether there is anything to show.
    pub fn has_begun(&self) -> bool {
        self.flows.iter().any(Followed::begun)
    }

    /// Time of the first message of the measured part.
    pub const fn first(&self) -> Option<RunTime> {
        self.first
    }

    /// Processes records, in the order of each thread that wrote them.
    pub fn take(&mut self, records: &[Record]) {
        for record in records {
            let is_of_switch = matches!(record.point, Point::SwitchIn | Point::SwitchOut);
            if is_of_switch && !record.flags.has(RecordFlags::WARM_UP) && record.flow != FLOW_FOREIGN {
                self.stays.take(record);
            }
            let counted = matches!(
                record.point,
                Point::IntendedSend | Point::ApplicationSend | Point::ApplicationReceive | Point::Drop
            );
            if !counted || record.flags.has(RecordFlags::WARM_UP) {
                continue;
            }
            let place = self.by_id.get(usize::from(record.flow)).copied().unwrap_or(u16::MAX);
            let Some(flow) = self.flows.get_mut(usize::from(place)) else { continue };
            self.first.get_or_insert(record.time);
            let back = record.flags.has(RecordFlags::RETURN);
            match record.point {
                Point::IntendedSend => flow.intended = (record.sequence, record.time.as_picos()),
                Point::ApplicationSend if !back => flow.sent(record),
                Point::ApplicationReceive if record.crc == Crc::Ok => flow.received(record),
                Point::Drop if record.reason == DropReason::SendRefused && !back => flow.refused += 1,
                _ => {}
            }
        }
    }

    /// Sums of every port of a switch by which a frame left since the last call.
    pub fn look_at_ports(&mut self) -> Vec<PortSums> {
        self.stays.look()
    }

    /// Sums of every flow since the last call. `settled`: a while has passed, after which missing messages count.
    pub fn look(&mut self, settled: bool) -> Vec<FlowSums> {
        self.flows.iter_mut().map(|flow| flow.figures(settled)).collect()
    }
}

#[cfg(test)]
mod tests;
