//! Oscillators.

use wg_core::oscillator::{Change, FrequencyError, LocalTime, Oscillator};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// Any changes, refused or not; any reading at any instant; any deadline: none panics, and the instant found is
/// the earliest as far as its neighbour and the instants of the changes tell.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let granularity = Span::from_picos(input.extreme() >> (input.byte() % 64));
    let Ok(mut clock) = Oscillator::new(Span::from_picos(input.extreme()), FrequencyError::NONE, granularity)
    else {
        assert!(granularity <= Span::ZERO);
        return;
    };
    let mut changed_at = 0_i64;
    while !input.is_done() {
        match input.byte() % 8 {
            0..=2 => {
                let unit = 1 << (input.byte() % 50);
                let at = changed_at.saturating_add(input.step(unit));
                let change = if input.one_in(2) {
                    Change::Step(Span::from_picos(input.extreme() >> (input.byte() % 64)))
                } else {
                    let Ok(error) =
                        FrequencyError::from_quadrillionths(input.extreme() >> (input.byte() % 64))
                    else {
                        continue;
                    };
                    Change::Frequency(error)
                };
                let before = clock.clone();
                if clock.handle_change(RunTime::from_picos(at), change).is_ok() {
                    assert!(at >= changed_at);
                    changed_at = at;
                } else {
                    assert_eq!(clock, before);
                }
            }
            3 => clock.forget_before(RunTime::from_picos(input.extreme())),
            4 => {
                let shown = clock.read(RunTime::from_picos(input.extreme())).as_picos();
                let saturated = shown == i64::MIN || shown == i64::MAX;
                assert!(saturated || shown % granularity.as_picos() == 0);
            }
            _ => {
                let (local, from) = (LocalTime::from_picos(input.extreme()), input.extreme());
                let Some(found) = clock.true_time(local, RunTime::from_picos(from)) else { continue };
                assert!(found.as_picos() >= from);
                assert!(clock.read(found) >= local);
                let earlier = |time: i64| (from..found.as_picos()).contains(&time);
                for time in [found.as_picos().wrapping_sub(1), from, changed_at] {
                    assert!(!earlier(time) || clock.read(RunTime::from_picos(time)) < local);
                }
            }
        }
    }
}
