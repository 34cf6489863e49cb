//! Each layer's representation against its bytes, checksums against their definitions, lengths against the
//! standards' numbers, refusals against their reasons.

use std::net::Ipv4Addr;

use crate::judge::{Outcome, holds};
use crate::strategies::{frames, payloads, tags};
use proptest::prelude::*;
use wg_frame::ethernet::{self, EtherType, EthernetError, MacAddress};
use wg_frame::image::{Image, Message};
use wg_frame::ipv4::{self, Ipv4Error};
use wg_frame::layout::{self, Carrier, Envelope, LayoutError};
use wg_frame::probe::{self, Probe, ProbeError};
use wg_frame::udp::{self, PseudoHeader, UdpError};
use wg_frame::vlan::{self, VlanError};

fn ethertypes() -> impl Strategy<Value = EtherType> {
    (0x0600_u16..).prop_map(|number| EtherType::new(number).expect("in range"))
}

fn ipv4_reprs() -> impl Strategy<Value = ipv4::Repr> {
    (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<[u8; 3]>(), any::<u16>(), any::<bool>()).prop_map(
        |(source, destination, [protocol, traffic_class, ttl], identification, dont_fragment)| ipv4::Repr {
            source: source.into(),
            destination: destination.into(),
            protocol,
            traffic_class,
            identification,
            dont_fragment,
            ttl,
        },
    )
}

fn pseudo_headers() -> impl Strategy<Value = PseudoHeader> {
    (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(source, destination)| PseudoHeader {
        source: source.into(),
        destination: destination.into(),
    })
}

proptest! {
    #[test]
    fn ethernet_reads_back(
        destination: [u8; 6], source: [u8; 6], ethertype in ethertypes(), bytes in payloads(14..80),
    ) {
        let repr = ethernet::Repr {
            destination: MacAddress(destination), source: MacAddress(source), ethertype,
        };
        let mut frame = ethernet::Frame::new_checked(bytes.clone())?;
        repr.emit(&mut frame);
        prop_assert_eq!(ethernet::Repr::parse(&frame), Ok(repr));
        prop_assert_eq!(&frame.into_inner()[14..], &bytes[14..]);
    }

    #[test]
    fn vlan_reads_back(tag in tags(), ethertype in ethertypes(), bytes in payloads(4..80)) {
        let layout::Tag { priority, drop_eligible, id } = tag;
        let repr = vlan::Repr { priority, drop_eligible, id, ethertype };
        let mut tag = vlan::Tag::new_checked(bytes.clone())?;
        repr.emit(&mut tag);
        prop_assert_eq!(vlan::Repr::parse(&tag), Ok(repr));
        prop_assert_eq!(&tag.into_inner()[4..], &bytes[4..]);
    }

    #[test]
    fn ipv4_reads_back(repr in ipv4_reprs(), bytes in payloads(20..100), padding in 0_usize..20) {
        let mut packet = bytes.clone();
        repr.emit(&mut packet)?;
        prop_assert_eq!(&packet[20..], &bytes[20..]);
        packet.resize(packet.len() + padding, 0xEE);
        let view = ipv4::Packet::new_checked(&packet[..])?;
        prop_assert_eq!(ipv4::Repr::parse(&view), Ok(repr));
        prop_assert_eq!(view.payload(), &bytes[20..]);
    }

    #[test]
    fn udp_reads_back(
        ports: [u16; 2], checksummed: bool, pseudo in pseudo_headers(), bytes in payloads(8..100),
    ) {
        let repr = udp::Repr { source_port: ports[0], destination_port: ports[1], checksummed };
        let mut datagram = bytes.clone();
        repr.emit(&mut datagram, &pseudo)?;
        let view = udp::Datagram::new_checked(&datagram[..])?;
        prop_assert_eq!(udp::Repr::parse(&view), repr);
        prop_assert_eq!(view.payload(), &bytes[8..]);
        let expected = if checksummed { udp::Checksum::Right } else { udp::Checksum::Absent };
        prop_assert_eq!(view.checksum(&pseudo), expected);
    }

    #[test]
    fn no_bit_of_an_ipv4_header_flips_unnoticed(repr in ipv4_reprs(), mut packet in payloads(20..60)) {
        repr.emit(&mut packet)?;
        for bit in 0..ipv4::HEADER_LEN * 8 {
            packet[bit / 8] ^= 1 << (bit % 8);
            let parsed = ipv4::Packet::new_checked(&packet[..]).and_then(|view| ipv4::Repr::parse(&view));
            prop_assert!(parsed.is_err(), "bit {} flipped unnoticed", bit);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn messages_are_found_in_their_frames((frame, envelope, payload, header) in frames()) {
        let found = layout::find(&frame)?;
        prop_assert_eq!((found.envelope, found.probe), (envelope, header));
        prop_assert_eq!(frame.len() + ethernet::FCS_LEN, envelope.frame_len(payload.len()));
        prop_assert_eq!(&found.payload[..payload.len()], &payload[..]);
        prop_assert!(found.payload[payload.len()..].iter().all(|byte| *byte == 0));
        if matches!(envelope.carrier, Carrier::Udp { .. }) {
            prop_assert_eq!(found.payload.len(), payload.len(), "UDP knows its length");
        }
    }

    #[test]
    fn closing_touches_nothing_behind_the_frame((frame, envelope, payload, _) in frames()) {
        let at = envelope.header_len();
        let mut buffer = vec![0xEE; frame.len() + 9];
        buffer[at..at + payload.len()].copy_from_slice(&payload);
        envelope.close(&mut buffer, payload.len())?;
        prop_assert_eq!(&buffer[..frame.len()], &frame[..]);
        prop_assert_eq!(&buffer[frame.len()..], &[0xEE; 9]);
        let error = LayoutError::Buffer { needed: frame.len(), len: frame.len() - 1 };
        prop_assert_eq!(envelope.close(&mut buffer[..frame.len() - 1], payload.len()), Err(error));
    }

    #[test]
    fn mac_addresses_read_back(octets: [u8; 6]) {
        let address = MacAddress(octets);
        let text = address.to_string();
        prop_assert_eq!(text.parse(), Ok(address));
        prop_assert_eq!(text.to_uppercase().replace(':', "-").parse(), Ok(address));
        prop_assert_eq!(address.is_group(), octets[0] % 2 == 1);
        prop_assert_eq!(address.is_local(), octets[0] / 2 % 2 == 1);
    }

    #[test]
    fn text_never_panics(text in "\\PC{0,20}") {
        if let Ok(address) = text.parse::<MacAddress>() {
            prop_assert_eq!(address.to_string(), text.to_lowercase().replace('-', ":"));
        }
    }
}

#[test]
fn what_is_no_mac_address() {
    for text in [
        "",
        "02:00:00:00:00",
        "02:00:00:00:00:001",
        "02:00:00:00:00:0g",
        "02-00:00:00:00:01",
        "02.00.00.00.00.01",
        "020000000001",
        "02:00:00:00:00:01:",
        " 2:00:00:00:00:01",
        "é2:00:00:00:00:1",
    ] {
        assert!(text.parse::<MacAddress>().is_err(), "{text:?} was accepted");
    }
}

/// RFC 768 in its own words: pseudo header and datagram with a zero checksum as one string of bytes, padded
/// to an even length, added up with end-around carry, complemented, and 0 sent as all ones.
fn checksum_by_the_book(datagram: &[u8], pseudo: &PseudoHeader) -> u16 {
    let mut text = Vec::new();
    text.extend(pseudo.source.octets());
    text.extend(pseudo.destination.octets());
    text.extend([0, 17]);
    text.extend(u16::try_from(datagram.len()).expect("short").to_be_bytes());
    text.extend(&datagram[..6]);
    text.extend([0, 0]);
    text.extend(&datagram[8..]);
    text.resize(text.len().next_multiple_of(2), 0);
    let sum = text.chunks(2).fold(0_u16, |sum, word| {
        let (sum, carry) = sum.overflowing_add(u16::from(word[0]) * 256 + u16::from(word[1]));
        sum + u16::from(carry)
    });
    if sum == 0xFFFF { 0xFFFF } else { !sum }
}

/// `emit` writes the checksum of the book, also where the computed sum is zero.
fn writes_the_udp_checksum(
    emit: impl Fn(&mut [u8], &PseudoHeader),
    bytes: &[u8],
    pseudo: &PseudoHeader,
) -> Outcome {
    let mut datagram = bytes.to_vec();
    emit(&mut datagram, pseudo);
    let written = |datagram: &[u8]| u16::from_be_bytes([datagram[6], datagram[7]]);
    prop_assert_eq!(written(&datagram), checksum_by_the_book(&datagram, pseudo));
    // Put the checksum where a zero word was: the sum becomes all ones and its complement zero.
    let mut zero = bytes.to_vec();
    zero[8..10].fill(0);
    emit(&mut zero, pseudo);
    let complement = checksum_by_the_book(&zero, pseudo);
    zero[8..10].copy_from_slice(&complement.to_be_bytes());
    emit(&mut zero, pseudo);
    prop_assert_eq!(written(&zero), 0xFFFF);
    Ok(())
}

fn emit_udp(datagram: &mut [u8], pseudo: &PseudoHeader) {
    let repr = udp::Repr { source_port: 50_010, destination_port: 50_020, checksummed: true };
    repr.emit(datagram, pseudo).expect("long enough");
}

proptest! {
    #[test]
    fn udp_checksum_is_that_of_the_book(bytes in payloads(10..300), pseudo in pseudo_headers()) {
        writes_the_udp_checksum(emit_udp, &bytes, &pseudo)?;
    }
}

#[test]
fn the_judge_has_been_seen_to_fail() {
    let cases = || (payloads(10..60), pseudo_headers());
    assert!(holds(cases(), |(bytes, pseudo)| writes_the_udp_checksum(emit_udp, &bytes, &pseudo)));
    let zero_for_zero = |datagram: &mut [u8], pseudo: &PseudoHeader| {
        emit_udp(datagram, pseudo);
        if datagram[6..8] == [0xFF, 0xFF] {
            datagram[6..8].fill(0);
        }
    };
    assert!(!holds(cases(), |(bytes, pseudo)| writes_the_udp_checksum(zero_for_zero, &bytes, &pseudo)));
    let without_addresses = |datagram: &mut [u8], _: &PseudoHeader| {
        let none = Ipv4Addr::UNSPECIFIED;
        emit_udp(datagram, &PseudoHeader { source: none, destination: none });
    };
    assert!(!holds(cases(), |(bytes, pseudo)| writes_the_udp_checksum(without_addresses, &bytes, &pseudo)));
    let odd_byte_forgotten = |datagram: &mut [u8], pseudo: &PseudoHeader| {
        let last = datagram.len() - 1;
        let (odd, kept) = (datagram.len() % 2 == 1, datagram[last]);
        if odd {
            datagram[last] = 0;
        }
        emit_udp(datagram, pseudo);
        datagram[last] = kept;
    };
    assert!(!holds(cases(), |(bytes, pseudo)| writes_the_udp_checksum(odd_byte_forgotten, &bytes, &pseudo)));
}

#[test]
fn frame_lengths() {
    // (payload, raw, raw tagged, UDP, UDP tagged); 1518 and 1522 B are the longest frames without jumbo.
    for (payload, raw, raw_tagged, in_udp, in_udp_tagged) in [
        (12, 64, 64, 64, 64),
        (18, 64, 64, 64, 68),
        (19, 64, 64, 65, 69),
        (42, 64, 64, 88, 92),
        (43, 64, 65, 89, 93),
        (46, 64, 68, 92, 96),
        (47, 65, 69, 93, 97),
        (64, 82, 86, 110, 114),
        (1472, 1490, 1494, 1518, 1522),
        (1500, 1518, 1522, 1546, 1550),
    ] {
        assert_eq!(layout::raw_frame_len(payload, false), raw, "raw, {payload} B");
        assert_eq!(layout::raw_frame_len(payload, true), raw_tagged, "raw tagged, {payload} B");
        assert_eq!(layout::udp_frame_len(payload, false), in_udp, "UDP, {payload} B");
        assert_eq!(layout::udp_frame_len(payload, true), in_udp_tagged, "UDP tagged, {payload} B");
    }
    assert_eq!(
        (layout::raw_payload_without_padding(false), layout::raw_payload_without_padding(true)),
        (46, 42)
    );
    for (frame, wire) in [(0, 84), (63, 84), (64, 84), (65, 85), (1518, 1538)] {
        assert_eq!(ethernet::wire_len(frame), wire);
    }
    assert_eq!(layout::udp_frame_len(usize::MAX, true), usize::MAX, "saturates rather than wraps");
}

fn envelope(carrier: Carrier) -> Envelope {
    Envelope {
        destination: MacAddress::BROADCAST,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tag: None,
        carrier,
    }
}

fn udp_frame() -> Vec<u8> {
    let ends = ["198.18.0.1:1", "198.18.0.2:2"].map(|text| text.parse().expect("an address"));
    let envelope = envelope(Carrier::udp(ends[0], ends[1]));
    let mut buffer = [0; 100];
    let at = envelope.header_len();
    probe::seal(&mut buffer[at..at + 30], Probe::default()).expect("long enough");
    envelope.close(&mut buffer, 30).expect("room enough").to_vec()
}

/// What `find` says of the UDP frame after a change, with the IPv4 checksum made right again where it can be.
fn refusal(change: impl Fn(&mut Vec<u8>)) -> LayoutError {
    let mut frame = udp_frame();
    change(&mut frame);
    if let Some(Ok(mut packet)) = frame.get_mut(14..).map(ipv4::Packet::new_checked) {
        packet.fill_checksum();
    }
    layout::find(&frame).expect_err("it was broken")
}

#[test]
fn each_refusal_names_layer_and_reason() {
    use LayoutError as E;
    assert_eq!(refusal(|f| f.truncate(13)), E::Ethernet(EthernetError::TooShort { len: 13 }));
    assert_eq!(refusal(|f| f[12..14].fill(0)), E::Ethernet(EthernetError::Length { found: 0 }));
    assert_eq!(
        refusal(|f| f[12..14].copy_from_slice(&[5, 0xFF])),
        E::Ethernet(EthernetError::Length { found: 1535 })
    );
    assert_eq!(refusal(|f| f[12..14].copy_from_slice(&[0x86, 0xDD])), E::EtherType { found: 0x86DD });
    let tagged = |tci: [u8; 2], inner: [u8; 2]| {
        move |f: &mut Vec<u8>| {
            f.splice(12..12, [0x81, 0x00, tci[0], tci[1]]);
            f[16..18].copy_from_slice(&inner);
        }
    };
    assert_eq!(refusal(tagged([0x0F, 0xFF], [8, 0])), E::Vlan(VlanError::Id { found: 4095 }));
    assert_eq!(
        refusal(tagged([0, 1], [0, 64])),
        E::Vlan(VlanError::Type(EthernetError::Length { found: 64 }))
    );
    assert_eq!(refusal(tagged([0, 1], [0x81, 0])), E::EtherType { found: 0x8100 });
    let cut_tag = |f: &mut Vec<u8>| {
        tagged([0, 1], [8, 0])(f);
        f.truncate(17);
    };
    assert_eq!(refusal(cut_tag), E::Vlan(VlanError::TooShort { len: 3 }));
    assert_eq!(refusal(|f| f.truncate(33)), E::Ipv4(Ipv4Error::TooShort { len: 19 }));
    assert_eq!(refusal(|f| f[14] = 0x65), E::Ipv4(Ipv4Error::Version { found: 6 }));
    assert_eq!(refusal(|f| f[14] = 0x44), E::Ipv4(Ipv4Error::HeaderLength { found: 16, total: 58 }));
    assert_eq!(refusal(|f| f[17] = 19), E::Ipv4(Ipv4Error::HeaderLength { found: 20, total: 19 }));
    assert_eq!(refusal(|f| f.truncate(70)), E::Ipv4(Ipv4Error::Truncated { total: 58, len: 56 }));
    assert_eq!(refusal(|f| f[14] = 0x46), E::Ipv4(Ipv4Error::Options));
    assert_eq!(refusal(|f| f[20] = 0x80), E::Ipv4(Ipv4Error::ReservedFlag));
    assert_eq!(refusal(|f| f[20] = 0x20), E::Ipv4(Ipv4Error::Fragment));
    assert_eq!(refusal(|f| f[21] = 1), E::Ipv4(Ipv4Error::Fragment));
    assert_eq!(refusal(|f| f[23] = 6), E::Protocol { found: 6 });
    assert_eq!(refusal(|f| f[17] = 27), E::Udp(UdpError::TooShort { len: 7 }));
    assert_eq!(refusal(|f| f[39] = 7), E::Udp(UdpError::Length { found: 7, len: 38 }));
    assert_eq!(refusal(|f| f[39] = 39), E::Udp(UdpError::Length { found: 39, len: 38 }));
    assert_eq!(refusal(|f| f[39] = 19), E::Probe(ProbeError::TooShort { len: 11 }));
    assert_eq!(refusal(|f| f[42] = 0), E::Probe(ProbeError::NotAProbe { found: 0 }));
    let mut frame = udp_frame();
    frame[24] ^= 1;
    assert_eq!(layout::find(&frame), Err(E::Ipv4(Ipv4Error::Checksum)));
    frame[24] ^= 1;
    frame[60] ^= 1;
    let found = layout::find(&frame).expect("a wrong UDP checksum is reported, not refused");
    assert_eq!(found.udp_checksum, udp::Checksum::Wrong);
    assert!(matches!(probe::read(found.payload), Ok((_, false))));
}

#[test]
fn too_long_to_write() {
    let mut buffer = vec![0; 70_000];
    let address = "198.18.0.1:1".parse().expect("an address");
    let envelope = envelope(Carrier::udp(address, address));
    let error = LayoutError::Ipv4(Ipv4Error::TooLong { len: 65_536 });
    assert_eq!(envelope.close(&mut buffer, 65_508), Err(error));
    assert!(envelope.close(&mut buffer, 65_507).is_ok());
    assert_eq!(VlanError::Priority { found: 8 }, vlan::Priority::new(8).expect_err("7 is the highest"));
}

#[test]
fn errors_are_sentences() {
    let error = refusal(|f| f.truncate(70)).to_string();
    assert_eq!(error, "IPv4 total length 58 B, but only 56 B are there: the packet was cut");
}

proptest! {
    /// What is written whole is found again by the reader of our messages, and damage shows where it would.
    #[test]
    fn an_image_holds_its_message_and_its_damage(
        (envelope, payload) in (crate::strategies::envelopes(), probe::LEN..200_usize),
        (numbered, damaged, fcs_error) in any::<(bool, bool, bool)>(), sequence: u32,
    ) {
        let probe = Probe { flow: 3, sequence, flags: probe::ProbeFlags::RETURN };
        let fill = wg_frame::fill::Pattern::Sequential;
        let message = Message { probe, fill, transmit_time: None, damaged };
        let image = Image { envelope, payload, message: Some(message), sequence: numbered.then_some(7), redundancy: None, fcs_error };
        let mut buffer = [0; 400];
        let bytes = image.write(&mut buffer)?;
        prop_assert_eq!(bytes.len(), Image::length(&envelope, payload, numbered));
        let (frame, fcs) = bytes.split_at(bytes.len() - 4);
        prop_assert_eq!(crc32fast::hash(frame).to_le_bytes() == *fcs, !fcs_error);
        prop_assert!(!numbered || frame.last() == Some(&7));
        let found = layout::find(frame)?;
        prop_assert_eq!((found.envelope, found.probe), (envelope, probe));
        prop_assert_eq!(probe::read(&found.payload[..payload]), Ok((probe, !damaged)));
    }
}
