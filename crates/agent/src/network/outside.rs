//! The hosts as the engine sees them: the frames that they send, the bytes of all frames under way, and the time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use wg_core::Deadline;
use wg_core::frame::{Frame, Marks, TrafficClass};
use wg_frame::layout::DATAGRAM_HEADER_LEN;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};
use wg_frame::{ethernet, ipv4, probe, udp};
use wg_net::{PacketPorts, PortFrame, PortSender, clock};
use wg_plan::NodeIndex;
use wg_record::{Record, Truth};
use wg_sim::live::{Buffers, Headers, Incoming, Outgoing, Outside};
use wg_sim::{SimError, Sink};

use super::addresses::Answers;
use super::cost::Cost;
use super::crossings::Crossings;
use super::error::Release;
use super::expected::Expected;
use super::files::Piece;
use super::foreign::Foreign;
use crate::control::role::Counters;
use crate::end_system::servicing::spin::Budget;
use crate::proto;
use crate::recording::record_ring::RecordProducer;
use crate::stream::lead::Lead;

/// Frames that may be under way at a time: 64 MiB.
pub(super) const FRAMES: u32 = 1 << 15;
/// Most bytes of a frame.
pub(super) const LONGEST: usize = 2_048;
/// Most frames taken from the ports before the model works on them.
const ROUND: usize = 256;
/// How long before a deadline the thread stays awake whatever its budget, ns.
const AWAKE_NS: i64 = 50_000;
/// Longest sleep, ns: a request to stop does not wake the thread.
const LONGEST_SLEEP_NS: i64 = 10_000_000;

/// Account of the frames that hosts sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Intake {
    frames: u64,
    moved: u64,
    most_moved_ps: i64,
    lost: u64,
}

impl Intake {
    /// The account for the report; `dropped`: frames that the ring lost, or that were too long for it.
    pub(super) fn report(&self, dropped: u64) -> proto::ArrivalIntake {
        proto::ArrivalIntake {
            frames: self.frames,
            moved: self.moved,
            most_moved_ns: self.most_moved_ps / 1_000,
            lost: self.lost + dropped,
        }
    }
}

/// The hosts, by the ports that lead to them.
pub(super) struct Hosts {
    pub(super) ports: PacketPorts,
    pub(super) sender: PortSender,
    pub(super) buffers: Buffers,
    pub(super) records: RecordProducer,
    pub(super) files: Sender<Piece>,
    pub(super) crossings: Crossings,
    pub(super) epoch: Epoch,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) counters: Arc<Counters>,
    /// The end system behind each port.
    pub(super) nodes: Vec<NodeIndex>,
    /// The port that leads to each node.
    pub(super) port_of: Vec<Option<usize>>,
    /// The release error of each port.
    pub(super) releases: Vec<Release>,
    pub(super) intake: Intake,
    /// Foreign frames among those that hosts sent.
    pub(super) foreign: Foreign,
    /// Whether captures write only requested frames.
    pub(super) holds_back: bool,
    pub(super) incoming: VecDeque<Incoming>,
    /// Buffer in which a frame is changed before it is handed out, so that its other copies stay unchanged.
    pub(super) changed: Vec<u8>,
    /// Answers to their address queries.
    pub(super) answers: Answers,
    /// When frames are likely.
    pub(super) expected: Expected,
    /// How long before a deadline or a likely frame to wake up: waking up takes that long, and varies.
    pub(super) lead: Lead,
    /// Time that may be spent awake for likely frames.
    pub(super) budget: Budget,
    /// Processor time by part.
    pub(super) cost: Cost,
    /// When the budget was last charged, unless the thread has slept since.
    pub(super) awake_since: Option<RunTime>,
}

impl Hosts {
    fn time(&self, at: WallNanos) -> RunTime {
        self.epoch.run_time(at).unwrap_or(RunTime::ZERO)
    }

    /// Hands the waiting frames to the kernel.
    fn send(&mut self) {
        if self.sender.is_empty() {
            return;
        }
        let begin = self.time(clock::realtime());
        let Self { sender, releases, epoch, counters, crossings, .. } = self;
        sender.flush(|left| {
            let at = epoch.run_time(left.at).unwrap_or(RunTime::ZERO);
            releases[left.port].leave(at, left.frames, |row| crossings.push(row));
            (0..left.frames.taken).for_each(|_| Counters::count(&counters.received));
        });
        self.cost.handed(begin, self.time(clock::realtime()));
    }

    /// Ends the run: frames that the kernel has not taken count as refused, and frames that have not entered the model as lost.
    pub(super) fn end(&mut self) {
        self.send();
        self.lose_untaken();
        let Self { releases, crossings, .. } = self;
        for release in releases {
            while release.refuse_last(|row| crossings.push(row)) {}
        }
    }

    /// Counts the messages that arrived and did not enter the model before its end: all of them if the thread got no core.
    fn lose_untaken(&mut self) {
        let now = self.time(clock::realtime());
        let Self { ports, nodes, epoch, intake, crossings, incoming, .. } = self;
        let mut lose = |headers: &Headers, node, at| {
            if headers.probe.is_some() {
                intake.lost += 1;
                crossings.push(headers.without_room(node, at));
            }
        };
        incoming.drain(..).for_each(|frame| lose(&frame.headers, frame.node, frame.at));
        let mut is_later = false;
        while !is_later {
            let came = ports.receive(|frame: PortFrame<'_>| {
                let Some(at) = epoch.run_time(frame.at).filter(|at| *at >= RunTime::ZERO) else { return };
                is_later = at > now;
                if let Some(headers) = Headers::read(frame.bytes) {
                    lose(&headers, nodes[frame.port], at);
                }
            });
            if came.is_none() {
                return;
            }
        }
    }

    /// Time from `now` until a frame is likely, ns; 0 or less: at any moment.
    fn likely_in(&mut self, now: RunTime) -> i64 {
        self.expected.next(now).map_or(i64::MAX, |at| (at - now).as_nanos_floor() - self.lead.ns())
    }

    /// Sleeps for `ns` from `now`, or until frames arrive, and learns how late sleep ends.
    fn sleep(&mut self, now: RunTime, ns: i64) {
        // A socket on which waiting fails is noticed because its frames are missing.
        let _ = self.ports.wait(ns);
        self.awake_since = None;
        let late = (self.time(clock::realtime()) - now).as_nanos_floor() - ns;
        if late > 0 && !self.ports.has_come() {
            self.lead.learn(late);
        }
    }

    /// Charges the time since the last call to the budget, unless the thread has slept.
    fn account(&mut self, now: RunTime) {
        let passed = self.awake_since.map_or(0, |since| (now - since).as_nanos_floor());
        self.budget.account((now - RunTime::ZERO).as_nanos_floor(), passed, 0);
        self.awake_since = Some(now);
    }

    /// Takes the frames that have arrived, at most a round of them; returns the instant until which there are no others.
    fn take(&mut self) -> RunTime {
        // Frames that arrive from now on are later.
        let known = self.time(clock::realtime());
        self.cost.rest(known);
        let Self {
            ports,
            buffers,
            incoming,
            intake,
            foreign,
            nodes,
            epoch,
            expected,
            answers,
            crossings,
            ..
        } = self;
        let mut is_all = false;
        for _ in 0..ROUND {
            let came = ports.receive(|frame: PortFrame<'_>| {
                // Frames from before the run were sent to try the path, and are not carried.
                let at = epoch.run_time(frame.at).filter(|at| *at >= RunTime::ZERO)?;
                // Addresses are known from the plan; requests for them are not part of the test.
                if answers.take_up(frame.port, frame.bytes) {
                    return None;
                }
                intake.frames += 1;
                let mut headers = Headers::read(frame.bytes)?;
                foreign.look(frame.port, frame.bytes, &mut headers);
                let node = nodes[frame.port];
                let Some(place) = buffers.keep(frame.bytes, headers.sequence()) else {
                    intake.lost += 1;
                    crossings.push(headers.without_room(node, at));
                    return None;
                };
                if frame.is_checksum_open {
                    close_checksum(buffers.bytes_mut(place));
                }
                Some(Incoming { node, at, place, headers })
            });
            match came {
                None => {
                    is_all = true;
                    break;
                }
                Some(None) => answers.send(),
                Some(Some(frame)) => {
                    if let Some(probe) = frame.headers.probe {
                        expected.came(probe.flow, frame.at);
                    }
                    incoming.push_back(frame);
                }
            }
        }
        let Some(last) = self.incoming.back().map(|last| last.at) else {
            return known;
        };
        self.cost.took(known, self.time(clock::realtime()));
        if is_all { known } else { last.min(known) }
    }
}

impl Sink for Hosts {
    const KEEPS_BYTES: bool = true;

    #[inline]
    fn record(&mut self, record: &Record) {
        self.records.push_record(*record);
    }

    fn truth(&mut self, truth: &Truth) {
        // A writer that has ended is reported by its thread.
        let _ = self.files.send(Piece::Truth(*truth));
    }

    fn captured(&mut self, node: NodeIndex, blocks: &[u8], frame_at: Option<RunTime>) {
        let at = frame_at.map(|at| self.epoch.wall_nanos(at).get());
        let _ = self.files.send(Piece::Blocks(node, blocks.to_vec(), at));
    }

    fn keeps_captures_whole(&self) -> bool {
        !self.holds_back
    }

    fn origin_ns(&self) -> i64 {
        self.epoch.wall_nanos(RunTime::ZERO).get()
    }

    fn keep(&mut self, bytes: &[u8], sequence: u32) -> Option<u32> {
        self.buffers.keep(bytes, sequence)
    }

    #[inline]
    fn sequence(&self, place: u32) -> u32 {
        self.buffers.sequence(place)
    }

    #[inline]
    fn retain(&mut self, place: u32, more: u32) {
        self.buffers.retain(place, more);
    }

    #[inline]
    fn release(&mut self, place: u32) {
        self.buffers.release(place);
    }

    fn deliver(&mut self, outgoing: &Outgoing<'_>) {
        let &Outgoing { node, frame, place, is_damaged, .. } = outgoing;
        let Some(port) = self.port_of.get(usize::from(node)).copied().flatten() else { return };
        let bytes = self.buffers.bytes(place);
        let has_room = if is_damaged || frame.class == TrafficClass::RateConstrained {
            self.changed.clear();
            self.changed.extend_from_slice(bytes);
            change(&mut self.changed, frame, is_damaged);
            self.sender.push(port, &self.changed)
        } else {
            self.sender.push(port, bytes)
        };
        let row = outgoing.crossing(self.buffers.sequence(place), Span::ZERO, true);
        self.releases[port].wait(row);
        if !has_room {
            let Self { releases, crossings, .. } = self;
            releases[port].refuse_last(|row| crossings.push(row));
        }
        if self.sender.is_full() {
            self.send();
        }
    }

    fn on_line(&self, place: u32, frame: &Frame) -> Vec<u8> {
        on_line(self.buffers.bytes(place), frame)
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        self.send();
        Ok(())
    }
}

impl Outside for Hosts {
    fn wait(&mut self, due: Deadline) -> Option<RunTime> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let known = self.take();
            self.account(known);
            if !self.incoming.is_empty() {
                return Some(known);
            }
            if due.is_due(known) {
                self.cost.go_on(known);
                return Some(known);
            }
            let due_in = due.instant().map_or(i64::MAX, |at| (at - known).as_nanos_floor());
            let wake_in = [due_in.saturating_sub(self.lead.ns()), self.likely_in(known)];
            let spins = due_in <= AWAKE_NS || wake_in.iter().any(|ns| *ns <= 0) && self.budget.allows();
            if spins {
                std::hint::spin_loop();
            } else {
                // Without budget the thread sleeps until then instead of staying awake.
                let ahead = wake_in.into_iter().filter(|ns| *ns > 0);
                self.sleep(known, ahead.fold(LONGEST_SLEEP_NS.min(due_in - AWAKE_NS), i64::min));
            }
        }
    }

    fn next_incoming(&mut self) -> Option<Incoming> {
        self.incoming.pop_front()
    }

    fn entered(&mut self, incoming: &Incoming, at: RunTime) {
        let moved = (at - incoming.at).as_picos();
        if moved > 0 {
            self.intake.moved += 1;
            self.intake.most_moved_ps = self.intake.most_moved_ps.max(moved);
        }
        self.crossings.push(incoming.crossing(at));
    }
}

/// Computes the checksum of the datagram in a frame that its host left to its interface.
fn close_checksum(bytes: &mut [u8]) {
    let tag = if bytes.get(12..14) == Some(&[0x81, 0x00]) { 4 } else { 0 };
    let Some(packet) = bytes.get_mut(ethernet::HEADER_LEN + tag..) else { return };
    let Ok(mut packet) = ipv4::Packet::new_checked(packet) else { return };
    if packet.protocol() != ipv4::PROTOCOL_UDP {
        return;
    }
    let pseudo = udp::PseudoHeader { source: packet.source(), destination: packet.destination() };
    if let Ok(mut datagram) = udp::Datagram::new_checked(packet.payload_mut()) {
        datagram.fill_checksum(&pseudo);
    }
}

/// Makes the network's changes to a frame for a host: the sequence number of its virtual link, and the damage of a fault.
fn change(bytes: &mut [u8], frame: &Frame, is_damaged: bool) {
    if frame.class == TrafficClass::RateConstrained
        && let Some(number) = bytes.last_mut()
    {
        *number = frame.sequence.to_le_bytes()[0];
    }
    if is_damaged {
        damage(bytes);
    }
}

/// Alters the message in a frame so that only its own checksum is wrong, and it still reaches its receiver. A kernel discards
/// a datagram with a wrong UDP checksum, and delivers one without (RFC 768).
fn damage(bytes: &mut [u8]) {
    let tag = if bytes.get(12..14) == Some(&[0x81, 0x00]) { 4 } else { 0 };
    let type_at = ethernet::HEADER_LEN - 2 + tag;
    let is_ipv4 = bytes.get(type_at..type_at + 2) == Some(&[0x08, 0x00]);
    let inside = ethernet::HEADER_LEN + tag;
    let message = if is_ipv4 { inside + DATAGRAM_HEADER_LEN } else { inside };
    if is_ipv4 && let Some(sum) = bytes.get_mut(message - 2..message) {
        sum.fill(0);
    }
    // The last byte of the checksum in the probe header, which every message has.
    if let Some(byte) = bytes.get_mut(message + probe::LEN - 1) {
        *byte ^= 0x55;
    }
}

/// The bytes of a frame between devices, with the addresses and tags of its stream.
fn on_line(bytes: &[u8], frame: &Frame) -> Vec<u8> {
    let mut line = Vec::with_capacity(bytes.len() + 6);
    line.extend(frame.destination.0);
    line.extend(frame.source.0);
    let mut rest = bytes.get(12..).unwrap_or_default();
    if rest.starts_with(&[0x81, 0x00]) && rest.len() >= 4 {
        line.extend(&rest[..4]);
        rest = &rest[4..];
    }
    if frame.marks.has(Marks::R_TAG) {
        line.extend([0xF1, 0xC1, 0, 0]);
        line.extend(frame.sequence.to_be_bytes());
    }
    line.extend(rest);
    if frame.class == TrafficClass::RateConstrained
        && let Some(number) = line.last_mut()
    {
        *number = frame.sequence.to_le_bytes()[0];
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::ethernet::MacAddress;
    use wg_frame::layout::{self, Carrier, Envelope};
    use wg_frame::probe::Probe;

    #[test]
    fn a_checksum_that_was_left_to_an_interface_is_right_afterwards() {
        let at = |port| std::net::SocketAddrV4::new([10, 0, 0, 1].into(), port);
        for tag in [None, Some(layout::Tag::default())] {
            let (destination, source) = (MacAddress([2; 6]), MacAddress([4; 6]));
            let envelope = Envelope { destination, source, tag, carrier: Carrier::udp(at(1), at(2)) };
            let mut buffer = [0; 128];
            let begin = envelope.header_len();
            probe::seal(&mut buffer[begin..begin + 18], Probe::default()).expect("a message");
            let frame = envelope.close(&mut buffer, 18).expect("a frame");
            frame[begin - 2..begin].copy_from_slice(&[0x12, 0x34]);
            assert_eq!(layout::find(frame).expect("a message").udp_checksum, udp::Checksum::Wrong);
            close_checksum(frame);
            assert_eq!(layout::find(frame).expect("a message").udp_checksum, udp::Checksum::Right);
        }
    }

    #[test]
    fn a_damaged_message_is_known_still_and_its_host_hands_it_on() {
        let at = |port| std::net::SocketAddrV4::new([10, 0, 0, 1].into(), port);
        for carrier in [Carrier::Raw, Carrier::udp(at(1), at(2))] {
            for tag in [None, Some(layout::Tag::default())] {
                let (destination, source) = (MacAddress([2; 6]), MacAddress([4; 6]));
                let envelope = Envelope { destination, source, tag, carrier };
                let mut buffer = [0; 128];
                let sent = Probe { flow: 7, sequence: 9, ..Probe::default() };
                let begin = envelope.header_len();
                probe::seal(&mut buffer[begin..begin + 18], sent).expect("a message");
                let frame = envelope.close(&mut buffer, 18).expect("a frame");
                damage(frame);
                let found = layout::find(frame).expect("a message");
                assert_eq!(found.probe, sent);
                assert_eq!(found.udp_checksum, udp::Checksum::Absent);
                assert!(!probe::read(&found.payload[..18]).expect("a message").1, "its sum is right");
            }
        }
    }
}
