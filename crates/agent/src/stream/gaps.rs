//! Deviation of gaps between frames from their nominal value.

use wg_record::Sketch;

/// Tolerances of gaps, ps: ±1, ±5 and ±50 µs.
pub const TOLERANCES_PS: [i64; 3] = [1_000_000, 5_000_000, 50_000_000];

/// Statistics of gap deviations.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Gap minus nominal gap, ps.
    pub deviation: Sketch,
    /// Number of gaps within each tolerance.
    pub within: [u64; 3],
}

impl Gaps {
    /// Adds one gap, ps, with its nominal value.
    #[inline]
    pub fn add(&mut self, gap: i64, nominal: i64) {
        let deviation = gap.saturating_sub(nominal);
        self.deviation.add(deviation);
        for (count, tolerance) in self.within.iter_mut().zip(TOLERANCES_PS) {
            *count += u64::from(deviation.abs() <= tolerance);
        }
    }

    /// Fractions of gaps within the tolerances; `None` without gaps.
    pub fn shares(&self) -> Option<[f64; 3]> {
        let n = self.deviation.n();
        (n > 0).then(|| self.within.map(|count| count as f64 / n as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_counts_of_gaps_within_either_way(gaps in proptest::collection::vec(0_i64..200_000_000, 1..50)) {
            let nominal = 100_000_000;
            let mut kept = Gaps::default();
            gaps.iter().for_each(|gap| kept.add(*gap, nominal));
            let shares = kept.shares().expect("there are gaps");
            for (share, tolerance) in shares.iter().zip(TOLERANCES_PS) {
                let counted = gaps.iter().filter(|gap| (*gap - nominal).abs() <= tolerance).count();
                prop_assert!((share - counted as f64 / gaps.len() as f64).abs() < 1e-12);
            }
        }
    }
}
