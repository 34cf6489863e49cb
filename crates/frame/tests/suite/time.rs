//! Time: conversions at their edges, and the text form against the arithmetic.

use proptest::prelude::*;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};

#[test]
fn bit_times_are_exact() {
    for (rate, byte) in
        [(100_000_000, 80_000), (1_000_000_000, 8_000), (10_000_000_000, 800), (25_000_000_000, 320)]
    {
        assert_eq!(Span::of_bits(8, rate), Some(Span::from_picos(byte)), "a byte at {rate} bit/s");
    }
    // 84 B of the shortest frame on the wire at 1 Gbit/s: 1.488 095 M frames/s (RFC 2544, appendix B).
    assert_eq!(Span::of_bits(84 * 8, 1_000_000_000), Some(Span::from_nanos(672)));
    assert_eq!(Span::of_bits(1, 0), None);
    assert_eq!(Span::of_bits(u64::MAX, 1), None);
    assert_eq!(Span::of_bits(0, 1), Some(Span::ZERO));
}

#[test]
fn units() {
    assert_eq!(Span::from_millis(2), Span::from_micros(2_000));
    assert_eq!(Span::from_micros(2), Span::from_nanos(2_000));
    assert_eq!(Span::from_nanos(-2), Span::from_picos(-2_000));
    assert_eq!(Span::from_picos(-1).as_nanos_floor(), -1);
    assert_eq!(Span::from_picos(1_999).as_nanos_floor(), 1);
}

#[test]
fn display_is_what_the_test_language_writes() {
    for (ps, text) in [
        (0, "0ps"),
        (1, "1ps"),
        (-1_500, "-1500ps"),
        (2_000_000_000, "2ms"),
        (50_000, "50ns"),
        (1_000_000_000_000, "1s"),
        (1_500_000_000_000, "1500ms"),
        (-125_000_000, "-125us"),
    ] {
        assert_eq!(Span::from_picos(ps).to_string(), text);
    }
}

#[test]
fn epoch_and_wall() {
    let epoch = Epoch::new(WallNanos::new(1_700_000_000_000_000_000));
    let later = WallNanos::new(1_700_000_000_000_000_003);
    assert_eq!(epoch.run_time(later), Some(RunTime::from_picos(3_000)));
    assert_eq!(epoch.wall_nanos(RunTime::from_picos(-1)).get(), epoch.wall().get() - 1);
    // 106.75 days are the end of the range; anything absolute is far beyond it.
    assert_eq!(epoch.run_time(WallNanos::new(0)), None);
    assert_eq!(Epoch::new(WallNanos::new(i64::MIN)).run_time(WallNanos::new(1)), None);
}

#[test]
#[should_panic(expected = "106 days")]
fn overflow_panics_in_every_profile() {
    let _ = RunTime::from_picos(i64::MAX) + Span::from_picos(1);
}

#[test]
#[should_panic(expected = "106 days")]
fn too_many_seconds_panic() {
    let _ = Span::from_millis(i64::MAX / 1_000_000);
}

proptest! {
    #[test]
    fn display_reads_back_exactly(ps: i64) {
        let text = Span::from_picos(ps).to_string();
        let digits = text.trim_end_matches(char::is_alphabetic);
        let scale = match &text[digits.len()..] {
            "ps" => 1,
            "ns" => 1_000,
            "us" => 1_000_000,
            "ms" => 1_000_000_000,
            "s" => 1_000_000_000_000,
            other => return Err(TestCaseError::fail(format!("unit {other}"))),
        };
        let number: i64 = digits.parse().expect("a number before the unit");
        prop_assert_eq!(number * scale, ps);
        // The largest unit that leaves no remainder.
        prop_assert!(ps == 0 || scale == 1_000_000_000_000 || ps % (scale * 1_000) != 0);
    }

    #[test]
    fn whole_units_display_in_their_unit(ms in 1_i64..9_000_000) {
        let unit = if ms % 1_000 == 0 { format!("{}s", ms / 1_000) } else { format!("{ms}ms") };
        prop_assert_eq!(Span::from_millis(ms).to_string(), unit);
    }

    #[test]
    fn spans_and_instants_agree(at in -(1_i64 << 61)..1 << 61, by in -(1_i64 << 61)..1 << 61) {
        let (at, by) = (RunTime::from_picos(at), Span::from_picos(by));
        prop_assert_eq!((at + by) - at, by);
        prop_assert_eq!((at + by) - by, at);
        prop_assert_eq!(-(-by), by);
        prop_assert_eq!(by - by, Span::ZERO);
    }

    #[test]
    fn checked_agrees_with_wide_arithmetic(a: i64, b: i64) {
        let narrow = |wide: i128| i64::try_from(wide).ok().map(Span::from_picos);
        let (x, y) = (Span::from_picos(a), Span::from_picos(b));
        prop_assert_eq!(x.checked_add(y), narrow(i128::from(a) + i128::from(b)));
        prop_assert_eq!(x.checked_mul(b), narrow(i128::from(a) * i128::from(b)));
    }

    #[test]
    fn wall_and_back(epoch in 0_i64..1 << 62, offset in -(i64::MAX / 1_001)..i64::MAX / 1_001) {
        let epoch = Epoch::new(WallNanos::new(epoch));
        let wall = WallNanos::new(epoch.wall().get() + offset);
        let time = epoch.run_time(wall).expect("within 106 days");
        prop_assert_eq!(time.as_picos(), offset * 1_000);
        prop_assert_eq!(epoch.wall_nanos(time), wall);
    }

    #[test]
    fn of_bits_rounds_up(bits in 0_u64..1 << 24, rate in 1_u64..100_000_000_000) {
        let ps = i128::from(Span::of_bits(bits, rate).expect("in range").as_picos());
        let (bits, rate) = (i128::from(bits) * 1_000_000_000_000, i128::from(rate));
        prop_assert!(ps * rate >= bits && (ps - 1) * rate < bits);
    }
}
