//! Time-triggered schedules and media access.

use wg_core::oscillator::LocalTime;
use wg_core::tte::access::{Decision, DeltaRaster, Integration, MediaAccess};
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_frame::time::Span;

use crate::input::Input;

const MICROSECOND: i64 = 1_000_000;
const LINE_RATE: u64 = 1_000_000_000;

/// Any windows: refused or consistent. Any traffic on them: one frame at a time, time-triggered frames within
/// their windows, and each way of integration keeps what it promises.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let cycle = Span::from_micros(if input.one_in(32) { i64::from(input.byte() % 4) - 2 } else { 120 });
    let Ok(mut schedule) = PortSchedule::new(cycle, Vec::new(), LINE_RATE) else {
        assert!(cycle <= Span::ZERO);
        return;
    };
    // Windows that do not go with those before are left out.
    for flow in 0..input.byte() % 8 {
        let mut windows = schedule.windows().to_vec();
        windows.push(window(&mut input, flow));
        schedule = PortSchedule::new(cycle, windows, LINE_RATE).unwrap_or(schedule);
    }
    let integration = match input.byte() % 3 {
        0 => Integration::Preemption,
        1 => Integration::TimelyBlock,
        _ => Integration::Shuffling,
    };
    let raster = (input.one_in(2))
        .then(|| {
            DeltaRaster::new(Span::from_micros(1 + input.below(200) as i64), 1 + u16::from(input.byte() % 3))
        })
        .map(|raster| raster.expect("positive"));
    let mut port = MediaAccess::new(schedule, integration, raster);
    let mut now = LocalTime::from_picos((input.word() >> 3) as i64 - (1 << 60));
    // End of what is on the line, and whether it may be aborted.
    let (mut free, mut abortable) = (now, false);
    while !input.is_done() {
        now = now + Span::from_picos(input.step(30 * MICROSECOND).max(0));
        queries(port.schedule(), now);
        let tt = (!input.one_in(4)).then(|| Span::from_picos(1 + input.below(15_000_000) as i64));
        let other = (!input.one_in(4)).then(|| Span::from_picos(1 + input.below(12_304_000) as i64));
        let open = port.schedule().open_at(now);
        match port.decide(now, |_| tt, other) {
            Decision::StartTimeTriggered { window } => {
                let (open, occupied) = (open.expect("a window is open"), tt.expect("a frame waits"));
                assert_eq!(window, open.window);
                assert!(free <= now && now + occupied <= open.closes);
                port.handle_start(now, true, occupied);
                (free, abortable) = (now + occupied, false);
            }
            Decision::StartOther => {
                let occupied = other.expect("a frame waits");
                assert!(free <= now);
                let next = port.schedule().next_after(now);
                let blocks = next.is_some_and(|next| now + occupied > next.opens);
                assert!(integration != Integration::TimelyBlock || !blocks);
                assert!(raster.is_none_or(
                    |r| !r.phase_at(now).time_triggered && now + occupied <= r.phase_at(now).ends
                ));
                port.handle_start(now, false, occupied);
                (free, abortable) = (now + occupied, true);
            }
            Decision::Preempt => {
                assert!(integration == Integration::Preemption && abortable && free > now);
                assert!(open.is_some() && tt.is_some());
                port.handle_abort(now, Span::from_nanos(96));
                (free, abortable) = (now + Span::from_nanos(96), false);
            }
            Decision::WaitUntil(then) => assert!(then > now),
            Decision::Idle => assert!(free <= now && other.is_none() && port.schedule().windows().is_empty()),
        }
    }
}

fn window(input: &mut Input<'_>, flow: u8) -> Window {
    let period = Span::from_micros([120, 60, 40, 30, 7][usize::from(input.byte() % 5)]);
    let room = period.as_picos().unsigned_abs();
    let offset = if input.one_in(32) { input.extreme() } else { input.below(room) as i64 };
    let length = if input.one_in(32) { input.extreme() } else { input.below(room / 3) as i64 };
    Window {
        flow: u16::from(flow),
        offset: Span::from_picos(offset),
        period,
        length: Span::from_picos(length),
        longest_frame: input.below(100) as u16,
    }
}

fn queries(schedule: &PortSchedule, now: LocalTime) {
    let tick = Span::from_picos(1);
    if let Some(open) = schedule.open_at(now) {
        assert!(open.opens <= now && now < open.closes);
        assert_eq!(schedule.next_after(open.opens - tick), Some(open));
        assert_ne!(schedule.open_at(open.closes).map(|other| other.opens), Some(open.opens));
    }
    match schedule.next_after(now) {
        Some(next) => {
            assert!(next.opens > now);
            assert_eq!(schedule.open_at(next.opens), Some(next));
            assert_eq!(schedule.next_after(next.opens - tick), Some(next));
            let before = schedule.open_at(next.opens - tick);
            assert!(before.is_none_or(|before| before.closes <= next.opens));
        }
        None => assert!(schedule.windows().is_empty()),
    }
}
