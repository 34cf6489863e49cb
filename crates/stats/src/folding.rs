//! Folding of a series at a period.

/// The sums of the weights of a series of bins in rows of cells: `rows` equal parts of the series, each folded into
/// `phases`; row by row.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of bins are far below 2^52, phases not negative"
)]
pub fn folded(weights: &[f64], width: f64, frequency: f64, rows: usize, phases: usize) -> Vec<f64> {
    let mut cells = vec![0.0; rows * phases];
    for (bin, &weight) in weights.iter().enumerate() {
        if weight != 0.0 {
            let phase = ((bin as f64 + 0.5) * width * frequency) % 1.0;
            let row = bin * rows / weights.len();
            cells[row * phases + ((phase * phases as f64) as usize).min(phases - 1)] += weight;
        }
    }
    cells
}

/// For each row of `shifts` the sum of all rows of `cells`, each moved right by its own number of phases, round the ring.
///
/// Both are row by row; a row of `shifts` has a number for each row of `cells`. `phases` must not be 0.
pub fn superposed(cells: &[f64], phases: usize, shifts: &[i64]) -> Vec<f64> {
    let rows = (cells.len() / phases).max(1);
    let mut sums = vec![0.0; shifts.len() / rows * phases];
    for (profile, shift) in sums.chunks_exact_mut(phases).zip(shifts.chunks_exact(rows)) {
        for (row, &by) in cells.chunks_exact(phases).zip(shift) {
            let by = round_the_ring(by, phases);
            let (wrapped, rest) = profile.split_at_mut(by);
            for (sum, cell) in rest.iter_mut().zip(row) {
                *sum += cell;
            }
            for (sum, cell) in wrapped.iter_mut().zip(&row[phases - by..]) {
                *sum += cell;
            }
        }
    }
    sums
}

#[expect(
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "phases are few, and the remainder is below them"
)]
fn round_the_ring(by: i64, phases: usize) -> usize {
    by.rem_euclid(phases as i64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_series_of_one_period_a_row_fills_every_cell_alike() {
        let weights = vec![1.0; 32];
        assert_eq!(folded(&weights, 1.0, 0.125, 4, 8), vec![1.0; 32]);
        assert_eq!(folded(&weights, 1.0, 0.25, 2, 4), vec![4.0; 8]);
    }

    proptest! {
        #[test]
        fn every_profile_is_the_sum_of_the_moved_rows(
            phases in 1_usize..9,
            rows in 1_usize..4,
            shifts in prop::collection::vec(-40_i64..40, 0..12),
            cells in prop::collection::vec(-9_i8..9, 36),
        ) {
            let cells: Vec<f64> = cells[..rows * phases].iter().map(|&one| one.into()).collect();
            let shifts = &shifts[..shifts.len() / rows * rows];
            let found = superposed(&cells, phases, shifts);
            prop_assert_eq!(found.len(), shifts.len() / rows * phases);
            for (place, &sum) in found.iter().enumerate() {
                let (profile, phase) = (place / phases, place % phases);
                let expected: f64 = (0..rows)
                    .map(|row| {
                        let from = phase as i64 - shifts[profile * rows + row];
                        cells[row * phases + from.rem_euclid(phases as i64) as usize]
                    })
                    .sum();
                prop_assert_eq!(sum, expected);
            }
        }
    }
}
