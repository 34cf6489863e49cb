//! A servo steers the clock of an end system while its time-triggered flow goes on: each frame is dispatched when the clock
//! first shows its instant, however the clock was set or driven before.
//!
//! The judge knows readings only: from how the clock reads between two changes it says which instants are shown in between,
//! and finds each by bisection.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use wg_core::clock::{DisciplinedClock, LocalClock, LocalTime, SharedClock};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_core::tte::dispatch::{Instants, PortMode};
use wg_core::virtual_link_layer::{Networks, OutgoingSchedule, VirtualLinkLayer, VirtualLinkLayerConfig};
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
        let ppb = |ppb| FrequencyOffset::from_ppb(ppb).expect("in range");
        let changed = match steering {
            Steering::Step(ps) => clock.borrow_mut().step(at(instant), Span::from_picos(ps)),
            Steering::Frequency(by) => clock.borrow_mut().set_frequency(at(instant), ppb(by)),
            Steering::Drift(by) => clock.borrow_mut().set_drift(at(instant), ppb(by)),
        };
        changed.expect("in order");
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
