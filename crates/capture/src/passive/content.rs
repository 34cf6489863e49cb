//! Identification of a frame on both sides of a device: its content without the fields that a device may change, and
//! its flow.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use twox_hash::XxHash3_128;
use wg_frame::ethernet::MIN_FRAME_LEN_WITHOUT_FCS;

use super::ignored::{Field, Header, Ignored, TAGS};
use crate::redundancy::{PRP_TRAILER_LEN, trailer};

const MACS: usize = 12;
/// Greatest number of tags that are skipped; more are implausible.
const MOST_TAGS: usize = 4;

/// The compared content of a frame, with the offsets of its parts.
#[derive(Debug, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    /// Innermost EtherType.
    kind: u16,
    /// Offset of its payload in `bytes`.
    payload: usize,
    vlan: Option<u16>,
    /// Length of the frame without FCS and without ignored bytes.
    length: usize,
}

impl Content {
    /// Takes a frame of `length` bytes without FCS, of which `kept` were captured.
    pub(super) fn take(&mut self, kept: &[u8], length: usize, ignored: &Ignored) {
        self.bytes.clear();
        (self.kind, self.vlan, self.payload, self.length) = (0, None, 0, length);
        let Some((macs, mut rest)) = kept.split_at_checked(MACS) else {
            self.bytes.extend_from_slice(kept);
            return;
        };
        if ignored.has(Field::Mac) {
            self.bytes.extend_from_slice(&[0; MACS]);
        } else {
            self.bytes.extend_from_slice(macs);
        }
        for _ in 0..MOST_TAGS {
            let Some(found) = be16(rest, 0).and_then(|kind| TAGS.iter().find(|tag| tag.kind == kind)) else {
                break;
            };
            let Some((tag, behind)) = rest.split_at_checked(found.length) else { break };
            if ignored.has(found.field) {
                self.length -= found.length;
            } else {
                let at = self.bytes.len();
                self.bytes.extend_from_slice(tag);
                if found.field == Field::Vlan {
                    self.vlan = self.vlan.or(be16(tag, 2).map(|control| control & 0x0fff));
                    if ignored.has(Field::Pcp) {
                        self.bytes[at + 2] &= 0x0f;
                    }
                }
            }
            rest = behind;
        }
        self.kind = be16(rest, 0).unwrap_or_default();
        let inner = kept.len() - rest.len() + 2;
        if ignored.has(Field::PrpTrailer) && kept.len() == length && trailer(kept, inner).is_some() {
            rest = &rest[..rest.len() - PRP_TRAILER_LEN];
            self.length -= PRP_TRAILER_LEN;
        }
        let at = self.bytes.len() + 2;
        self.bytes.extend_from_slice(rest);
        self.payload = at.min(self.bytes.len());
        self.mask(ignored);
    }

    /// Masks what the device changes in the innermost packet.
    fn mask(&mut self, ignored: &Ignored) {
        let packet = self.bytes.get_mut(self.payload..).unwrap_or_default();
        match self.kind {
            0x0800 => {
                ignored.mask(Header::Ipv4, packet);
                // Later fragments have no header of UDP.
                let is_first = be16(packet, 6).is_some_and(|fragment| fragment & 0x1fff == 0);
                let header = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
                if packet.get(9) == Some(&17) && is_first {
                    ignored.mask_datagram(packet.get_mut(header..).unwrap_or_default());
                }
            }
            0x86dd => {
                ignored.mask(Header::Ipv6, packet);
                if packet.get(6) == Some(&17) {
                    ignored.mask_datagram(packet.get_mut(40..).unwrap_or_default());
                }
            }
            0x88f7 => ignored.mask(Header::Ptp, packet),
            _ => {}
        }
    }

    /// Hash that is equal for frames of the same content, and different otherwise but for a chance of 2^-128. With a
    /// `limit`, longer frames are compared by their beginning and their length.
    pub(super) fn hash(&self, limit: Option<usize>, ignored: &Ignored) -> u128 {
        let mut bytes = self.bytes.as_slice();
        let mut length = self.length as u64;
        if let Some(limit) = limit
            && self.length + ignored.removed() > limit
        {
            bytes = &bytes[..bytes.len().min(limit.saturating_sub(ignored.removed()))];
            // Whether a frame that was cut has a trailer, and which length without it, is not known.
            length = if ignored.has(Field::PrpTrailer) { 0 } else { length };
        } else if self.length <= MIN_FRAME_LEN_WITHOUT_FCS + ignored.removed() {
            // Whether padding is present depends on the place of the capture, and removing a tag leaves more of it.
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            return XxHash3_128::oneshot_with_seed(0, &bytes[..used]);
        }
        XxHash3_128::oneshot_with_seed(length, bytes)
    }

    /// The flow: the key by which network analysers distinguish conversations, in one direction.
    pub(super) fn flow(&self, ignored: &Ignored) -> FlowKey {
        let mut key = FlowKey { kind: self.kind, vlan: self.vlan, ..FlowKey::default() };
        if !ignored.has(Field::Mac)
            && let Some(macs) = self.bytes.first_chunk::<MACS>()
        {
            key.macs = *macs;
        }
        let payload = &self.bytes[self.payload..];
        match self.kind {
            0x0800 => ipv4(payload, &mut key),
            0x86dd => ipv6(payload, &mut key),
            // IEEE Std 1722, 4.4.4: a stream ID is present if the bit sv is set.
            0x22f0 if payload.get(1).is_some_and(|byte| byte & 0x80 != 0) => {
                key.stream = be64(payload, 4);
            }
            // PROFINET frame id; GOOSE and sampled values by APPID (IEC 61850-8-1, C.2; 61850-9-2, 5.3.3).
            0x8892 | 0x88b8 | 0x88ba => key.stream = be16(payload, 0).map(u64::from),
            _ => {}
        }
        key
    }
}

/// Key of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FlowKey {
    pub(super) macs: [u8; MACS],
    pub(super) vlan: Option<u16>,
    pub(super) kind: u16,
    /// Source and destination address; IPv4 in mapped form.
    addresses: Option<[u128; 2]>,
    protocol: Option<u8>,
    ports: Option<[u16; 2]>,
    /// SOME/IP service and method.
    service: Option<[u16; 2]>,
    /// Stream, frame or application ID of protocols without IP.
    stream: Option<u64>,
    is_rtps: bool,
}

impl FlowKey {
    /// Whether it is carried in UDP.
    pub(super) fn in_udp(&self) -> bool {
        self.protocol == Some(17)
    }

    /// MAC address of the source, if known: a station is on one side of the device.
    pub(super) fn source(&self) -> Option<[u8; 6]> {
        self.macs[6..].try_into().ok().filter(|mac| *mac != [0; 6])
    }

    /// Name of the flow for people.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        let said = match (self.addresses, self.macs) {
            (Some([from, to]), _) => {
                let [from_port, to_port] =
                    self.ports.map_or_else(Default::default, |ports| ports.map(|port| format!(":{port}")));
                write!(name, "{}{from_port} > {}{to_port}", address(from), address(to))
            }
            (None, macs) => write!(name, "{} > {}", mac(&macs[6..]), mac(&macs[..6])),
        };
        let protocol = match (self.kind, self.protocol) {
            (_, Some(17)) if self.is_rtps => "UDP, DDS (RTPS)".into(),
            (_, Some(17)) => "UDP".into(),
            (_, Some(6)) => "TCP".into(),
            (_, Some(1 | 58)) => "ICMP".into(),
            (_, Some(number)) => format!("IP protocol {number}"),
            (0x0806, _) => "ARP".into(),
            (0x22f0, _) => "AVTP".into(),
            (0x88a4, _) => "EtherCAT".into(),
            (0x8892, _) => "PROFINET".into(),
            (0x88b8, _) => "GOOSE".into(),
            (0x88ba, _) => "sampled values".into(),
            (0x88d7, _) => "TTEthernet".into(),
            (0x88f7, _) => "PTP".into(),
            (0x88cc, _) => "LLDP".into(),
            (length, _) if length < 0x0600 => "LLC".into(),
            (kind, _) => format!("EtherType {kind:#06x}"),
        };
        let more = [
            Some(protocol),
            self.vlan.map(|id| format!("VLAN {id}")),
            self.service.map(|[service, method]| format!("SOME/IP {service:#06x}.{method:#06x}")),
            self.stream.map(|id| format!("id {id:#x}")),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        debug_assert!(said.is_ok(), "a string takes everything");
        format!("{name} {}", more.join(", "))
    }
}

fn ipv4(packet: &[u8], key: &mut FlowKey) {
    let (Some(from), Some(to), Some(&first), Some(fragment), Some(&protocol)) =
        (chunk(packet, 12), chunk(packet, 16), packet.first(), be16(packet, 6), packet.get(9))
    else {
        return;
    };
    let mapped = |bytes: [u8; 4]| u128::from_be_bytes(Ipv4Addr::from(bytes).to_ipv6_mapped().octets());
    key.addresses = Some([mapped(from), mapped(to)]);
    key.protocol = Some(protocol);
    // Only the first fragment has ports; all of them make one flow.
    if fragment & 0x3fff == 0 {
        transport(packet.get(usize::from(first & 0x0f) * 4..).unwrap_or_default(), protocol, key);
    }
}

fn ipv6(packet: &[u8], key: &mut FlowKey) {
    let (Some(from), Some(to), Some(&protocol)) = (chunk(packet, 8), chunk(packet, 24), packet.get(6)) else {
        return;
    };
    key.addresses = Some([u128::from_be_bytes(from), u128::from_be_bytes(to)]);
    key.protocol = Some(protocol);
    transport(packet.get(40..).unwrap_or_default(), protocol, key);
}

fn transport(segment: &[u8], protocol: u8, key: &mut FlowKey) {
    if !matches!(protocol, 6 | 17 | 132) {
        return;
    }
    key.ports = be16(segment, 0).zip(be16(segment, 2)).map(|(from, to)| [from, to]);
    if protocol == 17 {
        let message = segment.get(8..).unwrap_or_default();
        key.is_rtps = message.starts_with(b"RTPS");
        key.service = some_ip(message, be16(segment, 4).unwrap_or_default());
    }
}

/// Service and method of a SOME/IP message (AUTOSAR PRS_SOMEIP_00030 and following); `None` if a fixed value differs.
fn some_ip(message: &[u8], datagram: u16) -> Option<[u16; 2]> {
    let (service, method, length) = (be16(message, 0)?, be16(message, 2)?, be32(message, 4)?);
    let (version, kind, code) = (*message.get(12)?, *message.get(14)?, *message.get(15)?);
    // The length counts from the request ID; several messages may share a datagram.
    let fits = length >= 8 && length.checked_add(16)? <= u32::from(datagram);
    let is_kind = matches!(kind & !0x20, 0x00..=0x02 | 0x40..=0x42 | 0x80 | 0x81 | 0xc0 | 0xc1);
    (fits && version == 1 && is_kind && code <= 0x5e).then_some([service, method])
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    chunk(bytes, at).map(u32::from_be_bytes)
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    chunk(bytes, at).map(u64::from_be_bytes)
}

fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn address(bits: u128) -> String {
    let address = Ipv6Addr::from(bits);
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(frame: &[u8], fields: &[Field], limit: Option<usize>) -> u128 {
        let (mut content, ignored) = (Content::default(), Ignored::of(fields));
        content.take(&frame[..frame.len().min(limit.unwrap_or(usize::MAX))], frame.len(), &ignored);
        content.hash(limit, &ignored)
    }

    /// An IPv4 datagram: VLAN tag, DSCP and TTL as told.
    fn datagram(tag: Option<u16>, dscp: u8, ttl: u8, mac: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![mac; 12];
        if let Some(tag) = tag {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        frame.extend([
            8,
            0,
            0x45,
            dscp << 2,
            0,
            0,
            0,
            1,
            0,
            0,
            ttl,
            17,
            ttl ^ dscp,
            ttl,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ]);
        frame.extend(5_u16.to_be_bytes());
        frame.extend(6_u16.to_be_bytes());
        frame.extend(u16::try_from(payload.len() + 8).unwrap().to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn only_what_is_named_is_ignored() {
        let plain = datagram(None, 0, 64, 2, &[7; 90]);
        let changed: [(Field, Vec<u8>); 4] = [
            (Field::Vlan, datagram(Some(5), 0, 64, 2, &[7; 90])),
            (Field::Dscp, datagram(None, 46, 64, 2, &[7; 90])),
            (Field::Ttl, datagram(None, 0, 63, 2, &[7; 90])),
            (Field::Mac, datagram(None, 0, 64, 9, &[7; 90])),
        ];
        for (field, frame) in &changed {
            for (other, _) in &changed {
                let is_same = hash(frame, &[*other], None) == hash(&plain, &[*other], None);
                // The checksum is left out with either, what it is a sum of is not.
                assert_eq!(is_same, field == other, "{field:?} {other:?}");
            }
            assert_ne!(hash(frame, &[], None), hash(&plain, &[], None));
        }
        let tags = [datagram(Some(0x2005), 0, 64, 2, &[7; 90]), datagram(Some(0xe005), 0, 64, 2, &[7; 90])];
        assert_ne!(hash(&tags[0], &[], None), hash(&tags[1], &[], None));
        assert_eq!(hash(&tags[0], &[Field::Pcp], None), hash(&tags[1], &[Field::Pcp], None));
    }

    /// A PTP message with a correction field, after EtherType 0x88f7 or in UDP with a checksum.
    fn sync(correction: u8, in_udp: bool) -> Vec<u8> {
        let mut message = vec![7; 44];
        message[8..16].fill(correction);
        if !in_udp {
            return [&[2; 12][..], &[0x88, 0xf7], &message].concat();
        }
        let mut frame = datagram(None, 0, 64, 2, &message);
        let udp = frame.len() - message.len() - 8;
        frame[udp + 2..udp + 4].copy_from_slice(&319_u16.to_be_bytes());
        frame[udp + 6..udp + 8].fill(correction);
        frame
    }

    #[test]
    fn redundancy_and_correction_are_ignored_where_named_and_nothing_else() {
        let plain = datagram(None, 0, 64, 2, &[7; 90]);
        let tagged = [&plain[..12], &[0x89, 0x2f, 0x10, 0x6a, 0, 9], &plain[12..]].concat();
        // The size of the trailer counts from behind the EtherType to its own end.
        let size = u16::try_from(plain.len() - 14 + 6).unwrap() | 0xa000;
        let trailed = [plain.as_slice(), &[0, 9], &size.to_be_bytes(), &[0x88, 0xfb]].concat();
        let changed = [
            (Field::HsrTag, plain.clone(), tagged),
            (Field::PrpTrailer, plain.clone(), trailed.clone()),
            (Field::PtpCorrection, sync(0, false), sync(5, false)),
            (Field::PtpCorrection, sync(0, true), sync(5, true)),
        ];
        for (field, before, behind) in &changed {
            for other in [Field::Vlan, Field::HsrTag, Field::PrpTrailer, Field::PtpCorrection] {
                let is_same = hash(before, &[other], None) == hash(behind, &[other], None);
                assert_eq!(is_same, *field == other, "{field:?} {other:?}");
            }
        }
        // Six octets like a trailer of another size are content.
        let other = [plain.as_slice(), &[0, 9, 0xa0, 0x20, 0x88, 0xfb]].concat();
        assert_ne!(hash(&plain, &[Field::PrpTrailer], None), hash(&other, &[Field::PrpTrailer], None));
        // A cut frame is compared by its beginning, whether it had a trailer or not.
        let cut = Some(100);
        assert_eq!(hash(&plain, &[Field::PrpTrailer], cut), hash(&trailed, &[Field::PrpTrailer], cut));
        // Short frames: the trailer follows the padding.
        let mut short = datagram(None, 0, 64, 2, &[7; 4]);
        short.resize(60, 0);
        let size = u16::try_from(short.len() - 14 + 6).unwrap() | 0xb000;
        let long = [short.as_slice(), &[0, 9], &size.to_be_bytes(), &[0x88, 0xfb]].concat();
        assert_eq!(hash(&short, &[Field::PrpTrailer], None), hash(&long, &[Field::PrpTrailer], None));
    }

    #[test]
    fn padding_and_snap_length_do_not_tell_frames_apart() {
        let short = datagram(None, 0, 64, 2, &[7; 3]);
        let mut padded = short.clone();
        padded.resize(60, 0);
        assert_eq!(hash(&short, &[], None), hash(&padded, &[], None));
        let long = datagram(None, 0, 64, 2, &[7; 400]);
        let mut other = long.clone();
        other[300] = 1;
        assert_ne!(hash(&long, &[], None), hash(&other, &[], None));
        assert_eq!(hash(&long, &[], Some(96)), hash(&other, &[], Some(96)));
        assert_ne!(hash(&long, &[], Some(96)), hash(&other[..399], &[], Some(96)));
        let tagged = datagram(Some(5), 0, 64, 2, &[7; 400]);
        assert_eq!(hash(&long, &[Field::Vlan], Some(96)), hash(&tagged, &[Field::Vlan], Some(96)));
    }

    #[test]
    fn flows_are_named_as_analysers_name_them() {
        let name = |frame: &[u8]| {
            let mut content = Content::default();
            content.take(frame, frame.len(), &Ignored::default());
            content.flow(&Ignored::default()).name()
        };
        assert_eq!(name(&datagram(Some(7), 0, 1, 2, b"x")), "10.0.0.1:5 > 10.0.0.2:6 UDP, VLAN 7");
        assert!(name(&datagram(None, 0, 1, 2, b"RTPS\x02\x03")).ends_with("UDP, DDS (RTPS)"));
        let some_ip = [0x12, 0x34, 0x80, 1, 0, 0, 0, 8, 0, 0, 0, 1, 1, 1, 2, 0];
        assert!(name(&datagram(None, 0, 1, 2, &some_ip)).ends_with("SOME/IP 0x1234.0x8001"));
        let mut ether_cat = vec![1; 12];
        ether_cat.extend([0x88, 0xa4, 0, 0]);
        assert_eq!(name(&ether_cat), "01:01:01:01:01:01 > 01:01:01:01:01:01 EtherCAT");
        for cut in 0..60 {
            name(&datagram(Some(7), 0, 1, 2, &some_ip)[..cut.min(54)]);
        }
    }
}
