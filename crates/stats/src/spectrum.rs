//! Prominent ordinates of a power spectrum.

use std::ops::Range;

/// A local maximum of a sum of harmonics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Where, in ordinates of the highest harmonic.
    pub ordinate: usize,
    /// The sum.
    pub height: f64,
}

/// The local maxima of the sums of the first `2^octaves` harmonics, of all ordinates in `range` but its first and last.
///
/// Ordinates are those of the highest harmonic; the others are the nearest to their share of it. Of equal neighbours
/// the last is the maximum. `range` must end within `power`.
pub fn peaks(power: &[f64], range: Range<usize>, octaves: u32) -> Vec<Peak> {
    let harmonics = 1_usize << octaves;
    let mut sums = vec![0.0; range.len()];
    for k in 1..=harmonics {
        for (sum, ordinate) in sums.iter_mut().zip(range.clone()) {
            *sum += power[(k * ordinate + harmonics / 2) >> octaves];
        }
    }
    let peaks = sums.windows(3).enumerate().filter(|(_, near)| near[1] >= near[0] && near[1] > near[2]);
    peaks.map(|(place, near)| Peak { ordinate: range.start + place + 1, height: near[1] }).collect()
}

/// The medians of the sections of `values` from each of `edges` to the next; NaN for an empty section.
///
/// `edges` must ascend and end within `values`.
pub fn medians(values: &[f64], edges: &[usize]) -> Vec<f64> {
    let mut section = Vec::new();
    edges
        .windows(2)
        .map(|edge| {
            section.clear();
            section.extend_from_slice(&values[edge[0]..edge[1]]);
            median(&mut section)
        })
        .collect()
}

fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    f64::midpoint(lower, upper)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn peaks_are_where_the_sum_of_harmonics_is_greatest(
            power in prop::collection::vec(0_u8..9, 24..80),
            octaves in 0_u32..4,
        ) {
            let power: Vec<f64> = power.iter().map(|&one| one.into()).collect();
            let harmonics = 1 << octaves;
            let range = 4 * harmonics..power.len() - 1;
            let sums: Vec<f64> = range.clone().map(|at| {
                (1..=harmonics).map(|k| power[(k * at + harmonics / 2) / harmonics]).sum()
            }).collect();
            let expected: Vec<Peak> = (1..sums.len().max(1) - 1)
                .filter(|&k| sums[k] >= sums[k - 1] && sums[k] > sums[k + 1])
                .map(|k| Peak { ordinate: range.start + k, height: sums[k] })
                .collect();
            prop_assert_eq!(peaks(&power, range, octaves), expected);
        }

        #[test]
        fn a_median_is_the_middle_of_the_sorted_values(
            values in prop::collection::vec(-1e9..1e9_f64, 1..60),
            cut in 0_usize..60,
        ) {
            let cut = cut.min(values.len());
            let found = medians(&values, &[0, cut, values.len()]);
            for (section, found) in [&values[..cut], &values[cut..]].into_iter().zip(found) {
                let mut sorted = section.to_vec();
                sorted.sort_by(f64::total_cmp);
                let Some(last) = sorted.len().checked_sub(1) else {
                    prop_assert!(found.is_nan());
                    continue;
                };
                prop_assert_eq!(found, (sorted[last / 2] + sorted[sorted.len() / 2]) / 2.0);
            }
        }
    }
}
