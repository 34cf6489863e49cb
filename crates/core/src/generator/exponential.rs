//! Exponential intervals, in integers.

use wg_frame::time::{RunTime, Span};

use super::{GeneratorError, later};

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
    }
}
