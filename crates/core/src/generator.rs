//! When a sender means to send: traffic generators as iterators over intended times.
//!
//! A generator owns no random source and no clock: the exponential one takes uniform samples as an iterator, and
//! all yield instants the driver is to keep, late or not. Intended times never drift: the k-th is computed from
//! k, in integers, and rounded down to a picosecond once. Road not taken: adding a rounded interval again and
//! again, which loses up to a picosecond a frame and shifts a day of line-rate traffic by a millisecond.
//!
//! Generators combine: [`RateLimit`] holds any of them back to a rate.
//!
//! An iterator ends when its count is reached, or when the next time would lie beyond ±106 days.

mod exponential;
mod ramp;
mod rate_limit;

use wg_frame::ethernet::wire_len;
use wg_frame::time::{RunTime, Span};

pub use self::exponential::Exponential;
pub use self::ramp::Ramp;
pub use self::rate_limit::RateLimit;

/// Parameters that make no generator: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// An interval that is not positive, or longer than 106 days.
    #[error("the interval is not between 1ps and 106 days; choose another period, rate or share")]
    Interval,
    /// A burst of no message.
    #[error("a burst of 0 messages sends nothing; give it at least 1")]
    EmptyBurst,
    /// A burst that is not over when the next one begins.
    #[error("a burst of {size} messages {spacing} apart is not over after {interval}; lengthen the interval")]
    BurstsOverlap {
        /// Messages in a burst.
        size: u64,
        /// Between messages.
        spacing: Span,
        /// Between the beginnings of bursts.
        interval: Span,
    },
    /// A mean outside what the transform is exact for.
    #[error("the mean interval {0} is not between 1ps and 1000000s; choose it within")]
    Mean(Span),
    /// A rate of nothing.
    #[error("the rate limit is 0bit/s; give at least 1bit/s")]
    Rate,
    /// A bucket too small for a frame, which would wait for ever.
    #[error("a burst of {bucket_bits} bit holds no frame of {frame_bits} bit; raise it")]
    Bucket {
        /// What the bucket holds, in bits.
        bucket_bits: u64,
        /// The frame, in bits.
        frame_bits: u64,
    },
}

/// An exact interval: a fraction of picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    numerator_ps: u128,
    denominator: u128,
}

/// Picoseconds in a second.
const SECOND_PS: u128 = 1_000_000_000_000;

impl Pace {
    /// One every `period`.
    ///
    /// # Errors
    /// [`GeneratorError::Interval`] unless it is positive.
    pub fn every(period: Span) -> Result<Self, GeneratorError> {
        Self::new(u128::try_from(period.as_picos()).unwrap_or(0), 1)
    }

    /// Frames of `frame_len` bytes (DA to FCS) that fill `share_ppm` millionths of a line of `line_rate` bit/s,
    /// preamble and gap included: 100 % is back to back. More than 1 000 000 offers more than the line carries.
    ///
    /// # Errors
    /// [`GeneratorError::Interval`] for no rate or no share.
    pub fn share_of_line(share_ppm: u32, line_rate: u64, frame_len: u16) -> Result<Self, GeneratorError> {
        let bits = wire_len(usize::from(frame_len)) as u128 * 8;
        Self::new(bits * SECOND_PS * 1_000_000, u128::from(line_rate) * u128::from(share_ppm))
    }

    /// The same for bursts of `size` frames: the interval between bursts.
    ///
    /// # Errors
    /// [`GeneratorError::EmptyBurst`] for none, [`GeneratorError::Interval`] for too many.
    pub fn times(self, size: u32) -> Result<Self, GeneratorError> {
        if size == 0 {
            return Err(GeneratorError::EmptyBurst);
        }
        Self::new(self.numerator_ps * u128::from(size), self.denominator)
    }

    /// The interval, rounded down to a picosecond.
    pub fn interval(self) -> Span {
        self.after(1).unwrap_or(Span::from_picos(i64::MAX))
    }

    /// `k` intervals, rounded down once; `None` beyond 106 days.
    pub fn after(self, k: u64) -> Option<Span> {
        // The quotient first: its product with k fits, and the remainder's is smaller than its denominator's.
        let (whole, rest) = (self.numerator_ps / self.denominator, self.numerator_ps % self.denominator);
        let k = u128::from(k);
        let ps = whole.checked_mul(k)?.checked_add(rest.checked_mul(k)? / self.denominator)?;
        i64::try_from(ps).ok().map(Span::from_picos)
    }

    fn new(numerator_ps: u128, denominator: u128) -> Result<Self, GeneratorError> {
        let limit = i64::MAX.unsigned_abs();
        if denominator == 0 || numerator_ps < denominator || numerator_ps / denominator > u128::from(limit) {
            return Err(GeneratorError::Interval);
        }
        Ok(Self { numerator_ps, denominator })
    }
}

/// Messages at a constant pace: start, start + 1 interval, start + 2 intervals, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    start: RunTime,
    pace: Pace,
    next: u64,
    count: u64,
}

impl Periodic {
    /// `count` messages from `start` on.
    pub const fn new(start: RunTime, pace: Pace, count: u64) -> Self {
        Self { start, pace, next: 0, count }
    }
}

impl Iterator for Periodic {
    type Item = RunTime;
    fn next(&mut self) -> Option<RunTime> {
        if self.next >= self.count {
            return None;
        }
        let time = later(self.start, self.pace.after(self.next)?)?;
        self.next += 1;
        Some(time)
    }
}

/// Bursts at a constant pace, each of `size` messages `spacing` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    start: RunTime,
    pace: Pace,
    size: u64,
    spacing: Span,
    next: u64,
    count: u64,
}

impl Bursts {
    /// `count` messages in all, from `start` on; the last burst may be short. A spacing of zero means as fast as
    /// the line takes them.
    ///
    /// # Errors
    /// [`GeneratorError::EmptyBurst`], and [`GeneratorError::BurstsOverlap`] where a burst's last message does
    /// not come before the next burst or the spacing is negative.
    pub fn new(
        start: RunTime,
        pace: Pace,
        size: u64,
        spacing: Span,
        count: u64,
    ) -> Result<Self, GeneratorError> {
        let last = size.checked_sub(1).ok_or(GeneratorError::EmptyBurst)?;
        let length = i64::try_from(last).ok().and_then(|last| spacing.checked_mul(last));
        let interval = pace.interval();
        if spacing < Span::ZERO || length.is_none_or(|length| length >= interval) {
            return Err(GeneratorError::BurstsOverlap { size, spacing, interval });
        }
        Ok(Self { start, pace, size, spacing, next: 0, count })
    }
}

impl Iterator for Bursts {
    type Item = RunTime;
    fn next(&mut self) -> Option<RunTime> {
        if self.next >= self.count {
            return None;
        }
        let within = i64::try_from(self.next % self.size).ok()?;
        let begins = later(self.start, self.pace.after(self.next / self.size)?)?;
        let time = later(begins, self.spacing.checked_mul(within)?)?;
        self.next += 1;
        Some(time)
    }
}

/// Time that only passes in the active part of a cycle: what is due after so much active time is due then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    active: Span,
    pause: Span,
}

impl Activity {
    /// `active` on, `pause` off, from the beginning on.
    ///
    /// # Errors
    /// [`GeneratorError::Interval`] unless the first is positive, the second not negative, and both together less than
    /// 106 days.
    pub fn new(active: Span, pause: Span) -> Result<Self, GeneratorError> {
        if active <= Span::ZERO || pause < Span::ZERO || active.checked_add(pause).is_none() {
            return Err(GeneratorError::Interval);
        }
        Ok(Self { active, pause })
    }

    /// When `after` of active time has passed; negative before the beginning, as if cycles had always been.
    pub fn elapsed(self, after: Span) -> Option<Span> {
        let cycles = after.as_picos().div_euclid(self.active.as_picos());
        after.checked_add(self.pause.checked_mul(cycles)?)
    }

    /// Active time in the first `elapsed` of cycles.
    pub fn active_in(self, elapsed: Span) -> Span {
        let (active, cycle) = (self.active.as_picos(), self.active.as_picos() + self.pause.as_picos());
        let (whole, rest) = (elapsed.as_picos().div_euclid(cycle), elapsed.as_picos().rem_euclid(cycle));
        Span::from_picos(whole * active + rest.min(active))
    }
}

fn later(time: RunTime, by: Span) -> Option<RunTime> {
    time.as_picos().checked_add(by.as_picos()).map(RunTime::from_picos)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }
    fn ps(ps: i64) -> Span {
        Span::from_picos(ps)
    }

    /// Verbree and Shvartsman (2015), table 2: saturation of 1 Gbit/s, Mbit/s, interval and interval of bursts of
    /// ten in microseconds, as printed. The frame is the one of their largest payload, 1472 B.
    #[test]
    fn the_maps_saturation_table_comes_out_as_printed() {
        let table = [
            (25, 250, "49.2", "492"),
            (50, 500, "24.6", "246"),
            (75, 750, "16.4", "164"),
            (100, 1000, "12.3", "123"),
        ];
        for (percent, rate_mbps, interval, burst) in table {
            let pace = Pace::share_of_line(percent * 10_000, 1_000_000_000, 1_518).unwrap();
            let printed =
                |pace: Pace, digits| std::format!("{:.*}", digits, pace.interval().as_picos() as f64 / 1e6);
            assert_eq!(printed(pace, 1), interval);
            assert_eq!(printed(pace.times(10).unwrap(), 0), burst);
            // A second of it occupies the line for the share.
            let frames = (1..).take_while(|k| pace.after(*k).unwrap() <= Span::from_millis(1_000)).count();
            assert_eq!((frames as f64 * 1_538.0 * 8.0 / 1e6).round() as i64, rate_mbps);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_due_in_a_pause(active in 1_i64..1_000, pause in 0_i64..1_000, after in -5_000_i64..5_000) {
            let activity = Activity::new(ps(active), ps(pause)).unwrap();
            let elapsed = activity.elapsed(ps(after)).unwrap().as_picos();
            prop_assert!(elapsed.rem_euclid(active + pause) < active);
            prop_assert_eq!(activity.active_in(ps(elapsed)), ps(after));
        }
    }

    #[test]
    fn full_line_rate_is_back_to_back_for_ever() {
        let pace = Pace::share_of_line(1_000_000, 1_000_000_000, 64).unwrap();
        assert_eq!(pace.after(1_000_000_000), Some(Span::from_millis(672_000)));
        // A third of the line: 2.016 µs; a seventh of 100 Mbit/s by 142857 ppm is no whole picosecond.
        let odd = Pace::share_of_line(142_857, 100_000_000, 64).unwrap();
        let k = 10_000_000_000_u64;
        let exact = u128::from(k) * 672 * SECOND_PS * 1_000_000 / (100_000_000 * 142_857);
        assert_eq!(odd.after(k).map(|span| span.as_picos() as u128), Some(exact));
        let drifting = odd.interval().checked_mul(k as i64);
        assert_ne!(drifting, odd.after(k), "adding a rounded interval would drift");
    }

    #[test]
    fn what_makes_no_traffic_is_refused() {
        assert_eq!(Pace::every(Span::ZERO), Err(GeneratorError::Interval));
        assert_eq!(Pace::every(ps(-1)), Err(GeneratorError::Interval));
        assert_eq!(Pace::share_of_line(0, 1_000, 64), Err(GeneratorError::Interval));
        assert_eq!(Pace::share_of_line(1, 0, 64), Err(GeneratorError::Interval));
        assert_eq!(Pace::share_of_line(1, 1, 64), Err(GeneratorError::Interval));
        assert!(Pace::every(ps(1)).is_ok() && Pace::every(ps(i64::MAX)).is_ok());
        let pace = Pace::every(ps(100)).unwrap();
        assert_eq!(pace.times(0), Err(GeneratorError::EmptyBurst));
        assert_eq!(Bursts::new(at(0), pace, 0, ps(1), 1), Err(GeneratorError::EmptyBurst));
        assert!(Bursts::new(at(0), pace, 11, ps(10), 1).is_err());
        assert!(Bursts::new(at(0), pace, 10, ps(11), 1).is_ok());
        assert!(Bursts::new(at(0), pace, 2, ps(-1), 1).is_err());
        for mean in [0, -1, 1_000_000_000_000_000_001] {
            let none = Exponential::new(at(0), ps(mean), [].into_iter());
            assert_eq!(none.err(), Some(GeneratorError::Mean(ps(mean))));
        }
        assert!(Exponential::new(at(0), ps(1_000_000_000_000_000_000), [].into_iter()).is_ok());
        let none = core::iter::empty;
        assert_eq!(RateLimit::new(0, 1, 1, none()).err(), Some(GeneratorError::Rate));
        let small = GeneratorError::Bucket { bucket_bits: 9, frame_bits: 10 };
        assert_eq!(RateLimit::new(1, 9, 10, none()).err(), Some(small));
        let mut over = RateLimit::new(1, 10, 10, [(at(0), 11)].into_iter()).unwrap();
        assert_eq!(over.next(), None);
    }

    #[test]
    fn times_end_where_time_ends() {
        let pace = Pace::every(ps(i64::MAX / 2)).unwrap();
        assert_eq!(Periodic::new(at(0), pace, 10).count(), 3);
        assert_eq!(Periodic::new(at(i64::MAX), pace, 10).count(), 1);
        let bursts = Bursts::new(at(i64::MAX - 5), pace, 3, ps(5), 10).unwrap();
        assert_eq!(bursts.collect::<Vec<_>>(), [at(i64::MAX - 5), at(i64::MAX)]);
    }

    proptest! {
        #[test]
        fn messages_keep_their_pace(start in -1_000_i64..1_000, period in 1_i64..1_000_000_000, count in 0_u64..200) {
            let times: Vec<_> = Periodic::new(at(start), Pace::every(ps(period)).unwrap(), count).collect();
            let expected: Vec<_> = (0..count as i64).map(|k| at(start + k * period)).collect();
            prop_assert_eq!(times, expected);
        }

        #[test]
        fn bursts_are_bursts(size in 1_u64..12, spacing in 0_i64..50, idle in 1_i64..1_000, count in 0_u64..100) {
            let period = (size as i64 - 1) * spacing + idle;
            let pace = Pace::every(ps(period)).unwrap();
            let times: Vec<_> = Bursts::new(at(3), pace, size, ps(spacing), count).unwrap().collect();
            prop_assert_eq!(times.len() as u64, count);
            for (place, time) in times.iter().enumerate() {
                let (burst, within) = (place as i64 / size as i64, place as i64 % size as i64);
                prop_assert_eq!(*time, at(3 + burst * period + within * spacing));
            }
            prop_assert!(times.is_sorted());
        }
    }
}
