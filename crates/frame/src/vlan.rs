//! The customer VLAN tag (IEEE 802.1Q-2022, 9.6): two bytes of control information after EtherType 0x8100, then the
//! type of the content.

use crate::bytes::{put_u16, u16_at};
use crate::ethernet::{EtherType, EthernetError, MAX_FRAME_LEN};

/// Length of the tag in a frame, in bytes.
pub const TAG_LEN: usize = 4;
/// Longest frame with a tag, DA to FCS, in bytes (IEEE 802.3, 3.2.7: maxQTaggedFrameSize).
pub const MAX_TAGGED_FRAME_LEN: usize = MAX_FRAME_LEN + TAG_LEN;

/// A VLAN identifier, 0 to 4094. 0 makes the frame priority-tagged: it has a priority but no VLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanId(u16);

impl VlanId {
    /// The identifier `id`.
    ///
    /// # Errors
    /// [`VlanError::Id`] above 4094; 4095 is reserved (802.1Q, table 9-2).
    pub const fn new(id: u16) -> Result<Self, VlanError> {
        if id > 4094 { Err(VlanError::Id { found: id }) } else { Ok(Self(id)) }
    }
    /// Number of the VLAN.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A priority code point, 0 to 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The priority `pcp`.
    ///
    /// # Errors
    /// [`VlanError::Priority`] above 7.
    pub const fn new(pcp: u8) -> Result<Self, VlanError> {
        if pcp > 7 { Err(VlanError::Priority { found: pcp }) } else { Ok(Self(pcp)) }
    }
    /// Number of the priority.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Reason why bytes are not a valid VLAN tag, or a number cannot be put into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VlanError {
    /// The frame ends within the tag.
    #[error("{len} B behind the type 0x8100 cannot hold the 4 B of control information and type")]
    TooShort {
        /// Number of bytes after the type field.
        len: usize,
    },
    /// An invalid VLAN identifier.
    #[error("VLAN identifier {found} is out of range; it is 0 to 4094")]
    Id {
        /// The identifier.
        found: u16,
    },
    /// An invalid priority.
    #[error("priority code point {found} is out of range; it is 0 to 7")]
    Priority {
        /// The priority.
        found: u8,
    },
    /// No valid type after the tag.
    #[error("behind the tag: {0}")]
    Type(EthernetError),
}

/// A view of the bytes after EtherType 0x8100: control information, type, payload. See
/// [`ethernet::Frame`](crate::ethernet::Frame) about `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<T>(T);

impl<T: AsRef<[u8]>> Tag<T> {
    /// A view of `bytes`, which must hold control information and type.
    ///
    /// # Errors
    /// [`VlanError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, VlanError> {
        let len = bytes.as_ref().len();
        if len < TAG_LEN { Err(VlanError::TooShort { len }) } else { Ok(Self(bytes)) }
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Priority code point.
    pub fn priority(&self) -> Priority {
        Priority(self.0.as_ref()[0] >> 5)
    }
    /// Drop eligible indicator.
    pub fn drop_eligible(&self) -> bool {
        self.0.as_ref()[0] & 0x10 != 0
    }
    /// The identifier field, 0 to 4095.
    pub fn id_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 0) & 0x0FFF
    }
    /// The type field, which may be a length.
    pub fn type_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }
    /// The bytes after the tag, padding included.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[TAG_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Tag<T> {
    /// Sets the control information.
    pub fn set_control(&mut self, priority: Priority, drop_eligible: bool, id: VlanId) {
        let control = u16::from(priority.0) << 13 | u16::from(drop_eligible) << 12 | id.0;
        put_u16(self.0.as_mut(), 0, control);
    }
    /// Sets the type of the content.
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        put_u16(self.0.as_mut(), 2, ethertype.get());
    }
    /// The bytes after the tag.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.0.as_mut()[TAG_LEN..]
    }
}

/// The content of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Priority code point.
    pub priority: Priority,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier.
    pub id: VlanId,
    /// Type of the content.
    pub ethertype: EtherType,
}

impl Repr {
    /// Parses `tag`.
    ///
    /// # Errors
    /// [`VlanError::Id`] for the reserved identifier, [`VlanError::Type`] if a length follows.
    pub fn parse<T: AsRef<[u8]>>(tag: &Tag<T>) -> Result<Self, VlanError> {
        Ok(Self {
            priority: tag.priority(),
            drop_eligible: tag.drop_eligible(),
            id: VlanId::new(tag.id_field())?,
            ethertype: EtherType::new(tag.type_field()).map_err(VlanError::Type)?,
        })
    }

    /// Writes the tag; the bytes after it stay.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, tag: &mut Tag<T>) {
        tag.set_control(self.priority, self.drop_eligible, self.id);
        tag.set_ethertype(self.ethertype);
    }
}
