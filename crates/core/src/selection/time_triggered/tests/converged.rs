//! Windows, virtual links and traffic classes at one port, beside a count of every byte that owes nothing to the
//! algorithm.

use alloc::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::clock::{LocalTime, TrueTime};
use crate::port::FragmentEdge;
use crate::queue::PRIORITIES;
use crate::selection::{
    GateEntry, GateList, Gates, Guard, HoldAdvances, MacOperation, Preemption, TrafficClassConfig,
    TrafficClasses,
};

/// Transmission time of a byte at 1 Gbit/s, ps.
const BYTE: i64 = 8_000;

/// What a frame is and which queue it waits in: classes, virtual links of low and high priority, the window.
const LOW_LINK: usize = 8;
const HIGH_LINK: usize = 9;
const SCHEDULED: usize = 10;

/// A frame that comes: when, in bytes of the line; its queue; its length.
type Arrival = (i64, usize, u16);

/// A window each period, in bytes of the line.
#[derive(Clone, Copy, Debug)]
struct Opens {
    offset: i64,
    length: i64,
    period: i64,
}

impl Opens {
    /// When the window that is open at a byte closes.
    fn closes(self, byte: i64) -> Option<i64> {
        let into = (byte - self.offset).rem_euclid(self.period);
        (into < self.length).then_some(byte - into + self.length)
    }

    /// When the next one opens, after a byte.
    fn next(self, byte: i64) -> i64 {
        byte + self.period - (byte - self.offset).rem_euclid(self.period)
    }

    fn config(self, integration: Integration) -> WindowConfig {
        let span = |bytes: i64| Span::from_picos(bytes * BYTE);
        let (offset, period, length) = (span(self.offset), span(self.period), span(self.length));
        let window = Window { flow: 7, offset, period, length, longest_frame: 200 };
        let rate = LineRate::GIGABIT.bits_per_second();
        let schedule = PortSchedule::new(period, vec![window], rate).expect("sound");
        WindowConfig { schedule, integration, raster: None, frames: 1_000, missed: Missed::Keep }
    }
}

fn frame_of(number: usize, queue: usize, length: u16) -> Frame {
    let (class, priority) = match queue {
        SCHEDULED => (TrafficClass::TimeTriggered, 7),
        HIGH_LINK => (TrafficClass::RateConstrained, 7),
        LOW_LINK => (TrafficClass::RateConstrained, 0),
        _ => (TrafficClass::BestEffort, queue as u8),
    };
    Frame { length, priority, ..frame(class, length, number as u32) }
}

/// On the wire, with preamble and gap.
fn bytes_on_wire(length: u16) -> i64 {
    i64::from(length.max(64)) + 20
}

fn classes(idle_slopes: [Option<u64>; PRIORITIES], gates: Option<Gates>) -> TrafficClassConfig {
    TrafficClassConfig {
        idle_slopes,
        longest_frames: [u16::MAX; PRIORITIES],
        gates,
        guard: Guard::Length,
        preemption: None,
        asynchronous: [const { None }; PRIORITIES],
        cyclic: None,
    }
}

/// What a line does: a frame begins, is cut off for good, is cut, goes on, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Begins(usize),
    Aborts(usize),
    Cut(usize),
    GoesOn(usize),
}

/// All that happens on the line of a port before a byte.
fn driven<S: TransmissionSelection>(selection: S, arrivals: &[Arrival], until: i64) -> Vec<(i64, Line)> {
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let own = core::array::from_fn(|priority| priority as u8);
    let config = PortConfig::converged(LineRate::GIGABIT, capacity, own, [None; PRIORITIES]);
    let (mut port, mut device) = (Port::new(config, selection), NodeShared::new(capacity, TrueTime));
    let (mut all, mut coming) = (Vec::new(), arrivals.iter().enumerate().peekable());
    loop {
        let arrival = coming.peek().map(|(_, (at, ..))| RunTime::from_picos(at * BYTE));
        let deadline = port.next_deadline(&device).instant();
        let Some(now) = arrival.into_iter().chain(deadline).min() else { return all };
        let byte = now.as_picos().div_euclid(BYTE);
        if byte >= until {
            return all;
        }
        let mut told = Vec::new();
        let effect = &mut |effect| told.push(effect);
        if arrival == Some(now)
            && let Some((number, (_, queue, length))) = coming.next()
        {
            port.handle_frame(now, frame_of(number, *queue, *length), &mut device, effect);
        } else {
            port.handle_deadline(now, &mut device, effect);
        }
        let line = LineRate::GIGABIT;
        for effect in told {
            let (what, lasts, transmission) = match effect {
                Effect::Transmit { frame, transmission } => {
                    (Line::Begins(frame.handle.0 as usize), line.occupation(frame.length), transmission)
                }
                Effect::Abort { frame, transmission } => {
                    (Line::Aborts(frame.handle.0 as usize), line.time_of(12), transmission)
                }
                Effect::Fragment { frame, edge: FragmentEdge::Continue { left, transmission } } => {
                    let lasts = line.time_of(8 + u32::from(left) + 12);
                    (Line::GoesOn(frame.handle.0 as usize), lasts, transmission)
                }
                Effect::Fragment { frame, edge: FragmentEdge::Cut { .. } } => {
                    all.push((byte, Line::Cut(frame.handle.0 as usize)));
                    continue;
                }
                other => panic!("there is room: {other:?}"),
            };
            assert_eq!(now.as_picos() % BYTE, 0, "frames begin on whole bytes");
            all.push((byte, what));
            port.handle_line_free(transmission, now + lasts);
        }
    }
}

/// What a byte of the line does to the credits.
fn pass_byte(
    credit: &mut [i64; PRIORITIES],
    percents: &[Option<i64>; PRIORITIES],
    sending: Option<usize>,
    open: impl Fn(usize) -> bool,
    waits: impl Fn(usize) -> bool,
) {
    for queue in 0..PRIORITIES {
        let Some(percent) = percents[queue] else { continue };
        if sending == Some(queue) {
            credit[queue] -= 100 - percent;
        } else if open(queue) && (waits(queue) || credit[queue] < 0) {
            credit[queue] += percent;
        }
    }
}

/// The same counted byte by byte. Credits of classes are in percent of the line, hundredths of a byte.
fn counted(
    percents: &[Option<i64>; PRIORITIES],
    (opens, integration): (Opens, Integration),
    arrivals: &[Arrival],
    gate: impl Fn(i64) -> u8,
    until: i64,
) -> Vec<(i64, Line)> {
    let mut waiting: Vec<VecDeque<(usize, u16)>> = vec![VecDeque::new(); SCHEDULED + 1];
    let mut credit = [0_i64; PRIORITIES];
    // Queue, number and length of what is on the wire, and how much of it is left; an aborted one has a gap of 12 bytes
    // left.
    let (mut on_wire, mut left) = (None::<(usize, usize, u16)>, 0_i64);
    let (mut all, mut next) = (Vec::new(), 0);
    for byte in 0..until {
        if left == 0 {
            on_wire = None;
        }
        for queue in 0..PRIORITIES {
            if on_wire.is_none_or(|(of, ..)| of != queue) && waiting[queue].is_empty() {
                credit[queue] = credit[queue].min(0);
            }
        }
        while next < arrivals.len() && arrivals[next].0 == byte {
            let (_, queue, length) = arrivals[next];
            waiting[queue].push_back((next, length));
            next += 1;
        }
        let window = opens.closes(byte).zip(waiting[SCHEDULED].front().copied());
        let due = |gap: i64| {
            window.is_some_and(|(closes, (_, length))| byte + gap + bytes_on_wire(length) <= closes)
        };
        if let Some((queue, number, length)) = on_wire {
            let going = queue != SCHEDULED && left > 12;
            if integration == Integration::Preemption && going && due(12) {
                all.push((byte, Line::Aborts(number)));
                waiting[queue].push_front((number, length));
                left = 12;
            }
        } else {
            let keeps_clear = |length| {
                integration != Integration::TimelyBlock || byte + bytes_on_wire(length) <= opens.next(byte)
            };
            let admitted = |queue: &usize| {
                let (_, length) = waiting[*queue][0];
                let mut through = byte..byte + bytes_on_wire(length) - 12;
                let passes = *queue >= PRIORITIES
                    || (percents[*queue].is_none() || credit[*queue] >= 0)
                        && through.all(|byte| gate(byte) >> *queue & 1 == 1);
                passes && keeps_clear(length)
            };
            let turn = if due(0) {
                Some(SCHEDULED)
            } else {
                (0..SCHEDULED).rev().filter(|queue| !waiting[*queue].is_empty()).find(admitted)
            };
            if let Some(queue) = turn
                && let Some((number, length)) = waiting[queue].pop_front()
            {
                all.push((byte, Line::Begins(number)));
                (on_wire, left) = (Some((queue, number, length)), bytes_on_wire(length));
            }
        }
        let sending = on_wire.map(|(of, ..)| of);
        let waits = |queue: usize| !waiting[queue].is_empty();
        pass_byte(&mut credit, percents, sending, |queue| gate(byte) >> queue & 1 == 1, waits);
        left = (left - 1).max(0);
    }
    all
}

const QUEUES_USED: [usize; 7] = [0, 1, 2, 3, LOW_LINK, HIGH_LINK, SCHEDULED];

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (1_i64..1_200, 0_usize..7, 20_u16..1_500);
    proptest::collection::vec(one, 1..60).prop_map(|gaps| {
        let mut at = 0;
        let frame = |(gap, which, length): (i64, usize, u16)| {
            at += gap;
            let queue = QUEUES_USED[which];
            (at, queue, if queue == SCHEDULED { 64 + length % 137 } else { length })
        };
        gaps.into_iter().map(frame).collect()
    })
}

fn opens() -> impl Strategy<Value = Opens> {
    (3_000_i64..9_000, 240_i64..1_500, any::<prop::sample::Index>()).prop_map(|(period, length, offset)| {
        let offset = offset.index(usize::try_from(period - length).expect("the window is shorter")) as i64;
        Opens { offset, length, period }
    })
}

fn integration() -> impl Strategy<Value = Integration> {
    prop_oneof![Just(Integration::TimelyBlock), Just(Integration::Shuffling), Just(Integration::Preemption)]
}

fn slopes() -> impl Strategy<Value = Vec<Option<i64>>> {
    // Of these shares a credit comes back to zero on a whole byte.
    let share = prop_oneof![Just(None), Just(Some(10)), Just(Some(20)), Just(Some(25)), Just(Some(50))];
    proptest::collection::vec(share, 4)
}

proptest! {
    #[test]
    fn all_classes_begin_where_a_count_of_every_byte_has_them(
        arrivals in arrivals(),
        (opens, integration) in (opens(), integration()),
        slopes in slopes(),
        // Open always, in the first half of a cycle, in the second; no gates at all.
        gated in any::<bool>(),
        open in proptest::collection::vec(0_u8..3, 4),
        half in 1_600_i64..5_000,
    ) {
        let mask = |part: u8| (0..4).filter(|&queue| open[queue] == 0 || open[queue] == part).fold(0, |m, q| m | 1 << q);
        let (first, second) = if gated { (mask(1), mask(2)) } else { (u8::MAX, u8::MAX) };
        let gate = |byte: i64| if byte.rem_euclid(2 * half) < half { first } else { second };
        let mut percents = [None; PRIORITIES];
        percents[..4].copy_from_slice(&slopes);
        let mut idle = percents.map(|percent| percent.map(|percent: i64| percent.unsigned_abs() * 10_000_000));
        for queue in (0..4).filter(|queue| gated && open[*queue] != 0) {
            idle[queue] = idle[queue].map(|slope| slope / 2);
        }
        let entry = |open| {
            GateEntry { open, length: Span::from_picos(half * BYTE), mac: MacOperation::Unchanged }
        };
        let list = GateList {
            base: LocalTime::ZERO,
            extension: Span::ZERO,
            entries: vec![entry(first), entry(second)],
        };
        let gates = gated.then(|| Gates::new(&[list]).expect("sound"));
        let others = TrafficClasses::new(classes(idle, gates));
        let until = arrivals.last().map_or(0, |(at, ..)| at + 60_000);
        let played = driven(TimeTriggered::with(opens.config(integration), others), &arrivals, until);
        prop_assert_eq!(played, counted(&percents, (opens, integration), &arrivals, gate, until));
    }

    /// Classes without shapers, gates and fragments are strict priority, to the instant.
    #[test]
    fn classes_that_ask_for_nothing_change_nothing(
        arrivals in arrivals(), (opens, integration) in (opens(), integration()),
    ) {
        let until = arrivals.last().map_or(0, |(at, ..)| at + 60_000);
        let others = TrafficClasses::new(classes([None; PRIORITIES], None));
        let converged = driven(TimeTriggered::with(opens.config(integration), others), &arrivals, until);
        let strict = driven(TimeTriggered::new(opens.config(integration)), &arrivals, until);
        prop_assert_eq!(converged, strict);
    }

    /// To what is sent in fragments a frame that comes to its window is an express one. Under timely block none is in
    /// its way.
    #[test]
    fn fragments_give_way_to_windows(
        mut arrivals in arrivals(), opens in opens(), blocks in any::<bool>(), links in any::<bool>(), least in 0_u16..4,
    ) {
        // Virtual links are express, too, and are sent whole: behind one of them a window waits for longer.
        for (_, queue, _) in arrivals.iter_mut().filter(|_| !links) {
            *queue = if [LOW_LINK, HIGH_LINK].contains(queue) { 3 } else { *queue };
        }
        let integration = if blocks { Integration::TimelyBlock } else { Integration::Shuffling };
        let advances = HoldAdvances { hold: Span::ZERO, release: Span::ZERO };
        let shortest_fragment = 64 * (least + 1);
        let preemption = Some(Preemption { queues: 0x0f, shortest_fragment, advances });
        let others = TrafficClasses::new(TrafficClassConfig { preemption, ..classes([None; PRIORITIES], None) });
        let until = arrivals.last().map_or(0, |(at, ..)| at + 200_000);
        let all = driven(TimeTriggered::with(opens.config(integration), others), &arrivals, until);
        let queue = |number: usize| arrivals[number].1;
        let mut scheduled = arrivals.iter().filter(|(_, queue, _)| *queue == SCHEDULED);
        let mut line_free = 0;
        for (begins, number) in all.iter().filter_map(|(at, line)| match line {
            Line::Begins(number) if queue(*number) == SCHEDULED => Some((*at, *number)),
            _ => None,
        }) {
            let (came, _, length) = *scheduled.next().expect("it came");
            prop_assert_eq!((came, length), (arrivals[number].0, arrivals[number].2), "in their order");
            let closes = opens.closes(begins).expect("it is open");
            prop_assert!(begins + bytes_on_wire(length) <= closes);
            // One that waits as its window opens finds a fragment on the line at most, and under timely block nothing.
            let (from, most) = (came.max(line_free), if blocks { 0 } else { i64::from(79 + shortest_fragment) });
            let ready = opens.next(from - 1);
            if !links && opens.closes(from).is_none() && most + bytes_on_wire(length) <= opens.length {
                prop_assert!(begins - ready <= most, "frame {} waits from {} to {}", number, ready, begins);
            }
            line_free = begins + bytes_on_wire(length);
        }
        // Nothing is stuck: what began is through, and goes on as often as it is cut.
        let count = |what: fn(&Line) -> bool| all.iter().filter(|(_, line)| what(line)).count();
        prop_assert_eq!(count(|line| matches!(line, Line::Cut(_))), count(|line| matches!(line, Line::GoesOn(_))));
        prop_assert_eq!(count(|line| matches!(line, Line::Begins(_))), arrivals.len());
    }
}

#[test]
fn a_window_waits_for_a_fragment_and_the_rest_goes_on_behind_it() {
    let advances = HoldAdvances { hold: Span::ZERO, release: Span::ZERO };
    let preemption = Some(Preemption { queues: 0x0f, shortest_fragment: 64, advances });
    let opens = Opens { offset: 5_000, length: 300, period: 10_000 };
    let played = |integration| {
        let config = TrafficClassConfig { preemption, ..classes([None; PRIORITIES], None) };
        let selection = TimeTriggered::with(opens.config(integration), TrafficClasses::new(config));
        driven(selection, &[(10, SCHEDULED, 64), (4_500, 0, 1_500)], 20_000)
    };
    // 492 B of the frame are gone, then 4 B of check and the gap; 84 B of the scheduled frame.
    let goes_on = 5_016 + 84;
    let shuffled = [
        (4_500, Line::Begins(1)),
        (5_000, Line::Cut(1)),
        (5_016, Line::Begins(0)),
        (goes_on, Line::GoesOn(1)),
    ];
    assert_eq!(played(Integration::Shuffling), shuffled);
    assert_eq!(played(Integration::TimelyBlock), [(5_000, Line::Begins(0)), (5_084, Line::Begins(1))]);
}

#[test]
fn a_lost_cluster_leaves_the_line_to_the_classes_and_their_gates() {
    let line = LineRate::GIGABIT;
    let opens = Opens { offset: 5_000, length: 300, period: 10_000 };
    let others = TrafficClasses::new(classes([None; PRIORITIES], None));
    let mut selection = TimeTriggered::with(opens.config(Integration::TimelyBlock), others);
    let capacity = Capacity::frames(10);
    let queues = crate::queue::Queues::new([capacity; QUEUES], capacity, true, [1]);
    let at = Moment { now: RunTime::from_picos(4_900 * BYTE), clock: &TrueTime, line, queues: &queues };
    let long = frame_of(0, 3, 1_500);
    let _ = selection.handle_time(&at);
    let opens = RunTime::from_picos(5_000 * BYTE);
    assert_eq!(selection.admission(&at, 3, &long), Admission::NotBefore(opens));
    selection.handle_synchronised(&at, false);
    assert_eq!(selection.admission(&at, 3, &long), Admission::Now);
    let newcomer = Newcomer { frame: &frame_of(1, SCHEDULED, 64), queue: 7, unscheduled: false };
    assert_eq!(selection.handle_enqueue(&at, &newcomer), Err(Cause::MissedWindow));
}
