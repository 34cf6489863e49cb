//! A switch of critical ports behind filter and policing.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use wg_core::arinc664::filter::Entry;
use wg_core::arinc664::policing::{self, Account};
use wg_core::arinc664::{Bag, Contract, VirtualLinkId};
use wg_core::clock::{DisciplinedClock, SharedClock};
use wg_core::forwarding::{Forwarding, PortSet};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::ingress::{CriticalIngress, Egress, InputTable, TimeTriggeredEntry, VirtualLinkEntry};
use wg_core::line::{GAP, LineRate};
use wg_core::oscillator::{FrequencyOffset, Oscillator};
use wg_core::port::{Port, PortConfig};
use wg_core::queue::Capacity;
use wg_core::selection::{Missed, Selection, StrictPriority, TimeTriggered, WindowConfig};
use wg_core::switch::{Arrival, ForwardingMode, Ingress, Output, Switch, SwitchConfig, Verdict};
use wg_core::tte::access::Integration;
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_core::{Cause, Deadline};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const PORTS: usize = 4;
const RATE: u64 = 100_000_000;
/// Flows of each kind; flow `i` enters by port `i % PORTS` and leaves by `GROUPS[i]`.
const FLOWS: usize = 6;
const GROUPS: [&[usize]; FLOWS] = [&[1], &[0, 2, 3], &[0], &[3, 1], &[1, 2, 3], &[0, 1, 2, 3]];
const PERIOD: Span = Span::from_micros(500);

/// Any traffic of three classes, damage, clock steps, restarts and late calls: what the rule refuses ends where it came
/// in for the rule's reason, of all else each copy leaves by a port of its group or ends with a reason, an aborted
/// one leaves later, and no line carries two frames. After a restart nothing is left inside.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let mut run = Run::new(&mut input);
    while !input.is_done() && run.fates.len() < 300 {
        match input.byte() % 16 {
            0 => run.handle_deadline(),
            1 => run.now = run.now + Span::from_picos(input.below(300_000_000) as i64),
            2..=5 => run.reach_next_deadline(),
            6 if input.one_in(16) => run.restart(&mut input),
            7 if input.one_in(8) => run.change_clock(&mut input),
            _ => run.arrive(&mut input),
        }
    }
    for _ in 0..1_000 {
        run.reach_next_deadline();
    }
    assert_eq!(run.open(), run.waiting(), "every copy has one end or waits");
}

struct Run {
    switch: Switch<Selection, CriticalIngress, SharedClock>,
    clock: SharedClock,
    mirror: CriticalIngress,
    mode: ForwardingMode,
    now: RunTime,
    incoming_free: [RunTime; PORTS],
    free_at: [RunTime; PORTS],
    back_at: RunTime,
    /// Ports where copies have not ended, by frame.
    fates: Vec<BTreeSet<usize>>,
    on_wire: [Option<Frame>; PORTS],
}

fn rule(input: &mut Input<'_>) -> CriticalIngress {
    let mut tables = vec![InputTable::default(); PORTS];
    for flow in 0..FLOWS {
        let contract = Contract::new(Bag::ALL[0], 600).expect("a contract");
        let jitter = Span::from_micros(input.below(2_000) as i64);
        let mode = if input.one_in(2) { policing::Mode::ByteBased } else { policing::Mode::FrameBased };
        let account = Account::new(contract, jitter, mode).expect("a jitter");
        let entry = Entry { virtual_link: VirtualLinkId(flow as u16), lmin: 64, lmax: 600 };
        let account = (!input.one_in(4)).then_some(account);
        // A group of one port is as good as the port.
        let to = match GROUPS[flow] {
            [port] if flow == 0 => Egress::Port(*port),
            _ => Egress::Group(flow),
        };
        tables[flow % PORTS].virtual_links.push(VirtualLinkEntry { entry, account, to });
        let id = flow as u16;
        let entry = TimeTriggeredEntry { id, longest_frame: 200, window: None, group: flow };
        tables[flow % PORTS].time_triggered.push(entry);
    }
    CriticalIngress::new(tables).expect("sound tables")
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let line = LineRate::new(RATE).expect("a rate");
        let window = |flow: u16| Window {
            flow,
            offset: Span::from_micros(70 * i64::from(flow)),
            period: PERIOD,
            length: Span::from_micros(40),
            longest_frame: 200,
        };
        let integration = match input.byte() % 3 {
            0 => Integration::Preemption,
            1 => Integration::TimelyBlock,
            _ => Integration::Shuffling,
        };
        let limit = Capacity { bytes: 200 + input.below(20_000), frames: 1 + input.below(20) as u32 };
        let config = PortConfig::critical(line, limit);
        let mut port = |scheduled| {
            let missed = if input.one_in(2) { Missed::Keep } else { Missed::Drop };
            let windows = (0..FLOWS as u16).map(window).collect();
            let schedule = PortSchedule::new(PERIOD, windows, RATE).expect("sound");
            let windows = WindowConfig { schedule, integration, raster: None, frames: 1, missed };
            let windows = Box::new(TimeTriggered::new(windows));
            let selection = if scheduled {
                Selection::TimeTriggered(windows)
            } else {
                Selection::StrictPriority(StrictPriority)
            };
            Port::new(config, selection)
        };
        let ports: Vec<_> = (0..PORTS).map(|at| port(at != 2)).collect();
        let mut forwarding = Forwarding::new(PORTS, None);
        for group in GROUPS {
            forwarding.add_group(PortSet::of(PORTS, group.iter().copied()));
        }
        let mode = if input.one_in(3) { ForwardingMode::CutThrough } else { ForwardingMode::StoreAndForward };
        let processing_delay = Span::from_picos(input.below(3_000_000) as i64);
        let shared = Capacity { bytes: u64::MAX, frames: 5 + input.below(30) as u32 };
        let mirror = rule(input);
        let frequency = FrequencyOffset::from_ppb(input.below(200_000) as i64 - 100_000).expect("in range");
        let clock = DisciplinedClock::new(Oscillator::new(frequency), Span::ZERO, Span::from_picos(1));
        let clock = Rc::new(RefCell::new(clock.expect("a clock")));
        let config = SwitchConfig { mixed_rate_delay: Span::ZERO, processing_delay, mode, shared };
        Self {
            switch: Switch::new(config, ports, forwarding, mirror.clone(), clock.clone()),
            clock,
            mirror,
            mode,
            now: RunTime::ZERO,
            incoming_free: [RunTime::ZERO; PORTS],
            free_at: [RunTime::ZERO; PORTS],
            back_at: RunTime::ZERO,
            fates: Vec::new(),
            on_wire: [None; PORTS],
        }
    }

    fn open(&self) -> usize {
        self.fates.iter().map(BTreeSet::len).sum()
    }

    fn waiting(&self) -> usize {
        let at_ports = |port| self.switch.fill(port).frames + self.switch.port(port).scheduled();
        self.switch.staged() + (0..PORTS).map(at_ports).sum::<u32>() as usize
    }

    fn handle_deadline(&mut self) {
        self.switch.handle_deadline(self.now);
        self.collect();
        assert!(self.switch.next_deadline() > Deadline::at(self.now), "asked back at once");
    }

    fn reach_next_deadline(&mut self) {
        if let Some(at) = self.switch.next_deadline().instant() {
            self.now = self.now.max(at);
        }
        self.handle_deadline();
    }

    fn change_clock(&mut self, input: &mut Input<'_>) {
        let step = Span::from_picos(input.below(2_000_000_000) as i64 - 1_000_000_000);
        let now = self.now;
        self.clock.borrow_mut().step(now, step).expect("in order");
        self.switch.handle_clock_change(now);
    }

    fn restart(&mut self, input: &mut Input<'_>) {
        self.back_at = self.now + Span::from_picos(input.below(500_000_000) as i64);
        self.switch.handle_restart(self.now, self.back_at);
        self.collect();
        assert_eq!((self.open(), self.waiting()), (0, 0), "all was given back");
        self.mirror.handle_restart();
    }

    fn arrive(&mut self, input: &mut Input<'_>) {
        let flow = usize::from(input.byte()) % FLOWS;
        let port = if input.one_in(16) { usize::from(input.byte()) % PORTS } else { flow % PORTS };
        let class = match input.byte() % 4 {
            0 => TrafficClass::BestEffort,
            1 => TrafficClass::TimeTriggered,
            _ => TrafficClass::RateConstrained,
        };
        let destination = match class {
            TrafficClass::BestEffort => MacAddress::BROADCAST,
            _ => MacAddress(VirtualLinkId(flow as u16).destination().0),
        };
        let frame = Frame {
            destination,
            source: MacAddress::default(),
            length: 64 + input.below(if class == TrafficClass::TimeTriggered { 150 } else { 560 }) as u16,
            vlan: 0,
            virtual_link: flow as u16,
            handle: Handle(self.fates.len() as u64),
            priority: input.byte() % 8,
            class,
            network: NetworkId::A,
            sequence: 0,
            marks: if input.one_in(16) { Marks::FCS_ERROR } else { Marks::none() },
        };
        let line = self.switch.line(port);
        let begun = self.incoming_free[port].max(self.now);
        let complete = begun + line.transmission(frame.length);
        self.incoming_free[port] = begun + line.occupation(frame.length);
        // All that is due before comes before.
        let ready = self.switch.ready_at(begun + line.header(false), complete).max(self.now);
        while self.switch.next_deadline() <= Deadline::at(ready) && !input.one_in(32) {
            self.reach_next_deadline();
        }
        self.now = self.now.max(ready);
        self.free_line(port);
        let arrival = Arrival { port, frame, complete };
        // What was held for this instant goes first.
        self.switch.handle_deadline(self.now);
        self.collect();
        let copies = self.judge(begun, &arrival);
        self.switch.handle_frame(self.now, arrival, input.one_in(3));
        match copies {
            Ok(copies) => self.fates.push(copies),
            Err(expected) => {
                self.fates.push(BTreeSet::new());
                let refusal = Output::Dropped { port, frame, cause: expected };
                assert_eq!(self.switch.poll_output(), Some(refusal));
            }
        }
        self.collect();
    }

    /// A driver that is late brings every frame late.
    fn free_line(&mut self, port: usize) {
        self.incoming_free[port] = self.incoming_free[port].max(self.now);
    }

    /// The ports the copies are for, or why there are none.
    fn judge(&mut self, begun: RunTime, arrival: &Arrival) -> Result<BTreeSet<usize>, Cause> {
        let Arrival { port, frame, .. } = *arrival;
        if begun < self.back_at {
            return Err(Cause::Down);
        }
        if self.mode == ForwardingMode::StoreAndForward && frame.marks.has(Marks::FCS_ERROR) {
            return Err(Cause::FrameCheck);
        }
        let members: BTreeSet<usize> = match self.mirror.judge(&self.clock, arrival) {
            Verdict::Refuse(cause) => return Err(cause),
            Verdict::Bridge | Verdict::BridgeAs { .. } => (0..PORTS).collect(),
            Verdict::ToPort(port) => BTreeSet::from([port]),
            Verdict::ToGroup(group) => GROUPS[group].iter().copied().collect(),
        };
        let copies: BTreeSet<usize> = members.into_iter().filter(|egress| *egress != port).collect();
        if copies.is_empty() { Err(Cause::NoEgress) } else { Ok(copies) }
    }

    fn collect(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Follow { .. } | Output::Elsewhere { .. } => panic!("nobody asked for it"),
            Output::Transmit { port, frame, transmission } => {
                assert!(self.free_at[port] <= self.now, "two frames on one wire");
                assert!(self.fates[frame.handle.0 as usize].remove(&port), "not a planned copy");
                self.free_at[port] = self.now + self.switch.line(port).occupation(frame.length);
                self.on_wire[port] = Some(frame);
                self.switch.handle_line_free(port, transmission, self.free_at[port]);
            }
            Output::Fragment { .. } => panic!("nothing is sent in fragments"),
            Output::Abort { port, frame, transmission } => {
                assert!(self.free_at[port] > self.now && self.on_wire[port].take() == Some(frame));
                assert!(self.fates[frame.handle.0 as usize].insert(port));
                self.free_at[port] = self.now + self.switch.line(port).time_of(GAP);
                self.switch.handle_line_free(port, transmission, self.free_at[port]);
            }
            Output::Dropped { port, frame, cause } => {
                let tt = frame.class == TrafficClass::TimeTriggered;
                let fits = match cause {
                    Cause::Full(_) => !tt || port == 2,
                    Cause::Superseded | Cause::MissedWindow => tt && port != 2,
                    Cause::Down => true,
                    _ => false,
                };
                assert!(fits, "{cause:?} of a {:?} frame", frame.class);
                assert!(self.fates[frame.handle.0 as usize].remove(&port), "a copy has one end");
            }
        }
    }
}
