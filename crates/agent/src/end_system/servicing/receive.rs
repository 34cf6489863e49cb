//! Receive path, and messages returned on the servicing thread.

use wg_core::Deadline;
use wg_frame::ethernet::{FCS_LEN, HEADER_LEN, MIN_FRAME_LEN};
use wg_frame::layout::DATAGRAM_HEADER_LEN;
use wg_frame::probe::{self, ProbeFlags};
use wg_frame::time::WallNanos;
use wg_frame::vlan::TAG_LEN;
use wg_net::{Received, clock};
use wg_plan::NodeIndex;
use wg_record::{Clock, Crc, DropReason, Point};

use super::Servicing;
use super::transmit::FrameToSend;
use crate::control::role::Counters;
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::FlowRole;
use crate::end_system::buffer::{Buffer, Incoming};
use crate::end_system::framing;
use crate::end_system::receiver_task::Inbox;
use crate::end_system::relay::{ReturningMessage, Way};
use crate::recording::record_ring::ArrivalTimes;

/// Pause during which a task can return buffers.
const FOR_BUFFERS: std::time::Duration = std::time::Duration::from_micros(200);

impl Servicing {
    /// Receives up to `most` queued frames.
    pub(super) fn receive_waiting(&mut self, most: usize) {
        for _ in 0..most {
            if !self.receive(false) {
                break;
            }
        }
    }

    /// Receives one frame and passes it on; false if there was none.
    pub(super) fn receive(&mut self, block: bool) -> bool {
        if self.pool.is_empty() {
            self.take_back_buffers();
        }
        let Some(mut buffer) = self.pool.pop() else {
            return self.receive_without_buffer(block);
        };
        let at = framing::receive_at(self.access);
        match self.socket.receive(&mut buffer.bytes[at..], block) {
            Ok(Some(received)) => {
                let now = clock::realtime();
                self.take(buffer, received, now);
                true
            }
            Ok(None) => {
                self.pool.push(buffer);
                false
            }
            Err(error) => {
                self.pool.push(buffer);
                self.fail(&error);
                false
            }
        }
    }

    /// Tag of a message over UDP according to its flow, since the kernel does not show it to the socket.
    fn tag_of(&self, buffer: &Buffer, payload: usize) -> Option<u16> {
        let probe = probe::peek(buffer.payload(payload))?;
        self.assignment.flow(probe.flow)?.1.vlan_tci
    }

    /// Receives and counts a frame that is dropped because all buffers are with a task that is too slow.
    fn receive_without_buffer(&mut self, block: bool) -> bool {
        let got = matches!(self.socket.receive(&mut [], false), Ok(Some(_)));
        if got {
            self.stats.frames_received += 1;
            self.stats.inbox_drops += 1;
        } else if block {
            // The task has a lower priority: while this thread is awake on the only core, no buffer is returned.
            std::thread::sleep(FOR_BUFFERS);
        }
        got
    }

    fn take(&mut self, mut buffer: Buffer, received: Received, now: WallNanos) {
        self.stats.frames_received += 1;
        self.stats.missing_rx_timestamps += u64::from(received.timestamp.is_none());
        let whole = wire_length(received.len, received.vlan_tci);
        let (payload, length) = match self.access {
            AccessKind::Udp => {
                let tag = self.tag_of(&buffer, received.len);
                (received.len, wire_length(HEADER_LEN + DATAGRAM_HEADER_LEN + received.len, tag))
            }
            AccessKind::Raw | AccessKind::Tt | AccessKind::Loopback => {
                (received.len.saturating_sub(HEADER_LEN), whole)
            }
            AccessKind::Frames | AccessKind::Be | AccessKind::Rc => {
                (framing::bare(&mut buffer, framing::receive_at(self.access), received.len), whole)
            }
        };
        let wire = self.interface.as_mut().and_then(|interface| interface.received(&received, length));
        let incoming = Incoming {
            buffer,
            payload: u16::try_from(payload).unwrap_or(u16::MAX),
            length,
            at: ArrivalTimes { wire, driver: received.timestamp, application: now },
        };
        let Some(probe) = probe::peek(incoming.buffer.payload(payload)) else {
            self.stats.foreign_frames += 1;
            self.hand_over(incoming);
            return;
        };
        Counters::count(&self.counters.received);
        let Some((flow, facts)) = self.assignment.flow(probe.flow) else {
            self.hand_over(incoming);
            return;
        };
        if facts.access != self.access && facts.access.shares_ports() && self.access.shares_ports() {
            self.recycle(incoming.buffer);
            return;
        }
        let role = facts.role;
        if role != FlowRole::Unexpected && framing::belongs_here(facts, probe.flags, self.assignment.node) {
            if facts.access == self.access {
                self.expectations[usize::from(flow)].arrived(now.get());
                self.expect_next(now.get());
            }
            match role {
                FlowRole::Relay(relay) if !probe.flags.has(ProbeFlags::RETURN) => {
                    self.turn_round(relay, incoming);
                    return;
                }
                FlowRole::RelayInTask(_) if !probe.flags.has(ProbeFlags::RETURN) => {
                    self.hand_to_relay_task(incoming);
                    return;
                }
                _ => {}
            }
        }
        self.hand_over(incoming);
    }

    fn hand_over(&mut self, incoming: Incoming) {
        let inbox = match &mut self.inbox {
            Inbox::Task(inbox) => inbox,
            Inbox::Inline(checker) => {
                checker.take(&incoming, &mut self.records);
                self.recycle(incoming.buffer);
                return;
            }
        };
        if let Err(rtrb::PushError::Full(incoming)) = inbox.push(incoming) {
            self.stats.inbox_drops += 1;
            self.recycle(incoming.buffer);
        }
    }

    fn hand_to_relay_task(&mut self, incoming: Incoming) {
        let Some(turn) = &mut self.turn else {
            self.hand_over(incoming);
            return;
        };
        match turn.inbox.push(incoming) {
            Ok(()) => turn.thread.unpark(),
            Err(rtrb::PushError::Full(incoming)) => {
                self.stats.inbox_drops += 1;
                self.recycle(incoming.buffer);
            }
        }
    }

    /// Relays a message on this thread. Records are written after the message has left, since any time before counts as
    /// relay delay.
    fn turn_round(&mut self, relay: usize, incoming: Incoming) {
        let Incoming { buffer, payload, length, at } = incoming;
        let inspected = framing::inspect(&self.assignment, &buffer, payload, length);
        let mut relays = std::mem::take(&mut self.relays);
        let state = &mut relays[relay];
        if inspected.crc == Crc::Ok
            && inspected.payload == self.assignment.flows[usize::from(state.flow())].payload
        {
            state.turn(self.run_time(at.application.get()), buffer, inspected.probe, self);
            self.records.received(inspected.seen, at);
        } else {
            state.damaged += 1;
            self.records.received(inspected.seen, at);
            self.records.push(
                inspected.seen,
                Point::Drop,
                Clock::Realtime,
                DropReason::CorruptAtRelay,
                at.application,
            );
            self.recycle(buffer);
        }
        self.relays = relays;
        self.plan_flush();
    }

    /// Sends messages whose hold time at relays has expired; with `over`, all held messages.
    pub(super) fn flush_relays(&mut self, over: bool) {
        let now = self.run_time(clock::realtime().get());
        let mut relays = std::mem::take(&mut self.relays);
        for relay in &mut relays {
            if over { relay.end(self) } else { relay.flush(now, self) }
        }
        self.relays = relays;
        self.plan_flush();
    }

    fn plan_flush(&mut self) {
        let first = self.relays.iter().map(|relay| relay.deadline()).min().and_then(Deadline::instant);
        // Rounded up to the next nanosecond, so that the deadline has passed at the next check.
        self.next_flush = first.map_or(i64::MAX, |at| self.wall(at).saturating_add(1));
    }
}

impl Way for Servicing {
    fn send(&mut self, mut message: ReturningMessage, to: NodeIndex, twice: bool) {
        let facts = &self.assignment.flows[usize::from(message.flow)];
        let envelope = self.assignment.returned(facts, to, message.link);
        let frame = framing::write_headers(&mut message.buffer, facts, &envelope, 0);
        let send = FrameToSend {
            to,
            flow: message.flow,
            probe: message.probe,
            length: facts.length,
            intended: None,
        };
        let frame = usize::from(frame.start)..usize::from(frame.end);
        self.transmit(&message.buffer, frame.clone(), send);
        if twice {
            self.transmit(&message.buffer, frame, send);
        }
        self.recycle(message.buffer);
    }

    fn discard(&mut self, message: ReturningMessage) {
        let facts = &self.assignment.flows[usize::from(message.flow)];
        let flags = message.probe.flags.without(ProbeFlags::RETURN);
        let arrived = probe::Probe { flags, flow: facts.id, ..message.probe };
        let seen = framing::seen(arrived, facts.length, Crc::Ok);
        self.records.push(seen, Point::Drop, Clock::Realtime, DropReason::PlantedFault, clock::realtime());
        self.recycle(message.buffer);
    }
}

/// Length on the wire, DA to FCS, of a frame seen without FCS and with its tag in `tci`.
fn wire_length(bytes: usize, tci: Option<u16>) -> u16 {
    let length = (bytes + FCS_LEN + if tci.is_some() { TAG_LEN } else { 0 }).max(MIN_FRAME_LEN);
    u16::try_from(length).unwrap_or(u16::MAX)
}
