//! A clock that is wrong on purpose.
//!
//! Namespaces of one machine share its clock, so nothing there could show whether offsets are found. Where the test gives
//! an end system a clock, its agent writes every time as that clock would have shown it. Only what is recorded
//! changes: frames leave when they would have left, and the servicing threads know nothing of it.

use std::str::FromStr;

use wg_core::clock::{DisciplinedClock, LocalClock};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span, WallNanos};
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

    /// A clock that runs this much too fast, in parts per billion, and is right at the epoch.
    pub fn drifting(ppb: i64) -> Self {
        Self { offset: Span::ZERO, drift: FrequencyOffset::nearest(ppb.saturating_mul(1_000_000)) }
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

/// The clock of a whole host that is wrong on purpose: what it tells callers, the instant it takes for a start, and the times
/// it records. It ran right when this was made, but for the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedHostClock {
    offset_ns: i64,
    drift_ppb: i64,
    since: WallNanos,
}

impl PlantedHostClock {
    /// What it shows at an instant of the host's real clock.
    pub fn shown(&self, at: WallNanos) -> WallNanos {
        let passed = i128::from(at.get() - self.since.get());
        let gained = (passed * i128::from(self.drift_ppb)).div_euclid(1_000_000_000);
        WallNanos::new(at.get() + self.offset_ns + saturating(gained))
    }

    /// The instant of the host's real clock at which it shows `shown`.
    pub fn instant(&self, shown: WallNanos) -> WallNanos {
        let passed = i128::from(shown.get() - self.offset_ns - self.since.get());
        let real = (passed * 1_000_000_000).div_euclid(1_000_000_000 + i128::from(self.drift_ppb));
        WallNanos::new(self.since.get() + saturating(real))
    }

    /// What it does to times of a run, whose epoch is as it shows it.
    pub fn of_records(&self) -> Option<PlantedClock> {
        (self.drift_ppb != 0).then(|| PlantedClock::drifting(self.drift_ppb))
    }
}

impl FromStr for PlantedHostClock {
    type Err = String;

    /// OFFSET,DRIFT in ns and ppb.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\": give OFFSET,DRIFT in ns and ppb, at most a day and 1000000 ppb");
        let (offset, drift) = text.split_once(',').ok_or_else(wrong)?;
        let offset_ns: i64 = offset.trim().parse().map_err(|_| wrong())?;
        let drift_ppb: i64 = drift.trim().parse().map_err(|_| wrong())?;
        if offset_ns.unsigned_abs() > 86_400_000_000_000 || drift_ppb.unsigned_abs() > 1_000_000 {
            return Err(wrong());
        }
        Ok(Self { offset_ns, drift_ppb, since: wg_net::clock::realtime() })
    }
}

fn saturating(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

fn read(clock: &DisciplinedClock, time: RunTime) -> RunTime {
    RunTime::from_picos(clock.read(time).as_picos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_clock_is_read_and_awaited_by_the_same_rule() {
        for (text, offset, drift) in
            [("250000,0", 250_000, 0), ("-7,100000", -7, 100_000), ("0,-50000", 0, -50_000)]
        {
            let clock: PlantedHostClock = text.parse().unwrap();
            for passed in [0_i64, 1, 999_999_937, 60_000_000_000] {
                let at = WallNanos::new(clock.since.get() + passed);
                let shown = clock.shown(at);
                let gained = (i128::from(passed) * i128::from(drift)).div_euclid(1_000_000_000) as i64;
                assert_eq!(shown.get(), at.get() + offset + gained);
                assert!((clock.instant(shown).get() - at.get()).abs() <= 1);
            }
        }
        assert!("5".parse::<PlantedHostClock>().is_err() && "0,1000001".parse::<PlantedHostClock>().is_err());
    }

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
