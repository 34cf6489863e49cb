//! Sizes and ranges of the frames that carry messages.

use wg_core::line::bytes;
use wg_frame::{arinc664, ethernet, layout, probe, vlan};

use crate::campaign::{Protocol, VlanTag};

/// Bytes of the probe header, the first part of every payload.
pub const PROBE_HEADER: u32 = bytes(probe::LEN);
/// Largest payload of an Ethernet frame (IEEE 802.3-2022, 3.2.7).
pub const MTU: u32 = bytes(ethernet::MAX_PAYLOAD_LEN);
/// UDP port of every access point: outside the ranges hosts give to outgoing connections.
pub const PROBE_PORT: u16 = 61_188;
/// UDP port of what no receiver is asked to read: background load and logs (RFC 863).
pub const DISCARD_PORT: u16 = 9;
const IP_UDP: u32 = bytes(layout::DATAGRAM_HEADER_LEN);
const SEQUENCE_NUMBER: u32 = bytes(arinc664::SEQUENCE_LEN);
const SMALLEST_FRAME: u32 = bytes(ethernet::MIN_FRAME_LEN);
/// Destination, source, EtherType and FCS.
const ETHERNET: u32 = bytes(ethernet::FRAME_OVERHEAD);
const TAG: u32 = bytes(vlan::TAG_LEN);
/// On the wire but not in the frame.
pub(crate) const AROUND_FRAME: u32 = bytes(ethernet::WIRE_OVERHEAD);

/// The protocol that frames of `protocol` have the length of: a virtual link whose sequence number lies within the payload
/// has frames as long as those of UDP.
pub const fn sized_as(protocol: Protocol, number_within: bool) -> Protocol {
    match protocol {
        Protocol::Rc if number_within => Protocol::Udp,
        other => other,
    }
}

/// Smallest and largest payload of a message, in bytes.
///
/// A raw payload below 46 B is padded to the smallest frame; that is allowed.
pub fn payload_range(protocol: Protocol) -> (u32, u32) {
    match protocol {
        Protocol::Udp | Protocol::Be => (PROBE_HEADER, MTU - IP_UDP),
        Protocol::Rc => (PROBE_HEADER, MTU - IP_UDP - SEQUENCE_NUMBER),
        Protocol::Raw | Protocol::Tt => (PROBE_HEADER, MTU),
    }
}

/// Length of the frame, destination address to FCS inclusive (RFC 1242, 3.5), in bytes.
pub fn frame_length(protocol: Protocol, vlan: Option<VlanTag>, payload: u32) -> u32 {
    let network = match protocol {
        Protocol::Udp | Protocol::Be => payload + IP_UDP,
        Protocol::Rc => payload + IP_UDP + SEQUENCE_NUMBER,
        Protocol::Raw | Protocol::Tt => payload,
    };
    let tag = if vlan.is_some() { TAG } else { 0 };
    (network + ETHERNET + tag).max(SMALLEST_FRAME)
}

/// The payload of a frame of this length; `None` where the frame is too short for its headers.
pub fn payload_of_frame(protocol: Protocol, vlan: Option<VlanTag>, frame: u32) -> Option<u32> {
    // Of a payload above the padding, the frame's length less the payload's is what surrounds it.
    let around = frame_length(protocol, vlan, MTU) - MTU;
    frame.checked_sub(around).filter(|_| frame >= SMALLEST_FRAME)
}

/// Bits the message takes on the wire, preamble and inter-packet gap included.
pub fn wire_bits(protocol: Protocol, vlan: Option<VlanTag>, payload: u32) -> u64 {
    u64::from(frame_length(protocol, vlan, payload) + AROUND_FRAME) * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_frames_are_those_of_the_standard() {
        assert_eq!(frame_length(Protocol::Udp, None, 1_472), 1_518);
        assert_eq!(frame_length(Protocol::Raw, None, 1_500), 1_518);
        assert_eq!(frame_length(Protocol::Raw, Some(VlanTag { id: 5, priority: 3 }), 1_500), 1_522);
        assert_eq!(wire_bits(Protocol::Udp, None, 1_472), 12_304);
    }

    #[test]
    fn a_frame_s_payload_makes_that_frame() {
        for protocol in [Protocol::Udp, Protocol::Raw, Protocol::Rc] {
            for frame in 64..=1_518 {
                let payload = payload_of_frame(protocol, None, frame).expect("long enough");
                assert_eq!(frame_length(protocol, None, payload), frame);
            }
            assert_eq!(payload_of_frame(protocol, None, 63), None);
        }
    }

    #[test]
    fn short_frames_are_padded() {
        assert_eq!(frame_length(Protocol::Raw, None, 12), 64);
        assert_eq!(frame_length(Protocol::Raw, None, 46), 64);
        assert_eq!(frame_length(Protocol::Raw, None, 47), 65);
        assert_eq!(frame_length(Protocol::Udp, None, 18), 64);
        assert_eq!(frame_length(Protocol::Udp, None, 19), 65);
    }
}
