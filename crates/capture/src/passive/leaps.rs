//! Differences between clocks that have a name: a likely cause of a step, or of an offset.

use super::order::LONGEST;

const SECOND: i64 = 1_000_000_000_000;
/// Multiples in which time zones differ, and the most of them (UTC−12 to UTC+14).
const ZONE: i64 = 900 * SECOND;
const MOST_ZONES: i64 = 26 * 4;
/// What a step may differ from a named one, ps.
const NEAR: i64 = SECOND / 1_000;
/// What an offset may differ from a named one, ps: clocks that are synchronised over a network are that near.
const NEAR_OFFSET: i64 = SECOND / 10;

/// Difference with its name.
struct Leap {
    by: i64,
    name: &'static str,
}

/// Named differences. International Atomic Time is 37 s ahead of UTC, and that of GPS 18 s, since 2017 (IERS Bulletin
/// C 52).
const LEAPS: &[Leap] = &[
    Leap { by: 37 * SECOND, name: "TAI is 37 s ahead of UTC" },
    Leap { by: 18 * SECOND, name: "the time of GPS is 18 s ahead of UTC" },
    Leap { by: 19 * SECOND, name: "TAI is 19 s ahead of the time of GPS" },
    Leap { by: SECOND, name: "a leap second" },
    Leap { by: (1 << 32) * 1_000, name: "a counter of nanoseconds turns over after 2^32" },
    Leap { by: (1 << 33) * 1_000, name: "a counter of nanoseconds turns over after 2^33" },
    Leap { by: (1 << 32) * 1_000_000, name: "a counter of microseconds turns over after 2^32" },
];

/// Name of a step of this size, known within `within` ps.
pub(super) fn of_step(by: i64, within: i64) -> Option<&'static str> {
    let near = within.clamp(NEAR, NEAR_OFFSET).unsigned_abs();
    named(by.saturating_abs(), |size, leap| size.abs_diff(leap) <= near)
}

/// Name of an offset of the second clock; where it is only known up to a residence, that may be up to 1 s less.
pub(super) fn of_offset(offset: i128, within: Option<i64>) -> Option<&'static str> {
    let offset = i64::try_from(offset).ok()?;
    named(offset.saturating_abs(), |size, leap| match within {
        Some(within) => leap > SECOND && size.abs_diff(leap) <= within.max(NEAR_OFFSET).unsigned_abs(),
        None => {
            let less = if offset < 0 { leap - size } else { size - leap };
            leap > SECOND && (0..=LONGEST).contains(&less)
        }
    })
}

fn named(size: i64, fits: impl Fn(i64, i64) -> bool) -> Option<&'static str> {
    if let Some(leap) = LEAPS.iter().find(|leap| fits(size, leap.by)) {
        return Some(leap.name);
    }
    let zones = (size + ZONE / 2) / ZONE;
    ((1..=MOST_ZONES).contains(&zones) && fits(size, zones * ZONE))
        .then_some("time zones and daylight saving differ by quarters of an hour")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_with_a_name_are_told_within_a_residence() {
        assert_eq!(of_step(-37 * SECOND, 0), Some(LEAPS[0].name));
        assert_eq!(of_step(8_589_935_000_000, 0), Some(LEAPS[5].name));
        assert_eq!(of_step(20 * SECOND, 0), None);
        assert_eq!(of_step(-2 * 3_600 * SECOND, 0), named(4 * ZONE, |one, other| one == other));
        assert_eq!(of_offset(37_017_000_000_000, None), Some(LEAPS[0].name));
        assert_eq!(of_offset(-36_983_000_000_000, None), Some(LEAPS[0].name));
        assert_eq!(of_offset(37_017_000_000_000, Some(1_000)), Some(LEAPS[0].name));
        assert_eq!(of_offset(1_017_000_000_000, None), None);
        assert_eq!(of_offset(i128::MAX, None), None);
    }
}
