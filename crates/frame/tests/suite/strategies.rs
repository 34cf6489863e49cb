//! Strategies for messages and the frames round them.

use std::net::SocketAddrV4;

use proptest::collection::vec;
use proptest::prelude::*;
use wg_frame::ethernet::MacAddress;
use wg_frame::layout::{Carrier, Envelope, Tag};
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::vlan::{Priority, VlanId};

pub(crate) fn probes() -> impl Strategy<Value = Probe> {
    (any::<u16>(), any::<u32>(), 0_u8..8).prop_map(|(flow, sequence, bits)| Probe {
        flow,
        sequence,
        flags: ProbeFlags::from_bits(bits),
    })
}

/// Payloads of `len` bytes with any content.
pub(crate) fn payloads(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), len)
}

/// Intact messages of 12 to 300 bytes, and what their headers say.
pub(crate) fn messages() -> impl Strategy<Value = (Vec<u8>, Probe)> {
    (payloads(probe::LEN..300), probes()).prop_map(|(mut payload, header)| {
        probe::seal(&mut payload, header).expect("long enough");
        (payload, header)
    })
}

pub(crate) fn tags() -> impl Strategy<Value = Tag> {
    (0_u8..8, any::<bool>(), 0_u16..4095).prop_map(|(priority, drop_eligible, id)| Tag {
        priority: Priority::new(priority).expect("in range"),
        drop_eligible,
        id: VlanId::new(id).expect("in range"),
    })
}

pub(crate) fn carriers() -> impl Strategy<Value = Carrier> {
    let address = || {
        (any::<[u8; 4]>(), any::<u16>()).prop_map(|(address, port)| SocketAddrV4::new(address.into(), port))
    };
    let rest = (any::<u8>(), any::<u16>(), any::<bool>(), any::<u8>(), any::<bool>());
    let udp = (address(), address(), rest).prop_map(
        |(source, destination, (traffic_class, identification, dont_fragment, ttl, checksummed))| {
            Carrier::Udp {
                source,
                destination,
                traffic_class,
                identification,
                dont_fragment,
                ttl,
                checksummed,
            }
        },
    );
    prop_oneof![Just(Carrier::Raw), udp]
}

pub(crate) fn envelopes() -> impl Strategy<Value = Envelope> {
    (any::<[u8; 6]>(), any::<[u8; 6]>(), proptest::option::of(tags()), carriers()).prop_map(
        |(destination, source, tag, carrier)| Envelope {
            destination: MacAddress(destination),
            source: MacAddress(source),
            tag,
            carrier,
        },
    )
}

/// Whole frames without FCS, with their messages and what is round them.
pub(crate) fn frames() -> impl Strategy<Value = (Vec<u8>, Envelope, Vec<u8>, Probe)> {
    (envelopes(), messages()).prop_map(|(envelope, (payload, header))| {
        let at = envelope.header_len();
        let mut buffer = vec![0xEE; envelope.frame_len(payload.len()) + 7];
        buffer[at..at + payload.len()].copy_from_slice(&payload);
        let frame = envelope.close(&mut buffer, payload.len()).expect("the buffer is long enough").to_vec();
        (frame, envelope, payload, header)
    })
}
