//! Frames on links, with and without faults.

use wg_capture::Direction;
use wg_core::Deadline;
use wg_core::frame::{Frame, FrameLengths, Marks};
use wg_core::line::{GAP, PREAMBLE};
use wg_core::port::{FragmentEdge, Transmission};
use wg_frame::time::{RunTime, Span};
use wg_plan::{LinkFaultKind, NodeIndex};
use wg_record::{FLOW_FOREIGN, TruthKind};

use super::Engine;
use super::live::with_fcs;
use crate::event_queue::Class;
use crate::faults::LinkEffect;
use crate::message::{Carries, Flags, Message};
use crate::sink::Sink;
use crate::world::{CoreIndex, Held, InFlight};

/// Greatest difference, in ps, between sums of times that are each rounded up.
const ROUNDED: i64 = 4;

/// Whether the frame on a link is the one that its sender sent; a fault may have changed its length.
fn is_same(on_link: &Frame, sent: &Frame) -> bool {
    let (a, b) = (on_link.message(), sent.message());
    let alike = on_link.length == sent.length || !FrameLengths::STANDARD.have(on_link);
    alike && (a.flow, a.sequence) == (b.flow, b.sequence)
}

impl<S: Sink> Engine<'_, S> {
    /// Puts a frame on a link; returns when the line is free again.
    #[inline(never)]
    pub(super) fn launch(&mut self, number: usize, frame: &Frame) -> RunTime {
        self.frame_hops += 1;
        // The sender holds a copy until the line is free, the link until the frame has arrived.
        self.retain(frame);
        let channel = &mut self.world.channels[number];
        let first_bit = self.now + channel.lead + channel.delay;
        let complete = first_bit + channel.line.transmission(frame.length);
        let seen = if channel.by_header {
            first_bit + channel.line.header(frame.marks.has(Marks::TAGGED))
        } else {
            complete
        };
        let at = seen + channel.processing;
        let free_at = self.now + channel.line.occupation_with_gap(frame.length, channel.gap);
        if S::KEEPS_BYTES && frame.message().flow == FLOW_FOREIGN {
            self.occupied_by(frame, free_at - self.now);
        }
        let channel = &mut self.world.channels[number];
        if channel.extra.is_some() || channel.leaves_stage {
            return self.launch_otherwise(number, (at, complete), frame, free_at);
        }
        if channel.in_flight.is_empty() {
            self.queue.set(Class::Arrival, number, Deadline::at(at));
        }
        // Put together at its place.
        channel.in_flight.push_back(InFlight { at, complete, frame: *frame });
        free_at
    }

    /// Puts a frame on a link that has faults or captures, or ends in another stage.
    #[cold]
    fn launch_otherwise(
        &mut self,
        number: usize,
        (at, complete): (RunTime, RunTime),
        frame: &Frame,
        free_at: RunTime,
    ) -> RunTime {
        let in_flight = InFlight { at, complete, frame: *frame };
        if self.world.channels[number].extra.is_none() {
            self.leave_stage(number, in_flight);
            return free_at;
        }
        if let Some(free_at) = self.launch_wrong_length(number, frame) {
            return free_at;
        }
        self.launch_faulty(number, in_flight);
        free_at
    }

    /// Puts a frame on a link as a runt or a giant, if a fault of its sender strikes it; returns when the line is free
    /// again. The message in it is damaged.
    #[cold]
    fn launch_wrong_length(&mut self, number: usize, frame: &Frame) -> Option<RunTime> {
        let sequence = self.number_of(frame);
        let channel = &mut self.world.channels[number];
        let extra = channel.extra.as_mut().filter(|extra| !extra.lengths.is_empty())?;
        let mut length = None;
        for rule in &mut extra.lengths {
            // Every fault decides on every frame, so that decisions are independent of one another.
            if rule.strikes(self.now + channel.lead, frame, sequence)
                && let LinkFaultKind::WrongLength { length: own } = rule.kind
            {
                length = Some(own);
            }
        }
        let length = length?;
        let (node, port, gap) = (extra.node, extra.port, u32::from(channel.gap));
        let mut wrong = Frame { length, ..*frame };
        if frame.handle >= Message::FIRST_CONTROL {
            // The clocks of the far end ignore it.
            wrong.marks = wrong.marks.with(Marks::FCS_ERROR);
        } else {
            wrong = wrong.flagged(Flags::DAMAGED);
        }
        let first_bit = self.now + channel.lead + channel.delay;
        let complete = first_bit + channel.line.time_of(PREAMBLE + u32::from(length));
        let header = first_bit + channel.line.header(frame.marks.has(Marks::TAGGED));
        let seen = if channel.by_header { header.min(complete) } else { complete };
        let in_flight = InFlight { at: seen + channel.processing, complete, frame: wrong };
        let free_at = self.now + channel.line.time_of(PREAMBLE + u32::from(length) + gap);
        self.reveal(TruthKind::WrongLength, frame, node, port, i64::from(length));
        self.launch_faulty(number, in_flight);
        Some(free_at)
    }

    fn launch_faulty(&mut self, number: usize, in_flight: InFlight) {
        let wire = self.now + self.world.channels[number].lead;
        self.capture(number, 0, &in_flight.frame, wire);
        let LinkEffect { frame, lost, by, twice } = self.effect(number, in_flight.frame);
        if lost {
            self.release(&frame);
            return;
        }
        let channel = &mut self.world.channels[number];
        let mut in_flight = InFlight { frame, ..in_flight };
        if let Some(decision) = channel.extra.as_mut().and_then(|extra| extra.decision.as_mut()) {
            in_flight.at = decision.at(in_flight.at, in_flight.complete);
        }
        if by > Span::ZERO {
            self.hold_back(number, in_flight, by);
        } else {
            if channel.in_flight.is_empty() {
                self.queue.set(Class::Arrival, number, Deadline::at(in_flight.at));
            }
            channel.in_flight.push_back(in_flight);
        }
        if twice {
            self.retain(&frame);
            let after = self.world.channels[number].line.occupation(frame.length);
            self.hold_back(number, in_flight, by + after);
        }
    }

    /// The number of the message in a frame, by which faults choose; of one that switches or clocks made, its own.
    fn number_of(&self, frame: &Frame) -> u32 {
        let message = frame.message();
        message.bytes_at().map_or(message.sequence, |place| self.sink.sequence(place))
    }

    /// Decides what a link does to a frame that enters it now, and records it.
    pub(super) fn effect(&mut self, number: usize, frame: Frame) -> LinkEffect {
        let sequence = self.number_of(&frame);
        let channel = &mut self.world.channels[number];
        let wire = self.now + channel.lead;
        let mut effect = LinkEffect::of(frame);
        let Some(extra) = &mut channel.extra else { return effect };
        let (node, port) = (extra.node, extra.port);
        if extra.cuts > 0 {
            effect.lost = true;
        }
        let mut told = Vec::new();
        for rule in &mut extra.rules {
            // Every fault decides on every frame, so that decisions are independent of one another.
            if !rule.strikes(wire, &frame, sequence) || effect.lost {
                continue;
            }
            let twice = effect.twice;
            effect.suffer(rule.kind);
            match rule.kind {
                LinkFaultKind::Loss => {}
                LinkFaultKind::BitError => told.push((TruthKind::BitError, 0)),
                LinkFaultKind::Corrupt => told.push((TruthKind::Corrupted, 0)),
                LinkFaultKind::Duplicate if twice => {}
                LinkFaultKind::Duplicate => told.push((TruthKind::Duplicated, 0)),
                LinkFaultKind::Delay { by } => told.push((TruthKind::Delayed, by.as_picos())),
                // Applied by its sender already.
                LinkFaultKind::WrongLength { .. } => {}
            }
        }
        if effect.lost {
            // Other effects on a lost frame are not recorded.
            told = vec![(TruthKind::LinkLost, 0)];
            self.count_load_lost_on(number, &frame);
        }
        for (kind, value) in told {
            self.reveal(kind, &frame, node, port, value);
        }
        effect
    }

    /// Lets a frame come out of a faulty link `by` later than it would.
    pub(super) fn hold_back(&mut self, number: usize, in_flight: InFlight, by: Span) {
        let Some(extra) = &mut self.world.channels[number].extra else { return };
        let late =
            InFlight { at: in_flight.at + by, complete: in_flight.complete + by, frame: in_flight.frame };
        extra.departures += 1;
        extra.stragglers.insert((late.at, extra.departures), late);
        let (source, first) = (extra.source, extra.stragglers.first_key_value().map(|((at, _), _)| *at));
        self.queue.set(Class::Straggler, source, first.into());
    }

    pub(super) fn arrival(&mut self, number: usize) {
        self.arriving = number;
        let channel = &mut self.world.channels[number];
        let Some(&in_flight) = channel.in_flight.front() else {
            self.enter_stage_by(number);
            return;
        };
        channel.in_flight.pop_front();
        let watched = channel.extra.is_some();
        if let Some(next) = channel.in_flight.front() {
            self.queue.set(Class::Arrival, number, Deadline::at(next.at));
        }
        if watched {
            self.capture(number, 1, &in_flight.frame, in_flight.complete);
        }
        self.come_out(number, &in_flight);
    }

    pub(super) fn straggler(&mut self, source: usize) {
        let number = self.world.unusual[source];
        let Some(extra) = &mut self.world.channels[number].extra else { return };
        let Some((_, in_flight)) = extra.stragglers.pop_first() else { return };
        let next = extra.stragglers.first_key_value().map(|((at, _), _)| *at);
        self.queue.set(Class::Straggler, source, next.into());
        self.capture(number, 1, &in_flight.frame, in_flight.complete);
        self.come_out(number, &in_flight);
    }

    #[inline(always)]
    pub(super) fn come_out(&mut self, number: usize, in_flight: &InFlight) {
        let channel = &self.world.channels[number];
        let port = channel.to_port as usize;
        match channel.to {
            CoreIndex::Switch(at) => self.enter_switch(at as usize, port, in_flight),
            CoreIndex::Host(at) => self.enter_host(at as usize, port, &in_flight.frame),
            // A hub's medium carries its frames itself.
            CoreIndex::Hub(_) => {}
        }
    }

    /// A fragment of a frame on link `number` ends or begins; for one that begins, its transmission and when the line
    /// is free again.
    pub(super) fn fragment(
        &mut self,
        number: usize,
        frame: &Frame,
        edge: FragmentEdge,
    ) -> Option<(Transmission, RunTime)> {
        match edge {
            FragmentEdge::Cut { instead_of } => {
                self.hold(number, frame, instead_of);
                None
            }
            FragmentEdge::Continue { left, transmission } => Some((transmission, self.go_on(number, left))),
        }
    }

    /// The frame on link `number` does not end when expected, because the rest of it comes later.
    fn hold(&mut self, number: usize, frame: &Frame, instead_of: RunTime) {
        let channel = &mut self.world.channels[number];
        let through = instead_of - channel.line.time_of(GAP) + channel.lead + channel.delay;
        let is_it = |in_flight: &InFlight| is_same(&in_flight.frame, frame);
        let is_last = |in_flight: &&InFlight| (in_flight.complete - through).as_picos().abs() <= ROUNDED;
        self.world.held.remove(&number);
        let mut held = None;
        if channel.in_flight.back().filter(is_last).is_some_and(is_it) {
            held = channel.in_flight.pop_back().map(|in_flight| (in_flight, false));
            if channel.in_flight.is_empty() {
                self.queue.set(Class::Arrival, number, Deadline::NEVER);
            }
        } else if let Some(extra) = &mut channel.extra
            && let Some(key) =
                extra.stragglers.iter().rev().find(|(_, in_flight)| is_it(in_flight)).map(|(key, _)| *key)
        {
            held = extra.stragglers.remove(&key).map(|in_flight| (in_flight, true));
            let (source, next) = (extra.source, extra.stragglers.first_key_value().map(|((at, _), _)| *at));
            self.queue.set(Class::Straggler, source, next.into());
        }
        // A link that lost the frame no longer holds it.
        if let Some((in_flight, late)) = held {
            self.world.held.insert(number, Held { in_flight, late, instead_of });
        }
    }

    /// The rest of the frame on link `number` follows, `left` bytes; returns when the line is free again.
    fn go_on(&mut self, number: usize, left: u16) -> RunTime {
        let channel = &mut self.world.channels[number];
        let free_at = self.now + channel.line.time_of(PREAMBLE + u32::from(left) + GAP);
        let Some(Held { mut in_flight, late, instead_of }) = self.world.held.remove(&number) else {
            return free_at;
        };
        let later = free_at - instead_of;
        if late {
            self.hold_back(number, in_flight, later);
            return free_at;
        }
        in_flight.at = in_flight.at + later;
        in_flight.complete = in_flight.complete + later;
        if channel.in_flight.is_empty() {
            self.queue.set(Class::Arrival, number, Deadline::at(in_flight.at));
        }
        channel.in_flight.push_back(in_flight);
        free_at
    }

    /// Takes back the frame whose transmission into link `number` was cut off.
    pub(super) fn cut_short(&mut self, number: usize, frame: &Frame) {
        let channel = &mut self.world.channels[number];
        let is_it = |in_flight: &InFlight| is_same(&in_flight.frame, frame);
        // A link that lost or delayed it no longer holds it; a cut-through switch may have taken it by its header.
        if channel.in_flight.back().is_some_and(is_it) {
            channel.in_flight.pop_back();
            if channel.in_flight.is_empty() {
                self.queue.set(Class::Arrival, number, Deadline::NEVER);
            }
            self.release(frame);
        }
    }

    /// A cut of link `number` begins or ends, in this direction.
    pub(super) fn cut(&mut self, number: usize, begins: bool) {
        let now = self.now;
        let channel = &mut self.world.channels[number];
        let Some(extra) = &mut channel.extra else { return };
        let (node, port, source) = (extra.node, extra.port, extra.source);
        if !begins {
            extra.cuts = extra.cuts.saturating_sub(1);
            self.tell(TruthKind::Restored, node, port, 0);
            return;
        }
        extra.cuts += 1;
        let mut lost = Vec::new();
        lost.extend(self.world.held.remove(&number).map(|held| held.in_flight.frame));
        // A frame that has arrived, and only waits for the far end to decide, is no longer on the link.
        channel.in_flight.retain(|in_flight| {
            let stays = in_flight.complete <= now;
            if !stays {
                lost.push(in_flight.frame);
            }
            stays
        });
        extra.stragglers.retain(|_, in_flight| {
            let stays = in_flight.complete <= now;
            if !stays {
                lost.push(in_flight.frame);
            }
            stays
        });
        let straggler = extra.stragglers.first_key_value().map(|((at, _), _)| *at);
        let next = channel.in_flight.front().map(|in_flight| in_flight.at);
        self.queue.set(Class::Arrival, number, next.into());
        self.queue.set(Class::Straggler, source, straggler.into());
        self.tell(TruthKind::Cut, node, port, 0);
        for frame in lost {
            self.count_load_lost_on(number, &frame);
            self.reveal(TruthKind::LinkLost, &frame, node, port, 0);
            self.release(&frame);
        }
    }

    /// Writes a frame to the capture at the near (0) or far (1) end of a link.
    pub(super) fn capture(&mut self, number: usize, end: usize, frame: &Frame, time: RunTime) {
        let Some(extra) = &self.world.channels[number].extra else { return };
        let Some((node, port)) = extra.taps[end] else { return };
        let direction = if end == 0 { Direction::Outbound } else { Direction::Inbound };
        let nodes = &self.world.nodes;
        if S::KEEPS_BYTES
            && let Some(place) = frame.message().bytes_at()
        {
            let (time, bytes) =
                ((time, nodes[usize::from(node)].read(time)), self.sink.on_line(place, frame));
            self.captures.write_bytes((node, port), direction, time, &with_fcs(bytes), self.sink);
            return;
        }
        if let Some(bytes) = self.ptp.messages.image(frame) {
            let time = (time, nodes[usize::from(node)].read(time));
            self.captures.write_bytes((node, port), direction, time, &bytes, self.sink);
            return;
        }
        if let Some(bytes) = self.world.control_frames.image(frame) {
            let time = (time, nodes[usize::from(node)].read(time));
            self.captures.write_bytes((node, port), direction, time, &bytes, self.sink);
            return;
        }
        let shown = |node: NodeIndex, time| nodes[usize::from(node)].read(time);
        self.captures.write((node, port), direction, time, frame, shown, self.sink);
    }
}
