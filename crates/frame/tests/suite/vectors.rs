//! Frames not made by this crate: captured from Linux, or printed in the literature.

use wg_frame::ethernet::{self, MacAddress};
use wg_frame::ipv4;
use wg_frame::layout::{self, Carrier};
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::udp::Checksum;

/// A message of flow 10 in UDP, sent through a socket by Linux over veth with checksum offload off, and taken
/// from a packet socket; the message was made in Python with the CRC-32 of zlib.
const LINUX_UDP: [u8; 60] = [
    0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, // Ethernet
    0x45, 0x00, 0x00, 0x2E, 0x34, 0x2A, 0x40, 0x00, 0x40, 0x11, 0x7A, 0x6D, // IPv4 …
    0xC6, 0x12, 0x00, 0x01, 0xC6, 0x12, 0x00, 0x02, // … addresses
    0xC3, 0x5A, 0xC3, 0x5A, 0x00, 0x1A, 0xA1, 0x44, // UDP
    0x57, 0x10, 0x00, 0x0A, 0x12, 0x34, 0x56, 0x78, 0x34, 0xD7, 0x50, 0xF1, // probe header
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
];

/// The same way with an odd length: flow 20, message 7, returning, in the warm-up.
const LINUX_UDP_ODD: [u8; 61] = [
    0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, //
    0x45, 0x00, 0x00, 0x2F, 0x34, 0x2B, 0x40, 0x00, 0x40, 0x11, 0x7A, 0x6B, //
    0xC6, 0x12, 0x00, 0x01, 0xC6, 0x12, 0x00, 0x02, //
    0xC3, 0x5A, 0xC3, 0x64, 0x00, 0x1B, 0x31, 0x0F, //
    0x57, 0x15, 0x00, 0x14, 0x00, 0x00, 0x00, 0x07, 0x72, 0x9F, 0xE5, 0xE8, //
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
];

fn check(frame: &[u8], expected: Probe, destination: &str, identification: u16) {
    let found = layout::find(frame).expect("a frame of ours");
    assert_eq!(found.envelope.destination, MacAddress([2, 0, 0, 0, 0, 2]));
    assert_eq!(found.envelope.source, MacAddress([2, 0, 0, 0, 0, 1]));
    assert_eq!(found.envelope.tag, None);
    assert_eq!(found.udp_checksum, Checksum::Right);
    assert_eq!(probe::read(found.payload), Ok((expected, true)));
    let source = "198.18.0.1:50010".parse().expect("an address");
    let mut expected = Carrier::udp(source, destination.parse().expect("an address"));
    if let Carrier::Udp { identification: field, .. } = &mut expected {
        *field = identification;
    }
    assert_eq!(found.envelope.carrier, expected);

    let mut buffer = vec![0xEE; 200];
    let at = found.envelope.header_len();
    buffer[at..at + found.payload.len()].copy_from_slice(found.payload);
    let ours = found.envelope.close(&mut buffer, found.payload.len()).expect("room enough");
    assert_eq!(ours, frame, "written as Linux wrote it");
    assert_eq!(frame.len() + ethernet::FCS_LEN, layout::udp_frame_len(found.payload.len(), false));
}

#[test]
fn captured_from_linux() {
    let first = Probe { flow: 10, sequence: 0x1234_5678, flags: ProbeFlags::NONE };
    check(&LINUX_UDP, first, "198.18.0.2:50010", 0x342A);
    let flags = ProbeFlags::RETURN.with(ProbeFlags::WARM_UP);
    check(&LINUX_UDP_ODD, Probe { flow: 20, sequence: 7, flags }, "198.18.0.2:50020", 0x342B);
}

#[test]
fn widely_printed_ipv4_header() {
    // The example of many texts on the header checksum: 192.168.0.1 to 192.168.0.199, UDP, 115 B, sum b861.
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xB8, 0x61, 0xC0, 0xA8, 0x00, 0x01, 0xC0,
        0xA8, 0x00, 0xC7,
    ];
    let mut bytes = [0; 115];
    bytes[..20].copy_from_slice(&header);
    let packet = ipv4::Packet::new_checked(&bytes[..]).expect("a packet");
    assert!(packet.checksum_ok());
    let repr = ipv4::Repr::parse(&packet).expect("no options, no fragment");
    assert_eq!((repr.source, repr.destination), ([192, 168, 0, 1].into(), [192, 168, 0, 199].into()));
    let mut ours = [0; 115];
    repr.emit(&mut ours).expect("long enough");
    assert_eq!(ours, bytes);
}

#[test]
fn tagged_raw_frame_by_hand() {
    // VLAN 7 with priority 5 and drop eligible: 101 1 000000000111 = b007 (802.1Q, 9.6).
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0x00, 0xB0, 0x07, 0x88, 0xB5];
    frame.extend(&LINUX_UDP[42..]);
    let message = LINUX_UDP.len() - 42;
    frame.resize(60, 0);
    let found = layout::find(&frame).expect("a frame of ours");
    let tag = found.envelope.tag.expect("a tag");
    assert_eq!((tag.priority.get(), tag.drop_eligible, tag.id.get()), (5, true, 7));
    assert_eq!(found.envelope.carrier, Carrier::Raw);
    assert_eq!(found.udp_checksum, Checksum::Absent);
    // Too short to do without padding, which the receiver has to cut off before the CRC can be right.
    assert_eq!(found.payload.len(), layout::raw_payload_without_padding(true));
    assert!(matches!(probe::read(found.payload), Ok((_, false))));
    assert!(matches!(probe::read(&found.payload[..message]), Ok((_, true))));
    let mut buffer = [0xEE; 60];
    buffer[18..18 + message].copy_from_slice(&LINUX_UDP[42..]);
    assert_eq!(found.envelope.close(&mut buffer, message).expect("room enough"), &frame[..]);
}
