//! The clocks of nodes that are not perfect, and what befalls each: its temperature and its being set stand in the plan, its
//! wander is drawn.
//!
//! A node has one [clock](wg_core::clock); its devices, senders and records hold a handle on it or ask the node. It is changed
//! at the instant of the change, and what was planned by it is then planned again. What has passed is forgotten, so that
//! memory stays flat.

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

/// Time between two steps of wander; also how long a change of the past is remembered.
const TICK: Span = Span::from_millis(1_000);
/// Time between two comparisons with the true time.
pub(crate) const SAMPLE: Span = Span::from_millis(100);

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
    clock: SharedClock,
    /// Of its oscillator, in 10⁻¹⁵, not limited.
    frequency: i64,
    /// Standard deviation of its change in a second, in 10⁻¹⁵.
    wander: i64,
    chance: Stream,
    /// Ascending.
    stated: VecDeque<(RunTime, Stated)>,
    next_wander: Deadline,
    /// Readings of any instant before are still asked for.
    remembers: bool,
    /// A protocol corrects it, at instants nobody knows before.
    steered: bool,
}

impl NodeClock {
    /// The clock of `node`; nothing for one that shows true time throughout. One that `remembers` forgets nothing of the past;
    /// one that is `steered` is corrected by a protocol.
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

    /// The clock alone, after all that happens to it up to `until`.
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

    /// When it changes next by itself.
    pub(crate) fn next_deadline(&self) -> Deadline {
        let stated = self.stated.front().map_or(Deadline::NEVER, |(at, _)| Deadline::at(*at));
        stated.min(self.next_wander)
    }

    /// Changes as is due at `now`.
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

    /// Whether its reading at `time` is what it is now sure to be then.
    pub(crate) fn is_certain(&self, time: RunTime) -> bool {
        !self.steered && Deadline::at(time) < self.next_deadline()
    }

    /// A protocol sets it forward by `by`, or back.
    pub(crate) fn steer(&mut self, now: RunTime, by: Span) -> Result<(), SimError> {
        let clock = &mut *self.clock.borrow_mut();
        clock.step(now, by).map_err(|error| refused(self.node, error))?;
        if !self.remembers {
            clock.forget_before(now - TICK);
        }
        Ok(())
    }

    /// A protocol that holds a [handle](Self::shared) on it changed it at `now`.
    pub(crate) fn was_changed(&mut self, now: RunTime) {
        if !self.remembers {
            self.clock.borrow_mut().forget_before(now - TICK);
        }
    }

    /// How long the run has lasted by its oscillator.
    pub(crate) fn elapsed(&self, time: RunTime) -> Span {
        self.clock.elapsed(time)
    }

    /// The first instant from `from` on at which the run has lasted `elapsed` by it, if it is not changed before.
    pub(crate) fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        self.clock.when_elapsed(elapsed, from)
    }

    /// A handle for a device.
    pub(crate) fn shared(&self) -> SharedClock {
        self.clock.clone()
    }

    /// What it shows at `time`.
    #[inline]
    pub(crate) fn read(&self, time: RunTime) -> RunTime {
        RunTime::from_picos(self.clock.read(time).as_picos())
    }

    /// The first instant from `from` on at which it shows `local` or more, if it is not changed before.
    pub(crate) fn instant(&self, local: RunTime, from: RunTime) -> Option<RunTime> {
        self.clock.true_time(LocalTime::from_picos(local.as_picos()), from)
    }

    /// What it shows at `time` less the true time, in picoseconds.
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
