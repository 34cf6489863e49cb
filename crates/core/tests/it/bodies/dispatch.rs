//! Dispatch at planned instants, acceptance windows and permanence.

use wg_core::clock::LocalTime;
use wg_core::tte::dispatch::{
    Acceptance, AcceptanceWindow, Dispatch, Dispatcher, Instants, PermanenceQueue, PortMode, TransparentClock,
};
use wg_frame::time::Span;

use crate::input::Input;

/// Any messages at any local times: each instant once and in order, each message at most once and in order.
/// Any frames: held at most as long as planned, given out in order of permanence.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let period = 1 + input.below(1 << 40) as i64;
    let offset = input.below(period.unsigned_abs()) as i64;
    let instants =
        Instants::new(Span::from_picos(offset), Span::from_picos(period)).expect("within the period");
    if input.one_in(2) {
        dispatch(&mut input, instants, offset, period);
    } else {
        judge(&mut input, instants, offset, period);
        permanence(&mut input);
    }
}

fn dispatch(input: &mut Input<'_>, instants: Instants, offset: i64, period: i64) {
    let capacity = usize::from(input.byte() % 5);
    let buffer = if capacity == 0 { PortMode::Sampling } else { PortMode::Queuing(capacity) };
    let mut time = (input.word() >> 4) as i64 - (1 << 59);
    let start = LocalTime::from_picos(time);
    let mut core = Dispatcher::new(instants, buffer, start).expect("room for one");
    let (mut next_message, mut unsent, mut sent) = (0_i64, 0, 0);
    let (mut last_message, mut next_instant) = (-1, core.next_deadline());
    assert!(next_instant >= start && (next_instant - start).as_picos() < period);
    assert_eq!((next_instant.as_picos() - offset).rem_euclid(period), 0);
    while !input.is_done() {
        time += input.step(period);
        let now = LocalTime::from_picos(time);
        if input.one_in(2) {
            core.handle_deadline(now);
            assert!(core.next_deadline() > now);
        } else {
            unsent += i64::from(core.handle_message(now, next_message).is_some());
            next_message += 1;
        }
        while let Some(output) = core.poll_output() {
            match output {
                Dispatch::Send { message, at } => {
                    assert_eq!(at, next_instant);
                    assert!(message > last_message);
                    (last_message, sent) = (message, sent + 1);
                    next_instant = at + Span::from_picos(period);
                }
                Dispatch::Empty { first, count } => {
                    assert_eq!(first, next_instant);
                    next_instant = first + Span::from_picos(period * count as i64);
                }
            }
        }
        assert_eq!(core.next_deadline(), next_instant);
        let waiting = next_message - unsent - sent;
        assert!((0..=capacity.max(1) as i64).contains(&waiting));
    }
}

fn judge(input: &mut Input<'_>, instants: Instants, offset: i64, period: i64) {
    let (early, late) =
        (input.below(period.unsigned_abs()) as i64, input.below(period.unsigned_abs()) as i64);
    let window = AcceptanceWindow::new(instants, Span::from_picos(early), Span::from_picos(late));
    let Ok(window) = window else {
        assert!(early + late >= period);
        return;
    };
    let local = input.extreme();
    let after = (i128::from(local) - i128::from(offset)).rem_euclid(i128::from(period)) as i64;
    match window.judge(LocalTime::from_picos(local)) {
        Acceptance::InSchedule(off) => {
            assert!((-early..=late).contains(&off.as_picos()));
            assert_eq!((after - off.as_picos()).rem_euclid(period), 0);
        }
        Acceptance::Late(by) => assert_eq!(by.as_picos(), after - late),
        Acceptance::Early(by) => assert_eq!(by.as_picos(), period - after - early),
    }
}

fn permanence(input: &mut Input<'_>) {
    let longest = input.below(1 << 50) as i64;
    let capacity = usize::from(input.byte() % 9);
    let mut queue = PermanenceQueue::new(Span::from_picos(longest), capacity);
    let (mut time, mut latest, mut held) = (0, i64::MIN, 0);
    while !input.is_done() {
        time += input.step(1 << 45);
        latest = latest.max(time);
        let now = LocalTime::from_picos(time);
        if input.one_in(2) {
            queue.handle_deadline(now);
        } else {
            let clock = TransparentClock(input.word() >> (input.byte() % 64));
            let shown = clock.delay().as_picos();
            let taken = shown <= longest && held < capacity;
            let pit = latest.saturating_add(longest.saturating_sub(shown));
            assert_eq!(queue.handle_frame(now, clock, pit).is_ok(), taken);
            held += usize::from(taken);
        }
        let mut last = i64::MIN;
        while let Some((pit, planned)) = queue.poll_output() {
            assert_eq!(pit.as_picos(), planned);
            assert!(last <= planned && planned <= latest, "out of order or too soon");
            last = planned;
            held -= 1;
        }
        assert!(queue.next_deadline().is_none_or(|pit| pit.as_picos() > latest));
    }
}
