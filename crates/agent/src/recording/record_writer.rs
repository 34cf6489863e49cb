//! The logging thread: takes records off every ring and writes segments, behind everybody else.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wg_net::clock;
use wg_record::segment::{SegmentInfo, SegmentWriter};
use wg_record::{Record, RecordError};

use crate::recording::planted_clock::PlantedClock;
use crate::recording::record_ring::RecordConsumer;
use crate::timestamps::translation::{TimestampTranslator, TranslationStats};

/// Pause when every ring was empty, the first time; doubled each time they are found empty again. A ring holds what a fast
/// sender makes in several of the longest.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);
/// Longest time a record stays out of the file.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// Time between looks at the clocks.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Most records taken from one ring before the next has its turn.
const CHUNK: usize = 16_384;
/// How much later than the oldest record of another ring the records of a turn may be, ps: disorder within a millisecond
/// costs nobody anything, and turns are long enough.
const TURN_PS: i64 = 1_000_000_000;

/// What the logging thread did and saw.
#[derive(Debug, Default)]
pub struct LoggingStats {
    /// Records in files.
    pub written: u64,
    /// Records rings had no room for, or that could not be written.
    pub dropped: u64,
    /// Steps of the wall clock.
    pub clock_steps: u32,
    /// The largest of them, signed, ns.
    pub largest_clock_step_ns: i64,
    /// Timestamps of the interface, where it timestamps.
    pub placed: Option<TranslationStats>,
    /// The first thing that went wrong with the disk.
    pub failure: Option<String>,
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

/// Writes records until every producer has gone and every ring is empty, under a planted clock where there is one, and with
/// timestamps of the interface placed by `placer`.
///
/// # Errors
/// The spool cannot be written at all; later failures are in the figures.
pub fn run(
    spool: &Path,
    info: SegmentInfo,
    mut sources: Vec<RecordConsumer>,
    planted: Option<PlantedClock>,
    placer: Option<TimestampTranslator>,
) -> Result<LoggingStats, RecordError> {
    let mut writer = SegmentWriter::create(spool, info)?;
    let mut changing = Changing::new(planted, placer);
    let mut figures = LoggingStats::default();
    let (wall, raw) = clock::read_pair();
    let mut watch = ClockWatch::new(wall.get(), raw);
    let mut watched = Instant::now();
    let mut flushed = Instant::now();
    let mut pause = PAUSE;
    loop {
        let over = sources.iter().all(|source| source.ring.is_abandoned());
        let mut moved = 0;
        // In bounded portions, so that flushing and watching the clock are not put off.
        while moved < CHUNK
            && let Some((source, until)) = earliest(&sources)
        {
            changing.look(&mut writer, &mut figures);
            moved += drain(&mut sources[source], until, &mut changing, &mut writer, &mut figures);
        }
        changing.look(&mut writer, &mut figures);
        if flushed.elapsed() >= FLUSH_EVERY {
            note(writer.flush(), &mut figures);
            flushed = Instant::now();
        }
        if watched.elapsed() >= WATCH_EVERY {
            let (wall, raw) = clock::read_pair();
            if let Some(step) = watch.look(wall.get(), raw) {
                figures.clock_steps += 1;
                if step.saturating_abs() > figures.largest_clock_step_ns.saturating_abs() {
                    figures.largest_clock_step_ns = step;
                }
            }
            watched = Instant::now();
        }
        if over && moved == 0 {
            break;
        }
        if moved == 0 {
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        } else {
            pause = PAUSE;
        }
    }
    changing.finish(&mut writer, &mut figures);
    note(writer.flush(), &mut figures);
    figures.written = writer.records_written();
    if let Err(error) = writer.finish() {
        note(Err(error), &mut figures);
    }
    figures.dropped += sources.iter().map(|source| source.dropped.load(Ordering::Relaxed)).sum::<u64>();
    Ok(figures)
}

/// The ring whose next record is the oldest, and how far it may be emptied before another has its turn, ps. Rings that wait
/// for long, because somebody has the core, would else be written one after the other, as if time had gone back.
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

/// Writes what waits in a ring, up to the first record later than `until`, and at least one.
fn drain(
    source: &mut RecordConsumer,
    until: i64,
    changing: &mut Changing,
    writer: &mut SegmentWriter,
    figures: &mut LoggingStats,
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
        changing.write(part, writer, figures);
    }
    chunk.commit(taken);
    taken
}

/// What is done to records before they are written: timestamps of the interface placed, a planted clock applied.
struct Changing {
    planted: Option<PlantedClock>,
    placer: Option<TimestampTranslator>,
    plain: Vec<Record>,
    shown: Vec<Record>,
}

impl Changing {
    fn new(planted: Option<PlantedClock>, placer: Option<TimestampTranslator>) -> Self {
        let room = |wanted| Vec::with_capacity(if wanted { CHUNK } else { 0 });
        Self { plain: room(placer.is_some()), shown: room(planted.is_some()), planted, placer }
    }

    fn write(&mut self, records: &[Record], writer: &mut SegmentWriter, figures: &mut LoggingStats) {
        let Some(placer) = &mut self.placer else {
            return show(self.planted, records, &mut self.shown, writer, figures);
        };
        self.plain.clear();
        for &record in records {
            if TimestampTranslator::is_mine(&record) {
                placer.hold(record);
            } else {
                self.plain.push(record);
            }
        }
        show(self.planted, &self.plain, &mut self.shown, writer, figures);
    }

    /// Reads the interface's clock when it is time, and writes what can be placed by it.
    fn look(&mut self, writer: &mut SegmentWriter, figures: &mut LoggingStats) {
        if let Some(placer) = &mut self.placer
            && placer.look()
        {
            self.plain.clear();
            placer.place(&mut self.plain);
            show(self.planted, &self.plain, &mut self.shown, writer, figures);
        }
    }

    fn finish(&mut self, writer: &mut SegmentWriter, figures: &mut LoggingStats) {
        if let Some(placer) = &mut self.placer {
            self.plain.clear();
            figures.placed = Some(placer.finish(&mut self.plain));
            show(self.planted, &self.plain, &mut self.shown, writer, figures);
        }
    }
}

/// Writes records as the end system's clock shows them.
fn show(
    planted: Option<PlantedClock>,
    records: &[Record],
    shown: &mut Vec<Record>,
    writer: &mut SegmentWriter,
    figures: &mut LoggingStats,
) {
    if records.is_empty() {
        return;
    }
    match planted {
        None => note(writer.write(records), figures),
        Some(clock) => {
            clock.applied(records, shown);
            note(writer.write(shown), figures);
        }
    }
}

fn note(done: Result<(), RecordError>, figures: &mut LoggingStats) {
    if let Err(error) = done {
        if let RecordError::Write { records_lost, .. } = &error {
            figures.dropped += records_lost;
        }
        if figures.failure.is_none() {
            figures.failure = Some(error.to_string());
        }
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
