//! Records of all stages, merged into the one order of a run.
//!
//! Records are ordered by the instant of the event that made them, those of one instant by where they were made
//! ([`order`](crate::order)): no number of stages changes that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};

use wg_frame::time::RunTime;
use wg_record::{Record, Truth};

use super::exchange::Shared;
use crate::error::SimError;
use crate::order::{order, truth_order};
use crate::sink::Sink;

/// Records in a batch.
const BATCH: usize = 4_096;

/// Entries of a stage, each with its instant, ascending.
type Entries<T> = Vec<(RunTime, T)>;

/// Records of a stage: all of instants before `until` are in this batch or were in those before.
#[derive(Default)]
pub(crate) struct Records {
    from: usize,
    records: Entries<Record>,
    truths: Entries<Truth>,
    until: i64,
}

/// The sink of a stage: hands its records to whoever merges them.
pub(crate) struct StageSink {
    from: usize,
    instant: RunTime,
    records: Entries<Record>,
    /// Number of records before this instant.
    before: usize,
    truths: Entries<Truth>,
    to: SyncSender<Records>,
    /// Empty vectors that come back: memory that both sides have in their caches.
    back: Receiver<Entries<Record>>,
    shared: Arc<Shared>,
}

impl StageSink {
    /// The sink of stage `from`: it hands records to `to`, whose vectors come `back`.
    pub(crate) fn new(
        from: usize,
        to: SyncSender<Records>,
        back: Receiver<Entries<Record>>,
        shared: Arc<Shared>,
    ) -> Self {
        let (records, truths) = (Vec::with_capacity(BATCH), Vec::new());
        Self { from, instant: RunTime::ZERO, records, before: 0, truths, to, back, shared }
    }

    /// Hands over what there is of instants before this one, which are all before `until`.
    fn send(&mut self, until: i64) {
        let empty = self.back.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH + BATCH / 4));
        let mut records = std::mem::replace(&mut self.records, empty);
        self.records.extend(records.drain(self.before..));
        self.before = 0;
        let batch = Records { from: self.from, records, truths: std::mem::take(&mut self.truths), until };
        if self.to.send(batch).is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Hands over the last records.
    pub(crate) fn finish(mut self) {
        self.before = self.records.len();
        self.send(i64::MAX);
    }
}

impl Sink for StageSink {
    #[inline(always)]
    fn record(&mut self, record: &Record) {
        self.records.push((self.instant, *record));
    }

    fn truth(&mut self, truth: &Truth) {
        self.truths.push((self.instant, *truth));
    }

    #[inline(always)]
    fn begin_instant(&mut self, instant: RunTime) {
        self.before = self.records.len();
        if self.before >= BATCH {
            self.send(instant.as_picos());
        }
        self.instant = instant;
    }

    fn sort_instant(&mut self) {
        self.records[self.before..].sort_by_key(|(_, record)| order(record));
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        self.send(self.instant.as_picos());
        if self.shared.stop.load(Ordering::Relaxed) { Err(SimError::Stopped) } else { Ok(()) }
    }
}

/// The entries of one stage that wait to be merged.
struct Stream<T> {
    batches: VecDeque<Entries<T>>,
    /// Number of entries of the first batch that are merged.
    merged: usize,
}

impl<T: Copy> Stream<T> {
    const fn new() -> Self {
        Self { batches: VecDeque::new(), merged: 0 }
    }

    fn add(&mut self, batch: Entries<T>) {
        if !batch.is_empty() {
            self.batches.push_back(batch);
        }
    }

    #[inline]
    fn instant(&self) -> Option<i64> {
        Some(self.batches.front()?.get(self.merged)?.0.as_picos())
    }

    /// Takes the entries of instants before `until`, hands each to `out`, and empty batches to `done`.
    #[inline]
    fn take(&mut self, until: i64, mut out: impl FnMut(RunTime, &T), mut done: impl FnMut(Entries<T>)) {
        while let Some(batch) = self.batches.front() {
            for (instant, entry) in &batch[self.merged..] {
                if instant.as_picos() >= until {
                    return;
                }
                out(*instant, entry);
                self.merged += 1;
            }
            self.merged = 0;
            self.batches.pop_front().map(&mut done);
        }
    }
}

/// Entries of all stages, of one kind.
struct Merged<T> {
    streams: Vec<Stream<T>>,
    /// Entries of one instant from several stages.
    tied: Vec<T>,
}

impl<T: Copy> Merged<T> {
    fn new(stages: usize) -> Self {
        Self { streams: (0..stages).map(|_| Stream::new()).collect(), tied: Vec::new() }
    }

    /// Hands all entries with their instants to `out`, by instant and, within one, by `order`, as far as all stages have come.
    fn emit<K: Ord>(
        &mut self,
        until: &[i64],
        order: impl Fn(&T) -> K,
        mut out: impl FnMut(RunTime, &T),
        mut done: impl FnMut(usize, Entries<T>),
    ) {
        // Entries that are still to come are of these instants or later.
        let least = |streams: &[Stream<T>]| {
            let empty = |(stream, _): &(&Stream<T>, &i64)| stream.instant().is_none();
            streams.iter().zip(until).filter(empty).map(|(_, until)| *until).min().unwrap_or(i64::MAX)
        };
        loop {
            let limit = least(&self.streams);
            let mut first: Option<(i64, usize)> = None;
            let mut second = limit;
            for (number, stream) in self.streams.iter().enumerate() {
                let Some(at) = stream.instant() else { continue };
                match first {
                    Some((other, _)) if at >= other => second = second.min(at),
                    Some((other, _)) => {
                        second = second.min(other);
                        first = Some((at, number));
                    }
                    None => first = Some((at, number)),
                }
            }
            let Some((at, number)) = first.filter(|(at, _)| *at < limit) else { return };
            if at < second {
                // Until then only this stage has entries, and those of each instant are in order.
                self.streams[number].take(second, &mut out, |batch| done(number, batch));
                continue;
            }
            let Self { streams, tied } = self;
            for (number, stream) in streams.iter_mut().enumerate() {
                stream.take(at + 1, |_, entry| tied.push(*entry), |batch| done(number, batch));
            }
            tied.sort_by_key(&order);
            tied.drain(..).for_each(|entry| out(RunTime::from_picos(at), &entry));
        }
    }
}

/// Merges what all stages hand over into `sink`, and gives their vectors `back`; `end` is the end of the run, as far as it is known.
///
/// # Errors
/// Those of the sink: then the stages find nobody who takes their records, and end.
pub(crate) fn merge(
    from: &Receiver<Records>,
    back: &[SyncSender<Entries<Record>>],
    end: RunTime,
    sink: &mut impl Sink,
) -> Result<(), SimError> {
    let stages = back.len();
    // Where none is wanted any more, it is dropped.
    let give_back = |stage: usize, mut batch: Entries<Record>| {
        batch.clear();
        drop(back[stage].try_send(batch));
    };
    let mut records: Merged<Record> = Merged::new(stages);
    let mut truths: Merged<Truth> = Merged::new(stages);
    let mut until = vec![i64::MIN; stages];
    while let Ok(batch) = from.recv() {
        until[batch.from] = batch.until;
        records.streams[batch.from].add(batch.records);
        truths.streams[batch.from].add(batch.truths);
        let write = |instant, record: &Record| {
            sink.begin_instant(instant);
            sink.record(record);
        };
        records.emit(&until, order, write, give_back);
        truths.emit(&until, truth_order, |_, truth| sink.truth(truth), |_, _| {});
        let least = until.iter().copied().min().unwrap_or(i64::MAX);
        if least > i64::MIN {
            let now = RunTime::from_picos(least).min(end);
            sink.advance(now, end)?;
        }
    }
    Ok(())
}
