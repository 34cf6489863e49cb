//! Credits and gates in closed form, and beside a count of every byte that owes nothing to the algorithm.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use wg_frame::ethernet::MacAddress;

use super::*;
use crate::clock::{DisciplinedClock, TrueTime};
use crate::frame::{Handle, Marks, NetworkId, TrafficClass};
use crate::line::LineRate;
use crate::oscillator::{FrequencyOffset, Oscillator};
use crate::port::{Effect, FragmentEdge, NodeShared, Port, PortConfig, Transmission};
use crate::queue::Capacity;
use crate::selection::{
    AsynchronousConfig, GateEntry, GateList, HoldAdvances, MacOperation, SchedulerConfig,
};

/// Transmission time of a byte at 1 Gbit/s, ps.
const BYTE: i64 = 8_000;

mod credit;
mod hold;

/// A frame that comes: when, in bytes of the line; its priority; its length.
type Arrival = (i64, u8, u16);

fn frame(number: usize, priority: u8, length: u16) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length,
        vlan: 0,
        virtual_link: 0,
        handle: Handle(number as u64),
        priority,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

/// On the wire, with preamble and gap.
fn bytes_on_wire(length: u16) -> i64 {
    i64::from(length.max(64)) + 20
}

/// When frames begin, in picoseconds, by number. `answers_late`: the driver tells the end of a transmission when it is
/// there.
fn begun(slopes: &[Option<u64>; PRIORITIES], arrivals: &[Arrival], answers_late: bool) -> Vec<(i64, u64)> {
    run(with(*slopes, None), arrivals, TrueTime, answers_late)
}

fn with(idle_slopes: [Option<u64>; PRIORITIES], gates: Option<Gates>) -> TrafficClassConfig {
    let longest_frames = [u16::MAX; PRIORITIES];
    TrafficClassConfig {
        idle_slopes,
        longest_frames,
        gates,
        guard: Guard::Length,
        preemption: None,
        asynchronous: [const { None }; PRIORITIES],
        cyclic: None,
    }
}

/// Gates of a list of entries, lengths in bytes of the line.
fn gates(entries: &[(u8, i64)]) -> Option<Gates> {
    let entry = |&(open, length): &(u8, i64)| GateEntry {
        open,
        length: Span::from_picos(length * BYTE),
        mac: MacOperation::Unchanged,
    };
    let entries = entries.iter().map(entry).collect();
    Some(Gates::new(&[GateList { base: LocalTime::ZERO, extension: Span::ZERO, entries }]).unwrap())
}

fn run<C: LocalClock>(
    config: TrafficClassConfig,
    arrivals: &[Arrival],
    clock: C,
    answers_late: bool,
) -> Vec<(i64, u64)> {
    driven(config, arrivals, clock, answers_late).0
}

/// The same, with the port and its device as they are then.
fn driven<C: LocalClock>(
    config: TrafficClassConfig,
    arrivals: &[Arrival],
    clock: C,
    answers_late: bool,
) -> (Vec<(i64, u64)>, Port<TrafficClasses>, NodeShared<C>) {
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let mut port =
        Port::new(PortConfig::strict_priority(LineRate::GIGABIT, capacity), TrafficClasses::new(config));
    let mut device = NodeShared::new(capacity, clock);
    let mut all = Vec::new();
    let mut owed: Option<(RunTime, Transmission)> = None;
    let mut coming = arrivals.iter().enumerate().peekable();
    loop {
        let arrival = coming.peek().map(|(_, (at, ..))| RunTime::from_picos(at * BYTE));
        let deadline = port.next_deadline(&device).instant();
        let end = owed.as_ref().map(|(end, _)| *end);
        let Some(now) = [arrival, deadline, end].into_iter().flatten().min() else {
            return (all, port, device);
        };
        if end == Some(now)
            && let Some((end, transmission)) = owed.take()
        {
            port.handle_line_free(transmission, end);
            continue;
        }
        let mut begins = None;
        let effect = &mut |effect| match effect {
            Effect::Transmit { frame, transmission } => begins = Some((frame, transmission)),
            other => panic!("there is room: {other:?}"),
        };
        if arrival == Some(now)
            && let Some((number, (_, priority, length))) = coming.next()
        {
            port.handle_frame(now, frame(number, *priority, *length), &mut device, effect);
        } else {
            port.handle_deadline(now, &mut device, effect);
        }
        if let Some((frame, transmission)) = begins {
            all.push((now.as_picos(), frame.handle.0));
            let end = now + LineRate::GIGABIT.occupation(frame.length);
            if answers_late {
                owed = Some((end, transmission));
            } else {
                port.handle_line_free(transmission, end);
            }
        }
    }
}

const A: usize = 3;

fn shaped(queue: usize, percent: u64) -> [Option<u64>; PRIORITIES] {
    let mut slopes = [None; PRIORITIES];
    slopes[queue] = Some(percent * 10_000_000);
    slopes
}

#[test]
fn a_backlog_leaves_at_the_idle_slope() {
    // 1000 B on the wire at 30 % of the line: one every 3333 1/3 B, rounded up to the picosecond.
    let burst: Vec<Arrival> = (0..40).map(|_| (0, 3, 980)).collect();
    for (number, (at, _)) in begun(&shaped(A, 30), &burst, false).into_iter().enumerate() {
        let exact = i128::try_from(number).unwrap() * 1_000 * i128::from(BYTE) * 10;
        assert_eq!(i128::from(at), (exact + 2) / 3);
    }
}

#[test]
fn credit_gathered_behind_another_frame_is_spent_in_a_burst_and_lost_when_nothing_waits() {
    // A frame of best effort of 1518 B is on the wire when shaped frames come: they gain 1538 B · 50 % of credit
    // (hiCredit of Annex L), which is worth frames of 100 B (50 B each) back to back until it is below zero.
    let mut arrivals: Vec<Arrival> = vec![(0, 0, 1_518)];
    arrivals.extend((0..30).map(|_| (0, 3, 80)));
    let all = begun(&shaped(A, 50), &arrivals, false);
    let starts: Vec<i64> = all.iter().skip(1).map(|(at, _)| at / BYTE).collect();
    // 769 B of credit: the 16th begins with 19 B of it, the 17th has to wait until the other 31 B are back.
    assert_eq!(
        starts[..17],
        (0..17).map(|k| 1_538 + 100 * k + if k == 16 { 62 } else { 0 }).collect::<Vec<_>>()
    );
    // Where they are one frame only, what is left is lost: the next backlog begins with nothing.
    let mut arrivals: Vec<Arrival> = vec![(0, 0, 1_518), (0, 3, 80), (5_000, 3, 80)];
    arrivals.extend((0..3).map(|_| (5_000, 3, 80)));
    let all = begun(&shaped(A, 50), &arrivals, false);
    let starts: Vec<i64> = all.iter().map(|(at, _)| at / BYTE).collect();
    assert_eq!(starts, [0, 1_538, 5_000, 5_200, 5_400, 5_600]);
}

#[test]
fn what_is_not_shaped_goes_by_priority_and_fills_the_pauses() {
    let arrivals = [(0, 3, 980), (1, 3, 980), (1, 0, 230), (1, 7, 230)];
    let all = begun(&shaped(A, 50), &arrivals, false);
    let of: Vec<(i64, u64)> = all.iter().map(|(at, number)| (at / BYTE, *number)).collect();
    assert_eq!(of, [(0, 0), (1_000, 3), (1_250, 2), (2_000, 1)]);
}

/// Bits of the open gates by byte of the line.
type Opened = dyn Fn(i64) -> u8;

/// Counts every byte: the state of each queue is kept from one byte of the line to the next, in hundredths of a byte.
fn counted(percents: &[Option<i64>; PRIORITIES], arrivals: &[Arrival], opened: &Opened) -> Vec<(i64, u64)> {
    counted_with(percents, arrivals, opened, |_, _| {})
}

/// The same; told the credits at the beginning of every byte, up to the end of the last frame.
fn counted_with(
    percents: &[Option<i64>; PRIORITIES],
    arrivals: &[Arrival],
    opened: &Opened,
    mut told: impl FnMut(i64, &[i64; PRIORITIES]),
) -> Vec<(i64, u64)> {
    let mut waiting: Vec<VecDeque<(u64, u16)>> = vec![VecDeque::new(); PRIORITIES];
    let mut credit = [0_i64; PRIORITIES];
    let (mut on_wire, mut left): (Option<usize>, i64) = (None, 0);
    let (mut all, mut next, mut byte) = (Vec::new(), 0, 0);
    while all.len() < arrivals.len() || left > 0 {
        told(byte, &credit);
        if left == 0 {
            on_wire = None;
        }
        for queue in 0..PRIORITIES {
            if on_wire != Some(queue) && waiting[queue].is_empty() {
                credit[queue] = credit[queue].min(0);
            }
        }
        while next < arrivals.len() && arrivals[next].0 == byte {
            let (_, priority, length) = arrivals[next];
            waiting[usize::from(priority)].push_back((next as u64, length));
            next += 1;
        }
        if on_wire.is_none() {
            let admitted = |queue: &usize| {
                let (_, length) = waiting[*queue][0];
                let through = byte..byte + bytes_on_wire(length) - 12;
                (percents[*queue].is_none() || credit[*queue] >= 0)
                    && through.into_iter().all(|byte| opened(byte) >> *queue & 1 == 1)
            };
            let turn = (0..PRIORITIES).rev().filter(|queue| !waiting[*queue].is_empty()).find(admitted);
            if let Some(queue) = turn
                && let Some((number, length)) = waiting[queue].pop_front()
            {
                all.push((byte * BYTE, number));
                (on_wire, left) = (Some(queue), bytes_on_wire(length));
            }
        }
        for queue in 0..PRIORITIES {
            let Some(percent) = percents[queue] else { continue };
            if on_wire == Some(queue) {
                credit[queue] -= 100 - percent;
            } else if opened(byte) >> queue & 1 == 1 && (!waiting[queue].is_empty() || credit[queue] < 0) {
                credit[queue] += percent;
            }
        }
        left = (left - 1).max(0);
        byte += 1;
    }
    told(byte, &credit);
    all
}

proptest! {
    #[test]
    fn frames_begin_where_a_count_of_every_byte_has_them(
        gaps in proptest::collection::vec((1_i64..400, 0_u8..4, 20_u16..1_500), 1..60),
        // Of these shares a credit comes back to zero on a whole byte.
        slopes in proptest::collection::vec(
            prop_oneof![Just(None), Just(Some(10)), Just(Some(20)), Just(Some(25)), Just(Some(50))], 4,
        ),
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
        let mut percents = [None; PRIORITIES];
        percents[..4].copy_from_slice(&slopes);
        let idle = percents.map(|percent| percent.map(|percent: i64| percent.unsigned_abs() * 10_000_000));
        prop_assert_eq!(begun(&idle, &arrivals, answers_late), counted(&percents, &arrivals, &|_| u8::MAX));
    }

    #[test]
    fn behind_gates_they_begin_where_the_count_has_them(
        gaps in proptest::collection::vec((1_i64..2_500, 0_u8..4, 20_u16..1_500), 1..60),
        slopes in proptest::collection::vec(
            prop_oneof![Just(None), Just(Some(10)), Just(Some(20)), Just(Some(25)), Just(Some(50))], 4,
        ),
        // Open always, in the first half of a cycle, in the second.
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
        // What is open half the time and is to rise by so much then has half of it over the cycle.
        let mut idle = percents.map(|percent| percent.map(|percent: i64| percent.unsigned_abs() * 10_000_000));
        for queue in 0..4 {
            if open[queue] != 0 {
                idle[queue] = idle[queue].map(|slope| slope / 2);
            }
        }
        let config = with(idle, gates(&[(first, half), (second, half)]));
        prop_assert_eq!(run(config, &arrivals, TrueTime, answers_late), counted(&percents, &arrivals, &opened));
    }
}

#[test]
fn gates_isolate_a_queue_and_go_by_the_clock_of_the_device() {
    // 2000 B for queue 7, 8000 B for the rest. Queue 7 is never more than a cycle behind, whatever the others do.
    let list = [(0x80, 2_000), (0x7f, 8_000)];
    let mut arrivals: Vec<Arrival> = (0..50).map(|_| (0, 0, 1_518)).collect();
    arrivals.extend((0..5).map(|k| (10_000 * k + 9_000, 7, 64)));
    arrivals.sort_by_key(|(at, ..)| *at);
    let urgent = |all: &[(i64, u64)]| -> Vec<i64> {
        let is_urgent = |number: u64| arrivals[usize::try_from(number).unwrap()].1 == 7;
        all.iter().filter(|(_, number)| is_urgent(*number)).map(|(at, _)| *at).collect()
    };
    let all = run(with([None; PRIORITIES], gates(&list)), &arrivals, TrueTime, false);
    assert_eq!(urgent(&all), (1..6).map(|k| 10_000 * k * BYTE).collect::<Vec<_>>());
    // Others begin from 2000 B on and are through by 10 000 B: five of 1526 B with gaps of 12 B.
    let others: Vec<i64> = all.iter().map(|(at, _)| at / BYTE).filter(|at| *at < 10_000).collect();
    assert_eq!(others, [2_000, 3_538, 5_076, 6_614, 8_152]);
    // A clock 10 % fast opens the gate so much earlier, rounded up to the picosecond.
    let fast = FrequencyOffset::from_ppb(100_000_000).unwrap();
    let clock = DisciplinedClock::new(Oscillator::new(fast), Span::ZERO, Span::from_picos(1)).unwrap();
    let all = run(with([None; PRIORITIES], gates(&list)), &arrivals, clock, false);
    assert_eq!(urgent(&all)[0], (10_000 * BYTE * 10).div_euclid(11) + 1);
}

#[test]
fn a_guard_band_holds_short_frames_too_and_long_ones_reach_beyond_it() {
    let list = [(0x01, 5_000), (0x80, 5_000)];
    let arrivals = [(3_000, 0, 64), (4_600, 0, 64), (4_900, 0, 64), (10_000, 0, 1_518), (14_499, 0, 1_518)];
    let of = |guard: Guard| -> Vec<i64> {
        let config = TrafficClassConfig { guard, ..with([None; PRIORITIES], gates(&list)) };
        run(config, &arrivals, TrueTime, false).iter().map(|(at, _)| at / BYTE).collect()
    };
    // Frames of 72 B with their preamble, and of 1526 B.
    assert_eq!(of(Guard::Length), [3_000, 4_600, 4_900, 10_000, 20_000]);
    assert_eq!(of(Guard::Band(Span::from_picos(500 * BYTE))), [3_000, 10_000, 10_084, 10_168, 14_499]);
}

#[test]
fn frames_longer_than_their_class_allows_are_dropped() {
    let mut config = with([None; PRIORITIES], None);
    config.longest_frames[3] = 100;
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let mut port =
        Port::new(PortConfig::strict_priority(LineRate::GIGABIT, capacity), TrafficClasses::new(config));
    let mut device = NodeShared::new(capacity, TrueTime);
    let mut dropped = Vec::new();
    for (number, (priority, length)) in [(3, 101), (2, 101), (3, 100)].into_iter().enumerate() {
        port.handle_frame(RunTime::ZERO, frame(number, priority, length), &mut device, &mut |effect| {
            if let Effect::Drop { frame, cause } = effect {
                dropped.push((frame.handle.0, cause));
            }
        });
    }
    assert_eq!(dropped, [(0, Cause::Filtered)]);
}

/// What a line does: a frame begins, is cut, goes on or is through, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Begins(u64),
    Cut(u64),
    GoesOn(u64),
    Through(u64),
}

/// All that happens on the line of a port with preemption, in bytes of the line. A cut is told when it is decided.
fn fragments(config: TrafficClassConfig, arrivals: &[Arrival]) -> Vec<(i64, Line)> {
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let mut port =
        Port::new(PortConfig::strict_priority(LineRate::GIGABIT, capacity), TrafficClasses::new(config));
    let mut device = NodeShared::new(capacity, TrueTime);
    let (mut all, mut through) = (Vec::new(), None::<(RunTime, u64)>);
    let mut coming = arrivals.iter().enumerate().peekable();
    loop {
        let arrival = coming.peek().map(|(_, (at, ..))| RunTime::from_picos(at * BYTE));
        let deadline = port.next_deadline(&device).instant();
        let end = through.map(|(at, _)| at);
        let Some(now) = [arrival, deadline, end].into_iter().flatten().min() else { return all };
        if end == Some(now)
            && let Some((_, number)) = through.take()
        {
            all.push((now.as_picos() / BYTE, Line::Through(number)));
            continue;
        }
        let mut told = Vec::new();
        let effect = &mut |effect| told.push(effect);
        if arrival == Some(now)
            && let Some((number, (_, priority, length))) = coming.next()
        {
            port.handle_frame(now, frame(number, *priority, *length), &mut device, effect);
        } else {
            port.handle_deadline(now, &mut device, effect);
        }
        let byte = now.as_picos() / BYTE;
        for effect in told {
            let (line, bytes, transmission) = match effect {
                Effect::Transmit { frame, transmission } => {
                    (Line::Begins(frame.handle.0), frame.length.max(64), transmission)
                }
                Effect::Fragment { frame, edge: FragmentEdge::Continue { left, transmission } } => {
                    (Line::GoesOn(frame.handle.0), left, transmission)
                }
                Effect::Fragment { frame, edge: FragmentEdge::Cut { instead_of } } => {
                    let (end, number) = through.take().expect("it is on the wire");
                    assert_eq!((instead_of, number), (end + LineRate::GIGABIT.time_of(12), frame.handle.0));
                    all.push((byte, Line::Cut(number)));
                    continue;
                }
                other => panic!("there is room: {other:?}"),
            };
            let (Line::Begins(number) | Line::GoesOn(number)) = line else { unreachable!("only these") };
            all.push((byte, line));
            let end = now + LineRate::GIGABIT.time_of(8 + u32::from(bytes));
            through = Some((end, number));
            port.handle_line_free(transmission, end + LineRate::GIGABIT.time_of(12));
        }
    }
}

/// On the wire: the number, its priority, bytes left when the fragment began, bytes of it that are gone.
struct Going {
    number: u64,
    priority: u8,
    left: i64,
    gone: i64,
    /// Where it is cut, in bytes of the frame.
    cut: Option<i64>,
}

/// The same counted byte by byte, with one list of frames that wait for each priority.
/// `holds` says of each byte whether the MAC has been told to hold.
fn fragments_counted(
    express: u8,
    least: i64,
    arrivals: &[Arrival],
    holds: &dyn Fn(i64) -> bool,
) -> Vec<(i64, Line)> {
    let mut waiting: Vec<VecDeque<(u64, i64)>> = vec![VecDeque::new(); PRIORITIES];
    let (mut going, mut cut, mut free) = (None::<Going>, None::<(u64, u8, i64)>, 0);
    let (mut all, mut next, mut done, mut byte) = (Vec::new(), 0, 0, 0);
    while done < arrivals.len() {
        if let Some(now) = &mut going {
            let end = now.cut.map_or(now.left, |cut| cut + 4);
            if now.gone == 8 + end {
                match now.cut {
                    None => {
                        all.push((byte, Line::Through(now.number)));
                        done += 1;
                    }
                    Some(bytes) => cut = Some((now.number, now.priority, now.left - bytes)),
                }
                (going, free) = (None, byte + 12);
            }
        }
        while next < arrivals.len() && arrivals[next].0 == byte {
            let (_, priority, length) = arrivals[next];
            waiting[usize::from(priority)].push_back((next as u64, i64::from(length.max(64))));
            next += 1;
        }
        let is_express = |priority: u8| priority >= express;
        let urgent = (express..8).any(|priority| !waiting[usize::from(priority)].is_empty());
        if let Some(now) = &mut going {
            let at = (now.gone - 8).max(0).max(least - 4);
            if (urgent || holds(byte))
                && !is_express(now.priority)
                && now.cut.is_none()
                && at + 60 <= now.left - 4
            {
                now.cut = Some(at);
                all.push((byte, Line::Cut(now.number)));
            }
        } else if byte >= free {
            let turn = |priority: &u8| {
                !waiting[usize::from(*priority)].is_empty()
                    && (is_express(*priority) || cut.is_none() && !holds(byte))
            };
            if let Some(priority) = (0..8).rev().find(turn)
                && let Some((number, left)) = waiting[usize::from(priority)].pop_front()
            {
                all.push((byte, Line::Begins(number)));
                going = Some(Going { number, priority, left, gone: 0, cut: None });
            } else if let Some((number, priority, left)) = cut.take_if(|_| !holds(byte)) {
                all.push((byte, Line::GoesOn(number)));
                going = Some(Going { number, priority, left, gone: 0, cut: None });
            }
        }
        if let Some(now) = &mut going {
            now.gone += 1;
        }
        byte += 1;
    }
    all
}

const UNTOLD: HoldAdvances = HoldAdvances { hold: Span::ZERO, release: Span::ZERO };

fn preempting(queues: u8, shortest_fragment: u16) -> TrafficClassConfig {
    TrafficClassConfig {
        preemption: Some(Preemption { queues, shortest_fragment, advances: UNTOLD }),
        ..with([None; PRIORITIES], None)
    }
}

#[test]
fn an_express_frame_waits_for_143_bytes_at_most_and_a_cut_costs_24() {
    // A frame of 123 B is never cut: 8 + 123 + 12 B.
    for (length, waits) in [(123_u16, 142_i64), (124, 83), (1_518, 83)] {
        // It comes a byte after the first bit of the other's preamble.
        let all = fragments(preempting(0x0f, 64), &[(0, 0, length), (1, 7, 64)]);
        let begins = all.iter().find(|(_, line)| *line == Line::Begins(1)).expect("it is sent").0;
        assert_eq!(begins - 1, waits, "{length}: 8 + 60 + 4 + 12 B, of which one is gone");
    }
    let all = fragments(preempting(0x0f, 64), &[(0, 0, 1_518), (500, 7, 64)]);
    let of: Vec<(i64, Line)> = all;
    // 492 B of the frame are gone, then 4 B of check and the gap; 84 B of the express frame; preamble and 1026 B.
    let begins = 500 + 4 + 12;
    assert_eq!(
        of,
        [
            (0, Line::Begins(0)),
            (500, Line::Cut(0)),
            (begins, Line::Begins(1)),
            (begins + 72, Line::Through(1)),
            (begins + 84, Line::GoesOn(0)),
            (begins + 84 + 8 + 1_026, Line::Through(0)),
        ]
    );
    assert_eq!(of[5].0, 8 + 1_518 + 84 + 24, "24 B more than one after the other");
}

#[test]
fn of_all_lengths_and_instants_no_express_frame_waits_longer_than_the_bound() {
    let mut longest = 0;
    for length in (64_u16..=400).chain([1_000, 1_518, 1_522]) {
        for at in 0..i64::from(length) + 20 {
            let all = fragments(preempting(0x01, 64), &[(0, 0, length), (at, 7, 64)]);
            let begins = all.iter().find(|(_, line)| *line == Line::Begins(1)).expect("it is sent").0;
            longest = longest.max(begins - at);
        }
    }
    // The whole of 8 + 123 + 12 B, less nothing: it comes at the instant the other began, a moment after it.
    assert_eq!(longest, 143);
}

#[test]
fn a_gate_that_opens_makes_the_frame_in_progress_give_way() {
    // Express queue 7 opens at 1000 B; a preemptable frame of 1500 B began at 0. Its gate is always open.
    let config = TrafficClassConfig { gates: gates(&[(0x01, 1_000), (0x81, 1_000)]), ..preempting(0x01, 64) };
    let all = fragments(config, &[(0, 0, 1_500), (10, 7, 64)]);
    assert_eq!(all[1..3], [(1_000, Line::Cut(0)), (1_016, Line::Begins(1))]);
}

proptest! {
    #[test]
    fn fragments_are_where_a_count_of_every_byte_has_them(
        gaps in proptest::collection::vec((0_i64..700, 0_u8..8, 20_u16..1_522), 1..60),
        express in 1_u8..8,
        shortest in prop_oneof![Just(64_u16), Just(128), Just(192), Just(256)],
    ) {
        let mut at = 0;
        let arrivals: Vec<Arrival> = gaps.iter().map(|(gap, priority, length)| {
            at += gap;
            (at, *priority, *length)
        }).collect();
        // Of frames that come at one instant to an idle port the first is taken.
        let mut seen = alloc::collections::BTreeSet::new();
        let arrivals: Vec<Arrival> = arrivals.into_iter().filter(|(at, ..)| seen.insert(*at)).collect();
        let queues = (1_u8 << express) - 1;
        prop_assert_eq!(
            fragments(preempting(queues, shortest), &arrivals),
            fragments_counted(express, i64::from(shortest), &arrivals, &|_| false)
        );
    }
}

/// Schedulers for streams of VLAN 1 to 3 with so many percent of the line and bursts of so many bytes.
fn shaped_streams(streams: &[(u64, u64, u16)], longest_residence: i64) -> TrafficClassConfig {
    let scheduler = |(vlan, &(percent, burst, group)): (u16, &(u64, u64, u16))| SchedulerConfig {
        destination: MacAddress::BROADCAST,
        vlan,
        rate: percent * 10_000_000,
        burst: 8 * burst,
        group,
    };
    let mut config = with([None; PRIORITIES], None);
    config.asynchronous[3] = Some(AsynchronousConfig {
        schedulers: (1..).zip(streams).map(scheduler).collect(),
        longest_residence: Span::from_picos(longest_residence * BYTE),
    });
    config
}

/// When frames of VLANs begin, in bytes of the line, by number; those that are dropped do not.
fn begun_of(config: TrafficClassConfig, arrivals: &[(i64, u16, u16)]) -> Vec<(i64, u64)> {
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let mut port =
        Port::new(PortConfig::strict_priority(LineRate::GIGABIT, capacity), TrafficClasses::new(config));
    let mut device = NodeShared::new(capacity, TrueTime);
    let mut all = Vec::new();
    let mut coming = arrivals.iter().enumerate().peekable();
    loop {
        let arrival = coming.peek().map(|(_, (at, ..))| RunTime::from_picos(at * BYTE));
        let deadline = port.next_deadline(&device).instant();
        let Some(now) = [arrival, deadline].into_iter().flatten().min() else { return all };
        let mut begins = None;
        let effect = &mut |effect| {
            if let Effect::Transmit { frame, transmission } = effect {
                begins = Some((frame, transmission));
            }
        };
        if arrival == Some(now)
            && let Some((number, (_, vlan, length))) = coming.next()
        {
            let frame = Frame { vlan: *vlan, ..frame(number, 3, *length) };
            port.handle_frame(now, frame, &mut device, effect);
        } else {
            port.handle_deadline(now, &mut device, effect);
        }
        if let Some((frame, transmission)) = begins {
            all.push(((now.as_picos() + BYTE / 2) / BYTE, frame.handle.0));
            port.handle_line_free(transmission, now + LineRate::GIGABIT.occupation(frame.length));
        }
    }
}

#[test]
fn a_burst_within_the_bucket_passes_and_the_rest_waits_for_its_tokens() {
    // 100 B on the wire each, 10 % of the line: a bucket of 300 B lets three through at once, then one each 1000 B.
    let arrivals: Vec<(i64, u16, u16)> = (0..6).map(|_| (0, 1, 80)).collect();
    let all = begun_of(shaped_streams(&[(10, 300, 0)], 1_000_000), &arrivals);
    assert_eq!(all, [(0, 0), (100, 1), (200, 2), (1_000, 3), (2_000, 4), (3_000, 5)]);
    // No frame waits for more than 2500 B: the last is dropped.
    let all = begun_of(shaped_streams(&[(10, 300, 0)], 2_500), &arrivals);
    assert_eq!(all, [(0, 0), (100, 1), (200, 2), (1_000, 3), (2_000, 4)]);
}

#[test]
fn a_group_keeps_its_order_and_groups_overtake_one_another() {
    // The second frame of stream 1 waits for 1000 B, and with it what comes after it in its group.
    let arrivals = [(0, 1, 80), (10, 1, 80), (20, 2, 80)];
    let of =
        |second: u16| begun_of(shaped_streams(&[(10, 100, 0), (50, 1_000, second)], 1_000_000), &arrivals);
    assert_eq!(of(0), [(0, 0), (1_000, 1), (1_100, 2)]);
    assert_eq!(of(1), [(0, 0), (100, 2), (1_000, 1)]);
}

/// The procedure of 8.6.11.3.2 in fractions of a byte, stream by stream: no rounding, no queue.
fn eligible_in_words(streams: &[(i64, i64)], arrivals: &[(i64, usize, i64)]) -> Vec<i64> {
    // Times in hundredths of a byte of the line; a rate of p percent sends a byte in 100 / p of them.
    let mut empty: Vec<i64> = streams.iter().map(|(percent, burst)| -burst * 10_000 / percent).collect();
    let mut last = i64::MIN;
    arrivals
        .iter()
        .map(|&(at, stream, bytes)| {
            let (percent, burst) = streams[stream];
            let recovery = bytes * 10_000 / percent;
            let (scheduler, full) = (empty[stream] + recovery, empty[stream] + burst * 10_000 / percent);
            let eligible = (at * 100).max(last).max(scheduler);
            last = eligible;
            empty[stream] = if eligible < full { scheduler } else { scheduler + eligible - full };
            eligible
        })
        .collect()
}

proptest! {
    #[test]
    fn frames_of_a_group_begin_as_the_procedure_has_them(
        gaps in proptest::collection::vec((0_i64..3_000, 0_usize..3, 20_u16..1_500), 1..60),
        streams in proptest::collection::vec((prop_oneof![Just(5_u64), Just(10), Just(20), Just(25)], 1_600_u64..9_000), 3),
    ) {
        let mut at = 0;
        let arrivals: Vec<(i64, u16, u16)> = gaps.iter().map(|(gap, stream, length)| {
            at += gap;
            (at, u16::try_from(*stream).unwrap() + 1, *length)
        }).collect();
        let config: Vec<(u64, u64, u16)> = streams.iter().map(|(percent, burst)| (*percent, *burst, 0)).collect();
        let words: Vec<(i64, i64)> =
            streams.iter().map(|(percent, burst)| (percent.cast_signed(), burst.cast_signed())).collect();
        let in_words: Vec<(i64, usize, i64)> = arrivals.iter()
            .map(|(at, stream, length)| (*at, usize::from(*stream) - 1, bytes_on_wire(*length))).collect();
        let mut free = 0;
        let expected: Vec<(i64, u64)> = eligible_in_words(&words, &in_words).iter().zip(&in_words).zip(0..)
            .map(|((eligible, (_, _, bytes)), number)| {
                let begins = free.max(*eligible);
                free = begins + bytes * 100;
                ((begins + 50) / 100, number)
            }).collect();
        let all = begun_of(shaped_streams(&config, 1_000_000_000), &arrivals);
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn cyclic_queuing_sends_a_cycle_after_the_one_a_frame_came_in() {
    let cyclic = Cyclic { base: LocalTime::ZERO, cycle: Span::from_picos(5_000 * BYTE), queues: [2, 3] };
    let config = TrafficClassConfig {
        cyclic: Some(cyclic),
        ..with([None; PRIORITIES], Some(Gates::new(&[cyclic.gates()]).unwrap()))
    };
    let arrivals =
        [(0, 3, 980), (10, 2, 980), (4_999, 3, 80), (5_000, 3, 80), (9_000, 2, 80), (12_000, 3, 80)];
    let all = run(config, &arrivals, TrueTime, false);
    let of: Vec<(i64, u64)> = all.iter().map(|(at, number)| (at / BYTE, *number)).collect();
    assert_eq!(of, [(5_000, 0), (6_000, 1), (7_000, 2), (10_000, 3), (10_100, 4), (15_000, 5)]);
}
