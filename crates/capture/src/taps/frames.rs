//! Messages of Wiregauge in captured frames, complete or truncated.

use std::collections::BTreeMap;

use wg_frame::ethernet::{FCS_LEN, MIN_FRAME_LEN};
use wg_frame::layout::{self, Carrier, raw_payload_without_padding};
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_record::Crc;

const ETHER_TYPE_AT: usize = 12;
const VLAN: [u8; 2] = [0x81, 0x00];
const IPV4: [u8; 2] = [0x08, 0x00];
const RAW: [u8; 2] = [0x88, 0xb5];
const PROTOCOL_UDP: u8 = 17;

/// A message found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) probe: Probe,
    /// Verdict on the CRC of the message and the FCS of the frame, if there is one.
    pub(super) crc: Crc,
    /// Frame length, DA to FCS.
    pub(super) length: u16,
    /// Length of the payload in bytes, if known.
    pub(super) payload: Option<u16>,
    /// Whether it is in UDP, or directly in the frame.
    pub(super) in_udp: bool,
}

impl Message {
    pub(super) fn is_damaged(&self) -> bool {
        self.crc == Crc::Bad
    }
    pub(super) fn is_returning(&self) -> bool {
        self.probe.flags.has(ProbeFlags::RETURN)
    }
    pub(super) fn is_warm_up(&self) -> bool {
        self.probe.flags.has(ProbeFlags::WARM_UP)
    }
}

/// The message in a frame of `length` bytes of which `bytes` were captured, the last `fcs` of the frame being its FCS.
/// `payloads` has the payload lengths of flows in raw frames, as far as known.
pub(super) fn message(
    bytes: &[u8],
    length: usize,
    fcs: u8,
    payloads: &BTreeMap<u16, u16>,
) -> Option<Message> {
    let with_fcs = usize::from(fcs) == FCS_LEN;
    let whole = bytes.len() >= length;
    let on_wire = (length + if with_fcs { 0 } else { FCS_LEN }).max(MIN_FRAME_LEN);
    let on_wire = u16::try_from(on_wire).ok()?;
    let frame = if whole && with_fcs { bytes.get(..length.checked_sub(FCS_LEN)?)? } else { bytes };
    if !whole {
        let (payload, in_udp) = cut(frame)?;
        return Some(Message {
            probe: probe::peek(payload)?,
            crc: Crc::Unchecked,
            length: on_wire,
            payload: None,
            in_udp,
        });
    }
    let found = layout::find(frame).ok()?;
    let in_udp = matches!(found.envelope.carrier, Carrier::Udp { .. });
    let tagged = found.envelope.tag.is_some();
    let payload = if in_udp || found.payload.len() > raw_payload_without_padding(tagged) {
        is_intact(found.payload).then_some(found.payload.len())
    } else {
        unpadded(found.payload, payloads.get(&found.probe.flow).copied())
    };
    let frame_ok = !with_fcs || crc32fast::hash(frame).to_le_bytes() == bytes[length - FCS_LEN..length];
    Some(Message {
        probe: found.probe,
        crc: if payload.is_some() && frame_ok { Crc::Ok } else { Crc::Bad },
        length: on_wire,
        payload: payload.and_then(|length| u16::try_from(length).ok()),
        in_udp,
    })
}

fn is_intact(payload: &[u8]) -> bool {
    probe::read(payload).is_ok_and(|(_, intact)| intact)
}

/// Length of the message in the payload of a short raw frame, which does not state its padding: the known length, or
/// the one with a matching CRC.
fn unpadded(payload: &[u8], known: Option<u16>) -> Option<usize> {
    let fits = |length: &usize| payload.get(..*length).is_some_and(is_intact);
    match known {
        Some(length) => Some(usize::from(length)).filter(fits),
        None => (probe::LEN..=payload.len()).rev().find(fits),
    }
}

/// Payload of a message in a truncated frame, and whether it is in UDP: lengths and sums cannot be checked.
fn cut(frame: &[u8]) -> Option<(&[u8], bool)> {
    let kind_at =
        if frame.get(ETHER_TYPE_AT..ETHER_TYPE_AT + 2)? == VLAN { ETHER_TYPE_AT + 4 } else { ETHER_TYPE_AT };
    let kind = frame.get(kind_at..kind_at + 2)?;
    let inner = frame.get(kind_at + 2..)?;
    if kind == RAW {
        return Some((inner, false));
    }
    if kind != IPV4 || *inner.get(9)? != PROTOCOL_UDP {
        return None;
    }
    let header = usize::from(inner.first()? & 0x0f) * 4;
    Some((inner.get(header.checked_add(8)?..)?, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use wg_frame::ethernet::MacAddress;
    use wg_frame::layout::Envelope;

    fn framed(payload: usize, raw: bool) -> Vec<u8> {
        let at = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 61_188);
        let carrier = if raw { Carrier::Raw } else { Carrier::udp(at, at) };
        let envelope =
            Envelope { destination: MacAddress([2; 6]), source: MacAddress([4; 6]), tag: None, carrier };
        let mut buffer = vec![0; 2_000];
        let begin = envelope.header_len();
        let message = &mut buffer[begin..begin + payload];
        for (n, byte) in message.iter_mut().enumerate() {
            *byte = n as u8;
        }
        let probe = Probe { flow: 7, sequence: 9, flags: ProbeFlags::RETURN };
        probe::seal(message, probe).expect("it has room");
        envelope.close(&mut buffer, payload).expect("it has room").to_vec()
    }

    #[test]
    fn a_message_is_found_whatever_was_cut_padded_or_damaged() {
        let none = BTreeMap::new();
        for raw in [false, true] {
            for payload in [12, 18, 30, 46, 47, 400] {
                let frame = framed(payload, raw);
                let found = message(&frame, frame.len(), 0, &none).expect("a message");
                assert_eq!((found.probe.sequence, found.crc, found.in_udp), (9, Crc::Ok, !raw));
                assert_eq!(found.payload.map(usize::from), Some(payload), "raw {raw}");
                assert_eq!(usize::from(found.length), (frame.len() + 4).max(64));
                let mut sealed = frame.clone();
                sealed.extend(crc32fast::hash(&frame).to_le_bytes());
                let with_fcs = message(&sealed, sealed.len(), 4, &none).expect("a message");
                assert_eq!(with_fcs, found);
                let last = sealed.len() - 1;
                sealed[last] ^= 1;
                assert!(message(&sealed, sealed.len(), 4, &none).expect("a message").is_damaged());
                let mut bad = frame.clone();
                let content = frame.len().min(14 + 11 + if raw { 0 } else { 28 });
                bad[content] ^= 0x10;
                assert!(message(&bad, bad.len(), 0, &none).expect("a message").is_damaged());
                let part = message(&frame[..54], frame.len(), 0, &none).expect("a message");
                assert_eq!((part.crc, part.probe, part.length), (Crc::Unchecked, found.probe, found.length));
            }
        }
    }

    #[test]
    fn what_is_no_message_is_none() {
        let none = BTreeMap::new();
        assert_eq!(message(&[0; 60], 60, 0, &none), None);
        assert_eq!(message(&[], 0, 4, &none), None);
        assert_eq!(message(&framed(64, true)[..20], 96, 0, &none), None);
    }
}
