//! A clock that is wrong on purpose.
//!
//! Namespaces of one machine share its clock, so nothing there could show whether offsets are found. Where the test gives
//! an end system a clock, its agent writes every time as that clock would have shown it. Only what is recorded
//! changes: frames leave when they would have left, and the servicing threads know nothing of it.

use wg_core::clock::{DisciplinedClock, LocalClock};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span};
use wg_plan::Clock;
use wg_record::Record;

/// What such a clock shows: as a simulated one that does not change in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedClock {
    offset: Span,
    drift: FrequencyOffset,
}

impl PlantedClock {
    /// The clock of an end system; nothing for one that shows the time of its host.
    pub fn of(clock: &Clock) -> Option<Self> {
        let drift = FrequencyOffset::nearest(clock.drift_ppb.saturating_mul(1_000_000));
        let planted = Self { offset: clock.offset, drift };
        (planted != Self { offset: Span::ZERO, drift: FrequencyOffset::NONE }).then_some(planted)
    }

    /// What it shows at `time`, saturating at the ends of the range.
    pub fn read(&self, time: RunTime) -> RunTime {
        read(&self.clock(), time)
    }

    /// Records as they are written under it.
    pub fn applied(&self, records: &[Record], into: &mut Vec<Record>) {
        into.clear();
        let clock = self.clock();
        into.extend(records.iter().map(|record| Record { time: read(&clock, record.time), ..*record }));
    }

    fn clock(&self) -> DisciplinedClock {
        DisciplinedClock::over(Oscillator::new(self.drift), self.offset)
    }
}

fn read(clock: &DisciplinedClock, time: RunTime) -> RunTime {
    RunTime::from_picos(clock.read(time).as_picos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_offset_and_drift_from_the_epoch_on() {
        let clock = Clock { offset: Span::from_micros(-5), drift_ppb: 20_000, ..Clock::default() };
        let planted = PlantedClock::of(&clock).expect("not the host's");
        let second = RunTime::ZERO + Span::from_millis(1_000);
        assert_eq!((planted.read(second) - second).as_picos(), 15_000_000);
        assert_eq!((planted.read(RunTime::ZERO) - RunTime::ZERO).as_picos(), -5_000_000);
        assert_eq!(planted.read(RunTime::from_picos(i64::MAX)).as_picos(), i64::MAX);
        assert_eq!(PlantedClock::of(&Clock::default()), None);
    }
}
