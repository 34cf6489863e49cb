//! TLVs behind the fields of a test packet (RFC 8972, clause 4), as a reflector answers them: in their place, with flags
//! that say what became of each.

use crate::bytes::u16_at;

/// Type of extra padding, whose value means nothing (clause 4.1).
pub const EXTRA_PADDING: u8 = 1;
/// Type of the class of service (clause 4.4).
pub const CLASS_OF_SERVICE: u8 = 4;
/// Flag of a type that the reflector does not know; senders set it.
pub const UNRECOGNISED: u8 = 0x80;
/// Flag of a length that does not fit the type or the packet.
pub const MALFORMED: u8 = 0x40;
/// Length of flags, type and length, in bytes.
pub const HEAD_LEN: usize = 4;

/// Length of the value of a class of service, in bytes.
const CLASS_LEN: usize = 4;
/// Flags that a sender leaves clear: integrity, and those without a meaning.
const CLEAR: u8 = 0x3F;

/// Answers the TLVs of a packet that came with `traffic_class`. Returns the traffic class that one of them asks of the
/// answer.
///
/// Octets without the flags that senders of TLVs set are padding, which stays as it is. Behind a malformed TLV nothing
/// is read.
pub fn reflect(octets: &mut [u8], traffic_class: u8) -> Option<u8> {
    let is_of_tlvs = octets.first().is_some_and(|flags| flags & UNRECOGNISED != 0 && flags & CLEAR == 0);
    let mut rest = if is_of_tlvs { octets } else { &mut [] };
    let mut asked = None;
    while let Some((head, behind)) = rest.split_at_mut_checked(HEAD_LEN) {
        let (kind, len) = (head[1], usize::from(u16_at(head, 2)));
        let is_known = matches!(kind, EXTRA_PADDING | CLASS_OF_SERVICE);
        let is_fitting = len <= behind.len() && (kind != CLASS_OF_SERVICE || len == CLASS_LEN);
        head[0] = if is_known { 0 } else { UNRECOGNISED } | if is_fitting { 0 } else { MALFORMED };
        if !is_fitting {
            break;
        }
        let (value, next) = behind.split_at_mut(len);
        if kind == CLASS_OF_SERVICE {
            asked = Some(classed(value, traffic_class));
        }
        rest = next;
    }
    asked
}

/// Writes the class that a packet came with into a class of service; returns the one asked of its answer.
///
/// Of the value, the first six bits are the DSCP asked for, then come DSCP and ECN as received. The two bits behind them
/// say whether the DSCP asked for was refused, which it never is.
fn classed(value: &mut [u8], traffic_class: u8) -> u8 {
    let asked = value[0] & 0xFC;
    value.copy_from_slice(&[asked | traffic_class >> 6, traffic_class << 2, 0, 0]);
    asked
}
