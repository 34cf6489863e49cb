//! Frames in switches.

use wg_core::frame::{Frame, Marks};
use wg_core::port::Transmission;
use wg_core::switch::{Arrival, Output, Passing};
use wg_core::{Cause, Deadline};
use wg_frame::time::RunTime;
use wg_record::{Crc, DropReason, Point, TruthKind};

use super::Engine;
use crate::event_queue::Class;
use crate::message::{Carries, Message};
use crate::sink::Sink;
use crate::world::{CoreIndex, InFlight};

impl<S: Sink> Engine<'_, S> {
    #[inline]
    pub(super) fn enter_switch(&mut self, at: usize, port: usize, in_flight: &InFlight) {
        let &InFlight { complete, ref frame, .. } = in_flight;
        // A switch's own frame ends at its neighbour; a control frame or PTP message goes to the clocks.
        if frame.message().is_for_switches() {
            self.control_into_switch(at, port, in_flight);
            return;
        }
        let node = &mut self.world.switches[at];
        let (index, number) = (node.node, node.ports[port].number);
        // A switch that is down misses the frame.
        let sees = node.back_at.is_none_or(|back_at| {
            let line = self.world.channels[node.ports[port].channel() ^ 1].line;
            complete - line.transmission(frame.length) >= back_at
        });
        let more = self.queue.has_input_at(self.now);
        let (mut taken, mut decided) = (self.now - node.processing_delay, complete);
        if node.is_drawn {
            let channel = &self.world.channels[node.ports[port].channel() ^ 1];
            taken = complete;
            if channel.by_header {
                let header = channel.line.header(frame.marks.has(Marks::TAGGED));
                taken = complete - channel.line.transmission(frame.length) + header;
                // The rest of the frame takes as long through the switch as its header.
                decided = complete + (self.now - taken);
            }
        }
        let arrival = Arrival { port, frame: *frame, complete: decided };
        let passing = node.core.handle_passing(self.now, &arrival, more);
        if sees {
            self.note(frame, index, number, Point::SwitchIn, taken);
        }
        if let Some(Passing { port, transmission }) = passing {
            self.leave_switch(at, port, transmission, frame);
            // It found nothing waiting and leaves nothing behind: what is due otherwise stays as it is.
            let node = &mut self.world.switches[at];
            if !node.timer.is_due(self.now) && node.core.outputs().is_empty() {
                return;
            }
        }
        self.drain_switch(at);
    }

    pub(super) fn timer(&mut self, node: usize) {
        match self.world.nodes[node].place {
            CoreIndex::Switch(at) => {
                let at = at as usize;
                let switch = &mut self.world.switches[at];
                switch.timer = Deadline::NEVER;
                switch.core.handle_deadline(self.now);
                self.drain_switch(at);
            }
            CoreIndex::Host(at) => {
                let at = at as usize;
                let host = &mut self.world.hosts[at];
                host.timer = Deadline::NEVER;
                host.core.handle_deadline(self.now);
                self.drain_host(at);
            }
            // Hubs have a class of their own.
            CoreIndex::Hub(_) => {}
        }
    }

    /// A frame begins to leave a switch.
    #[inline(always)]
    fn leave_switch(&mut self, at: usize, port: usize, transmission: Transmission, frame: &Frame) {
        let switch = &mut self.world.switches[at];
        let node = switch.node;
        let own = &mut switch.ports[port];
        own.frames += 1;
        own.bytes += u64::from(frame.length);
        let (number, channel) = (own.number, own.channel());
        if own.preempts {
            let earlier = own.stats.begun.replace((*frame, self.now));
            // Its record is written when nothing can cut it off any more.
            self.retain(frame);
            self.settle(node, number, earlier);
        } else {
            self.note(frame, node, number, Point::SwitchOut, self.now);
        }
        if frame.handle >= Message::FIRST_CONTROL {
            self.control_leaves(node, frame);
        }
        let free_at = self.launch(channel, frame);
        self.world.switches[at].core.handle_line_free(port, transmission, free_at);
    }

    /// Carries out the effects of a switch, and sets its timer.
    #[inline]
    pub(super) fn drain_switch(&mut self, at: usize) {
        if !self.world.switches[at].core.outputs().is_empty() {
            self.take_from_switch(at);
        }
        let node = &mut self.world.switches[at];
        let timer = node.core.next_deadline();
        if timer != node.timer {
            node.timer = timer;
            self.queue.set(Class::Timer, usize::from(node.node), timer);
        }
    }

    #[inline(never)]
    fn take_from_switch(&mut self, at: usize) {
        loop {
            let switch = &mut self.world.switches[at];
            let (node, outputs) = (switch.node, switch.core.outputs());
            // The frame is copied at its place, in one piece. As a part of the effect it would be moved in parts, and
            // loads that straddle recent stores wait for the cache.
            let Some(&frame) = outputs.front().map(Output::frame) else { break };
            let Some(output) = outputs.pop_front() else { break };
            let left;
            let frame = if frame.has_internal_priority() {
                left = frame.leaving();
                &left
            } else {
                &frame
            };
            match output {
                Output::Transmit { port, transmission, .. } => {
                    self.leave_switch(at, port, transmission, frame);
                }
                Output::Abort { port, transmission, .. } => self.cut_off(at, port, transmission, frame),
                Output::Fragment { port, edge, .. } => {
                    let channel = self.world.switches[at].ports[port].channel();
                    if let Some((transmission, free_at)) = self.fragment(channel, frame, edge) {
                        self.world.switches[at].core.handle_line_free(port, transmission, free_at);
                    }
                }
                Output::Dropped { port, cause, .. } => {
                    let reason = reason(cause);
                    let own = &mut self.world.switches[at].ports[port];
                    *own.stats.dropped.entry(reason.name()).or_insert(0) += 1;
                    let number = own.number;
                    self.note_drop(frame, node, number, reason, Crc::Unchecked);
                    self.release(frame);
                }
                Output::Elsewhere { frame, port, complete } => self.hand_over(at, port, frame, complete),
                Output::Follow { life, .. } => self.follow(frame, life),
            }
        }
    }

    /// A port cuts off the frame it is sending.
    fn cut_off(&mut self, at: usize, port: usize, transmission: Transmission, frame: &Frame) {
        let node = self.world.switches[at].node;
        let own = &mut self.world.switches[at].ports[port];
        own.frames -= 1;
        own.bytes -= u64::from(frame.length);
        let begun = own.stats.begun.take();
        let (number, channel) = (own.number, own.channel());
        if let Some((frame, _)) = begun {
            self.release(&frame);
        }
        self.ptp_cut_short(node, frame);
        self.cut_short(channel, frame);
        if self.world.switches[at].back_at.is_none_or(|back_at| back_at <= self.now) {
            self.reveal(TruthKind::Preempted, frame, node, number, 0);
        }
        let free_at = self.now + self.world.channels[channel].line.time_of(wg_core::line::GAP);
        self.world.switches[at].core.handle_line_free(port, transmission, free_at);
    }

    /// Writes the record of a frame begun at a port with preemption, once it cannot be cut off any more.
    fn settle(&mut self, node: u16, number: u16, begun: Option<(Frame, RunTime)>) {
        if let Some((frame, began)) = begun {
            self.note(&frame, node, number, Point::SwitchOut, began);
            self.release(&frame);
        }
    }

    /// At the end of a run nothing cuts off the frames on the wire: writes their records.
    pub(super) fn settle_begun(&mut self) {
        for at in 0..self.world.switches.len() {
            for port in 0..self.world.switches[at].ports.len() {
                let switch = &mut self.world.switches[at];
                let (node, number) = (switch.node, switch.ports[port].number);
                let begun = switch.ports[port].stats.begun.take();
                self.settle(node, number, begun);
            }
        }
    }
}

/// Drop reason in records for a core's cause.
pub(super) fn reason(cause: Cause) -> DropReason {
    match cause {
        Cause::Full(_) => DropReason::BufferFull,
        Cause::ForeignVlan | Cause::ReservedAddress | Cause::NoEgress | Cause::NoWindow => {
            DropReason::NotForwarded
        }
        Cause::FrameCheck => DropReason::FrameCheck,
        Cause::Filtered | Cause::WrongLength => DropReason::Filtered,
        Cause::Policed => DropReason::Policed,
        Cause::Integrity | Cause::Rogue => DropReason::Integrity,
        Cause::SecondCopy => DropReason::SecondCopy,
        Cause::OutOfWindow | Cause::MissedWindow => DropReason::OutOfWindow,
        Cause::Superseded => DropReason::Superseded,
        Cause::Regulator => DropReason::RegulatorFull,
        Cause::Overrun => DropReason::RingFull,
        Cause::FifoOverrun => DropReason::FifoFull,
        Cause::Down => DropReason::DeviceDown,
        Cause::OversizeSdu => DropReason::OversizeSdu,
        Cause::StreamBlocked => DropReason::StreamBlocked,
        Cause::StreamGateClosed => DropReason::StreamGate,
        Cause::OctetsExceeded => DropReason::IntervalOctets,
        Cause::MeteredRed => DropReason::RedFrame,
    }
}
