//! PRP and HSR (IEC 62439-3), R-TAG (IEEE Std 802.1CB).

use crate::streams::kind::{As, Field, Found, Kind, field};
use crate::streams::numbering::Rule;

const STATIONS: &[Field] = &[field("source", 0, As::Mac)];

/// A node numbers all its frames in one series (IEC 62439-3, 4.1.10.2), so a stream is a node.
pub(super) const PRP: Kind = Kind {
    rule: Some(Rule::Bits(16)),
    is_around: true,
    fields: STATIONS,
    ..Kind::new("prp", "PRP node", |frame, take| {
        let Some(copy) = frame.prp else { return };
        take(Found {
            id: [frame.from, 0, 0, 0, 0, 0],
            network: copy.path - 9,
            number: Some(copy.sequence.into()),
            group: Some([frame.from, 0]),
            ..Found::default()
        });
    })
};

/// The lowest bit of the path is the direction in the ring.
pub(super) const HSR: Kind = Kind {
    rule: Some(Rule::Bits(16)),
    is_around: true,
    fields: STATIONS,
    ..Kind::new("hsr", "HSR node", |frame, take| {
        let Some(copy) = frame.hsr else { return };
        take(Found {
            id: [frame.from, 0, 0, 0, 0, 0],
            network: 1 + (copy.path & 1),
            number: Some(copy.sequence.into()),
            group: Some([frame.from, 0]),
            ..Found::default()
        });
    })
};

/// A stream as null stream identification tells it (IEEE Std 802.1CB, 6.4): destination and VLAN; and its source.
pub(super) const R_TAG: Kind = Kind {
    rule: Some(Rule::Bits(16)),
    is_around: true,
    fields: &[field("source", 0, As::Mac), field("destination", 1, As::Mac)],
    ..Kind::new("r-tag", "R-TAG stream", |frame, take| {
        let Some(sequence) = frame.r_tag else { return };
        take(Found {
            id: [frame.from, frame.to, 0, 0, 0, 0],
            number: Some(sequence.into()),
            group: Some([frame.from, frame.to]),
            ..Found::default()
        });
    })
};
