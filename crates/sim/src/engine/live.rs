//! The engine between real hosts: frames come from outside and go there, in the hosts' time.

use wg_core::frame::{Frame, Marks, TrafficClass};
use wg_core::port::Life;
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_record::{Crc, DropReason, FLOW_FOREIGN, RecordFlags};

use super::Engine;
use super::hosts::is_sound;
use super::switches::reason;
use crate::error::SimError;
use crate::live::{Fate, Incoming, Outgoing, Outside};
use crate::message::{Carries, Flags, Message};
use crate::sink::Sink;
use crate::world::CoreIndex;

impl<O: Outside> Engine<'_, O> {
    /// Runs until the outside ends it.
    pub(super) fn carry(&mut self) -> Result<(), SimError> {
        while let Some(known) = {
            let due = self.queue.earliest();
            self.sink.wait(due)
        } {
            while let Some(incoming) = self.sink.next_incoming() {
                self.go_on_to(incoming.at.max(self.now))?;
                self.sink.entered(&incoming, self.now);
                self.enter_card(&incoming);
            }
            self.go_on_to(known)?;
            self.sink.advance(self.now, self.now)?;
        }
        self.end()
    }

    /// Handles all events up to and at `until`.
    fn go_on_to(&mut self, until: RunTime) -> Result<(), SimError> {
        while self.queue.earliest().is_due(until) {
            let Some((at, source)) = self.queue.next() else { break };
            self.happen(at.max(self.now), source)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }
}

impl<S: Sink> Engine<'_, S> {
    /// A host hands a frame to its card.
    fn enter_card(&mut self, incoming: &Incoming) {
        let frame = self.read(incoming);
        let CoreIndex::Host(at) = self.world.nodes[usize::from(incoming.node)].place else {
            self.release(&frame);
            return;
        };
        let at = at as usize;
        self.count_unrecorded(&frame, |fate| fate.entered += 1);
        let core = &mut self.world.hosts[at].core;
        if frame.class == TrafficClass::BestEffort {
            core.handle_generated(self.now, frame, false);
        } else if core.handle_send(self.now, frame, Span::ZERO, false).is_err() {
            // More frames than a card has room for, before any of them could be regulated.
            self.lost_at_card(at, 0, &frame, DropReason::SendRefused);
        }
        self.drain_host(at);
    }

    /// A frame from a host as the network sees it: its flow from the plan, the rest from its bytes.
    fn read(&self, incoming: &Incoming) -> Frame {
        let headers = &incoming.headers;
        let message = |flow, flags| Message { flow, sequence: incoming.place, flags };
        let plain = Frame {
            destination: headers.destination,
            source: headers.source,
            length: headers.length.max(wg_core::line::SMALLEST_FRAME),
            vlan: headers.tag.map_or(0, |tag| tag.id.get()),
            virtual_link: 0,
            sequence: 0,
            handle: message(FLOW_FOREIGN, Flags::default()).handle(),
            priority: headers.tag.map_or(0, |tag| tag.priority.get()),
            class: TrafficClass::BestEffort,
            network: self.world.networks[usize::from(incoming.node)],
            marks: if headers.tag.is_some() { Marks::TAGGED } else { Marks::none() },
        };
        let known = headers.probe.and_then(|probe| Some((probe, self.world.frame_of(&probe)?)));
        let Some((Probe { flow, flags, .. }, own)) = known else { return plain };
        let mut of_message = Flags::default();
        for (theirs, ours) in [(ProbeFlags::RETURN, Flags::RETURN), (ProbeFlags::WARM_UP, Flags::WARM_UP)] {
            if flags.has(theirs) {
                of_message = of_message.with(ours);
            }
        }
        let handle = message(flow, of_message).handle();
        if own.class != TrafficClass::BestEffort {
            let sequence = if own.class == TrafficClass::RateConstrained { headers.last.into() } else { 0 };
            return Frame { handle, sequence, length: plain.length, ..own };
        }
        let stack = own.marks.without(Marks::TAGGED);
        let is_back = flags.has(ProbeFlags::RETURN);
        let in_turn =
            self.world.flows[usize::from(self.world.flow_of_id[usize::from(flow)])].destinations > 1;
        Frame {
            handle,
            // Streams have addresses that hosts do not know; a relay may answer another node, and a flow may have
            // several in turn.
            destination: if is_back || in_turn { plain.destination } else { own.destination },
            virtual_link: if is_back { 0 } else { own.virtual_link },
            marks: plain.marks.with(stack),
            network: own.network,
            ..plain
        }
    }

    /// A frame that the network makes in place of a host, with its bytes if the sink keeps them; `None`: no room.
    pub(super) fn with_bytes(&mut self, frame: Frame) -> Option<Frame> {
        if !S::KEEPS_BYTES {
            return Some(frame);
        }
        let message = frame.message();
        let place = self.sink.keep(&self.captures.bytes(&frame), message.sequence)?;
        Some(Frame { handle: Message { sequence: place, ..message }.handle(), ..frame })
    }

    /// The last bit of a frame arrives at a card.
    pub(super) fn leave_card(&mut self, at: usize, port: usize, frame: &Frame) {
        let host = &self.world.hosts[at];
        let (node, number) = (host.node, host.ports[port].number);
        let is_for_it = if frame.message().flow == FLOW_FOREIGN {
            frame.destination == host.address || frame.destination.is_group()
        } else {
            self.is_for(at, frame)
        };
        if !is_for_it {
            self.release(frame);
            return;
        }
        if !is_sound(frame) {
            let fails_check = frame.marks.has(Marks::FCS_ERROR);
            let reason = if fails_check { DropReason::FrameCheck } else { DropReason::Filtered };
            self.lost_at_card_of(node, number, frame, reason);
            return;
        }
        if frame.class == TrafficClass::BestEffort && !self.world.hosts[at].has_streams {
            self.hand_out(at, frame);
            return;
        }
        self.world.hosts[at].core.handle_frame(self.now, port, *frame, Span::ZERO);
        self.drain_host(at);
    }

    /// A card hands a frame to its host: its copy ends.
    pub(super) fn hand_out(&mut self, at: usize, frame: &Frame) {
        let message = frame.message();
        if let Some(place) = message.bytes_at() {
            let node = self.world.hosts[at].node;
            let is_damaged = message.flags.has(Flags::DAMAGED);
            let flags = RecordFlags::from_bits(message.flags.of_message());
            let flow = message.flow;
            self.count_unrecorded(frame, |fate| fate.left += 1);
            self.sink.deliver(&Outgoing { node, at: self.now, frame, place, flow, flags, is_damaged });
            self.sink.release(place);
        }
    }

    /// A frame, or a copy of it, ended in a card.
    pub(super) fn lost_at_card(&mut self, at: usize, port: usize, frame: &Frame, why: DropReason) {
        let host = &self.world.hosts[at];
        let (node, number) = (host.node, host.ports[port].number);
        self.lost_at_card_of(node, number, frame, why);
    }

    fn lost_at_card_of(&mut self, node: u16, number: u16, frame: &Frame, why: DropReason) {
        if frame.message().flow == FLOW_FOREIGN {
            self.count_lost_load(frame, why.name());
        } else {
            self.note_drop(frame, node, number, why, Crc::Unchecked);
        }
        self.release(frame);
    }

    /// Updates the counts of a frame that leaves no records, if it has a label.
    pub(super) fn count_unrecorded(&mut self, frame: &Frame, count: impl FnOnce(&mut Fate)) {
        let message = frame.message();
        let Some(place) = message.bytes_at().filter(|_| S::KEEPS_BYTES && message.flow == FLOW_FOREIGN)
        else {
            return;
        };
        let Some(at) = (self.sink.sequence(place) as usize).checked_sub(1) else { return };
        // The label of a stored crossing may have any value.
        if at < self.most_unrecorded {
            if self.unrecorded.len() <= at {
                self.unrecorded.resize_with(at + 1, Fate::default);
            }
            count(&mut self.unrecorded[at]);
        }
    }

    /// A frame that leaves no records occupies a line for `time`.
    #[inline]
    pub(super) fn occupied_by(&mut self, frame: &Frame, time: Span) {
        self.count_unrecorded(frame, |fate| fate.line_ps += time.as_picos());
    }

    /// Counts a frame that a card dropped.
    pub(super) fn dropped_by_card(&mut self, at: usize, port: usize, frame: &Frame, cause: wg_core::Cause) {
        self.lost_at_card(at, port, frame, reason(cause));
    }

    /// Carries out a device's report about a copy.
    #[inline]
    pub(super) fn follow(&mut self, frame: &Frame, life: Life) {
        match life {
            Life::Copied(copies) => self.retain_more(frame, copies - 1),
            Life::Waits => {}
            Life::Sent => self.release(frame),
        }
    }
}

/// The bytes of a frame with their check sequence appended.
pub(super) fn with_fcs(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(usize::from(wg_core::line::SMALLEST_FRAME) - 4), 0);
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}
