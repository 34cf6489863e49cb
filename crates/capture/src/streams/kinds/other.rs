//! What fits any frame: five-tuples, IP protocols, EtherTypes.

use crate::streams::kind::{As, Field, Found, Kind, WORDS, field, halves};
use crate::streams::layers::{Ip, Layers, be16, be32};

pub(super) const FIVE_TUPLE: &[Field] = &[
    field("from", 0, As::Address),
    field("from_port", 4, As::Port),
    field("to", 2, As::Address),
    field("to_port", 5, As::Port),
];
const NO_PORT: u64 = 1 << 16;

pub(super) const UDP: Kind = Kind {
    fields: FIVE_TUPLE,
    ..Kind::new("udp", "UDP", |frame, take| {
        with(frame, 17, take, |ip| ip.udp.and_then(may_be_rtp));
    })
};

pub(super) const TCP: Kind =
    Kind { fields: FIVE_TUPLE, ..Kind::new("tcp", "TCP", |frame, take| with(frame, 6, take, |_| None)) };

fn with(
    frame: &Layers<'_>,
    protocol: u8,
    take: &mut dyn FnMut(Found<'_>),
    rtp: fn(&Ip<'_>) -> Option<(u32, u16)>,
) {
    if let Some(ip) = frame.ip
        && ip.protocol == protocol
    {
        let ports = ip.ports.map_or([NO_PORT; 2], |ports| ports.map(u64::from));
        take(Found { id: tuple(&ip, ports), rtp: rtp(&ip), ..Found::default() });
    }
}

pub(super) const IP: Kind = Kind {
    fields: &[field("protocol", 4, As::Number), field("from", 0, As::Address), field("to", 2, As::Address)],
    ..Kind::new("ip", "IP", |frame, take| {
        if let Some(ip) = frame.ip {
            take(Found { id: tuple(&ip, [ip.protocol.into(), 0]), ..Found::default() });
        }
    })
};

fn tuple(ip: &Ip<'_>, more: [u64; 2]) -> [u64; WORDS] {
    let ([a, b], [c, d]) = (halves(ip.from), halves(ip.to));
    [a, b, c, d, more[0], more[1]]
}

/// A length instead of an EtherType (IEEE Std 802.3, 3.2.6).
pub(super) const LLC: Kind = Kind {
    fields: &[field("source", 1, As::Mac), field("destination", 2, As::Mac)],
    ..Kind::new("llc", "LLC", |frame, take| {
        if frame.kind < 0x0600 {
            take(Found { id: [0, frame.from, frame.to, 0, 0, 0], ..Found::default() });
        }
    })
};

pub(super) const ETHER_TYPE: Kind = Kind {
    fields: &[field("ether_type", 0, As::Hex), field("source", 1, As::Mac), field("destination", 2, As::Mac)],
    ..Kind::new("ethernet", "EtherType", |frame, take| {
        take(Found { id: [frame.kind.into(), frame.from, frame.to, 0, 0, 0], ..Found::default() });
    })
};

/// Source and number if a datagram may be RTP: version 2, and no packet of RTCP (RFC 5761, 4).
fn may_be_rtp(datagram: &[u8]) -> Option<(u32, u16)> {
    let &[first, second] = datagram.first_chunk()?;
    let header = 12 + 4 * usize::from(first & 0x0f);
    (first >> 6 == 2 && !(64..=95).contains(&(second & 0x7f)) && datagram.len() >= header)
        .then(|| Some((be32(datagram, 8)?, be16(datagram, 2)?)))
        .flatten()
}
