//! Scenarios to the picosecond, invariants over random hubs, and a bit-by-bit oracle.

use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const RATE: Rate = Rate::TenMegabit;

fn bits(n: i64) -> RunTime {
    RunTime::ZERO + RATE.bits(n)
}

fn hub(delays_bits: &[i64]) -> Hub<usize> {
    let plans: Vec<_> =
        delays_bits.iter().map(|&n| StationPlan { delay: RATE.bits(n), queue: 1_000 }).collect();
    Hub::new(RATE, Span::ZERO, &plans).unwrap()
}

/// Hands in frames as (bit time, station, length), answers draws by `draw`, and collects everything.
fn run(
    mut hub: Hub<usize>,
    frames: &[(i64, usize, u16)],
    mut draw: impl FnMut(usize, u16) -> u16,
) -> Vec<Output<usize>> {
    let mut log = Vec::new();
    let mut next = 0;
    loop {
        while let Some(output) = hub.poll_output() {
            if let Output::DrawBackoff { station, at, limit } = output {
                hub.handle_backoff(at, station, draw(station, limit)).unwrap();
            }
            log.push(output);
        }
        let handed_in = frames.get(next).map(|frame| bits(frame.0));
        let due = hub.next_deadline();
        match (handed_in, due.instant()) {
            (Some(at), _) if Deadline::at(at) <= due => {
                hub.handle_frame(at, frames[next].1, frames[next].2, next).unwrap();
                next += 1;
            }
            (_, Some(at)) => hub.handle_deadline(at),
            (_, None) => {
                assert!(hub.under_way.is_empty(), "memory of what has arrived everywhere");
                return log;
            }
        }
    }
}

#[test]
fn an_unhindered_frame_takes_its_bits_and_the_path() {
    let log = run(hub(&[10, 20]), &[(5, 0, 64), (5, 0, 100)], |_, _| 0);
    // 64 bits of preamble, 512 of frame; then the gap of 96 and 64 + 800.
    assert_eq!(
        log,
        [
            Output::Started { station: 0, at: bits(5), attempt: 1 },
            Output::Sent { station: 0, at: bits(581), frame: 0 },
            Output::Received { station: 1, from: 0, at: bits(611), frame: 0 },
            Output::Started { station: 0, at: bits(677), attempt: 1 },
            Output::Sent { station: 0, at: bits(1_541), frame: 1 },
            Output::Received { station: 1, from: 0, at: bits(1_571), frame: 1 },
        ]
    );
}

#[test]
fn a_lone_station_sends_to_nobody() {
    let log = run(hub(&[10]), &[(0, 0, 64)], |_, _| 0);
    let started = Output::Started { station: 0, at: bits(0), attempt: 1 };
    assert_eq!(log, [started, Output::Sent { station: 0, at: bits(576), frame: 0 }]);
}

#[test]
fn a_collision_in_the_preamble_to_the_bit() {
    // Both begin at 0 and hear each other after 30 bits. The preamble is completed, the jam ends at 96.
    let mut draws = [0_u16, 1].into_iter();
    let log = run(hub(&[10, 20]), &[(0, 0, 64), (0, 1, 64)], |_, limit| {
        assert_eq!(limit, 2);
        draws.next().unwrap()
    });
    // Station 0 drew 0: its jam ended at 96, the other's left it at 126, the gap ends at 222.
    // Station 1 drew 1 and may go from 608 on, but hears station 0 from 252 to 828.
    assert_eq!(
        log,
        [
            Output::Started { station: 0, at: bits(0), attempt: 1 },
            Output::Started { station: 1, at: bits(0), attempt: 1 },
            Output::Collided { station: 0, at: bits(30), attempt: 1, late: false },
            Output::Collided { station: 1, at: bits(30), attempt: 1, late: false },
            Output::DrawBackoff { station: 0, at: bits(96), limit: 2 },
            Output::DrawBackoff { station: 1, at: bits(96), limit: 2 },
            Output::Started { station: 0, at: bits(222), attempt: 2 },
            Output::Sent { station: 0, at: bits(798), frame: 0 },
            Output::Received { station: 1, from: 0, at: bits(828), frame: 0 },
            Output::Started { station: 1, at: bits(924), attempt: 2 },
            Output::Sent { station: 1, at: bits(1_500), frame: 1 },
            Output::Received { station: 0, from: 1, at: bits(1_530), frame: 1 },
        ]
    );
}

#[test]
fn a_collision_is_late_one_bit_after_the_window() {
    // The other begins just before it would hear the first, so its signal is back after twice the path.
    for (delay, late) in [(128, false), (129, true)] {
        let path = 2 * delay;
        let log = run(hub(&[delay, delay]), &[(0, 0, 1_518), (path - 1, 1, 64)], |_, _| 0);
        let heard = bits(2 * path - 1);
        let first = log.iter().find_map(|output| match *output {
            Output::Collided { station: 0, at, late, .. } => Some((at, late)),
            _ => None,
        });
        assert_eq!(first, Some((heard, late && 2 * path - 1 > 512)));
        let dropped = log
            .iter()
            .any(|output| matches!(output, Output::Dropped { frame: 0, reason: HubDrop::LateCollision, .. }));
        assert_eq!(dropped, 2 * path - 1 > 512);
        assert_eq!(hub(&[delay, delay]).holds_collision_window(), 2 * path <= 512);
    }
}

#[test]
fn sixteen_collisions_are_too_many() {
    let mut limits = Vec::new();
    let log = run(hub(&[1, 1]), &[(0, 0, 64), (0, 1, 64)], |station, limit| {
        if station == 0 {
            limits.push(limit);
        }
        limit - 1
    });
    let expected: Vec<u16> = (1..16).map(|n: u32| 1 << n.min(10)).collect();
    assert_eq!(limits, expected);
    let dropped = log
        .iter()
        .filter(|o| matches!(o, Output::Dropped { reason: HubDrop::ExcessiveCollisions, .. }))
        .count();
    assert_eq!(dropped, 2);
    assert_eq!(log.iter().filter(|o| matches!(o, Output::Started { station: 0, .. })).count(), 16);
}

#[test]
fn carrier_restarts_the_gap_in_its_first_two_thirds_only() {
    // Stations 0 and 1 collide at once, and their jam leaves station 2 at 96. Station 3, far away, has not heard
    // them yet; its signal reaches station 2 in the first part of the gap or as the second begins.
    for (begins, started) in [(31, 384), (32, 192)] {
        let frames = [(0, 0, 64), (0, 1, 64), (begins, 3, 64), (100, 2, 64)];
        let log = run(hub(&[0, 0, 0, 128]), &frames, |_, _| 1);
        let first = log.iter().find_map(|output| match *output {
            Output::Started { station: 2, at, .. } => Some(at),
            _ => None,
        });
        assert_eq!(first, Some(bits(started)));
    }
}

#[test]
fn beyond_the_window_whole_frames_garble_each_other() {
    let log = run(hub(&[400, 400, 0]), &[(0, 0, 64), (0, 1, 64)], |_, _| 0);
    let count = |what: fn(&Output<usize>) -> bool| log.iter().filter(|output| what(output)).count();
    assert_eq!(count(|o| matches!(o, Output::Sent { .. })), 2);
    assert_eq!(count(|o| matches!(o, Output::Garbled { station: 2, .. })), 2);
    // The two hear each other only after their own last bit.
    assert_eq!(count(|o| matches!(o, Output::Received { station: 0 | 1, .. })), 2);
}

#[test]
fn misuse_is_refused() {
    let plan = StationPlan { delay: Span::ZERO, queue: 1 };
    assert_eq!(Hub::<u8>::new(RATE, Span::ZERO, &[]).err(), Some(HubError::Stations(0)));
    assert!(Hub::<u8>::new(RATE, Span::ZERO, &[plan; MAX_STATIONS]).is_ok());
    let crowd = Hub::<u8>::new(RATE, Span::ZERO, &[plan; MAX_STATIONS + 1]).err();
    assert_eq!(crowd, Some(HubError::Stations(1_025)));
    let (far, limit) = (RATE.bits(1_025), RATE.bits(1_024));
    assert_eq!(Hub::<u8>::new(RATE, far, &[plan]).err(), Some(HubError::Delay(far, limit)));
    assert!(Hub::<u8>::new(RATE, limit, &[plan]).is_ok());
    let mut hub = Hub::new(RATE, Span::ZERO, &[plan, plan]).unwrap();
    assert_eq!(hub.handle_frame(bits(0), 2, 64, 'a'), Err(HubRefusal::NoSuchStation('a')));
    assert_eq!(hub.handle_frame(bits(0), 0, 64, 'b'), Ok(()));
    assert_eq!(hub.handle_frame(bits(0), 0, 64, 'c'), Err(HubRefusal::QueueFull('c')));
    assert_eq!(hub.handle_backoff(bits(0), 0, 0), Err(BackoffError::NotAsked(0)));
    assert_eq!(hub.handle_backoff(bits(0), 9, 0), Err(BackoffError::NotAsked(9)));
    assert_eq!(hub.handle_frame(bits(0), 1, 64, 'd'), Ok(()));
    hub.handle_deadline(bits(96));
    let error = BackoffError::OutOfRange { slots: 2, limit: 2 };
    assert_eq!(hub.handle_backoff(bits(96), 1, 2), Err(error));
    assert_eq!(hub.handle_backoff(bits(96), 1, 1), Ok(()));
}

/// What must hold of any log of a hub within its collision window.
fn breach(delays_bits: &[i64], frames: usize, log: &[Output<usize>]) -> Option<String> {
    let mut fates = vec![0; frames];
    let mut received = vec![0; frames];
    let mut begun = vec![(RunTime::ZERO, 0_u8); delays_bits.len()];
    let mut whole: Vec<(RunTime, RunTime)> = Vec::new();
    let mut free = vec![RunTime::ZERO; delays_bits.len()];
    for output in log {
        match *output {
            Output::Started { station, at, attempt } => {
                if at < free[station] {
                    return Some("a station began within its gap".into());
                }
                begun[station] = (at, attempt);
            }
            Output::Collided { late: true, .. } | Output::Garbled { .. } => {
                return Some("a late collision within the window".into());
            }
            Output::Collided { station, attempt, .. } if attempt != begun[station].1 => {
                return Some("an attempt miscounted".into());
            }
            Output::Collided { .. } => {}
            Output::DrawBackoff { station, at, limit } => {
                free[station] = at + RATE.bits(GAP_BITS);
                if limit != 1 << begun[station].1.min(10) {
                    return Some("a wrong backoff range".into());
                }
            }
            Output::Sent { station, at, frame } => {
                free[station] = at + RATE.bits(GAP_BITS);
                fates[frame] += 1;
                // As the hub in the middle sees it.
                let way = RATE.bits(delays_bits[station]);
                whole.push((begun[station].0 + way, at + way));
            }
            Output::Dropped { station, at, frame, reason } => {
                free[station] = at + RATE.bits(GAP_BITS);
                fates[frame] += 1;
                received[frame] = delays_bits.len() - 1;
                if reason != HubDrop::ExcessiveCollisions || begun[station].1 != 16 {
                    return Some("dropped without reason".into());
                }
            }
            Output::Received { frame, .. } => received[frame] += 1,
        }
    }
    whole.sort_unstable();
    if whole.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Some("two whole frames at once".into());
    }
    if fates.iter().any(|fate| *fate != 1) {
        return Some("a frame without exactly one fate".into());
    }
    received.iter().any(|count| *count != delays_bits.len() - 1).then(|| "a frame not received by all".into())
}

/// The same medium bit by bit: no events and no bookkeeping of signals, but at every bit time a look at all
/// transmissions there ever were. Returns the log without the outputs that only report.
mod oracle {
    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Quiet,
        Busy { own: bool },
        Gap { since: i64, own: bool },
    }

    struct Past {
        from: usize,
        began: i64,
        ended: Option<i64>,
    }

    #[expect(clippy::too_many_lines, reason = "the standard's procedure read again, step by step")]
    pub(super) fn run(
        delays: &[i64],
        frames: &[(i64, usize, u16)],
        mut draw: impl FnMut(usize, u16) -> u16,
    ) -> Vec<(i64, usize, &'static str)> {
        let n = delays.len();
        let mut log = Vec::new();
        let mut past: Vec<Past> = Vec::new();
        let mut state = vec![State::Quiet; n];
        let mut queue: Vec<Vec<i64>> = vec![Vec::new(); n];
        // Per station: index of the own transmission, its end and whether it collided.
        let mut own: Vec<Option<(usize, i64, bool)>> = vec![None; n];
        let mut late = vec![false; n];
        let mut attempts = vec![0_u32; n];
        let mut backoff_until = vec![0_i64; n];
        let (mut left, mut t) = (frames.len(), 0_i64);
        while left > 0 {
            for i in 0..n {
                let Some((index, end, collided)) = own[i] else { continue };
                if end != t {
                    continue;
                }
                past[index].ended = Some(t);
                own[i] = None;
                if collided && !late[i] && attempts[i] < 16 {
                    let slots = draw(i, 1 << attempts[i].min(10));
                    backoff_until[i] = t + 512 * i64::from(slots);
                    log.push((t, i, "backoff"));
                } else {
                    queue[i].remove(0);
                    attempts[i] = 0;
                    backoff_until[i] = t;
                    left -= 1;
                    log.push((t, i, if collided { "dropped" } else { "sent" }));
                }
            }
            // Signals that began before now and have not ended here yet.
            let present = |past: &[Past], i: usize, from_now: bool| {
                past.iter().any(|p| {
                    let way = delays[p.from] + delays[i];
                    let begun = if from_now { p.began + way == t } else { p.began + way < t };
                    p.from != i && begun && p.ended.is_none_or(|ended| ended + way > t)
                })
            };
            let mut starts = vec![false; n];
            for i in 0..n {
                if let State::Busy { own: was_own } = state[i]
                    && own[i].is_none()
                    && !present(&past, i, false)
                {
                    state[i] = State::Gap { since: t, own: was_own };
                }
                let ready = |queue: &Vec<i64>| !queue.is_empty() && own[i].is_none() && backoff_until[i] <= t;
                if let State::Gap { since, .. } = state[i]
                    && since + 96 == t
                {
                    let heard = present(&past, i, false);
                    starts[i] = ready(&queue[i]);
                    state[i] = if heard && !starts[i] { State::Busy { own: false } } else { State::Quiet };
                }
                queue[i].extend(
                    frames.iter().filter(|f| f.0 == t && f.1 == i).map(|f| 64 + 8 * i64::from(f.2.max(64))),
                );
                starts[i] |= ready(&queue[i]) && state[i] == State::Quiet;
            }
            for i in 0..n {
                if starts[i] {
                    own[i] = Some((past.len(), t + queue[i][0], false));
                    past.push(Past { from: i, began: t, ended: None });
                    attempts[i] += 1;
                    state[i] = State::Busy { own: true };
                    log.push((t, i, "started"));
                }
            }
            for i in 0..n {
                let begins = present(&past, i, true);
                if let Some((index, _, false)) = own[i]
                    && (begins || (starts[i] && present(&past, i, false)))
                {
                    own[i] = Some((index, t.max(past[index].began + 64) + 32, true));
                    late[i] = t - past[index].began > 512;
                    log.push((t, i, "collided"));
                }
                match state[i] {
                    State::Quiet if begins => state[i] = State::Busy { own: false },
                    State::Gap { since, own: false } if begins && t < since + 64 => {
                        state[i] = State::Busy { own: false };
                    }
                    _ => {}
                }
            }
            past.retain(|p| p.ended.is_none_or(|ended| ended + 2_000 > t) || own.iter().any(Option::is_some));
            t += 1;
        }
        log.sort_unstable();
        log
    }
}

fn reported(log: &[Output<usize>]) -> Vec<(i64, usize, &'static str)> {
    let mut seen: Vec<_> = log
        .iter()
        .filter_map(|output| {
            let (at, station, what) = match *output {
                Output::Started { station, at, .. } => (at, station, "started"),
                Output::Collided { station, at, .. } => (at, station, "collided"),
                Output::DrawBackoff { station, at, .. } => (at, station, "backoff"),
                Output::Sent { station, at, .. } => (at, station, "sent"),
                Output::Dropped { station, at, .. } => (at, station, "dropped"),
                Output::Received { .. } | Output::Garbled { .. } => return None,
            };
            Some(((at - RunTime::ZERO).as_picos() / RATE.bit().as_picos(), station, what))
        })
        .collect();
    seen.sort_unstable();
    seen
}

fn frames(stations: usize) -> impl Strategy<Value = Vec<(i64, usize, u16)>> {
    let gap = prop_oneof![3 => Just(0_i64), 2 => 0..40_i64, 1 => 0..1_500_i64];
    prop::collection::vec((gap, 0..stations, 0_u16..200), 1..25).prop_map(|steps| {
        let mut now = 0;
        steps
            .into_iter()
            .map(|(gap, station, len)| {
                now += gap;
                (now, station, len)
            })
            .collect()
    })
}

/// Draws that depend on the station and its count of draws only, so that two implementations draw alike.
fn draws(seed: u64) -> impl FnMut(usize, u16) -> u16 {
    let mut count = [0_u64; 8];
    move |station, limit| {
        count[station] += 1;
        let mixed = (seed ^ (station as u64) << 32 ^ count[station]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as u16 % limit
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_frame_has_one_fate_and_none_overlap(
        (delays, frames) in prop::collection::vec(0_i64..=128, 2..6)
            .prop_flat_map(|delays| { let n = delays.len(); (Just(delays), frames(n)) }),
        seed in any::<u64>(),
    ) {
        let hub = hub(&delays);
        prop_assert!(hub.holds_collision_window());
        let log = run(hub, &frames, draws(seed));
        prop_assert_eq!(breach(&delays, frames.len(), &log), None);
    }

    #[test]
    fn the_medium_agrees_with_a_look_at_every_bit(
        (delays, frames) in prop::collection::vec(prop_oneof![0_i64..=128, 0_i64..=500], 2..6)
            .prop_flat_map(|delays| { let n = delays.len(); (Just(delays), frames(n)) }),
        seed in any::<u64>(),
    ) {
        let log = run(hub(&delays), &frames, draws(seed));
        prop_assert_eq!(reported(&log), oracle::run(&delays, &frames, draws(seed)));
    }
}

#[test]
fn wrong_media_are_found_out() {
    let delays = [400, 400];
    // Beyond the window: a short frame is over before the collision comes back.
    let wide = run(hub(&delays), &[(0, 0, 64), (700, 1, 64)], |_, _| 0);
    assert!(breach(&delays, 2, &wide).is_some());
    let fair = run(hub(&[10, 20]), &[(0, 0, 64), (0, 1, 64), (3, 0, 64)], draws(1));
    assert_eq!(breach(&[10, 20], 3, &fair), None);
    for at in 0..fair.len() {
        if matches!(fair[at], Output::Sent { .. } | Output::Received { .. }) {
            let mut missing = fair.clone();
            missing.remove(at);
            assert!(breach(&[10, 20], 3, &missing).is_some(), "without {:?}", fair[at]);
        }
    }
    let mut eager = fair.clone();
    for output in &mut eager {
        if let Output::Started { at, attempt: 2, .. } = output {
            *at = *at - RATE.bits(400);
        }
    }
    assert!(breach(&[10, 20], 3, &eager).is_some());
}
