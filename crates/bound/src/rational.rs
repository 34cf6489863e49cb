//! Exact fractions: two machine words where they fit, integers of any length where they do not.
//!
//! Nearly all of an analysis fits 128 bits, where an addition costs about as much as a few divisions. Nothing wraps and
//! nothing is rounded: larger values continue in [`BigInt`], and return when they fit again, so that equal values have
//! equal forms.

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, Div, Mul, Neg, Sub};
use core::str::FromStr;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// An exact fraction, in lowest terms, with a denominator above zero.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Rational(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Small(i128, i128),
    Big(Box<(BigInt, BigInt)>),
}

use Form::{Big, Small};

impl Rational {
    /// Zero.
    pub const ZERO: Self = Self(Small(0, 1));
    /// One.
    pub const ONE: Self = Self(Small(1, 1));

    /// A whole number.
    pub const fn integer(value: i128) -> Self {
        Self(Small(value, 1))
    }

    /// The fraction `numerator / denominator`.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn new(numerator: i128, denominator: i128) -> Self {
        assert!(denominator != 0, "bug: a fraction over zero");
        if numerator == i128::MIN || denominator == i128::MIN {
            return Self::big(numerator.into(), denominator.into());
        }
        let divisor = gcd(numerator, denominator) * denominator.signum();
        Self(Small(numerator / divisor, denominator / divisor))
    }

    fn big(numerator: BigInt, denominator: BigInt) -> Self {
        let mut divisor = numerator.gcd(&denominator);
        if denominator.is_negative() {
            divisor = -divisor;
        }
        let (numerator, denominator) = (numerator / &divisor, denominator / divisor);
        match (numerator.to_i128(), denominator.to_i128()) {
            (Some(n), Some(d)) if n != i128::MIN => Self(Small(n, d)),
            _ => Self(Big(Box::new((numerator, denominator)))),
        }
    }

    fn parts(&self) -> (BigInt, BigInt) {
        match &self.0 {
            Small(n, d) => ((*n).into(), (*d).into()),
            Big(both) => (both.0.clone(), both.1.clone()),
        }
    }

    /// Whether it is zero.
    pub const fn is_zero(&self) -> bool {
        matches!(self.0, Small(0, _))
    }

    /// Sign: −1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Small(n, _) => i32::from(n.signum() > 0) - i32::from(n.signum() < 0),
            Big(both) => match both.0.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    /// Whether it is a whole number.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Small(_, d) => *d == 1,
            Big(both) => both.1.is_one(),
        }
    }

    /// The least double that is not below it.
    pub fn to_f64_up(&self) -> f64 {
        // Not −0 for zero.
        0.0 - (-self).to_f64_down()
    }

    /// The greatest double that is not above it.
    pub fn to_f64_down(&self) -> f64 {
        if let Small(n, 1) = self.0 {
            #[expect(clippy::cast_precision_loss, reason = "the range holds what a double holds exactly")]
            if n.unsigned_abs() <= 1 << 53 {
                return n as f64;
            }
        }
        let (n, d) = self.parts();
        let negative = n.is_negative();
        let n = n.abs();
        // A quotient of 54 or 55 bits, then cut to 53: towards zero, or away from it where the value is negative.
        let shift = 54 - (bits(&n) - bits(&d));
        let (n, d) = if shift >= 0 { (n << shift, d) } else { (n, d << -shift) };
        let (quotient, rest) = n.div_rem(&d);
        let extra = bits(&quotient) - 53;
        let mut kept = &quotient >> extra;
        let inexact = !rest.is_zero() || (&kept << extra) != quotient;
        if negative && inexact {
            kept += 1;
        }
        #[expect(clippy::cast_precision_loss, reason = "53 bits, or the power of two above")]
        let kept = kept.to_u64().unwrap_or(u64::MAX) as f64;
        let value = scaled(kept, extra - shift);
        if negative { -value } else { value }
    }

    /// The exact value of a double; `None` for infinities and NaN.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let bits = value.to_bits();
        let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, power) =
            if exponent == 0 { (fraction, -1_074) } else { (fraction | (1 << 52), exponent - 1_075) };
        let mantissa = if value < 0.0 { -BigInt::from(mantissa) } else { BigInt::from(mantissa) };
        Some(if power >= 0 {
            Self::big(mantissa << power, BigInt::one())
        } else {
            Self::big(mantissa, BigInt::one() << -power)
        })
    }

    /// The simplest fraction within `tolerance` of a double, by continued fractions.
    pub fn near(value: f64, tolerance: f64) -> Option<Self> {
        let exact = Self::from_f64(value)?;
        let tolerance = Self::from_f64(tolerance)?;
        let (mut before, mut last) = ((BigInt::zero(), BigInt::one()), (BigInt::one(), BigInt::zero()));
        let (mut n, mut d) = exact.parts();
        while !d.is_zero() {
            let (whole, rest) = n.div_mod_floor(&d);
            let next = (&whole * &last.0 + &before.0, &whole * &last.1 + &before.1);
            (before, last) = (last, next);
            let candidate = Self::big(last.0.clone(), last.1.clone());
            if (&candidate - &exact).abs() <= tolerance {
                return Some(candidate);
            }
            (n, d) = (d, rest);
        }
        Some(exact)
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(&self) -> Self {
        if self.signum() < 0 { -self } else { self.clone() }
    }

    /// A decimal number in the notation of programming languages: `10`, `-2.5`, `1e-3`. `None` for anything else, and
    /// for an exponent beyond ±4000.
    pub fn decimal(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.len() > 4_000 || exponent.abs() > 4_000 {
            return None;
        }
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let value = BigInt::from_str(&digits).ok()?;
        let value = if negative { -value } else { value };
        let power = exponent - i32::try_from(fraction.len()).ok()?;
        let ten = BigInt::from(10).pow(power.unsigned_abs());
        Some(if power >= 0 { Self::big(value * ten, BigInt::one()) } else { Self::big(value, ten) })
    }
}

impl Default for Rational {
    fn default() -> Self {
        Self::ZERO
    }
}

fn bits(value: &BigInt) -> i64 {
    i64::try_from(value.bits()).unwrap_or(i64::MAX)
}

/// `value · 2^power`, by exact steps.
fn scaled(mut value: f64, mut power: i64) -> f64 {
    while power > 0 {
        let step = power.min(1_000);
        value *= f64::from_bits(u64::try_from(1_023 + step).unwrap_or(0) << 52);
        power -= step;
    }
    while power < 0 {
        let step = (-power).min(1_000);
        value *= f64::from_bits(u64::try_from(1_023 - step).unwrap_or(0) << 52);
        power += step;
    }
    value
}

/// Greatest common divisor of magnitudes, by Euclid; on 64 bits as soon as both fit.
fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        if let (Ok(small), Ok(other)) = (u64::try_from(a), u64::try_from(b)) {
            let (mut a, mut b) = (small, other);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            return i128::from(a);
        }
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(i128::MAX)
}

fn add_small(n: i128, d: i128, other: i128, over: i128) -> Option<Rational> {
    if d == over {
        let sum = n.checked_add(other)?;
        return (sum != i128::MIN)
            .then(|| if d == 1 { Rational::integer(sum) } else { Rational::new(sum, d) });
    }
    let divisor = gcd(d, over);
    let (left, right) = (over / divisor, d / divisor);
    let sum = n.checked_mul(left)?.checked_add(other.checked_mul(right)?)?;
    let common = d.checked_mul(left)?;
    (sum != i128::MIN && common != i128::MIN).then(|| Rational::new(sum, common))
}

fn mul_small(n: i128, d: i128, other: i128, over: i128) -> Option<Rational> {
    if d == 1 && over == 1 {
        let product = n.checked_mul(other)?;
        return (product != i128::MIN).then(|| Rational::integer(product));
    }
    let (first, second) = (gcd(n, over).max(1), gcd(other, d).max(1));
    let numerator = (n / first).checked_mul(other / second)?;
    let denominator = (d / second).checked_mul(over / first)?;
    (numerator != i128::MIN).then_some(Rational(Small(numerator, denominator)))
}

impl Add for &Rational {
    type Output = Rational;
    fn add(self, other: Self) -> Rational {
        if let (Small(a, b), Small(c, d)) = (&self.0, &other.0)
            && let Some(sum) = add_small(*a, *b, *c, *d)
        {
            return sum;
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        Rational::big(a * &d + c * &b, b * d)
    }
}

impl Neg for &Rational {
    type Output = Rational;
    fn neg(self) -> Rational {
        match &self.0 {
            Small(n, d) => Rational(Small(-n, *d)),
            Big(both) => Rational::big(-&both.0, both.1.clone()),
        }
    }
}

impl Sub for &Rational {
    type Output = Rational;
    fn sub(self, other: Self) -> Rational {
        self + &-other
    }
}

impl Mul for &Rational {
    type Output = Rational;
    fn mul(self, other: Self) -> Rational {
        if let (Small(a, b), Small(c, d)) = (&self.0, &other.0)
            && let Some(product) = mul_small(*a, *b, *c, *d)
        {
            return product;
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        Rational::big(a * c, b * d)
    }
}

impl Div for &Rational {
    type Output = Rational;
    /// # Panics
    /// If `other` is zero.
    #[expect(clippy::suspicious_arithmetic_impl, reason = "by the inverse")]
    fn div(self, other: Self) -> Rational {
        let inverse = match &other.0 {
            Small(n, d) => Rational::new(*d, *n),
            Big(both) => Rational::big(both.1.clone(), both.0.clone()),
        };
        self * &inverse
    }
}

impl Ord for Rational {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Small(a, b), Small(c, d)) = (&self.0, &other.0) {
            if b == d {
                return a.cmp(c);
            }
            if let (Some(left), Some(right)) = (a.checked_mul(*d), c.checked_mul(*b)) {
                return left.cmp(&right);
            }
        }
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        (a * d).cmp(&(c * b))
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Rational {
    /// `n/d`, or `n` for a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Small(n, 1) => write!(f, "{n}"),
            Small(n, d) => write!(f, "{n}/{d}"),
            Big(both) if both.1.is_one() => write!(f, "{}", both.0),
            Big(both) => write!(f, "{}/{}", both.0, both.1),
        }
    }
}

impl fmt::Debug for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_rational() -> impl Strategy<Value = Rational> {
        let small = (any::<i64>(), 1..i64::MAX).prop_map(|(n, d)| Rational::new(n.into(), d.into()));
        let large = (any::<i128>(), 1..i128::MAX).prop_map(|(n, d)| Rational::new(n, d));
        prop_oneof![(-20_i128..20, 1_i128..20).prop_map(|(n, d)| Rational::new(n, d)), small, large]
    }

    proptest! {
        #[test]
        fn it_is_a_field(a in any_rational(), b in any_rational(), c in any_rational()) {
            prop_assert_eq!(&a + &b, &b + &a);
            prop_assert_eq!(&(&a + &b) + &c, &a + &(&b + &c));
            prop_assert_eq!(&(&a + &b) * &c, &(&a * &c) + &(&b * &c));
            prop_assert_eq!(&(&a - &b) + &b, a.clone());
            if !b.is_zero() {
                prop_assert_eq!(&(&a / &b) * &b, a.clone());
            }
            prop_assert_eq!(a < b, (&a - &b).signum() < 0);
        }

        #[test]
        fn doubles_enclose_it(a in any_rational()) {
            let (down, up) = (a.to_f64_down(), a.to_f64_up());
            let [below, above] = [down, up].map(|double| Rational::from_f64(double).unwrap());
            prop_assert!(below <= a && a <= above);
            prop_assert!(down == up || down.next_up() == up);
        }

        #[test]
        fn a_double_is_found_again(value in -1e12_f64..1e12) {
            let exact = Rational::from_f64(value).unwrap();
            prop_assert_eq!(exact.to_f64_down(), value);
            prop_assert_eq!(exact.to_f64_up(), value);
        }
    }

    #[test]
    fn decimals_are_read_exactly() {
        let cases = [("10", (10, 1)), ("-2.50", (-5, 2)), ("1e-3", (1, 1_000)), ("0.1E+1", (1, 1))];
        for (text, (n, d)) in cases {
            assert_eq!(Rational::decimal(text), Some(Rational::new(n, d)), "{text}");
        }
        for text in ["", ".", "1.2.3", "0x10", "1e", "nan", "inf", "1_0", "1e99999", " 1"] {
            assert_eq!(Rational::decimal(text), None, "{text}");
        }
    }

    #[test]
    fn the_simplest_fraction_near_a_double_is_found() {
        assert_eq!(Rational::near(1.0 / 3.0, 1e-12), Some(Rational::new(1, 3)));
        assert_eq!(Rational::near(-0.125, 0.0), Some(Rational::new(-1, 8)));
        assert_eq!(Rational::near(f64::NAN, 1e-9), None);
    }
}
