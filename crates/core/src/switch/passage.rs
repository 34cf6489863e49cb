//! The way of a frame through a switch: held until its instant, judged, looked up, copied, and handed to egress ports.

use wg_frame::time::{RunTime, Span};

use super::ingress::{Arrival, ForwardingMode, Ingress, Verdict};
use super::output::{Output, Passing};
use super::{Stage, Switch};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::forwarding::Route;
use crate::frame::{Frame, Marks};
use crate::frer::Handled;
use crate::line::SMALLEST_FRAME;
use crate::port::Life;
use crate::selection::TransmissionSelection;

impl<S: TransmissionSelection, I: Ingress, C: LocalClock> Switch<S, I, C> {
    pub(super) fn keep(&mut self, at: RunTime, stage: Stage) {
        let place = self.stages.partition_point(|(other, _)| *other <= at);
        self.stages.insert(place, (at, stage));
    }

    #[inline]
    pub(super) fn release(&mut self, now: RunTime) {
        if self.stages.front().is_some_and(|(at, _)| *at <= now) {
            self.release_due(now);
        }
    }

    #[cold]
    pub(super) fn release_due(&mut self, now: RunTime) {
        while let Some(&(at, stage)) = self.stages.front()
            && at <= now
        {
            self.stages.pop_front();
            match stage {
                Stage::Arrival(arrival) => {
                    let passing = self.forward(now, &arrival, true);
                    self.put(&arrival.frame, passing);
                }
                Stage::Copy { port, frame } => {
                    let passing = self.offer(now, port, &frame, now, true);
                    self.put(&frame, passing);
                }
            }
        }
    }

    /// Whether the switch was down when the first bit came.
    pub(super) fn is_missed(&self, arrival: &Arrival) -> bool {
        let line = self.ports[arrival.port].line();
        self.is_down(arrival.complete - line.transmission(arrival.frame.length))
    }

    /// Forwards a frame; returns it if it passes straight through, before all outputs.
    #[inline(always)]
    pub(super) fn forward(&mut self, now: RunTime, arrival: &Arrival, more: bool) -> Option<Passing> {
        let fails_check = arrival.frame.marks.has(Marks::FCS_ERROR);
        let damaged = fails_check || !self.lengths.have(&arrival.frame);
        if damaged && self.mode == ForwardingMode::StoreAndForward {
            let cause = if fails_check { Cause::FrameCheck } else { Cause::WrongLength };
            self.drop(arrival.port, arrival.frame, cause);
            return None;
        }
        let is_padded = arrival.frame.length < SMALLEST_FRAME;
        let padded;
        let arrival = if is_padded {
            padded = Arrival { frame: Frame { length: SMALLEST_FRAME, ..arrival.frame }, ..*arrival };
            &padded
        } else {
            arrival
        };
        let Arrival { port, ref frame, .. } = *arrival;
        let (route, critical) = match self.ingress.judge(&self.device.clock, arrival) {
            Verdict::Refuse(cause) => {
                self.drop(port, *frame, cause);
                return None;
            }
            Verdict::ToPort(egress) => (Route::Port(egress), true),
            Verdict::ToGroup(group) => (Route::Group(group), true),
            Verdict::BridgeAs { priority, drop_eligible } => {
                self.bridge_as(now, arrival, (priority, drop_eligible), more);
                return None;
            }
            Verdict::Bridge => {
                if let Some(cause) = self.pass_bridge(now, port, frame, damaged) {
                    self.drop(port, *frame, cause);
                    return None;
                }
                if self.streams.is_some() && self.handle_stream(now, arrival, more) {
                    return None;
                }
                (self.forwarding.route(now, frame), false)
            }
        };
        if self.device.follows {
            self.follow(route, arrival, critical);
        }
        match self.spread(now, route, arrival, critical, more) {
            Ok(passing) if !is_padded && self.outputs.is_empty() => passing,
            Ok(passing) => {
                self.put(frame, passing);
                None
            }
            Err(cause) => {
                self.drop(port, *frame, cause);
                None
            }
        }
    }

    /// Learns from a frame that is to be forwarded by its address; returns why it is not forwarded.
    #[inline]
    fn pass_bridge(&mut self, now: RunTime, port: usize, frame: &Frame, damaged: bool) -> Option<Cause> {
        if !self.forwarding.carries(port, frame) {
            return Some(Cause::ForeignVlan);
        }
        if !damaged {
            self.forwarding.learn(now, port, frame);
        }
        // Filtering is of forwarding alone, and comes behind learning (8.7).
        frame.destination.is_reserved().then_some(Cause::ReservedAddress)
    }

    /// Forwards a frame by its address, with an internal priority or as drop eligible. A separate function, because few
    /// frames are changed.
    #[cold]
    pub(super) fn bridge_as(
        &mut self,
        now: RunTime,
        arrival: &Arrival,
        change: (Option<u8>, bool),
        more: bool,
    ) {
        let Arrival { port, frame, .. } = *arrival;
        if let Some(cause) = self.pass_bridge(now, port, &frame, frame.marks.has(Marks::FCS_ERROR)) {
            self.drop(port, frame, cause);
            return;
        }
        let (priority, drop_eligible) = change;
        let eligible = if drop_eligible { Marks::DROP_ELIGIBLE } else { Marks::none() };
        let frame = Frame { marks: frame.marks.with(eligible), ..frame };
        let frame = priority.map_or(frame, |priority| frame.with_internal_priority(priority));
        let arrival = Arrival { frame, ..*arrival };
        if self.streams.is_none() || !self.handle_stream(now, &arrival, more) {
            self.bridge(now, &arrival, more);
        }
    }

    /// Applies the stream function of a frame; false if it belongs to no stream.
    #[inline(never)]
    pub(super) fn handle_stream(&mut self, now: RunTime, arrival: &Arrival, more: bool) -> bool {
        let Arrival { port, ref frame, complete } = *arrival;
        let Some(streams) = &mut self.streams else { return false };
        match streams.handle_frame(complete, frame) {
            Handled::Foreign => return false,
            Handled::Discard(cause) => self.drop(port, *frame, cause),
            Handled::Pass(frame) => self.bridge(now, &Arrival { frame, ..*arrival }, more),
            Handled::Branches(branches) => {
                self.follow_stream(arrival, branches.count());
                for at in 0..branches.count() {
                    let Some(streams) = &mut self.streams else { break };
                    match streams.relay(complete, branches, at, frame) {
                        Handled::Pass(frame) => self.bridge(now, &Arrival { frame, ..*arrival }, more),
                        Handled::Discard(cause) => self.drop(port, *frame, cause),
                        Handled::Foreign | Handled::Copies(_) | Handled::Branches(_) => {}
                    }
                }
            }
            Handled::Copies(copies) => {
                self.follow_stream(arrival, copies.count());
                for at in 0..copies.count() {
                    let Some(streams) = &self.streams else { break };
                    let frame = streams.copy(copies, at, frame);
                    self.bridge(now, &Arrival { frame, ..*arrival }, more);
                }
            }
        }
        true
    }

    /// Forwards a frame of a stream, or one that was changed, by its address.
    #[inline(never)]
    pub(super) fn bridge(&mut self, now: RunTime, arrival: &Arrival, more: bool) {
        let route = self.forwarding.route(now, &arrival.frame);
        if self.device.follows {
            self.follow(route, arrival, false);
        }
        match self.spread(now, route, arrival, false, more) {
            Ok(passing) => self.put(&arrival.frame, passing),
            Err(cause) => self.drop(arrival.port, arrival.frame, cause),
        }
    }

    /// Sends a copy out of every port of the route; returns the frame if its only copy leaves at once.
    #[inline(always)]
    pub(super) fn spread(
        &mut self,
        now: RunTime,
        route: Route,
        arrival: &Arrival,
        critical: bool,
        more: bool,
    ) -> Result<Option<Passing>, Cause> {
        let Arrival { port, ref frame, .. } = *arrival;
        if let Route::Port(egress) = route {
            let is_way = egress != port && (critical || self.forwarding.carries(egress, frame));
            return if is_way { Ok(self.send(now, egress, arrival, more)) } else { Err(Cause::NoEgress) };
        }
        let mut sent = false;
        for word in 0..self.ports.len().div_ceil(64) {
            let mut left = self.forwarding.members(route, frame).map_or(0, |set| set.word(word));
            while left != 0 {
                let egress = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if egress != port && (critical || self.forwarding.carries(egress, frame)) {
                    sent = true;
                    let passing = self.send(now, egress, arrival, more);
                    self.put(frame, passing);
                }
            }
        }
        if sent { Ok(None) } else { Err(Cause::NoEgress) }
    }

    /// Reports the number of copies of a stream's frame, if more than one.
    pub(super) fn follow_stream(&mut self, arrival: &Arrival, copies: usize) {
        if self.device.follows && copies > 1 {
            let Arrival { port, frame, .. } = *arrival;
            self.outputs.push_back(Output::Follow { port, frame, life: Life::Copied(copies as u32) });
        }
    }

    /// Reports the number of copies of a frame, if more than one.
    #[cold]
    pub(super) fn follow(&mut self, route: Route, arrival: &Arrival, critical: bool) {
        let Arrival { port, frame, .. } = *arrival;
        let forwarding = &self.forwarding;
        let leaves = |egress: &usize| *egress != port && (critical || forwarding.carries(*egress, &frame));
        let copies = forwarding.members(route, &frame).map_or(0, |set| set.iter().filter(leaves).count());
        if copies > 1 {
            self.outputs.push_back(Output::Follow { port, frame, life: Life::Copied(copies as u32) });
        }
    }

    /// Sends a copy out of port `egress`; returns it if it leaves at once.
    #[inline]
    pub(super) fn send(
        &mut self,
        now: RunTime,
        egress: usize,
        arrival: &Arrival,
        more: bool,
    ) -> Option<Passing> {
        let frame = &arrival.frame;
        if self.elsewhere.as_ref().is_some_and(|ports| ports.has(egress)) {
            let (frame, complete) = (*frame, arrival.complete);
            self.outputs.push_back(Output::Elsewhere { frame, port: egress, complete });
            return None;
        }
        let complete = arrival.complete + self.processing_delay;
        if self.mixed_rate_delay > Span::ZERO && !self.are_alike(egress, arrival.port) {
            let at = now.max(complete) + self.mixed_rate_delay;
            self.keep(at, Stage::Copy { port: egress, frame: *frame });
            return None;
        }
        if self.mode == ForwardingMode::StoreAndForward || complete <= now {
            return self.offer(now, egress, frame, now, more);
        }
        let alike = self.are_alike(egress, arrival.port);
        if alike && self.ports[egress].is_idle(now) {
            return self.offer(now, egress, frame, complete, more);
        }
        self.keep(complete, Stage::Copy { port: egress, frame: *frame });
        None
    }

    /// Whether the lines of two ports have one rate.
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        self.ports[one].line() == self.ports[other].line()
    }

    /// Hands a copy to its port, or holds it while other frames of this instant could still be more urgent. All of it
    /// can be forwarded from `complete` on. Returns it if it leaves at once.
    #[inline]
    pub(super) fn offer(
        &mut self,
        now: RunTime,
        port: usize,
        frame: &Frame,
        complete: RunTime,
        more: bool,
    ) -> Option<Passing> {
        let alone = !more && self.contenders.is_empty();
        if !alone && self.ports[port].is_idle(now) && self.ports[port].urgency(frame, false).is_some() {
            self.contenders.push(now, port, (*frame, complete));
            return None;
        }
        self.enqueue(now, port, frame)
    }

    /// All inputs of an instant are in: idle ports choose among the arrivals. A copy that is not chosen and not
    /// complete is stored.
    #[cold]
    pub(super) fn settle(&mut self, now: RunTime) {
        let ports = &self.ports;
        let copies =
            self.contenders.settle(|port, (frame, _)| ports[port].urgency(frame, false).unwrap_or(0));
        for (port, (frame, complete)) in copies {
            if complete <= now || self.ports[port].is_idle(now) {
                let passing = self.enqueue(now, port, &frame);
                self.put(&frame, passing);
            } else {
                self.keep(complete, Stage::Copy { port, frame });
            }
        }
    }

    /// Hands a frame to its port; returns it if it leaves at once.
    #[inline]
    pub(super) fn enqueue(&mut self, now: RunTime, port: usize, frame: &Frame) -> Option<Passing> {
        let transmission = self.ports[port].begin_at_once(now, frame, &self.device);
        if transmission.is_none() {
            self.line_up(now, port, frame);
        }
        transmission.map(|transmission| Passing { port, transmission })
    }

    /// Turns a frame that passed straight through into an ordinary output.
    #[inline]
    pub(super) fn put(&mut self, frame: &Frame, passing: Option<Passing>) {
        if let Some(Passing { port, transmission }) = passing {
            self.outputs.push_back(Output::Transmit { frame: *frame, port, transmission });
        }
    }

    /// Hands a frame to a port where it may have to wait.
    #[inline(never)]
    pub(super) fn line_up(&mut self, now: RunTime, port: usize, frame: &Frame) {
        let effect = &mut |effect| self.outputs.push_back(Output::of(port, effect));
        let egress = &mut self.ports[port];
        egress.handle_frame(now, *frame, &mut self.device, effect);
        self.waiting.set(port, !egress.is_at_rest(&self.device));
    }

    #[cold]
    pub(super) fn drop(&mut self, port: usize, frame: Frame, cause: Cause) {
        self.outputs.push_back(Output::Dropped { port, frame, cause });
    }
}
