//! TLVs behind the fields of a test packet (RFC 8972, clause 4), as a reflector answers them: in their place, with flags
//! that say what became of each.
//!
//! A TLV with a keyed hash ([`HMAC`]) protects those before it; this module says where it lies and computes none.

use crate::bytes::u16_at;

/// Type of extra padding, whose value means nothing (clause 4.1).
pub const EXTRA_PADDING: u8 = 1;
/// Type of the class of service (clause 4.4).
pub const CLASS_OF_SERVICE: u8 = 4;
/// Type of the hash over the sequence number and the TLVs before it (clause 4.8).
pub const HMAC: u8 = 8;
/// Flag of a type that the reflector does not know; senders set it.
pub const UNRECOGNISED: u8 = 0x80;
/// Flag of a length that does not fit the type or the packet.
pub const MALFORMED: u8 = 0x40;
/// Flag of TLVs whose hash is wrong, or missing.
pub const NOT_AUTHENTIC: u8 = 0x20;
/// Length of flags, type and length, in bytes.
pub const HEAD_LEN: usize = 4;

/// Length of the value of a class of service, in bytes.
const CLASS_LEN: usize = 4;
/// Flags that a sender leaves clear: integrity, and those without a meaning.
const CLEAR: u8 = 0x3F;

/// What protects the TLVs of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// No TLV of a hash.
    None {
        /// Whether there is nothing but one TLV of padding, which needs none.
        is_padding_alone: bool,
    },
    /// A TLV of a hash, with only padding behind it; its head lies at this offset.
    At(usize),
    /// A TLV of a hash of another length, or at a place where it protects too little.
    Broken,
}

/// The TLVs of octets that begin with one: offset of each, its type, and the length of its value; up to a malformed one.
fn tlvs(octets: &[u8]) -> impl Iterator<Item = (usize, u8, usize)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let head = octets.get(at..at + HEAD_LEN)?;
        let (begin, kind, len) = (at, head[1], usize::from(u16_at(head, 2)));
        at += HEAD_LEN + len;
        (at <= octets.len()).then_some((begin, kind, len))
    })
}

/// Whether octets behind the fields are TLVs: senders of these set flags that padding hardly has.
fn are_tlvs(octets: &[u8]) -> bool {
    octets.first().is_some_and(|flags| flags & UNRECOGNISED != 0 && flags & CLEAR == 0)
}

/// What protects the TLVs in `octets`, those behind the fields of a packet.
pub fn protection(octets: &[u8]) -> Protection {
    if !are_tlvs(octets) {
        return Protection::None { is_padding_alone: true };
    }
    let mut found = Protection::None { is_padding_alone: false };
    let mut padding_alone = true;
    for (place, (at, kind, len)) in tlvs(octets).enumerate() {
        padding_alone &= place == 0 && kind == EXTRA_PADDING;
        found = match (kind, found) {
            (HMAC, Protection::None { .. }) if len == super::HASH_LEN => Protection::At(at),
            (HMAC, _) => Protection::Broken,
            (EXTRA_PADDING, found) | (_, found @ Protection::None { .. }) => found,
            _ => Protection::Broken,
        };
    }
    match found {
        Protection::None { .. } => Protection::None { is_padding_alone: padding_alone },
        found => found,
    }
}

/// Answers the TLVs of a packet that came with `traffic_class`. Returns the traffic class that one of them asks of the
/// answer. `are_authentic`: otherwise each is flagged, and none is obeyed.
///
/// Octets without the flags that senders of TLVs set are padding, which stays as it is. Behind a malformed TLV nothing
/// is read.
pub fn reflect(octets: &mut [u8], traffic_class: u8, are_authentic: bool) -> Option<u8> {
    let mut rest = if are_tlvs(octets) { octets } else { &mut [] };
    let mut asked = None;
    while let Some((head, behind)) = rest.split_at_mut_checked(HEAD_LEN) {
        let (kind, len) = (head[1], usize::from(u16_at(head, 2)));
        let is_known = matches!(kind, EXTRA_PADDING | CLASS_OF_SERVICE | HMAC);
        let needed = match kind {
            CLASS_OF_SERVICE => CLASS_LEN,
            HMAC => super::HASH_LEN,
            _ => len,
        };
        let is_fitting = len <= behind.len() && len == needed;
        head[0] = if is_known { 0 } else { UNRECOGNISED }
            | if is_fitting { 0 } else { MALFORMED }
            | if are_authentic { 0 } else { NOT_AUTHENTIC };
        if !is_fitting {
            break;
        }
        let (value, next) = behind.split_at_mut(len);
        if kind == CLASS_OF_SERVICE && are_authentic {
            asked = Some(classed(value, traffic_class));
        }
        rest = next;
    }
    asked
}

/// Writes the class that a packet came with into a class of service; returns the one asked of its answer.
///
/// Of the value, the first six bits are the DSCP asked for (DSCP1), then come DSCP and ECN as received (DSCP2, ECN). The
/// two bits behind them (RP) say whether the DSCP asked for was refused, which it never is (clause 4.4, and verified
/// erratum 8199, by which both are copied as received).
fn classed(value: &mut [u8], traffic_class: u8) -> u8 {
    let asked = value[0] & 0xFC;
    value.copy_from_slice(&[asked | traffic_class >> 6, traffic_class << 2, 0, 0]);
    asked
}
