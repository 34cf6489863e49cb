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

use wg_frame::ethernet::wire_len;
use wg_frame::time::{RunTime, Span};

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

/// Messages at exponential intervals (a Poisson process), one per uniform sample.
///
/// A sample u of 64 bits stands for U = (u + 1) / 2⁶⁴ in (0, 1]; the interval is −mean · ln U, rounded to the
/// nearest picosecond. Integers only, so that every machine yields the same times. The longest interval is
/// 44.4 means; longer ones have probability 2⁻⁶⁴.
#[derive(Clone, Debug)]
pub struct Exponential<I> {
    mean_ps: u64,
    time: RunTime,
    uniforms: I,
}

impl<I: Iterator<Item = u64>> Exponential<I> {
    /// The first message comes one interval after `start`; as many as there are samples.
    ///
    /// # Errors
    /// [`GeneratorError::Mean`] unless `mean` is between 1 ps and 1 000 000 s.
    pub fn new(start: RunTime, mean: Span, uniforms: I) -> Result<Self, GeneratorError> {
        let mean_ps = u64::try_from(mean.as_picos()).unwrap_or(0);
        if mean_ps == 0 || mean_ps > 1_000_000_000_000_000_000 {
            return Err(GeneratorError::Mean(mean));
        }
        Ok(Self { mean_ps, time: start, uniforms })
    }
}

impl<I: Iterator<Item = u64>> Iterator for Exponential<I> {
    type Item = RunTime;
    fn next(&mut self) -> Option<RunTime> {
        let uniform = self.uniforms.next()?;
        let interval = exponential_ps(self.mean_ps, uniform);
        self.time = later(self.time, Span::from_picos(i64::try_from(interval).ok()?))?;
        Some(self.time)
    }
}

/// ln 2 · 2⁶⁴, rounded to the nearest.
const LN_2: u128 = 12_786_308_645_202_655_660;

/// −mean · ln((uniform + 1) / 2⁶⁴) in picoseconds, to the nearest.
///
/// log₂ is taken bit by bit: squaring a number in [1, 2) moves the next bit of its logarithm before the point.
/// Truncating the square of step j to 2⁻⁶³ changes the logarithm by at most 1.45 · 2⁻⁶³, of which 2⁻ʲ⁻¹ counts;
/// so the sum errs by less than 2⁻⁶², which is 0.16 ps for the longest mean of 10¹⁸ ps.
fn exponential_ps(mean_ps: u64, uniform: u64) -> u128 {
    let scaled = u128::from(uniform) + 1;
    let whole = scaled.ilog2();
    // scaled / 2^whole in [1, 2), as a multiple of 2⁻⁶³; exact, since scaled has at most 65 bits.
    let mut mantissa = if whole == 64 { 1 << 63 } else { scaled << (63 - whole) };
    let mut fraction = 0_u128;
    for _ in 0..64 {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >= 1 << 64 {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    // 64 − log₂(scaled), as a multiple of 2⁻⁶⁴: at most 2⁷⁰.
    let bits = (u128::from(64 - whole) << 64) - fraction;
    // In two halves, for the product with mean (60 bits) and ln 2 (64 bits) would need 194 bits.
    let nats = ((bits >> 32) * LN_2 + (((bits & 0xFFFF_FFFF) * LN_2) >> 32)) >> 32;
    let (high, low) = (nats >> 64, nats & u128::from(u64::MAX));
    let mean = u128::from(mean_ps);
    high * mean + ((low * mean + (1 << 63)) >> 64)
}

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
    /// Ends early at a message larger than promised, which no waiting would let pass.
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

fn later(time: RunTime, by: Span) -> Option<RunTime> {
    time.as_picos().checked_add(by.as_picos()).map(RunTime::from_picos)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }
    fn ps(ps: i64) -> Span {
        Span::from_picos(ps)
    }

    /// Steele, Lea and Flood's SplitMix64, for tests only.
    fn samples(mut state: u64) -> impl Iterator<Item = u64> {
        core::iter::from_fn(move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            Some(z ^ z >> 31)
        })
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

    #[test]
    fn the_transform_at_its_ends() {
        assert_eq!(exponential_ps(1_000_000, u64::MAX), 0);
        // −ln 2⁻⁶⁴ = 64 ln 2 = 44.361 419 555 836 499 802 70…
        assert_eq!(exponential_ps(1_000_000_000_000_000_000, 0), 44_361_419_555_836_499_803);
        // U = 1/2 and U = 2⁻⁶³·3 with ln 2 = 0.693 147 180 559 945 309 417 232…
        assert_eq!(exponential_ps(1_000_000_000_000_000_000, (1 << 63) - 1), 693_147_180_559_945_309);
    }

    /// Anderson and Darling's A² of intervals against the exponential distribution with a known mean.
    fn anderson_darling(mut intervals: Vec<f64>, mean: f64) -> f64 {
        intervals.sort_by(f64::total_cmp);
        let n = intervals.len();
        let sum: f64 = (0..n)
            .map(|i| {
                let below = (-(-intervals[i] / mean).exp_m1()).ln();
                let above = -intervals[n - 1 - i] / mean;
                (2 * i + 1) as f64 * (below + above)
            })
            .sum();
        -(n as f64) - sum / n as f64
    }

    /// Upper 1 % point of A² for a fully specified distribution (Stephens, 1974).
    const CRITICAL: f64 = 3.857;

    #[test]
    fn intervals_are_exponential() {
        let mean = 50_000_000_i64;
        let intervals = |mean: i64, seed: u64| {
            let times: Vec<_> =
                Exponential::new(at(0), ps(mean), samples(seed)).unwrap().take(20_000).collect();
            // Half a picosecond keeps the logarithm of a zero interval finite.
            let gap = |pair: &[RunTime]| (pair[1] - pair[0]).as_picos() as f64 + 0.5;
            times.windows(2).map(gap).collect::<Vec<_>>()
        };
        for seed in 1..=5 {
            let fit = anderson_darling(intervals(mean, seed), mean as f64);
            assert!(fit < CRITICAL, "A² = {fit} at seed {seed}");
        }
        // Wrong ones: a mean 4 % off, a uniform law of the same mean, a constant pace.
        assert!(anderson_darling(intervals(mean * 26 / 25, 1), mean as f64) > CRITICAL);
        let uniform = samples(1).take(20_000).map(|u| u as f64 / 2_f64.powi(64) * 2.0 * mean as f64 + 0.5);
        assert!(anderson_darling(uniform.collect(), mean as f64) > CRITICAL);
        assert!(anderson_darling(vec![mean as f64; 20_000], mean as f64) > CRITICAL);
    }

    proptest! {
        /// Against the machine's logarithm, as far as its 53 bits go.
        #[test]
        fn the_transform_is_the_logarithm(uniform in any::<u64>(), shift in 0_u32..64, mean in 1_u64..=1_000_000_000_000) {
            let uniform = uniform >> shift;
            let exact = -(mean as f64) * (((u128::from(uniform) + 1) as f64).ln() - 64.0 * core::f64::consts::LN_2);
            let got = exponential_ps(mean, uniform) as f64;
            prop_assert!((got - exact).abs() <= 0.51 + mean as f64 * 4e-14, "{} for {}", got, exact);
        }

        /// Close to 1, where the logarithm of a double is worst: −ln U ≈ (1 − U) + (1 − U)²/2.
        #[test]
        fn the_transform_near_one_is_the_series(below in 0_u64..1 << 40) {
            let mean = 1_000_000_000_000_000_000_u64;
            let d = u128::from(below);
            // d/2⁶⁴ + d²/2¹²⁹ + d³/(3·2¹⁹²); the third term is below 1e-22.
            let expected = ((d * u128::from(mean)) >> 64) + ((((d * d) >> 30) * u128::from(mean)) >> 99);
            let got = exponential_ps(mean, u64::MAX - below);
            prop_assert!(got.abs_diff(expected) <= 2, "{} for {}", got, expected);
        }

        #[test]
        fn a_larger_sample_is_a_shorter_interval(a in any::<u64>(), b in any::<u64>(), mean in 1_u64..1_000_000_000_000_000_000) {
            prop_assert!(exponential_ps(mean, a.max(b)) <= exponential_ps(mean, a.min(b)));
        }

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
