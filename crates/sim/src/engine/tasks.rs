//! Senders, relays, background load and babblers.

use wg_core::Deadline;
use wg_core::frame::Frame;
use wg_core::relay::Output;
use wg_frame::ethernet::MacAddress;
use wg_plan::NodeIndex;
use wg_record::{Clock, Crc, DropReason, Point, TruthKind};

use super::{Engine, record};
use crate::event_queue::Class;
use crate::headers::Origin;
use crate::message::{Carries, Flags, Message};
use crate::sink::Sink;
use crate::world::Paced;

impl<S: Sink> Engine<'_, S> {
    /// Moves a sender on to its next message, or retires it.
    pub(super) fn plan_next(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        sender.due = sender.schedule.next();
        if let Some(due) = sender.due {
            let flags = if due.warm_up { Flags::WARM_UP } else { Flags::default() };
            let message = Message { flow: sender.frame.message().flow, sequence: due.sequence, flags };
            sender.frame = Frame { handle: message.handle(), length: due.length, ..sender.frame };
            if let Some(addresses) = &sender.addresses {
                let (source, destination) = addresses.of(due.sequence);
                sender.frame = Frame { source, destination, ..sender.frame };
            }
        }
        self.plan_send(number);
    }

    /// Plans the next message of a sender by its node's clock.
    pub(super) fn plan_send(&mut self, number: usize) {
        let sender = &self.world.senders[number];
        let node = self.world.hosts[sender.host as usize].node;
        let intended = sender.due.map(|due| sender.intended(due));
        let at = intended.and_then(|intended| self.world.instant(node, intended, self.now));
        self.queue.set(Class::Send, number, at.into());
    }

    /// The clock of a sender was changed: a pending message is planned again.
    pub(super) fn pace_again(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        let node = self.world.hosts[sender.host as usize].node;
        if let Some(Paced { pacer, last: Some((planned, sent)) }) = sender.paced.as_deref_mut()
            && *sent >= self.now
        {
            let (planned, sent) = (*planned, *sent);
            pacer.handle_sent(planned, self.world.nodes[usize::from(node)].read(sent));
        }
    }

    pub(super) fn send(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        let Some(due) = sender.due else { return };
        let frame = sender.frame;
        let (host, late_after) = (sender.host as usize, sender.late_after);
        let node = &mut self.world.hosts[host];
        let (index, port) = (node.node, node.ports[0].number);
        let mut wake_up = node.send_wake_up.draw(&mut sender.wake_ups);
        if node.extra.is_some() {
            wake_up += self.held_up(host, &frame, true);
        }
        wake_up += self.read_cost(index);
        let (sender, node) = (&mut self.world.senders[number], &mut self.world.hosts[host]);
        let intended = sender.intended(due);
        if let Some(paced) = &mut sender.paced {
            // The next message may be due at this instant too, which the host must know now: so it is planned before
            // this one is handed down.
            let sent = node.core.call_at(self.now, wake_up).unwrap_or(self.now);
            paced.pacer.handle_sent(due.at, self.world.nodes[usize::from(index)].read(sent));
            paced.last = Some((due.at, sent));
        }
        self.plan_next(number);
        let what = (Point::IntendedSend, Clock::Schedule, Crc::Unchecked, DropReason::None);
        self.write(record(&frame, index, port, intended, what));
        let application = self.hand_down(host, &frame, wake_up);
        let sender = &mut self.world.senders[number];
        if let Some(application) = application {
            sender.done += 1;
            sender.late += u64::from(application - self.now > late_after);
        }
        if sender.due.is_none() {
            self.world.sending -= 1;
            if self.world.sending == 0 {
                self.world.last_send = self.now;
                self.world.note_complete(self.now);
            }
        }
        self.drain_host(host);
    }

    /// Plans the next burst of an injector by its node's clock.
    pub(super) fn plan_burst(&mut self, number: usize) {
        let injector = &self.world.injectors[number];
        if let Some(threads) = &injector.threads {
            self.queue.set(Class::Inject, number, threads.next().into());
            return;
        }
        let node = self.world.hosts[injector.host].node;
        let intended = injector.due.map(|due| injector.pacer.intended(due));
        let at = intended.and_then(|intended| self.world.instant(node, intended, self.now));
        self.queue.set(Class::Inject, number, at.into());
    }

    pub(super) fn inject(&mut self, number: usize) {
        if self.world.sending == 0 && self.now >= self.world.load_until() {
            self.queue.set(Class::Inject, number, Deadline::NEVER);
            return;
        }
        let injector = &mut self.world.injectors[number];
        let host = injector.host;
        if let Some(threads) = &mut injector.threads {
            let sent = threads.send(self.now);
            injector.done += u64::from(sent);
            let frame = injector.frame;
            self.plan_burst(number);
            self.flood(host, sent, frame);
            return;
        }
        if let (Some(due), true) = (injector.due, injector.pacer.pacing().follows_sends()) {
            let node = &self.world.nodes[usize::from(self.world.hosts[host].node)];
            injector.pacer.handle_sent(due, node.read(self.now));
        }
        injector.due = injector.schedule.next().map(|due| due.at);
        injector.done += u64::from(injector.burst);
        let (burst, frame) = (injector.burst, injector.frame);
        self.plan_burst(number);
        self.flood(host, burst, frame);
    }

    /// Hands frames of a background load to the egress queue of a host.
    fn flood(&mut self, host: usize, frames: u32, frame: Frame) {
        let more = self.queue.has_input_at(self.now);
        for _ in 0..frames {
            self.world.hosts[host].core.handle_generated(self.now, frame, more);
        }
        self.drain_host(host);
    }

    pub(super) fn babble(&mut self, number: usize) {
        let babbler = &mut self.world.babblers[number];
        if self.now >= babbler.until {
            self.queue.set(Class::Babble, number, Deadline::NEVER);
            return;
        }
        let (host, node, frame) = (babbler.host, babbler.node, babbler.frame);
        let message = frame.message();
        let next = Message { sequence: message.sequence + 1, ..message };
        babbler.frame.handle = next.handle();
        self.queue.set(Class::Babble, number, Deadline::at(self.now + babbler.period));
        let Some(frame) = self.with_bytes(frame) else { return };
        self.reveal(TruthKind::Babbled, &frame, node, 0, 0);
        let more = self.queue.has_input_at(self.now);
        self.world.hosts[host].core.handle_generated(self.now, frame, more);
        self.drain_host(host);
    }

    pub(super) fn turn(&mut self, number: usize) {
        let relay = &mut self.world.relays[number];
        let Some((_, frame)) = relay.coming.pop_front() else { return };
        let next = relay.coming.front().map(|(at, _)| *at);
        self.queue.set(Class::Turn, number, next.into());
        relay.handled += 1;
        let (host, node) = (relay.host, relay.node);
        let Message { sequence, flags, .. } = frame.message();
        let warm_up = flags.has(Flags::WARM_UP);
        let fault = relay.core.handle_message(self.now, sequence, warm_up, frame);
        if fault.is_some() {
            let port = self.world.hosts[host].ports[0].number;
            self.reveal(TruthKind::RelayFault, &frame, node, port, 0);
        }
        self.carry_on(number);
    }

    /// A relay's held messages have waited long enough.
    pub(super) fn flush(&mut self, number: usize) {
        self.world.relays[number].core.handle_deadline(self.now);
        self.carry_on(number);
    }

    /// At the end of the run a relay releases the messages it still holds.
    pub(super) fn end_relay(&mut self, number: usize) {
        self.world.relays[number].core.handle_end();
        self.carry_on(number);
    }

    /// Carries out the effects of a relay.
    fn carry_on(&mut self, number: usize) {
        let relay = &self.world.relays[number];
        let (host, node, home) = (relay.host, relay.node, self.world.flows[relay.flow].from);
        while let Some(output) = self.world.relays[number].core.poll_output() {
            match output {
                Output::Return(frame) => self.send_on(number, frame, home),
                Output::Twice(frame) => {
                    self.send_on(number, frame, home);
                    self.send_on(number, frame, home);
                }
                Output::Corrupt(frame) => {
                    self.send_on(number, frame.flagged(Flags::DAMAGED), home);
                }
                Output::Misdirect(frame, to) => self.send_on(number, frame, to),
                Output::Drop(frame) => {
                    let port = self.world.hosts[host].ports[0].number;
                    self.note_drop(&frame, node, port, DropReason::PlantedFault, Crc::Ok);
                }
            }
        }
        self.queue.set(Class::Flush, number, self.world.relays[number].core.next_deadline());
        self.drain_host(host);
    }

    /// A relay sends a message on to end system `to`.
    fn send_on(&mut self, number: usize, frame: Frame, to: NodeIndex) {
        let relay = &self.world.relays[number];
        let (host, node) = (relay.host, relay.node);
        let source = self.world.addresses[usize::from(node)];
        let destination = self.world.addresses[usize::from(to)];
        let frame = frame.flagged(Flags::RETURN).of_flow(relay.answers_as);
        let frame = match relay.vl {
            Some(link) => {
                let destination = MacAddress(link.destination().0);
                // Not numbered yet, so it carries its only sub-virtual-link.
                let (virtual_link, network) = (link.0, relay.network);
                let back = Frame { virtual_link, network, sequence: 0, ..frame };
                let cost = self.read_cost(node);
                self.hand_down(host, &Frame { source, destination, ..back }, cost);
                return;
            }
            None => {
                let flow = self.world.flows[relay.flow].id;
                Frame { virtual_link: self.world.headers.of(Origin::Relay(flow, node, to)), ..frame }
            }
        };
        // Its thread is awake already.
        let cost = self.read_cost(node);
        self.hand_down(host, &Frame { source, destination, ..frame }, cost);
    }
}
