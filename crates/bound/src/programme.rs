//! Linear programmes, and the exact value of what a solver in doubles says of one.
//!
//! A solver's answer is a guess at which rows bind. The multipliers of these rows are solved for again in fractions; if
//! none is negative and they add up to the objective exactly, weak duality makes `b · y` an upper bound of the programme,
//! whatever the solver did. That value is reported. Without such a proof there is none.

use std::collections::BTreeMap;

use crate::rational::Rational;

/// Maximise `objective · x` with `rows · x ≤ limits`, all `x` free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programme {
    /// Coefficients of each row by variable.
    pub(crate) rows: Vec<Vec<(usize, Rational)>>,
    /// The right-hand sides.
    pub(crate) limits: Vec<Rational>,
    /// What is maximised.
    pub(crate) objective: Vec<(usize, Rational)>,
    /// The size of each variable, by which a solver's copy is scaled.
    pub(crate) scales: Vec<f64>,
}

/// Several programmes side by side, in doubles: what a solver is given. Rows are in compressed form.
#[derive(Clone, Debug, Default)]
pub struct Scaled {
    /// Where each row begins in `columns` and `values`; one more than there are rows.
    pub starts: Vec<usize>,
    /// Variables.
    pub columns: Vec<usize>,
    /// Coefficients.
    pub values: Vec<f64>,
    /// Right-hand sides.
    pub limits: Vec<f64>,
    /// What is maximised, by variable.
    pub objective: Vec<f64>,
}

impl Programme {
    /// Adds `row · x ≤ limit`; terms of one variable are added up.
    pub(crate) fn at_most(
        &mut self,
        row: impl IntoIterator<Item = (Option<usize>, Rational)>,
        limit: Rational,
    ) {
        let mut terms: BTreeMap<usize, Rational> = BTreeMap::new();
        for (variable, coefficient) in row {
            if let Some(variable) = variable {
                let entry = terms.entry(variable).or_default();
                *entry = &*entry + &coefficient;
            }
        }
        self.rows.push(terms.into_iter().filter(|(_, coefficient)| !coefficient.is_zero()).collect());
        self.limits.push(limit);
    }

    /// Adds a variable of about this size.
    pub(crate) fn variable(&mut self, scale: f64) -> usize {
        self.scales.push(scale);
        self.scales.len() - 1
    }

    /// Puts this programme behind others.
    pub(crate) fn append_to(&self, scaled: &mut Scaled) {
        if scaled.starts.is_empty() {
            scaled.starts.push(0);
        }
        let offset = scaled.objective.len();
        for (row, limit) in self.rows.iter().zip(&self.limits) {
            let value = |(variable, coefficient): &(usize, Rational)| {
                coefficient.to_f64_down() * self.scales[*variable]
            };
            let largest = row.iter().map(|term| value(term).abs()).fold(0.0, f64::max);
            let size = if largest > 0.0 { largest } else { 1.0 };
            for term in row {
                scaled.columns.push(offset + term.0);
                scaled.values.push(value(term) / size);
            }
            scaled.limits.push(limit.to_f64_down() / size);
            scaled.starts.push(scaled.columns.len());
        }
        let mut objective = vec![0.0; self.scales.len()];
        for (variable, coefficient) in &self.objective {
            objective[*variable] = coefficient.to_f64_down() * self.scales[*variable];
        }
        // Programmes side by side weigh alike.
        let largest = objective.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        scaled
            .objective
            .extend(objective.iter().map(|value| value / if largest > 0.0 { largest } else { 1.0 }));
    }

    /// An upper bound, of multipliers as a solver in doubles found them. `None`: they prove nothing.
    pub(crate) fn proved(&self, multipliers: &[f64]) -> Option<Rational> {
        let largest = multipliers.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        if !largest.is_finite() || multipliers.len() != self.rows.len() {
            return None;
        }
        // Rows that bind a little may be noise, or not: the strictest choice that proves something is taken.
        [1e-9, 0.0, 1e-6].iter().find_map(|share| {
            let binding: Vec<usize> =
                (0..self.rows.len()).filter(|row| multipliers[*row].abs() > share * largest).collect();
            let solved = self.multipliers(&binding)?;
            let positive = solved.iter().all(|(_, multiplier)| multiplier.signum() >= 0);
            (positive && self.adds_up(&solved)).then(|| {
                solved
                    .iter()
                    .fold(Rational::ZERO, |sum, (row, multiplier)| &sum + &(&self.limits[*row] * multiplier))
            })
        })
    }

    /// Whether the rows, so often each, are the objective exactly.
    fn adds_up(&self, multipliers: &[(usize, Rational)]) -> bool {
        let mut sum: BTreeMap<usize, Rational> = BTreeMap::new();
        for (row, multiplier) in multipliers {
            for (variable, coefficient) in &self.rows[*row] {
                let entry = sum.entry(*variable).or_default();
                *entry = &*entry + &(coefficient * multiplier);
            }
        }
        for (variable, coefficient) in &self.objective {
            let entry = sum.entry(*variable).or_default();
            *entry = &*entry - coefficient;
        }
        sum.values().all(Rational::is_zero)
    }

    /// Solves for the multipliers of some rows: one equation for each variable, sparsest first.
    fn multipliers(&self, binding: &[usize]) -> Option<Vec<(usize, Rational)>> {
        let mut equations: BTreeMap<usize, (BTreeMap<usize, Rational>, Rational)> = BTreeMap::new();
        for row in binding {
            for (variable, coefficient) in &self.rows[*row] {
                equations.entry(*variable).or_default().0.insert(*row, coefficient.clone());
            }
        }
        for (variable, coefficient) in &self.objective {
            equations.entry(*variable).or_default().1 = coefficient.clone();
        }
        let mut open: Vec<(BTreeMap<usize, Rational>, Rational)> = equations.into_values().collect();
        let mut solved: Vec<(usize, BTreeMap<usize, Rational>, Rational)> = Vec::new();
        while let Some(next) = (0..open.len()).min_by_key(|index| open[*index].0.len()) {
            let (mut terms, mut value) = open.swap_remove(next);
            // Of a few rows of a sparse equation the one that fewest others have.
            let uses = |row: &usize| open.iter().filter(|(terms, _)| terms.contains_key(row)).count();
            let Some(pivot) = terms.keys().take(4).min_by_key(|row| uses(row)).copied() else {
                if value.is_zero() {
                    continue;
                }
                return None;
            };
            let inverse = &Rational::ONE / &terms.remove(&pivot)?;
            for term in terms.values_mut() {
                *term = &*term * &inverse;
            }
            value = &value * &inverse;
            for (others, right) in &mut open {
                let Some(factor) = others.remove(&pivot) else { continue };
                for (row, term) in &terms {
                    let entry = others.entry(*row).or_default();
                    *entry = &*entry - &(&factor * term);
                    if entry.is_zero() {
                        others.remove(row);
                    }
                }
                *right = &*right - &(&factor * &value);
            }
            solved.push((pivot, terms, value));
        }
        // Backwards; a row that nothing determines is left out.
        let mut found: BTreeMap<usize, Rational> = BTreeMap::new();
        for (pivot, terms, value) in solved.into_iter().rev() {
            let known = terms.iter().filter_map(|(row, term)| Some(term * found.get(row)?));
            let value = known.fold(value, |value, known| &value - &known);
            found.insert(pivot, value);
        }
        Some(found.into_iter().filter(|(_, multiplier)| !multiplier.is_zero()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(n: i128, d: i128) -> Rational {
        Rational::new(n, d)
    }

    /// Maximise x + y with 3x + y ≤ 4, x + 2y ≤ 3: at x = 1, y = 1, by 1/5 and 2/5 of the rows.
    fn small() -> Programme {
        let mut programme = Programme::default();
        let (x, y) = (programme.variable(1.0), programme.variable(1.0));
        programme.at_most([(Some(x), q(3, 1)), (Some(y), q(1, 1))], q(4, 1));
        programme.at_most([(Some(x), q(1, 1)), (Some(y), q(2, 1))], q(3, 1));
        programme.at_most([(Some(x), q(1, 1))], q(9, 1));
        programme.objective = vec![(x, q(1, 1)), (y, q(1, 1))];
        programme
    }

    #[test]
    fn a_guess_becomes_an_exact_proof() {
        assert_eq!(small().proved(&[0.200_000_01, 0.4, 1e-12]), Some(q(2, 1)));
    }

    #[test]
    fn a_wrong_guess_proves_nothing() {
        let programme = small();
        // Only one row cannot make the objective; nor can rows of which one would have to be negative.
        assert_eq!(programme.proved(&[0.2, 0.0, 0.0]), None);
        assert_eq!(programme.proved(&[0.5, 0.0, 0.5]), None);
        assert_eq!(programme.proved(&[f64::NAN, 0.0, 0.0]), None);
        assert_eq!(programme.proved(&[0.2]), None);
    }
}
