//! Frames of the protocols beside our own messages: read back as written, classified as built, against vectors made by
//! hand from the standards' layouts.

use proptest::prelude::*;
use wg_frame::arinc664::{self, Sender, VirtualLinkError, VirtualLinkId};
use wg_frame::classify::{ClassifyError, Content, classify};
use wg_frame::ethernet::{self, EtherType, MacAddress};
use wg_frame::layout::{Carrier, Envelope};
use wg_frame::ptp::{self, Grandmaster, MessageType, PortIdentity, PtpError, Timestamp};
use wg_frame::rtag::{self, RTagError};
use wg_frame::time::Span;
use wg_frame::tte::{
    self, ControlError, ControlFrame, ControlRepr, ControlType, CriticalTrafficId, TransparentClock,
};
use wg_frame::vlan;

use crate::strategies::{payloads, tags};

const STATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

fn kinds() -> impl Strategy<Value = MessageType> {
    (0_u8..16).prop_filter_map("reserved", MessageType::from_number)
}

fn control_frames() -> impl Strategy<Value = ControlRepr> {
    let kinds = [ControlType::Integration, ControlType::Coldstart, ControlType::ColdstartAcknowledge];
    (any::<[u32; 2]>(), any::<[u8; 2]>(), prop::sample::select(kinds.to_vec()), any::<u64>()).prop_map(
        |([integration_cycle, membership], [sync_priority, sync_domain], control_type, clock)| ControlRepr {
            integration_cycle,
            membership,
            sync_priority,
            sync_domain,
            control_type,
            transparent_clock: TransparentClock(clock),
        },
    )
}

fn ptp_headers() -> impl Strategy<Value = ptp::Repr> {
    let ports = (any::<[u8; 8]>(), any::<u16>()).prop_map(|(clock, port)| PortIdentity { clock, port });
    (kinds(), 0_u8..16, 0_u8..16, 0_u16..60, any::<[u8; 8]>(), any::<i64>(), ports, any::<[u16; 2]>())
        .prop_map(
            |(
                message_type,
                major_sdo_id,
                minor_version,
                more,
                bytes,
                correction,
                source_port,
                [flags, sequence_id],
            )| {
                let [domain, minor_sdo_id, a, b, c, d, control, interval] = bytes;
                ptp::Repr {
                    message_type,
                    major_sdo_id,
                    minor_version,
                    length: message_type.shortest() as u16 + more,
                    domain,
                    minor_sdo_id,
                    flags,
                    correction,
                    type_specific: [a, b, c, d],
                    source_port,
                    sequence_id,
                    control,
                    log_interval: interval as i8,
                }
            },
        )
}

/// A frame of these bytes behind addresses, perhaps tags, and a type.
fn frame(
    destination: MacAddress,
    tags: &[(EtherType, Vec<u8>)],
    ethertype: EtherType,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = [&destination.0[..], &STATION.0[..]].concat();
    for (number, content) in tags {
        frame.extend(number.get().to_be_bytes());
        frame.extend(content);
    }
    frame.extend(ethertype.get().to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Frames of every protocol `classify` knows, tagged or not.
pub(crate) fn protocol_frames() -> impl Strategy<Value = Vec<u8>> {
    let redundant = prop::option::of(any::<u16>());
    let tagged = prop::option::of(tags());
    let kinds = prop_oneof![
        control_frames().prop_map(|control| {
            let mut bytes = vec![0; tte::CONTROL_LEN];
            control.emit(&mut ControlFrame::new_checked(&mut bytes[..]).expect("long enough"));
            (STATION, EtherType::PROTOCOL_CONTROL, bytes)
        }),
        ptp_headers().prop_map(|header| {
            let mut bytes = vec![0x5A; usize::from(header.length)];
            header.emit(&mut bytes).expect("as long as it says");
            (STATION, EtherType::PTP, bytes)
        }),
        (any::<u16>(), payloads(46..100)).prop_map(|(id, bytes)| (
            VirtualLinkId(id).destination(),
            EtherType::IPV4,
            bytes
        )),
        (any::<u16>(), payloads(46..100)).prop_map(|(id, bytes)| (
            CriticalTrafficId(id).destination(),
            EtherType::PROBE,
            bytes
        )),
    ];
    (kinds, tagged, redundant).prop_map(|((destination, ethertype, payload), tagged, redundant)| {
        let mut tags = Vec::new();
        if let Some(tag) = tagged {
            let priority = u16::from(tag.priority.get()) << 13 | u16::from(tag.drop_eligible) << 12;
            tags.push((EtherType::VLAN, (priority | tag.id.get()).to_be_bytes().to_vec()));
        }
        if let Some(sequence) = redundant {
            tags.push((EtherType::REDUNDANCY, [[0; 2], sequence.to_be_bytes()].concat()));
        }
        frame(destination, &tags, ethertype, &payload)
    })
}

proptest! {
    #[test]
    fn a_redundancy_tag_reads_back(sequence: u16, number in 0x0600_u16.., bytes in payloads(6..40)) {
        let repr = rtag::Repr { sequence, ethertype: EtherType::new(number)? };
        let mut tag = rtag::RTag::new_checked(bytes.clone())?;
        repr.emit(&mut tag);
        prop_assert_eq!(rtag::Repr::parse(&tag), Ok(repr));
        prop_assert_eq!(&tag.into_inner()[6..], &bytes[6..]);
    }

    #[test]
    fn a_virtual_link_reads_back(id: u16, sender in any::<[u8; 3]>(), sequence: u8, bytes in payloads(60..90)) {
        let [network, device, interface] = sender;
        let sender = Sender { network, device, interface: interface & 7 };
        let repr = arinc664::Repr { virtual_link: VirtualLinkId(id), sender, sequence };
        let mut frame = arinc664::Frame::new_checked(bytes)?;
        repr.emit(&mut frame);
        prop_assert_eq!(arinc664::Repr::parse(&frame), Ok(repr));
        let bytes = frame.into_inner();
        let Content::VirtualLink(found) = classify(&bytes)?.content else { panic!("{bytes:?}") };
        prop_assert_eq!(arinc664::Repr::parse(&found), Ok(repr));
    }

    #[test]
    fn a_protocol_control_frame_reads_back(repr in control_frames(), bytes in payloads(28..60)) {
        let mut frame = ControlFrame::new_checked(bytes.clone())?;
        repr.emit(&mut frame);
        prop_assert_eq!(ControlRepr::parse(&frame), Ok(repr));
        prop_assert_eq!(&frame.into_inner()[28..], &bytes[28..]);
    }

    #[test]
    fn a_ptp_header_reads_back_and_leaves_what_is_behind(repr in ptp_headers(), bytes in payloads(130..140)) {
        let mut written = bytes.clone();
        let message = repr.emit(&mut written)?;
        prop_assert_eq!(ptp::Repr::parse(&message), Ok(repr));
        prop_assert_eq!(&written[34..], &bytes[34..]);
    }

    #[test]
    fn ptp_bodies_read_back(
        kind in kinds(), seconds in 0_u64..1 << 48, nanoseconds: u32, clock: [u8; 8], port: u16, numbers: [u8; 10],
    ) {
        let header = ptp::Repr { message_type: kind, length: 64, ..announce() };
        let mut bytes = [0; 64];
        let mut message = header.emit(&mut bytes)?;
        let (time, from) = (Timestamp { seconds, nanoseconds }, PortIdentity { clock, port });
        let [a, b, c, d, e, f, g, h, i, j] = numbers;
        let master = Grandmaster {
            utc_offset: i16::from_be_bytes([a, b]), priority1: c, clock_class: d, clock_accuracy: e,
            variance: u16::from_be_bytes([f, g]), priority2: h, identity: clock,
            steps_removed: u16::from_be_bytes([i, j]), time_source: a,
        };
        message.set_timestamp(time);
        message.set_requesting_port(from);
        message.set_grandmaster(master);
        prop_assert!(message.timestamp().is_none_or(|found| found == time));
        prop_assert!(message.requesting_port().is_none_or(|found| found == from));
        prop_assert_eq!(message.grandmaster().is_some(), kind == MessageType::Announce);
        prop_assert!(message.grandmaster().is_none_or(|found| found == master));
    }

    #[test]
    fn frames_are_classified_as_they_were_built(bytes in protocol_frames()) {
        let found = classify(&bytes)?;
        let at = 12 + 4 * usize::from(found.vlan.is_some()) + 6 * usize::from(found.redundancy.is_some());
        let number = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        prop_assert_eq!(found.content.ethertype().get(), number);
    }

    #[test]
    fn a_delay_survives_the_transparent_clock(delay in 0_i64..200_000_000_000_000_000, more in 0_i64..1_000_000) {
        let clock = TransparentClock::from_delay(Span::from_picos(delay)).expect("not negative");
        prop_assert_eq!(clock.delay().as_picos(), delay);
        let sum = clock.plus(Span::from_picos(more)).expect("in range").delay().as_picos();
        prop_assert!((0..=1).contains(&(sum - delay - more)), "each addition rounds up by less than a unit");
    }
}

/// What a content is known by in this test.
trait Known {
    fn ethertype(&self) -> EtherType;
}

impl Known for Content<'_> {
    fn ethertype(&self) -> EtherType {
        match self {
            Self::VirtualLink(_) | Self::Ipv4(_) => EtherType::IPV4,
            Self::ProtocolControl(_) => EtherType::PROTOCOL_CONTROL,
            Self::CriticalTraffic { ethertype, .. } | Self::Other { ethertype, .. } => *ethertype,
            Self::Ptp(_) => EtherType::PTP,
        }
    }
}

fn announce() -> ptp::Repr {
    ptp::Repr {
        message_type: MessageType::Announce,
        major_sdo_id: 1,
        minor_version: 1,
        length: 64,
        domain: 0,
        minor_sdo_id: 0,
        flags: 0x0008,
        correction: 0,
        type_specific: [0; 4],
        source_port: PortIdentity { clock: [0x0A, 0, 0, 0xFF, 0xFE, 0, 0, 1], port: 1 },
        sequence_id: 0x0102,
        control: 5,
        log_interval: -3,
    }
}

#[test]
fn ptp_fields_lie_where_the_standard_has_them() {
    let mut bytes = [0; 64];
    let mut message = announce().emit(&mut bytes).expect("64 B");
    message.set_correction(-65_536);
    message.set_timestamp(Timestamp { seconds: 0x0102_0304_0506, nanoseconds: 0x0708_090A });
    message.set_grandmaster(Grandmaster {
        utc_offset: 37,
        priority1: 246,
        clock_class: 6,
        clock_accuracy: 0x21,
        variance: 0x4E5D,
        priority2: 248,
        identity: [9; 8],
        steps_removed: 2,
        time_source: 0x20,
    });
    let expected = [
        0x1B, 0x12, 0, 64, 0, 0, 0, 8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0x0A, 0, 0,
        0xFF, 0xFE, 0, 0, 1, 0, 1, 1, 2, 5, 0xFD, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0A, 0, 37, 0, 246, 6, 0x21,
        0x4E, 0x5D, 248, 9, 9, 9, 9, 9, 9, 9, 9, 0, 2, 0x20,
    ];
    assert_eq!(bytes, expected);
    assert_eq!(
        ptp::Message::new_checked(&bytes[..63]).err(),
        Some(PtpError::Length { found: 64, shortest: 64, len: 63 })
    );
    assert_eq!(ptp::Message::new_checked(&bytes[..33]).err(), Some(PtpError::TooShort { len: 33 }));
    bytes[0] = 0x14;
    let reserved = ptp::Message::new_checked(&bytes[..]).expect("a header of any kind");
    assert_eq!(ptp::Repr::parse(&reserved), Err(PtpError::Type { found: 4 }));
    bytes[1] = 1;
    let first = ptp::Message::new_checked(&bytes[..]).expect("a header of any version");
    assert_eq!(ptp::Repr::parse(&first), Err(PtpError::Version { found: 1 }));
}

#[test]
fn protocol_control_fields_lie_where_the_dissector_has_them() {
    let mut bytes = vec![0xFF; 28];
    let repr = ControlRepr {
        integration_cycle: 0x0102_0304,
        membership: 0x0506_0708,
        sync_priority: 9,
        sync_domain: 10,
        control_type: ControlType::Coldstart,
        transparent_clock: TransparentClock(65_536),
    };
    repr.emit(&mut ControlFrame::new_checked(&mut bytes[..]).expect("28 B"));
    let expected = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 9, 10, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(bytes, expected);
    assert_eq!(repr.transparent_clock.delay(), Span::from_nanos(1));
    bytes[14] = 3;
    let other = ControlFrame::new_checked(&bytes[..]).expect("28 B");
    assert_eq!(ControlRepr::parse(&other), Err(ControlError::Type { found: 3 }));
    assert_eq!(ControlFrame::new_checked(&bytes[..27]).err(), Some(ControlError::TooShort { len: 27 }));
}

#[test]
fn a_frame_of_a_virtual_link_is_as_the_dissector_reads_it() {
    let sender = Sender { network: 1, device: 2, interface: 2 };
    let repr = arinc664::Repr { virtual_link: VirtualLinkId(0x0010), sender, sequence: 255 };
    let mut frame = arinc664::Frame::new_checked([0_u8; 60]).expect("60 B");
    repr.emit(&mut frame);
    let bytes = frame.into_inner();
    assert_eq!(bytes[..14], [3, 0, 0, 0, 0, 0x10, 2, 0, 0, 1, 2, 0x40, 8, 0]);
    assert_eq!(bytes[59], 255);
    assert_eq!(sender.partition(1).octets(), [10, 1, 2, 1]);
    assert_eq!(VirtualLinkId(0x1234).group().octets(), [224, 224, 0x12, 0x34]);
    let refused = |at: usize| {
        let mut bytes = bytes;
        bytes[at] ^= 1;
        arinc664::Repr::parse(&arinc664::Frame::new_checked(bytes).expect("60 B")).err()
    };
    assert!(matches!(refused(0), Some(VirtualLinkError::Destination(_))));
    assert!(matches!(refused(11), Some(VirtualLinkError::Source(_))));
    assert_eq!(refused(13), Some(VirtualLinkError::Type { found: 0x0801 }));
    assert_eq!(
        classify(&bytes[..59]),
        Err(ClassifyError::VirtualLink(VirtualLinkError::TooShort { len: 59 }))
    );
}

#[test]
fn an_address_names_its_virtual_link_and_nothing_else_does() {
    assert_eq!(VirtualLinkId(0x1234).destination().to_string(), "03:00:00:00:12:34");
    for id in [0, 1, 255, 256, 0xFFFF].map(VirtualLinkId) {
        assert_eq!(VirtualLinkId::from_destination(id.destination()), Some(id));
        for byte in 0..4 {
            let mut other = id.destination();
            other.0[byte] ^= 0x10;
            assert_eq!(VirtualLinkId::from_destination(other), None);
        }
    }
}

#[test]
fn ptp_over_udp_is_ptp_and_damaged_udp_is_ipv4() {
    let to = |port| {
        let carrier = Carrier::udp(
            "198.18.0.1:319".parse().expect("an address"),
            std::net::SocketAddrV4::new([224, 0, 1, 129].into(), port),
        );
        let envelope = Envelope { destination: STATION, source: STATION, tag: None, carrier };
        let mut bytes = vec![0; 200];
        announce().emit(&mut bytes[envelope.header_len()..]).expect("there is room");
        envelope.close(&mut bytes, 64).expect("there is room").to_vec()
    };
    for port in [ptp::EVENT_PORT, ptp::GENERAL_PORT] {
        let bytes = to(port);
        let Content::Ptp(message) = classify(&bytes).expect("a frame").content else { panic!("PTP") };
        assert_eq!(ptp::Repr::parse(&message), Ok(announce()));
    }
    let mut bytes = to(320);
    let fragment = {
        let mut bytes = to(320);
        bytes[20] |= 0x20;
        bytes
    };
    assert!(matches!(classify(&fragment).expect("a frame").content, Content::Ipv4(_)));
    bytes[39] = 200;
    assert!(matches!(classify(&bytes).expect("a frame").content, Content::Ipv4(_)));
    assert!(matches!(classify(&to(321)).expect("a frame").content, Content::Ipv4(_)));
}

#[test]
fn what_is_cut_short_says_in_which_layer() {
    let short = |ethertype: EtherType, rest: &[u8]| {
        let mut bytes = [&STATION.0[..], &STATION.0[..]].concat();
        bytes.extend(ethertype.get().to_be_bytes());
        bytes.extend(rest);
        classify(&bytes).err()
    };
    assert_eq!(short(EtherType::REDUNDANCY, &[0; 5]), Some(RTagError::TooShort { len: 5 }.into()));
    assert_eq!(
        short(EtherType::REDUNDANCY, &[0; 6]),
        Some(RTagError::Type(ethernet::EthernetError::Length { found: 0 }).into())
    );
    assert_eq!(short(EtherType::PTP, &[0; 33]), Some(PtpError::TooShort { len: 33 }.into()));
    assert_eq!(short(EtherType::PROTOCOL_CONTROL, &[0; 3]), Some(ControlError::TooShort { len: 3 }.into()));
    assert!(matches!(
        short(EtherType::VLAN, &[0; 3]),
        Some(ClassifyError::Vlan(vlan::VlanError::TooShort { len: 3 }))
    ));
    assert!(matches!(short(EtherType::IPV4, &[0; 3]), Some(ClassifyError::Ipv4(_))));
}
