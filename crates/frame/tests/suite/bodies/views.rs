//! Fuzz body: every view over the same bytes.

use wg_frame::{ethernet, ipv4, udp, vlan};

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
