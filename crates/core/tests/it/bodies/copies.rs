//! A driver that keeps the bytes of frames in buffers and counts who needs them: a switch and a host tell it what
//! becomes of every copy.

use wg_core::Cause;
use wg_core::arinc664::redundancy::Redundancy;
use wg_core::arinc664::{Bag, Contract};
use wg_core::clock::{LocalClock, LocalTime, TrueTime};
use wg_core::end_system::{self, Cost, Host, HostConfig, Interrupts};
use wg_core::forwarding::{Forwarding, Learning, PortSet};
use wg_core::frame::{Frame, Handle, Marks, NetworkId, STACKS, TrafficClass};
use wg_core::frer::{Algorithm, Elimination, RecoveryConfig, Relay, Replication, StreamId, StreamTable};
use wg_core::line::{GAP, LineRate};
use wg_core::port::{Life, Port, PortConfig, Transmission};
use wg_core::queue::Capacity;
use wg_core::selection::{Missed, Selection, StrictPriority, TimeTriggered, WindowConfig};
use wg_core::switch::{self, Arrival, ForwardingMode, Ingress, Switch, SwitchConfig, Verdict};
use wg_core::tte::access::Integration;
use wg_core::tte::dispatch::{Instants, PortMode};
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_core::virtual_link_layer::{
    IncomingLink, Networks, OutgoingLink, OutgoingSchedule, VirtualLinkLayer, VirtualLinkLayerConfig,
};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const PORTS: usize = 4;
const RATE: u64 = 100_000_000;
const PERIOD: Span = Span::from_micros(500);
const GROUPS: [&[usize]; 3] = [&[1, 2, 3], &[0], &[0, 2]];

/// Any traffic, multicast, flooded, dropped, aborted, superseded, contended for, through restarts, answered at once or
/// late: every handle is freed once, and none before the end of its last copy.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    if input.one_in(3) { through_host(&mut input) } else { through_switch(&mut input) }
}

/// Who still needs what is behind each handle, by handle.
#[derive(Default)]
struct Buffers {
    users: Vec<u32>,
    /// Copies on a line: handle, port, and when it is through.
    on_line: Vec<(Handle, usize, Option<RunTime>)>,
}

impl Buffers {
    /// A new buffer, used by the frame that is handed in.
    fn fill(&mut self) -> Handle {
        self.users.push(1);
        Handle(self.users.len() as u64 - 1)
    }

    fn users(&mut self, handle: Handle) -> &mut u32 {
        let users = &mut self.users[handle.0 as usize];
        assert!(*users > 0, "{handle:?} is told of after it was freed");
        users
    }

    fn end(&mut self, handle: Handle) {
        *self.users(handle) -= 1;
    }

    fn follow(&mut self, now: RunTime, handle: Handle, port: usize, life: Life) {
        match life {
            Life::Copied(copies) => {
                assert!(copies > 1, "one copy is nothing to tell");
                *self.users(handle) += copies - 1;
            }
            Life::Waits => {
                self.users(handle);
            }
            Life::Sent => {
                let line = self.on_line.iter().position(|line| (line.0, line.1) == (handle, port));
                let (_, _, free_at) = self.on_line.swap_remove(line.expect("it was sent"));
                assert!(free_at.is_some_and(|at| at <= now), "freed while it is on the line");
                self.end(handle);
            }
        }
    }

    fn transmit(&mut self, handle: Handle, port: usize, free_at: Option<RunTime>) {
        self.users(handle);
        assert!(self.on_line.iter().all(|line| line.1 != port), "the frame before was never told as sent");
        self.on_line.push((handle, port, free_at));
    }

    fn abort(&mut self, handle: Handle, port: usize) {
        self.users(handle);
        let before = self.on_line.len();
        self.on_line.retain(|line| (line.0, line.1) != (handle, port));
        assert_eq!(self.on_line.len() + 1, before, "it was on the line");
    }

    fn answer(&mut self, port: usize, free_at: RunTime) {
        let line = self.on_line.iter_mut().find(|line| line.1 == port);
        line.into_iter().for_each(|line| line.2 = Some(free_at));
    }

    fn all_free(&self) -> bool {
        self.users.iter().all(|users| *users == 0) && self.on_line.is_empty()
    }
}

/// Answers that are owed: port, the answer, when the line is free.
type Owed = Vec<(usize, Transmission, RunTime)>;

fn selection(input: &mut Input<'_>) -> Selection {
    if input.one_in(3) {
        return Selection::StrictPriority(StrictPriority);
    }
    let window = |flow: u16| Window {
        flow,
        offset: Span::from_micros(150 * i64::from(flow)),
        period: PERIOD,
        length: Span::from_micros(40),
        longest_frame: 200,
    };
    let schedule = PortSchedule::new(PERIOD, (0..3).map(window).collect(), RATE).expect("sound");
    let integration = match input.byte() % 3 {
        0 => Integration::TimelyBlock,
        1 => Integration::Shuffling,
        _ => Integration::Preemption,
    };
    let missed = if input.one_in(2) { Missed::Keep } else { Missed::Drop };
    let windows = WindowConfig { schedule, integration, raster: None, frames: 1, missed };
    Selection::TimeTriggered(Box::new(TimeTriggered::new(windows)))
}

fn port(input: &mut Input<'_>) -> Port<Selection> {
    let line = LineRate::new(RATE).expect("a rate");
    let limit = Capacity::frames(1 + input.below(6) as u32);
    Port::new(PortConfig::critical(line, limit), selection(input))
}

fn frame(input: &mut Input<'_>, handle: Handle) -> Frame {
    let class = match input.byte() % 4 {
        0 => TrafficClass::TimeTriggered,
        1 => TrafficClass::RateConstrained,
        _ => TrafficClass::BestEffort,
    };
    let station = |number: u8| MacAddress([2, 0, 0, 0, 0, number % 4]);
    Frame {
        destination: if input.one_in(3) { MacAddress::BROADCAST } else { station(input.byte()) },
        source: station(input.byte()),
        length: 64 + input.below(if class == TrafficClass::TimeTriggered { 100 } else { 1_400 }) as u16,
        vlan: 0,
        virtual_link: u16::from(input.byte() % 4),
        sequence: 0,
        handle,
        priority: input.byte() % 8,
        class,
        network: NetworkId::A,
        marks: if input.one_in(16) { Marks::FCS_ERROR } else { Marks::none() },
    }
}

/// Refuses one identifier of four, and sends the others to groups.
struct Rule;

impl Ingress for Rule {
    fn judge(&mut self, _clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        match (arrival.frame.class, usize::from(arrival.frame.virtual_link)) {
            (TrafficClass::BestEffort, _) => Verdict::Bridge,
            (_, group) if group < GROUPS.len() => Verdict::ToGroup(group),
            _ => Verdict::Refuse(Cause::Filtered),
        }
    }
}

/// Copies of what goes to station 1 are made, of what goes to station 2 are removed, and what goes to station 3 parts.
fn streams() -> StreamTable {
    let station = |number: u8| MacAddress([2, 0, 0, 0, 0, number]);
    let stream = |number: u8| StreamId { destination: station(number), vlan: 0 };
    let recovery = RecoveryConfig {
        algorithm: Algorithm::Vector { history_length: 4 },
        reset: PERIOD,
        take_no_sequence: true,
        individual: false,
    };
    let replication = Replication { stream: stream(1), members: vec![station(0), station(2), station(9)] };
    let members = vec![station(2)];
    let elimination = Elimination { stream: stream(0), members, recovery, individual: None, latent: None };
    let relay = Relay { stream: stream(3), leaves: vec![station(0), MacAddress::BROADCAST] };
    StreamTable::new(vec![replication], vec![elimination])
        .and_then(|table| table.with_relays(Vec::new(), vec![relay]))
        .expect("a sound table")
}

fn through_switch(input: &mut Input<'_>) {
    let learning = Learning { ageing: Span::from_millis(1_000), places: 64 };
    let mut forwarding = Forwarding::new(PORTS, input.one_in(2).then_some(learning));
    for group in GROUPS {
        forwarding.add_group(PortSet::of(PORTS, group.iter().copied()));
    }
    let mode = if input.one_in(3) { ForwardingMode::CutThrough } else { ForwardingMode::StoreAndForward };
    let shared = Capacity::frames(2 + input.below(12) as u32);
    let config =
        SwitchConfig { mixed_rate_delay: Span::ZERO, processing_delay: Span::from_nanos(500), mode, shared };
    let ports = (0..PORTS).map(|_| port(input)).collect();
    let mut switch = Switch::new(config, ports, forwarding, Rule, TrueTime);
    switch.follow_copies();
    if mode == ForwardingMode::StoreAndForward && input.one_in(2) {
        switch.set_streams(streams());
    }
    let at_once = input.one_in(2);
    let (mut buffers, mut owed, mut now) = (Buffers::default(), Owed::new(), RunTime::ZERO);
    while !input.is_done() && buffers.users.len() < 300 {
        match input.byte() % 8 {
            0 => now = now + Span::from_picos(input.below(200_000_000) as i64),
            1 | 2 => now = switch.next_deadline().instant().map_or(now, |at| at.max(now)),
            3 if input.one_in(16) => switch.handle_restart(now, now + PERIOD),
            4 => answer(&mut owed, now, &mut buffers, |port, due, at| switch.handle_line_free(port, due, at)),
            _ => {
                let (port, frame) = (usize::from(input.byte()) % PORTS, frame(input, buffers.fill()));
                let rest = if input.one_in(4) { 0 } else { input.below(100_000_000) as i64 };
                let complete = now + Span::from_picos(rest);
                switch.handle_frame(now, Arrival { port, frame, complete }, input.one_in(3));
                drain_switch(&mut switch, now, &mut buffers, &mut owed, at_once);
                continue;
            }
        }
        switch.handle_deadline(now);
        drain_switch(&mut switch, now, &mut buffers, &mut owed, at_once);
    }
    for _ in 0..3_000 {
        answer(&mut owed, RunTime::from_picos(i64::MAX), &mut buffers, |port, due, at| {
            now = now.max(at);
            switch.handle_line_free(port, due, at);
        });
        now = switch.next_deadline().instant().map_or(now, |at| at.max(now));
        switch.handle_deadline(now);
        drain_switch(&mut switch, now, &mut buffers, &mut owed, at_once);
    }
    if !buffers.all_free() {
        // A frame that fits before no window waits for ever.
        switch.handle_restart(now, now);
        drain_switch(&mut switch, now, &mut buffers, &mut owed, at_once);
        assert!(owed.len() <= PORTS);
        answer(&mut owed, RunTime::from_picos(i64::MAX), &mut buffers, |port, due, at| {
            now = now.max(at);
            switch.handle_line_free(port, due, at);
        });
        now = now + PERIOD;
        switch.handle_deadline(now);
        drain_switch(&mut switch, now, &mut buffers, &mut owed, at_once);
    }
    assert!(buffers.all_free(), "a buffer is never freed");
}

/// Answers what is through at `now`, as a live driver does.
fn answer(
    owed: &mut Owed,
    now: RunTime,
    buffers: &mut Buffers,
    mut give: impl FnMut(usize, Transmission, RunTime),
) {
    let (through, still) = owed.drain(..).partition(|(_, _, at)| *at <= now);
    *owed = still;
    for (port, due, free_at) in through {
        buffers.answer(port, free_at);
        give(port, due, free_at);
    }
}

fn drain_switch(
    switch: &mut Switch<Selection, Rule, TrueTime>,
    now: RunTime,
    buffers: &mut Buffers,
    owed: &mut Owed,
    at_once: bool,
) {
    while let Some(output) = switch.poll_output() {
        match output {
            switch::Output::Transmit { port, frame, transmission } => {
                let free_at = now + switch.line(port).occupation(frame.length);
                buffers.transmit(frame.handle, port, at_once.then_some(free_at));
                if at_once {
                    switch.handle_line_free(port, transmission, free_at);
                } else {
                    owed.push((port, transmission, free_at));
                }
            }
            switch::Output::Fragment { .. } | switch::Output::Elsewhere { .. } => {
                panic!("nothing is sent in fragments, and all ports are its own")
            }
            switch::Output::Abort { port, frame, transmission } => {
                buffers.abort(frame.handle, port);
                switch.handle_line_free(port, transmission, now + switch.line(port).time_of(GAP));
            }
            switch::Output::Dropped { frame, .. } => buffers.end(frame.handle),
            switch::Output::Follow { port, frame, life } => buffers.follow(now, frame.handle, port, life),
        }
    }
}

fn interface() -> VirtualLinkLayer {
    let contract = Contract::new(Bag::ALL[0], 600).expect("a contract");
    let instants = Instants::new(Span::from_micros(100), PERIOD).expect("sound");
    let config = VirtualLinkLayerConfig {
        outgoing_links: vec![OutgoingLink {
            id: 0,
            contract,
            queues: vec![2],
            networks: Networks::Both,
            jitter_budget: PERIOD,
        }],
        outgoing_schedules: vec![
            OutgoingSchedule {
                id: 1,
                instants,
                mode: PortMode::Sampling,
                longest_frame: 200,
                networks: Networks::Both,
            },
            OutgoingSchedule {
                id: 2,
                instants,
                mode: PortMode::Queuing(1),
                longest_frame: 200,
                networks: Networks::One(NetworkId::B),
            },
        ],
        incoming_links: vec![IncomingLink { id: 3, bag: Bag::ALL[0], redundancy: Redundancy::Off }],
        ..VirtualLinkLayerConfig::default()
    };
    VirtualLinkLayer::new(config, LocalTime::ZERO).expect("a sound interface")
}

#[expect(clippy::too_many_lines, reason = "a body is read beside its oracle")]
fn through_host(input: &mut Input<'_>) {
    let cost = Cost { fixed: Span::from_nanos(2_000), per_byte: Span::ZERO };
    let interrupts = match input.byte() % 3 {
        0 => Interrupts::EachFrame,
        1 => Interrupts::Coalesced { frames: 3, wait: Span::from_micros(50) },
        _ => Interrupts::Polled { period: Span::from_micros(100) },
    };
    let config = HostConfig {
        transmit: if input.one_in(2) { cost } else { Cost::default() },
        receive: cost,
        backlog: 4,
        ring: 3,
        interrupts,
        interrupt_latency: Span::ZERO,
        card_read: None,
        buffers: None,
        stacks: [None; STACKS],
        interface_receive_delay: Span::ZERO,
    };
    let ports = vec![(NetworkId::A, port(input)), (NetworkId::B, port(input))];
    let mut host = Host::new(config, ports, Some(interface()), TrueTime);
    host.follow_copies();
    let (mut buffers, mut owed, mut now) = (Buffers::default(), Owed::new(), RunTime::ZERO);
    while !input.is_done() && buffers.users.len() < 300 {
        match input.byte() % 8 {
            0 => now = now + Span::from_picos(input.below(200_000_000) as i64),
            1 | 2 => now = host.next_deadline().instant().map_or(now, |at| at.max(now)),
            3 if input.one_in(16) => host.handle_restart(now),
            4 => answer(&mut owed, now, &mut buffers, |port, due, at| host.handle_line_free(port, due, at)),
            5 => {
                let frame = frame(input, buffers.fill());
                host.handle_frame(now, usize::from(input.byte()) % 2, frame, Span::ZERO);
                drain_host(&mut host, now, &mut buffers, &mut owed);
                continue;
            }
            _ => {
                let mut frame = Frame { marks: Marks::none(), ..frame(input, buffers.fill()) };
                if input.one_in(2) && frame.class == TrafficClass::BestEffort {
                    frame.marks = Marks::BOTH_NETWORKS;
                }
                let more = input.one_in(3);
                if input.one_in(4) {
                    host.handle_generated(now, frame, more);
                } else if host.handle_send(now, frame, Span::ZERO, more).is_err() {
                    // Not taken: the caller keeps it.
                    buffers.end(frame.handle);
                }
                drain_host(&mut host, now, &mut buffers, &mut owed);
                continue;
            }
        }
        host.handle_deadline(now);
        drain_host(&mut host, now, &mut buffers, &mut owed);
    }
    for _ in 0..200 {
        answer(&mut owed, RunTime::from_picos(i64::MAX), &mut buffers, |port, due, at| {
            now = now.max(at);
            host.handle_line_free(port, due, at);
        });
        now = host.next_deadline().instant().map_or(now, |at| at.max(now));
        host.handle_deadline(now);
        drain_host(&mut host, now, &mut buffers, &mut owed);
    }
    host.handle_restart(now);
    for _ in 0..2 {
        drain_host(&mut host, now, &mut buffers, &mut owed);
        answer(&mut owed, RunTime::from_picos(i64::MAX), &mut buffers, |port, due, at| {
            now = now.max(at);
            host.handle_line_free(port, due, at);
        });
        host.handle_deadline(now);
    }
    drain_host(&mut host, now, &mut buffers, &mut owed);
    assert!(buffers.all_free(), "a buffer is never freed");
}

fn drain_host(host: &mut Host<Selection, TrueTime>, now: RunTime, buffers: &mut Buffers, owed: &mut Owed) {
    while let Some(output) = host.poll_output() {
        match output {
            end_system::Output::Transmit { port, frame, transmission } => {
                buffers.transmit(frame.handle, port, None);
                owed.push((port, transmission, now + host.line(port).occupation(frame.length)));
            }
            end_system::Output::Fragment { .. } => panic!("nothing is sent in fragments"),
            end_system::Output::Abort { port, frame, transmission } => {
                buffers.abort(frame.handle, port);
                host.handle_line_free(port, transmission, now + host.line(port).time_of(GAP));
            }
            end_system::Output::Dropped { frame, .. } | end_system::Output::Deliver { frame, .. } => {
                buffers.end(frame.handle);
            }
            end_system::Output::Loopback { frame } => host.handle_loopback(now, frame, Span::ZERO),
            end_system::Output::Follow { port, frame, life } => buffers.follow(now, frame.handle, port, life),
        }
    }
}
