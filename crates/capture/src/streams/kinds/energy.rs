//! GOOSE (IEC 61850-8-1) and sampled values (IEC 61850-9-2).

use crate::streams::kind::{As, Found, Kind, digest, field, value};
use crate::streams::layers::{Layers, be16};
use crate::streams::numbering::Rule;

/// APPID, length and two reserved fields come before the PDU.
const HEADER: usize = 8;

/// The series begins with 0 at each new state; a state is an event.
pub(super) const GOOSE: Kind = Kind {
    rule: Some(Rule::Bits(32)),
    fields: &[field("appid", 0, As::Hex), field("source", 1, As::Mac), field("destination", 2, As::Mac)],
    values: &[value("state", As::Number), value("time_allowed_to_live_ms", As::Number)],
    ..Kind::new("goose", "GOOSE", goose)
};

fn goose(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let Some((appid, pdu)) = pdu(frame, 0x88b8, 0x61) else { return };
    let (mut state, mut number, mut live, mut reference) = (None, None, None, None);
    for (tag, content) in Elements(pdu) {
        match tag {
            0x80 => reference = Some(content),
            0x81 => live = unsigned(content),
            0x85 => state = unsigned(content),
            0x86 => number = unsigned(content),
            _ => {}
        }
    }
    take(Found {
        id: [appid, frame.from, frame.to, reference.map_or(0, digest), 0, 0],
        number,
        epoch: state,
        values: [state.and_then(|n| i64::try_from(n).ok()), live.and_then(|n| i64::try_from(n).ok()), None],
        text: reference,
        ..Found::default()
    });
}

/// The counter begins with 0 each second; a frame may hold several samples, of which the first is counted.
pub(super) const SAMPLED_VALUES: Kind = Kind {
    rule: Some(Rule::ToZero),
    fields: &[field("appid", 0, As::Hex), field("source", 1, As::Mac), field("destination", 2, As::Mac)],
    values: &[value("synchronised", As::Number)],
    ..Kind::new("sv", "sampled values", sampled_values)
};

fn sampled_values(frame: &Layers<'_>, take: &mut dyn FnMut(Found<'_>)) {
    let Some((appid, pdu)) = pdu(frame, 0x88ba, 0x60) else { return };
    let Some((_, samples)) = Elements(pdu).find(|(tag, _)| *tag == 0xa2) else { return };
    let Some((0x30, first)) = Elements(samples).next() else { return };
    let content = |wanted: u8| Elements(first).find(|(tag, _)| *tag == wanted).map(|(_, content)| content);
    let name = content(0x80);
    take(Found {
        id: [appid, frame.from, frame.to, name.map_or(0, digest), 0, 0],
        number: content(0x82).and_then(unsigned),
        values: [content(0x85).and_then(unsigned).and_then(|n| i64::try_from(n).ok()), None, None],
        text: name,
        ..Found::default()
    });
}

/// APPID and content of the PDU with this tag.
fn pdu<'a>(frame: &Layers<'a>, ether_type: u16, tag: u8) -> Option<(u64, &'a [u8])> {
    if frame.kind != ether_type {
        return None;
    }
    let appid = be16(frame.payload, 0)?;
    let (found, content) = Elements(frame.payload.get(HEADER..)?).next()?;
    (found == tag).then_some((appid.into(), content))
}

/// Elements of the basic encoding rules (ITU-T X.690, 8.1) with tags of one octet; ends where the bytes contradict
/// themselves. The last element may be cut, as the frame may be.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            let count = usize::from(first & 0x7f);
            if !(1..=3).contains(&count) {
                return None;
            }
            let (octets, behind) = rest.split_at_checked(count)?;
            length = octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet));
            rest = behind;
        }
        let (content, behind) = rest.split_at(length.min(rest.len()));
        self.0 = behind;
        Some((tag, content))
    }
}

/// An unsigned number of up to eight octets.
fn unsigned(content: &[u8]) -> Option<u64> {
    // A leading 0 keeps the highest bit from being a sign.
    let content = if content.len() == 9 && content[0] == 0 { &content[1..] } else { content };
    (1..=8)
        .contains(&content.len())
        .then(|| content.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
}
