//! Numbers with units, read exactly.
//!
//! A quantity is a decimal number directly followed by a unit: `2ms`, `1.5KiB`, `1Gbit/s`, `12.5%`. A number
//! without a unit is refused, because a reader would have to guess. Arithmetic is on integers: `0.1us` is
//! 100 000 ps and not almost so, and what is not a whole picosecond, byte, bit/s, ppm or ppb is refused instead of
//! rounded.

use wg_frame::time::Span;

/// What a quantity measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In picoseconds.
    Time,
    /// A size in bytes.
    Size,
    /// A rate in bit/s.
    Rate,
    /// A share in parts per million.
    Ratio,
    /// In parts per billion.
    Drift,
    /// A share of a limit, in parts per billion: availability is asked for in many nines.
    Share,
    /// In thousandths of one per second.
    Frequency,
    /// Room on a disk, in bytes.
    Storage,
    /// A credit, in 10^-12 bits.
    Bits,
}

/// Units of each kind with their size in the kind's base unit.
const UNITS: [(Kind, &[(&str, u128)]); 9] = [
    (
        Kind::Time,
        &[
            ("ns", 1_000),
            ("us", 1_000_000),
            ("µs", 1_000_000),
            ("μs", 1_000_000),
            ("ms", 1_000_000_000),
            ("s", 1_000_000_000_000),
            ("min", 60_000_000_000_000),
            ("h", 3_600_000_000_000_000),
        ],
    ),
    (Kind::Size, &[("B", 1), ("kB", 1_000), ("KiB", 1_024), ("MiB", 1_048_576)]),
    (Kind::Rate, &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)]),
    (Kind::Ratio, &[("%", 10_000), ("ppm", 1)]),
    (Kind::Drift, &[("ppb", 1), ("ppm", 1_000)]),
    (Kind::Share, &[("%", 10_000_000), ("ppm", 1_000), ("ppb", 1)]),
    (Kind::Frequency, &[("/s", 1_000), ("k/s", 1_000_000), ("M/s", 1_000_000_000)]),
    (
        Kind::Storage,
        &[
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ],
    ),
    (
        Kind::Bits,
        &[("bit", 1_000_000_000_000), ("kbit", 1_000_000_000_000_000), ("Mbit", 1_000_000_000_000_000_000)],
    ),
];

/// Longest run of digits that is read; more cannot be meant and would not fit.
const MOST_DIGITS: usize = 20;

impl Kind {
    /// Its units, as a message lists them.
    pub fn units(self) -> &'static str {
        match self {
            Self::Time => "ns, us, ms, s, min, h",
            Self::Size => "B, kB, KiB, MiB",
            Self::Rate => "bit/s, kbit/s, Mbit/s, Gbit/s",
            Self::Ratio => "%, ppm",
            Self::Drift => "ppb, ppm",
            Self::Share => "%, ppm, ppb",
            Self::Frequency => "/s, k/s, M/s",
            Self::Storage => "MB, GB, TB, MiB, GiB, TiB",
            Self::Bits => "bit, kbit, Mbit",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Size => "a size",
            Self::Rate => "a rate",
            Self::Ratio => "a share",
            Self::Drift => "a drift",
            Self::Share => "a share",
            Self::Frequency => "a number per second",
            Self::Storage => "room on a disk",
            Self::Bits => "a number of bits",
        }
    }

    fn base(self) -> &'static str {
        match self {
            Self::Time => "picoseconds",
            Self::Size => "bytes",
            Self::Rate => "bit/s",
            Self::Ratio => "ppm",
            Self::Drift => "ppb",
            Self::Share => "ppb",
            Self::Frequency => "thousandths per second",
            Self::Storage => "bytes",
            Self::Bits => "10^-12 bits",
        }
    }

    fn usual_unit(self) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Size => "B",
            Self::Rate => "Mbit/s",
            Self::Ratio => "%",
            Self::Drift => "ppm",
            Self::Share => "%",
            Self::Frequency => "/s",
            Self::Storage => "GB",
            Self::Bits => "bit",
        }
    }

    /// Its units with their size in the base unit.
    pub(crate) const fn table(self) -> &'static [(&'static str, u128)] {
        match self {
            Self::Time => UNITS[0].1,
            Self::Size => UNITS[1].1,
            Self::Rate => UNITS[2].1,
            Self::Ratio => UNITS[3].1,
            Self::Drift => UNITS[4].1,
            Self::Share => UNITS[5].1,
            Self::Frequency => UNITS[6].1,
            Self::Storage => UNITS[7].1,
            Self::Bits => UNITS[8].1,
        }
    }
}

/// Why a text is no quantity of the kind wanted. The message continues `period "2" …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing but white space.
    #[error("is empty")]
    Empty,
    /// Does not begin with a number.
    #[error("is not a number with a unit")]
    NotANumber,
    /// Begins with a minus sign.
    #[error("is negative")]
    Negative,
    /// A number alone.
    #[error("has no unit")]
    NoUnit,
    /// White space between number and unit.
    #[error("has white space in it")]
    Space,
    /// Exponents are not read.
    #[error("is written with an exponent")]
    Exponent,
    /// A unit of another kind.
    #[error("is {0}, but {1} is wanted")]
    WrongKind(&'static str, &'static str),
    /// A unit nobody knows.
    #[error("has the unknown unit \"{0}\"")]
    UnknownUnit(String),
    /// More digits than any quantity needs.
    #[error("has more than 20 digits")]
    TooManyDigits,
    /// A fraction of the base unit.
    #[error("is not a whole number of {0}")]
    NotWhole(&'static str),
    /// Beyond the range of the type.
    #[error("is too large")]
    TooLarge,
}

impl QuantityError {
    /// The text that was refused, why, and what to write instead.
    pub fn sentence(&self, kind: Kind, written: &str) -> String {
        format!("\"{}\" {self}; {}", crate::diagnostic::shown(written), self.cure(kind, written))
    }

    /// What to write instead; `written` is the text that was refused.
    pub fn cure(&self, kind: Kind, written: &str) -> String {
        let number: String =
            written.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(20).collect();
        let number = if number.chars().any(|c| c.is_ascii_digit()) { number } else { "2".to_owned() };
        match self {
            Self::Space => "write number and unit together".to_owned(),
            Self::Negative => "write it without the minus sign".to_owned(),
            Self::NotWhole(base) => format!("write a value that is a whole number of {base}"),
            Self::TooManyDigits | Self::TooLarge => "write a smaller value".to_owned(),
            _ => format!(
                "write a number and one of {}, for example {number}{}",
                kind.units(),
                kind.usual_unit()
            ),
        }
    }
}

/// Reads a quantity of `kind` as a whole number of its base unit.
///
/// # Errors
/// One of [`QuantityError`]; the result is exact or refused.
pub fn parse(kind: Kind, text: &str) -> Result<u128, QuantityError> {
    if text.trim().is_empty() {
        return Err(QuantityError::Empty);
    }
    if text.starts_with('-') || text.starts_with('−') {
        return Err(QuantityError::Negative);
    }
    if text.chars().any(char::is_whitespace) {
        return Err(QuantityError::Space);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let dotted = number.contains('.');
    if whole.is_empty() || fraction.contains('.') || (dotted && fraction.is_empty()) {
        return Err(QuantityError::NotANumber);
    }
    if whole.len() + fraction.len() > MOST_DIGITS {
        return Err(QuantityError::TooManyDigits);
    }
    if unit.is_empty() {
        return Err(QuantityError::NoUnit);
    }
    let size = unit_size(kind, unit)?;
    // At most 20 digits times 3.6e15: below 3.6e35, well inside u128.
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| QuantityError::NotANumber)?;
    let scaled = digits * size;
    #[expect(clippy::cast_possible_truncation, reason = "at most `MOST_DIGITS`")]
    let scale = 10_u128.pow(fraction.len() as u32);
    if !scaled.is_multiple_of(scale) {
        return Err(QuantityError::NotWhole(kind.base()));
    }
    Ok(scaled / scale)
}

fn unit_size(kind: Kind, unit: &str) -> Result<u128, QuantityError> {
    if let Some((_, size)) = kind.table().iter().find(|(name, _)| *name == unit) {
        return Ok(*size);
    }
    if let Some((other, _)) = UNITS.iter().find(|(_, units)| units.iter().any(|(name, _)| *name == unit)) {
        return Err(QuantityError::WrongKind(other.noun(), kind.noun()));
    }
    let mut rest = unit.chars();
    if matches!(rest.next(), Some('e' | 'E')) && rest.next().is_some_and(|c| c.is_ascii_digit() || c == '-') {
        return Err(QuantityError::Exponent);
    }
    Err(QuantityError::UnknownUnit(crate::diagnostic::shown(unit)))
}

/// Reads a time.
///
/// # Errors
/// One of [`QuantityError`]; times beyond 106 days are [`QuantityError::TooLarge`].
pub fn time(text: &str) -> Result<Span, QuantityError> {
    let ps = parse(Kind::Time, text)?;
    i64::try_from(ps).map(Span::from_picos).map_err(|_| QuantityError::TooLarge)
}

/// Reads a size in bytes.
///
/// # Errors
/// One of [`QuantityError`].
pub fn size(text: &str) -> Result<u64, QuantityError> {
    u64::try_from(parse(Kind::Size, text)?).map_err(|_| QuantityError::TooLarge)
}

/// Reads a rate in bit/s.
///
/// # Errors
/// One of [`QuantityError`].
pub fn rate(text: &str) -> Result<u64, QuantityError> {
    u64::try_from(parse(Kind::Rate, text)?).map_err(|_| QuantityError::TooLarge)
}

/// Reads a share in parts per million.
///
/// # Errors
/// One of [`QuantityError`].
pub fn ppm(text: &str) -> Result<u32, QuantityError> {
    u32::try_from(parse(Kind::Ratio, text)?).map_err(|_| QuantityError::TooLarge)
}

/// Reads a time that may be negative: what a clock is off by.
///
/// # Errors
/// One of [`QuantityError`]; times beyond 106 days are [`QuantityError::TooLarge`].
pub fn signed_time(text: &str) -> Result<Span, QuantityError> {
    match text.strip_prefix('-') {
        Some(size) => time(size).map(|time| -time),
        None => time(text),
    }
}

/// Reads a drift in parts per billion, which may be negative.
///
/// # Errors
/// One of [`QuantityError`].
pub fn drift(text: &str) -> Result<i64, QuantityError> {
    let size = parse(Kind::Drift, text.strip_prefix('-').unwrap_or(text))?;
    let size = i64::try_from(size).map_err(|_| QuantityError::TooLarge)?;
    Ok(if text.starts_with('-') { -size } else { size })
}

/// Reads a deviation of drift in parts per billion.
///
/// # Errors
/// One of [`QuantityError`].
pub fn wander(text: &str) -> Result<u32, QuantityError> {
    u32::try_from(parse(Kind::Drift, text)?).map_err(|_| QuantityError::TooLarge)
}

/// Reads a bit error rate, `1e-9` or `0.000001`, as the mean number of bits to an error, rounded; `None` for what is no
/// such number or does not lie between 1e-18 and 1.
pub fn mean_bits(text: &str) -> Option<u64> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "-0"));
    let exponent: u32 = exponent.strip_prefix('-')?.parse().ok().filter(|exponent| *exponent <= 18)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let plain = !whole.is_empty() && digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
    // At most 18 digits and 36 decimal places, so that neither side leaves u128.
    let mantissa: u128 = digits.parse().ok().filter(|mantissa| plain && *mantissa > 0)?;
    #[expect(clippy::cast_possible_truncation, reason = "at most 18 digits")]
    let scale = 10_u128.pow(exponent + fraction.len() as u32);
    let mean = u64::try_from((scale + mantissa / 2) / mantissa).ok()?;
    (mantissa <= scale && mean <= 1_000_000_000_000_000_000).then_some(mean)
}

/// A rate as the test language writes it, in the largest unit that leaves no remainder.
pub fn show_rate(bps: u64) -> String {
    for (unit, size) in [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000)] {
        if bps != 0 && bps.is_multiple_of(size) {
            return format!("{}{unit}", bps / size);
        }
    }
    format!("{bps}bit/s")
}

/// A share as the test language writes it.
pub fn show_ppm(ppm: u32) -> String {
    let (percent, rest) = (ppm / 10_000, ppm % 10_000);
    if rest == 0 {
        return format!("{percent}%");
    }
    format!("{percent}.{}%", format!("{rest:04}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_the_language_promises() {
        assert_eq!(time("2ms"), Ok(Span::from_millis(2)));
        assert_eq!(time("0.1us"), Ok(Span::from_picos(100_000)));
        assert_eq!(time("1.5µs"), Ok(Span::from_picos(1_500_000)));
        assert_eq!(time("2h"), Ok(Span::from_millis(7_200_000)));
        assert_eq!(size("1.5KiB"), Ok(1_536));
        assert_eq!(rate("2.5Gbit/s"), Ok(2_500_000_000));
        assert_eq!(ppm("12.5%"), Ok(125_000));
        assert_eq!(ppm("50ppm"), Ok(50));
    }

    #[test]
    fn a_refusal_is_a_sentence_with_its_cure() {
        let said = |kind, text| parse(kind, text).map_err(|error| error.sentence(kind, text));
        assert_eq!(
            said(Kind::Time, "5"),
            Err("\"5\" has no unit; write a number and one of ns, us, ms, s, min, h, for example 5ms"
                .to_owned())
        );
        assert_eq!(
            said(Kind::Rate, "1 Gbit/s"),
            Err("\"1 Gbit/s\" has white space in it; write number and unit together".to_owned())
        );
        assert_eq!(said(Kind::Share, "0.1%"), Ok(1_000_000));
        assert!(
            said(Kind::Size, &"x\n".repeat(99)).is_err_and(|text| text.len() < 200 && !text.contains('\n'))
        );
    }

    #[test]
    fn refuses_what_would_have_to_be_guessed() {
        let cases: [(&str, QuantityError); 14] = [
            ("", QuantityError::Empty),
            ("2", QuantityError::NoUnit),
            ("2 ms", QuantityError::Space),
            ("-2ms", QuantityError::Negative),
            ("ms", QuantityError::NotANumber),
            (".5ms", QuantityError::NotANumber),
            ("1.ms", QuantityError::NotANumber),
            ("1.2.3ms", QuantityError::NotANumber),
            ("1e3ms", QuantityError::Exponent),
            ("64B", QuantityError::WrongKind("a size", "a time")),
            ("2parsec", QuantityError::UnknownUnit("parsec".into())),
            ("0.0001ns", QuantityError::NotWhole("picoseconds")),
            ("000000000000000000000s", QuantityError::TooManyDigits),
            ("99999999h", QuantityError::TooLarge),
        ];
        for (text, error) in cases {
            assert_eq!(time(text), Err(error), "{text}");
        }
    }

    #[test]
    fn clocks_may_be_behind_and_slow() {
        assert_eq!(signed_time("-5us"), Ok(Span::from_micros(-5)));
        assert_eq!(signed_time("5us"), Ok(Span::from_micros(5)));
        assert_eq!(signed_time("--5us"), Err(QuantityError::Negative));
        assert_eq!(drift("-20ppm"), Ok(-20_000));
        assert_eq!(drift("0.5ppm"), Ok(500));
        assert_eq!(drift("3ppb"), Ok(3));
        assert_eq!(drift("3%"), Err(QuantityError::WrongKind("a share", "a drift")));
        assert_eq!(wander("-1ppb"), Err(QuantityError::Negative));
    }

    #[test]
    fn bit_error_rates_are_means_of_bits() {
        for (text, mean) in [
            ("1e-9", 1_000_000_000),
            ("2.5e-6", 400_000),
            ("0.001", 1_000),
            ("1", 1),
            ("3e-1", 3),
            ("0.7", 1),
            ("1e-18", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(mean_bits(text), Some(mean), "{text}");
        }
        for none in
            ["", "0", "0e-3", "2", "1e9", "1e-19", "0.1e-18", "-1e-9", "1e-", "e-9", ".1", "1e-9s", "1.2.3"]
        {
            assert_eq!(mean_bits(none), None, "{none}");
        }
    }

    #[test]
    fn cures_repeat_the_number_that_was_written() {
        let cure = QuantityError::NoUnit.cure(Kind::Time, "20");
        assert_eq!(cure, "write a number and one of ns, us, ms, s, min, h, for example 20ms");
    }

    proptest! {
        /// Judged by rationals: value · scale = digits · unit, in integers.
        #[test]
        fn exact_against_rationals(whole in 0_u64..10_000_000, fraction in "[0-9]{0,9}", which in 0_usize..19) {
            let all: Vec<(Kind, &str, u128)> = UNITS
                .iter()
                .flat_map(|(kind, units)| units.iter().map(move |(unit, size)| (*kind, *unit, *size)))
                .collect();
            let (kind, unit, size) = all[which % all.len()];
            let dot = if fraction.is_empty() { "" } else { "." };
            let text = format!("{whole}{dot}{fraction}{unit}");
            let scale = 10_u128.pow(fraction.len() as u32);
            let digits = u128::from(whole) * scale + fraction.parse::<u128>().unwrap_or(0);
            match parse(kind, &text) {
                Ok(value) => prop_assert_eq!(value * scale, digits * size),
                Err(error) => {
                    prop_assert_eq!(error, QuantityError::NotWhole(kind.base()));
                    prop_assert_ne!(digits * size % scale, 0);
                }
            }
        }

        #[test]
        fn shown_rates_and_shares_read_back(bps in 1_u64..1_000_000_000_000, share in 0_u32..=1_000_000) {
            prop_assert_eq!(rate(&show_rate(bps)), Ok(bps));
            prop_assert_eq!(ppm(&show_ppm(share)), Ok(share));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            prop_assert!(mean_bits(&text).is_none_or(|bits| bits > 0));
            for (kind, _) in UNITS {
                if let Err(error) = parse(kind, &text) {
                    prop_assert!(!error.cure(kind, &text).is_empty());
                }
            }
        }
    }
}
