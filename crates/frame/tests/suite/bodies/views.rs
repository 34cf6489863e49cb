//! Fuzz body: every view over the same bytes.

use wg_frame::classify::{Content, classify};
use wg_frame::{arinc664, arp, ethernet, ipv4, lldp, ptp, rtag, tte, udp, vlan};

/// Every view over the same bytes: no accessor panics, and what parses is written back to the bit.
pub(crate) fn body(data: &[u8]) {
    if let Ok(frame) = ethernet::Frame::new_checked(data) {
        assert_eq!(frame.payload().len() + ethernet::HEADER_LEN, data.len());
        if let Ok(repr) = ethernet::Repr::parse(&frame) {
            let mut blank = data.to_vec();
            blank[..ethernet::HEADER_LEN].fill(0xEE);
            let mut copy = ethernet::Frame::new_checked(blank).expect("the same length");
            repr.emit(&mut copy);
            assert_eq!(copy.into_inner(), data);
        }
    }
    if let Ok(tag) = vlan::Tag::new_checked(data) {
        assert_eq!(tag.payload().len() + vlan::TAG_LEN, data.len());
        if let Ok(repr) = vlan::Repr::parse(&tag) {
            let mut blank = data.to_vec();
            blank[..vlan::TAG_LEN].fill(0xEE);
            let mut copy = vlan::Tag::new_checked(blank).expect("the same length");
            repr.emit(&mut copy);
            assert_eq!(copy.into_inner(), data);
        }
    }
    if let Ok(packet) = ipv4::Packet::new_checked(data) {
        ipv4_packet(&packet, data);
    }
    if let Ok(datagram) = udp::Datagram::new_checked(data) {
        udp_datagram(&datagram, data);
    }
    if let Ok(tag) = rtag::RTag::new_checked(data) {
        assert_eq!(tag.payload().len() + rtag::TAG_LEN, data.len());
        if let Ok(repr) = rtag::Repr::parse(&tag) {
            let mut copy = rtag::RTag::new_checked(blank(data, rtag::TAG_LEN)).expect("the same length");
            repr.emit(&mut copy);
            assert_eq!((copy.reserved(), rtag::Repr::parse(&copy)), (0, Ok(repr)));
            assert_eq!(copy.into_inner()[2..], data[2..]);
        }
    }
    if let Ok(frame) = arinc664::Frame::new_checked(data) {
        virtual_link(&frame, data);
    }
    if let Ok(frame) = tte::ControlFrame::new_checked(data) {
        protocol_control(&frame, data);
    }
    if let Ok(message) = ptp::Message::new_checked(data) {
        ptp_message(&message, data);
    }
    if let Some(message) = arp::Message::read(data) {
        let mut copy = vec![0; data.len()];
        message.write(&mut copy);
        let (from, to) = (ethernet::HEADER_LEN - 2, ethernet::HEADER_LEN + arp::LEN);
        assert_eq!(copy[from..to], data[from..to]);
    }
    discovery(data);
    classified(data);
}

/// Elements lie behind each other within the bytes, and whatever a neighbour says can be shown on a line.
fn discovery(data: &[u8]) {
    let within: usize = lldp::Elements::new(data).flatten().map(|element| 2 + element.value.len()).sum();
    assert!(within <= data.len());
    if let Ok(found) = lldp::Repr::parse(data) {
        for shown in [found.chassis.to_string(), found.port.to_string(), found.system_name.to_string()] {
            assert!(!shown.chars().any(char::is_control));
        }
    }
}

/// The bytes with other ones where a header was.
fn blank(data: &[u8], header: usize) -> Vec<u8> {
    let mut blank = data.to_vec();
    blank[..header].fill(0xEE);
    blank
}

fn virtual_link(frame: &arinc664::Frame<&[u8]>, data: &[u8]) {
    assert_eq!(frame.packet().len() + ethernet::HEADER_LEN + arinc664::SEQUENCE_LEN, data.len());
    if let Ok(repr) = arinc664::Repr::parse(frame) {
        let mut blank = blank(data, ethernet::HEADER_LEN);
        blank.last_mut().into_iter().for_each(|last| *last ^= 0xFF);
        let mut copy = arinc664::Frame::new_checked(blank).expect("the same length");
        repr.emit(&mut copy);
        assert_eq!(copy.into_inner(), data);
    }
}

fn protocol_control(frame: &tte::ControlFrame<&[u8]>, data: &[u8]) {
    if let Ok(repr) = tte::ControlRepr::parse(frame) {
        let mut copy =
            tte::ControlFrame::new_checked(blank(data, tte::CONTROL_LEN)).expect("the same length");
        repr.emit(&mut copy);
        assert_eq!(tte::ControlRepr::parse(&copy), Ok(repr));
        copy.set_transparent_clock(tte::TransparentClock(!0));
        assert_eq!(copy.transparent_clock().0, !0);
        copy.set_transparent_clock(frame.transparent_clock());
        let copy = copy.into_inner();
        // Reserved: four bytes, half a byte of the type and five bytes.
        let given: Vec<_> = (0..data.len()).filter(|at| !matches!(at, 8..12 | 14..20)).collect();
        assert!(given.iter().all(|at| copy[*at] == data[*at]));
    }
}

fn ptp_message(message: &ptp::Message<&[u8]>, data: &[u8]) {
    let mut mutable = ptp::Message::new_checked(data.to_vec()).expect("the same bytes");
    mutable.set_correction(message.correction());
    message.timestamp().into_iter().for_each(|time| mutable.set_timestamp(time));
    message.requesting_port().into_iter().for_each(|port| mutable.set_requesting_port(port));
    message.grandmaster().into_iter().for_each(|of| mutable.set_grandmaster(of));
    assert_eq!(mutable.into_inner(), data, "what is read is what is written");
    assert_eq!(message.body().len() + ptp::HEADER_LEN, message.message_length());
    if let Ok(repr) = ptp::Repr::parse(message) {
        let mut copy = blank(data, ptp::HEADER_LEN);
        repr.emit(&mut copy).expect("the same length");
        assert_eq!(copy, data);
    }
}

/// What a frame is said to carry agrees with what its layers say by themselves.
fn classified(data: &[u8]) {
    let Ok(frame) = classify(data) else { return };
    let view = ethernet::Frame::new_checked(data).expect("it has a header");
    assert_eq!((frame.destination, frame.source), (view.destination(), view.source()));
    let tags = usize::from(frame.vlan.is_some()) * vlan::TAG_LEN
        + usize::from(frame.redundancy.is_some()) * rtag::TAG_LEN;
    let rest = &data[ethernet::HEADER_LEN + tags..];
    match frame.content {
        Content::VirtualLink(link) => assert!(link.virtual_link().is_some()),
        Content::CriticalTraffic { id, payload, .. } => {
            assert_eq!((id.destination(), payload), (frame.destination, rest));
        }
        Content::ProtocolControl(control) => assert_eq!(control.into_inner(), rest),
        Content::Ptp(message) => assert!(message.message_length() <= rest.len()),
        Content::Ipv4(packet) => assert!(packet.total_len() <= rest.len()),
        Content::Other { payload, .. } => assert_eq!(payload, rest),
    }
}

fn ipv4_packet(packet: &ipv4::Packet<&[u8]>, data: &[u8]) {
    assert_eq!(packet.header_len() + packet.payload().len(), packet.total_len());
    let mut mutable = ipv4::Packet::new_checked(data.to_vec()).expect("the same bytes");
    mutable.set_ttl(packet.ttl().wrapping_sub(1));
    mutable.set_identification(!packet.identification());
    mutable.set_source(packet.destination());
    mutable.set_destination(packet.source());
    mutable.payload_mut().reverse();
    mutable.fill_checksum();
    assert!(mutable.checksum_ok(), "a filled checksum is right");
    let again = ipv4::Packet::new_checked(mutable.into_inner()).expect("no setter breaks a view");
    assert_eq!((again.source(), again.destination()), (packet.destination(), packet.source()));
    if let Ok(repr) = ipv4::Repr::parse(packet) {
        let mut copy = data[..packet.total_len()].to_vec();
        copy[..ipv4::HEADER_LEN].fill(0xEE);
        repr.emit(&mut copy).expect("as long as it was");
        // Negative zero checks as well as zero but is never written (RFC 1624, 3): the one header that is
        // valid and not canonical.
        if packet.checksum_field() != 0xFFFF {
            assert_eq!(copy, data[..packet.total_len()]);
        }
        let emitted = ipv4::Packet::new_checked(&copy[..]).expect("what is written is a packet");
        assert_eq!(ipv4::Repr::parse(&emitted), Ok(repr));
    }
}

fn udp_datagram(datagram: &udp::Datagram<&[u8]>, data: &[u8]) {
    let pseudo = udp::PseudoHeader { source: [198, 18, 0, 1].into(), destination: [198, 18, 0, 2].into() };
    assert_eq!(datagram.payload().len() + udp::HEADER_LEN, datagram.total_len());
    let mut mutable = udp::Datagram::new_checked(data.to_vec()).expect("the same bytes");
    mutable.set_source_port(datagram.destination_port());
    mutable.set_destination_port(datagram.source_port());
    mutable.payload_mut().reverse();
    mutable.fill_checksum(&pseudo);
    assert_eq!(mutable.checksum(&pseudo), udp::Checksum::Right);
    mutable.clear_checksum();
    assert_eq!(mutable.checksum(&pseudo), udp::Checksum::Absent);
    let repr = udp::Repr::parse(datagram);
    let mut copy = data[..datagram.total_len()].to_vec();
    copy[..udp::HEADER_LEN].fill(0xEE);
    repr.emit(&mut copy, &pseudo).expect("as long as it was");
    if datagram.checksum(&pseudo) != udp::Checksum::Wrong {
        assert_eq!(copy, data[..datagram.total_len()]);
    }
}
