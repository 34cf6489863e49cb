//! Intended send times of a sender: traffic generators as iterators.
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
    /// A mean outside what the transform is exact for.
    #[error("the mean interval {0} is not between 1ps and 1000000s; choose it within")]
    Mean(Span),
    /// A rate of zero.
    #[error("the rate limit is 0bit/s; give at least 1bit/s")]
    Rate,
    /// A bucket too small for a frame, which would wait for ever.
    #[error("a burst of {bucket_bits} bit holds no frame of {frame_bits} bit; raise it")]
    Bucket {
        /// Capacity of the bucket, in bits.
        bucket_bits: u64,
        /// Length of the frame, in bits.
        frame_bits: u64,
    },
}

/// Picoseconds in a second.
const SECOND_PS: u128 = 1_000_000_000_000;

/// Periodic activity: time counts only in the active part of each cycle, so that intended times fall into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Cycle", into = "Cycle")
)]
pub struct Activity {
    active: Span,
    pause: Span,
}

/// An active cycle as it is written in a file, before its values are checked.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Cycle {
    active: Span,
    pause: Span,
}

#[cfg(feature = "serde")]
impl TryFrom<Cycle> for Activity {
    type Error = GeneratorError;
    fn try_from(Cycle { active, pause }: Cycle) -> Result<Self, GeneratorError> {
        Self::new(active, pause)
    }
}

#[cfg(feature = "serde")]
impl From<Activity> for Cycle {
    fn from(Activity { active, pause }: Activity) -> Self {
        Self { active, pause }
    }
}

impl Activity {
    /// Cycles of `active` on and `pause` off, from the start.
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

    /// Active time of a cycle.
    pub const fn active(self) -> Span {
        self.active
    }
    /// Pause of a cycle.
    pub const fn pause(self) -> Span {
        self.pause
    }

    /// Time from the start until `after` of active time has passed; negative before the start, as if cycles had always
    /// run.
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
    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }
    fn ps(ps: i64) -> Span {
        Span::from_picos(ps)
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
    fn what_makes_no_traffic_is_refused() {
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
}
