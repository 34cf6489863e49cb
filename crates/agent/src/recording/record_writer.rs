//! Record writer: takes records from every ring and writes segments, at the lowest priority.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use wg_frame::time::Epoch;
use wg_net::clock;
use wg_plan::NodeIndex;
use wg_record::segment::{SegmentInfo, SegmentWriter};
use wg_record::{Record, RecordError};

use crate::recording::live::LiveFigures;
use crate::recording::planted_clock::{PlantedClock, PlantedHostClock};
use crate::recording::record_ring::RecordConsumer;
use crate::recording::remote_log::{RemoteLog, RemoteLogStats};
use crate::timestamps::PhcTracker;
use crate::timestamps::translation::{TimestampTranslator, TranslationStats};

/// First pause when all rings are empty, doubled each time they are still empty. A ring holds the records that a fast
/// sender writes in several of the longest pauses.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// Longest time before a record is written to the file.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// Interval of clock checks.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of records taken from one ring in a row.
const CHUNK: usize = 16_384;
/// Limit, ps, by which records of one turn may be later than the oldest record of another ring: readers tolerate
/// disorder within a millisecond, and turns remain long enough.
const TURN_PS: i64 = 1_000_000_000;

/// Statistics of the record writer.
#[derive(Debug, Default)]
pub struct RecordWriterStats {
    /// Records in files.
    pub written: u64,
    /// Records lost because a ring was full or a write failed.
    pub dropped: u64,
    /// Steps of the wall clock.
    pub clock_steps: u32,
    /// Largest step, signed, ns.
    pub largest_clock_step_ns: i64,
    /// Translation of hardware timestamps, by port.
    pub translated: BTreeMap<u16, TranslationStats>,
    /// Statistics of the log over the network, if any.
    pub remote_log: Option<RemoteLogStats>,
    /// First disk error.
    pub failure: Option<String>,
}

impl RecordWriterStats {
    fn add_step(&mut self, step_ns: i64) {
        self.clock_steps += 1;
        if step_ns.saturating_abs() > self.largest_clock_step_ns.saturating_abs() {
            self.largest_clock_step_ns = step_ns;
        }
    }
}

/// Detects steps of `CLOCK_REALTIME`, as opposed to slewing, by comparison with `CLOCK_MONOTONIC_RAW`.
#[derive(Debug)]
pub struct ClockWatch {
    offset: i64,
    raw: i64,
}

impl ClockWatch {
    /// Limit of slewing: the kernel's 500 ppm plus as much for the adjustment of the tick.
    const SLEW_PPM: i64 = 1_000;
    /// Deviation above which a change is a step, ns.
    const STEP: i64 = 1_000_000;

    /// Watch with the first reading of both clocks, ns.
    pub const fn new(wall: i64, raw: i64) -> Self {
        Self { offset: wall.wrapping_sub(raw), raw }
    }

    /// Evaluates a further reading; returns the step since the last one, ns, if there was one.
    pub fn look(&mut self, wall: i64, raw: i64) -> Option<i64> {
        let offset = wall.wrapping_sub(raw);
        let change = offset.wrapping_sub(self.offset);
        let slewed = raw.saturating_sub(self.raw).saturating_mul(Self::SLEW_PPM) / 1_000_000;
        (self.offset, self.raw) = (offset, raw);
        (change.saturating_abs() > Self::STEP + slewed).then_some(change)
    }
}

/// Origin of the records and the clock they use.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Index of the node.
    pub node: NodeIndex,
    /// Name of the node.
    pub name: String,
    /// Index of the run.
    pub run_index: u32,
    /// Planted clock of the recorded times; `None`: the host's clock.
    pub planted: Option<PlantedClock>,
    /// Planted clock of the host; `planted` takes precedence.
    pub planted_host: Option<PlantedHostClock>,
    /// Epoch written to the segments, set before the run starts; 0: the epoch itself.
    pub common_epoch: Arc<AtomicI64>,
}

/// Result of a writer thread; `None` if the run never started.
pub type Outcome = Option<Result<RecordWriterStats, RecordError>>;

/// Inputs of a writer.
pub struct Sources {
    /// Record rings.
    pub rings: Vec<RecordConsumer>,
    /// Hardware clocks of ports, which translate their timestamps.
    pub clocks: Vec<(u16, PhcTracker)>,
    /// Live figures of the records.
    pub live: LiveFigures,
    /// Log over the network.
    pub remote_log: Option<RemoteLog>,
}

/// Writes records, with the planted clock if any, until every producer has ended and every ring is empty.
///
/// # Errors
/// The spool cannot be written at all; later failures are in the statistics.
pub fn run(
    spool: &Path,
    config: WriterConfig,
    epoch: Epoch,
    Sources { rings: mut sources, clocks, mut live, mut remote_log }: Sources,
) -> Result<RecordWriterStats, RecordError> {
    let host = config.planted_host;
    let read = || {
        let (wall, raw) = clock::read_pair();
        (host.map_or(wall, |host| host.shown(wall)).get(), raw)
    };
    let mut writer = Writer::create(spool, config, epoch, clocks)?;
    let (wall, raw) = read();
    let mut watch = ClockWatch::new(wall, raw);
    let (mut watched, mut flushed) = (Instant::now(), Instant::now());
    let mut pause = PAUSE;
    loop {
        let over = sources.iter().all(|source| source.ring.is_abandoned());
        let mut moved = 0;
        // Bounded chunks, so that flushes and clock checks are not delayed.
        while moved < CHUNK
            && let Some((source, until)) = earliest(&sources)
        {
            writer.translate();
            moved += writer.drain(&mut sources[source], until, &mut live, remote_log.as_mut());
        }
        writer.translate();
        if flushed.elapsed() >= FLUSH_EVERY {
            let done = writer.segments.flush();
            writer.note(done);
            flushed = Instant::now();
        }
        if watched.elapsed() >= WATCH_EVERY {
            let (wall, raw) = read();
            if let Some(step) = watch.look(wall, raw) {
                writer.stats.add_step(step);
            }
            live.look(epoch.run_time(clock::realtime()), || lost_in(&sources));
            watched = Instant::now();
        }
        if moved > 0 {
            pause = PAUSE;
        } else if over {
            break;
        } else {
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
    let mut stats = writer.finish();
    stats.remote_log = remote_log.map(|log| log.stats());
    stats.dropped += lost_in(&sources);
    Ok(stats)
}

/// Number of records dropped in full rings.
fn lost_in(sources: &[RecordConsumer]) -> u64 {
    sources.iter().map(|source| source.dropped.load(Ordering::Relaxed)).sum()
}

/// Ring with the oldest next record, and the time up to which it may be drained before another ring's turn, ps.
/// Otherwise rings that wait long for a core would be written one after the other, with times going back.
fn earliest(sources: &[RecordConsumer]) -> Option<(usize, i64)> {
    let (mut first, mut others) = (None, i64::MAX);
    for (at, source) in sources.iter().enumerate() {
        let Ok(record) = source.ring.peek() else { continue };
        let time = turn_of(record);
        match first {
            Some((_, oldest)) if time >= oldest => others = others.min(time),
            _ => {
                others = first.map_or(others, |(_, oldest)| others.min(oldest));
                first = Some((at, time));
            }
        }
    }
    first.map(|(at, _)| (at, others.saturating_add(TURN_PS)))
}

/// Time of a record's turn, ps. An untranslated time is from another clock and delays no other record.
fn turn_of(record: &Record) -> i64 {
    if TimestampTranslator::is_mine(record) { i64::MIN } else { record.time.as_picos() }
}

/// Segment writer that translates timestamps and applies a planted clock before writing.
struct Writer {
    segments: SegmentWriter,
    planted: Option<PlantedClock>,
    translators: BTreeMap<u16, TimestampTranslator>,
    translated: Vec<Record>,
    shown: Vec<Record>,
    stats: RecordWriterStats,
}

impl Writer {
    fn create(
        spool: &Path,
        config: WriterConfig,
        epoch: Epoch,
        clocks: Vec<(u16, PhcTracker)>,
    ) -> Result<Self, RecordError> {
        let WriterConfig { node, name, run_index, planted, planted_host, common_epoch } = config;
        let planted = planted.or_else(|| planted_host?.of_records(epoch.wall()));
        let epoch_realtime_ns = match common_epoch.load(Ordering::Acquire) {
            0 => epoch.wall().get(),
            common => common,
        };
        let info = SegmentInfo { end_system: name, node, run_index, epoch_realtime_ns };
        let room = |wanted| Vec::with_capacity(if wanted { CHUNK } else { 0 });
        Ok(Self {
            segments: SegmentWriter::create(spool, info)?,
            translated: room(!clocks.is_empty()),
            shown: room(planted.is_some()),
            planted,
            translators: clocks
                .into_iter()
                .map(|(port, clock)| (port, TimestampTranslator::new(clock, epoch)))
                .collect(),
            stats: RecordWriterStats::default(),
        })
    }

    /// Writes records of a ring up to the first one later than `until`, and at least one.
    fn drain(
        &mut self,
        source: &mut RecordConsumer,
        until: i64,
        live: &mut LiveFigures,
        mut remote_log: Option<&mut RemoteLog>,
    ) -> usize {
        let waiting = source.ring.slots().min(CHUNK);
        let Ok(chunk) = source.ring.read_chunk(waiting) else { return 0 };
        let (first, second) = chunk.as_slices();
        let due = |part: &[Record]| part.iter().take_while(|record| turn_of(record) <= until).count();
        let of_first = due(first);
        let of_second = if of_first == first.len() { due(second) } else { 0 };
        let taken = (of_first + of_second).max(1).min(waiting);
        let split = taken.min(first.len());
        for part in [&first[..split], &second[..taken - split]] {
            live.take(part);
            if let Some(log) = &mut remote_log {
                log.take(part);
            }
            self.write(part);
        }
        chunk.commit(taken);
        taken
    }

    fn write(&mut self, records: &[Record]) {
        if self.translators.is_empty() {
            return self.show(records);
        }
        let mut plain = std::mem::take(&mut self.translated);
        for &record in records {
            match self.translators.get_mut(&record.port) {
                Some(translator) if TimestampTranslator::is_mine(&record) => translator.hold(record),
                _ => plain.push(record),
            }
        }
        self.put_back(plain);
    }

    /// Reads the hardware clocks when due, and writes the records whose times are known by then.
    fn translate(&mut self) {
        let mut ready = std::mem::take(&mut self.translated);
        for translator in self.translators.values_mut() {
            if translator.look() {
                translator.translate(&mut ready);
            }
        }
        self.put_back(ready);
    }

    fn put_back(&mut self, mut records: Vec<Record>) {
        self.show(&records);
        records.clear();
        self.translated = records;
    }

    /// Writes records with times of the node's clock.
    fn show(&mut self, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        let done = match &self.planted {
            None => self.segments.write(records),
            Some(clock) => {
                clock.applied(records, &mut self.shown);
                self.segments.write(&self.shown)
            }
        };
        self.note(done);
    }

    fn note(&mut self, done: Result<(), RecordError>) {
        if let Err(error) = done {
            if let RecordError::Write { records_lost, .. } = &error {
                self.stats.dropped += records_lost;
            }
            self.stats.failure.get_or_insert_with(|| error.to_string());
        }
    }

    fn finish(mut self) -> RecordWriterStats {
        let mut last = std::mem::take(&mut self.translated);
        for (port, translator) in &mut self.translators {
            self.stats.translated.insert(*port, translator.finish(&mut last));
        }
        self.put_back(last);
        let flushed = self.segments.flush();
        self.note(flushed);
        self.stats.written = self.segments.records_written();
        let Self { segments, mut stats, .. } = self;
        if let Err(error) = segments.finish() {
            if let RecordError::Write { records_lost, .. } = &error {
                stats.dropped += records_lost;
            }
            stats.failure.get_or_insert_with(|| error.to_string());
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slewing_is_no_step_and_a_step_is_one(
            passed in 1_i64..1_000_000_000, ppm in -500_i64..=500, step in 2_100_000_i64..1_000_000_000, back: bool
        ) {
            let mut watch = ClockWatch::new(5_000_000_000, 1_000);
            let slewed = passed * ppm / 1_000_000;
            prop_assert_eq!(watch.look(5_000_000_000 + passed + slewed, 1_000 + passed), None);
            let step = if back { -step } else { step };
            let seen = watch.look(5_000_000_000 + 2 * passed + slewed + step, 1_000 + 2 * passed);
            prop_assert_eq!(seen, Some(step));
        }
    }
}
