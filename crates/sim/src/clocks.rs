//! Clocks of nodes with an error: temperature and steps are stated in the plan, wander is drawn.
//!
//! A node has one [clock](wg_core::clock); its devices, senders and records hold a handle on it or ask the node. The
//! clock is changed at the instant of the change, and instants planned by it are then planned again. Changes of the
//! past are forgotten, so that memory stays flat.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use wg_core::Deadline;
use wg_core::clock::{ClockError, DisciplinedClock, LocalClock, LocalTime, SharedClock};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span};
use wg_plan::random::{Purpose, Stream};
use wg_plan::{Clock, Incident, IncidentKind, NodeIndex};

use crate::error::SimError;

/// Time between two steps of wander, and for which a past change is remembered.
const TICK: Span = Span::from_millis(1_000);
/// Time between two comparisons with true time.
pub(crate) const SAMPLE: Span = Span::from_millis(100);

/// A change that the plan states.
#[derive(Clone, Copy, Debug)]
enum Stated {
    /// A change of the frequency, in 10⁻¹⁵.
    Drift(i64),
    /// A step of the reading.
    Step(Span),
}

/// A node's clock with an error.
#[derive(Debug)]
pub(crate) struct NodeClock {
    node: NodeIndex,
    clock: SharedClock,
    /// Frequency offset of its oscillator, in 10⁻¹⁵, without limit.
    frequency: i64,
    /// Standard deviation of the change of frequency in a second, in 10⁻¹⁵.
    wander: i64,
    chance: Stream,
    /// Changes stated in the plan, ascending.
    stated: VecDeque<(RunTime, Stated)>,
    next_wander: Deadline,
    /// Whether readings of any earlier instant are still needed.
    remembers: bool,
    /// Whether a protocol corrects it, at instants not known in advance.
    steered: bool,
}

impl NodeClock {
    /// The clock of `node`; `None` if it shows true time throughout. With `remembers` it forgets no change; with
    /// `steered` a protocol corrects it.
    pub(crate) fn new(
        node: NodeIndex,
        clock: &Clock,
        incidents: &[Incident],
        seed: u64,
        remembers: bool,
        steered: bool,
    ) -> Result<Option<Self>, SimError> {
        let steps = incidents.iter().filter_map(|incident| match incident.kind {
            IncidentKind::ClockStep { node: which, by } if which == node => {
                Some((RunTime::ZERO + incident.at, Stated::Step(by)))
            }
            _ => None,
        });
        let mut stated: Vec<_> = steps.collect();
        if clock.is_perfect() && stated.is_empty() && !steered {
            return Ok(None);
        }
        let drifts = clock
            .temperature
            .iter()
            .map(|step| (RunTime::ZERO + step.at, Stated::Drift(step.drift_ppb.saturating_mul(1_000_000))));
        stated.extend(drifts);
        stated.sort_by_key(|(at, _)| *at);
        let frequency = clock.drift_ppb.saturating_mul(1_000_000);
        let oscillator = Oscillator::new(FrequencyOffset::nearest(frequency));
        let disciplined = DisciplinedClock::new(oscillator, clock.offset, clock.granularity)
            .map_err(|error| refused(node, error))?;
        let wander = i64::from(clock.wander_ppb) * 1_000_000;
        let mut new = Self {
            node,
            clock: Rc::new(RefCell::new(disciplined)),
            frequency,
            wander,
            chance: Stream::new(seed, Purpose::ClockWander, u32::from(node)),
            stated: stated.into(),
            next_wander: if wander == 0 { Deadline::NEVER } else { Deadline::at(RunTime::ZERO + TICK) },
            remembers,
            steered,
        };
        new.handle_deadline(RunTime::ZERO)?;
        Ok(Some(new))
    }

    /// The clock alone, after all its changes up to `until`.
    pub(crate) fn after(mut self, until: RunTime) -> Result<DisciplinedClock, SimError> {
        while let Some(at) = self.next_deadline().instant().filter(|at| *at <= until) {
            self.handle_deadline(at)?;
        }
        let clock = self.clock.borrow().clone();
        Ok(clock)
    }

    /// Whether a protocol corrects it.
    pub(crate) const fn is_steered(&self) -> bool {
        self.steered
    }

    /// Instant of its next change without an input.
    pub(crate) fn next_deadline(&self) -> Deadline {
        let stated = self.stated.front().map_or(Deadline::NEVER, |(at, _)| Deadline::at(*at));
        stated.min(self.next_wander)
    }

    /// Makes the changes due at `now`.
    pub(crate) fn handle_deadline(&mut self, now: RunTime) -> Result<(), SimError> {
        let clock = &mut *self.clock.borrow_mut();
        while let Some(&(at, stated)) = self.stated.front()
            && at <= now
        {
            self.stated.pop_front();
            let changed = match stated {
                Stated::Step(by) => clock.step(at, by),
                Stated::Drift(by) => {
                    self.frequency = self.frequency.saturating_add(by);
                    clock.set_drift(at, FrequencyOffset::nearest(self.frequency))
                }
            };
            changed.map_err(|error| refused(self.node, error))?;
        }
        if self.next_wander.is_due(now) {
            self.next_wander = Deadline::at(now + TICK);
            let by = (i128::from(self.wander) * i128::from(normal(&mut self.chance))) >> 32;
            self.frequency = self.frequency.saturating_add(i64::try_from(by).unwrap_or(0));
            let changed = clock.set_drift(now, FrequencyOffset::nearest(self.frequency));
            changed.map_err(|error| refused(self.node, error))?;
        }
        if !self.remembers {
            clock.forget_before(now - TICK);
        }
        Ok(())
    }

    /// Whether its reading at `time` can no longer change.
    pub(crate) fn is_certain(&self, time: RunTime) -> bool {
        !self.steered && Deadline::at(time) < self.next_deadline()
    }

    /// A protocol steps it by `by`, forward or back.
    pub(crate) fn steer(&mut self, now: RunTime, by: Span) -> Result<(), SimError> {
        let clock = &mut *self.clock.borrow_mut();
        clock.step(now, by).map_err(|error| refused(self.node, error))?;
        if !self.remembers {
            clock.forget_before(now - TICK);
        }
        Ok(())
    }

    /// A protocol that holds a [handle](Self::shared) changed it at `now`.
    pub(crate) fn was_changed(&mut self, now: RunTime) {
        if !self.remembers {
            self.clock.borrow_mut().forget_before(now - TICK);
        }
    }

    /// Elapsed time of the run on its scale, without steps.
    pub(crate) fn elapsed(&self, time: RunTime) -> Span {
        self.clock.elapsed(time)
    }

    /// The first instant at or after `from` at which the elapsed time is `elapsed`, unless it is changed before.
    pub(crate) fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        self.clock.when_elapsed(elapsed, from)
    }

    /// A handle on the clock, for a device.
    pub(crate) fn shared(&self) -> SharedClock {
        self.clock.clone()
    }

    /// Its reading at `time`.
    #[inline]
    pub(crate) fn read(&self, time: RunTime) -> RunTime {
        RunTime::from_picos(self.clock.read(time).as_picos())
    }

    /// The first instant at or after `from` at which its reading is at least `local`, unless it is changed before.
    pub(crate) fn instant(&self, local: RunTime, from: RunTime) -> Option<RunTime> {
        self.clock.true_time(LocalTime::from_picos(local.as_picos()), from)
    }

    /// Its reading at `time` minus true time, in picoseconds.
    pub(crate) fn offset_ps(&self, time: RunTime) -> i64 {
        (self.read(time) - time).as_picos()
    }
}

fn refused(node: NodeIndex, error: ClockError) -> SimError {
    SimError::plan(format!("the clock of node {node}: {error}"))
}

/// A draw of mean 0 and standard deviation 2³², nearly normal: the sum of twelve uniform draws (Irwin and Hall),
/// integers throughout.
fn normal(chance: &mut Stream) -> i64 {
    let sum: u64 = chance.take(12).map(|draw| draw >> 32).sum();
    sum.cast_signed() - 6 * (1 << 32)
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
    fn drift_temperature_and_steps_add_up() {
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
        let mut built =
            NodeClock::new(7, &clock, &incidents, 1, true, false).expect("a clock").expect("not perfect");
        assert_eq!(built.next_deadline(), Deadline::at(ms(1_500)));
        while let Some(at) = built.next_deadline().instant() {
            built.handle_deadline(at).expect("in order");
        }
        assert_eq!(built.offset_ps(ms(2_000)), 5_000_000 + 30_000_000 - 5_000_000, "the past is remembered");
        // 5 µs + 20 ppm · 1.5 s − 10 ppm · 8.5 s − 100 µs.
        assert_eq!(built.offset_ps(ms(10_000)), 5_000_000 + 30_000_000 - 85_000_000 - 100_000_000);
        assert!(NodeClock::new(6, &Clock::default(), &incidents, 1, true, false).expect("a clock").is_none());
    }
}
