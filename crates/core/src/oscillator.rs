//! A free-running oscillator and its counter: frequency error, temperature, wander.
//!
//! The counter is piecewise linear in run time. Each piece has a constant frequency offset, exact to 10⁻¹⁵. Wander and
//! temperature are pieces handed in: whoever owns the random source samples them, and a temperature step is a change of
//! frequency at its instant. Nobody sets an oscillator: what is set is the [clock](crate::clock) over it.
//!
//! # Exact
//! The phase is kept in 10⁻¹⁵ ps as a 128-bit integer: a frequency in whole 10⁻¹⁵ for a whole number of
//! picoseconds adds a whole number of those. Nothing is rounded between pieces, and both conversions are integer
//! divisions. Road not taken: floating point, whose 53 bits cannot hold a day in picoseconds.

use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

/// How much faster something runs than what it is compared with, as a whole number of 10⁻¹⁵ (fractional frequency offset).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrequencyOffset(i64);

/// 10⁻¹⁵ ps in a picosecond.
const FINE: i128 = 1_000_000_000_000_000;

impl FrequencyOffset {
    /// As fast.
    pub const NONE: Self = Self(0);
    /// The greatest either way: one tenth. Beyond it is no oscillator but a fault to be planted otherwise.
    pub const LIMIT: Self = Self(100_000_000_000_000);

    /// An offset of `e` · 10⁻¹⁵.
    ///
    /// # Errors
    /// [`ClockError::Frequency`] beyond [`Self::LIMIT`] either way.
    pub const fn from_quadrillionths(e: i64) -> Result<Self, ClockError> {
        if e > Self::LIMIT.0 || e < -Self::LIMIT.0 { Err(ClockError::Frequency) } else { Ok(Self(e)) }
    }
    /// The nearest there is to `e` · 10⁻¹⁵.
    pub fn nearest(e: i64) -> Self {
        Self(e.clamp(-Self::LIMIT.0, Self::LIMIT.0))
    }
    /// An offset of `ppb` · 10⁻⁹; 1 ppm is 1000.
    ///
    /// # Errors
    /// [`ClockError::Frequency`] beyond [`Self::LIMIT`] either way.
    pub const fn from_ppb(ppb: i64) -> Result<Self, ClockError> {
        match ppb.checked_mul(1_000_000) {
            Some(e) => Self::from_quadrillionths(e),
            None => Err(ClockError::Frequency),
        }
    }
    /// In 10⁻¹⁵.
    pub const fn quadrillionths(self) -> i64 {
        self.0
    }
    fn rate(self) -> i128 {
        FINE + i128::from(self.0)
    }
}

/// One piece of what shows picoseconds for picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it begins.
    origin: i128,
    /// What it shows there, in 10⁻¹⁵ ps.
    phase: i128,
    /// The same in whole picoseconds, rounded down: most run true, and need no more.
    phase_ps: i128,
    pub(crate) frequency: FrequencyOffset,
}

impl Line {
    pub(crate) fn new(origin: i128, phase: i128, frequency: FrequencyOffset) -> Self {
        Self { origin, phase, phase_ps: phase.div_euclid(FINE), frequency }
    }
    /// That shows `ps` at `origin`.
    pub(crate) fn at_ps(origin: i128, ps: i64, frequency: FrequencyOffset) -> Self {
        Self::new(origin, i128::from(ps) * FINE, frequency)
    }
    /// What goes on from here at `at`, set forward by `ps`; nothing where it would show more than 106 days there.
    pub(crate) fn continued(&self, at: i128, ps: i64, frequency: FrequencyOffset) -> Option<Self> {
        let phase = self.phase + (at - self.origin) * self.frequency.rate() + i128::from(ps) * FINE;
        i64::try_from(phase / FINE).ok().map(|_| Self::new(at, phase, frequency))
    }
    /// What it shows at `at`, rounded down.
    pub(crate) fn shown_ps(&self, at: i128) -> i128 {
        let elapsed = at - self.origin;
        if self.frequency == FrequencyOffset::NONE {
            self.phase_ps + elapsed
        } else {
            (self.phase + elapsed * self.frequency.rate()).div_euclid(FINE)
        }
    }
    /// Where it first shows `ps`.
    pub(crate) fn reaches(&self, ps: i128) -> i128 {
        if self.frequency == FrequencyOffset::NONE {
            self.origin + ps - self.phase_ps
        } else {
            self.origin - (self.phase - ps * FINE).div_euclid(self.frequency.rate())
        }
    }
}

/// Pieces in order of run time, never empty. The first also holds for all time before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Course(Vec<(RunTime, Line)>);

impl Course {
    pub(crate) fn new(line: Line) -> Self {
        Self(alloc::vec![(RunTime::ZERO, line)])
    }
    pub(crate) fn last(&self) -> &(RunTime, Line) {
        &self.0[self.0.len() - 1]
    }
    /// Takes over at `at`, which is not before the last piece.
    pub(crate) fn push(&mut self, at: RunTime, line: Line) {
        if at == self.last().0 && self.0.len() > 1 {
            self.0.pop();
        }
        self.0.push((at, line));
    }
    fn place(&self, time: RunTime) -> usize {
        self.0.partition_point(|(from, _)| *from <= time).saturating_sub(1)
    }
    pub(crate) fn at(&self, time: RunTime) -> &Line {
        let (from, last) = self.last();
        if *from <= time { last } else { &self.0[self.place(time)].1 }
    }
    /// The first instant at or after `from` that `reached` finds in a piece, looking from an instant on.
    pub(crate) fn first(
        &self,
        from: RunTime,
        reached: impl Fn(&Line, RunTime) -> Option<RunTime>,
    ) -> Option<RunTime> {
        let first = self.place(from);
        self.0.iter().enumerate().skip(first).find_map(|(at, (begin, line))| {
            let time = reached(line, if at == first { from } else { *begin })?;
            self.0.get(at + 1).is_none_or(|(end, _)| time < *end).then_some(time)
        })
    }
    pub(crate) fn forget_before(&mut self, time: RunTime) {
        self.0.drain(..self.place(time));
    }
}

/// The oscillator of one node, which counts picoseconds as it takes them to be, from 0 at the run's epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oscillator {
    course: Course,
}

impl Default for Oscillator {
    /// A perfect one.
    fn default() -> Self {
        Self::new(FrequencyOffset::NONE)
    }
}

impl Oscillator {
    /// An oscillator of this frequency.
    pub fn new(frequency: FrequencyOffset) -> Self {
        Self { course: Course::new(Line::at_ps(0, 0, frequency)) }
    }

    /// From `at` on it has this frequency.
    ///
    /// # Errors
    /// [`ClockError::Order`] where `at` is before the last change or the run's epoch. Nothing has changed.
    pub fn set_frequency(&mut self, at: RunTime, frequency: FrequencyOffset) -> Result<(), ClockError> {
        let (last, line) = self.course.last();
        if at < *last {
            return Err(ClockError::Order { at: at.as_picos(), last: last.as_picos() });
        }
        let error = ClockError::Range { at: at.as_picos() };
        let next = line.continued(at.as_picos().into(), 0, frequency).ok_or(error)?;
        self.course.push(at, next);
        Ok(())
    }

    /// What the counter shows at `time`.
    pub fn count(&self, time: RunTime) -> i128 {
        self.course.at(time).shown_ps(time.as_picos().into())
    }

    /// The earliest instant at or after `from` at which the counter shows at least `count`; `None` if there is none
    /// within 106 days.
    pub fn reaches(&self, count: i128, from: RunTime) -> Option<RunTime> {
        self.course.first(from, |line, begin| {
            i64::try_from(line.reaches(count).max(begin.as_picos().into())).ok().map(RunTime::from_picos)
        })
    }

    /// Forgets pieces that ended at or before `time`; see [there](crate::clock::DisciplinedClock::forget_before).
    pub fn forget_before(&mut self, time: RunTime) {
        self.course.forget_before(time);
    }
}

/// A clock that cannot be: the plan's fault, or that of a servo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// More than a tenth too fast or too slow.
    #[error("the frequency error is beyond 100000ppm either way; lower it")]
    Frequency,
    /// A granularity without a tick.
    #[error("the clock granularity {0} is not positive; give at least 1ps")]
    Granularity(Span),
    /// A change before the one known last.
    #[error(
        "a clock change at {at} ps comes before the last one at {last} ps; give changes in order of time"
    )]
    Order {
        /// When it was to happen, in picoseconds of the run.
        at: i64,
        /// The last change, in picoseconds of the run.
        last: i64,
    },
    /// A change to a clock that shows, or would show, more than 106 days.
    #[error(
        "after the clock change at {at} ps the clock would show more than 106 days; make the step smaller"
    )]
    Range {
        /// When it was to happen, in picoseconds of the run.
        at: i64,
    },
}
