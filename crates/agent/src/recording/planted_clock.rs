//! Planted clock error for tests of the instrument.
//!
//! Namespaces of one machine share its clock, so clock comparison cannot be tested there. If the test gives an end
//! system a clock, its agent records every time as this clock would show it: the same clock model with the same seed as
//! in a simulation. Only recorded times change: send times and servicing threads are unaffected.

use std::str::FromStr;

use wg_core::clock::{DisciplinedClock, LocalClock};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span, WallNanos};
use wg_plan::{Network, NodeIndex, Run};
use wg_record::Record;
use wg_sim::SimError;
use wg_sim::live::planted_clock;

/// Readings of a planted clock over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedClock(DisciplinedClock);

impl PlantedClock {
    /// Clock of an end system in a run that lasts until `until`, from the plan and its seed; `None` if it shows the
    /// host's time.
    ///
    /// # Errors
    /// The plan has an invalid clock.
    pub fn of(
        network: &Network,
        run: &Run,
        node: NodeIndex,
        until: RunTime,
    ) -> Result<Option<Self>, SimError> {
        Ok(planted_clock(network, run, node, until)?.map(Self))
    }

    /// Reading at `time`, limited to the value range.
    pub fn read(&self, time: RunTime) -> RunTime {
        RunTime::from_picos(self.0.read(time).as_picos())
    }

    /// Writes records to `into` with the times of this clock.
    pub fn applied(&self, records: &[Record], into: &mut Vec<Record>) {
        into.clear();
        into.extend(records.iter().map(|record| Record { time: self.read(record.time), ..*record }));
    }
}

/// Planted clock error of a whole host: affects times reported to callers, start times and recorded times. Apart from
/// the offset, the clock was right when this was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedHostClock {
    offset_ns: i64,
    drift_ppb: i64,
    since: WallNanos,
    /// Time on the real clock of a step, and its size, ns; 0: no step.
    step_at: WallNanos,
    step_ns: i64,
}

impl PlantedHostClock {
    /// Reading at a time of the host's real clock.
    pub fn shown(&self, at: WallNanos) -> WallNanos {
        let passed = i128::from(at.get() - self.since.get());
        let gained = (passed * i128::from(self.drift_ppb)).div_euclid(1_000_000_000);
        let stepped = if at >= self.step_at { self.step_ns } else { 0 };
        WallNanos::new(at.get() + self.offset_ns + saturating(gained) + stepped)
    }

    /// Time of the host's real clock at which the reading is `shown`.
    pub fn instant(&self, shown: WallNanos) -> WallNanos {
        // The step lies either before or after this time.
        let before = self.instant_without(shown.get() - self.step_ns);
        if before >= self.step_at { before } else { self.instant_without(shown.get()) }
    }

    fn instant_without(&self, shown: i64) -> WallNanos {
        let passed = i128::from(shown - self.offset_ns - self.since.get());
        let real = (passed * 1_000_000_000).div_euclid(1_000_000_000 + i128::from(self.drift_ppb));
        WallNanos::new(self.since.get() + saturating(real))
    }

    /// Effect on times of a run that starts at `epoch`, itself a reading of this clock.
    pub fn of_records(&self, epoch: WallNanos) -> Option<PlantedClock> {
        let drift = FrequencyOffset::nearest(self.drift_ppb.saturating_mul(1_000_000));
        let ahead = i128::from(self.step_at.get()) - i128::from(epoch.get());
        let at = RunTime::from_picos(i64::try_from(ahead * 1_000).unwrap_or(i64::MAX));
        let by = Span::from_picos(self.step_ns.saturating_mul(1_000));
        let is_set = self.step_ns != 0 && ahead > 0;
        let mut clock = DisciplinedClock::over(Oscillator::new(drift), Span::ZERO);
        if is_set {
            // The clock is stepped once, so there is no later change.
            clock.step(at, by).ok()?;
        }
        (is_set || drift != FrequencyOffset::NONE).then_some(PlantedClock(clock))
    }
}

impl FromStr for PlantedHostClock {
    type Err = String;

    /// OFFSET,DRIFT in ns and ppb, and STEP@SECONDS: a step of so many ns after so many seconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\": give OFFSET,DRIFT or OFFSET,DRIFT,STEP@SECONDS in ns, ppb and s, at most a day, 1000000 ppb and a \
                 day"
            )
        };
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| wrong());
        let (offset, rest) = text.split_once(',').ok_or_else(wrong)?;
        let (drift, step) = rest.split_once(',').unwrap_or((rest, "0@0"));
        let (step, after) = step.split_once('@').ok_or_else(wrong)?;
        let (offset_ns, drift_ppb, step_ns, after_s) =
            (number(offset)?, number(drift)?, number(step)?, number(after)?);
        let day_ns = 86_400_000_000_000;
        if offset_ns.unsigned_abs() > day_ns
            || drift_ppb.unsigned_abs() > 1_000_000
            || step_ns.unsigned_abs() > day_ns
            || !(0..=86_400).contains(&after_s)
        {
            return Err(wrong());
        }
        let since = wg_net::clock::realtime();
        let step_at = WallNanos::new(since.get() + after_s * 1_000_000_000);
        Ok(Self { offset_ns, drift_ppb, since, step_at, step_ns })
    }
}

fn saturating(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_plan::{Clock, HostModel, Incident, IncidentKind, Node, NodeKind};

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
        let clock: PlantedHostClock = "0,0,-5000000@2".parse().unwrap();
        let at = |seconds: i64| WallNanos::new(clock.since.get() + seconds * 1_000_000_000);
        assert_eq!((clock.shown(at(1)), clock.shown(at(3)).get()), (at(1), at(3).get() - 5_000_000));
        assert_eq!((clock.instant(at(1)), clock.instant(clock.shown(at(3)))), (at(1), at(3)));
        let planted = clock.of_records(at(1)).expect("it is set within the run");
        let second = RunTime::from_picos(1_000_000_000_000);
        assert_eq!(planted.read(RunTime::ZERO), RunTime::ZERO);
        assert_eq!((planted.read(second) - second).as_picos(), -5_000_000_000);
        assert_eq!(clock.of_records(at(2)), None, "the epoch is after the step and shows it");
        assert!("0,0,5".parse::<PlantedHostClock>().is_err());
        assert!("5".parse::<PlantedHostClock>().is_err() && "0,1000001".parse::<PlantedHostClock>().is_err());
    }

    #[test]
    fn it_shows_what_the_plan_has_from_the_epoch_on() {
        let of = |clock: Clock, incidents: Vec<Incident>| {
            let node = Node { clock, ..Node::new(0, "a", NodeKind::EndSystem { host: HostModel::ideal() }) };
            let network = Network { nodes: vec![node], links: Vec::new() };
            let run = Run { incidents, ..Run::default() };
            PlantedClock::of(&network, &run, 0, RunTime::ZERO + Span::from_millis(9_000)).expect("a clock")
        };
        let clock = Clock { offset: Span::from_micros(-5), drift_ppb: 20_000, ..Clock::default() };
        let second = RunTime::ZERO + Span::from_millis(1_000);
        let kind = IncidentKind::ClockStep { node: 0, by: Span::from_micros(100) };
        let step = Incident { at: Span::from_millis(2_000), kind };
        let planted = of(clock.clone(), vec![step]).expect("not the host's");
        assert_eq!((planted.read(second) - second).as_picos(), 15_000_000);
        assert_eq!((planted.read(RunTime::ZERO) - RunTime::ZERO).as_picos(), -5_000_000);
        let later = RunTime::ZERO + Span::from_millis(3_000);
        assert_eq!((planted.read(later) - later).as_picos(), 155_000_000, "and the past is remembered");
        assert_eq!((planted.read(second) - second).as_picos(), 15_000_000);
        assert_eq!(of(Clock::default(), Vec::new()), None);
        let coarse = of(Clock { granularity: Span::from_micros(1), ..Clock::default() }, Vec::new());
        let shown = coarse.expect("not the host's").read(RunTime::from_picos(1_999_999));
        assert_eq!(shown, RunTime::from_picos(1_000_000));
    }
}
