//! A rate that changes evenly with time.

use wg_frame::time::{RunTime, Span};

use super::{GeneratorError, later};

/// Messages whose rate changes evenly with time: from one every `from` at the start to one every `to` after `length`.
///
/// With N₀ and N₁ messages in `length` at the first and the last rate, message k is due at the x = t / length for which
/// N₀ x + (N₁ − N₀) x² / 2 = k, which is x = 2k / (N₀ + √(N₀² + 2 (N₁ − N₀) k)). Integers only: N to 2⁻³², x to 2⁻⁶².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    start: RunTime,
    length_ps: u128,
    /// Multiples of 2⁻³².
    first: u128,
    last: u128,
    next: u64,
    count: u64,
}

impl Ramp {
    /// As many messages as are due before `length` is over, `count` at most.
    ///
    /// # Errors
    /// [`GeneratorError::Interval`] unless both intervals and the length are positive, and fewer than 2³⁰ messages
    /// would come in `length` at either rate.
    pub fn new(
        start: RunTime,
        from: Span,
        to: Span,
        length: Span,
        count: u64,
    ) -> Result<Self, GeneratorError> {
        let whole = |span: Span| u128::try_from(span.as_picos()).ok().filter(|ps| *ps > 0);
        let (Some(from), Some(to), Some(length_ps)) = (whole(from), whole(to), whole(length)) else {
            return Err(GeneratorError::Interval);
        };
        let in_length = |interval: u128| Some((length_ps << 32) / interval).filter(|n| *n < 1 << 62);
        let (Some(first), Some(last)) = (in_length(from), in_length(to)) else {
            return Err(GeneratorError::Interval);
        };
        Ok(Self { start, length_ps, first, last, next: 0, count })
    }

    /// Messages due before the end of the ramp: the mean of both rates, rounded up.
    pub fn fitting(&self) -> u64 {
        u64::try_from((self.first + self.last).div_ceil(2 << 32)).unwrap_or(u64::MAX)
    }

    fn at(&self, k: u64) -> Option<RunTime> {
        let twice = u128::from(k) << 33;
        // N₀² + 2 (N₁ − N₀) k, as a multiple of 2⁻⁶⁴; not negative before the end of the ramp.
        let square = self.first * self.first;
        let root = if self.last >= self.first {
            square.checked_add((self.last - self.first).checked_mul(twice)?)?
        } else {
            square.checked_sub((self.first - self.last).checked_mul(twice)?)?
        };
        let below = self.first + root.isqrt();
        let x = (u128::from(k) << 63 << 32).checked_div(below)?;
        let ps = i64::try_from((self.length_ps * x) >> 62).ok()?;
        later(self.start, Span::from_picos(ps))
    }
}

impl Iterator for Ramp {
    type Item = RunTime;
    fn next(&mut self) -> Option<RunTime> {
        if self.next >= self.count {
            return None;
        }
        let time = self.at(self.next)?;
        self.next += 1;
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }

    proptest! {
        /// Against the integral of the rate, in floating point.
        #[test]
        fn a_ramp_has_sent_what_its_rate_adds_up_to(
            from_us in 1_i64..10_000, to_us in 1_i64..10_000, length_ms in 1_i64..20_000,
        ) {
            let (from, to, length) = (Span::from_micros(from_us), Span::from_micros(to_us), Span::from_millis(length_ms));
            let ramp = Ramp::new(at(0), from, to, length, u64::MAX).unwrap();
            let (n0, n1) = (length_ms as f64 * 1e3 / from_us as f64, length_ms as f64 * 1e3 / to_us as f64);
            let fitting = ramp.fitting();
            prop_assert_eq!(fitting, ((n0 + n1) / 2.0 - 1e-9).ceil() as u64);
            let mut last = at(-1);
            for (k, time) in ramp.take(fitting.min(500) as usize).enumerate() {
                prop_assert!(time > last, "messages come one after another");
                last = time;
                let x = time.as_picos() as f64 / length.as_picos() as f64;
                let sent = n0 * x + (n1 - n0) * x * x / 2.0;
                prop_assert!((sent - k as f64).abs() < 1e-6 * (1.0 + n0 + n1), "{} at {}", sent, k);
            }
        }
    }
}
