//! An algorithm of transmission selection written outside the crate and driven through a whole switch: what a new
//! shaper needs is in its own file.

use wg_core::clock::{LocalClock, TrueTime};
use wg_core::forwarding::Forwarding;
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig};
use wg_core::queue::{Capacity, QUEUES};
use wg_core::selection::{Admission, Moment, Newcomer, TransmissionSelection};
use wg_core::switch::{AdmitAll, Arrival, ForwardingMode, Output, Switch, SwitchConfig};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

/// Queues in turn, from the one after the last that sent downwards.
#[derive(Default)]
struct RoundRobin {
    last: usize,
}

impl RoundRobin {
    /// Turns a queue has to wait, at most [`QUEUES`] − 1.
    fn turns(&self, queue: usize) -> usize {
        (self.last + QUEUES - 1 - queue) % QUEUES
    }
}

impl TransmissionSelection for RoundRobin {
    fn admission<C: LocalClock>(&self, _at: &Moment<'_, C>, _queue: usize, _frame: &Frame) -> Admission {
        Admission::Now
    }
    fn select<C: LocalClock>(&self, at: &Moment<'_, C>) -> Option<usize> {
        at.queues.occupied().min_by_key(|queue| self.turns(*queue))
    }
    fn urgency(&self, newcomer: &Newcomer<'_>) -> Option<usize> {
        Some(QUEUES - self.turns(newcomer.queue))
    }
    fn handle_begin<C: LocalClock>(&mut self, _at: &Moment<'_, C>, queue: usize, _frame: &Frame) {
        self.last = queue;
    }
}

fn frame(sequence: u32, priority: u8) -> Frame {
    Frame {
        destination: MacAddress([2, 0, 0, 0, 0, 1]),
        source: MacAddress::default(),
        length: 1_000,
        vlan: 0,
        virtual_link: 0,
        handle: Handle(u64::from(sequence)),
        priority,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

/// Priorities in the order their frames leave the last of three ports; those of `together` come at once, one by one the
/// others a picosecond apart behind them.
fn order_of_leaving(together: &[u8], others: &[u8]) -> Vec<u8> {
    let line = LineRate::new(100_000_000).expect("a rate");
    let limit = Capacity::frames(100);
    let port = || Port::new(PortConfig::strict_priority(line, limit), RoundRobin::default());
    let mut forwarding = Forwarding::new(3, None);
    forwarding.set_station(0, frame(0, 0).destination, 2);
    let config = SwitchConfig {
        mixed_rate_delay: Span::ZERO,
        processing_delay: Span::ZERO,
        mode: ForwardingMode::StoreAndForward,
        shared: limit,
    };
    let mut switch = Switch::new(config, vec![port(), port(), port()], forwarding, AdmitAll, TrueTime);
    let mut now = RunTime::ZERO;
    for (sequence, &priority) in (0..).zip(together) {
        let arrival =
            Arrival { port: sequence as usize % 2, frame: frame(sequence, priority), complete: now };
        switch.handle_frame(now, arrival, true);
    }
    let mut left = Vec::new();
    let mut drain = |switch: &mut Switch<RoundRobin, AdmitAll, TrueTime>, now: RunTime| {
        while let Some(output) = switch.poll_output() {
            let Output::Transmit { port: 2, frame, transmission } = output else { panic!("{output:?}") };
            left.push(frame.priority);
            switch.handle_line_free(2, transmission, now + line.occupation(frame.length));
        }
    };
    switch.handle_deadline(now);
    drain(&mut switch, now);
    for &priority in others {
        now = now + Span::from_picos(1);
        switch.handle_frame(now, Arrival { port: 0, frame: frame(9, priority), complete: now }, false);
        drain(&mut switch, now);
    }
    while let Some(at) = switch.next_deadline().instant() {
        switch.handle_deadline(at);
        drain(&mut switch, at);
    }
    left
}

#[test]
fn queues_take_turns_through_a_whole_switch() {
    assert_eq!(order_of_leaving(&[0], &[7, 7, 7, 3, 3, 1]), [0, 7, 3, 1, 7, 3, 7]);
}

#[test]
fn of_frames_of_one_instant_the_one_whose_turn_it_is_begins() {
    // After queue 0 the turn is the highest queue's.
    assert_eq!(order_of_leaving(&[3, 5, 1, 5], &[5, 0]), [5, 3, 1, 0, 5, 5]);
}
