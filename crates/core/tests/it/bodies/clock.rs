//! Disciplined clocks.

use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// Any changes, refused or not; any reading at any instant; any deadline: none panics, and the instant found is
/// the earliest as far as its neighbour and the instants of the changes tell.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let granularity = Span::from_picos(input.extreme() >> (input.byte() % 64));
    let offset = Span::from_picos(input.extreme());
    let Ok(mut clock) = DisciplinedClock::new(Oscillator::default(), offset, granularity) else {
        assert!(granularity <= Span::ZERO);
        return;
    };
    let mut changed_at = 0_i64;
    while !input.is_done() {
        match input.byte() % 8 {
            0..=2 => {
                let unit = 1 << (input.byte() % 50);
                let at = changed_at.saturating_add(input.step(unit));
                let before = clock.clone();
                if change(&mut clock, RunTime::from_picos(at), &mut input) {
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

/// Whether the clock took it.
fn change(clock: &mut DisciplinedClock, at: RunTime, input: &mut Input<'_>) -> bool {
    let kind = input.byte() % 3;
    let by = input.extreme() >> (input.byte() % 64);
    if kind == 0 {
        return clock.step(at, Span::from_picos(by)).is_ok();
    }
    let Ok(frequency) = FrequencyOffset::from_quadrillionths(by) else { return false };
    let changed = if kind == 1 { clock.set_frequency(at, frequency) } else { clock.set_drift(at, frequency) };
    changed.is_ok()
}
