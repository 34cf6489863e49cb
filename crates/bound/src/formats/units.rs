//! Quantities in the notation of network-calculus tools: `10`, `2kB`, `50 Mbps`, `10us`.

use crate::rational::Rational;

/// Dimension of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time, in seconds.
    Time,
    /// Data, in bits.
    Data,
    /// Rate, in bits per second.
    Rate,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Data => "an amount of data",
            Self::Rate => "a rate",
        }
    }

    /// An example of its notation.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Time => "write a number and one of s, ms, us, ns, m or h",
            Self::Data => "write a number and one of b, kb, Mb, B, kB, MB",
            Self::Rate => "write a number and one of bps, kbps, Mbps, Gbps, Bps",
        }
    }
}

/// A multiplier as a power of ten.
fn multiplier(letter: char) -> Option<i32> {
    Some(match letter {
        'a' => -18,
        'f' => -15,
        'p' => -12,
        'n' => -9,
        'u' | 'µ' | 'μ' => -6,
        'm' => -3,
        'k' => 3,
        'M' => 6,
        'G' => 9,
        'T' => 12,
        'P' => 15,
        'E' => 18,
        _ => return None,
    })
}

fn ten(power: i32) -> Rational {
    let scale = (0..power.unsigned_abs()).fold(Rational::ONE, |scale, _| &scale * &Rational::integer(10));
    if power < 0 { &Rational::ONE / &scale } else { scale }
}

/// Value of a unit in the base unit. `None`: it is no unit of this kind.
pub fn unit(text: &str, kind: Kind) -> Option<Rational> {
    let time = |letter: char| match letter {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3_600),
        _ => None,
    };
    let data = |letter: char| match letter {
        'b' => Some(1),
        'B' => Some(8),
        _ => None,
    };
    let letters: Vec<char> = text.chars().collect();
    let (prefix, base) = match (kind, &letters[..]) {
        (Kind::Time, [base]) => (None, Rational::integer(time(*base)?)),
        (Kind::Time, [prefix, base]) => (Some(*prefix), Rational::integer(time(*base)?)),
        (Kind::Data, [base]) => (None, Rational::integer(data(*base)?)),
        (Kind::Data, [prefix, base]) => (Some(*prefix), Rational::integer(data(*base)?)),
        (Kind::Rate, [of, 'p', per]) => (None, Rational::new(data(*of)?, time(*per)?)),
        (Kind::Rate, [prefix, of, 'p', per]) => (Some(*prefix), Rational::new(data(*of)?, time(*per)?)),
        _ => return None,
    };
    let Some(prefix) = prefix else { return Some(base) };
    let power = multiplier(prefix)?;
    // A millibit is a misprint.
    (kind == Kind::Time || power > 0).then(|| &base * &ten(power))
}

/// Splits a quantity into its number and its unit, if there is one.
///
/// # Errors
/// The error as a clause.
pub fn split(text: &str, kind: Kind) -> Result<(Rational, Option<Rational>), String> {
    let text = text.trim();
    // `1e-3` is a number and `2E` is none: takes the longest prefix that is a number.
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8()).rev();
    let number =
        ends.into_iter().find_map(|end| Some((Rational::decimal(&text[..end])?, text[end..].trim())));
    let Some((number, rest)) = number else {
        return Err(format!("\"{}\" is no number", shown(text)));
    };
    if rest.is_empty() {
        return Ok((number, None));
    }
    // A rest that begins with digits was cut where the number became too large or too small.
    if rest.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err(format!("\"{}\" is out of range", shown(text)));
    }
    match unit(rest, kind) {
        Some(worth) => Ok((number, Some(worth))),
        None => Err(format!("\"{}\" is no unit of {}", shown(rest), kind.name())),
    }
}

/// The text, shortened and printable for a message.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact() {
        let cases = [
            ("10us", Kind::Time, Rational::new(1, 100_000)),
            ("1.5 ms", Kind::Time, Rational::new(3, 2_000)),
            ("2m", Kind::Time, Rational::integer(120)),
            ("2kB", Kind::Data, Rational::integer(16_000)),
            ("80b", Kind::Data, Rational::integer(80)),
            ("4Mbps", Kind::Rate, Rational::integer(4_000_000)),
            ("1MBps", Kind::Rate, Rational::integer(8_000_000)),
            ("60bpm", Kind::Rate, Rational::ONE),
            ("1e-2s", Kind::Time, Rational::new(1, 100)),
        ];
        for (text, kind, worth) in cases {
            let (number, unit) = split(text, kind).unwrap();
            assert_eq!(&number * &unit.unwrap(), worth, "{text}");
        }
        assert_eq!(split("7", Kind::Time), Ok((Rational::integer(7), None)));
    }

    #[test]
    fn a_unit_of_another_kind_is_refused() {
        for (text, kind) in [
            ("10us", Kind::Data),
            ("4Mbps", Kind::Time),
            ("2kB", Kind::Rate),
            ("3mb", Kind::Data),
            ("5 x", Kind::Time),
        ] {
            assert!(split(text, kind).unwrap_err().contains("is no unit of"), "{text}");
        }
        assert!(split("ten", Kind::Data).unwrap_err().contains("no number"));
        assert!(split("", Kind::Data).is_err());
    }
}
