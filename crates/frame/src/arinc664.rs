//! Frames of virtual links (ARINC Specification 664 part 7): what they have beside Ethernet, IPv4 and UDP.
//!
//! The destination address names the virtual link, the source address the end system and the network it sends on, and
//! the last byte before the FCS is the sequence number. The standard's text is not free; fields are those of public
//! dissectors and captures (redlab-i/wireshark-plugin-afdx), the constant `02:00:00` and the zero bits common practice.

use core::fmt;
use core::net::Ipv4Addr;

use crate::bytes::{put, put_u16, u16_at};
use crate::ethernet::{EtherType, MIN_FRAME_LEN_WITHOUT_FCS, MacAddress};

/// Length of the sequence number, behind the padding, in bytes.
pub const SEQUENCE_LEN: usize = 1;

/// Number of a virtual link: the last two bytes of the destination address, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualLinkId(pub u16);

impl VirtualLinkId {
    /// First four bytes of every destination address. The standard leaves them to the network's operator but
    /// for the group and local bits; all public captures read carry 03:00:00:00 (redlab-i/wireshark-plugin-afdx).
    pub const CONSTANT_FIELD: [u8; 4] = [3, 0, 0, 0];

    /// The destination address of the virtual link's frames.
    pub const fn destination(self) -> MacAddress {
        let [a, b, c, d] = Self::CONSTANT_FIELD;
        let [high, low] = self.0.to_be_bytes();
        MacAddress([a, b, c, d, high, low])
    }
    /// The virtual link of an address; `None` if the constant field differs.
    pub const fn from_destination(address: MacAddress) -> Option<Self> {
        match address.0 {
            [3, 0, 0, 0, high, low] => Some(Self(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }
    /// The IPv4 group address of its frames.
    pub const fn group(self) -> Ipv4Addr {
        let [high, low] = self.0.to_be_bytes();
        Ipv4Addr::new(224, 224, high, low)
    }
}

impl fmt::Display for VirtualLinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VL {}", self.0)
    }
}

/// The interface from which an end system sends, as encoded in its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Network identifier.
    pub network: u8,
    /// Device identifier.
    pub device: u8,
    /// Interface identifier, 0 to 7: 1 on network A, 2 on network B.
    pub interface: u8,
}

impl Sender {
    /// The sender of end system `station` of a test, from 0, with its interface on network A (1) or B (2).
    pub const fn of_station(station: u16, interface: u8) -> Self {
        let [network, device] = station.wrapping_add(1).to_be_bytes();
        Self { network, device, interface }
    }
    /// The source address of its frames.
    pub const fn address(self) -> MacAddress {
        MacAddress([0x02, 0x00, 0x00, self.network, self.device, self.interface << 5])
    }
    /// The interface of an address; `None` if the constant field or the zero bits differ.
    pub const fn from_address(address: MacAddress) -> Option<Self> {
        match address.0 {
            [0x02, 0x00, 0x00, network, device, last] if last & 0x1F == 0 => {
                Some(Self { network, device, interface: last >> 5 })
            }
            _ => None,
        }
    }
    /// The IPv4 address of one of its partitions.
    pub const fn partition(self, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.network, self.device, number)
    }
}

/// Reason why bytes are not a valid frame of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VirtualLinkError {
    /// Shorter than any frame.
    #[error(
        "{len} B without FCS are less than the 60 B of the shortest frame, which ends in the sequence number"
    )]
    TooShort {
        /// Length of the frame without FCS, in bytes.
        len: usize,
    },
    /// A destination that is no virtual link.
    #[error("destination {0} does not begin with 03:00:00:00: no virtual link")]
    Destination(MacAddress),
    /// A source that is no end system.
    #[error("source {0} is not 02:00:00, network, device and interface: no end system of virtual links")]
    Source(MacAddress),
    /// Not IPv4.
    #[error("type {found:#06x} is not 0x0800 (IPv4), which frames of virtual links carry")]
    Type {
        /// The type field.
        found: u16,
    },
}

/// A view of a frame of a virtual link without FCS. See [`ethernet::Frame`](crate::ethernet::Frame) about `T`, and for
/// the headers, which this view shares with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<T>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// A view of `bytes`, at least as long as the shortest frame.
    ///
    /// # Errors
    /// [`VirtualLinkError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, VirtualLinkError> {
        let len = bytes.as_ref().len();
        if len < MIN_FRAME_LEN_WITHOUT_FCS {
            Err(VirtualLinkError::TooShort { len })
        } else {
            Ok(Self(bytes))
        }
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    fn address(&self, at: usize) -> MacAddress {
        MacAddress(crate::bytes::array_at(self.0.as_ref(), at))
    }
    /// The virtual link of its destination address.
    pub fn virtual_link(&self) -> Option<VirtualLinkId> {
        VirtualLinkId::from_destination(self.address(0))
    }
    /// The interface of its source address.
    pub fn sender(&self) -> Option<Sender> {
        Sender::from_address(self.address(6))
    }
    /// The type field.
    pub fn type_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 12)
    }
    /// Sequence number: 0 after a reset of the sender, then 1 to 255 over and over.
    pub fn sequence(&self) -> u8 {
        let bytes = self.0.as_ref();
        bytes[bytes.len() - SEQUENCE_LEN]
    }
    /// The IPv4 packet and padding, between type and sequence number.
    pub fn packet(&self) -> &[u8] {
        let bytes = self.0.as_ref();
        &bytes[crate::ethernet::HEADER_LEN..bytes.len() - SEQUENCE_LEN]
    }
}

/// The virtual-link fields of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The virtual link.
    pub virtual_link: VirtualLinkId,
    /// Sending end system and interface.
    pub sender: Sender,
    /// Sequence number.
    pub sequence: u8,
}

impl Repr {
    /// Parses the fields of `frame`.
    ///
    /// # Errors
    /// [`VirtualLinkError`] for addresses that belong to no virtual link or no end system, and for another type than
    /// IPv4.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Result<Self, VirtualLinkError> {
        let virtual_link = frame.virtual_link().ok_or(VirtualLinkError::Destination(frame.address(0)))?;
        let sender = frame.sender().ok_or(VirtualLinkError::Source(frame.address(6)))?;
        let found = frame.type_field();
        if found != EtherType::IPV4.get() {
            return Err(VirtualLinkError::Type { found });
        }
        Ok(Self { virtual_link, sender, sequence: frame.sequence() })
    }

    /// Writes addresses, type and sequence number; the packet stays.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, frame: &mut Frame<T>) {
        let bytes = frame.0.as_mut();
        put(bytes, 0, self.virtual_link.destination().0);
        put(bytes, 6, self.sender.address().0);
        put_u16(bytes, 12, EtherType::IPV4.get());
        let last = bytes.len() - SEQUENCE_LEN;
        bytes[last] = self.sequence;
    }
}
