//! The clock in closed form, and a servo that steers at random instants against exact sums.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn at(ps: i64) -> RunTime {
    RunTime::from_picos(ps)
}
fn ppb(ppb: i64) -> FrequencyOffset {
    FrequencyOffset::from_ppb(ppb).unwrap()
}
fn clock(offset: i64, drift_ppb: i64, granularity: i64) -> DisciplinedClock {
    let oscillator = Oscillator::new(ppb(drift_ppb));
    DisciplinedClock::new(oscillator, Span::from_picos(offset), Span::from_picos(granularity)).unwrap()
}

const SECOND: i64 = 1_000_000_000_000;
/// 10⁻¹⁵ ps in a picosecond.
const FINE: i128 = 1_000_000_000_000_000;

#[test]
fn closed_forms() {
    // 50 ppm fast is 50 µs ahead after a second, 4.32 s after a day.
    let fast = clock(0, 50_000, 1);
    assert_eq!(fast.read(at(SECOND)).as_picos(), SECOND + 50_000_000);
    assert_eq!(fast.read(at(86_400 * SECOND)).as_picos(), 86_400 * SECOND + 4_320 * SECOND / 1_000);
    // One ps of local time later than n s · (1 + 50e-6) needs one more ps of true time.
    let deadline = LocalTime::from_picos(SECOND + 50_000_001);
    assert_eq!(fast.true_time(deadline, RunTime::ZERO), Some(at(SECOND + 1)));
    // A tick of 8 ns shows the last multiple; set forward by 1 s, then back by 2 s.
    let mut coarse = clock(3, 0, 8_000);
    assert_eq!(coarse.read(at(7_996)).as_picos(), 0);
    assert_eq!(coarse.read(at(7_997)).as_picos(), 8_000);
    assert_eq!(coarse.read(at(-4)).as_picos(), -8_000);
    coarse.step(at(SECOND), Span::from_millis(1_000)).unwrap();
    coarse.step(at(2 * SECOND), Span::from_millis(-2_000)).unwrap();
    assert_eq!(coarse.read(at(SECOND)).as_picos(), 2 * SECOND);
    assert_eq!(coarse.read(at(2 * SECOND)).as_picos(), SECOND);
    let skipped = LocalTime::from_picos(3 * SECOND / 2);
    assert_eq!(coarse.true_time(skipped, RunTime::ZERO), Some(at(SECOND)));
    assert_eq!(coarse.true_time(skipped, at(2 * SECOND)), Some(at(5 * SECOND / 2 - 3)));
}

#[test]
fn a_frequency_that_is_set_is_of_what_the_oscillator_counts() {
    // 100 ppm fast, slowed by 100 ppm: (1 + 10⁻⁴)(1 − 10⁻⁴) is 10⁻⁸ slow.
    let mut steered = clock(0, 100_000, 1);
    steered.set_frequency(RunTime::ZERO, ppb(-100_000)).unwrap();
    assert_eq!(steered.read(at(SECOND)).as_picos(), SECOND - 10_000);
    assert_eq!(steered.frequency(), ppb(-100_000));
    // What is set later replaces it; a step leaves it.
    steered.set_frequency(at(SECOND), FrequencyOffset::NONE).unwrap();
    steered.step(at(SECOND), Span::from_picos(10_000)).unwrap();
    assert_eq!(steered.read(at(2 * SECOND)).as_picos(), 2 * SECOND + 100_000_000);
}

#[test]
fn a_reading_set_back_at_its_instant_is_never_shown() {
    let mut clock = DisciplinedClock::default();
    clock.step(at(1_000), Span::from_picos(-500)).unwrap();
    assert_eq!(clock.true_time(LocalTime::from_picos(999), RunTime::ZERO), Some(at(999)));
    assert_eq!(clock.true_time(LocalTime::from_picos(1_000), RunTime::ZERO), Some(at(1_500)));
    assert_eq!(clock.true_time(LocalTime::from_picos(-7), at(-20)), Some(at(-7)), "before the epoch");
}

#[test]
fn a_temperature_step_is_a_change_of_frequency() {
    let mut warm = clock(0, 10_000, 1);
    warm.set_drift(at(SECOND), ppb(-20_000)).unwrap();
    assert_eq!(warm.read(at(3 * SECOND)).as_picos(), 3 * SECOND + 10_000_000 - 40_000_000);
}

#[test]
fn the_greatest_run_and_error_fit() {
    for e in [FrequencyOffset::LIMIT, ppb(-100_000_000)] {
        let mut clock = DisciplinedClock::new(Oscillator::new(e), Span::ZERO, Span::from_picos(1)).unwrap();
        let times = [i64::MIN, i64::MAX];
        let counted = times.map(|time| {
            i128::from(time) + (i128::from(time) * i128::from(e.quadrillionths())).div_euclid(FINE)
        });
        assert_eq!(times.map(|time| clock.read(at(time)).as_picos()), counted.map(saturated));
        clock.set_frequency(RunTime::ZERO, e).unwrap();
        // Before the epoch the clock goes on as it was.
        let shown = counted[1] + (counted[1] * i128::from(e.quadrillionths())).div_euclid(FINE);
        let read = times.map(|time| clock.read(at(time)).as_picos());
        assert_eq!(read, [saturated(counted[0]), saturated(shown)]);
        let _ = times.map(|time| clock.true_time(LocalTime::from_picos(time), at(i64::MIN)));
    }
    assert_eq!(clock(0, -1, 1).true_time(LocalTime::from_picos(i64::MAX), RunTime::ZERO), None);
}

#[test]
fn what_cannot_be_a_clock_is_refused() {
    assert_eq!(FrequencyOffset::from_ppb(100_000_001), Err(ClockError::Frequency));
    assert_eq!(FrequencyOffset::from_ppb(i64::MIN), Err(ClockError::Frequency));
    let none = DisciplinedClock::new(Oscillator::default(), Span::ZERO, Span::ZERO);
    assert_eq!(none, Err(ClockError::Granularity(Span::ZERO)));
    let mut clock = DisciplinedClock::default();
    clock.step(at(5), Span::ZERO).unwrap();
    let late = Err(ClockError::Order { at: 4, last: 5 });
    assert_eq!(clock.step(at(4), Span::ZERO), late);
    assert_eq!(clock.set_drift(at(4), FrequencyOffset::NONE), late);
    assert_eq!(clock.step(at(5), Span::from_picos(i64::MAX)), Err(ClockError::Range { at: 5 }));
    assert_eq!(clock.read(at(6)), LocalTime::from_picos(6));
    clock.set_drift(at(7), FrequencyOffset::NONE).unwrap();
    assert_eq!(clock.set_frequency(at(6), FrequencyOffset::NONE), Err(ClockError::Order { at: 6, last: 7 }));
}

#[test]
fn a_handle_reads_the_one_clock_and_none_shows_run_time() {
    let shared: SharedClock = Rc::default();
    let (device, other) = (Some(shared.clone()), shared.clone());
    shared.borrow_mut().step(at(10), Span::from_picos(5)).unwrap();
    assert_eq!((device.read(at(10)), other.read(at(9))), (LocalTime(15), LocalTime(9)));
    assert_eq!(device.true_time(LocalTime(20), at(0)), Some(at(15)));
    let none: Option<SharedClock> = None;
    assert_eq!((none.read(at(4)), none.true_time(LocalTime(4), at(7))), (LocalTime(4), Some(at(7))));
}

/// What a servo or nature does.
#[derive(Clone, Copy, Debug)]
enum Change {
    Drift(FrequencyOffset),
    Frequency(FrequencyOffset),
    Step(Span),
}

/// Changes as (gap, change), times odd on purpose.
fn changes(back: bool) -> impl Strategy<Value = Vec<(i64, Change)>> {
    let step = if back { -2 * SECOND..2 * SECOND } else { 0..2 * SECOND };
    let limit = FrequencyOffset::LIMIT.quadrillionths();
    let frequency = (-limit..=limit).prop_map(|e| FrequencyOffset::from_quadrillionths(e).unwrap());
    let change = prop_oneof![
        1 => frequency.clone().prop_map(Change::Drift),
        2 => frequency.prop_map(Change::Frequency),
        1 => step.prop_map(|ps| Change::Step(Span::from_picos(ps))),
    ];
    prop::collection::vec((prop_oneof![4 => 1..SECOND, 1 => Just(0)], change), 0..12)
}

fn built(offset: i64, granularity: i64, changes: &[(i64, Change)]) -> DisciplinedClock {
    let mut clock = clock(offset, 0, granularity);
    let mut now = 0;
    for &(gap, change) in changes {
        now += gap;
        let done = match change {
            Change::Drift(e) => clock.set_drift(at(now), e),
            Change::Frequency(c) => clock.set_frequency(at(now), c),
            Change::Step(by) => clock.step(at(now), by),
        };
        done.unwrap();
    }
    clock
}

/// Instants at which the clock changes.
fn instants(changes: &[(i64, Change)]) -> impl Iterator<Item = i64> {
    changes.iter().scan(0, |now, (gap, _)| {
        *now += gap;
        Some(*now)
    })
}

/// Oracle: adds oscillator and clock up from the beginning for every reading. The clock gets 1 + c for each picosecond
/// that the oscillator counted meanwhile.
fn summed(offset: i64, granularity: i64, changes: &[(i64, Change)], time: i64) -> i64 {
    let (mut phase, mut now, mut e) = (0_i128, 0_i64, 0_i128);
    let (mut shown, mut counted, mut c) = (i128::from(offset) * FINE, 0_i128, 0_i128);
    let mut to = |until: i64, e: i128, c: i128, shown: &mut i128| {
        phase += i128::from(until - now) * (FINE + e);
        now = until;
        let count = phase.div_euclid(FINE);
        *shown += (count - counted) * (FINE + c);
        counted = count;
    };
    for (&(_, change), instant) in changes.iter().zip(instants(changes)) {
        if instant > time {
            break;
        }
        to(instant, e, c, &mut shown);
        match change {
            Change::Drift(f) => e = f.quadrillionths().into(),
            Change::Frequency(f) => c = f.quadrillionths().into(),
            Change::Step(by) => shown += i128::from(by.as_picos()) * FINE,
        }
    }
    to(time, e, c, &mut shown);
    let unit = i128::from(granularity) * FINE;
    i64::try_from(shown.div_euclid(unit) * i128::from(granularity)).unwrap()
}

proptest! {
    #[test]
    fn readings_are_the_exact_sum(
        offset in -SECOND..SECOND, granularity in prop_oneof![Just(1_i64), 1..100_000_i64],
        changes in changes(true), time in 0..14 * SECOND,
    ) {
        let clock = built(offset, granularity, &changes);
        prop_assert_eq!(clock.read(at(time)).as_picos(), summed(offset, granularity, &changes, time));
    }

    /// The ideal: a product of real frequencies, with nothing counted or rounded, in 10⁻¹⁸ ps. Reading it in whole
    /// picoseconds of the oscillator costs less than one, and as much as the correction changed for each change.
    #[test]
    fn a_steered_clock_keeps_to_the_product_of_frequencies(
        steering in prop::collection::vec((1..SECOND, 0..3_u8, -100_000_000..=100_000_000_i64), 0..100),
        probe in 0..SECOND,
    ) {
        const ATTO: i128 = 1_000_000_000_000_000_000;
        let (mut clock, mut now, mut ideal) = (clock(0, 0, 1), 0_i64, 0_i128);
        let (mut e, mut c, mut turned) = (0_i64, 0_i64, 0_i128);
        let rate = |e: i64, c: i64| i128::from(1_000_000_000 + e) * i128::from(1_000_000_000 + c);
        for &(gap, kind, by) in &steering {
            now += gap;
            ideal += i128::from(gap) * rate(e, c);
            match kind {
                0 => {
                    clock.set_drift(at(now), ppb(by)).unwrap();
                    e = by;
                }
                1 => {
                    clock.set_frequency(at(now), ppb(by)).unwrap();
                    turned += i128::from((by - c).abs());
                    c = by;
                }
                _ => {
                    clock.step(at(now), Span::from_picos(by)).unwrap();
                    ideal += i128::from(by) * ATTO;
                }
            }
            // Forgetting the past changes nothing.
            clock.forget_before(at(now));
        }
        ideal += i128::from(probe) * rate(e, c);
        let shown = i128::from(clock.read(at(now + probe)).as_picos()) * ATTO;
        let bound = 2 * ATTO + ATTO / 5 + turned * 1_000_000_000;
        prop_assert!((shown - ideal).abs() <= bound, "{} of {bound}", shown - ideal);
    }

    #[test]
    fn without_a_step_back_the_clock_never_runs_back(
        changes in changes(false), granularity in 1..100_000_i64, a in 0..14 * SECOND, gap in 0..SECOND,
    ) {
        let clock = built(0, granularity, &changes);
        prop_assert!(clock.read(at(a)) <= clock.read(at(a + gap)));
    }

    /// Defining property of the inverse: shown then, and at no instant before. Between two changes a clock does not run
    /// back, so that the last instant before each tells of all others.
    #[test]
    fn true_time_is_the_earliest(
        changes in changes(true), granularity in prop_oneof![Just(1_i64), 1..100_000_i64],
        target in -SECOND..20 * SECOND, from in 0..14 * SECOND,
    ) {
        let clock = built(0, granularity, &changes);
        let local = LocalTime::from_picos(target);
        let found = clock.true_time(local, at(from)).expect("a tenth slow gets there");
        prop_assert!(found >= at(from));
        prop_assert!(clock.read(found) >= local);
        let ends = instants(&changes).chain([found.as_picos()]);
        for last in ends.map(|end| end - 1).filter(|last| (from..found.as_picos()).contains(last)) {
            prop_assert!(clock.read(at(last)) < local);
        }
    }

    #[test]
    fn forgetting_the_past_leaves_the_future(
        changes in changes(true), now in 0..14 * SECOND, later in 0..SECOND, target in 0..20 * SECOND,
    ) {
        let clock = built(0, 7, &changes);
        let mut short = clock.clone();
        short.forget_before(at(now));
        prop_assert_eq!(short.read(at(now + later)), clock.read(at(now + later)));
        let local = LocalTime::from_picos(target);
        prop_assert_eq!(short.true_time(local, at(now)), clock.true_time(local, at(now)));
    }
}

/// Wrong clocks that the sum and the inverse must tell from the right one.
#[test]
fn wrong_clocks_are_found_out() {
    let steps = [(333, Change::Step(Span::ZERO)); 12];
    let drift = [(0, Change::Drift(ppb(1_500_000)))];
    let long: Vec<_> = drift.into_iter().chain(steps).collect();
    let exact = summed(0, 1, &long, 12 * 333);
    // Whole picoseconds kept at every piece lose half a picosecond each time.
    let rounded: i64 = (0..12).map(|_| clock(0, 1_500_000, 1).read(at(333)).as_picos()).sum();
    assert_ne!(exact, rounded);
    assert_eq!(built(0, 1, &long).read(at(12 * 333)).as_picos(), exact);
    // Frequencies added instead of multiplied are off by 10⁻⁸ at 100 ppm each.
    let both = [(0, Change::Drift(ppb(100_000))), (0, Change::Frequency(ppb(100_000)))];
    assert_eq!(summed(0, 1, &both, SECOND) - clock(0, 200_000, 1).read(at(SECOND)).as_picos(), 10_000);
    // Floating point loses picoseconds within a day at 1 ppb.
    let day = 86_400 * SECOND + 1;
    let float = (day as f64 * (1.0 + 1e-9)) as i64;
    assert_ne!(float, clock(0, 1, 1).read(at(day)).as_picos());
    // Rounding the inverse down is early.
    let fast = clock(0, 50_000, 1);
    assert!(fast.read(at(SECOND)) < LocalTime::from_picos(SECOND + 50_000_001));
}
