//! Restart, damage, and virtual links among VLANs and learning. Arbitrary sequences are in `tests/it/protocols.rs`.

use alloc::vec;
use std::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use super::*;
use crate::clock::TrueTime;
use crate::forwarding::{Learning, PortSet};
use crate::frame::Marks;
use crate::frame::{Handle, NetworkId, TrafficClass};
use crate::line::{GAP, LineRate};
use crate::port::{Port, PortConfig};
use crate::queue::Capacity;
use crate::selection::StrictPriority;

/// Sends rate-constrained frames to the group their virtual link names.
struct ByNumber;

impl Ingress for ByNumber {
    fn judge(&mut self, _clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        match arrival.frame.class {
            TrafficClass::RateConstrained => Verdict::ToGroup(usize::from(arrival.frame.virtual_link)),
            _ => Verdict::Bridge,
        }
    }
}

const PORTS: usize = 4;

fn us(us: i64) -> RunTime {
    RunTime::ZERO + Span::from_micros(us)
}

fn line() -> LineRate {
    LineRate::new(100_000_000).expect("a rate")
}

fn switch(mode: ForwardingMode, forwarding: Forwarding) -> Switch<StrictPriority, ByNumber, TrueTime> {
    let limit = Capacity::frames(100);
    let ports = vec![Port::new(PortConfig::strict_priority(line(), limit), StrictPriority); PORTS];
    let config =
        SwitchConfig { mixed_rate_delay: Span::ZERO, processing_delay: Span::ZERO, mode, shared: limit };
    Switch::new(config, ports, forwarding, ByNumber, TrueTime)
}

fn learning() -> Forwarding {
    Forwarding::new(PORTS, Some(Learning { ageing: Span::from_millis(1_000), places: 64 }))
}

fn station(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

fn frame(from: u8, to: u8, sequence: u32) -> Frame {
    Frame {
        destination: station(to),
        source: station(from),
        length: 1_000,
        vlan: 0,
        virtual_link: 0,
        handle: Handle(u64::from(sequence)),
        priority: 0,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

/// Hands a frame in as its last bit comes; answers what the switch begins.
fn arrive(
    switch: &mut Switch<StrictPriority, ByNumber, TrueTime>,
    now: RunTime,
    port: usize,
    frame: Frame,
) -> Vec<(usize, Option<Cause>)> {
    switch.handle_frame(now, Arrival { port, frame, complete: now }, false);
    drain(switch, now)
}

fn drain(
    switch: &mut Switch<StrictPriority, ByNumber, TrueTime>,
    now: RunTime,
) -> Vec<(usize, Option<Cause>)> {
    let mut fates = Vec::new();
    while let Some(output) = switch.poll_output() {
        match output {
            Output::Transmit { port, frame, transmission } => {
                switch.handle_line_free(port, transmission, now + line().occupation(frame.length));
                fates.push((port, None));
            }
            Output::Abort { port, transmission, .. } => {
                switch.handle_line_free(port, transmission, now + line().time_of(GAP));
            }
            Output::Dropped { port, cause, .. } => fates.push((port, Some(cause))),
            Output::Fragment { .. } => panic!("nothing is sent in fragments"),
            Output::Follow { .. } | Output::Elsewhere { .. } => panic!("nobody asked for it"),
        }
    }
    fates
}

#[test]
fn a_restart_gives_back_all_it_held_and_forgets_what_it_learnt() {
    let mut switch = switch(ForwardingMode::StoreAndForward, learning());
    assert_eq!(arrive(&mut switch, us(0), 1, frame(1, 9, 0)).len(), 3, "an unknown station is flooded to");
    // Port 1 is learnt; of three frames one is on the wire at 1000 µs and two wait.
    for sequence in 1..4 {
        arrive(&mut switch, us(1_000), 0, frame(2, 1, sequence));
    }
    let early = Arrival { port: 2, frame: frame(3, 1, 4), complete: us(1_080) };
    switch.handle_frame(us(1_010), early, false);
    switch.handle_restart(us(1_020), us(2_000));
    let down = Some(Cause::Down);
    assert_eq!(drain(&mut switch, us(1_020)), [(2, down), (1, down), (1, down), (1, down)]);
    assert_eq!((switch.staged(), switch.next_deadline()), (0, Deadline::NEVER));
    // A frame of 1000 bytes begins 80.64 µs before it is complete.
    assert_eq!(arrive(&mut switch, us(2_080), 0, frame(2, 1, 5)), [(0, down)]);
    assert_eq!(arrive(&mut switch, us(2_081), 0, frame(2, 1, 6)).len(), 3, "what was learnt is forgotten");
}

#[test]
fn damage_stops_at_a_store_and_forward_switch_only() {
    let damaged = Frame { marks: Marks::FCS_ERROR, ..frame(2, 1, 0) };
    let mut store = switch(ForwardingMode::StoreAndForward, learning());
    assert_eq!(arrive(&mut store, us(0), 0, damaged), [(0, Some(Cause::FrameCheck))]);
    let mut cut = switch(ForwardingMode::CutThrough, learning());
    cut.handle_frame(us(0), Arrival { port: 0, frame: damaged, complete: us(80) }, false);
    assert_eq!(drain(&mut cut, us(0)), [(1, None), (2, None), (3, None)]);
    // Its source was not learnt.
    assert_eq!(arrive(&mut cut, us(1_000), 1, frame(1, 2, 1)).len(), 3);
}

#[test]
fn runts_and_giants_stop_at_a_store_and_forward_switch_that_does_not_take_them() {
    let of = |length, marks| Frame { length, marks, ..frame(2, 1, 0) };
    let wrong = Some(Cause::WrongLength);
    let tags = Marks::TAGGED.with(Marks::R_TAG);
    for (length, marks, cause) in [
        (63, Marks::none(), wrong),
        (64, Marks::none(), None),
        (1_518, Marks::none(), None),
        (1_519, Marks::none(), wrong),
        (1_522, Marks::TAGGED, None),
        (1_523, Marks::TAGGED, wrong),
        (1_528, tags, None),
        (1_529, tags, wrong),
        (63, Marks::FCS_ERROR, Some(Cause::FrameCheck)),
    ] {
        let mut store = switch(ForwardingMode::StoreAndForward, learning());
        let became = arrive(&mut store, us(0), 2, of(length, marks));
        assert!(became.iter().all(|(_, found)| *found == cause), "{length} B, {marks:?}: {became:?}");
        let mut jumbo = switch(ForwardingMode::StoreAndForward, learning());
        jumbo.set_lengths(FrameLengths { shortest: 18, longest: 9_018 });
        if cause == wrong {
            assert_eq!(arrive(&mut jumbo, us(0), 2, of(length, marks))[0].1, None);
        }
    }
    // What is too short leaves padded, and nothing is learnt of it by a switch that cuts through.
    let mut cut = switch(ForwardingMode::CutThrough, learning());
    cut.handle_frame(us(0), Arrival { port: 0, frame: of(40, Marks::none()), complete: us(80) }, false);
    let mut lengths = Vec::new();
    while let Some(Output::Transmit { port, frame, transmission }) = cut.poll_output() {
        cut.handle_line_free(port, transmission, us(100));
        lengths.push(frame.length);
    }
    assert_eq!(lengths, [64, 64, 64]);
    assert_eq!(arrive(&mut cut, us(1_000), 1, frame(1, 2, 1)).len(), 3);
}

#[test]
fn virtual_links_go_to_their_group_whatever_vlans_and_learning_say() {
    let mut forwarding = learning();
    forwarding.set_vlan(5, PortSet::of(PORTS, [0, 1]));
    assert_eq!(forwarding.add_group(PortSet::of(PORTS, [0, 2, 3])), 0);
    let mut switch = switch(ForwardingMode::StoreAndForward, forwarding);
    let multicast = Frame {
        class: TrafficClass::RateConstrained,
        destination: MacAddress([3, 0, 0, 0, 0, 0]),
        ..frame(1, 0, 0)
    };
    assert_eq!(arrive(&mut switch, us(0), 0, multicast), [(2, None), (3, None)]);
    // Best effort keeps to its VLAN, and its sender was not learnt from the virtual link.
    assert_eq!(arrive(&mut switch, us(0), 2, frame(2, 1, 1)), [(2, Some(Cause::ForeignVlan))]);
    let tagged = Frame { vlan: 5, ..frame(2, 1, 2) };
    assert_eq!(arrive(&mut switch, us(1_000), 1, tagged), [(0, None)]);
}

#[test]
fn what_ends_at_a_bridge_is_not_forwarded_whatever_its_mode_and_its_sender_is_learnt() {
    for mode in [ForwardingMode::StoreAndForward, ForwardingMode::CutThrough] {
        let mut switch = switch(mode, learning());
        let to = |last| Frame { destination: MacAddress([1, 0x80, 0xC2, 0, 0, last]), ..frame(1, 0, 0) };
        for last in 0..=0x0F {
            assert_eq!(arrive(&mut switch, us(0), 0, to(last)), [(0, Some(Cause::ReservedAddress))]);
        }
        assert_eq!(arrive(&mut switch, us(1_000), 1, frame(2, 1, 1)), [(0, None)], "learnt");
        // Those beside them are group addresses as others.
        let ptp = Frame { destination: MacAddress([1, 0x1B, 0x19, 0, 0, 0]), ..frame(1, 0, 0) };
        for (ms, beside) in (2..).zip([to(0x10), to(0x21), ptp]) {
            assert_eq!(arrive(&mut switch, us(ms * 1_000), 0, beside).len(), PORTS - 1);
        }
    }
}

/// Knows where stations 1, 2, … are: at ports 0, 1, ….
fn known() -> Forwarding {
    let mut forwarding = Forwarding::new(PORTS, None);
    (0..PORTS).for_each(|port| forwarding.set_station(0, station(port as u8 + 1), port));
    forwarding
}

fn urgent(sequence: u32, priority: u8) -> Frame {
    Frame { priority, ..frame(0, 4, sequence) }
}

/// What the switch begins and where, at one instant.
fn begun(switch: &mut Switch<StrictPriority, ByNumber, TrueTime>, now: RunTime) -> Vec<u32> {
    let mut begun = Vec::new();
    while let Some(output) = switch.poll_output() {
        if let Output::Transmit { port, frame, transmission } = output {
            switch.handle_line_free(port, transmission, now + line().occupation(frame.length));
            begun.push(frame.handle.0 as u32);
        }
    }
    begun
}

#[test]
fn an_idle_port_chooses_among_all_frames_of_an_instant() {
    let mut switch = switch(ForwardingMode::StoreAndForward, known());
    let at = |port, frame, now| Arrival { port, frame, complete: now };
    for (port, (sequence, priority)) in [(0, 1), (1, 5), (2, 5)].into_iter().enumerate() {
        switch.handle_frame(us(0), at(port, urgent(sequence, priority), us(0)), port < 2);
        assert_eq!(begun(&mut switch, us(0)), [], "not before all are in");
    }
    assert_eq!((switch.staged(), switch.next_deadline()), (3, Deadline::at(us(0))));
    switch.handle_deadline(us(0));
    assert_eq!(begun(&mut switch, us(0)), [1], "the first of the most urgent");
    // A frame of 1000 bytes occupies the line for 81.6 µs: what comes as it ends takes part.
    let end = us(0) + line().occupation(1_000);
    switch.handle_frame(end, at(1, urgent(3, 7), end), false);
    switch.handle_deadline(end);
    assert_eq!(begun(&mut switch, end), [3]);
    // A driver that is late, and had more to hand in that never came.
    switch.handle_frame(us(1_000), at(0, urgent(4, 0), us(1_000)), false);
    let waited = begun(&mut switch, us(1_000));
    switch.handle_deadline(us(1_000));
    assert_eq!((waited, begun(&mut switch, us(1_000))), (vec![], vec![2]));
}

#[test]
fn of_two_headers_of_an_instant_the_more_urgent_is_cut_through_and_the_other_stored() {
    let mut switch = switch(ForwardingMode::CutThrough, known());
    for (port, priority) in [(0, 1), (1, 5)] {
        let arrival = Arrival { port, frame: urgent(port as u32, priority), complete: us(80) };
        switch.handle_frame(us(0), arrival, true);
    }
    switch.handle_deadline(us(0));
    assert_eq!(begun(&mut switch, us(0)), [1]);
    assert_eq!(switch.next_deadline(), Deadline::at(us(80)), "all of it must be in first");
    switch.handle_deadline(us(80));
    assert_eq!(begun(&mut switch, us(80)), []);
    switch.handle_deadline(us(82));
    assert_eq!(begun(&mut switch, us(82)), [0]);
}

#[test]
fn best_effort_takes_no_room_of_virtual_links() {
    let limit = Capacity::frames(2);
    let ports = vec![Port::new(PortConfig::critical(line(), limit), StrictPriority); PORTS];
    let shared = Capacity::frames(100);
    let config = SwitchConfig {
        mixed_rate_delay: Span::ZERO,
        processing_delay: Span::ZERO,
        mode: ForwardingMode::StoreAndForward,
        shared,
    };
    let mut forwarding = known();
    assert_eq!(forwarding.add_group(PortSet::of(PORTS, [3])), 0);
    let mut switch = Switch::new(config, ports, forwarding, ByNumber, TrueTime);
    let full = Some(Cause::Full(crate::queue::Full::Queue));
    let link = |sequence| Frame { class: TrafficClass::RateConstrained, ..frame(0, 4, sequence) };
    let fates: Vec<_> =
        [frame(0, 4, 0), frame(0, 4, 1), Frame { priority: 1, ..frame(0, 4, 2) }, link(3), link(4)]
            .into_iter()
            .flat_map(|frame| arrive(&mut switch, us(0), 0, frame))
            .collect();
    assert_eq!(fates, [(3, None)], "two of either wait");
    let port = Some(Cause::Full(crate::queue::Full::Port));
    assert_eq!(arrive(&mut switch, us(0), 0, link(5)), [(3, full)]);
    assert_eq!(arrive(&mut switch, us(0), 0, Frame { priority: 2, ..frame(0, 4, 6) }), [(3, port)]);
    assert_eq!(switch.fill(3).frames, 4);
}
