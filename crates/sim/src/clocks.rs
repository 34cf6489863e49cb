//! The clocks of nodes that are not perfect: what befalls each oscillator, fed to it ahead of time.
//!
//! Everything that changes an oscillator is known beforehand: its temperature and its being set stand in the plan,
//! its wander is drawn. So changes are handed in [`AHEAD`] of the time they come to act, once a second, and a deadline
//! within that span is converted once and for all; a later one is converted again at every such hand-over.
//! What has passed is forgotten, so that memory stays flat.

use std::collections::VecDeque;

use wg_core::oscillator::{Change, FrequencyError, LocalClock, LocalTime, Oscillator, TrueTime};
use wg_frame::time::{RunTime, Span};
use wg_plan::{Clock, Incident, IncidentKind, NodeIndex};

use crate::error::SimError;
use crate::random::{Purpose, Stream};

/// Time between two hand-overs of changes, and between two steps of wander.
pub(crate) const TICK: Span = Span::from_millis(1_000);
/// Time between two comparisons with the true time.
pub(crate) const SAMPLE: Span = Span::from_millis(100);
/// How far ahead changes are known.
const AHEAD: Span = Span::from_millis(2_000);

/// The clock a device acts by.
#[derive(Clone, Debug)]
pub(crate) enum DeviceClock {
    /// A perfect one.
    True,
    /// One of its own.
    Own(Oscillator),
}

impl LocalClock for DeviceClock {
    #[inline]
    fn read(&self, time: RunTime) -> LocalTime {
        match self {
            Self::True => TrueTime.read(time),
            Self::Own(oscillator) => oscillator.read(time),
        }
    }
    #[inline]
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        match self {
            Self::True => TrueTime.true_time(local, from),
            Self::Own(oscillator) => oscillator.true_time(local, from),
        }
    }
}

/// A change the plan states.
#[derive(Clone, Copy, Debug)]
enum Stated {
    /// Of the frequency, in 10⁻¹⁵.
    Drift(i64),
    /// Of the reading.
    Step(Span),
}

/// The clock of a node that is not perfect.
#[derive(Debug)]
pub(crate) struct NodeClock {
    node: NodeIndex,
    oscillator: Oscillator,
    /// In 10⁻¹⁵, not limited.
    frequency: i64,
    /// Standard deviation of its change in a second, in 10⁻¹⁵.
    wander: i64,
    chance: Stream,
    /// Ascending.
    stated: VecDeque<(RunTime, Stated)>,
    next_wander: RunTime,
}

impl NodeClock {
    /// The clock of `node`; nothing for one that shows true time throughout.
    pub(crate) fn new(
        node: NodeIndex,
        clock: &Clock,
        incidents: &[Incident],
        seed: u64,
    ) -> Result<Option<Self>, SimError> {
        let steps = incidents.iter().filter_map(|incident| match incident.kind {
            IncidentKind::ClockStep { node: which, by } if which == node => {
                Some((RunTime::ZERO + incident.at, Stated::Step(by)))
            }
            _ => None,
        });
        let mut stated: Vec<_> = steps.collect();
        if clock.is_perfect() && stated.is_empty() {
            return Ok(None);
        }
        let drifts = clock
            .temperature
            .iter()
            .map(|step| (RunTime::ZERO + step.at, Stated::Drift(step.drift_ppb.saturating_mul(1_000_000))));
        stated.extend(drifts);
        stated.sort_by_key(|(at, _)| *at);
        let frequency = clock.drift_ppb.saturating_mul(1_000_000);
        let oscillator = Oscillator::new(clock.offset, limited(frequency), clock.granularity)
            .map_err(|error| SimError::plan(format!("the clock of node {node}: {error}")))?;
        let mut new = Self {
            node,
            oscillator,
            frequency,
            wander: i64::from(clock.wander_ppb) * 1_000_000,
            chance: Stream::new(seed, Purpose::ClockWander, u32::from(node)),
            stated: stated.into(),
            next_wander: RunTime::ZERO + TICK,
        };
        new.hand_over(RunTime::ZERO)?;
        Ok(Some(new))
    }

    /// Hands all changes up to [`AHEAD`] of `now` to the oscillator and forgets those that ended a second ago.
    pub(crate) fn hand_over(&mut self, now: RunTime) -> Result<(), SimError> {
        let until = now + AHEAD;
        loop {
            let stated = self.stated.front().map(|(at, _)| *at).filter(|at| *at <= until);
            let wander = (self.wander != 0 && self.next_wander <= until).then_some(self.next_wander);
            let (at, change) = match (stated, wander) {
                (Some(at), wander) if wander.is_none_or(|wander| at <= wander) => {
                    let Some((_, stated)) = self.stated.pop_front() else { return Ok(()) };
                    let change = match stated {
                        Stated::Drift(by) => self.frequency_changed(by),
                        Stated::Step(by) => Change::Step(by),
                    };
                    (at, change)
                }
                (_, Some(at)) => {
                    self.next_wander = at + TICK;
                    let by = (i128::from(self.wander) * i128::from(normal(&mut self.chance))) >> 32;
                    (at, self.frequency_changed(i64::try_from(by).unwrap_or(0)))
                }
                (_, None) => break,
            };
            self.oscillator
                .handle_change(at, change)
                .map_err(|error| SimError::plan(format!("the clock of node {}: {error}", self.node)))?;
        }
        self.oscillator.forget_before(now - TICK);
        Ok(())
    }

    /// As a device is given it.
    pub(crate) fn for_device(&self) -> DeviceClock {
        DeviceClock::Own(self.oscillator.clone())
    }

    /// What it shows at `time`.
    #[inline]
    pub(crate) fn read(&self, time: RunTime) -> RunTime {
        RunTime::from_picos(self.oscillator.read(time).as_picos())
    }

    /// The first instant from `from` on at which it shows `local` or more.
    pub(crate) fn instant(&self, local: RunTime, from: RunTime) -> Option<RunTime> {
        self.oscillator.true_time(LocalTime::from_picos(local.as_picos()), from)
    }

    /// What it shows at `time` less the true time, in picoseconds.
    pub(crate) fn offset_ps(&self, time: RunTime) -> i64 {
        (self.read(time) - time).as_picos()
    }

    fn frequency_changed(&mut self, by: i64) -> Change {
        self.frequency = self.frequency.saturating_add(by);
        Change::Frequency(limited(self.frequency))
    }
}

/// The nearest frequency an oscillator can have.
fn limited(quadrillionths: i64) -> FrequencyError {
    let limit = FrequencyError::LIMIT.quadrillionths();
    FrequencyError::from_quadrillionths(quadrillionths.clamp(-limit, limit)).unwrap_or(FrequencyError::LIMIT)
}

/// A draw of mean 0 and standard deviation 2³², nearly normal: the sum of twelve uniform draws (Irwin and Hall),
/// integers throughout.
fn normal(chance: &mut Stream) -> i64 {
    let sum: u64 = chance.take(12).map(|draw| draw >> 32).sum();
    sum as i64 - 6 * (1 << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_plan::TemperatureStep;

    fn ms(ms: i64) -> RunTime {
        RunTime::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn wander_has_the_deviation_it_was_given() {
        let mut chance = Stream::new(3, Purpose::ClockWander, 1);
        let draws: Vec<f64> = (0..20_000).map(|_| normal(&mut chance) as f64 / f64::from(u32::MAX)).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        // Four standard errors of 20 000 draws.
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
    }

    #[test]
    fn drift_temperature_and_steps_add_up_however_often_changes_are_handed_over() {
        let clock = Clock {
            offset: Span::from_micros(5),
            drift_ppb: 20_000,
            temperature: vec![TemperatureStep { at: Span::from_millis(1_500), drift_ppb: -30_000 }],
            ..Clock::default()
        };
        let step = IncidentKind::ClockStep { node: 7, by: Span::from_micros(-100) };
        let other = IncidentKind::ClockStep { node: 8, by: Span::from_micros(1) };
        let at = Span::from_millis(2_500);
        let incidents = [Incident { at, kind: other }, Incident { at, kind: step }];
        let mut built = NodeClock::new(7, &clock, &incidents, 1).expect("a clock").expect("not perfect");
        for second in 1..=9 {
            built.hand_over(ms(1_000 * second)).expect("in order");
        }
        // 5 µs + 20 ppm · 1.5 s − 10 ppm · 8.5 s − 100 µs.
        assert_eq!(built.offset_ps(ms(10_000)), 5_000_000 + 30_000_000 - 85_000_000 - 100_000_000);
        assert!(NodeClock::new(6, &Clock::default(), &incidents, 1).expect("a clock").is_none());
    }
}
