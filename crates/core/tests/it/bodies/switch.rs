//! The switch, with its forwarding table, queues and ports.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::Cause;
use wg_core::clock::TrueTime;
use wg_core::forwarding::{Forwarding, Learning, PortSet};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::{Port, PortConfig, Transmission};
use wg_core::queue::Capacity;
use wg_core::selection::StrictPriority;
use wg_core::switch::{AdmitAll, Arrival, ForwardingMode, Output, Switch, SwitchConfig};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const AGEING: i64 = 50_000_000_000;
const GROUP: MacAddress = MacAddress([3, 0, 0, 0, 0, 1]);

/// Any frames, stations, VLANs, limits and calls, handed in early, in time or late: a frame goes where an
/// independent reading of the rules sends it and nowhere else, each copy is transmitted or dropped with a reason, no
/// line carries two frames, limits hold, and frames of one way and priority keep their order.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let mut run = Run::new(&mut input);
    while !input.is_done() && run.fates.len() < 300 {
        match input.byte() % 8 {
            0 => run.deadline(),
            1 => run.answer(usize::from(input.byte())),
            2 if input.one_in(4) => run.advance(input.below(2 * AGEING as u64) as i64),
            2 => run.advance(input.below(2_000_000_000) as i64),
            3 => run.reach_next_deadline(),
            _ => run.arrive(&mut input),
        }
        run.collect();
    }
    run.finish();
}

/// IEEE Std 802.3-2022, 4.2.7.1: 1518 bytes, and a tag on top.
fn is_giant(frame: &Frame) -> bool {
    frame.length > if frame.vlan == 0 { 1_518 } else { 1_522 }
}

struct Fate {
    came_by: usize,
    complete: RunTime,
    queue: (usize, u8),
    /// Egress ports the rules name; empty: dropped where it came in.
    expected: BTreeSet<usize>,
    ended: BTreeSet<usize>,
}

struct Run {
    switch: Switch<StrictPriority, AdmitAll, TrueTime>,
    count: usize,
    mode: ForwardingMode,
    delay: Span,
    mixed: Span,
    limit: Capacity,
    answers_at_once: bool,
    learns: bool,
    tagged: bool,
    vlans: BTreeMap<u16, BTreeSet<usize>>,
    now: RunTime,
    /// When the line into each port is free for the next frame.
    incoming_free: Vec<RunTime>,
    free_at: Vec<RunTime>,
    open: Vec<(usize, u16, Transmission)>,
    fates: Vec<Fate>,
    /// Frames in the order in which the switch takes note of them, with the instant.
    noted: Vec<(RunTime, Arrival)>,
    stations: BTreeMap<(u16, MacAddress), (usize, RunTime)>,
    last_of_way: BTreeMap<(usize, usize, u8), u32>,
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let count = 2 + usize::from(input.byte() % 4);
        let mode = if input.one_in(2) { ForwardingMode::CutThrough } else { ForwardingMode::StoreAndForward };
        let delay = Span::from_picos(if input.one_in(3) { 0 } else { input.below(3_000_000) as i64 });
        let learns = !input.one_in(4);
        let tagged = input.one_in(3);
        let limit = Capacity { bytes: 64 + input.below(6_000), frames: 1 + input.below(9) as u32 };
        let ports = (0..count)
            .map(|_| {
                let rate = if input.one_in(3) { 10_000_000 } else { 100_000_000 };
                let line = LineRate::new(rate).expect("a rate");
                Port::new(PortConfig::strict_priority(line, limit), StrictPriority)
            })
            .collect();
        let learning = Learning { ageing: Span::from_picos(AGEING), places: 256 };
        let mut forwarding = Forwarding::new(count, learns.then_some(learning));
        let mut vlans = BTreeMap::new();
        if tagged {
            for vlan in 1..=2 {
                let bits = input.byte();
                let members: BTreeSet<usize> = (0..count).filter(|port| bits >> port & 1 == 1).collect();
                forwarding.set_vlan(vlan, PortSet::of(count, members.iter().copied()));
                vlans.insert(vlan, members);
            }
        }
        for vlan in 0..=2 {
            forwarding.set_group(vlan, GROUP, PortSet::of(count, [0, 1]));
        }
        let shared = Capacity { bytes: u64::MAX, frames: 2 + input.below(20) as u32 };
        let mixed = Span::from_picos(if input.one_in(2) { 0 } else { input.below(5_000_000) as i64 });
        let config = SwitchConfig { mixed_rate_delay: mixed, processing_delay: delay, mode, shared };
        Self {
            switch: Switch::new(config, ports, forwarding, AdmitAll, TrueTime),
            count,
            mode,
            delay,
            mixed,
            limit,
            answers_at_once: input.one_in(2),
            learns,
            tagged,
            vlans,
            now: RunTime::ZERO,
            incoming_free: vec![RunTime::ZERO; count],
            free_at: vec![RunTime::ZERO; count],
            open: Vec::new(),
            fates: Vec::new(),
            noted: Vec::new(),
            stations: BTreeMap::new(),
            last_of_way: BTreeMap::new(),
        }
    }

    fn advance(&mut self, picos: i64) {
        self.now = self.now + Span::from_picos(picos);
    }

    fn deadline(&mut self) {
        self.note_until(self.now);
        self.switch.handle_deadline(self.now);
    }

    fn reach_next_deadline(&mut self) {
        if let Some(at) = self.switch.next_deadline().instant() {
            self.now = self.now.max(at);
        }
        self.deadline();
    }

    fn answer(&mut self, which: usize) {
        if !self.open.is_empty() {
            let at = which % self.open.len();
            let (port, length, transmission) = self.open.swap_remove(at);
            let free_at = self.free_at[port].max(self.now);
            assert!(length > 0);
            self.free_at[port] = free_at;
            self.switch.handle_line_free(port, transmission, free_at);
        }
    }

    fn arrive(&mut self, input: &mut Input<'_>) {
        let port = usize::from(input.byte()) % self.count;
        let station = |byte: u8| MacAddress([2, 0, 0, 0, 0, 1 + byte % 6]);
        let destination = match input.byte() {
            0..30 => MacAddress::BROADCAST,
            30..60 => GROUP,
            other => station(other),
        };
        let source = station(input.byte());
        // Up to the longest with a tag: of frames without one a giant.
        let length = 64 + input.below(1_459) as u16;
        let vlan = if self.tagged { u16::from(input.byte() % 4) } else { 0 };
        let frame = Frame {
            destination,
            source,
            length,
            vlan,
            virtual_link: 0,
            handle: Handle(self.fates.len() as u64),
            priority: input.byte() % 8,
            class: TrafficClass::BestEffort,
            network: NetworkId::A,
            sequence: 0,
            marks: if vlan == 0 { Marks::none() } else { Marks::TAGGED },
        };
        // Its first bit comes no sooner than the line into the port allows.
        let line = self.switch.line(port);
        let begun = self.incoming_free[port].max(self.now);
        let (header, complete) =
            (begun + line.header(frame.vlan != 0), begun + line.transmission(frame.length));
        self.incoming_free[port] = begun + line.occupation(frame.length);
        let ready = self.switch.ready_at(header, complete);
        let early = self.mode == ForwardingMode::StoreAndForward && input.one_in(3);
        if !early {
            self.now = self.now.max(ready);
            if input.one_in(4) {
                self.advance(1_000_000);
                // A driver that is late brings every frame late.
                self.incoming_free[port] = self.incoming_free[port].max(self.now);
            }
        }
        let arrival = Arrival { port, frame, complete };
        self.fates.push(Fate {
            came_by: port,
            complete,
            queue: (port, frame.priority),
            expected: BTreeSet::new(),
            ended: BTreeSet::new(),
        });
        if early && complete + self.delay > self.now {
            let at = self.noted.partition_point(|(other, _)| *other <= complete + self.delay);
            self.noted.insert(at, (complete + self.delay, arrival));
        } else {
            self.note_until(self.now);
            self.note(self.now, arrival);
        }
        self.switch.handle_frame(self.now, arrival, input.one_in(3));
    }

    fn note_until(&mut self, now: RunTime) {
        while self.noted.first().is_some_and(|(at, _)| *at <= now) {
            let (_, arrival) = self.noted.remove(0);
            self.note(now, arrival);
        }
    }

    /// Who cuts through has decided before the end of a giant is there.
    fn is_refused_giant(&self, frame: &Frame) -> bool {
        self.mode == ForwardingMode::StoreAndForward && is_giant(frame)
    }

    /// The rules as IEEE Std 802.1Q-2022, 8.6 has them, read again.
    fn note(&mut self, now: RunTime, arrival: Arrival) {
        let Arrival { port, frame, .. } = arrival;
        if self.is_refused_giant(&frame) {
            return;
        }
        let everywhere: BTreeSet<usize> = (0..self.count).collect();
        let members = match (self.tagged, self.vlans.get(&frame.vlan)) {
            (false, _) => everywhere,
            (true, members) => members.cloned().unwrap_or_default(),
        };
        if !members.contains(&port) {
            return;
        }
        let vlan = if self.tagged { frame.vlan } else { 0 };
        if self.learns && !is_giant(&frame) {
            self.stations.insert((vlan, frame.source), (port, now));
        }
        let known = self
            .stations
            .get(&(vlan, frame.destination))
            .filter(|(_, seen)| now - *seen <= Span::from_picos(AGEING));
        let egress: BTreeSet<usize> = match (frame.destination, known) {
            (GROUP, _) if vlan <= 2 => [0, 1].into(),
            (_, Some((port, _))) => [*port].into(),
            _ => members.clone(),
        };
        let fate = &mut self.fates[frame.handle.0 as usize];
        fate.expected = egress.intersection(&members).copied().filter(|egress| *egress != port).collect();
    }

    fn collect(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            match output {
                Output::Follow { .. } | Output::Elsewhere { .. } => panic!("nobody asked for it"),
                Output::Transmit { port, frame, transmission } => {
                    assert!(self.free_at[port] <= self.now, "two frames on one line");
                    assert!(!self.open.iter().any(|(open, ..)| *open == port), "an unanswered line was used");
                    let fate = &mut self.fates[frame.handle.0 as usize];
                    assert!(fate.expected.contains(&port) && fate.ended.insert(port), "not a planned copy");
                    let lines = [fate.came_by, port].map(|port| self.switch.line(port));
                    if lines[0] != lines[1] {
                        assert!(
                            self.now >= fate.complete + self.delay + self.mixed,
                            "a rate changed for nothing"
                        );
                    }
                    if self.now < fate.complete + self.delay {
                        assert!(
                            self.mode == ForwardingMode::CutThrough && lines[0] == lines[1],
                            "cut through in vain"
                        );
                    }
                    let way = (fate.queue.0, port, fate.queue.1);
                    let before = self.last_of_way.insert(way, frame.handle.0 as u32);
                    assert!(
                        before.is_none_or(|before| before < (frame.handle.0 as u32)),
                        "overtaken on its way"
                    );
                    let line = self.switch.line(port);
                    self.free_at[port] = self.now + line.occupation(frame.length);
                    if self.answers_at_once {
                        self.switch.handle_line_free(port, transmission, self.free_at[port]);
                    } else {
                        self.open.push((port, frame.length, transmission));
                    }
                }
                Output::Abort { .. } | Output::Fragment { .. } => {
                    panic!("nothing cuts a transmission off")
                }
                Output::Dropped { port, frame, cause } => {
                    let is_refused_giant = self.is_refused_giant(&frame);
                    let fate = &mut self.fates[frame.handle.0 as usize];
                    assert_eq!(cause == Cause::WrongLength, is_refused_giant);
                    match cause {
                        Cause::Full(_) => {
                            assert!(fate.expected.contains(&port) && fate.ended.insert(port));
                        }
                        Cause::ForeignVlan | Cause::NoEgress | Cause::WrongLength => {
                            assert!(fate.expected.is_empty() && port == fate.came_by);
                            assert!(fate.ended.insert(usize::MAX), "dropped twice");
                        }
                        _ => panic!("there is no rule that refuses"),
                    }
                }
            }
        }
        for port in 0..self.count {
            let fill = self.switch.fill(port);
            assert!(fill.bytes <= self.limit.bytes && fill.frames <= self.limit.frames);
        }
    }

    fn finish(mut self) {
        for _ in 0..10_000 {
            self.collect();
            while !self.open.is_empty() {
                self.answer(0);
            }
            if self.switch.next_deadline().instant().is_none() {
                break;
            }
            self.reach_next_deadline();
        }
        assert_eq!(self.switch.staged(), 0);
        for fate in &self.fates {
            if fate.expected.is_empty() {
                assert_eq!(fate.ended, [usize::MAX].into(), "a frame without a way ends where it came in");
            } else {
                assert_eq!(fate.ended, fate.expected, "every copy has one fate");
            }
        }
    }
}
