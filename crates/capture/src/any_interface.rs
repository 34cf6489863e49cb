//! Frames of `tcpdump -i any`: instead of the header of a frame they have one of the kernel, with the sender's address,
//! the EtherType and, in its second version, the interface (LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2).

use wg_frame::ethernet::HEADER_LEN;

use crate::Direction;

/// LINKTYPE_LINUX_SLL.
pub(crate) const SLL: i32 = 113;
/// LINKTYPE_LINUX_SLL2.
pub(crate) const SLL2: i32 = 276;
const SLL_LEN: usize = 16;
const SLL2_LEN: usize = 20;
const ADDRESS_LEN: usize = 8;

/// ARPHRD_ETHER and ARPHRD_LOOPBACK of linux/if_arp.h, whose frames have an Ethernet header.
const WITH_ETHERNET: [u16; 2] = [1, 772];
/// Packet types of linux/if_packet.h.
const BROADCAST: u16 = 1;
const OUTGOING: u16 = 4;
/// Smallest EtherType; below, the protocol is a number of linux/if_ether.h for frames with a length.
const LEAST_ETHER_TYPE: u16 = 0x0600;

/// A frame without its destination, which is zero unless it was a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnyFrame<'a> {
    /// The Ethernet header as far as it is known.
    pub(crate) header: [u8; HEADER_LEN],
    /// What followed it.
    pub(crate) payload: &'a [u8],
    /// Length of the kernel's header.
    pub(crate) replaced: usize,
    pub(crate) direction: Direction,
    /// Index of the interface on its host; `None`: not stated.
    pub(crate) interface: Option<u32>,
}

/// Reads a captured packet of one of the two link types; `None` if its interface has no Ethernet frames, or if not even
/// the kernel's header was captured.
pub(crate) fn read(link_type: i32, data: &[u8]) -> Option<AnyFrame<'_>> {
    let half = |at: usize| data.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let word = |at: usize| Some(u32::from(half(at)?) << 16 | u32::from(half(at + 2)?));
    let (replaced, protocol, hardware, kind, address, interface) = if link_type == SLL2 {
        let kind = u16::from(*data.get(10)?);
        (SLL2_LEN, half(0)?, half(8)?, kind, data.get(12..12 + ADDRESS_LEN)?, Some(word(4)?))
    } else {
        (SLL_LEN, half(14)?, half(2)?, half(0)?, data.get(6..6 + ADDRESS_LEN)?, None)
    };
    let payload = data.get(replaced..)?;
    if !WITH_ETHERNET.contains(&hardware) {
        return None;
    }
    let mut header = [0; HEADER_LEN];
    if kind == BROADCAST {
        header[..6].fill(0xFF);
    }
    header[6..12].copy_from_slice(&address[..6]);
    // Of a frame with a length, only the captured part tells it.
    let type_or_length = if protocol < LEAST_ETHER_TYPE {
        u16::try_from(payload.len()).unwrap_or(0).min(LEAST_ETHER_TYPE - 1)
    } else {
        protocol
    };
    header[12..].copy_from_slice(&type_or_length.to_be_bytes());
    let direction = if kind == OUTGOING { Direction::Outbound } else { Direction::Inbound };
    Some(AnyFrame { header, payload, replaced, direction, interface })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_give_the_header_as_far_as_it_was_kept() {
        // Outgoing on Ethernet, from 02:00:00:00:00:09, IPv4; the second on interface 7.
        let first = [0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0xAA, 0xBB, 8, 0, 1, 2, 3];
        let second = [8, 0, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6, 2, 0, 0, 0, 0, 9, 0xAA, 0xBB, 1, 2, 3];
        let header = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0];
        for (link_type, data, replaced, interface) in
            [(SLL, &first[..], 16, None), (SLL2, &second[..], 20, Some(7))]
        {
            let direction = Direction::Outbound;
            let expected = AnyFrame { header, payload: &[1, 2, 3], replaced, direction, interface };
            assert_eq!(read(link_type, data), Some(expected));
            for len in 0..replaced {
                assert_eq!(read(link_type, &data[..len]), None, "{len} B");
            }
        }
        let mut broadcast = second;
        broadcast[10] = 1;
        let found = read(SLL2, &broadcast).expect("it is one");
        assert_eq!((&found.header[..6], found.direction), (&[0xFF; 6][..], Direction::Inbound));
    }

    #[test]
    fn frames_with_a_length_and_packets_of_other_interfaces() {
        let mut of_802_2 = [0, 4, 0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 3];
        assert_eq!(read(SLL2, &of_802_2).map(|found| found.header[12..] == [0, 3]), Some(true));
        // ARPHRD_NONE, of a tunnel.
        of_802_2[8..10].copy_from_slice(&[0xFF, 0xFE]);
        assert_eq!(read(SLL2, &of_802_2), None);
    }
}
