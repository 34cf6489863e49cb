//! AVTP (IEEE Std 1722), RTP (RFC 3550), RTPS (DDSI-RTPS of the OMG) and SOME/IP (AUTOSAR).

use crate::streams::kind::{As, Field, Found, Kind, field, halves};
use crate::streams::layers::{Ip, Layers, be32, be64, chunk};
use crate::streams::numbering::Rule;

pub(super) const AVTP: Kind = Kind {
    rule: Some(Rule::Bits(8)),
    fields: &[field("stream_id", 0, As::Hex), field("subtype", 1, As::Hex), field("source", 2, As::Mac)],
    ..Kind::new("avtp", "AVTP", |frame, take| {
        let Some(&[subtype, second, third, fourth]) = frame.payload.first_chunk() else { return };
        if frame.kind != 0x22f0 {
            return;
        }
        // IEEE Std 1722-2016, 4.4.3.3: a stream ID is present if the bit sv is set. NTSCF has a longer length field
        // before its number (9.2); control (subtypes from 0x80 on but that) is not numbered.
        let id = if second & 0x80 != 0 { be64(frame.payload, 4).unwrap_or_default() } else { 0 };
        let number = match subtype {
            0x82 => Some(fourth),
            0x00..=0x7f => Some(third),
            _ => None,
        };
        take(Found {
            id: [id, subtype.into(), frame.from, 0, 0, 0],
            number: number.map(u64::from),
            ..Found::default()
        });
    })
};

/// Fields of a UDP stream, and one for what is in it.
macro_rules! within_udp {
    ($($field:expr),*) => {
        &[
            field("from", 0, As::Address),
            field("to", 2, As::Address),
            $($field),*
        ] as &[Field]
    };
}

/// A writer numbers its samples; retransmissions count as duplicates.
pub(super) const RTPS: Kind = Kind {
    rule: Some(Rule::Bits(64)),
    fields: &[
        field("writer", 0, As::Hex),
        field("participant", 1, As::Hex),
        field("host", 2, As::Hex),
        field("to", 3, As::Address),
        field("port", 5, As::Port),
    ],
    ..Kind::new("rtps", "DDS writer", rtps)
};

fn rtps(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let Some((ip, message)) = udp(frame) else { return };
    let (Some(host), Some(participant)) = (be64(message, 8), be32(message, 16)) else { return };
    if !message.starts_with(b"RTPS") {
        return;
    }
    let [high, low] = halves(ip.to);
    let mut at = 20;
    while let Some(&[kind, flags]) = message.get(at..).and_then(<[u8]>::first_chunk) {
        let is_little = flags & 1 == 1;
        let half = |at| {
            chunk(message, at).map(|b| if is_little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
        };
        let word = |at| {
            chunk(message, at).map(|b| if is_little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) })
        };
        let Some(length) = half(at + 2) else { return };
        // DATA, and DATA_FRAG with the first fragment of a sample.
        let is_data = kind == 0x15 || kind == 0x16 && word(at + 24) == Some(1);
        if is_data
            && let (Some(writer), Some(upper), Some(lower)) =
                (be32(message, at + 12), word(at + 16), word(at + 20))
        {
            take(Found {
                id: [
                    writer.into(),
                    participant.into(),
                    host,
                    high,
                    low,
                    ip.ports.map_or(0, |[_, to]| to.into()),
                ],
                number: Some(u64::from(upper) << 32 | u64::from(lower)),
                ..Found::default()
            });
        }
        // A length of 0 is that of the last submessage.
        if length == 0 {
            return;
        }
        at += 4 + usize::from(length);
    }
}

/// Whether a client counts sessions by method is its own affair, so numbers that are missing here need not be lost.
pub(super) const SOME_IP: Kind = Kind {
    rule: Some(Rule::Session),
    is_shared: true,
    fields: within_udp![field("service", 4, As::Hex), field("client", 5, As::Hex)],
    ..Kind::new("someip", "SOME/IP", some_ip)
};

fn some_ip(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let Some((ip, mut rest)) = udp(frame) else { return };
    while let (Some(id), Some(length), Some(request), Some(&[protocol, _, kind, code])) =
        (be32(rest, 0), be32(rest, 4), be32(rest, 8), rest.get(12..).and_then(<[u8]>::first_chunk))
    {
        let is_kind = matches!(kind & !0x20, 0x00..=0x02 | 0x40..=0x42 | 0x80 | 0x81 | 0xc0 | 0xc1);
        let end = 8 + length as usize;
        if !(length >= 8
            && protocol == 1
            && is_kind
            && code <= 0x5e
            && (end <= rest.len() || !frame.is_whole))
        {
            return;
        }
        let ([a, b], [c, d]) = (halves(ip.from), halves(ip.to));
        let client = u64::from(request >> 16) << 8 | u64::from(kind);
        take(Found {
            id: [a, b, c, d, id.into(), client],
            number: Some(u64::from(request & 0xffff)),
            ..Found::default()
        });
        rest = rest.get(end..).unwrap_or_default();
    }
}

fn udp<'a>(frame: &Layers<'a>) -> Option<(Ip<'a>, &'a [u8])> {
    frame.ip.and_then(|ip| Some((ip, ip.udp?)))
}

pub(super) const RTP: Kind = Kind {
    rule: Some(Rule::Bits(16)),
    fields: super::other::FIVE_TUPLE,
    ..Kind::new("rtp", "RTP", |_, _| ())
};
