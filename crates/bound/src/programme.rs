//! Linear programmes, with an exact proof of a solver's result in doubles.
//!
//! A solver's answer is a guess at which rows bind. The multipliers of these rows are computed again in fractions; if
//! none is negative and they add up to the objective exactly, weak duality makes `b · y` an upper bound of the
//! programme, whatever the solver did. That value is reported. Without such a proof there is none.

use std::collections::BTreeMap;

use crate::rational::Rational;
use crate::sparse::{Equation, System};

/// Maximise `objective · x` with `rows · x ≤ limits`, all `x` free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programme {
    /// Coefficients of each row by variable.
    pub(crate) rows: Vec<Vec<(usize, Rational)>>,
    /// Right-hand sides.
    pub(crate) limits: Vec<Rational>,
    /// Objective, to be maximised.
    pub(crate) objective: Vec<(usize, Rational)>,
    /// Size of each variable, for scaling the solver's copy.
    pub(crate) scales: Vec<f64>,
}

/// Several programmes side by side, in doubles, as input of a solver. Rows are in compressed form.
#[derive(Clone, Debug, Default)]
pub struct Scaled {
    /// Index of each row in `columns` and `values`, and the end.
    pub starts: Vec<usize>,
    /// Variable of each coefficient.
    pub columns: Vec<usize>,
    /// Coefficients.
    pub values: Vec<f64>,
    /// Right-hand sides.
    pub limits: Vec<f64>,
    /// Objective, to be maximised, by variable.
    pub objective: Vec<f64>,
}

impl Programme {
    /// Adds the row `row · x ≤ limit`; terms of one variable are added up.
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

    /// Appends this programme to others.
    pub(crate) fn append_to(&self, scaled: &mut Scaled) {
        if scaled.starts.is_empty() {
            scaled.starts.push(0);
        }
        let offset = scaled.objective.len();
        for (row, limit) in self.rows.iter().zip(&self.limits) {
            let begun = scaled.values.len();
            for (variable, coefficient) in row {
                scaled.columns.push(offset + variable);
                scaled.values.push(coefficient.to_f64_down() * self.scales[*variable]);
            }
            let values = &mut scaled.values[begun..];
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            let size = if largest > 0.0 { largest } else { 1.0 };
            for value in values {
                *value /= size;
            }
            scaled.limits.push(limit.to_f64_down() / size);
            scaled.starts.push(scaled.columns.len());
        }
        let mut objective = vec![0.0; self.scales.len()];
        for (variable, coefficient) in &self.objective {
            objective[*variable] = coefficient.to_f64_down() * self.scales[*variable];
        }
        // Programmes side by side have equal weights.
        let largest = objective.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        scaled
            .objective
            .extend(objective.iter().map(|value| value / if largest > 0.0 { largest } else { 1.0 }));
    }

    /// An upper bound from multipliers that a solver in doubles found. `None`: they prove nothing.
    pub(crate) fn proved(&self, multipliers: &[f64]) -> Option<Rational> {
        let largest = multipliers.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        if !largest.is_finite() || multipliers.len() != self.rows.len() {
            return None;
        }
        // Rows with small multipliers may be noise, or not: the strictest choice with a proof is taken.
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

    /// Whether the rows, with these multipliers, add up to the objective exactly.
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

    /// Solves for the multipliers of some rows: one equation for each variable.
    fn multipliers(&self, binding: &[usize]) -> Option<Vec<(usize, Rational)>> {
        let mut equations: BTreeMap<usize, Equation> = BTreeMap::new();
        for (unknown, row) in binding.iter().enumerate() {
            for (variable, coefficient) in &self.rows[*row] {
                equations.entry(*variable).or_default().terms.insert(unknown, coefficient.clone());
            }
        }
        for (variable, coefficient) in &self.objective {
            equations.entry(*variable).or_default().value = coefficient.clone();
        }
        let solved = System::of(binding.len(), equations.into_values().collect()).solved()?;
        let found = solved.into_iter().filter(|(_, multiplier)| !multiplier.is_zero());
        Some(found.map(|(unknown, multiplier)| (binding[unknown], multiplier)).collect())
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
