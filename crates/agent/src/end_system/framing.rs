//! Builds whole frames and checks received ones.

use std::ops::Range;

use wg_frame::ethernet::{self, EtherType};
use wg_frame::layout::{DATAGRAM_HEADER_LEN, Envelope};
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::udp;
use wg_plan::{NodeIndex, Protocol};
use wg_record::{Crc, FLOW_FOREIGN, RecordFlags};

use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, FlowFacts};
use crate::end_system::buffer::{Buffer, MAX_PAYLOAD, PAYLOAD_AT};
use crate::recording::record_ring::MessageInfo;

/// Writes the headers and trailer around the payload (none for UDP sockets, whose headers the kernel writes) and
/// returns the byte range to send. The frame of a virtual link ends with `number`: until the card inserts the sequence
/// number, this byte identifies the sub-virtual-link.
pub fn write_headers(buffer: &mut Buffer, facts: &FlowFacts, envelope: &Envelope, number: u8) -> Range<u16> {
    let payload = usize::from(facts.payload).min(MAX_PAYLOAD);
    // Always within a buffer, whose length fits `u16`.
    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    if facts.access == AccessKind::Udp {
        return place(PAYLOAD_AT)..place(PAYLOAD_AT + payload);
    }
    let start = PAYLOAD_AT.saturating_sub(envelope.header_len());
    let room = &mut buffer.bytes[start..];
    let closed = match facts.protocol {
        Protocol::Rc => envelope.close_numbered(room, payload, number),
        _ => envelope.close(room, payload),
    };
    // The assignment admits only payloads that fit in a frame.
    let length = closed.map_or(0, |frame| frame.len());
    place(start)..place(start + length)
}

/// Buffer offset for received frames, so that the payload of an untagged frame without options is at
/// [`PAYLOAD_AT`](super::buffer::PAYLOAD_AT).
pub const fn receive_at(access: AccessKind) -> usize {
    match access {
        AccessKind::Udp => PAYLOAD_AT,
        AccessKind::Raw | AccessKind::Tt | AccessKind::Loopback => PAYLOAD_AT - ethernet::HEADER_LEN,
        AccessKind::Frames | AccessKind::Be | AccessKind::Rc => {
            PAYLOAD_AT - ethernet::HEADER_LEN - DATAGRAM_HEADER_LEN
        }
    }
}

/// Moves the UDP payload of a whole frame received at `begin` to the payload offset, if it is elsewhere. Returns its
/// length, 0 if there is none.
pub fn bare(buffer: &mut Buffer, begin: usize, len: usize) -> usize {
    let frame = buffer.bytes.get(begin..(begin + len).min(buffer.bytes.len()));
    let Some((payload, length)) = frame.and_then(udp_payload) else { return 0 };
    let payload = begin + payload;
    let length = length.min(MAX_PAYLOAD);
    if payload != PAYLOAD_AT {
        buffer.bytes.copy_within(payload..payload + length, PAYLOAD_AT);
    }
    length
}

/// Offset and length of the UDP payload of a frame without FCS and tag.
fn udp_payload(frame: &[u8]) -> Option<(usize, usize)> {
    let packet = frame.get(ethernet::HEADER_LEN..)?;
    if frame[12..14] != EtherType::IPV4.get().to_be_bytes() {
        return None;
    }
    let header = usize::from(packet.first()? & 0x0F) * 4;
    let datagram = packet.get(header..)?;
    let length = usize::from(u16::from_be_bytes([*datagram.get(4)?, *datagram.get(5)?]));
    let length = length.checked_sub(udp::HEADER_LEN).filter(|_| length <= datagram.len())?;
    Some((ethernet::HEADER_LEN + header + udp::HEADER_LEN, length))
}

/// The result of checking a received payload.
#[derive(Clone, Copy, Debug)]
pub struct Inspected {
    /// Probe header; undefined for a foreign frame.
    pub probe: Probe,
    /// Position of its flow in the flow table.
    pub flow: Option<u16>,
    /// Result of the CRC check.
    pub crc: Crc,
    /// True if this end system is a valid destination of the message on this leg.
    pub belongs_here: bool,
    /// Bytes of payload without padding.
    pub payload: u16,
    /// Message fields for the records.
    pub seen: MessageInfo,
}

/// Length of the payload without padding. A raw frame has no length field, so the planned length applies.
pub fn trimmed(facts: Option<&FlowFacts>, payload: u16) -> u16 {
    match facts {
        Some(facts) if facts.payload > 0 && matches!(facts.protocol, Protocol::Raw | Protocol::Tt) => {
            payload.min(facts.payload)
        }
        _ => payload,
    }
}

/// Checks a received payload: header, CRC, flow, destination.
pub fn inspect(assignment: &Assignment, buffer: &Buffer, payload: u16, length: u16) -> Inspected {
    let whole = buffer.payload(usize::from(payload));
    let known = probe::peek(whole).and_then(|probe| assignment.flow(probe.flow));
    let payload = trimmed(known.map(|(_, facts)| facts), payload);
    let (probe, crc) = match probe::read(buffer.payload(usize::from(payload))) {
        Ok((probe, true)) => (probe, Crc::Ok),
        Ok((probe, false)) => (probe, Crc::Bad),
        Err(_) => {
            let seen = MessageInfo {
                flow: FLOW_FOREIGN,
                sequence: 0,
                length,
                crc: Crc::Bad,
                flags: RecordFlags::empty(),
            };
            let probe = Probe { flow: FLOW_FOREIGN, sequence: 0, flags: ProbeFlags::NONE };
            return Inspected { probe, flow: None, crc: Crc::Bad, belongs_here: false, payload, seen };
        }
    };
    let belongs_here = known.is_some_and(|(_, facts)| belongs_here(facts, probe.flags, assignment.node));
    let seen = seen(probe, length, crc);
    Inspected { probe, flow: known.map(|(at, _)| at), crc, belongs_here, payload, seen }
}

/// True if a message with these flags is meant for `node`.
pub fn belongs_here(facts: &FlowFacts, flags: ProbeFlags, node: NodeIndex) -> bool {
    if flags.has(ProbeFlags::RETURN) {
        facts.relayed && facts.from == node
    } else {
        facts.receivers.contains(&node)
    }
}

/// The recorded form of a header.
pub fn seen(probe: Probe, length: u16, crc: Crc) -> MessageInfo {
    let mut flags = RecordFlags::empty();
    if probe.flags.has(ProbeFlags::RETURN) {
        flags = flags.with(RecordFlags::RETURN);
    }
    if probe.flags.has(ProbeFlags::WARM_UP) {
        flags = flags.with(RecordFlags::WARM_UP);
    }
    MessageInfo { flow: probe.flow, sequence: probe.sequence, length, crc, flags }
}

#[cfg(test)]
mod tests;
