//! A token bucket before any generator.

use wg_frame::time::{RunTime, Span};

use super::{GeneratorError, SECOND_PS, later};

/// Holds messages back to a rate: a token bucket of `bucket_bits` refilled at `rate` bit/s, full at first.
///
/// Takes (intended time, bits) in order and yields for each the earliest time at which the bucket holds its bits,
/// never before its intended time nor before the message ahead. Exact: the level is kept in 10⁻¹² bit, of which
/// `rate` flow in each picosecond. An intended time before the last one counts as the last one.
#[derive(Clone, Debug)]
pub struct RateLimit<I> {
    rate: u64,
    /// In 10⁻¹² bit.
    bucket: u128,
    level: u128,
    at: Option<RunTime>,
    messages: I,
    most_bits: u64,
}

impl<I: Iterator<Item = (RunTime, u64)>> RateLimit<I> {
    /// Limits `messages` of at most `most_bits` each.
    ///
    /// # Errors
    /// [`GeneratorError::Rate`] for a rate of zero, [`GeneratorError::Bucket`] where the bucket is smaller than
    /// the largest message.
    pub fn new(rate: u64, bucket_bits: u64, most_bits: u64, messages: I) -> Result<Self, GeneratorError> {
        if rate == 0 {
            return Err(GeneratorError::Rate);
        }
        if bucket_bits < most_bits {
            return Err(GeneratorError::Bucket { bucket_bits, frame_bits: most_bits });
        }
        let bucket = u128::from(bucket_bits) * SECOND_PS;
        Ok(Self { rate, bucket, level: bucket, at: None, messages, most_bits })
    }
}

impl<I: Iterator<Item = (RunTime, u64)>> Iterator for RateLimit<I> {
    type Item = RunTime;
    /// Ends early at a message larger than `most_bits`, which no waiting would let pass.
    fn next(&mut self) -> Option<RunTime> {
        let (intended, bits) = self.messages.next()?;
        if bits > self.most_bits {
            return None;
        }
        let last = self.at.unwrap_or(intended);
        let mut time = intended.max(last);
        let rate = u128::from(self.rate);
        let elapsed_ps = (i128::from(time.as_picos()) - i128::from(last.as_picos())).unsigned_abs();
        self.level = self.bucket.min(self.level.saturating_add(rate.saturating_mul(elapsed_ps)));
        let cost = u128::from(bits) * SECOND_PS;
        if let Some(missing) = cost.checked_sub(self.level) {
            let wait_ps = missing.div_ceil(rate);
            time = later(time, Span::from_picos(i64::try_from(wait_ps).ok()?))?;
            self.level = self.bucket.min(self.level + rate * wait_ps);
        }
        self.level -= cost;
        self.at = Some(time);
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }

    proptest! {
        /// Within the bucket over every window, and no later than needed: each delayed message leaves a bucket
        /// that held less than its bits a picosecond before.
        #[test]
        fn a_limited_rate_is_kept_and_used(
            steps in prop::collection::vec((prop_oneof![Just(0_i64), 0_i64..2_000_000], 1_u64..=12_304), 1..60),
            rate in 1_000_000_u64..10_000_000_000, spare in 0_u64..50_000,
        ) {
            let bucket = 12_304 + spare;
            let mut now = 0;
            let messages: Vec<_> = steps.iter().map(|(gap, bits)| { now += gap; (at(now), *bits) }).collect();
            let limit = RateLimit::new(rate, bucket, 12_304, messages.iter().copied()).unwrap();
            let times: Vec<_> = limit.collect();
            prop_assert_eq!(times.len(), messages.len());
            prop_assert!(times.is_sorted());
            let second = SECOND_PS as i128;
            let granted = |first: usize, last: usize, early: i64| {
                let window = i128::from((times[last] - times[first]).as_picos() - early);
                i128::from(bucket) * second + i128::from(rate) * window
            };
            let used = |first: usize, last: usize| {
                messages[first..=last].iter().map(|(_, bits)| i128::from(*bits)).sum::<i128>() * second
            };
            for last in 0..times.len() {
                prop_assert!(times[last] >= messages[last].0);
                prop_assert!((0..=last).all(|first| used(first, last) <= granted(first, last, 0)));
                let waited = times[last] > messages[last].0 && (last == 0 || times[last] > times[last - 1]);
                prop_assert!(!waited || (0..=last).any(|first| used(first, last) > granted(first, last, 1)));
            }
        }
    }
}
