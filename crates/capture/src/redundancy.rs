//! The tag of HSR and the trailer of PRP (IEC 62439-3).

use wg_frame::ethernet::HEADER_LEN;

/// EtherType of an HSR tag.
pub(crate) const HSR: u16 = 0x892f;
/// Length of an HSR tag: path and size, sequence number, the next EtherType.
pub(crate) const HSR_TAG_LEN: usize = 6;
/// Length of the redundancy control trailer of PRP.
pub(crate) const PRP_TRAILER_LEN: usize = 6;
const PRP_SUFFIX: u16 = 0x88fb;

/// Sequence number and path of a redundancy protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) sequence: u16,
    /// LAN of PRP (0xa, 0xb), path of HSR.
    pub(crate) path: u8,
}

/// The redundancy control trailer at the end of a whole frame whose innermost payload begins at `at` (IEC 62439-3,
/// 4.1.10): its size counts from behind the addresses and EtherType, with or without tags there, to its own end.
pub(crate) fn trailer(bytes: &[u8], at: usize) -> Option<Copy> {
    let (_, rest) = bytes.split_at_checked(at)?;
    let &[s1, s2, f1, f2, e1, e2] = rest.last_chunk::<PRP_TRAILER_LEN>()?;
    let field = u16::from_be_bytes([f1, f2]);
    let (lan, size) = ((field >> 12) as u8, usize::from(field & 0x0fff));
    let is_size = (rest.len()..=bytes.len() - HEADER_LEN).contains(&size);
    (u16::from_be_bytes([e1, e2]) == PRP_SUFFIX && matches!(lan, 0xa | 0xb) && is_size)
        .then_some(Copy { sequence: u16::from_be_bytes([s1, s2]), path: lan })
}
