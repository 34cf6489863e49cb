//! Nodes that depend on one another: the delays are a fixed point, found in doubles and proved in fractions.
//!
//! The delays `d` of the nodes of a cycle satisfy `d ≤ h(d)`, where `h` is a minimum of affine functions with
//! non-negative coefficients. At a candidate the active affine piece `h(x) = A·x + c` follows from computing with
//! gradients. If `(I − A)·v = 1` has a positive solution, `(I − A)` has a non-negative inverse, `x = A·x + c` has one
//! solution, and no delay that satisfies the inequality exceeds it: with `h(x) = x` it is the bound (Thomas, Le Boudec,
//! Mifdaoui, RTSS 2019, whose condition this is). Without such a proof there is no answer.

use std::collections::BTreeMap;

use core::cmp::Ordering;

use crate::model::Model;
use crate::nodes::Layout;
use crate::number::{Enclosure, Number};
use crate::rational::Rational;
use crate::values::{Settings, Shift, Values};

/// Greatest number of rounds in doubles until the iteration counts as divergent.
const MOST_ROUNDS: usize = 20_000;
/// Greatest number of rounds in fractions: each takes the active piece at the last solution.
const MOST_PIECES: usize = 50;

/// A value and its derivatives with respect to the unknowns.
#[derive(Clone, Debug)]
struct Tangent {
    value: Rational,
    gradient: BTreeMap<usize, Rational>,
}

impl Tangent {
    fn unknown(value: Rational, index: usize) -> Self {
        Self { value, gradient: BTreeMap::from([(index, Rational::ONE)]) }
    }

    /// `self · a + other · b` of the gradients.
    fn mixed(&self, a: &Rational, other: &Self, b: &Rational) -> BTreeMap<usize, Rational> {
        let mut gradient = BTreeMap::new();
        for (of, factor) in [(self, a), (other, b)] {
            if factor.is_zero() {
                continue;
            }
            for (index, slope) in &of.gradient {
                let entry = gradient.entry(*index).or_insert(Rational::ZERO);
                *entry = &*entry + &(slope * factor);
            }
        }
        gradient
    }
}

impl Number for Tangent {
    fn of(exact: &Rational) -> Self {
        Self { value: exact.clone(), gradient: BTreeMap::new() }
    }
    fn zero() -> Self {
        Self::of(&Rational::ZERO)
    }
    fn plus(&self, other: &Self) -> Self {
        let gradient = self.mixed(&Rational::ONE, other, &Rational::ONE);
        Self { value: &self.value + &other.value, gradient }
    }
    fn minus(&self, other: &Self) -> Self {
        let gradient = self.mixed(&Rational::ONE, other, &Rational::integer(-1));
        Self { value: &self.value - &other.value, gradient }
    }
    fn times(&self, other: &Self) -> Self {
        let gradient = self.mixed(&other.value, other, &self.value);
        Self { value: &self.value * &other.value, gradient }
    }
    fn over(&self, other: &Self) -> Self {
        let inverse = &Rational::ONE / &other.value;
        let value = &self.value * &inverse;
        let gradient = self.mixed(&inverse, other, &(&Rational::ZERO - &(&value * &inverse)));
        Self { value, gradient }
    }
    fn compare(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
    fn greater(&self, other: &Self) -> Self {
        if self.value < other.value { other.clone() } else { self.clone() }
    }
    fn lesser(&self, other: &Self) -> Self {
        if other.value < self.value { other.clone() } else { self.clone() }
    }
    fn is_positive(&self) -> bool {
        self.value.signum() > 0
    }
    fn is_not_positive(&self) -> bool {
        self.value.signum() <= 0
    }
    fn upper(&self) -> f64 {
        self.value.to_f64_up()
    }
    fn exact(&self) -> Option<Rational> {
        Some(self.value.clone())
    }
}

/// The unknowns: the shift of flows by each node, or by each hop where nodes serve in arbitrary order.
struct System<'a> {
    model: &'a Model,
    layout: &'a Layout,
    settings: Settings,
    nodes: &'a [usize],
    known: &'a [Option<Rational>],
    /// Hops between these nodes: beginning, end and the unknown that shifts them.
    links: Vec<Link>,
    unknowns: usize,
}

struct Link {
    from: usize,
    to: usize,
    unknown: usize,
}

impl System<'_> {
    /// Shifts of all hops as functions of the unknowns.
    fn shifts<N: Number>(&self, values: &Values<N>, unknowns: &[N]) -> Vec<Option<N>> {
        let mut shifts: Vec<Option<N>> = self.known.iter().map(|shift| shift.as_ref().map(N::of)).collect();
        for Link { from, to, unknown } in &self.links {
            shifts[*to] = values.carried(*to, shifts[*from].as_ref(), Some(&unknowns[*unknown]));
        }
        shifts
    }

    /// One iteration: the new values of the unknowns.
    fn step<N: Number>(&self, values: &Values<N>, unknowns: &[N]) -> Option<Vec<N>> {
        let shifts = self.shifts(values, unknowns);
        let mut here: BTreeMap<usize, Option<N>> = BTreeMap::new();
        for node in self.nodes {
            let (bound, service) = values.bound(self.layout, *node, &shifts);
            here.extend(values.shift(self.layout, *node, &shifts, (&bound, service.as_ref())));
        }
        let mut next = vec![None; self.unknowns];
        for Link { from, unknown, .. } in &self.links {
            next[*unknown].clone_from(here.get(from)?);
        }
        next.into_iter().collect()
    }

    fn values<N: Number>(&self) -> Values<N> {
        Values::of(self.model, self.layout, self.settings)
    }

    /// A point near the fixed point, by iteration.
    fn guess(&self) -> Option<Vec<Rational>> {
        let values = self.values::<Enclosure>();
        let mut at: Vec<Enclosure> = vec![Enclosure::zero(); self.unknowns];
        for _ in 0..MOST_ROUNDS {
            let next = self.step(&values, &at)?;
            let upper: Vec<f64> = next.iter().map(Number::upper).collect();
            if upper.iter().any(|value| !value.is_finite() || *value > 1e30) {
                return None;
            }
            let still =
                at.iter().zip(&upper).all(|(old, new)| (new - old.upper()).abs() <= 1e-13 * new.abs());
            // Each round starts from points: enclosures of enclosures would only widen.
            at = upper.iter().filter_map(|value| Some(Enclosure::of(&Rational::from_f64(*value)?))).collect();
            if still {
                break;
            }
        }
        at.iter().map(|value| Rational::from_f64(value.upper())).collect()
    }

    /// The fixed point, if it is proved.
    fn solve(&self) -> Option<Vec<Rational>> {
        let mut at = self.guess()?;
        let values = self.values::<Tangent>();
        for _ in 0..MOST_PIECES {
            let here: Vec<Tangent> =
                at.iter().enumerate().map(|(index, value)| Tangent::unknown(value.clone(), index)).collect();
            let there = self.step(&values, &here)?;
            let n = at.len();
            // Rows of (I − A | c | 1): the active piece is value + A·(x − at).
            let mut rows: Vec<Vec<Rational>> = Vec::with_capacity(n);
            for (index, piece) in there.iter().enumerate() {
                let mut row = vec![Rational::ZERO; n + 2];
                row[index] = Rational::ONE;
                let mut constant = piece.value.clone();
                for (unknown, slope) in &piece.gradient {
                    if slope.signum() < 0 {
                        return None;
                    }
                    row[*unknown] = &row[*unknown] - slope;
                    constant = &constant - &(slope * &at[*unknown]);
                }
                row[n] = constant;
                row[n + 1] = Rational::ONE;
                rows.push(row);
            }
            let solved = eliminate(rows)?;
            if solved.iter().any(|(_, proof)| proof.signum() <= 0) {
                return None;
            }
            let next: Vec<Rational> = solved.into_iter().map(|(value, _)| value).collect();
            if next.iter().any(|value| value.signum() < 0) {
                return None;
            }
            if next == at {
                return Some(at);
            }
            at = next;
        }
        None
    }
}

/// Solves a square system with two right-hand sides. `None`: singular.
fn eliminate(mut rows: Vec<Vec<Rational>>) -> Option<Vec<(Rational, Rational)>> {
    let n = rows.len();
    for column in 0..n {
        let pivot = (column..n).find(|row| !rows[*row][column].is_zero())?;
        rows.swap(column, pivot);
        let inverse = &Rational::ONE / &rows[column][column];
        for entry in &mut rows[column][column..] {
            *entry = &*entry * &inverse;
        }
        let pivot = rows[column].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if index == column || row[column].is_zero() {
                continue;
            }
            let factor = row[column].clone();
            for (entry, above) in row.iter_mut().zip(&pivot).skip(column) {
                if !above.is_zero() {
                    *entry = &*entry - &(&factor * above);
                }
            }
        }
    }
    Some(rows.into_iter().map(|row| (row[n].clone(), row[n + 1].clone())).collect())
}

/// The shifts of the hops between `nodes`, by hop. `None`: no fixed point is proved.
pub(crate) fn solve(
    model: &Model,
    layout: &Layout,
    settings: Settings,
    nodes: &[usize],
    known: &[Option<Rational>],
) -> Option<Vec<(usize, Rational)>> {
    let within = |hop: usize| nodes.binary_search(&layout.hops[hop].node).is_ok();
    let mut unknowns: BTreeMap<usize, usize> = BTreeMap::new();
    let mut links = Vec::new();
    for (to, hop) in layout.hops.iter().enumerate() {
        let Some(from) = hop.before.filter(|before| within(*before) && within(to)) else { continue };
        let key = if settings.shift == Shift::Delay { layout.hops[from].node } else { from };
        let next = unknowns.len();
        links.push(Link { from, to, unknown: *unknowns.entry(key).or_insert(next) });
    }
    let system = System { model, layout, settings, nodes, known, links, unknowns: unknowns.len() };
    let solved = system.solve()?;
    let shifts = system.shifts(&system.values::<Rational>(), &solved);
    let found = system.links.iter().filter_map(|link| Some((link.to, shifts[link.to].clone()?)));
    Some(found.collect())
}
