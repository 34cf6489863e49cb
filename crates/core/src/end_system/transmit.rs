//! The way of a message out of a host: from the transmit lane through the virtual link layer, or the streams, to the
//! ports.

use wg_frame::time::RunTime;

use super::output::{Output, carry_out};
use super::{Contender, Host};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::frame::{Frame, TrafficClass};
use crate::frer::Handled;
use crate::port::{Life, Port};
use crate::selection::TransmissionSelection;
use crate::virtual_link_layer::{Departure, Networks};

impl<S: TransmissionSelection, C: LocalClock> Host<S, C> {
    /// Hands a message that leaves the lane at `queued` to the virtual link layer now, if that holds it longer, which
    /// saves an event. No message of its virtual link may precede it in the lane.
    #[inline]
    pub(super) fn hand_ahead(&mut self, queued: RunTime, frame: Frame) -> Result<(), Frame> {
        let Some(layer) = self.layer.as_mut() else { return Err(frame) };
        let follows = |(_, other): &(RunTime, Frame)| other.virtual_link == frame.virtual_link;
        if frame.class != TrafficClass::RateConstrained || self.handed.iter().any(follows) {
            return Err(frame);
        }
        layer.handle_ahead(queued, frame)?;
        self.ahead.push_back(queued);
        Ok(())
    }

    /// Whether other messages join the queues at `now`, from the lane or from the virtual link layer.
    #[inline]
    pub(super) fn has_due(&self, now: RunTime) -> bool {
        self.handed.front().is_some_and(|(at, _)| *at <= now)
            || self.layer.as_ref().is_some_and(|layer| layer.next_deadline().is_due(now))
    }

    /// Submits a message that leaves the lane.
    #[inline]
    pub(super) fn submit(&mut self, now: RunTime, frame: Frame, more: bool) {
        if frame.class == TrafficClass::BestEffort && frame.destination == frame.source {
            self.outputs.push_back(Output::Loopback { frame });
            return;
        }
        let Some(layer) = self.layer.as_mut().filter(|_| frame.class != TrafficClass::BestEffort) else {
            if self.streams.is_some() {
                self.send_stream(now, frame, more);
                return;
            }
            self.send_on(now, &frame, Networks::of(&frame), now, more);
            return;
        };
        let outputs = &mut self.outputs;
        let departure = layer.handle_message(now, &self.device.clock, frame, |frame, cause| {
            outputs.push_back(Output::lost_before_ports(frame, cause));
        });
        if let Some(Departure { frame, networks, due }) = departure {
            self.send_on(now, &frame, networks, due, more);
        }
    }

    /// Sends a frame, or its copies where it is of a stream.
    #[inline(never)]
    pub(super) fn send_stream(&mut self, now: RunTime, frame: Frame, more: bool) {
        let handled = self.streams.as_mut().map(|streams| streams.handle_frame(now, &frame));
        let Some(Handled::Copies(copies)) = handled else {
            self.send_on(now, &frame, Networks::of(&frame), now, more);
            return;
        };
        self.follow_copied(&frame, copies.count());
        for at in 0..copies.count() {
            let Some(streams) = &self.streams else { break };
            let copy = streams.copy(copies, at, &frame);
            self.send_on(now, &copy, Networks::of(&copy), now, more || at + 1 < copies.count());
        }
    }

    /// Sends what the virtual link layer has due.
    pub(super) fn depart(&mut self, now: RunTime) {
        while let Some(departure) = self
            .layer
            .as_mut()
            .filter(|layer| layer.next_deadline().is_due(now))
            .and_then(|layer| layer.poll_departure(now, &self.device.clock))
        {
            self.send_on(now, &departure.frame, departure.networks, departure.due, false);
        }
    }

    /// Puts a frame, or a copy on each network, into the queues.
    #[inline]
    pub(super) fn send_on(
        &mut self,
        now: RunTime,
        frame: &Frame,
        networks: Networks,
        due: RunTime,
        more: bool,
    ) {
        if !more
            && networks.has(self.networks[0])
            && (self.layer.is_none() || frame.network == self.networks[0])
            && self.contenders.is_empty()
            && !self.has_due(now)
            && let [egress] = &mut self.ports[..]
        {
            // Most hosts by far have one port, and most frames find it idle.
            if let Some(transmission) = egress.begin_at_once(now, frame, &self.device) {
                if let Some(layer) = &mut self.layer {
                    layer.passes(0, frame, due, now);
                }
                self.outputs.push_back(Output::Transmit { frame: *frame, port: 0, transmission });
            } else {
                self.enqueue(now, 0, Contender { frame: *frame, due, unscheduled: false });
            }
            return;
        }
        self.copies(frame, networks, |host, port, frame| {
            host.join(now, port, Contender { frame, due, unscheduled: false }, more);
        });
    }

    /// Hands a frame to its port, or holds it while other frames of this instant could still be more urgent.
    pub(super) fn join(&mut self, now: RunTime, port: usize, contender: Contender, more: bool) {
        if self.contenders.is_overdue(now) {
            self.settle(now);
        }
        let alone = !more && self.contenders.is_empty() && !self.has_due(now);
        let egress = &self.ports[port];
        if !alone && egress.is_idle(now) && urgency(egress, &contender).is_some() {
            self.contenders.push(now, port, contender);
        } else {
            self.enqueue(now, port, contender);
        }
    }

    pub(super) fn enqueue(&mut self, now: RunTime, port: usize, contender: Contender) {
        let Contender { frame, due, unscheduled } = contender;
        let (outputs, layer) = (&mut self.outputs, &mut self.layer);
        if unscheduled {
            let effect = &mut |effect| outputs.push_back(Output::of(port, effect));
            self.ports[port].handle_unscheduled(now, frame, &mut self.device, effect);
            return;
        }
        if let Some(layer) = layer {
            layer.joins(port, &frame, due);
        }
        let effect = &mut |effect| carry_out(outputs, layer, now, port, effect);
        self.ports[port].handle_frame(now, frame, &mut self.device, effect);
    }

    /// All messages of an instant are in: idle ports choose among them.
    #[cold]
    pub(super) fn settle(&mut self, now: RunTime) {
        let ports = &self.ports;
        let all = self.contenders.settle(|port, contender| urgency(&ports[port], contender).unwrap_or(0));
        for (port, contender) in all {
            self.enqueue(now, port, contender);
        }
    }

    /// Reports the number of copies of a frame, if more than one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "two ports, and as many copies as a stream has members"
    )]
    pub(super) fn follow_copied(&mut self, frame: &Frame, copies: usize) {
        if self.device.follows && copies > 1 {
            let life = Life::Copied(copies as u32);
            self.outputs.push_back(Output::Follow { port: 0, frame: *frame, life });
        }
    }

    pub(super) fn copies(
        &mut self,
        frame: &Frame,
        networks: Networks,
        mut send: impl FnMut(&mut Self, usize, Frame),
    ) {
        let own = &self.networks[..self.ports.len()];
        let copies = own.iter().filter(|network| networks.has(**network)).count();
        self.follow_copied(frame, copies);
        let mut sent = false;
        for port in 0..self.ports.len() {
            let network = self.networks[port];
            if networks.has(network) {
                sent = true;
                send(self, port, Frame { network, ..*frame });
            }
        }
        if !sent {
            self.outputs.push_back(Output::lost_before_ports(*frame, Cause::NoEgress));
        }
    }
}

fn urgency(port: &Port<impl TransmissionSelection>, contender: &Contender) -> Option<usize> {
    port.urgency(&contender.frame, contender.unscheduled)
}
