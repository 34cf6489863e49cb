//! What a node's own clock shows: offset, frequency error, wander, steps and read granularity.
//!
//! The clock is piecewise linear in true time. Each piece has a constant frequency error, exact to 10⁻¹⁵; where
//! pieces join the reading may step. Wander and temperature are pieces handed in: whoever owns the random source
//! samples them, and a temperature step is a change of frequency at its instant. A reading is rounded down to
//! the granularity, as a counter that has not ticked yet shows.
//!
//! # Exact
//! The phase is kept in 10⁻¹⁵ ps as a 128-bit integer: a frequency in whole 10⁻¹⁵ for a whole number of
//! picoseconds adds a whole number of those. Nothing is rounded between pieces, and both conversions (true to
//! local, local to true) are integer divisions. Road not taken: floating point, whose 53 bits cannot hold a
//! day in picoseconds.
//!
//! Local time is a type of its own. A deadline of a node is set in local time and becomes an instant of the run
//! by [`Oscillator::true_time`], never by a cast:
//!
//! ```compile_fail
//! # use wg_core::oscillator::LocalTime;
//! # use wg_frame::time::RunTime;
//! let mixed = LocalTime::from_picos(1) - RunTime::from_picos(1);
//! ```
//!
//! # Time
//! A clock has no deadline and no order of calls: it may be read for any instant, before, at or after another.
//! Changes alone are ordered: each must come at or after the one before; of two at the same instant both count.

use alloc::vec::Vec;
use core::ops::{Add, Sub};

use wg_frame::time::{RunTime, Span};

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

/// How much faster than true time a clock runs, as a whole number of 10⁻¹⁵.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrequencyError(i64);

/// 10⁻¹⁵ ps in a picosecond.
const FINE: i128 = 1_000_000_000_000_000;

impl FrequencyError {
    /// As fast as true time.
    pub const NONE: Self = Self(0);
    /// The greatest error either way: one tenth. Beyond it is no oscillator but a fault to be planted otherwise.
    pub const LIMIT: Self = Self(100_000_000_000_000);

    /// An error of `e` · 10⁻¹⁵.
    ///
    /// # Errors
    /// [`ClockError::Frequency`] beyond [`Self::LIMIT`] either way.
    pub const fn from_quadrillionths(e: i64) -> Result<Self, ClockError> {
        if e > Self::LIMIT.0 || e < -Self::LIMIT.0 { Err(ClockError::Frequency) } else { Ok(Self(e)) }
    }
    /// An error of `ppb` · 10⁻⁹; 1 ppm is 1000.
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

/// A clock a device acts by: readings for instants, instants for readings.
pub trait LocalClock {
    /// What it shows at `time`.
    fn read(&self, time: RunTime) -> LocalTime;
    /// The earliest instant at or after `from` at which it shows at least `local`; `None`: never.
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime>;
}

/// The clock of a device that needs none: it shows true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrueTime;

impl LocalClock for TrueTime {
    fn read(&self, time: RunTime) -> LocalTime {
        LocalTime(time.as_picos())
    }
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        Some(RunTime::from_picos(local.0).max(from))
    }
}

/// What happens to a clock at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// From now on it has this frequency error (wander, temperature, steering).
    Frequency(FrequencyError),
    /// It is set forward by this much, or back if negative.
    Step(Span),
}

/// A clock that cannot be: the plan's fault.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: RunTime,
    /// What the clock shows at `from`, in 10⁻¹⁵ ps.
    phase: i128,
    /// The same in whole picoseconds, rounded down: most clocks run true, and need no more.
    phase_ps: i128,
    frequency: FrequencyError,
}

impl Piece {
    fn new(from: RunTime, phase: i128, frequency: FrequencyError) -> Self {
        Self { from, phase, phase_ps: phase.div_euclid(FINE), frequency }
    }
    fn phase_at(&self, time: RunTime) -> i128 {
        self.phase + elapsed_ps(self.from, time) * self.frequency.rate()
    }
    /// What it shows at `time`, rounded down to a picosecond.
    fn shown_ps(&self, time: RunTime) -> i128 {
        if self.frequency == FrequencyError::NONE {
            self.phase_ps + elapsed_ps(self.from, time)
        } else {
            self.phase_at(time).div_euclid(FINE)
        }
    }
    /// How long after `from` it shows `ps` picoseconds, rounded up to one.
    fn until_shown_ps(&self, ps: i128) -> i128 {
        if self.frequency == FrequencyError::NONE {
            ps - self.phase_ps
        } else {
            ceil_div(ps * FINE - self.phase, self.frequency.rate())
        }
    }
}

/// The clock of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oscillator {
    granularity_ps: i64,
    /// In order of time, never empty. The first also holds for all time before it.
    pieces: Vec<Piece>,
}

impl Oscillator {
    /// A clock that shows `offset` at the run's epoch, runs with `frequency` and is read in ticks of `granularity`.
    ///
    /// # Errors
    /// [`ClockError::Granularity`] unless it is positive.
    pub fn new(offset: Span, frequency: FrequencyError, granularity: Span) -> Result<Self, ClockError> {
        if granularity <= Span::ZERO {
            return Err(ClockError::Granularity(granularity));
        }
        let phase = i128::from(offset.as_picos()) * FINE;
        let pieces = alloc::vec![Piece::new(RunTime::ZERO, phase, frequency)];
        Ok(Self { granularity_ps: granularity.as_picos(), pieces })
    }

    /// A clock that shows true time.
    pub fn perfect() -> Self {
        let piece = Piece::new(RunTime::ZERO, 0, FrequencyError::NONE);
        Self { granularity_ps: 1, pieces: alloc::vec![piece] }
    }

    /// Something happens to the clock at `at`. Deadlines converted for later instants must be converted again.
    ///
    /// # Errors
    /// [`ClockError::Order`] where `at` is before the last change, or before the run's epoch;
    /// [`ClockError::Range`] where the clock then shows more than 106 days. Nothing has changed.
    pub fn handle_change(&mut self, at: RunTime, change: Change) -> Result<(), ClockError> {
        let last = self.last();
        if at < last.from {
            return Err(ClockError::Order { at: at.as_picos(), last: last.from.as_picos() });
        }
        let phase = last.phase_at(at);
        let next = match change {
            Change::Frequency(frequency) => Piece::new(at, phase, frequency),
            Change::Step(by) => Piece::new(at, phase + i128::from(by.as_picos()) * FINE, last.frequency),
        };
        if i64::try_from(next.phase / FINE).is_err() {
            return Err(ClockError::Range { at: at.as_picos() });
        }
        if at == last.from && self.pieces.len() > 1 {
            self.pieces.pop();
        }
        self.pieces.push(next);
        Ok(())
    }

    /// Forgets pieces that ended at or before `time`, so that memory stays flat in a long run. Readings of
    /// earlier instants are then those of the oldest piece kept, extended backwards.
    pub fn forget_before(&mut self, time: RunTime) {
        let kept = self.pieces.partition_point(|piece| piece.from <= time).saturating_sub(1);
        self.pieces.drain(..kept);
    }

    /// What the clock shows at `time`, rounded down to its granularity.
    ///
    /// A reading beyond ±106 days is shown as the greatest or least [`LocalTime`].
    pub fn read(&self, time: RunTime) -> LocalTime {
        let at = self.pieces.partition_point(|piece| piece.from <= time).saturating_sub(1);
        let shown_ps = self.pieces[at].shown_ps(time);
        if self.granularity_ps == 1 {
            return LocalTime(saturated(shown_ps));
        }
        let granularity_ps = i128::from(self.granularity_ps);
        LocalTime(saturated(shown_ps - shown_ps.rem_euclid(granularity_ps)))
    }

    /// The earliest instant at or after `from` at which the clock shows at least `local`; `None` if there is
    /// none within ±106 days.
    ///
    /// Where the clock is set back and shows `local` twice, this is the first time; where it is set forward
    /// over `local`, it is the instant of that step. Every clock shows at least the least [`LocalTime`]. Work: one pass over the pieces known from `from` on.
    pub fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        if local.0 == i64::MIN {
            return Some(from);
        }
        let granularity_ps = i128::from(self.granularity_ps);
        let target_ps = i128::from(local.0);
        let rest_ps = if granularity_ps == 1 { 0 } else { (-target_ps).rem_euclid(granularity_ps) };
        let tick_ps = target_ps + rest_ps;
        let first = self.pieces.partition_point(|piece| piece.from <= from).saturating_sub(1);
        self.pieces.iter().enumerate().skip(first).find_map(|(at, piece)| {
            let begin_ps = if at == first { from } else { piece.from }.as_picos();
            let wait_ps = piece.until_shown_ps(tick_ps);
            let time_ps = (i128::from(piece.from.as_picos()) + wait_ps).max(i128::from(begin_ps));
            let time = RunTime::from_picos(i64::try_from(time_ps).ok()?);
            match self.pieces.get(at + 1) {
                Some(next) if time >= next.from => None,
                _ => Some(time),
            }
        })
    }

    fn last(&self) -> Piece {
        self.pieces[self.pieces.len() - 1]
    }
}

impl LocalClock for Oscillator {
    fn read(&self, time: RunTime) -> LocalTime {
        Self::read(self, time)
    }
    fn true_time(&self, local: LocalTime, from: RunTime) -> Option<RunTime> {
        Self::true_time(self, local, from)
    }
}

fn elapsed_ps(from: RunTime, to: RunTime) -> i128 {
    i128::from(to.as_picos()) - i128::from(from.as_picos())
}

fn saturated(ps: i128) -> i64 {
    i64::try_from(ps).unwrap_or(if ps < 0 { i64::MIN } else { i64::MAX })
}

fn ceil_div(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }
    fn ppb(ppb: i64) -> FrequencyError {
        FrequencyError::from_ppb(ppb).unwrap()
    }
    fn clock(offset: i64, ppb_: i64, granularity: i64) -> Oscillator {
        Oscillator::new(Span::from_picos(offset), ppb(ppb_), Span::from_picos(granularity)).unwrap()
    }

    const SECOND: i64 = 1_000_000_000_000;

    #[test]
    fn closed_forms() {
        // 50 ppm fast is 50 µs ahead after a second, 4.32 s after a day.
        let fast = clock(0, 50_000, 1);
        assert_eq!(fast.read(at(SECOND)).as_picos(), SECOND + 50_000_000);
        assert_eq!(fast.read(at(86_400 * SECOND)).as_picos(), 86_400 * SECOND + 4_320 * SECOND / 1_000);
        // One ps of local time later than n s · (1 + 50e-6) needs one more ps of true time.
        let deadline = LocalTime::from_picos(SECOND + 50_000_001);
        assert_eq!(fast.true_time(deadline, RunTime::ZERO), Some(at(SECOND + 1)));
        // A tick of 8 ns shows the last multiple; set forward by 1 s, then back by 2 s.
        let mut coarse = clock(3, 0, 8_000);
        assert_eq!(coarse.read(at(7_996)).as_picos(), 0);
        assert_eq!(coarse.read(at(7_997)).as_picos(), 8_000);
        assert_eq!(coarse.read(at(-4)).as_picos(), -8_000);
        coarse.handle_change(at(SECOND), Change::Step(Span::from_millis(1_000))).unwrap();
        coarse.handle_change(at(2 * SECOND), Change::Step(Span::from_millis(-2_000))).unwrap();
        assert_eq!(coarse.read(at(SECOND)).as_picos(), 2 * SECOND);
        assert_eq!(coarse.read(at(2 * SECOND)).as_picos(), SECOND);
        let skipped = LocalTime::from_picos(3 * SECOND / 2);
        assert_eq!(coarse.true_time(skipped, RunTime::ZERO), Some(at(SECOND)));
        assert_eq!(coarse.true_time(skipped, at(2 * SECOND)), Some(at(5 * SECOND / 2 - 3)));
    }

    #[test]
    fn a_reading_set_back_at_its_instant_is_never_shown() {
        let mut clock = Oscillator::perfect();
        clock.handle_change(at(1_000), Change::Step(Span::from_picos(-500))).unwrap();
        assert_eq!(clock.true_time(LocalTime::from_picos(999), RunTime::ZERO), Some(at(999)));
        assert_eq!(clock.true_time(LocalTime::from_picos(1_000), RunTime::ZERO), Some(at(1_500)));
        clock.forget_before(at(1_000));
        assert_eq!(clock.pieces.len(), 1, "the piece that ended is forgotten");
    }

    #[test]
    fn a_temperature_step_is_a_change_of_frequency() {
        let mut warm = clock(0, 10_000, 1);
        warm.handle_change(at(SECOND), Change::Frequency(ppb(-20_000))).unwrap();
        assert_eq!(warm.read(at(3 * SECOND)).as_picos(), 3 * SECOND + 10_000_000 - 40_000_000);
    }

    #[test]
    fn the_greatest_run_and_error_fit() {
        for e in [FrequencyError::LIMIT.0, -FrequencyError::LIMIT.0] {
            let clock = Oscillator::new(Span::from_picos(0), FrequencyError(e), Span::from_picos(1)).unwrap();
            for time in [i64::MIN, i64::MAX] {
                let exact = i128::from(time) + (i128::from(time) * i128::from(e)).div_euclid(FINE);
                assert_eq!(clock.read(at(time)).as_picos(), saturated(exact));
            }
        }
        assert_eq!(clock(0, -1, 1).true_time(LocalTime::from_picos(i64::MAX), RunTime::ZERO), None);
    }

    #[test]
    fn what_cannot_be_a_clock_is_refused() {
        assert_eq!(FrequencyError::from_ppb(100_000_001), Err(ClockError::Frequency));
        assert_eq!(FrequencyError::from_ppb(i64::MIN), Err(ClockError::Frequency));
        let none = Oscillator::new(Span::ZERO, FrequencyError::NONE, Span::ZERO);
        assert_eq!(none, Err(ClockError::Granularity(Span::ZERO)));
        let mut clock = Oscillator::perfect();
        clock.handle_change(at(5), Change::Step(Span::ZERO)).unwrap();
        let late = clock.handle_change(at(4), Change::Step(Span::ZERO));
        assert_eq!(late, Err(ClockError::Order { at: 4, last: 5 }));
        let far = clock.handle_change(at(5), Change::Step(Span::from_picos(i64::MAX)));
        assert_eq!(far, Err(ClockError::Range { at: 5 }));
        assert_eq!(clock.read(at(6)), LocalTime::from_picos(6));
    }

    /// Changes as (gap, change), times odd on purpose.
    fn changes(back: bool) -> impl Strategy<Value = std::vec::Vec<(i64, Change)>> {
        let step = if back { -2 * SECOND..2 * SECOND } else { 0..2 * SECOND };
        let change = prop_oneof![
            3 => (-100_000_000_000_000_i64..=100_000_000_000_000)
                .prop_map(|e| Change::Frequency(FrequencyError::from_quadrillionths(e).unwrap())),
            1 => step.prop_map(|ps| Change::Step(Span::from_picos(ps))),
        ];
        prop::collection::vec((prop_oneof![4 => 1..SECOND, 1 => Just(0)], change), 0..12)
    }

    fn built(offset: i64, granularity: i64, changes: &[(i64, Change)]) -> (Oscillator, i64) {
        let mut clock = clock(offset, 0, granularity);
        let mut now = 0;
        for &(gap, change) in changes {
            now += gap;
            clock.handle_change(at(now), change).unwrap();
        }
        (clock, now)
    }

    /// Oracle: adds the clock up from the beginning for every reading, in femto-units of its own.
    fn summed(offset: i64, granularity: i64, changes: &[(i64, Change)], time: i64) -> i64 {
        let (mut shown, mut now, mut e) = (i128::from(offset) * FINE, 0_i64, 0_i128);
        for &(gap, change) in changes {
            if now + gap > time {
                break;
            }
            shown += i128::from(gap) * FINE + i128::from(gap) * e;
            now += gap;
            match change {
                Change::Frequency(f) => e = i128::from(f.quadrillionths()),
                Change::Step(by) => shown += i128::from(by.as_picos()) * FINE,
            }
        }
        shown += i128::from(time - now) * (FINE + e);
        let unit = i128::from(granularity) * FINE;
        i64::try_from(shown.div_euclid(unit) * i128::from(granularity)).unwrap()
    }

    proptest! {
        #[test]
        fn readings_are_the_exact_sum(
            offset in -SECOND..SECOND, granularity in prop_oneof![Just(1_i64), 1..100_000_i64],
            changes in changes(true), time in 0..14 * SECOND,
        ) {
            let (clock, _) = built(offset, granularity, &changes);
            prop_assert_eq!(clock.read(at(time)).as_picos(), summed(offset, granularity, &changes, time));
        }

        #[test]
        fn without_a_step_back_the_clock_never_runs_back(
            changes in changes(false), granularity in 1..100_000_i64, a in 0..14 * SECOND, gap in 0..SECOND,
        ) {
            let (clock, _) = built(0, granularity, &changes);
            prop_assert!(clock.read(at(a)) <= clock.read(at(a + gap)));
        }

        /// Defining property of the inverse: shown then, and at no instant before.
        #[test]
        fn true_time_is_the_earliest(
            changes in changes(true), granularity in prop_oneof![Just(1_i64), 1..100_000_i64],
            target in -SECOND..20 * SECOND, from in 0..14 * SECOND, probe in 0.0_f64..1.0,
        ) {
            let (clock, _) = built(0, granularity, &changes);
            let local = LocalTime::from_picos(target);
            let found = clock.true_time(local, at(from)).expect("a tenth slow gets there");
            prop_assert!(found >= at(from));
            prop_assert!(clock.read(found) >= local);
            let before = (found - at(from)).as_picos();
            if before > 0 {
                prop_assert!(clock.read(found - Span::from_picos(1)) < local);
                let earlier = from + ((before - 1) as f64 * probe) as i64;
                prop_assert!(clock.read(at(earlier)) < local);
                // Every piece's beginning in between, where a step could have passed the target.
                for piece in &clock.pieces {
                    prop_assert!(piece.from < at(from) || piece.from >= found || clock.read(piece.from) < local);
                }
            }
        }

        #[test]
        fn forgetting_the_past_leaves_the_future(
            changes in changes(true), now in 0..14 * SECOND, later in 0..SECOND, target in 0..20 * SECOND,
        ) {
            let (clock, _) = built(0, 7, &changes);
            let mut short = clock.clone();
            short.forget_before(at(now));
            prop_assert_eq!(short.read(at(now + later)), clock.read(at(now + later)));
            let local = LocalTime::from_picos(target);
            prop_assert_eq!(short.true_time(local, at(now)), clock.true_time(local, at(now)));
        }
    }

    /// Wrong clocks that the sum and the inverse must tell from the right one.
    #[test]
    fn wrong_clocks_are_found_out() {
        let changes = [(333, Change::Step(Span::ZERO)); 12];
        let drift = [(0, Change::Frequency(ppb(1_500_000)))];
        let long: std::vec::Vec<_> = drift.into_iter().chain(changes).collect();
        let exact = summed(0, 1, &long, 12 * 333);
        // Whole picoseconds kept at every piece lose half a picosecond each time.
        let rounded: i64 = (0..12).map(|_| clock(0, 1_500_000, 1).read(at(333)).as_picos()).sum();
        assert_ne!(exact, rounded);
        assert_eq!(built(0, 1, &long).0.read(at(12 * 333)).as_picos(), exact);
        // Floating point loses picoseconds within a day at 1 ppb.
        let day = 86_400 * SECOND + 1;
        let float = (day as f64 * (1.0 + 1e-9)) as i64;
        assert_ne!(float, clock(0, 1, 1).read(at(day)).as_picos());
        // Rounding the inverse down is early.
        let fast = clock(0, 50_000, 1);
        let early = SECOND;
        assert!(fast.read(at(early)) < LocalTime::from_picos(SECOND + 50_000_001));
    }
}
