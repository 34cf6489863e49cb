//! A free-running oscillator and its counter: frequency error, temperature, wander.
//!
//! The counter is piecewise linear in run time. Each piece has a constant frequency offset, exact to 10⁻¹⁵. Wander and
//! temperature are given as pieces: the owner of the random source samples them, and a temperature step is a change of
//! frequency at its instant. An oscillator is never set: only the [clock](crate::clock) over it is.
//!
//! # Exact
//! The phase is kept in 10⁻¹⁵ ps as a 128-bit integer: a frequency in whole 10⁻¹⁵ for a whole number of
//! picoseconds adds a whole number of those. Nothing is rounded between pieces, and both conversions are integer
//! divisions. Road not taken: floating point, whose 53 bits cannot hold a day in picoseconds.

use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

/// Fractional frequency offset: how much faster a clock runs than its reference, as a whole number of 10⁻¹⁵.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrequencyOffset(i64);

/// 10⁻¹⁵ ps in a picosecond.
const FINE: i128 = 1_000_000_000_000_000;

impl FrequencyOffset {
    /// No offset.
    pub const NONE: Self = Self(0);
    /// Greatest offset either way: one tenth. Anything beyond is a fault to be planted otherwise.
    pub const LIMIT: Self = Self(100_000_000_000_000);

    /// An offset of `e` · 10⁻¹⁵.
    ///
    /// # Errors
    /// [`ClockError::Frequency`] beyond [`Self::LIMIT`] either way.
    pub const fn from_quadrillionths(e: i64) -> Result<Self, ClockError> {
        if e > Self::LIMIT.0 || e < -Self::LIMIT.0 { Err(ClockError::Frequency) } else { Ok(Self(e)) }
    }
    /// The offset nearest to `e` · 10⁻¹⁵ within [`Self::LIMIT`].
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
    /// The offset in 10⁻¹⁵.
    pub const fn quadrillionths(self) -> i64 {
        self.0
    }
    fn rate(self) -> i128 {
        FINE + i128::from(self.0)
    }
}

/// One linear piece of a function from picoseconds to picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Argument at which the piece begins.
    origin: i128,
    /// Value at `origin`, in 10⁻¹⁵ ps.
    phase: i128,
    /// Value at `origin` in whole picoseconds, rounded down: all that a piece without frequency offset needs.
    phase_ps: i128,
    pub(crate) frequency: FrequencyOffset,
}

impl Line {
    pub(crate) fn new(origin: i128, phase: i128, frequency: FrequencyOffset) -> Self {
        Self { origin, phase, phase_ps: phase.div_euclid(FINE), frequency }
    }
    /// A piece with the value `ps` at `origin`.
    pub(crate) fn at_ps(origin: i128, ps: i64, frequency: FrequencyOffset) -> Self {
        Self::new(origin, i128::from(ps) * FINE, frequency)
    }
    /// The piece that continues this one from `at` on, `ps` higher; `None` where its value there would exceed 106 days.
    pub(crate) fn continued(&self, at: i128, ps: i64, frequency: FrequencyOffset) -> Option<Self> {
        let phase = self.phase + (at - self.origin) * self.frequency.rate() + i128::from(ps) * FINE;
        i64::try_from(phase / FINE).ok().map(|_| Self::new(at, phase, frequency))
    }
    /// Value at `at`, rounded down to a picosecond.
    pub(crate) fn shown_ps(&self, at: i128) -> i128 {
        let elapsed = at - self.origin;
        if self.frequency == FrequencyOffset::NONE {
            self.phase_ps + elapsed
        } else {
            (self.phase + elapsed * self.frequency.rate()).div_euclid(FINE)
        }
    }
    /// The least argument at which the value is at least `ps`.
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
    /// Appends a piece from `at` on, which is not before the last piece.
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
    /// The first instant at or after `from` that `reached` finds in a piece, given the instant from which to look.
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

/// The oscillator of one node: counts picoseconds on its own scale, from 0 at the run's epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oscillator {
    course: Course,
}

impl Default for Oscillator {
    /// An oscillator without frequency offset.
    fn default() -> Self {
        Self::new(FrequencyOffset::NONE)
    }
}

impl Oscillator {
    /// An oscillator with this frequency offset.
    pub fn new(frequency: FrequencyOffset) -> Self {
        Self { course: Course::new(Line::at_ps(0, 0, frequency)) }
    }

    /// Sets the frequency offset from `at` on.
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

    /// The count at `time`, in picoseconds of the oscillator.
    pub fn count(&self, time: RunTime) -> i128 {
        self.course.at(time).shown_ps(time.as_picos().into())
    }

    /// The earliest instant at or after `from` at which the count is at least `count`; `None` if there is none within
    /// 106 days.
    pub fn reaches(&self, count: i128, from: RunTime) -> Option<RunTime> {
        self.course.first(from, |line, begin| {
            i64::try_from(line.reaches(count).max(begin.as_picos().into())).ok().map(RunTime::from_picos)
        })
    }

    /// Forgets pieces that ended at or before `time`; see
    /// [`DisciplinedClock`](crate::clock::DisciplinedClock::forget_before).
    pub fn forget_before(&mut self, time: RunTime) {
        self.course.forget_before(time);
    }
}

/// An invalid clock or clock change: the plan's fault, or a servo's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// A frequency offset beyond one tenth.
    #[error("the frequency error is beyond 100000ppm either way; lower it")]
    Frequency,
    /// A granularity that is not positive.
    #[error("the clock granularity {0} is not positive; give at least 1ps")]
    Granularity(Span),
    /// A change before the last one.
    #[error(
        "a clock change at {at} ps comes before the last one at {last} ps; give changes in order of time"
    )]
    Order {
        /// Instant of the refused change, in picoseconds of the run.
        at: i64,
        /// The last change, in picoseconds of the run.
        last: i64,
    },
    /// A change after which the clock would show more than 106 days.
    #[error(
        "after the clock change at {at} ps the clock would show more than 106 days; make the step smaller"
    )]
    Range {
        /// Instant of the refused change, in picoseconds of the run.
        at: i64,
    },
}
