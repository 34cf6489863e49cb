//! The host between application and wire.

use std::collections::VecDeque;

use wg_core::Cause;
use wg_core::clock::TrueTime;
use wg_core::end_system::{Cost, Host, HostConfig, Interrupts, Output};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::StrictPriority;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// Any messages, frames, wake-ups and calls: what goes down leaves in order or is refused, what comes up is
/// delivered in order or overruns a full ring, instants follow the way of a message, and nothing is lost inside.
#[expect(clippy::too_many_lines, reason = "one host and what is checked of it at every step")]
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let line = LineRate::new(100_000_000).expect("a rate");
    let free = input.one_in(3);
    let mut span = |most: u64| Span::from_picos(if free { 0 } else { input.below(most) as i64 });
    let (transmit, receive) = (
        Cost { fixed: span(5_000_000), per_byte: span(1_000) },
        Cost { fixed: span(5_000_000), per_byte: span(1_000) },
    );
    let (wait, interrupt_latency) = (span(200_000_000), span(2_000_000));
    let interrupts = match input.byte() % 3 {
        0 => Interrupts::EachFrame,
        1 => Interrupts::Coalesced { frames: 1 + u32::from(input.byte() % 5), wait },
        _ => Interrupts::Polled { period: Span::from_picos(1 + wait.as_picos()) },
    };
    let ring = u32::from(input.byte() % 6);
    let backlog = u32::from(input.byte() % 6);
    let limit = Capacity::frames(u32::from(input.byte() % 6));
    let port = PortConfig::first_in_first_out(line, limit);
    let ports = vec![(NetworkId::A, Port::new(port, StrictPriority))];
    let config = HostConfig {
        transmit,
        receive,
        backlog,
        ring,
        interrupts,
        interrupt_latency,
        card_read: None,
        buffers: None,
        stacks: [None; STACKS],
        interface_receive_delay: Span::ZERO,
    };
    let mut run = Run {
        host: Host::new(config, ports, None, TrueTime),
        now: RunTime::ZERO,
        line_free: RunTime::ZERO,
        next: 0,
        going: Vec::new(),
        left: 0,
        last_left: None,
        ring: ring as usize,
        arrived: VecDeque::new(),
        leaving: Vec::new(),
        came: 0,
        delivered: 0,
        overrun: 0,
        last_queued: RunTime::ZERO,
        last_application: RunTime::ZERO,
        backlog: backlog as usize,
        receive,
    };
    while !input.is_done() && run.next < 400 {
        match input.byte() % 6 {
            0 => run.host.handle_deadline(run.now),
            1 => run.now = run.now + Span::from_picos(input.below(300_000_000) as i64),
            2 => run.reach_next_deadline(),
            3 | 4 => run.send(&mut input),
            _ => run.arrive(&mut input),
        }
        run.collect();
    }
    for _ in 0..2_000 {
        if run.host.next_deadline().instant().is_none() {
            break;
        }
        run.reach_next_deadline();
        run.collect();
    }
    assert_eq!(run.host.in_hand(), (0, 0));
    assert_eq!(run.left, run.going.len(), "every message taken has one end");
    assert_eq!(run.delivered + run.overrun, run.came, "every frame that came has one end");
}

struct Run {
    host: Host<StrictPriority, TrueTime>,
    now: RunTime,
    line_free: RunTime,
    next: u32,
    /// Messages taken: number and whether it has ended.
    going: Vec<(u32, bool)>,
    left: usize,
    last_left: Option<u32>,
    ring: usize,
    /// Frames that came and were neither delivered nor overran: number and instant.
    arrived: VecDeque<(u32, RunTime)>,
    /// When delivered frames leave the ring.
    leaving: Vec<RunTime>,
    came: usize,
    delivered: usize,
    overrun: usize,
    last_queued: RunTime,
    last_application: RunTime,
    backlog: usize,
    receive: Cost,
}

fn frame(sequence: u32, input: &mut Input<'_>) -> Frame {
    Frame {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        length: 64 + input.below(1_455) as u16,
        vlan: 0,
        virtual_link: 0,
        handle: Handle(u64::from(sequence)),
        priority: input.byte() % 8,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::none(),
    }
}

impl Run {
    fn reach_next_deadline(&mut self) {
        if let Some(at) = self.host.next_deadline().instant() {
            self.now = self.now.max(at);
        }
        self.host.handle_deadline(self.now);
    }

    fn send(&mut self, input: &mut Input<'_>) {
        let frame = frame(self.next, input);
        let wake_up = Span::from_picos(if input.one_in(2) { 0 } else { input.below(50_000_000) as i64 });
        let full = self.host.in_hand().0 >= self.backlog;
        match self.host.handle_send(self.now, frame, wake_up, input.one_in(3)) {
            Ok(handed) => {
                assert!(!full && handed.application >= self.now && handed.queued >= handed.application);
                assert!(handed.application >= self.last_queued, "one thread does one thing at a time");
                self.last_queued = handed.queued;
                self.going.push((self.next, false));
            }
            Err(_) => assert!(full),
        }
        self.next += 1;
    }

    fn arrive(&mut self, input: &mut Input<'_>) {
        let frame = frame(self.next, input);
        self.arrived.push_back((self.next, self.now));
        self.next += 1;
        self.came += 1;
        self.host.handle_frame(self.now, 0, frame, Span::from_picos(input.below(50_000_000) as i64));
    }

    fn end(&mut self, sequence: u32) {
        let (_, ended) = self.going.iter_mut().find(|(n, _)| *n == sequence).expect("it was taken");
        assert!(!*ended, "a message has one end");
        *ended = true;
        self.left += 1;
    }

    fn collect(&mut self) {
        while let Some(output) = self.host.poll_output() {
            match output {
                Output::Follow { .. } => panic!("copies are not followed"),
                Output::Transmit { frame, transmission, .. } => {
                    assert!(self.line_free <= self.now, "two frames on one line");
                    assert!(self.last_left.is_none_or(|last| last < (frame.handle.0 as u32)), "overtaken");
                    self.last_left = Some(frame.handle.0 as u32);
                    self.line_free = self.now + self.host.line(0).occupation(frame.length);
                    self.host.handle_line_free(0, transmission, self.line_free);
                    self.end(frame.handle.0 as u32);
                }
                Output::Loopback { .. } => panic!("nothing is for the host itself"),
                Output::Abort { .. } | Output::Fragment { .. } => {
                    panic!("nothing cuts a transmission off")
                }
                Output::Dropped { frame, cause: Cause::Overrun, .. } => {
                    let (sequence, at) = self.arrived.pop_back().expect("it came last");
                    assert_eq!(sequence, frame.handle.0 as u32);
                    let waiting = self.arrived.len() + self.leaving.iter().filter(|out| **out > at).count();
                    assert!(waiting >= self.ring, "the ring had room");
                    self.overrun += 1;
                }
                Output::Dropped { frame, cause, .. } => {
                    assert!(matches!(cause, Cause::Full(_)));
                    self.end(frame.handle.0 as u32);
                }
                Output::Deliver { frame, driver, application, .. } => {
                    let (sequence, at) = self.arrived.pop_front().expect("it came");
                    assert_eq!(sequence, frame.handle.0 as u32, "frames come up in their order");
                    let cost = self.receive.of(frame.length);
                    assert!(driver >= at && application - cost >= driver);
                    assert!(application - cost >= self.last_application);
                    self.last_application = application;
                    self.leaving.push(application);
                    self.delivered += 1;
                }
            }
        }
        let in_ring = self.arrived.len() + self.leaving.iter().filter(|out| **out > self.now).count();
        assert!(in_ring <= self.ring, "more frames than the ring holds");
    }
}
