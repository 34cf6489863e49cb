//! The ways of a frame through a host that no other test has: stacks of protocols, an interface that takes its time,
//! the loopback. Each instant is a sum that stands here.

use wg_core::clock::TrueTime;
use wg_core::end_system::{Cost, Delivery, Host, HostConfig, Interrupts, Output, StackCosts};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::StrictPriority;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn cost(us: i64) -> Cost {
    Cost { fixed: Span::from_micros(us), per_byte: Span::ZERO }
}

fn at(us: i64) -> RunTime {
    RunTime::ZERO + Span::from_micros(us)
}

fn host(card_read: Option<Cost>) -> Host<StrictPriority, TrueTime> {
    host_of(card_read, Span::from_micros(100))
}

fn host_of(card_read: Option<Cost>, interface_receive_delay: Span) -> Host<StrictPriority, TrueTime> {
    let mut stacks = [None; STACKS];
    stacks[3] = Some(StackCosts { transmit: cost(1), receive: cost(2) });
    let config = HostConfig {
        transmit: cost(10),
        receive: cost(20),
        backlog: 8,
        ring: 2,
        interrupts: Interrupts::EachFrame,
        interrupt_latency: Span::from_micros(5),
        card_read,
        buffers: None,
        stacks,
        interface_receive_delay,
    };
    let line = LineRate::new(1_000_000_000).expect("a rate");
    let port = PortConfig::first_in_first_out(line, Capacity::frames(8));
    Host::new(config, vec![(NetworkId::A, Port::new(port, StrictPriority))], None, TrueTime)
}

fn frame(number: u64, to: MacAddress, stack: u8) -> Frame {
    Frame {
        destination: to,
        source: OWN,
        length: 100,
        vlan: 0,
        virtual_link: 0,
        sequence: 0,
        handle: Handle(number),
        priority: 0,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        marks: Marks::of_stack(stack),
    }
}

/// Runs to the end; when each frame came to its driver and its application.
fn deliveries(host: &mut Host<StrictPriority, TrueTime>, mut now: RunTime) -> Vec<(u64, RunTime, RunTime)> {
    let mut found = Vec::new();
    loop {
        while let Some(output) = host.poll_output() {
            match output {
                Output::Deliver { frame, driver, application, .. } => {
                    found.push((frame.handle.0, driver, application));
                }
                Output::Loopback { frame } => host.handle_loopback(now, frame, Span::from_micros(3)),
                other => panic!("nobody asked for {other:?}"),
            }
        }
        let Some(next) = host.next_deadline().instant() else { return found };
        now = next;
        host.handle_deadline(now);
    }
}

#[test]
fn a_stack_costs_what_it_says_and_others_cost_what_the_host_does() {
    for (stack, transmit) in [(0, 10), (3, 1), (7, 10)] {
        let mut host = host(None);
        let handed = host.handle_send(at(0), frame(1, OTHER, stack), Span::ZERO, false).expect("it has room");
        assert_eq!(handed.queued, at(transmit));
    }
    for (stack, receive) in [(0, 20), (3, 2)] {
        let mut host = host(None);
        host.handle_frame(at(0), 0, frame(1, OWN, stack), Span::from_micros(7));
        assert_eq!(deliveries(&mut host, at(0)), [(1, at(105), at(105 + 7 + receive))]);
    }
}

/// Frames faster than they are read, some of them damaged: what is not returned is an output, in any host.
#[test]
fn a_frame_that_is_delivered_is_returned_or_an_output() {
    for (card, delay) in [(None, 0), (None, 100), (Some(cost(1)), 0)] {
        let new = || host_of(card, Span::from_micros(delay));
        let (mut one, mut other, mut returned) = (new(), new(), 0);
        for number in 0..20 {
            let now = at(7 * number);
            for host in [&mut one, &mut other] {
                while host.next_deadline().is_due(now) {
                    host.handle_deadline(now);
                }
            }
            let mut frame = frame(number.unsigned_abs(), OWN, 0);
            if number % 5 == 4 {
                frame.marks = frame.marks.with(Marks::FCS_ERROR);
            }
            let wake_up = Span::from_micros(number % 3);
            one.handle_frame(now, 0, frame, wake_up);
            // Outputs not taken yet precede it.
            let earlier: Vec<Output> = std::iter::from_fn(|| other.poll_output()).collect();
            let delivery = other.handle_delivered(now, 0, &frame, wake_up);
            returned += usize::from(delivery.is_some());
            let own = delivery.map(|Delivery { driver, application }| Output::Deliver {
                port: 0,
                frame,
                driver,
                application,
            });
            let found = earlier.into_iter().chain(own).chain(std::iter::from_fn(|| other.poll_output()));
            assert!(found.eq(std::iter::from_fn(|| one.poll_output())));
            assert_eq!(one.next_deadline(), other.next_deadline());
        }
        assert_eq!(returned > 0, card.is_none() && delay == 0);
    }
}

#[test]
fn frames_in_the_interface_have_no_place_in_the_ring_yet() {
    let mut host = host(None);
    for number in 0..3 {
        host.handle_frame(at(number), 0, frame(number.unsigned_abs(), OWN, 0), Span::ZERO);
    }
    assert_eq!(host.in_hand(), (0, 3));
    host.handle_deadline(at(102));
    let lost = std::iter::from_fn(|| host.poll_output())
        .filter_map(|output| match output {
            Output::Dropped { frame, .. } => Some(frame.handle.0),
            _ => None,
        })
        .collect::<Vec<_>>();
    // The ring holds two, and the third came before the first was handed over.
    assert_eq!(lost, [2]);
    host.handle_frame(at(200), 0, frame(9, OWN, 0), Span::ZERO);
    host.handle_restart(at(201));
    assert_eq!(host.in_hand(), (0, 0));
    assert!(matches!(host.poll_output(), Some(Output::Dropped { frame, .. }) if frame.handle.0 == 9));
}

#[test]
fn a_loopback_goes_from_lane_to_lane() {
    for card in [None, Some(cost(500))] {
        let mut host = host(card);
        for number in 1..=2 {
            host.handle_send(at(0), frame(number, OWN, 3), Span::ZERO, false).expect("it has room");
        }
        // Down 1 us, up 2 us after a wake-up of 3 us; the second is behind the first, whose lane is awake.
        assert_eq!(deliveries(&mut host, at(0)), [(1, at(1), at(6)), (2, at(2), at(8))]);
    }
}
