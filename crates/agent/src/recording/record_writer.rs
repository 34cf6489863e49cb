//! The record writer: takes records off every ring and writes segments, at the lowest priority.

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

/// Pause when every ring was empty, the first time; doubled each time they are found empty again. A ring holds what a
/// fast sender makes in several of the longest.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// Longest time a record stays out of the file.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// Time between looks at the clocks.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Most records taken from one ring before the next has its turn.
const CHUNK: usize = 16_384;
/// How much later than the oldest record of another ring the records of a turn may be, ps: disorder within a
/// millisecond costs nobody anything, and turns are long enough.
const TURN_PS: i64 = 1_000_000_000;

/// Statistics of the record writer.
#[derive(Debug, Default)]
pub struct RecordWriterStats {
    /// Records in files.
    pub written: u64,
    /// Records rings had no room for, or that could not be written.
    pub dropped: u64,
    /// Steps of the wall clock.
    pub clock_steps: u32,
    /// The largest of them, signed, ns.
    pub largest_clock_step_ns: i64,
    /// Hardware timestamps, by port.
    pub translated: BTreeMap<u16, TranslationStats>,
    /// What became of the log over the network, where there is one.
    pub remote_log: Option<RemoteLogStats>,
    /// The first thing that went wrong with the disk.
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

/// Tells steps of `CLOCK_REALTIME` from slewing, by its difference to `CLOCK_MONOTONIC_RAW`.
#[derive(Debug)]
pub struct ClockWatch {
    offset: i64,
    raw: i64,
}

impl ClockWatch {
    /// The kernel slews by 500 ppm at most; as much again for the adjustment of the tick.
    const SLEW_PPM: i64 = 1_000;
    /// Beyond this a change is a step, ns.
    const STEP: i64 = 1_000_000;

    /// Begins with a reading of both clocks, ns.
    pub const fn new(wall: i64, raw: i64) -> Self {
        Self { offset: wall.wrapping_sub(raw), raw }
    }

    /// A later reading; the size of the step since the last one, ns, if it was one.
    pub fn look(&mut self, wall: i64, raw: i64) -> Option<i64> {
        let offset = wall.wrapping_sub(raw);
        let change = offset.wrapping_sub(self.offset);
        let slewed = raw.saturating_sub(self.raw).saturating_mul(Self::SLEW_PPM) / 1_000_000;
        (self.offset, self.raw) = (offset, raw);
        (change.saturating_abs() > Self::STEP + slewed).then_some(change)
    }
}

/// Whose records they are, and the clock that the node shows.
#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Index of the node.
    pub node: NodeIndex,
    /// Its name.
    pub name: String,
    /// Index of the run.
    pub run_index: u32,
    /// A wrong clock that times are written by; `None`: the host's.
    pub planted: Option<PlantedClock>,
    /// A host's clock that is wrong; what is planted beside it counts.
    pub planted_host: Option<PlantedHostClock>,
    /// What segments name as their epoch, set before the run begins; 0: the epoch itself.
    pub common_epoch: Arc<AtomicI64>,
}

/// What a writer thread comes to; `None` where the run never began.
pub type Outcome = Option<Result<RecordWriterStats, RecordError>>;

/// What a writer takes records from.
pub struct Sources {
    /// Their rings.
    pub rings: Vec<RecordConsumer>,
    /// The hardware clocks of ports, by which their timestamps are translated.
    pub clocks: Vec<(u16, PhcTracker)>,
    /// Who follows them as they pass.
    pub live: LiveFigures,
    /// The log that goes over the network.
    pub remote_log: Option<RemoteLog>,
}

/// Writes records until every producer has gone and every ring is empty, under a planted clock where there is one.
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
        // In bounded portions, so that flushing and watching the clock are not put off.
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

/// Records that rings had no room for.
fn lost_in(sources: &[RecordConsumer]) -> u64 {
    sources.iter().map(|source| source.dropped.load(Ordering::Relaxed)).sum()
}

/// The ring whose next record is the oldest, and how far it may be emptied before another has its turn, ps. Rings that
/// wait for long, because somebody has the core, would else be written one after the other, as if time had gone back.
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

/// When a record's turn is, ps. The time of one that still has to be placed is another clock's: it holds nobody up.
fn turn_of(record: &Record) -> i64 {
    if TimestampTranslator::is_mine(record) { i64::MIN } else { record.time.as_picos() }
}

/// Segments, and what is done to records before they are written: timestamps translated, a planted clock applied.
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

    /// Writes what waits in a ring, up to the first record later than `until`, and at least one.
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

    /// Reads the hardware clocks when it is time, and writes the records whose time is known by then.
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

    /// Writes records as the node's clock shows them.
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
