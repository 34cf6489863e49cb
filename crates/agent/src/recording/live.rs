//! Live figures of a run: the record writer's records, aggregated once a second for the testmaster; the first figures
//! are sent as soon as there is data.
//!
//! The record writer has the lowest priority, and all work here is done on its thread: no other thread counts, waits or
//! allocates for it. The figures are provisional. Records lost before they reached the writer are missing and reported
//! as such, and the verdict of the run does not use the figures.
//!
//! The receiver of a one-way flow does not know the send time of a message, but its intended send time follows from the
//! schedule in the plan. A latency here therefore starts at the intended send time and includes the sender's delay.

use std::sync::{Arc, Mutex, PoisonError};

use wg_frame::time::{RunTime, Span};
use wg_plan::FlowId;
use wg_plan::schedule::Schedule;
use wg_record::{Crc, DropReason, Point, Record, RecordFlags};

use crate::proto;

/// Maximum number of flows with live figures per agent; further flows are omitted and counted.
pub const MOST_FLOWS: usize = 256;
/// Maximum number of send times stored for all flows together.
const MOST_REMEMBERED: usize = 1 << 20;
const LEAST_REMEMBERED: usize = 64;
/// Number of sequence numbers within which a late message is distinguished from a duplicate.
const WINDOW: u32 = 1_024;
const WORDS: usize = WINDOW as usize / 64;
/// Interval between figures, ps.
const SECOND: i64 = 1_000_000_000_000;
/// Time from the first message of the measured part to the first figures, ps.
const FIRST: i64 = SECOND / 10;
/// Buckets per octave of the histogram: a percentile is at most a sixteenth too high.
const PARTS: u32 = 16;
const PARTS_LOG: u32 = 4;
/// Buckets up to 2^43 ns, which is more than two hours.
const BUCKETS: usize = (40 * PARTS) as usize;

/// Relation of an agent to a flow.
#[derive(Clone, Debug)]
pub enum LivePart {
    /// Sender.
    Sender,
    /// Receiver; the schedule gives the due times, if it follows from the plan.
    Receiver(Option<Schedule>),
    /// Sender of messages that a relay returns.
    RoundTrip,
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
    fn drain_into(&mut self, figures: &mut proto::LiveFlow) {
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
    round_trip: bool,
    arrives: bool,
    instants: Instants,
    arrivals: Arrivals,
    latency: Histogram,
    worst_ns: i64,
}

impl Followed {
    fn new(flow: LiveFlow, room: usize) -> Self {
        let (schedule, round_trip, arrives) = match flow.part {
            LivePart::Sender => (None, false, false),
            LivePart::Receiver(schedule) => (schedule, false, true),
            LivePart::RoundTrip => (None, true, true),
        };
        let wanted = usize::try_from(flow.in_half_a_second.saturating_mul(4)).unwrap_or(usize::MAX);
        let timed = schedule.is_some() || round_trip;
        Self {
            id: flow.id,
            sent: 0,
            refused: 0,
            intended: (u32::MAX, 0),
            latest_ns: 0,
            planned: u32::try_from(flow.planned).unwrap_or(u32::MAX),
            schedule,
            round_trip,
            arrives,
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
        if self.round_trip {
            self.instants.put(sequence, at);
        }
    }

    fn received(&mut self, record: &Record) {
        let back = record.flags.has(RecordFlags::RETURN);
        if !self.arrives || back != self.round_trip || record.sequence >= self.planned {
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

    /// Advances the schedule to a message, by at most a second beyond `now`, since no message arrives before it is due.
    fn recall(&mut self, sequence: u32, now: RunTime) {
        let Some(schedule) = &mut self.schedule else { return };
        let until = now + Span::from_picos(SECOND);
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
    fn figures(&mut self, settled: bool) -> proto::LiveFlow {
        let mut figures = proto::LiveFlow {
            flow: u32::from(self.id),
            sent: self.sent - self.refused.min(self.sent),
            refused: self.refused,
            received: self.arrivals.received,
            missing: if settled { self.arrivals.settle() } else { 0 },
            repeats: self.arrivals.repeats,
            late_ns: std::mem::take(&mut self.latest_ns),
            arrives: self.arrives,
            round_trip: self.round_trip,
            worst_ns: self.worst_ns.max(0),
            ..proto::LiveFlow::default()
        };
        self.latency.drain_into(&mut figures);
        figures
    }
}

/// Live figures of an agent's flows, derived from its records.
#[derive(Debug)]
pub struct LiveFigures {
    flows: Vec<Followed>,
    /// Index in `flows` by flow number; `u16::MAX`: not followed.
    by_id: Vec<u16>,
    left_out: u32,
    /// Time of the first message of the measured part, ps.
    first: Option<i64>,
    /// True after figures with a message were shown.
    said: bool,
    second: i64,
    number: u32,
    board: Arc<LiveBoard>,
}

impl LiveFigures {
    /// Follows these flows, up to the maximum number, and shows their figures on `board`.
    pub fn new(mut flows: Vec<LiveFlow>, board: Arc<LiveBoard>) -> Self {
        let left_out = u32::try_from(flows.len().saturating_sub(MOST_FLOWS)).unwrap_or(u32::MAX);
        flows.truncate(MOST_FLOWS);
        let room = (MOST_REMEMBERED / flows.len().max(1)).min(1 << 16);
        let most = flows.iter().map(|flow| usize::from(flow.id) + 1).max().unwrap_or(0);
        let mut by_id = vec![u16::MAX; most];
        for (place, flow) in (0..).zip(&flows) {
            by_id[usize::from(flow.id)] = place;
        }
        let flows = flows.into_iter().map(|flow| Followed::new(flow, room)).collect();
        Self { flows, by_id, left_out, first: None, said: false, second: 0, number: 0, board }
    }

    /// Processes records, in the order of each thread that wrote them.
    pub fn take(&mut self, records: &[Record]) {
        for record in records {
            let counted = matches!(
                record.point,
                Point::IntendedSend | Point::ApplicationSend | Point::ApplicationReceive | Point::Drop
            );
            if !counted || record.flags.has(RecordFlags::WARM_UP) {
                continue;
            }
            let place = self.by_id.get(usize::from(record.flow)).copied().unwrap_or(u16::MAX);
            let Some(flow) = self.flows.get_mut(usize::from(place)) else { continue };
            self.first.get_or_insert(record.time.as_picos());
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

    /// Shows the figures once a second of run time, and once before; `dropped` returns the number of lost records.
    pub fn look(&mut self, now: Option<RunTime>, dropped: impl FnOnce() -> u64) {
        let Some(now) = now else { return };
        let second = now.as_picos() / SECOND;
        let settled = second > self.second;
        if !(settled || self.has_first(now)) || self.flows.is_empty() {
            return;
        }
        self.said |= self.flows.iter().any(Followed::begun);
        self.second = second;
        self.number = self.number.saturating_add(1);
        self.board.show(proto::LiveFigures {
            number: self.number,
            at_ns: now.as_picos() / 1_000,
            records_dropped: dropped(),
            flows: self.flows.iter_mut().map(|flow| flow.figures(settled)).collect(),
            flows_left_out: self.left_out,
        });
    }

    /// True if there is data and no figures were shown yet.
    fn has_first(&self, now: RunTime) -> bool {
        let due = self.first.is_some_and(|first| now.as_picos() - first >= FIRST);
        !self.said && due && self.flows.iter().any(Followed::begun)
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
