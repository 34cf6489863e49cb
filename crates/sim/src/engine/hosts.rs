//! Frames in hosts.

use wg_core::end_system::{Delivery, Output};
use wg_core::frame::{Frame, FrameLengths, Marks};
use wg_core::line::GAP;
use wg_core::{Cause, Deadline};
use wg_frame::time::{RunTime, Span};
use wg_plan::Turn;
use wg_record::{Clock, Crc, DropReason, FLOW_FOREIGN, Point};

use super::switches::reason;
use super::{Engine, record};
use crate::event_queue::Class;
use crate::message::{Carries, Flags, Message};
use crate::sink::Sink;
use crate::world::{CoreIndex, Relay, Sender};

/// Whether an interface accepts a frame: right check sequence, neither runt nor giant.
#[inline]
pub(super) fn is_sound(frame: &Frame) -> bool {
    !frame.marks.has(Marks::FCS_ERROR) && FrameLengths::STANDARD.have(frame)
}

impl<S: Sink> Engine<'_, S> {
    /// The last bit of a frame is in.
    #[inline]
    pub(super) fn enter_host(&mut self, at: usize, port: usize, frame: &Frame) {
        let message = frame.message();
        if S::KEEPS_BYTES && message.bytes_at().is_some() {
            self.leave_card(at, port, frame);
            return;
        }
        if message.flow == FLOW_FOREIGN {
            self.enter_with_load(at, port, frame);
            return;
        }
        if !self.is_for(at, frame) {
            return;
        }
        let host = &mut self.world.hosts[at];
        let (node, number) = (host.node, host.ports[port].number);
        if !is_sound(frame) {
            let fails_check = frame.marks.has(Marks::FCS_ERROR);
            let reason = if fails_check { DropReason::FrameCheck } else { DropReason::Filtered };
            self.note_drop(frame, node, number, reason, Crc::Unchecked);
            return;
        }
        let mut wake_up = host.receive_wake_up.draw(&mut host.wake_ups);
        if host.extra.is_some() {
            wake_up += self.held_up(at, frame, false);
        }
        let host = &mut self.world.hosts[at];
        let delivered = host.core.handle_delivered(self.now, port, frame, wake_up);
        self.note(frame, node, number, Point::WireReceive, self.now);
        match delivered {
            Some(Delivery { driver, application }) => self.deliver(at, port, frame, driver, application),
            None => self.drain_host(at),
        }
    }

    /// Whether the interface of a host accepts the frame of a flow. It ignores frames for others; receivers of a flow
    /// accept the address that its frames were given.
    #[inline]
    pub(super) fn is_for(&self, at: usize, frame: &Frame) -> bool {
        let (host, message) = (&self.world.hosts[at], frame.message());
        let node = host.node;
        let flow = &self.world.flows[usize::from(self.world.flow_of_id[usize::from(message.flow)])];
        if frame.destination.is_group() {
            return if message.flags.has(Flags::RETURN) {
                flow.from == node
            } else {
                flow.receiver(node).is_some()
            };
        }
        frame.destination == host.address
            || (flow.is_sent_to(frame.destination) && flow.receiver(node).is_some())
    }

    /// Background load arrives at a host. No application listens on its port: if the model charges the host for it, the
    /// reader discards it, otherwise the interface does.
    fn enter_with_load(&mut self, at: usize, port: usize, frame: &Frame) {
        if frame.handle >= Message::FIRST_CONTROL {
            self.control_into_host(at, port, frame);
            return;
        }
        let host = &mut self.world.hosts[at];
        if frame.destination != host.address {
            return;
        }
        if !is_sound(frame) {
            self.count_lost_load(frame, DropReason::FrameCheck.name());
            return;
        }
        if let Some(injector) = self.world.injectors.get_mut(frame.message().sequence as usize) {
            injector.arrived += 1;
        }
        if host.extra.as_ref().is_none_or(|extra| !extra.receives_load) {
            return;
        }
        let drawn = host.receive_wake_up.draw(&mut host.wake_ups);
        let wake_up = drawn + self.held_up_now(at, false);
        self.world.hosts[at].core.handle_frame(self.now, port, *frame, wake_up);
        self.drain_host(at);
    }

    /// Hands a message to the host; returns the instant of the application's call, or `None` if the host refused.
    pub(super) fn hand_down(&mut self, host: usize, frame: &Frame, wake_up: Span) -> Option<RunTime> {
        let protocol = Self::access(frame);
        let more = self.queue.has_input_at(self.now);
        let node = &mut self.world.hosts[host];
        let (index, port) = (node.node, node.ports[0].number);
        match node.core.handle_send(self.now, *frame, wake_up, more) {
            Ok(handed) => {
                node.access[protocol].sent += 1;
                let log = node.log();
                self.note(frame, index, port, Point::ApplicationSend, handed.application);
                if let Some(log) = log {
                    self.plan_log(log, handed.application);
                }
                if self.captures.want_transmit_times() {
                    self.captures.sent(frame, handed.application);
                }
                Some(handed.application)
            }
            Err(_) => {
                node.access[protocol].refused += 1;
                self.note(frame, index, port, Point::ApplicationSend, self.now);
                self.note_drop(frame, index, port, DropReason::SendRefused, Crc::Unchecked);
                None
            }
        }
    }

    pub(super) fn drain_host(&mut self, at: usize) {
        loop {
            let outputs = self.world.hosts[at].core.outputs();
            // The whole frame is copied at once, as for a switch.
            let Some(&frame) = outputs.front().map(Output::frame) else { break };
            let Some(output) = outputs.pop_front() else { break };
            let frame = &frame;
            let host = &self.world.hosts[at];
            let node = host.node;
            match output {
                Output::Transmit { port, transmission, .. } => {
                    let (number, out) = (host.ports[port].number, host.ports[port].channel());
                    let channel = &self.world.channels[out];
                    let (to, station, wire) = (channel.to, channel.to_port as usize, self.now + channel.lead);
                    // A real host has a driver of its own, which reports; and where host models are fitted, the wire of
                    // the model would be mistaken for one.
                    if !S::KEEPS_BYTES {
                        self.note(frame, node, number, Point::DriverSend, self.now);
                    }
                    if let CoreIndex::Hub(hub) = to {
                        self.approach_medium(hub as usize, station, wire, *frame, transmission);
                        continue;
                    }
                    if !S::KEEPS_BYTES {
                        self.note(frame, node, number, Point::WireSend, wire);
                    }
                    if frame.handle >= Message::FIRST_CONTROL {
                        self.control_leaves(node, frame);
                    }
                    let free_at = self.launch(out, frame);
                    self.world.hosts[at].core.handle_line_free(port, transmission, free_at);
                }
                Output::Abort { port, transmission, .. } => {
                    let channel = host.ports[port].channel();
                    self.ptp_cut_short(node, frame);
                    self.cut_short(channel, frame);
                    let free_at = self.now + self.world.channels[channel].line.time_of(GAP);
                    self.world.hosts[at].core.handle_line_free(port, transmission, free_at);
                }
                Output::Fragment { port, edge, .. } => {
                    let channel = host.ports[port].channel();
                    if let Some((transmission, free_at)) = self.fragment(channel, frame, edge) {
                        self.world.hosts[at].core.handle_line_free(port, transmission, free_at);
                    }
                }
                Output::Dropped { port, cause, .. } if S::KEEPS_BYTES => {
                    self.dropped_by_card(at, port, frame, cause);
                }
                Output::Deliver { .. } if S::KEEPS_BYTES => self.hand_out(at, frame),
                Output::Dropped { port, cause, .. } => self.lost_at_host(at, port, frame, cause),
                Output::Deliver { port, driver, application, .. } => {
                    self.deliver(at, port, frame, driver, application);
                }
                // A frame for its own host does not reach the card.
                Output::Loopback { .. } if S::KEEPS_BYTES => self.release(frame),
                Output::Loopback { .. } => self.loop_back(at, frame),
                Output::Follow { life, .. } => self.follow(frame, life),
            }
        }
        let host = &mut self.world.hosts[at];
        let timer = host.core.next_deadline();
        if timer != host.timer {
            host.timer = timer;
            self.queue.set(Class::Timer, usize::from(host.node), timer);
        }
    }

    /// A message to its own host arrives at the same instant: it passes a driver, but no interface.
    fn loop_back(&mut self, at: usize, frame: &Frame) {
        let host = &mut self.world.hosts[at];
        let (node, number) = (host.node, host.ports[0].number);
        let mut wake_up = host.receive_wake_up.draw(&mut host.wake_ups);
        if host.extra.is_some() {
            wake_up += self.held_up(at, frame, false);
        }
        self.note(frame, node, number, Point::DriverSend, self.now);
        self.world.hosts[at].core.handle_loopback(self.now, *frame, wake_up);
    }

    /// A frame, or one of its copies, ended in a host.
    fn lost_at_host(&mut self, at: usize, port: usize, frame: &Frame, cause: Cause) {
        let message = frame.message();
        if message.flow == FLOW_FOREIGN {
            let host = &mut self.world.hosts[at];
            if frame.destination == host.address {
                host.count_unreceived(reason(cause));
            } else if let Some(injector) = self.world.injectors.get_mut(message.sequence as usize) {
                injector.done -= 1;
            }
            return;
        }
        let access = Self::access(frame);
        let host = &mut self.world.hosts[at];
        let (node, number) = (host.node, host.ports[port].number);
        let reason = match cause {
            Cause::Overrun | Cause::FifoOverrun => {
                host.count_unreceived(reason(cause));
                reason(cause)
            }
            // The egress queue was full: for one copy of the message, if it has several.
            Cause::Full(_) => {
                if host.ports.len() == 1 && !frame.marks.has(Marks::R_TAG) {
                    host.access[access].sent = host.access[access].sent.saturating_sub(1);
                    self.unsend(frame);
                }
                self.world.hosts[at].access[access].refused += 1;
                DropReason::SendRefused
            }
            _ => reason(cause),
        };
        self.note_drop(frame, node, number, reason, Crc::Unchecked);
    }

    /// A message that its sender handed over was refused later.
    fn unsend(&mut self, frame: &Frame) {
        let message = frame.message();
        let of_flow = |sender: &&mut Sender| sender.frame.message().flow == message.flow;
        if !message.flags.has(Flags::RETURN)
            && let Some(sender) = self.world.senders.iter_mut().find(of_flow)
        {
            sender.done = sender.done.saturating_sub(1);
        }
    }

    fn deliver(&mut self, at: usize, port: usize, frame: &Frame, driver: RunTime, application: RunTime) {
        let message = frame.message();
        if message.flow == FLOW_FOREIGN {
            self.world.hosts[at].load_read += 1;
            return;
        }
        let access = Self::access(frame);
        let host = &mut self.world.hosts[at];
        let (node, port) = (host.node, host.ports[port].number);
        host.access[access].received += 1;
        let application = application + self.read_cost(node);
        let damaged = message.flags.has(Flags::DAMAGED);
        let crc = if damaged { Crc::Bad } else { Crc::Ok };
        for (point, time) in [(Point::DriverReceive, driver), (Point::ApplicationReceive, application)] {
            self.write(record(frame, node, port, time, (point, Clock::Simulated, crc, DropReason::None)));
        }
        if let Some(log) = self.world.hosts[at].log() {
            self.plan_log(log, application);
        }
        let returning = message.flags.has(Flags::RETURN);
        let flow = &mut self.world.flows[usize::from(self.world.flow_of_id[usize::from(message.flow)])];
        let receiver = flow.receiver(node);
        let relays = &mut self.world.relays;
        let of = |wanted: &dyn Fn(&Relay) -> bool| {
            flow.relays.iter().copied().find(|relay| wanted(&relays[*relay]))
        };
        // The relay whose answer this is, and the one that has to answer.
        let answered = of(&|relay| returning && flow.from == node && relay.answers_as == message.flow);
        let here = of(&|relay| relay.node == node);
        let at_home = if returning { answered.is_some() } else { receiver.is_some() };
        if let (Some(relay), true, false, false) = (here, at_home, returning, damaged) {
            self.take_up(relay, *frame, application);
            return;
        }
        let any_at_from = || flow.relays.first().copied().filter(|_| flow.from == node);
        let reception = match (answered, receiver) {
            (Some(relay), _) => Some(&mut relays[relay].came_back),
            (None, Some(receiver)) => Some(&mut flow.receivers[receiver].came),
            (None, None) => any_at_from().map(|relay| &mut relays[relay].came_back),
        };
        let Some(reception) = reception else {
            let strays = &mut self.world.hosts[at].strays;
            *(if damaged { &mut strays.damaged } else { &mut strays.elsewhere }) += 1;
            return;
        };
        match (damaged, at_home) {
            (true, _) => reception.damaged += 1,
            (false, true) => {
                if reception.follow(message.sequence, message.flags.has(Flags::WARM_UP)) {
                    self.world.awaiting -= 1;
                    self.world.note_complete(self.now);
                }
            }
            (false, false) => reception.elsewhere += 1,
        }
    }

    /// A message for a relay, which takes it at once or, behind a queue, when its task is awake.
    fn take_up(&mut self, number: usize, frame: Frame, application: RunTime) {
        let relay = &mut self.world.relays[number];
        let at = match relay.through {
            Turn::Servicing => application,
            Turn::Task => {
                let draws = &self.world.hosts[relay.host].relay_wake_up;
                application + draws.draw(&mut relay.wake_ups)
            }
        };
        let at = relay.coming.back().map_or(at, |(last, _)| at.max(*last));
        if relay.coming.is_empty() {
            self.queue.set(Class::Turn, number, Deadline::at(at));
        }
        relay.coming.push_back((at, frame));
    }
}
