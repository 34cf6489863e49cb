//! What is kept of a credit, beside the count of every byte and in closed form.

use super::*;
use crate::selection::{Credit, CreditPoint};

/// A hundredth of a byte in 10^-12 bits.
const UNIT: Credit = 80_000_000_000;

#[test]
fn the_greatest_credit_is_that_of_the_longest_frame_before_and_the_least_that_of_its_own() {
    // Annex L with one shaped class: hiCredit = idle slope * longest other frame, loCredit = send slope * longest own.
    let arrivals = [(0, 0, 1_518), (0, 3, 980), (0, 3, 980), (0, 3, 980), (0, 3, 980), (20_000, 0, 64)];
    let (_, mut port, device) = driven(with(shaped(A, 30), None), &arrivals, TrueTime, false);
    let now = RunTime::from_picos(30_000 * BYTE);
    let bits = |hundredths: i64| Credit::from(hundredths) * UNIT;
    let point = |byte: i64, hundredths: i64| CreditPoint {
        at: RunTime::from_picos(byte * BYTE),
        credit: bits(hundredths),
    };
    let course = port.credit(now, A, &device).expect("it is shaped").clone();
    // 30 % of 1538 B; then the first frame of 1000 B takes 700 B of it, and so on.
    assert_eq!(course.greatest(), point(1_538, 1_538 * 30));
    // The fourth begins with none, whatever was rounded before.
    assert_eq!(course.least().credit, bits(-70_000));
    assert_eq!(&course.near()[..3], [point(0, 0), point(1_538, 46_140), point(2_538, 46_140 - 70_000)]);
    assert_eq!(course.corners().last(), Some(&CreditPoint { at: now, credit: 0 }));
    assert!(port.credit(now, 0, &device).is_none(), "it has no shaper");
}

#[test]
fn a_restart_ends_a_credit_where_it_was() {
    let (_, mut port, mut device) = driven(with(shaped(A, 50), None), &[(0, 0, 1_518)], TrueTime, false);
    let at = |byte: i64| RunTime::from_picos(byte * BYTE);
    port.handle_frame(at(500), frame(1, 3, 100), &mut device, &mut |_| {});
    port.handle_restart(at(900), &mut device, &mut |_| {});
    let course = port.credit(at(2_000), A, &device).expect("it is shaped");
    assert_eq!(course.greatest(), CreditPoint { at: at(900), credit: Credit::from(400 * 50) * UNIT });
}

proptest! {
    #[test]
    fn extremes_and_corners_are_those_of_the_count(
        gaps in proptest::collection::vec((1_i64..2_500, 0_u8..4, 20_u16..1_500), 1..60),
        slopes in proptest::collection::vec(
            prop_oneof![Just(None), Just(Some(10)), Just(Some(20)), Just(Some(25)), Just(Some(50))], 4,
        ),
        open in proptest::collection::vec(0_u8..3, 4),
        half in 1_600_i64..5_000,
        answers_late in any::<bool>(),
    ) {
        let mut at = 0;
        let arrivals: Vec<Arrival> = gaps
            .iter()
            .map(|(gap, priority, length)| {
                at += gap;
                (at, *priority, *length)
            })
            .collect();
        let mask = |part: u8| (0..4).filter(|&queue| open[queue] == 0 || open[queue] == part).fold(0, |m, q| m | 1 << q);
        let (first, second) = (mask(1), mask(2));
        let opened = move |byte: i64| if byte.rem_euclid(2 * half) < half { first } else { second };
        let mut percents = [None; PRIORITIES];
        percents[..4].copy_from_slice(&slopes);
        let mut idle = percents.map(|percent| percent.map(|percent: i64| percent.unsigned_abs() * 10_000_000));
        for queue in 0..4 {
            if open[queue] != 0 {
                idle[queue] = idle[queue].map(|slope| slope / 2);
            }
        }
        let mut seen: Vec<[i64; PRIORITIES]> = Vec::new();
        counted_with(&percents, &arrivals, &opened, |_, credits| seen.push(*credits));
        let config = with(idle, gates(&[(first, half), (second, half)]));
        let (_, mut port, device) = driven(config, &arrivals, TrueTime, answers_late);
        let end = RunTime::from_picos((i64::try_from(seen.len()).unwrap() - 1) * BYTE);
        for queue in 0..4 {
            let course = port.credit(end, queue, &device);
            prop_assert_eq!(course.is_some(), percents[queue].is_some());
            let Some(course) = course else { continue };
            let of_queue = || seen.iter().map(|credits| Credit::from(credits[queue]) * UNIT);
            prop_assert_eq!(course.greatest().credit, of_queue().max().unwrap());
            prop_assert_eq!(course.least().credit, of_queue().min().unwrap());
            for point in course.corners().iter().chain(course.near()) {
                let byte = usize::try_from(point.at.as_picos() / BYTE).unwrap();
                // Where a credit is lost the corner below stands at the same instant as the one above.
                let counted = Credit::from(seen[byte][queue]) * UNIT;
                prop_assert!(point.credit == counted || point.credit == 0 && counted > 0, "{:?}: {}", point, counted);
            }
        }
    }
}
