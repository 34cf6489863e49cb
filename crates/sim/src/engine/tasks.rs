//! Senders, relays, background load and babblers.

use wg_core::Deadline;
use wg_core::frame::{Frame, Marks};
use wg_frame::time::Span;
use wg_plan::NodeIndex;
use wg_record::{Clock, Crc, DropReason, Point, TruthKind};

use super::{Engine, record};
use crate::agenda::Class;
use crate::relay::Treatment;
use crate::sink::Sink;

impl<S: Sink> Engine<'_, S> {
    /// Moves a sender on to its next message, or retires it.
    pub(super) fn plan_next(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        sender.due = sender.schedule.next();
        self.plan_send(number);
    }

    /// Plans the next message of a sender by its node's clock.
    pub(super) fn plan_send(&mut self, number: usize) {
        let sender = &self.world.senders[number];
        let node = self.world.hosts[sender.host].node;
        let shift = sender.shift.unwrap_or(Span::ZERO);
        let at = sender.due.and_then(|due| self.world.instant(node, due.at + shift, self.now));
        self.agenda.set(Class::Send, number, at.into());
    }

    pub(super) fn send(&mut self, number: usize) {
        let sender = &mut self.world.senders[number];
        let Some(due) = sender.due else { return };
        let marks = if due.warm_up { sender.frame.marks.with(Marks::WARM_UP) } else { sender.frame.marks };
        let frame = Frame { sequence: due.sequence, length: due.length, marks, ..sender.frame };
        let (host, period) = (sender.host, sender.period);
        let node = &mut self.world.hosts[host];
        let (index, port) = (node.node, node.ports[0].number);
        let wake_up = node.send_wake_up.draw(&mut sender.wake_ups);
        let intended = due.at + sender.shift.unwrap_or(Span::ZERO);
        if let Some(shift) = &mut sender.shift {
            *shift += wake_up;
        }
        self.plan_next(number);
        let what = (Point::IntendedSend, Clock::Schedule, Crc::Unchecked, DropReason::None);
        self.write(record(frame, index, port, intended, what));
        let application = self.hand_down(host, frame, wake_up);
        let sender = &mut self.world.senders[number];
        if let Some(application) = application {
            sender.done += 1;
            sender.late += u64::from((application - self.now).as_picos() > period.as_picos() / 10);
        }
        if sender.due.is_none() {
            self.world.sending -= 1;
            if self.world.sending == 0 {
                self.world.last_send = self.now;
            }
        }
        self.drain_host(host);
    }

    /// Plans the next burst of an injector by its node's clock; none once the last message was due.
    pub(super) fn plan_burst(&mut self, number: usize) {
        let injector = &self.world.injectors[number];
        let node = self.world.hosts[injector.host].node;
        let at = injector.due.and_then(|due| self.world.instant(node, due, self.now));
        let at = at.filter(|at| !self.world.is_over(*at));
        self.agenda.set(Class::Inject, number, at.into());
    }

    pub(super) fn inject(&mut self, number: usize) {
        if self.world.is_over(self.now) {
            self.agenda.set(Class::Inject, number, Deadline::Never);
            return;
        }
        let injector = &mut self.world.injectors[number];
        let host = injector.host;
        injector.due = injector.schedule.next().map(|due| due.at);
        injector.done += u64::from(injector.burst);
        for _ in 0..injector.burst {
            self.world.hosts[host].core.handle_generated(self.now, injector.frame);
        }
        self.plan_burst(number);
        self.drain_host(host);
    }

    pub(super) fn babble(&mut self, number: usize) {
        let babbler = &mut self.world.babblers[number];
        if self.now >= babbler.until {
            self.agenda.set(Class::Babble, number, Deadline::Never);
            return;
        }
        let (host, node, frame) = (babbler.host, babbler.node, babbler.frame);
        babbler.frame.sequence += 1;
        self.agenda.set(Class::Babble, number, Deadline::At(self.now + babbler.period));
        self.reveal(TruthKind::Babbled, &frame, node, 0, 0);
        self.world.hosts[host].core.handle_generated(self.now, frame);
        self.drain_host(host);
    }

    pub(super) fn turn(&mut self, number: usize) {
        let relay = &mut self.world.relays[number];
        let Some((_, frame)) = relay.coming.pop_front() else { return };
        let next = relay.coming.front().map(|(at, _)| *at);
        self.agenda.set(Class::Turn, number, next.into());
        relay.handled += 1;
        let (host, node) = (relay.host, relay.node);
        let home = self.world.flows[relay.flow].from;
        let warm_up = frame.marks.has(Marks::WARM_UP);
        let treatment = relay.faults.treatment(frame.sequence, warm_up);
        let port = self.world.hosts[host].ports[0].number;
        if treatment != Treatment::Return {
            self.reveal(TruthKind::RelayFault, &frame, node, port, 0);
        }
        let relay = &mut self.world.relays[number];
        match treatment {
            Treatment::Drop => self.note_drop(frame, node, port, DropReason::PlantedFault, Crc::Ok),
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

    pub(super) fn give_up(&mut self, number: usize) {
        let relay = &self.world.relays[number];
        let (host, home) = (relay.host, self.world.flows[relay.flow].from);
        while let Some(waiting) = self.world.relays[number].held.give_up() {
            self.send_on(host, waiting, home);
        }
        self.agenda.set(Class::Flush, number, Deadline::Never);
        self.drain_host(host);
    }

    /// A relay sends a message on to end system `to`.
    pub(super) fn send_on(&mut self, host: usize, frame: Frame, to: NodeIndex) {
        let source = self.world.addresses[usize::from(self.world.hosts[host].node)];
        let destination = self.world.addresses[usize::from(to)];
        let marks = frame.marks.with(Marks::RETURN);
        // Its thread is at work: it need not be woken.
        self.hand_down(host, Frame { source, destination, marks, ..frame }, Span::ZERO);
    }
}
