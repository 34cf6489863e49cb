//! Builds the headers of raw frames, and checks received frames.

use std::ops::Range;

use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_plan::{NodeIndex, Protocol};
use wg_record::{Crc, FLOW_FOREIGN, RecordFlags};

use crate::end_system::assignment::{Address, Assignment, FlowFacts, RAW_ETHER_TYPE};
use crate::end_system::buffer::{Buffer, MAX_PAYLOAD, PAYLOAD_AT};
use crate::recording::record_ring::MessageInfo;

/// Bytes of an Ethernet header without tag.
pub const ETHERNET_HEADER: usize = 14;
/// Where an untagged raw frame begins in a buffer.
pub const RAW_AT: usize = PAYLOAD_AT - ETHERNET_HEADER;
/// The shortest frame without FCS (IEEE Std 802.3, 3.2.7).
const MIN_WITHOUT_FCS: usize = 60;
/// Tag protocol identifier of 802.1Q.
const TPID: u16 = 0x8100;

/// Writes the headers of a raw frame around the payload (nothing for UDP, whose headers the kernel writes) and returns
/// the bytes to hand to the access point.
pub fn write_headers(buffer: &mut Buffer, facts: &FlowFacts, from: Address, to: Address) -> Range<u16> {
    let payload_end = PAYLOAD_AT + usize::from(facts.payload).min(MAX_PAYLOAD);
    // Within a buffer, which is far shorter.
    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    let range = |start: usize, end: usize| place(start)..place(end);
    match (facts.protocol, facts.vlan_tci) {
        (Protocol::Udp | Protocol::Be | Protocol::Rc, _) => range(PAYLOAD_AT, payload_end),
        (Protocol::Raw | Protocol::Tt, tci) => {
            let start = if tci.is_some() { 0 } else { RAW_AT };
            let bytes = &mut buffer.bytes;
            bytes[start..start + 6].copy_from_slice(&to.mac);
            bytes[start + 6..start + 12].copy_from_slice(&from.mac);
            if let Some(tci) = tci {
                bytes[12..14].copy_from_slice(&TPID.to_be_bytes());
                bytes[14..16].copy_from_slice(&tci.to_be_bytes());
            }
            bytes[16..18].copy_from_slice(&RAW_ETHER_TYPE.to_be_bytes());
            range(start, payload_end.max(start + MIN_WITHOUT_FCS))
        }
    }
}

/// The result of checking a received payload.
#[derive(Clone, Copy, Debug)]
pub struct Inspected {
    /// Its header; meaningless for a foreign frame.
    pub probe: Probe,
    /// Position of its flow in the table.
    pub flow: Option<u16>,
    /// Verdict on the CRC.
    pub crc: Crc,
    /// Whether this end system is where the message should be on this leg.
    pub belongs_here: bool,
    /// Bytes of payload without padding.
    pub payload: u16,
    /// For the records.
    pub seen: MessageInfo,
}

/// Length of the payload without padding: a raw frame has no length field, so the plan tells.
pub fn trimmed(facts: Option<&FlowFacts>, payload: u16) -> u16 {
    match facts {
        Some(facts) if facts.protocol == Protocol::Raw && facts.payload > 0 => payload.min(facts.payload),
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

/// Whether a message with these flags belongs on `node`.
pub fn belongs_here(facts: &FlowFacts, flags: ProbeFlags, node: NodeIndex) -> bool {
    if flags.has(ProbeFlags::RETURN) { facts.relayed && facts.from == node } else { facts.to == node }
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
