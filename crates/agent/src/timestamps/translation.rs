//! Translation of hardware timestamps to `CLOCK_REALTIME`; a record is held until both clocks were read after it.
//!
//! The record writer's thread does this, since it is not time-critical. It reads both clocks so often that the disorder
//! from held records cannot be mistaken for a backward step of the clock.

use std::collections::VecDeque;

use wg_capture::{Octet, Timestamps};
use wg_frame::time::{Epoch, RunTime};
use wg_net::clock;
use wg_record::{Clock, Point, Record};

use super::clock_reading::{PhcTracker, Rate, ReadsBothClocks};
use super::clock_track::{ClockTrack, TrackStats, Translated};

/// Interval of readings of both clocks, ns.
const LOOK_EVERY_NS: i64 = 20_000_000;
/// Maximum number of held records; further ones are discarded and counted.
const MAX_HELD: usize = 1 << 17;

/// Statistics of the translation.
#[derive(Clone, Debug, Default)]
pub struct TranslationStats {
    /// Translated records.
    pub placed: u64,
    /// Records discarded because the clock was stepped or unreadable.
    pub unplaced: u64,
    /// Largest step of which all timestamps are multiples, ns.
    pub step_ns: u64,
    /// Reason for the last failed reading.
    pub failure: Option<String>,
    /// Statistics of the clock.
    pub track: TrackStats,
}

/// Holds and translates records.
pub struct TimestampTranslator {
    source: Box<dyn ReadsBothClocks + Send>,
    track: ClockTrack,
    epoch: Epoch,
    rate: Rate,
    held: VecDeque<Record>,
    looked_ns: i64,
    /// First timestamp, ps, the reference of the step size.
    first_ps: Option<i64>,
    stats: TranslationStats,
}

impl TimestampTranslator {
    /// Translator of a run that started at `epoch`.
    pub fn new(clock: PhcTracker, epoch: Epoch) -> Self {
        let PhcTracker { source, track, rate } = clock;
        Self {
            source,
            track,
            epoch,
            rate,
            held: VecDeque::new(),
            looked_ns: i64::MIN,
            first_ps: None,
            stats: TranslationStats::default(),
        }
    }

    /// True if the record has a hardware timestamp to be translated.
    pub fn is_mine(record: &Record) -> bool {
        record.clock == Clock::Hardware
    }

    /// Reads both clocks if due; true if it did.
    pub fn look(&mut self) -> bool {
        let now = clock::monotonic_raw();
        let due = now.saturating_sub(self.looked_ns) >= LOOK_EVERY_NS;
        if due {
            self.read();
            self.looked_ns = now;
        }
        due
    }

    fn read(&mut self) {
        match self.source.cross_timestamp() {
            Ok(timestamp) => {
                self.track.handle_reading(timestamp);
            }
            Err(error) => self.stats.failure = Some(error.to_string()),
        }
    }

    /// Adds a record whose time is a timestamp plus the nominal offset.
    pub fn hold(&mut self, record: Record) {
        let shown = record.time.as_picos();
        let since = shown.abs_diff(*self.first_ps.get_or_insert(shown)) / 1_000;
        if self.stats.step_ns != 1 {
            self.stats.step_ns = greatest_common_divisor(self.stats.step_ns, since);
        }
        if self.held.len() < MAX_HELD {
            self.held.push_back(record);
        } else {
            self.stats.unplaced += 1;
        }
    }

    /// Moves the records whose time is known to `into`.
    pub fn translate(&mut self, into: &mut Vec<Record>) {
        // Sent and received records come from several rings and are only nearly ordered, so a record that must wait
        // does not block others.
        for _ in 0..self.held.len() {
            let Some(record) = self.held.pop_front() else { return };
            let shown = self.epoch.wall_nanos(record.time).get();
            match self.track.place(shown) {
                Translated::By(offset) => {
                    into.push(self.moved(record, offset));
                    self.stats.placed += 1;
                }
                Translated::Later => self.held.push_back(record),
                Translated::Never => self.stats.unplaced += 1,
            }
        }
    }

    /// Translates or discards all held records after a last reading.
    pub fn finish(&mut self, into: &mut Vec<Record>) -> TranslationStats {
        // A reading may be rejected as poor, but within eight attempts the limit expires and any is accepted.
        for _ in 0..8 {
            self.read();
            self.translate(into);
            if self.held.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.stats.unplaced += self.held.len() as u64;
        self.held.clear();
        self.stats.track = self.track.finish();
        std::mem::take(&mut self.stats)
    }

    /// Record at its translated time, shifted to the reference octet: the first bit for sent frames, the last for
    /// received ones.
    fn moved(&self, record: Record, offset_ps: i64) -> Record {
        let (timestamped, wanted) = match record.point {
            Point::WireSend => (Timestamps::HARDWARE.sent, Octet::Preamble),
            _ => (Timestamps::HARDWARE.received, Octet::Last),
        };
        let octets =
            timestamped.moved_to(wanted, 0, u64::from(record.length), Some(self.rate.0)).unwrap_or(0);
        let time = record.time.as_picos().saturating_add(offset_ps).saturating_add(octets);
        Record { time: RunTime::from_picos(time), ..record }
    }
}

/// Greatest common divisor; 0 is divisible by any number.
pub fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::time::WallNanos;
    use wg_net::CrossTimestamp;
    use wg_record::{Crc, DropReason, RecordFlags};

    /// Scripted clocks: `CLOCK_REALTIME` advances by 10 ms per reading.
    struct Script {
        now: i64,
        offset: i64,
    }
    impl ReadsBothClocks for Script {
        fn cross_timestamp(&mut self) -> std::io::Result<CrossTimestamp> {
            self.now += 10_000_000;
            self.offset += 1_000;
            let offset = self.offset;
            Ok(CrossTimestamp { hardware_ns: self.now + offset, realtime_ns: self.now, uncertainty_ns: 50 })
        }
    }

    fn record(point: Point, shown_ns: i64, epoch: Epoch) -> Record {
        Record {
            time: epoch.run_time(WallNanos::new(shown_ns)).expect("within the range"),
            sequence: 1,
            flow: 1,
            node: 0,
            port: 1,
            length: 1_000,
            point,
            clock: Clock::Hardware,
            crc: Crc::Unchecked,
            reason: DropReason::None,
            flags: RecordFlags::empty(),
        }
    }

    #[test]
    fn records_wait_for_the_next_reading_and_are_moved_to_the_octet_of_their_point() {
        let start = 1_700_000_000_000_000_000;
        let mut script = Script { now: start, offset: 500_000 };
        let first = script.cross_timestamp().expect("it never fails");
        let track = ClockTrack::new(first);
        let nominal = track.nominal_ns();
        let epoch = Epoch::new(WallNanos::new(start));
        let mut translator = TimestampTranslator::new(
            PhcTracker { source: Box::new(script), track, rate: Rate(1_000_000_000) },
            epoch,
        );
        let (mut out, at) = (Vec::new(), first.realtime_ns + 5_000_000);
        // The clock gains 1 µs per 10 ms, so half of it after 5 ms.
        let shown = at + 501_000 + 500 + nominal;
        translator.hold(record(Point::WireSend, shown, epoch));
        translator.hold(record(Point::WireReceive, shown + 8, epoch));
        translator.translate(&mut out);
        assert!(out.is_empty(), "no reading lies behind them");
        translator.read();
        translator.translate(&mut out);
        let times: Vec<i64> =
            out.iter().map(|r| (r.time.as_picos() - (at - start) * 1_000 + 500).div_euclid(1_000)).collect();
        // The preamble takes 64 ns before, the last octet is 8 µs after the first.
        assert_eq!(times, [-64, 8 + 8_000]);
        let stats = translator.finish(&mut out);
        assert_eq!((stats.placed, stats.unplaced, stats.step_ns), (2, 0, 8));
        assert!(stats.failure.is_none() && stats.track.steps == 0);
    }
}
