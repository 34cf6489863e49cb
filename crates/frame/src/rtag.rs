//! The redundancy tag (IEEE Std 802.1CB-2017, 7.8): a sequence number after EtherType 0xF1C1, then the type of the
//! content.

use crate::bytes::{put_u16, u16_at};
use crate::ethernet::{EtherType, EthernetError};

/// Length of the tag in a frame, in bytes.
pub const TAG_LEN: usize = 6;

/// Inserts a tag after the addresses of a frame and after its 802.1Q tag, if it has one: the last [`TAG_LEN`] bytes of
/// `frame` are lost.
///
/// Panics if the frame is shorter than its headers and the tag.
pub fn insert(frame: &mut [u8], behind_vlan_tag: bool, sequence: u16) {
    let at = if behind_vlan_tag { 16 } else { 12 };
    let end = frame.len() - TAG_LEN;
    frame.copy_within(at..end, at + TAG_LEN);
    for (offset, field) in [(0, EtherType::REDUNDANCY.get()), (2, 0), (4, sequence)] {
        put_u16(frame, at + offset, field);
    }
}

/// Reason why bytes are not a valid redundancy tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RTagError {
    /// The frame ends within the tag.
    #[error("{len} B behind the type 0xf1c1 cannot hold the 6 B of a redundancy tag")]
    TooShort {
        /// Number of bytes after the type field.
        len: usize,
    },
    /// No valid type after the tag.
    #[error("behind the redundancy tag: {0}")]
    Type(EthernetError),
}

/// A view of the bytes after EtherType 0xF1C1: reserved field, sequence number, type, payload. See
/// [`ethernet::Frame`](crate::ethernet::Frame) about `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RTag<T>(T);

impl<T: AsRef<[u8]>> RTag<T> {
    /// A view of `bytes`, which must hold all three fields.
    ///
    /// # Errors
    /// [`RTagError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, RTagError> {
        let len = bytes.as_ref().len();
        if len < TAG_LEN { Err(RTagError::TooShort { len }) } else { Ok(Self(bytes)) }
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// The reserved field: sent as zero, ignored on receipt.
    pub fn reserved(&self) -> u16 {
        u16_at(self.0.as_ref(), 0)
    }
    /// Sequence number.
    pub fn sequence(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }
    /// The type field, which may be a length.
    pub fn type_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }
    /// The bytes after the tag, padding included.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[TAG_LEN..]
    }
}

/// The content of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Sequence number.
    pub sequence: u16,
    /// Type of the content.
    pub ethertype: EtherType,
}

impl Repr {
    /// Parses `tag`.
    ///
    /// # Errors
    /// [`RTagError::Type`] if a length follows.
    pub fn parse<T: AsRef<[u8]>>(tag: &RTag<T>) -> Result<Self, RTagError> {
        let ethertype = EtherType::new(tag.type_field()).map_err(RTagError::Type)?;
        Ok(Self { sequence: tag.sequence(), ethertype })
    }

    /// Writes the tag; the bytes after it stay.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, tag: &mut RTag<T>) {
        let bytes = tag.0.as_mut();
        for (at, field) in [(0, 0), (2, self.sequence), (4, self.ethertype.get())] {
            put_u16(bytes, at, field);
        }
    }
}
