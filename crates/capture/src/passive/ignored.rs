//! Fields that a device between the captures changes, and that are therefore not compared.
//!
//! A kind of change is one variant of `Field` and its rows in the tables below: tags that only one side may have, and
//! bytes that are masked.

use serde::{Deserialize, Serialize};
use wg_frame::{ptp, rtag, vlan};

use crate::redundancy::{HSR, HSR_TAG_LEN, PRP_TRAILER_LEN};

/// Fields that a device between the captures changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// VLAN tags, which it inserts, removes or rewrites (IEEE Std 802.1Q, 9.3).
    Vlan,
    /// Priority and drop eligibility in a VLAN tag.
    Pcp,
    /// Time to live of IPv4 with the header's checksum, or hop limit of IPv6: a router counts it down (RFC 1812,
    /// 5.3.1).
    Ttl,
    /// Differentiated services code point (RFC 2474) with the checksum of an IPv4 header.
    Dscp,
    /// Redundancy tag (IEEE Std 802.1CB, 7.8).
    RTag,
    /// Tag of HSR (IEC 62439-3, 5.6).
    HsrTag,
    /// Redundancy control trailer of PRP (IEC 62439-3, 4.1.10), in frames that were captured whole.
    PrpTrailer,
    /// Correction field of PTP (IEEE Std 1588-2019, 13.3.2.9), and over UDP the checksum: a transparent clock adds to
    /// it.
    PtpCorrection,
    /// Source and destination MAC address, which a router rewrites.
    Mac,
}

/// A tag before the EtherType of the payload.
pub(super) struct Tag {
    pub(super) kind: u16,
    pub(super) length: usize,
    /// The field that leaves it out.
    pub(super) field: Field,
}

/// All tags, each with the EtherType that begins it.
pub(super) const TAGS: &[Tag] = &[
    Tag { kind: 0x8100, length: vlan::TAG_LEN, field: Field::Vlan },
    Tag { kind: 0x88a8, length: vlan::TAG_LEN, field: Field::Vlan },
    Tag { kind: 0x9100, length: vlan::TAG_LEN, field: Field::Vlan },
    Tag { kind: 0xf1c1, length: rtag::TAG_LEN, field: Field::RTag },
    Tag { kind: HSR, length: HSR_TAG_LEN, field: Field::HsrTag },
];

/// A header in which bytes are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Ipv4,
    Ipv6,
    /// UDP that carries PTP.
    UdpOfPtp,
    Ptp,
}

/// Bytes of a header of which only some bits are compared.
struct Mask {
    field: Field,
    header: Header,
    at: usize,
    keep: &'static [u8],
}

/// All masked bytes.
const MASKS: &[Mask] = &[
    Mask { field: Field::Ttl, header: Header::Ipv4, at: 8, keep: &[0] },
    Mask { field: Field::Ttl, header: Header::Ipv4, at: 10, keep: &[0, 0] },
    Mask { field: Field::Ttl, header: Header::Ipv6, at: 7, keep: &[0] },
    Mask { field: Field::Dscp, header: Header::Ipv4, at: 1, keep: &[0x03] },
    Mask { field: Field::Dscp, header: Header::Ipv4, at: 10, keep: &[0, 0] },
    // The traffic class spans two bytes; its last two bits are not part of the code point.
    Mask { field: Field::Dscp, header: Header::Ipv6, at: 0, keep: &[0xf0, 0x3f] },
    Mask { field: Field::PtpCorrection, header: Header::UdpOfPtp, at: 6, keep: &[0, 0] },
    Mask { field: Field::PtpCorrection, header: Header::Ptp, at: 8, keep: &[0; 8] },
];

/// The fields that are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ignored {
    fields: Vec<Field>,
}

impl Ignored {
    pub(super) fn of(fields: &[Field]) -> Self {
        Self { fields: fields.to_vec() }
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.fields.contains(&field)
    }

    /// Greatest number of bytes that only one side of the device may have.
    pub(super) fn removed(&self) -> usize {
        let once = |field: Field, length: usize| length * usize::from(self.has(field));
        // Two VLAN tags: customer and service (IEEE Std 802.1Q, 9.5).
        2 * once(Field::Vlan, vlan::TAG_LEN)
            + once(Field::RTag, rtag::TAG_LEN)
            + once(Field::HsrTag, HSR_TAG_LEN)
            + once(Field::PrpTrailer, PRP_TRAILER_LEN)
    }

    /// Masks a header.
    pub(super) fn mask(&self, header: Header, bytes: &mut [u8]) {
        for mask in MASKS.iter().filter(|mask| mask.header == header && self.has(mask.field)) {
            for (byte, keep) in bytes.iter_mut().skip(mask.at).zip(mask.keep) {
                *byte &= keep;
            }
        }
    }

    /// Masks PTP in a UDP datagram.
    pub(super) fn mask_datagram(&self, datagram: &mut [u8]) {
        const UDP_HEADER: usize = 8;
        let port = datagram.get(2..4).map(|port| u16::from_be_bytes([port[0], port[1]]));
        if matches!(port, Some(ptp::EVENT_PORT | ptp::GENERAL_PORT)) {
            self.mask(Header::UdpOfPtp, datagram);
            if let Some(message) = datagram.get_mut(UDP_HEADER..) {
                self.mask(Header::Ptp, message);
            }
        }
    }
}
