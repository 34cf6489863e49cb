//! The loop: takes the first event of the agenda, hands it to its core, carries out what the core wants.

use std::collections::BTreeMap;

use wg_core::end_system;
use wg_core::frame::{Frame, Marks};
use wg_core::line::{GAP, PREAMBLE};
use wg_core::switch::{self, Arrival};
use wg_core::{Cause, Deadline};
use wg_frame::time::{RunTime, Span};
use wg_plan::{Network, NodeIndex, Protocol, Run, Turn};
use wg_record::{Clock, Crc, DropReason, FLOW_FOREIGN, Point, Record, RecordFlags};

use crate::agenda::{Agenda, Class, Source};
use crate::error::SimError;
use crate::models::Models;
use crate::relay::Treatment;
use crate::report::{AccessPointReport, AgentReport, PortReport, SimReport, SwitchReport, TaskReport};
use crate::sink::Sink;
use crate::world::{Flying, Place, World, access, phase};

/// Events between two looks at the outside.
const LOOK: u64 = 1 << 14;

/// Simulates `run` on `network` with the models of [`Models::default`] and hands the records to `sink`.
///
/// # Errors
/// [`SimError::Plan`] when the plan contradicts itself, or what the sink returned.
pub fn simulate(network: &Network, run: &Run, sink: &mut impl Sink) -> Result<SimReport, SimError> {
    simulate_with(network, run, &Models::default(), sink)
}

/// As [`simulate`], with these models of hosts and switches.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with(
    network: &Network,
    run: &Run,
    models: &Models,
    sink: &mut impl Sink,
) -> Result<SimReport, SimError> {
    let world = World::build(network, run, models)?;
    let agenda = Agenda::new([
        world.channels.len(),
        world.relays.len(),
        world.relays.len(),
        world.senders.len(),
        world.injectors.len(),
        world.places.len(),
    ]);
    let mut engine =
        Engine { world, agenda, models, sink, now: RunTime::ZERO, events: 0, frame_hops: 0, records: 0 };
    engine.begin();
    engine.run()?;
    Ok(engine.report(network))
}

struct Engine<'a, S> {
    world: World,
    agenda: Agenda,
    models: &'a Models,
    sink: &'a mut S,
    now: RunTime,
    events: u64,
    frame_hops: u64,
    records: u64,
}

impl<S: Sink> Engine<'_, S> {
    fn begin(&mut self) {
        for (number, sender) in self.world.senders.iter().enumerate() {
            if sender.total() > 0 {
                self.agenda.set(Class::Send, number, Deadline::At(sender.at(0).0));
            }
        }
        for (number, injector) in self.world.injectors.iter().enumerate() {
            if injector.due < self.world.last_send {
                self.agenda.set(Class::Inject, number, Deadline::At(injector.due));
            }
        }
    }

    fn run(&mut self) -> Result<(), SimError> {
        let end = self.world.end;
        while let Some((now, Source { class, number })) = self.agenda.first()
            && now <= end
        {
            self.now = now;
            match class {
                Class::Arrival => self.arrival(number),
                Class::Turn => self.turn(number),
                Class::Flush => self.give_up(number),
                Class::Send => self.send(number),
                Class::Inject => self.inject(number),
                Class::Timer => self.timer(number),
            }
            self.events += 1;
            if self.events.is_multiple_of(LOOK) {
                self.sink.advance(now, end)?;
            }
        }
        self.now = end;
        // As an agent does at the end of a run: what a relay still holds goes out.
        for relay in 0..self.world.relays.len() {
            self.give_up(relay);
        }
        self.sink.advance(end, end)
    }

    // -- events -----------------------------------------------------------------------------------------------

    fn arrival(&mut self, number: usize) {
        let channel = &mut self.world.channels[number];
        let Some(Flying { complete, frame, .. }) = channel.in_flight.pop_front() else { return };
        let (to, port) = (channel.to, channel.to_port);
        let next = channel.in_flight.front().map(|flying| flying.at);
        self.agenda.set(Class::Arrival, number, next.into());
        match to {
            Place::Switch(at) => {
                let node = &mut self.world.switches[at];
                let (index, port_number) = (node.node, node.ports[port].number);
                node.core.handle_frame(self.now, Arrival { port, frame, complete });
                let taken = self.now - self.models.switch.processing_delay;
                self.note(frame, index, port_number, Point::SwitchIn, taken);
                self.drain_switch(at);
            }
            // The network stack of the host discards background load: nobody listens on its port.
            Place::Host(_) if frame.flow == FLOW_FOREIGN => {}
            Place::Host(at) => {
                let host = &mut self.world.hosts[at];
                let wake_up = self.models.host.receive_wake_up.draw(&mut host.wake_ups);
                host.core.handle_frame(self.now, 0, frame, wake_up);
                let node = host.node;
                self.note(frame, node, 1, Point::WireReceive, self.now);
                self.drain_host(at);
            }
        }
    }

    fn timer(&mut self, node: usize) {
        match self.world.places[node] {
            Place::Switch(at) => {
                self.world.switches[at].core.handle_deadline(self.now);
                self.drain_switch(at);
            }
            Place::Host(at) => {
                self.world.hosts[at].core.handle_deadline(self.now);
                self.drain_host(at);
            }
        }
    }

    fn send(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        let (due, sequence, warm_up) = sender.at(sender.next);
        sender.next += 1;
        let next = (sender.next < sender.total()).then(|| sender.at(sender.next).0);
        self.agenda.set(Class::Send, number, next.into());
        let frame = Frame { sequence, marks: phase(warm_up), ..sender.frame };
        let wake_up = self.models.host.send_wake_up.draw(&mut sender.wake_ups);
        let host = sender.host;
        let node = self.world.hosts[host].node;
        let what = (Point::IntendedSend, Clock::Schedule, Crc::Unchecked, DropReason::None);
        self.write(record(frame, node, 1, due, what));
        let application = self.hand_down(host, frame, wake_up);
        let sender = &mut self.world.senders[number];
        if let Some(application) = application {
            sender.done += 1;
            sender.late += u64::from((application - due).as_picos() > sender.period.as_picos() / 10);
        }
        self.drain_host(host);
    }

    fn inject(&mut self, number: usize) {
        let injector = &mut self.world.injectors[number];
        let host = injector.host;
        injector.due = injector.due + injector.interval;
        injector.done += u64::from(injector.burst);
        for _ in 0..injector.burst {
            self.world.hosts[host].core.handle_generated(self.now, injector.frame);
        }
        let next = Some(injector.due).filter(|due| *due < self.world.last_send);
        self.agenda.set(Class::Inject, number, next.into());
        self.drain_host(host);
    }

    fn turn(&mut self, number: usize) {
        let relay = &mut self.world.relays[number];
        let Some((_, frame)) = relay.coming.pop_front() else { return };
        let next = relay.coming.front().map(|(at, _)| *at);
        self.agenda.set(Class::Turn, number, next.into());
        relay.handled += 1;
        let (host, node) = (relay.host, relay.node);
        let home = self.world.flows[relay.flow].from;
        let warm_up = frame.marks.has(Marks::WARM_UP);
        match relay.faults.treatment(frame.sequence, warm_up) {
            Treatment::Drop => self.note_drop(frame, node, 1, DropReason::PlantedFault, Crc::Ok),
            Treatment::Corrupt => {
                let damaged = Frame { marks: frame.marks.with(Marks::DAMAGED), ..frame };
                self.send_on(host, damaged, home);
            }
            Treatment::Misdirect(to) => self.send_on(host, frame, to),
            Treatment::Swap => {
                if let Err(frame) = relay.held.hold(self.now, frame.sequence, frame) {
                    self.send_on(host, frame, home);
                }
            }
            treatment @ (Treatment::Return | Treatment::Twice) => {
                self.send_on(host, frame, home);
                if treatment == Treatment::Twice {
                    self.send_on(host, frame, home);
                }
                while !warm_up
                    && let Some(waiting) = self.world.relays[number].held.released_by(frame.sequence)
                {
                    self.send_on(host, waiting, home);
                }
            }
        }
        self.agenda.set(Class::Flush, number, self.world.relays[number].held.deadline());
        self.drain_host(host);
    }

    fn give_up(&mut self, number: usize) {
        let relay = &self.world.relays[number];
        let (host, home) = (relay.host, self.world.flows[relay.flow].from);
        while let Some(waiting) = self.world.relays[number].held.give_up() {
            self.send_on(host, waiting, home);
        }
        self.agenda.set(Class::Flush, number, Deadline::Never);
        self.drain_host(host);
    }

    // -- effects ----------------------------------------------------------------------------------------------

    /// A relay sends a message on to end system `to`.
    fn send_on(&mut self, host: usize, frame: Frame, to: NodeIndex) {
        let source = self.world.addresses[usize::from(self.world.hosts[host].node)];
        let destination = self.world.addresses[usize::from(to)];
        let marks = frame.marks.with(Marks::RETURN);
        // Its thread is at work: it need not be woken.
        self.hand_down(host, Frame { source, destination, marks, ..frame }, Span::ZERO);
    }

    /// Hands a message to the host; returns when the application did so, or nothing when the host refused.
    fn hand_down(&mut self, host: usize, frame: Frame, wake_up: Span) -> Option<RunTime> {
        let protocol = self.protocol(frame);
        let node = &mut self.world.hosts[host];
        let index = node.node;
        match node.core.handle_send(self.now, frame, wake_up) {
            Ok(handed) => {
                node.access[protocol].sent += 1;
                self.note(frame, index, 1, Point::ApplicationSend, handed.application);
                Some(handed.application)
            }
            Err(_) => {
                node.access[protocol].refused += 1;
                self.note(frame, index, 1, Point::ApplicationSend, self.now);
                self.note_drop(frame, index, 1, DropReason::SendRefused, Crc::Unchecked);
                None
            }
        }
    }

    fn drain_switch(&mut self, at: usize) {
        while let Some(output) = self.world.switches[at].core.poll_output() {
            let node = self.world.switches[at].node;
            match output {
                switch::Output::Transmit { port, frame, transmission } => {
                    let own = &mut self.world.switches[at].ports[port];
                    own.frames += 1;
                    own.bytes += u64::from(frame.length);
                    let (number, channel) = (own.number, own.channel);
                    self.note(frame, node, number, Point::SwitchOut, self.now);
                    let free_at = self.launch(channel, frame);
                    self.world.switches[at].core.handle_line_free(port, transmission, free_at);
                }
                // Such a switch neither restarts nor preempts.
                switch::Output::Abort { .. } => unreachable!("wg-sim: nothing cuts a transmission off"),
                switch::Output::Dropped { port, frame, cause } => {
                    let reason = match cause {
                        Cause::Full(_) => DropReason::BufferFull,
                        Cause::FrameCheck => DropReason::FrameCheck,
                        _ => DropReason::NotForwarded,
                    };
                    let own = &mut self.world.switches[at].ports[port];
                    *own.dropped.entry(reason.name()).or_insert(0) += 1;
                    let number = own.number;
                    self.note_drop(frame, node, number, reason, Crc::Unchecked);
                }
            }
        }
        let node = &self.world.switches[at];
        self.agenda.set(Class::Timer, usize::from(node.node), node.core.next_deadline());
    }

    fn drain_host(&mut self, at: usize) {
        while let Some(output) = self.world.hosts[at].core.poll_output() {
            let node = self.world.hosts[at].node;
            match output {
                end_system::Output::Transmit { frame, transmission, .. } => {
                    let channel = self.world.hosts[at].channel;
                    let wire = self.now + self.world.channels[channel].lead;
                    self.note(frame, node, 1, Point::DriverSend, self.now);
                    self.note(frame, node, 1, Point::WireSend, wire);
                    let free_at = self.launch(channel, frame);
                    self.world.hosts[at].core.handle_line_free(0, transmission, free_at);
                }
                // Such a host neither restarts nor preempts.
                end_system::Output::Abort { .. } => unreachable!("wg-sim: nothing cuts a transmission off"),
                end_system::Output::Dropped { frame, cause: Cause::Overrun, .. } => {
                    let protocol = self.protocol(frame);
                    self.world.hosts[at].access[protocol].overrun += 1;
                    self.note_drop(frame, node, 1, DropReason::RingFull, Crc::Unchecked);
                }
                end_system::Output::Dropped { frame, .. } => self.refused(at, frame),
                end_system::Output::Deliver { frame, driver, application, .. } => {
                    self.deliver(at, frame, driver, application);
                }
            }
        }
        let host = &self.world.hosts[at];
        self.agenda.set(Class::Timer, usize::from(host.node), host.core.next_deadline());
    }

    /// The egress queue of a host was full.
    fn refused(&mut self, at: usize, frame: Frame) {
        if frame.flow == FLOW_FOREIGN {
            self.world.injectors[frame.sequence as usize].done -= 1;
            return;
        }
        let protocol = self.protocol(frame);
        let host = &mut self.world.hosts[at];
        host.access[protocol].sent -= 1;
        host.access[protocol].refused += 1;
        let node = host.node;
        if !frame.marks.has(Marks::RETURN)
            && let Some(sender) = self.world.senders.iter_mut().find(|s| s.frame.flow == frame.flow)
        {
            sender.done -= 1;
        }
        self.note_drop(frame, node, 1, DropReason::SendRefused, Crc::Unchecked);
    }

    /// Puts a frame on a link; returns when the line is free again.
    #[inline]
    fn launch(&mut self, number: usize, frame: Frame) -> RunTime {
        self.frame_hops += 1;
        let channel = &mut self.world.channels[number];
        let first_bit = self.now + channel.lead + channel.delay;
        let complete = first_bit + channel.line.transmission(frame.length);
        let at = match channel.to {
            Place::Host(_) => complete,
            Place::Switch(at) => {
                let header = first_bit + channel.line.header(frame.vlan != 0 || frame.priority != 0);
                self.world.switches[at].core.ready_at(header, complete)
            }
        };
        if channel.in_flight.is_empty() {
            self.agenda.set(Class::Arrival, number, Deadline::At(at));
        }
        channel.in_flight.push_back(Flying { at, complete, frame });
        self.now + channel.line.occupation(frame.length)
    }

    fn deliver(&mut self, at: usize, frame: Frame, driver: RunTime, application: RunTime) {
        let protocol = self.protocol(frame);
        let host = &mut self.world.hosts[at];
        let node = host.node;
        host.access[protocol].received += 1;
        let damaged = frame.marks.has(Marks::DAMAGED);
        let crc = if damaged { Crc::Bad } else { Crc::Ok };
        for (point, time) in [(Point::DriverReceive, driver), (Point::ApplicationReceive, application)] {
            self.write(record(frame, node, 1, time, (point, Clock::Simulated, crc, DropReason::None)));
        }
        let returning = frame.marks.has(Marks::RETURN);
        let flow = &mut self.world.flows[usize::from(self.world.flow_of_id[usize::from(frame.flow)])];
        let at_home = match (returning, flow.relay) {
            (false, _) => flow.to == node,
            (true, relay) => relay.is_some() && flow.from == node,
        };
        if let (Some(relay), true, false, false) = (flow.relay, at_home, returning, damaged) {
            self.take_up(relay, frame, application);
            return;
        }
        let reception = if flow.to == node {
            Some(&mut flow.at_to)
        } else if flow.from == node && flow.relay.is_some() {
            Some(&mut flow.at_from)
        } else {
            None
        };
        let Some(reception) = reception else {
            let strays = &mut self.world.hosts[at].strays;
            *(if damaged { &mut strays.damaged } else { &mut strays.elsewhere }) += 1;
            return;
        };
        match (damaged, at_home) {
            (true, _) => reception.damaged += 1,
            (false, true) => reception.follow(frame.sequence, frame.marks.has(Marks::WARM_UP)),
            (false, false) => reception.elsewhere += 1,
        }
    }

    /// A message for a relay, which will have it in hand at once or, behind a queue, when its task is awake.
    fn take_up(&mut self, number: usize, frame: Frame, application: RunTime) {
        let relay = &mut self.world.relays[number];
        let at = match relay.through {
            Turn::Servicing => application,
            Turn::Task => application + self.models.host.relay_wake_up.draw(&mut relay.wake_ups),
        };
        let at = relay.coming.back().map_or(at, |(last, _)| at.max(*last));
        if relay.coming.is_empty() {
            self.agenda.set(Class::Turn, number, Deadline::At(at));
        }
        relay.coming.push_back((at, frame));
    }

    // -- records ----------------------------------------------------------------------------------------------

    #[inline]
    fn note(&mut self, frame: Frame, node: NodeIndex, port: u16, point: Point, time: RunTime) {
        let what = (point, Clock::Simulated, Crc::Unchecked, DropReason::None);
        self.write(record(frame, node, port, time, what));
    }

    fn note_drop(&mut self, frame: Frame, node: NodeIndex, port: u16, reason: DropReason, crc: Crc) {
        self.write(record(frame, node, port, self.now, (Point::Drop, Clock::Simulated, crc, reason)));
    }

    #[inline]
    fn write(&mut self, record: Record) {
        // Background load leaves no records: it is counted at the ports.
        if record.flow == FLOW_FOREIGN {
            return;
        }
        self.records += 1;
        if let Place::Host(at) = self.world.places[usize::from(record.node)] {
            self.world.hosts[at].records += 1;
        }
        self.sink.record(&record);
    }

    fn protocol(&self, frame: Frame) -> usize {
        access(self.world.flows[usize::from(self.world.flow_of_id[usize::from(frame.flow)])].protocol)
    }

    // -- report -----------------------------------------------------------------------------------------------

    fn report(self, network: &Network) -> SimReport {
        let mut report = SimReport {
            records: self.records,
            events: self.events,
            frame_hops: self.frame_hops,
            simulated_ps: self.world.end.as_picos(),
            ..SimReport::default()
        };
        for (at, host) in self.world.hosts.iter().enumerate() {
            let name = network.nodes[usize::from(host.node)].name.clone();
            report.agents.insert(name.clone(), self.agent(at, name));
        }
        for node in &self.world.switches {
            let ports = node.ports.iter().enumerate().map(|(index, port)| PortReport {
                port: port.number,
                frames: port.frames,
                bytes: port.bytes,
                dropped: port
                    .dropped
                    .iter()
                    .map(|(reason, n)| ((*reason).to_owned(), *n))
                    .collect::<BTreeMap<_, _>>(),
                most_waiting_bytes: node.core.peak_bytes(index),
            });
            let name = network.nodes[usize::from(node.node)].name.clone();
            report.switches.insert(name, SwitchReport { ports: ports.collect() });
        }
        report
    }

    fn agent(&self, at: usize, end_system: String) -> AgentReport {
        let host = &self.world.hosts[at];
        let access_points = self.world.protocols.iter().map(|protocol| {
            let figures = host.access[access(*protocol)];
            AccessPointReport {
                protocol: match protocol {
                    Protocol::Udp | Protocol::Be | Protocol::Rc => "udp".to_owned(),
                    Protocol::Raw | Protocol::Tt => "raw".to_owned(),
                },
                frames_sent: figures.sent,
                frames_received: figures.received,
                send_errors: figures.refused,
                socket_drops: figures.overrun,
                ..AccessPointReport::default()
            }
        });
        AgentReport {
            end_system,
            complete: true,
            access_points: access_points.collect(),
            tasks: self.tasks(at),
            records_written: host.records,
            ended_realtime_ns: self.world.end.as_picos() / 1_000,
            ..AgentReport::default()
        }
    }

    fn tasks(&self, at: usize) -> Vec<TaskReport> {
        let world = &self.world;
        let node = world.hosts[at].node;
        let mut tasks = Vec::new();
        for sender in world.senders.iter().filter(|sender| sender.host == at) {
            let flow = &world.flows[sender.flow];
            let back = flow.at_from;
            tasks.push(TaskReport {
                kind: "send".into(),
                flow: u32::from(flow.id),
                planned: sender.total(),
                done: sender.done,
                late: sender.late,
                crc_errors: back.damaged,
                wrong_destination: back.elsewhere,
                sequence_gaps: back.gaps,
                sequence_repeats: back.repeats,
                ..TaskReport::default()
            });
        }
        for flow in world.flows.iter().filter(|flow| flow.to == node && flow.planned > 0) {
            let came = flow.at_to;
            let (kind, done) = match flow.relay {
                Some(relay) => ("relay", world.relays[relay].handled),
                None => ("receive", came.received),
            };
            tasks.push(TaskReport {
                kind: kind.into(),
                flow: u32::from(flow.id),
                planned: flow.planned,
                done,
                crc_errors: came.damaged,
                wrong_destination: came.elsewhere,
                sequence_gaps: came.gaps,
                sequence_repeats: came.repeats,
                ..TaskReport::default()
            });
        }
        for injector in world.injectors.iter().filter(|injector| injector.host == at) {
            tasks.push(TaskReport {
                kind: "inject".into(),
                planned: injector.planned,
                done: injector.done,
                wire_bytes: injector.done * u64::from(u32::from(injector.frame.length) + PREAMBLE + GAP),
                ..TaskReport::default()
            });
        }
        let strays = world.hosts[at].strays;
        if strays.damaged + strays.elsewhere > 0 {
            tasks.push(TaskReport {
                kind: "watch".into(),
                done: strays.damaged + strays.elsewhere,
                crc_errors: strays.damaged,
                wrong_destination: strays.elsewhere,
                ..TaskReport::default()
            });
        }
        tasks
    }
}

#[inline]
fn record(
    frame: Frame,
    node: NodeIndex,
    port: u16,
    time: RunTime,
    (point, clock, crc, reason): (Point, Clock, Crc, DropReason),
) -> Record {
    let mut flags = RecordFlags::empty();
    if frame.marks.has(Marks::RETURN) {
        flags = flags.with(RecordFlags::RETURN);
    }
    if frame.marks.has(Marks::WARM_UP) {
        flags = flags.with(RecordFlags::WARM_UP);
    }
    Record {
        time,
        sequence: frame.sequence,
        flow: frame.flow,
        node,
        port,
        length: frame.length,
        point,
        clock,
        crc,
        reason,
        flags,
    }
}
