//! Sparse equations in fractions, solved by elimination.
//!
//! Binding rows have few variables each, and most equations are triangular: an unknown in only one equation, or an
//! equation with only one unknown, costs no work in the others. The rest is eliminated shortest equation first.

use std::collections::{BTreeMap, BTreeSet};

use crate::rational::Rational;

/// Terms by unknown, and their sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Equation {
    pub(crate) terms: BTreeMap<usize, Rational>,
    pub(crate) value: Rational,
}

/// A system of equations.
pub(crate) struct System {
    /// Open equations; `None`: taken out.
    open: Vec<Option<Equation>>,
    /// Open equations by their number of terms.
    shortest: BTreeSet<(usize, usize)>,
    /// Open equations of each unknown.
    uses: Vec<BTreeSet<usize>>,
    /// Unknowns that were in one equation only when they were added here.
    alone: Vec<usize>,
    /// Each unknown as a function of those solved after it.
    solved: Vec<(usize, Equation)>,
}

impl System {
    pub(crate) fn of(unknowns: usize, equations: Vec<Equation>) -> Self {
        let mut uses = vec![BTreeSet::new(); unknowns];
        for (index, equation) in equations.iter().enumerate() {
            for unknown in equation.terms.keys() {
                uses[*unknown].insert(index);
            }
        }
        Self {
            shortest: equations.iter().enumerate().map(|(index, one)| (one.terms.len(), index)).collect(),
            alone: (0..unknowns).filter(|unknown| uses[*unknown].len() == 1).collect(),
            open: equations.into_iter().map(Some).collect(),
            uses,
            solved: Vec::new(),
        }
    }

    /// The solution; undetermined unknowns are zero. `None`: the equations contradict one another.
    pub(crate) fn solved(mut self) -> Option<BTreeMap<usize, Rational>> {
        while let Some((index, pivot)) = self.next()? {
            self.eliminate(index, pivot)?;
        }
        let mut found: BTreeMap<usize, Rational> = BTreeMap::new();
        for (pivot, Equation { terms, value }) in self.solved.into_iter().rev() {
            let known = terms.iter().filter_map(|(unknown, term)| Some(term * found.get(unknown)?));
            let value = known.fold(value, |value, known| &value - &known);
            found.insert(pivot, value);
        }
        Some(found)
    }

    /// The next equation and the unknown for which it is solved; inner `None` when all are done.
    #[expect(clippy::option_option, reason = "the outer says whether the equations go together")]
    fn next(&mut self) -> Option<Option<(usize, usize)>> {
        while let Some(unknown) = self.alone.pop() {
            let mut only = self.uses[unknown].iter();
            if let (Some(index), None) = (only.next(), only.next()) {
                return Some(Some((*index, unknown)));
            }
        }
        while let Some((length, index)) = self.shortest.first().copied() {
            let equation = self.open[index].as_ref()?;
            if length > 0 {
                let pivot = equation.terms.keys().min_by_key(|unknown| self.uses[**unknown].len())?;
                return Some(Some((index, *pivot)));
            }
            if !equation.value.is_zero() {
                return None;
            }
            self.shortest.remove(&(0, index));
            self.open[index] = None;
        }
        Some(None)
    }

    fn eliminate(&mut self, index: usize, pivot: usize) -> Option<()> {
        let mut equation = self.open[index].take()?;
        self.shortest.remove(&(equation.terms.len(), index));
        for unknown in equation.terms.keys() {
            self.forget(*unknown, index);
        }
        let inverse = &Rational::ONE / &equation.terms.remove(&pivot)?;
        for term in equation.terms.values_mut() {
            *term = &*term * &inverse;
        }
        equation.value = &equation.value * &inverse;
        for other in core::mem::take(&mut self.uses[pivot]) {
            let mut changed = self.open[other].take()?;
            self.shortest.remove(&(changed.terms.len(), other));
            let factor = changed.terms.remove(&pivot)?;
            for (unknown, term) in &equation.terms {
                let entry = changed.terms.entry(*unknown).or_default();
                *entry = &*entry - &(&factor * term);
                if entry.is_zero() {
                    changed.terms.remove(unknown);
                    self.forget(*unknown, other);
                } else {
                    self.uses[*unknown].insert(other);
                }
            }
            changed.value = &changed.value - &(&factor * &equation.value);
            self.shortest.insert((changed.terms.len(), other));
            self.open[other] = Some(changed);
        }
        self.solved.push((pivot, equation));
        Some(())
    }

    fn forget(&mut self, unknown: usize, index: usize) {
        self.uses[unknown].remove(&index);
        if self.uses[unknown].len() == 1 {
            self.alone.push(unknown);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn equation(terms: &[(usize, i128)], value: i128) -> Equation {
        let terms = terms.iter().map(|(unknown, term)| (*unknown, Rational::integer(*term))).collect();
        Equation { terms, value: Rational::integer(value) }
    }

    #[test]
    fn contradictions_have_no_solution() {
        assert!(System::of(1, vec![equation(&[(0, 1)], 1), equation(&[(0, 1)], 2)]).solved().is_none());
        assert!(System::of(0, vec![equation(&[], 1)]).solved().is_none());
        assert!(System::of(1, vec![equation(&[], 0)]).solved().is_some_and(|found| found.is_empty()));
    }

    proptest! {
        #[test]
        fn what_is_found_solves_every_equation(
            cells in proptest::collection::vec((0_usize..7, 0_usize..6, -4_i128..5), 1..24),
            truth in proptest::collection::vec(-9_i128..10, 6),
        ) {
            let mut equations = vec![Equation::default(); 7];
            for (row, unknown, term) in cells.into_iter().filter(|(_, _, term)| *term != 0) {
                equations[row].terms.insert(unknown, Rational::integer(term));
            }
            let sum = |equation: &Equation, of: &dyn Fn(usize) -> Rational| {
                equation.terms.iter().fold(Rational::ZERO, |sum, (unknown, term)| &sum + &(term * &of(*unknown)))
            };
            for equation in &mut equations {
                equation.value = sum(equation, &|unknown| Rational::integer(truth[unknown]));
            }
            let found = System::of(6, equations.clone()).solved().expect("they go together");
            for equation in &equations {
                let value = sum(equation, &|unknown| found.get(&unknown).cloned().unwrap_or_default());
                prop_assert_eq!(&value, &equation.value);
            }
        }
    }
}
