//! Order, gaps, copies and clocks in closed form. Arbitrary sequences are in `tests/it/protocols.rs`.

use alloc::vec;
use std::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::*;
use crate::arinc664::redundancy::{Redundancy, SkewError};
use crate::arinc664::regulator::output_jitter;
use crate::arinc664::{Bag, Contract};
use crate::clock::{DisciplinedClock, TrueTime};
use crate::frame::{Handle, Marks};
use crate::oscillator::Oscillator;
use crate::tte::dispatch::{Instants, PortMode};

const BAG: Span = Span::from_millis(1);

fn us(us: i64) -> RunTime {
    RunTime::ZERO + Span::from_micros(us)
}

fn frame(class: TrafficClass, id: u16, sequence: u32) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length: 100,
        vlan: 0,
        virtual_link: id,
        handle: Handle(u64::from(sequence)),
        priority: 0,
        class,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

fn rc(id: u16, sequence: u32) -> Frame {
    frame(TrafficClass::RateConstrained, id, sequence)
}

fn tt(sequence: u32) -> Frame {
    frame(TrafficClass::TimeTriggered, 3, sequence)
}

fn instants() -> Instants {
    Instants::new(Span::from_micros(200), BAG).expect("within the period")
}

fn layer() -> VirtualLinkLayer {
    let contract = Contract::new(Bag::ALL[0], 200).expect("a contract");
    let budget = output_jitter([contract; 2], 100_000_000).expect("a rate");
    let link =
        |id| OutgoingLink { id, contract, queues: vec![4], networks: Networks::Both, jitter_budget: budget };
    let redundancy = Redundancy::FirstValidWins { skew_max: Span::from_micros(100) };
    let window = AcceptanceWindow::new(instants(), Span::from_micros(5), Span::from_micros(10));
    let config = VirtualLinkLayerConfig {
        outgoing_links: vec![link(9), link(3)],
        outgoing_schedules: vec![OutgoingSchedule {
            id: 3,
            instants: instants(),
            mode: PortMode::Sampling,
            longest_frame: 100,
            networks: Networks::Both,
        }],
        incoming_links: vec![IncomingLink { id: 7, bag: Bag::ALL[0], redundancy }],
        incoming_schedules: vec![IncomingSchedule {
            id: 7,
            period: BAG,
            windows: [window.ok(), None],
            redundancy,
        }],
    };
    VirtualLinkLayer::new(config, LocalTime::ZERO).expect("an interface")
}

/// Number in the flow, number in the virtual link, when it was due.
type Left = (u32, u8, RunTime);

fn send(core: &mut VirtualLinkLayer, clock: &impl LocalClock, now: RunTime, frame: Frame) -> Vec<Left> {
    let at_once = core.handle_message(now, clock, frame, |frame, cause| panic!("{cause:?} of {frame:?}"));
    at_once.into_iter().map(left).chain(polled(core, clock, now)).collect()
}

fn polled(core: &mut VirtualLinkLayer, clock: &impl LocalClock, now: RunTime) -> Vec<Left> {
    core::iter::from_fn(|| core.poll_departure(now, clock)).map(left).collect()
}

fn left(departure: Departure) -> Left {
    assert_eq!(departure.networks, Networks::Both);
    (departure.frame.handle.0 as u32, departure.frame.sequence as u8, departure.due)
}

#[test]
fn a_virtual_link_sends_a_frame_each_gap_and_no_sooner() {
    let mut core = layer();
    assert_eq!(send(&mut core, &TrueTime, us(10), rc(3, 0)), [(0, 0, us(10))]);
    assert_eq!(send(&mut core, &TrueTime, us(20), rc(3, 1)), []);
    assert_eq!(send(&mut core, &TrueTime, us(30), rc(3, 2)), []);
    assert_eq!(core.next_deadline(), Deadline::at(us(1_010)));
    assert_eq!(polled(&mut core, &TrueTime, us(1_009)), []);
    // A late call changes neither instants nor order.
    assert_eq!(polled(&mut core, &TrueTime, us(5_000)), [(1, 1, us(1_010)), (2, 2, us(2_010))]);
    assert_eq!((core.next_deadline(), core.waiting()), (Deadline::NEVER, 0));
}

#[test]
fn what_is_due_first_goes_first_though_a_message_comes_that_need_not_wait() {
    let mut core = layer();
    send(&mut core, &TrueTime, us(10), rc(3, 0));
    send(&mut core, &TrueTime, us(10), rc(3, 1));
    let both = [(1, 1, us(1_010)), (2, 0, us(1_020))];
    assert_eq!(send(&mut core, &TrueTime, us(1_020), rc(9, 2)), both);
}

/// Rule 4 of docs/explanation/order-of-events.md.
#[test]
fn what_is_due_at_one_instant_goes_by_links_before_schedules_and_by_number() {
    let mut core = layer();
    for (number, id) in [(0, 9), (2, 3)] {
        assert_eq!(send(&mut core, &TrueTime, us(200), rc(id, number)).len(), 1);
        assert_eq!(send(&mut core, &TrueTime, us(200), rc(id, number + 1)), []);
    }
    assert_eq!(send(&mut core, &TrueTime, us(300), tt(4)), []);
    let at = us(1_200);
    assert_eq!(core.next_deadline(), Deadline::at(at));
    assert_eq!(polled(&mut core, &TrueTime, at), [(3, 1, at), (1, 1, at), (4, 0, at)]);
}

#[test]
fn a_schedule_sends_at_its_instants_by_the_local_clock() {
    let mut core = layer();
    let mut clock =
        DisciplinedClock::new(Oscillator::default(), Span::from_micros(50), Span::from_picos(1)).unwrap();
    assert_eq!(send(&mut core, &clock, us(10), tt(0)), []);
    assert_eq!(core.next_deadline(), Deadline::at(us(150)));
    assert_eq!(polled(&mut core, &clock, us(150)), [(0, 0, us(150))]);
    assert_eq!(send(&mut core, &clock, us(160), tt(1)), []);
    // Set back by 100 µs, the clock comes to 200 µs again.
    clock.step(us(170), Span::from_micros(-100)).unwrap();
    core.handle_clock_change(us(170), &clock);
    assert_eq!(core.next_deadline(), Deadline::at(us(250)));
    let mut lost = Vec::new();
    core.handle_message(us(180), &clock, tt(2), |frame, cause| lost.push((frame.handle.0 as u32, cause)));
    assert_eq!(lost, [(1, Cause::Superseded)]);
    assert_eq!(polled(&mut core, &clock, us(250)), [(2, 1, us(250))]);
}

#[test]
fn the_first_valid_copy_wins_and_the_acceptance_window_is_of_its_network() {
    let mut core = layer();
    let numbered = |frame, number| Frame { sequence: number, ..frame };
    let mut receive = |at, network, frame| core.handle_frame(us(at), &TrueTime, network, &frame);
    let (a, b) = (NetworkId::A, NetworkId::B);
    assert_eq!(receive(0, b, numbered(rc(7, 0), 4)), Ok(()));
    assert_eq!(receive(100, a, numbered(rc(7, 0), 4)), Err(Cause::SecondCopy));
    assert_eq!(receive(1_000, a, numbered(rc(7, 1), 5)), Ok(()));
    assert_eq!(receive(1_101, b, numbered(rc(7, 1), 5)), Ok(()), "beyond SkewMax it counts as another frame");
    assert_eq!(receive(2_000, a, numbered(rc(7, 2), 9)), Err(Cause::Integrity));
    assert_eq!(receive(2_000, a, rc(8, 0)), Err(Cause::Filtered));
    let tt = |number| numbered(frame(TrafficClass::TimeTriggered, 7, 0), number);
    assert_eq!(receive(5_210, a, tt(1)), Ok(()));
    assert_eq!(receive(5_211, b, tt(1)), Err(Cause::SecondCopy));
    assert_eq!(receive(6_211, a, tt(2)), Err(Cause::OutOfWindow));
    assert_eq!(receive(6_212, b, tt(2)), Ok(()), "network B has no window");
}

#[test]
fn what_cannot_work_is_named() {
    let twice = VirtualLinkLayerConfig {
        incoming_links: vec![IncomingLink { id: 7, bag: Bag::ALL[0], redundancy: Redundancy::Off }; 2],
        ..VirtualLinkLayerConfig::default()
    };
    assert_eq!(VirtualLinkLayer::new(twice, LocalTime::ZERO).err(), Some(VirtualLinkLayerError::Twice(7)));
    let skew_max = Span::from_millis(255);
    let redundancy = Redundancy::FirstValidWins { skew_max };
    let skew = VirtualLinkLayerConfig {
        incoming_links: vec![IncomingLink { id: 7, bag: Bag::ALL[0], redundancy }],
        ..VirtualLinkLayerConfig::default()
    };
    let error = SkewError { skew_max, limit: Span::from_millis(254) };
    assert_eq!(
        VirtualLinkLayer::new(skew, LocalTime::ZERO).err(),
        Some(VirtualLinkLayerError::Skew { id: 7, error })
    );
}
