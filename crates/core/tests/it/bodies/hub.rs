//! The half-duplex hub.

use wg_core::hub::{Hub, HubDrop, Output, Rate, StationPlan};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// Any frames, delays, draws and calls out of time: effects come in order of time, every frame taken in has
/// exactly one fate, and within the collision window a frame sent reaches all others whole.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let rate = if input.one_in(2) { Rate::TenMegabit } else { Rate::HundredMegabit };
    let slot = rate.bits(512).as_picos().unsigned_abs();
    let wide = input.one_in(4);
    let count = 1 + usize::from(input.byte() % 5);
    let plans: Vec<_> = (0..count)
        .map(|_| {
            let delay = Span::from_picos(input.below(if wide { 2 * slot } else { slot / 4 }) as i64);
            StationPlan { delay, queue: usize::from(input.byte() % 4) }
        })
        .collect();
    let mut hub = Hub::new(rate, Span::ZERO, &plans).expect("within bounds");
    let mut run =
        Run { sound: hub.holds_collision_window(), taken: Vec::new(), last: None, asked: Vec::new() };
    assert!(wide || run.sound);
    let mut time = 0;
    while !input.is_done() && run.taken.len() < 200 {
        time += input.step(slot as i64);
        let now = RunTime::from_picos(time);
        match input.byte() % 4 {
            0 => hub.handle_deadline(now),
            1 if !run.asked.is_empty() => {
                let (station, limit) = run.asked.remove(usize::from(input.byte()) % run.asked.len());
                hub.handle_backoff(now, station, input.word() as u16 % limit).expect("it was asked for");
            }
            2 => assert!(hub.handle_backoff(now, count, 0).is_err()),
            _ => {
                let station = usize::from(input.byte()) % (count + 1);
                if hub.handle_frame(now, station, input.word() as u16 % 2_000, run.taken.len()).is_ok() {
                    run.taken.push(Fate { ends: 0, sent: false, arrivals: 0 });
                }
            }
        }
        run.collect(&mut hub);
    }
    // To the end: stations draw by their number, so that they part in the end.
    loop {
        for (station, limit) in core::mem::take(&mut run.asked) {
            hub.handle_backoff(RunTime::from_picos(time), station, (station % usize::from(limit)) as u16)
                .expect("it was asked for");
        }
        let Some(at) = hub.next_deadline().instant() else { break };
        time = time.max(at.as_picos());
        hub.handle_deadline(at);
        run.collect(&mut hub);
    }
    for fate in run.taken {
        assert_eq!(fate.ends, 1);
        assert_eq!(fate.arrivals, if fate.sent { count - 1 } else { 0 });
    }
}

struct Fate {
    ends: usize,
    sent: bool,
    arrivals: usize,
}

struct Run {
    sound: bool,
    taken: Vec<Fate>,
    last: Option<RunTime>,
    asked: Vec<(usize, u16)>,
}

impl Run {
    fn collect(&mut self, hub: &mut Hub<usize>) {
        while let Some(output) = hub.poll_output() {
            let at = match output {
                Output::Started { at, attempt, .. } => {
                    assert!((1..=16).contains(&attempt));
                    at
                }
                Output::Collided { at, late, .. } => {
                    assert!(!(self.sound && late));
                    at
                }
                Output::DrawBackoff { station, at, limit } => {
                    assert!((2..=1_024).contains(&limit) && limit.is_power_of_two());
                    self.asked.push((station, limit));
                    at
                }
                Output::Sent { at, frame, .. } => {
                    self.taken[frame].ends += 1;
                    self.taken[frame].sent = true;
                    at
                }
                Output::Dropped { at, frame, reason, .. } => {
                    assert!(!self.sound || reason == HubDrop::ExcessiveCollisions);
                    self.taken[frame].ends += 1;
                    at
                }
                Output::Received { at, frame, .. } => {
                    self.taken[frame].arrivals += 1;
                    at
                }
                Output::Garbled { at, frame, .. } => {
                    assert!(!self.sound);
                    self.taken[frame].arrivals += 1;
                    at
                }
            };
            assert!(self.last.is_none_or(|last| last <= at), "effects out of order");
            self.last = Some(at);
        }
    }
}
