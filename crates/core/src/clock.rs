//! The one clock of a node: a free-running [oscillator](crate::oscillator), disciplined.
//!
//! ```text
//! run time ─▶ oscillator (drift, wander, temperature) ─▶ count ─▶ correction (step, frequency) ─▶ granularity ─▶ reading
//! ```
//!
//! A servo corrects the clock at any instant: it sets it ([`step`](DisciplinedClock::step)) or makes it run faster or
//! slower than its oscillator ([`set_frequency`](DisciplinedClock::set_frequency)). The reading is then rounded down to
//! the granularity, as a counter that has not ticked yet shows. The correction is a function of whole picoseconds the
//! oscillator counted, as that of a real clock is one of ticks; like the oscillator's it is exact, so that a corrected
//! clock is the same integers on every machine, however often it was corrected.
//!
//! # Run time
//! Cores run in a monotonic time domain: the true time of a simulation, the monotonic clock of a live host. Run time is
//! what calls and deadlines are in, and no clock moves it. What is stated in time of day of the node (windows, instants
//! of dispatch, schedules of senders) is local time, a type of its own. It becomes run time by
//! [`LocalClock::true_time`], never by a cast:
//!
//! ```compile_fail
//! # use wg_core::clock::LocalTime;
//! # use wg_frame::time::RunTime;
//! let mixed = LocalTime::from_picos(1) - RunTime::from_picos(1);
//! ```
//!
//! The BAG of a virtual link is an interval that its end system measures by its clock, which may run fast or slow; but
//! setting a clock neither shortens nor lengthens it, as it leaves `CLOCK_MONOTONIC` alone. So a clock also returns the
//! run's elapsed time on its own scale, [`LocalClock::elapsed`]: with the frequency corrections of the reading, never
//! stepped, and not rounded to the granularity. Other intervals (a hold-off, the gap after a frame, the skew of copies)
//! are measured in run time.
//!
//! A device owns a handle on the clock of its node, not a copy: `Rc<RefCell<DisciplinedClock>>`, or nothing where the
//! clock shows run time, both of which are [`LocalClock`]s. After changing the clock, the driver calls
//! `handle_clock_change` of each device of the node at the same instant
//! ([`Switch`](crate::switch::Switch::handle_clock_change), [`Host`](crate::end_system::Host::handle_clock_change)),
//! which converts its deadlines again. Road not taken: the clock as an argument of every call, which each frame would
//! pay for at each hop while clocks change a few times a second.
//!
//! # Order
//! A clock has no deadline and no order of calls: it may be read for any instant, before, at or after another. For an
//! instant ahead it shows what it will if nothing changes it. Changes alone are ordered: each must come at or after the
//! one before; of two at the same instant both count.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::ops::{Add, Sub};

use wg_frame::time::{RunTime, Span};

pub use crate::oscillator::ClockError;
use crate::oscillator::{Course, FrequencyOffset, Line, Oscillator};

/// An instant as a node's own clock shows it, in picoseconds of that clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime(i64);

impl LocalTime {
    /// The clock shows zero.
    pub const ZERO: Self = Self(0);

    /// The clock shows `ps` picoseconds.
    pub const fn from_picos(ps: i64) -> Self {
        Self(ps)
    }
    /// Picoseconds shown.
    pub const fn as_picos(self) -> i64 {
        self.0
    }
}

impl Add<Span> for LocalTime {
    type Output = Self;
    /// Panics beyond ±106 days, as run time does.
    fn add(self, rhs: Span) -> Self {
        Self((RunTime::from_picos(self.0) + rhs).as_picos())
    }
}
impl Sub<Span> for LocalTime {
    type Output = Self;
    /// Panics beyond ±106 days, as run time does.
    fn sub(self, rhs: Span) -> Self {
        Self((RunTime::from_picos(self.0) - rhs).as_picos())
    }
}
impl Sub for LocalTime {
    type Output = Span;
    /// Panics beyond ±106 days, as run time does.
    fn sub(self, rhs: Self) -> Span {
        RunTime::from_picos(self.0) - RunTime::from_picos(rhs.0)
    }
}

/// A clock by which a device acts: converts instants to readings, and readings to instants.
pub trait LocalClock {
    /// The reading at `time`.
    fn read(&self, time: RunTime) -> LocalTime;
    /// The earliest instant at or after `from` at which the clock shows at least `local`; `None`: never.
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime>;
    /// Elapsed time of the run at `time` on this clock's scale, steps of the clock left out.
    fn elapsed(&self, time: RunTime) -> Span;
    /// The earliest instant at or after `from` at which [`elapsed`](Self::elapsed) is at least `elapsed`; `None`:
    /// never.
    fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime>;
}

/// A clock without error: it shows run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrueTime;

impl LocalClock for TrueTime {
    #[inline]
    fn read(&self, time: RunTime) -> LocalTime {
        LocalTime(time.as_picos())
    }
    #[inline]
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        Some(RunTime::from_picos(local.0).max(from))
    }
    #[inline]
    fn elapsed(&self, time: RunTime) -> Span {
        Span::from_picos(time.as_picos())
    }
    #[inline]
    fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        Some(RunTime::from_picos(elapsed.as_picos()).max(from))
    }
}

/// An optional clock; without one the reading is run time.
impl<C: LocalClock> LocalClock for Option<C> {
    #[inline]
    fn read(&self, time: RunTime) -> LocalTime {
        self.as_ref().map_or_else(|| TrueTime.read(time), |clock| clock.read(time))
    }
    #[inline]
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        self.as_ref().map_or_else(|| TrueTime.true_time(local, from), |clock| clock.true_time(local, from))
    }
    #[inline]
    fn elapsed(&self, time: RunTime) -> Span {
        self.as_ref().map_or_else(|| TrueTime.elapsed(time), |clock| clock.elapsed(time))
    }
    #[inline]
    fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        let none = || TrueTime.when_elapsed(elapsed, from);
        self.as_ref().map_or_else(none, |clock| clock.when_elapsed(elapsed, from))
    }
}

/// A handle on the clock of a node.
pub type SharedClock = Rc<RefCell<DisciplinedClock>>;

impl<C: LocalClock> LocalClock for Rc<RefCell<C>> {
    fn read(&self, time: RunTime) -> LocalTime {
        self.borrow().read(time)
    }
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        self.borrow().true_time(local, from)
    }
    fn elapsed(&self, time: RunTime) -> Span {
        self.borrow().elapsed(time)
    }
    fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        self.borrow().when_elapsed(elapsed, from)
    }
}

/// The clock of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisciplinedClock {
    oscillator: Oscillator,
    /// Reading as a function of the oscillator's count.
    course: Course,
    /// Course without steps, from 0 at the run's epoch.
    unstepped: Course,
    granularity_ps: i64,
    changed: RunTime,
}

impl Default for DisciplinedClock {
    /// A clock that shows run time.
    fn default() -> Self {
        Self::over(Oscillator::default(), Span::ZERO)
    }
}

impl DisciplinedClock {
    /// A clock over `oscillator` that shows `offset` at the run's epoch and is read in ticks of `granularity`.
    ///
    /// # Errors
    /// [`ClockError::Granularity`] unless it is positive.
    pub fn new(oscillator: Oscillator, offset: Span, granularity: Span) -> Result<Self, ClockError> {
        if granularity <= Span::ZERO {
            return Err(ClockError::Granularity(granularity));
        }
        Ok(Self::build(oscillator, offset, granularity))
    }

    /// A clock over `oscillator` that shows `offset` at the run's epoch, read to the picosecond.
    pub fn over(oscillator: Oscillator, offset: Span) -> Self {
        Self::build(oscillator, offset, Span::from_picos(1))
    }

    fn build(oscillator: Oscillator, offset: Span, granularity: Span) -> Self {
        let origin = oscillator.count(RunTime::ZERO);
        let from = |ps| Course::new(Line::at_ps(origin, ps, FrequencyOffset::NONE));
        let (course, unstepped) = (from(offset.as_picos()), from(0));
        Self { oscillator, course, unstepped, granularity_ps: granularity.as_picos(), changed: RunTime::ZERO }
    }

    /// From `at` on the clock shows `by` more, or less if negative.
    ///
    /// # Errors
    /// [`ClockError::Order`] where `at` is before the last change, or before the run's epoch;
    /// [`ClockError::Range`] where the clock then shows more than 106 days. Nothing has changed.
    pub fn step(&mut self, at: RunTime, by: Span) -> Result<(), ClockError> {
        self.correct(at, by, self.frequency())
    }

    /// From `at` on the clock runs this much faster than its oscillator. Replaces the correction set before.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn set_frequency(&mut self, at: RunTime, frequency: FrequencyOffset) -> Result<(), ClockError> {
        self.correct(at, Span::ZERO, frequency)
    }

    /// From `at` on the oscillator has this frequency offset, by wander or temperature.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn set_drift(&mut self, at: RunTime, frequency: FrequencyOffset) -> Result<(), ClockError> {
        self.in_order(at)?;
        self.oscillator.set_frequency(at, frequency)?;
        self.changed = at;
        Ok(())
    }

    /// The frequency correction set last, relative to the oscillator.
    pub fn frequency(&self) -> FrequencyOffset {
        self.course.last().1.frequency
    }

    fn correct(&mut self, at: RunTime, by: Span, frequency: FrequencyOffset) -> Result<(), ClockError> {
        self.in_order(at)?;
        let error = ClockError::Range { at: at.as_picos() };
        let count = self.oscillator.count(at);
        let next = self.course.last().1.continued(count, by.as_picos(), frequency).ok_or(error)?;
        let unstepped = self.unstepped.last().1.continued(count, 0, frequency).ok_or(error)?;
        self.course.push(at, next);
        self.unstepped.push(at, unstepped);
        self.changed = at;
        Ok(())
    }

    fn in_order(&self, at: RunTime) -> Result<(), ClockError> {
        if at < self.changed {
            return Err(ClockError::Order { at: at.as_picos(), last: self.changed.as_picos() });
        }
        Ok(())
    }

    /// Forgets what held only before `time`, so that memory stays flat in a long run. Readings of earlier instants are
    /// then what the oldest known course gives, extended backwards.
    pub fn forget_before(&mut self, time: RunTime) {
        self.oscillator.forget_before(time);
        self.course.forget_before(time);
        self.unstepped.forget_before(time);
    }
}

impl LocalClock for DisciplinedClock {
    /// Reading of the clock at `time`, rounded down to its granularity.
    ///
    /// A reading beyond ±106 days is shown as the greatest or least [`LocalTime`].
    fn read(&self, time: RunTime) -> LocalTime {
        let shown_ps = self.course.at(time).shown_ps(self.oscillator.count(time));
        if self.granularity_ps == 1 {
            return LocalTime(saturated(shown_ps));
        }
        LocalTime(saturated(shown_ps - shown_ps.rem_euclid(self.granularity_ps.into())))
    }

    /// Where the clock is set back and shows `local` twice, this is the first time; where it is set forward over
    /// `local`, it is the instant of that step. Every clock shows at least the least [`LocalTime`]. `None` if there is
    /// none within ±106 days. Work: one pass over the changes known from `from` on.
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        if local.0 == i64::MIN {
            return Some(from);
        }
        let target_ps = i128::from(local.0);
        let tick_ps = match self.granularity_ps {
            1 => target_ps,
            granularity_ps => target_ps + (-target_ps).rem_euclid(granularity_ps.into()),
        };
        self.course.first(from, |line, begin| self.oscillator.reaches(line.reaches(tick_ps), begin))
    }

    fn elapsed(&self, time: RunTime) -> Span {
        Span::from_picos(saturated(self.unstepped.at(time).shown_ps(self.oscillator.count(time))))
    }

    fn when_elapsed(&self, elapsed: Span, from: RunTime) -> Option<RunTime> {
        let elapsed_ps = i128::from(elapsed.as_picos());
        self.unstepped.first(from, |line, begin| self.oscillator.reaches(line.reaches(elapsed_ps), begin))
    }
}

fn saturated(ps: i128) -> i64 {
    i64::try_from(ps).unwrap_or(if ps < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
