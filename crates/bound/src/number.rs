//! Number types of an analysis: exact fractions, or doubles rounded outward.
//!
//! Every formula is written once, for [`Number`]. With [`Rational`] it is exact. With [`Enclosure`] each result is a
//! pair of doubles that encloses the exact result, and the reported bound is the upper one: never optimistic. Where a
//! formula compares, either outcome must lead to a valid bound; the exact outcome leads to the least.

use core::cmp::Ordering;
use core::fmt;

use crate::rational::Rational;

/// A number type of an analysis.
pub trait Number: Clone + fmt::Debug + Send + Sync {
    /// The number nearest to an exact value, or an enclosure of it.
    fn of(exact: &Rational) -> Self;
    /// Zero.
    fn zero() -> Self;
    /// The sum.
    fn plus(&self, other: &Self) -> Self;
    /// The difference.
    fn minus(&self, other: &Self) -> Self;
    /// The product.
    fn times(&self, other: &Self) -> Self;
    /// The quotient; `other` must not be zero.
    fn over(&self, other: &Self) -> Self;
    /// The order, or a guess, on which no bound may depend.
    fn compare(&self, other: &Self) -> Ordering;
    /// The maximum.
    fn greater(&self, other: &Self) -> Self;
    /// The minimum.
    fn lesser(&self, other: &Self) -> Self;
    /// Whether it is certainly above zero.
    fn is_positive(&self) -> bool;
    /// Whether it is certainly not above zero.
    fn is_not_positive(&self) -> bool;
    /// A double that is certainly not below it.
    fn upper(&self) -> f64;
    /// The value, where it is known exactly.
    fn exact(&self) -> Option<Rational>;
}

impl Number for Rational {
    fn of(exact: &Rational) -> Self {
        exact.clone()
    }
    fn zero() -> Self {
        Self::ZERO
    }
    fn plus(&self, other: &Self) -> Self {
        self + other
    }
    fn minus(&self, other: &Self) -> Self {
        self - other
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
    fn over(&self, other: &Self) -> Self {
        self / other
    }
    fn compare(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
    fn greater(&self, other: &Self) -> Self {
        self.max(other).clone()
    }
    fn lesser(&self, other: &Self) -> Self {
        self.min(other).clone()
    }
    fn is_positive(&self) -> bool {
        self.signum() > 0
    }
    fn is_not_positive(&self) -> bool {
        self.signum() <= 0
    }
    fn upper(&self) -> f64 {
        self.to_f64_up()
    }
    fn exact(&self) -> Option<Rational> {
        Some(self.clone())
    }
}

/// An enclosure of a value by two doubles.
#[derive(Clone, Copy, PartialEq)]
pub struct Enclosure {
    low: f64,
    high: f64,
}

impl Enclosure {
    fn point(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    fn middle(&self) -> f64 {
        if self.low == self.high { self.low } else { self.low + (self.high - self.low) / 2.0 }
    }
}

impl fmt::Debug for Enclosure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:e}, {:e}]", self.low, self.high)
    }
}

/// A sum and its rounding error, exactly (Knuth's TwoSum); a sum without error is not widened.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

fn sum_down(a: f64, b: f64) -> f64 {
    let (sum, error) = sum(a, b);
    if error < 0.0 || error.is_nan() { sum.next_down() } else { sum }
}

fn sum_up(a: f64, b: f64) -> f64 {
    let (sum, error) = sum(a, b);
    if error > 0.0 || error.is_nan() { sum.next_up() } else { sum }
}

impl Number for Enclosure {
    fn of(exact: &Rational) -> Self {
        Self { low: exact.to_f64_down(), high: exact.to_f64_up() }
    }
    fn zero() -> Self {
        Self { low: 0.0, high: 0.0 }
    }
    fn plus(&self, other: &Self) -> Self {
        Self { low: sum_down(self.low, other.low), high: sum_up(self.high, other.high) }
    }
    fn minus(&self, other: &Self) -> Self {
        Self { low: sum_down(self.low, -other.high), high: sum_up(self.high, -other.low) }
    }
    fn times(&self, other: &Self) -> Self {
        for (one, another) in [(self, other), (other, self)] {
            match one.point() {
                Some(0.0) => return Self::zero(),
                Some(1.0) => return *another,
                _ => {}
            }
        }
        let all =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        hull(all)
    }
    fn over(&self, other: &Self) -> Self {
        if self.point() == Some(0.0) {
            return Self::zero();
        }
        if other.point() == Some(1.0) {
            return *self;
        }
        if other.low <= 0.0 && other.high >= 0.0 {
            return Self { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let all =
            [self.low / other.low, self.low / other.high, self.high / other.low, self.high / other.high];
        hull(all)
    }
    fn compare(&self, other: &Self) -> Ordering {
        self.middle().total_cmp(&other.middle())
    }
    fn greater(&self, other: &Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.max(other.high) }
    }
    fn lesser(&self, other: &Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.min(other.high) }
    }
    fn is_positive(&self) -> bool {
        self.low > 0.0
    }
    fn is_not_positive(&self) -> bool {
        self.high <= 0.0
    }
    fn upper(&self) -> f64 {
        self.high
    }
    fn exact(&self) -> Option<Rational> {
        None
    }
}

fn hull(all: [f64; 4]) -> Enclosure {
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if all.iter().any(|value| value.is_nan()) {
        return Enclosure { low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    Enclosure { low: low.next_down(), high: high.next_up() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_enclosure_holds_the_exact_result(
            n in proptest::collection::vec(-1_000_000_i128..1_000_000, 4),
            d in proptest::collection::vec(1_i128..1_000_000, 4),
            operations in proptest::collection::vec(0..4_u8, 3),
        ) {
            let exact: Vec<Rational> = n.iter().zip(&d).map(|(n, d)| Rational::new(*n, *d)).collect();
            let mut value = exact[0].clone();
            let mut enclosed = Enclosure::of(&value);
            for (operand, operation) in exact[1..].iter().zip(operations) {
                let other = Enclosure::of(operand);
                (value, enclosed) = match operation {
                    0 => (value.plus(operand), enclosed.plus(&other)),
                    1 => (value.minus(operand), enclosed.minus(&other)),
                    2 => (value.times(operand), enclosed.times(&other)),
                    _ if operand.is_zero() => continue,
                    _ => (value.over(operand), enclosed.over(&other)),
                };
                let [low, high] = [enclosed.low, enclosed.high].map(|double| Rational::from_f64(double).unwrap());
                prop_assert!(low <= value && value <= high, "{value} outside {enclosed:?}");
            }
        }
    }
}
