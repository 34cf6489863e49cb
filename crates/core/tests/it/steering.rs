//! A servo steers the clock of an end system while its flows go on: each time-triggered frame is dispatched when the
//! clock first shows its instant, and frames of a virtual link leave a BAG apart by that clock, however it was driven
//! before.
//!
//! The judge knows readings only: from how the clock reads between two changes it says which instants are shown in
//! between, and finds each by bisection.
//!
//! The gap of a virtual link is judged by a model of rational numbers: how far the clock has run is the integral of the
//! product of both frequencies, in 10⁻¹⁸ ps, whatever it was set to; e(k) = max(a(k), e(k−1) + BAG) in it, and its
//! inverse rounded up.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use wg_core::arinc664::{Bag, Contract};
use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime, SharedClock, TrueTime};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_core::tte::dispatch::{Instants, PortMode};
use wg_core::virtual_link_layer::{
    Networks, OutgoingLink, OutgoingSchedule, VirtualLinkLayer, VirtualLinkLayerConfig,
};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

const PERIOD_PS: i64 = 125_000_000;
const MESSAGES: usize = 1_000;

#[derive(Clone, Copy, Debug)]
enum Steering {
    Step(i64),
    Frequency(i64),
    Drift(i64),
}

fn at(ps: i64) -> RunTime {
    RunTime::from_picos(ps)
}

fn interface(offset_ps: i64, start: LocalTime) -> VirtualLinkLayer {
    let instants = Instants::new(Span::from_picos(offset_ps), Span::from_picos(PERIOD_PS));
    let schedule = OutgoingSchedule {
        id: 3,
        instants: instants.expect("within the period"),
        mode: PortMode::Queuing(MESSAGES),
        longest_frame: 64,
        networks: Networks::One(NetworkId::A),
    };
    let config =
        VirtualLinkLayerConfig { outgoing_schedules: vec![schedule], ..VirtualLinkLayerConfig::default() };
    VirtualLinkLayer::new(config, start).expect("an interface")
}

fn message(number: usize) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length: 64,
        vlan: 0,
        virtual_link: 3,
        sequence: 0,
        handle: Handle(number as u64),
        priority: 0,
        class: TrafficClass::TimeTriggered,
        network: NetworkId::A,
        marks: Marks::none(),
    }
}

fn steer(clock: &SharedClock, instant: i64, steering: Steering) {
    let ppb = |ppb| FrequencyOffset::from_ppb(ppb).expect("in range");
    let mut clock = clock.borrow_mut();
    let changed = match steering {
        Steering::Step(ps) => clock.step(at(instant), Span::from_picos(ps)),
        Steering::Frequency(by) => clock.set_frequency(at(instant), ppb(by)),
        Steering::Drift(by) => clock.set_drift(at(instant), ppb(by)),
    };
    changed.expect("in order");
}

/// Sends up to `end` and gives the instants; the device is told of a change only if `told`.
fn sent(clock: &SharedClock, offset_ps: i64, steering: &[(i64, Steering)], end: i64, told: bool) -> Vec<i64> {
    let mut device = interface(offset_ps, clock.read(RunTime::ZERO));
    for number in 0..MESSAGES {
        device.handle_message(RunTime::ZERO, clock, message(number), |_, cause| panic!("{cause:?}"));
    }
    let mut sent = Vec::new();
    let mut come_to = |device: &mut VirtualLinkLayer, until: i64| {
        while let Some(now) = device.next_deadline().instant().filter(|now| *now < at(until)) {
            while device.poll_departure(now, clock).is_some() {
                sent.push(now.as_picos());
            }
        }
    };
    for &(instant, steering) in steering {
        come_to(&mut device, instant);
        steer(clock, instant, steering);
        if told {
            device.handle_clock_change(at(instant), clock);
        }
    }
    come_to(&mut device, end);
    sent
}

/// When a clock with this past shows the instants of the schedule up to `end`.
fn shown(clock: &SharedClock, offset_ps: i64, steering: &[(i64, Steering)], end: i64) -> Vec<i64> {
    let read = |time: i64| clock.read(at(time)).as_picos();
    let mut shown = Vec::new();
    let begins = [0].into_iter().chain(steering.iter().map(|(instant, _)| *instant));
    let ends = steering.iter().map(|(instant, _)| *instant).chain([end]);
    for (begin, end) in begins.zip(ends).filter(|(begin, end)| begin < end) {
        let (first, before) = (read(begin), if begin == 0 { i64::MIN } else { read(begin - 1) });
        // Set back, it comes to its instants again; driven on, to those it has not shown yet.
        let from = if first < before { first } else { first.max(before.saturating_add(1)) };
        let mut instant = from + (offset_ps - from).rem_euclid(PERIOD_PS);
        while instant <= read(end - 1) {
            let (mut low, mut high) = (begin, end - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if read(middle) >= instant { high = middle } else { low = middle + 1 }
            }
            shown.push(low);
            instant += PERIOD_PS;
        }
    }
    shown
}

fn clock(granularity_ps: i64) -> SharedClock {
    let clock = DisciplinedClock::new(
        Oscillator::default(),
        Span::from_nanos(-777),
        Span::from_picos(granularity_ps),
    );
    Rc::new(RefCell::new(clock.expect("a clock")))
}

fn steering() -> impl Strategy<Value = Vec<(i64, Steering)>> {
    let rate = -100_000_000_i64..=100_000_000;
    let what = prop_oneof![
        1 => (-500_000_000_i64..500_000_000).prop_map(Steering::Step),
        2 => rate.clone().prop_map(Steering::Frequency),
        1 => rate.prop_map(Steering::Drift),
    ];
    prop::collection::vec((1..700_000_000_i64, what), 0..20).prop_map(|gaps| {
        let mut now = 0;
        let later = |(gap, what)| {
            now += gap;
            (now, what)
        };
        gaps.into_iter().map(later).collect()
    })
}

proptest! {
    #[test]
    fn frames_are_dispatched_when_the_steered_clock_shows_their_instants(
        steering in steering(), offset_ps in 0..PERIOD_PS,
        granularity_ps in prop_oneof![Just(1_i64), 2..8_000_i64], rest in 1..1_000_000_000_i64,
    ) {
        let end = steering.last().map_or(0, |(last, _)| *last) + rest;
        let clock = clock(granularity_ps);
        let sent = sent(&clock, offset_ps, &steering, end, true);
        prop_assert_eq!(sent, shown(&clock, offset_ps, &steering, end));
    }
}

/// The judge finds a device out that goes on by a clock as it was.
#[test]
fn a_device_that_is_not_told_sends_at_wrong_instants() {
    for change in [Steering::Step(40_000_000), Steering::Frequency(50_000), Steering::Drift(50_000)] {
        let (clock, steering) = (clock(1), [(60_000_000, change)]);
        let late = sent(&clock, 0, &steering, 200_000_000, false);
        assert_ne!(late, shown(&clock, 0, &steering, 200_000_000), "{change:?}");
    }
}

const BAG_PS: i64 = 1_000_000_000;

/// When frames that come at `arrivals` leave by the gap of a virtual link, by the clock `of_device`; every change of
/// `clock` is told only if `told`.
fn paced<C: LocalClock>(
    clock: &SharedClock,
    of_device: &C,
    arrivals: &[i64],
    steering: &[(i64, Steering)],
    told: bool,
) -> Vec<i64> {
    let link = OutgoingLink {
        id: 3,
        contract: Contract::new(Bag::ALL[0], 200).expect("a contract"),
        queues: vec![MESSAGES],
        networks: Networks::One(NetworkId::A),
        jitter_budget: Span::ZERO,
    };
    let config = VirtualLinkLayerConfig { outgoing_links: vec![link], ..VirtualLinkLayerConfig::default() };
    let mut device = VirtualLinkLayer::new(config, of_device.read(RunTime::ZERO)).expect("an interface");
    let mut left = Vec::new();
    let (mut arrivals, mut steering) = (arrivals.iter().peekable(), steering.iter().peekable());
    loop {
        let arrival = arrivals.peek().map_or(i64::MAX, |instant| **instant);
        let change = steering.peek().map_or(i64::MAX, |(instant, _)| *instant);
        let due = device.next_deadline().instant().map_or(i64::MAX, RunTime::as_picos);
        let now = arrival.min(change).min(due);
        if now == i64::MAX {
            return left;
        }
        if change == now {
            steer(clock, now, steering.next().expect("peeked").1);
            if told {
                device.handle_clock_change(at(now), of_device);
            }
        } else if arrival == now {
            arrivals.next();
            let frame = Frame { class: TrafficClass::RateConstrained, ..message(0) };
            let at_once = device.handle_message(at(now), of_device, frame, |_, cause| panic!("{cause:?}"));
            left.extend(at_once.map(|departure| departure.due.as_picos()));
        }
        while let Some(departure) = device.poll_departure(at(now), of_device) {
            left.push(departure.due.as_picos());
        }
    }
}

/// How far a clock has run, exactly.
struct Model {
    /// From an instant on: what has elapsed there, 10⁻¹⁸ ps, and how much more each picosecond.
    pieces: Vec<(i64, i128, i128)>,
}

impl Model {
    fn new(steering: &[(i64, Steering)]) -> Self {
        const WHOLE: i128 = 1_000_000_000;
        let (mut drift, mut frequency) = (WHOLE, WHOLE);
        let mut pieces = vec![(0, 0, WHOLE * WHOLE)];
        for (instant, steering) in steering {
            match steering {
                Steering::Step(_) => {}
                Steering::Frequency(by) => frequency = WHOLE + i128::from(*by),
                Steering::Drift(by) => drift = WHOLE + i128::from(*by),
            }
            let (from, elapsed, rate) = pieces[pieces.len() - 1];
            pieces.push((*instant, elapsed + i128::from(instant - from) * rate, drift * frequency));
        }
        Self { pieces }
    }

    fn elapsed(&self, time: i64) -> i128 {
        let &(from, elapsed, rate) =
            self.pieces.iter().rev().find(|(from, ..)| *from <= time).expect("after the epoch");
        elapsed + i128::from(time - from) * rate
    }

    /// When it has run so far, rounded up.
    fn when(&self, elapsed: i128) -> i64 {
        let &(from, begin, rate) =
            self.pieces.iter().rev().find(|(_, begin, _)| *begin <= elapsed).expect("after the epoch");
        from + i64::try_from((elapsed - begin + rate - 1) / rate).expect("in range")
    }

    fn eligible(&self, arrivals: &[i64]) -> Vec<i64> {
        let bag = i128::from(BAG_PS) * 1_000_000_000_000_000_000;
        let mut gap_ends = 0;
        let next = |arrival: &i64| {
            let eligible = self.elapsed(*arrival).max(gap_ends);
            gap_ends = eligible + bag;
            self.when(eligible)
        };
        arrivals.iter().map(next).collect()
    }
}

/// The clock counts whole picoseconds twice, its oscillator's and its own.
fn agree(left: &[i64], model: &[i64]) -> bool {
    left.len() == model.len() && left.iter().zip(model).all(|(left, model)| (left - model).abs() <= 4)
}

fn arrivals() -> impl Strategy<Value = Vec<i64>> {
    let gap = prop_oneof![3 => Just(0_i64), 2 => 0..BAG_PS, 1 => 0..4 * BAG_PS];
    prop::collection::vec(gap, 1..40).prop_map(|gaps| {
        let later = |now: &mut i64, gap| {
            *now += gap;
            Some(*now)
        };
        gaps.into_iter().scan(0, later).collect()
    })
}

proptest! {
    #[test]
    fn the_gap_of_a_virtual_link_is_measured_by_the_steered_clock(
        steering in steering(), arrivals in arrivals(), granularity_ps in prop_oneof![Just(1_i64), 2..8_000_i64],
    ) {
        let clock = clock(granularity_ps);
        let left = paced(&clock, &clock, &arrivals, &steering, true);
        let model = Model::new(&steering).eligible(&arrivals);
        prop_assert!(agree(&left, &model), "{:?} but the model has {:?}", left, model);
    }

    /// Whatever it is set to and however coarsely it is read.
    #[test]
    fn a_clock_that_runs_true_makes_no_difference_to_a_gap(
        steering in steering(), arrivals in arrivals(), granularity_ps in prop_oneof![Just(1_i64), 2..8_000_i64],
    ) {
        let steps: Vec<_> =
            steering.into_iter().filter(|(_, what)| matches!(what, Steering::Step(_))).collect();
        let (clock, beside) = (clock(granularity_ps), clock(1));
        let left = paced(&clock, &clock, &arrivals, &steps, true);
        prop_assert_eq!(left, paced(&beside, &TrueTime, &arrivals, &steps, true));
    }
}

/// The model finds out a device that measures in run time, and one that is not told of a change.
#[test]
fn gaps_by_another_clock_are_found_out() {
    for change in [Steering::Frequency(50_000), Steering::Drift(-50_000)] {
        let steering = [(1_500_000_000, change)];
        let arrivals = [0; 6];
        let model = Model::new(&steering).eligible(&arrivals);
        let own = clock(1);
        assert!(agree(&paced(&own, &own, &arrivals, &steering, true), &model), "{change:?}");
        assert!(!agree(&paced(&clock(1), &TrueTime, &arrivals, &steering, true), &model), "{change:?}");
        let own = clock(1);
        assert!(!agree(&paced(&own, &own, &arrivals, &steering, false), &model), "{change:?}");
    }
}
