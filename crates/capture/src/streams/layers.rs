//! A frame taken apart: addresses, tags, the redundancy protocols around its content, and its innermost packet.

use wg_frame::{rtag, vlan};

use crate::redundancy::{Copy, HSR, HSR_TAG_LEN, PRP_TRAILER_LEN, trailer};

/// Greatest number of tags that are skipped; more are implausible.
const MOST_TAGS: usize = 4;
const HEADER: usize = 14;

/// VLAN tags of a frame, outermost first (IEEE Std 802.1Q, 9.3; two of them: 802.1ad).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Vlans {
    ids: [Option<u16>; 2],
}

impl Vlans {
    pub(super) fn ids(self) -> impl Iterator<Item = u16> {
        self.ids.into_iter().flatten()
    }

    fn take(&mut self, id: u16) {
        if let Some(free) = self.ids.iter_mut().find(|id| id.is_none()) {
            *free = Some(id);
        }
    }
}

/// Addresses and ports of an IP packet; IPv4 in mapped form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ip<'a> {
    pub(super) from: u128,
    pub(super) to: u128,
    pub(super) protocol: u8,
    /// Ports of TCP, UDP and SCTP; not of later fragments.
    pub(super) ports: Option<[u16; 2]>,
    /// Payload of UDP, cut where the frame was.
    pub(super) udp: Option<&'a [u8]>,
}

/// A captured frame without its FCS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers<'a> {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) vlans: Vlans,
    pub(super) prp: Option<Copy>,
    pub(super) hsr: Option<Copy>,
    pub(super) r_tag: Option<u16>,
    /// Innermost EtherType, or the length field of IEEE Std 802.3.
    pub(super) kind: u16,
    /// Payload of the innermost EtherType with padding, without a trailer of PRP.
    pub(super) payload: &'a [u8],
    /// The last octet before the FCS, where all of the frame was captured.
    pub(super) last: Option<u8>,
    /// Whether all of the frame was captured.
    pub(super) is_whole: bool,
    pub(super) ip: Option<Ip<'a>>,
}

impl<'a> Layers<'a> {
    /// Takes a frame of `length` octets without FCS apart, of which `bytes` were captured; `None` without a header.
    pub(super) fn of(bytes: &'a [u8], length: usize) -> Option<Self> {
        let (to, from) = (mac(bytes, 0)?, mac(bytes, 6)?);
        let is_whole = bytes.len() >= length;
        let mut found = Self {
            to,
            from,
            vlans: Vlans::default(),
            prp: None,
            hsr: None,
            r_tag: None,
            kind: be16(bytes, 12)?,
            payload: &[],
            last: bytes.last().copied().filter(|_| is_whole),
            is_whole,
            ip: None,
        };
        let mut at = HEADER;
        for _ in 0..MOST_TAGS {
            let Some(next) = found.tag(bytes, at) else { break };
            at = next;
        }
        let mut end = bytes.len();
        if is_whole {
            found.prp = trailer(bytes, at);
            end -= PRP_TRAILER_LEN * usize::from(found.prp.is_some());
        }
        found.payload = bytes.get(at..end).unwrap_or_default();
        found.ip = match found.kind {
            0x0800 => ipv4(found.payload),
            0x86dd => ipv6(found.payload),
            _ => None,
        };
        Some(found)
    }

    /// Takes the tag of the current EtherType, whose content begins at `at`; returns where the next one's begins.
    fn tag(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let length = match self.kind {
            0x8100 | 0x88a8 | 0x9100 => vlan::TAG_LEN,
            0xf1c1 => rtag::TAG_LEN,
            HSR => HSR_TAG_LEN,
            _ => return None,
        };
        let next = be16(bytes, at + length - 2)?;
        let first = be16(bytes, at)?;
        match self.kind {
            0xf1c1 => self.r_tag = be16(bytes, at + 2),
            HSR => {
                self.hsr = Some(Copy { sequence: be16(bytes, at + 2)?, path: (first >> 12) as u8 });
            }
            _ => self.vlans.take(first & 0x0fff),
        }
        self.kind = next;
        Some(at + length)
    }
}

fn ipv4(packet: &[u8]) -> Option<Ip<'_>> {
    let (from, to) = (be32(packet, 12)?, be32(packet, 16)?);
    let header = usize::from(packet[0] & 0x0f) * 4;
    if packet[0] >> 4 != 4 || header < 20 {
        return None;
    }
    let mapped = |address: u32| 0xffff_0000_0000 | u128::from(address);
    let total = usize::from(be16(packet, 2)?);
    // A total length of 0 is that of a frame which the interface segments itself.
    let end = if total >= header { total.min(packet.len()) } else { packet.len() };
    let segment = packet.get(header..end).unwrap_or_default();
    let is_later_fragment = be16(packet, 6)? & 0x1fff != 0;
    Some(transport(mapped(from), mapped(to), packet[9], if is_later_fragment { &[] } else { segment }))
}

fn ipv6(packet: &[u8]) -> Option<Ip<'_>> {
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let (from, to) = (be128(packet, 8)?, be128(packet, 24)?);
    let length = usize::from(be16(packet, 4)?);
    let end = if length > 0 { (40 + length).min(packet.len()) } else { packet.len() };
    let (mut protocol, mut rest) = (packet[6], packet.get(40..end).unwrap_or_default());
    // Hop-by-hop options, routing, destination options (RFC 8200, 4): length in units of 8 octets beyond the first.
    for _ in 0..MOST_TAGS {
        if !matches!(protocol, 0 | 43 | 60) {
            break;
        }
        let Some(&[next, more]) = rest.first_chunk::<2>() else { break };
        (protocol, rest) = (next, rest.get(8 + usize::from(more) * 8..).unwrap_or_default());
    }
    Some(transport(from, to, protocol, rest))
}

fn transport(from: u128, to: u128, protocol: u8, segment: &[u8]) -> Ip<'_> {
    let has_ports = matches!(protocol, 6 | 17 | 132);
    let ports =
        has_ports.then(|| be16(segment, 0).zip(be16(segment, 2)).map(|(from, to)| [from, to])).flatten();
    let udp = ports.filter(|_| protocol == 17).and_then(|_| {
        let length = usize::from(be16(segment, 4)?);
        segment.get(8..if length < 8 { segment.len() } else { length.min(segment.len()) })
    });
    Ip { from, to, protocol, ports, udp }
}

pub(super) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    chunk(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    chunk(bytes, at).map(u64::from_be_bytes)
}

fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    chunk(bytes, at).map(u128::from_be_bytes)
}

fn mac(bytes: &[u8], at: usize) -> Option<u64> {
    let [a, b, c, d, e, f] = chunk(bytes, at)?;
    Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
