//! EtherCAT (IEC 61158-4-12) and PROFINET RT (IEC 61158-6-10).

use crate::streams::kind::{As, Found, Kind, field, value};
use crate::streams::layers::{Layers, be16, chunk};
use crate::streams::numbering::Rule;

/// Bit of the source address that a station sets in every frame that passes it.
const PASSED: u64 = 0x02 << 40;
const DATAGRAM_HEADER: usize = 10;
const COUNTER: usize = 2;
/// Commands whose address every station counts up.
const BY_POSITION: [u8; 4] = [1, 2, 3, 13];

/// A stream is what a master sends with the same first command, address and length.
pub(super) const ETHERCAT: Kind = Kind {
    fields: &[
        field("master", 0, As::Mac),
        field("command", 1, As::Number),
        field("address", 2, As::Hex),
        field("length", 3, As::Number),
    ],
    values: &[value("working_counter", As::Number)],
    ..Kind::new("ethercat", "EtherCAT", ethercat)
};

fn ethercat(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let bytes = match frame.ip {
        None if frame.kind == 0x88a4 => frame.payload,
        Some(ip) if ip.ports.is_some_and(|[_, to]| to == 0x88a4) => ip.udp.unwrap_or_default(),
        _ => return,
    };
    let Some(header) = le16(bytes, 0) else { return };
    let length = u64::from(header & 0x07ff);
    let Some(&[command, index, a, b, c, d]) = bytes.get(2..).and_then(<[u8]>::first_chunk) else { return };
    // Type 1: datagrams.
    if header >> 12 != 1 {
        return;
    }
    let all = u32::from_le_bytes([a, b, c, d]);
    let address = if BY_POSITION.contains(&command) { all >> 16 } else { all };
    let passed = frame.from & PASSED != 0;
    let counter = counters(bytes);
    take(Found {
        id: [frame.from & !PASSED, command.into(), address.into(), length, 0, 0],
        values: [counter.filter(|counter| passed || *counter > 0), None, None],
        echo: Some((index, passed)),
        ..Found::default()
    });
}

/// Sum of the working counters of all datagrams; `None` where one was not captured.
fn counters(bytes: &[u8]) -> Option<i64> {
    let (mut at, mut sum) = (2, 0);
    loop {
        let field = le16(bytes, at + 6)?;
        let end = at + DATAGRAM_HEADER + usize::from(field & 0x07ff);
        sum += i64::from(le16(bytes, end)?);
        if field & 0x8000 == 0 {
            return Some(sum);
        }
        at = end + COUNTER;
    }
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_le_bytes)
}

/// Cyclic data; the cycle counter, in units of 31.25 µs, and two octets of status end the frame.
pub(super) const PROFINET: Kind = Kind {
    rule: Some(Rule::Stride(16)),
    fields: &[field("frame_id", 0, As::Hex), field("source", 1, As::Mac), field("destination", 2, As::Mac)],
    values: &[value("data_status", As::Hex), value("transfer_status", As::Hex)],
    ..Kind::new("profinet", "PROFINET RT", |frame, take| {
        if frame.kind != 0x8892 {
            return;
        }
        let Some(id) = be16(frame.payload, 0) else { return };
        let status = frame.payload.last_chunk::<4>().filter(|_| frame.is_whole && is_cyclic(id));
        take(Found {
            id: [id.into(), frame.from, frame.to, 0, 0, 0],
            number: status.map(|[high, low, ..]| u64::from(u16::from_be_bytes([*high, *low]))),
            values: [
                status.map(|[.., data, _]| i64::from(*data)),
                status.map(|[.., transfer]| i64::from(*transfer)),
                None,
            ],
            ..Found::default()
        });
    })
};

/// Frame IDs of cyclic data: classes 3, 2 and 1.
fn is_cyclic(id: u16) -> bool {
    matches!(id, 0x0100..=0x0fff | 0x8000..=0xbfff | 0xc000..=0xfbff)
}
