//! Closed forms to the picosecond. Arbitrary sequences are in `tests/it/protocols.rs`.

use alloc::vec;
use std::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::*;
use crate::clock::DisciplinedClock;
use crate::frame::{Handle, Marks, NetworkId};
use crate::line::{GAP, LineRate};
use crate::port::{Effect, NodeShared, Port, PortConfig};
use crate::queue::Capacity;
use crate::tte::schedule::Window;

mod converged;

/// A longest frame with preamble and gap at 100 Mbit/s.
const LONGEST: Span = Span::from_nanos(123_040);
/// The same of a shortest one.
const SHORTEST: Span = Span::from_nanos(6_720);
const PICOSECOND: Span = Span::from_picos(1);

fn us(us: i64) -> RunTime {
    RunTime::ZERO + Span::from_micros(us)
}

fn frame(class: TrafficClass, length: u16, sequence: u32) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length,
        vlan: 0,
        virtual_link: 7,
        handle: Handle(u64::from(sequence)),
        priority: 0,
        class,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

fn tt(sequence: u32) -> Frame {
    frame(TrafficClass::TimeTriggered, 64, sequence)
}

fn other(sequence: u32) -> Frame {
    frame(TrafficClass::BestEffort, 1_518, sequence)
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Begun(u32),
    Aborted(u32),
    Dropped(u32, Cause),
}

struct Bench {
    port: Port<TimeTriggered>,
    device: NodeShared<DisciplinedClock>,
    events: Vec<(RunTime, Event)>,
}

impl Bench {
    /// One window each millisecond, from 200 µs on.
    fn new(integration: Integration, length_us: i64, missed: Missed) -> Self {
        let line = LineRate::new(100_000_000).expect("a rate");
        let window = Window {
            flow: 7,
            offset: Span::from_micros(200),
            period: Span::from_millis(1),
            length: Span::from_micros(length_us),
            longest_frame: 64,
        };
        let schedule = PortSchedule::new(Span::from_millis(1), vec![window], 100_000_000).expect("sound");
        let windows = WindowConfig { schedule, integration, raster: None, frames: 2, missed };
        let limit = Capacity::frames(10);
        Self {
            port: Port::new(PortConfig::critical(line, limit), TimeTriggered::new(windows)),
            device: NodeShared::new(limit, DisciplinedClock::default()),
            events: Vec::new(),
        }
    }

    fn arrive(&mut self, now: RunTime, frame: Frame) {
        self.run_before(now);
        let mut effects = Vec::new();
        self.port.handle_frame(now, frame, &mut self.device, &mut |effect| effects.push(effect));
        self.carry_out(now, effects);
    }

    fn run_before(&mut self, until: RunTime) {
        while let Some(at) = self.port.next_deadline(&self.device).instant()
            && at < until
        {
            let mut effects = Vec::new();
            self.port.handle_deadline(at, &mut self.device, &mut |effect| effects.push(effect));
            self.carry_out(at, effects);
        }
    }

    fn carry_out(&mut self, now: RunTime, effects: Vec<Effect>) {
        let line = self.port.line();
        for effect in effects {
            let event = match effect {
                Effect::Follow { .. } => panic!("copies are not followed"),
                Effect::Transmit { frame, transmission } => {
                    self.port.handle_line_free(transmission, now + line.occupation(frame.length));
                    Event::Begun(frame.handle.0 as u32)
                }
                Effect::Fragment { .. } => panic!("nothing is sent in fragments"),
                Effect::Abort { frame, transmission } => {
                    self.port.handle_line_free(transmission, now + line.time_of(GAP));
                    Event::Aborted(frame.handle.0 as u32)
                }
                Effect::Drop { frame, cause } => Event::Dropped(frame.handle.0 as u32, cause),
            };
            self.events.push((now, event));
        }
    }

    fn finish(mut self) -> Vec<(RunTime, Event)> {
        self.run_before(us(5_000));
        self.events
    }
}

#[test]
fn timely_block_lets_through_what_ends_before_the_window_to_the_picosecond() {
    for (early, begins) in [(LONGEST, us(200) - LONGEST), (LONGEST - PICOSECOND, us(200) + SHORTEST)] {
        let mut bench = Bench::new(Integration::TimelyBlock, 30, Missed::Keep);
        bench.arrive(us(10), tt(0));
        bench.arrive(us(200) - early, other(1));
        let mut events = vec![(begins, Event::Begun(1)), (us(200), Event::Begun(0))];
        events.sort_by_key(|(at, _)| *at);
        assert_eq!(bench.finish(), events);
    }
}

#[test]
fn an_empty_window_is_free_for_others() {
    let mut bench = Bench::new(Integration::TimelyBlock, 30, Missed::Keep);
    bench.arrive(us(190), other(0));
    assert_eq!(bench.finish(), [(us(200), Event::Begun(0))]);
}

#[test]
fn preemption_costs_the_time_triggered_frame_a_gap_and_the_other_a_new_beginning() {
    let mut bench = Bench::new(Integration::Preemption, 30, Missed::Keep);
    bench.arrive(us(10), tt(0));
    bench.arrive(us(150), other(1));
    let gap = Span::from_nanos(960);
    let events = [
        (us(150), Event::Begun(1)),
        (us(200), Event::Aborted(1)),
        (us(200) + gap, Event::Begun(0)),
        (us(200) + gap + SHORTEST, Event::Begun(1)),
    ];
    assert_eq!(bench.finish(), events);
    // In its gap a frame is through: nothing is left to abort.
    let mut bench = Bench::new(Integration::Preemption, 30, Missed::Keep);
    bench.arrive(us(10), tt(0));
    bench.arrive(us(200) + gap - LONGEST, other(1));
    assert_eq!(bench.finish().last(), Some(&(us(200) + gap, Event::Begun(0))));
}

#[test]
fn shuffling_waits_for_the_frame_in_progress_and_may_miss_the_window() {
    for (length_us, missed) in [(130, Missed::Keep), (30, Missed::Keep), (30, Missed::Drop)] {
        let mut bench = Bench::new(Integration::Shuffling, length_us, missed);
        bench.arrive(us(10), tt(0));
        bench.arrive(us(150), other(1));
        let last = match (length_us, missed) {
            (130, _) => (us(150) + LONGEST, Event::Begun(0)),
            (_, Missed::Keep) => (us(1_200), Event::Begun(0)),
            (_, Missed::Drop) => (us(230), Event::Dropped(0, Cause::MissedWindow)),
        };
        assert_eq!(bench.finish(), [(us(150), Event::Begun(1)), last]);
    }
}

#[test]
fn the_oldest_gives_way_in_a_full_buffer() {
    let mut bench = Bench::new(Integration::TimelyBlock, 8, Missed::Keep);
    for sequence in 0..3 {
        bench.arrive(us(10), tt(sequence));
    }
    bench.arrive(us(11), Frame { virtual_link: 8, ..tt(3) });
    let events = [
        (us(10), Event::Dropped(0, Cause::Superseded)),
        (us(11), Event::Dropped(3, Cause::NoWindow)),
        (us(200), Event::Begun(1)),
        (us(1_200), Event::Begun(2)),
    ];
    assert_eq!(bench.finish(), events);
}

#[test]
fn a_step_of_the_clock_moves_the_window() {
    let mut bench = Bench::new(Integration::TimelyBlock, 30, Missed::Keep);
    bench.arrive(us(10), tt(0));
    bench.run_before(us(50));
    bench.device.clock.step(us(50), Span::from_micros(100)).expect("in order");
    bench.port.handle_clock_change(us(50), &bench.device);
    assert_eq!(bench.finish(), [(us(100), Event::Begun(0))]);
}
