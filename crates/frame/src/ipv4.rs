//! IPv4 packets (RFC 791, 3.1).
//!
//! The representation covers complete packets without options only: a fragment does not hold the message it belongs to,
//! and no message of Wiregauge has options. Both are refused by name rather than misread.

use core::net::Ipv4Addr;

use crate::bytes::{array_at, put_u16, u16_at};
use crate::checksum::Sum;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// Longest packet, in bytes.
pub const MAX_LEN: usize = u16::MAX as usize;
/// UDP's protocol number.
pub const PROTOCOL_UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;

/// Reason why bytes are not a valid IPv4 packet of the kind [`Repr`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ipv4Error {
    /// Too short for the header.
    #[error("{len} B cannot hold the 20 B of an IPv4 header")]
    TooShort {
        /// Number of bytes available.
        len: usize,
    },
    /// Too long for the length field.
    #[error("{len} B are more than an IPv4 packet can hold; it ends at 65535 B")]
    TooLong {
        /// Number of bytes available.
        len: usize,
    },
    /// Not version 4.
    #[error("IP version {found} where 4 was expected")]
    Version {
        /// The version found.
        found: u8,
    },
    /// A header shorter than its fixed part or longer than the packet.
    #[error("IPv4 header length {found} B does not lie between 20 B and the packet's {total} B")]
    HeaderLength {
        /// Header length found, in bytes.
        found: usize,
        /// Total length found, in bytes.
        total: usize,
    },
    /// Truncated on the way or by the capture.
    #[error("IPv4 total length {total} B, but only {len} B are there: the packet was cut")]
    Truncated {
        /// Total length found, in bytes.
        total: usize,
        /// Number of bytes available.
        len: usize,
    },
    /// A wrong header checksum: the header is damaged.
    #[error("the IPv4 header checksum is wrong: the header was damaged")]
    Checksum,
    /// A fragment.
    #[error("the IPv4 packet is a fragment; messages must fit the MTU whole")]
    Fragment,
    /// A header with options.
    #[error("IPv4 options are not supported")]
    Options,
    /// The reserved flag is set, which RFC 791 forbids.
    #[error("the reserved IPv4 flag is set")]
    ReservedFlag,
}

/// A view of an IPv4 packet; bytes after its total length (Ethernet padding) are ignored. See
/// [`ethernet::Frame`](crate::ethernet::Frame) about `T`. No setter changes a length, so the checks of the constructor
/// stay valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// A view of `bytes`, whose version and lengths must be valid.
    ///
    /// # Errors
    /// [`Ipv4Error::TooShort`], [`Ipv4Error::Version`], [`Ipv4Error::HeaderLength`] and
    /// [`Ipv4Error::Truncated`].
    pub fn new_checked(bytes: T) -> Result<Self, Ipv4Error> {
        let slice = bytes.as_ref();
        let len = slice.len();
        if len < HEADER_LEN {
            return Err(Ipv4Error::TooShort { len });
        }
        let found = slice[0] >> 4;
        if found != 4 {
            return Err(Ipv4Error::Version { found });
        }
        let packet = Self(bytes);
        let (found, total) = (packet.header_len(), packet.total_len());
        if found < HEADER_LEN || found > total {
            return Err(Ipv4Error::HeaderLength { found, total });
        }
        if total > len {
            return Err(Ipv4Error::Truncated { total, len });
        }
        Ok(packet)
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Header length in bytes, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.0.as_ref()[0] & 0x0F) * 4
    }
    /// Length of header and payload, in bytes.
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 2))
    }
    /// Differentiated services field: DSCP and ECN (RFC 2474, 3; RFC 3168, 5).
    pub fn traffic_class(&self) -> u8 {
        self.0.as_ref()[1]
    }
    /// Identification.
    pub fn identification(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }
    /// Reserved flag, don't fragment, more fragments (high three bits) and fragment offset.
    pub fn fragment_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }
    /// Time to live in hops.
    pub fn ttl(&self) -> u8 {
        self.0.as_ref()[8]
    }
    /// Protocol number of the payload.
    pub fn protocol(&self) -> u8 {
        self.0.as_ref()[9]
    }
    /// The header checksum as found.
    pub fn checksum_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 10)
    }
    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(array_at(self.0.as_ref(), 12))
    }
    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(array_at(self.0.as_ref(), 16))
    }
    /// Whether the header checksum is right: the header sums to all ones with it (RFC 1071, 1).
    pub fn checksum_ok(&self) -> bool {
        Sum::default().add(self.header()).folded() == 0xFFFF
    }
    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..self.total_len()]
    }
    fn header(&self) -> &[u8] {
        &self.0.as_ref()[..self.header_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Sets the time to live; [`fill_checksum`](Self::fill_checksum) must follow.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.0.as_mut()[8] = ttl;
    }
    /// Sets the identification; [`fill_checksum`](Self::fill_checksum) must follow.
    pub fn set_identification(&mut self, identification: u16) {
        put_u16(self.0.as_mut(), 4, identification);
    }
    /// Sets the source address; [`fill_checksum`](Self::fill_checksum) must follow.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.0.as_mut()[12..16].copy_from_slice(&address.octets());
    }
    /// Sets the destination address; [`fill_checksum`](Self::fill_checksum) must follow.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.0.as_mut()[16..20].copy_from_slice(&address.octets());
    }
    /// Computes and sets the header checksum.
    pub fn fill_checksum(&mut self) {
        put_u16(self.0.as_mut(), 10, 0);
        let checksum = Sum::default().add(self.header()).checksum();
        put_u16(self.0.as_mut(), 10, checksum);
    }
    /// The payload.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (from, to) = (self.header_len(), self.total_len());
        &mut self.0.as_mut()[from..to]
    }
}

/// Header of a complete packet without options. The length is not part of it: it is that of the bytes it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Identification; without meaning for a packet that may not be fragmented (RFC 6864, 4).
    pub identification: u16,
    /// Whether routers may not fragment it.
    pub dont_fragment: bool,
    /// Time to live in hops.
    pub ttl: u8,
}

impl Repr {
    /// Parses the header of `packet`.
    ///
    /// # Errors
    /// [`Ipv4Error::Checksum`], [`Ipv4Error::Options`], [`Ipv4Error::Fragment`] and
    /// [`Ipv4Error::ReservedFlag`].
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Ipv4Error> {
        // First of all: the other fields of a damaged header are no reason to refuse it.
        if !packet.checksum_ok() {
            return Err(Ipv4Error::Checksum);
        }
        if packet.header_len() != HEADER_LEN {
            return Err(Ipv4Error::Options);
        }
        let fragment = packet.fragment_field();
        // RFC 791, 3.1: bit 0 "reserved, must be zero".
        if fragment & 0x8000 != 0 {
            return Err(Ipv4Error::ReservedFlag);
        }
        if fragment & !DONT_FRAGMENT != 0 {
            return Err(Ipv4Error::Fragment);
        }
        Ok(Self {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            ttl: packet.ttl(),
        })
    }

    /// Writes the header with its checksum to the start of `packet`, whose length must be the total length; the bytes
    /// after the header stay.
    ///
    /// # Errors
    /// [`Ipv4Error::TooShort`] and [`Ipv4Error::TooLong`]; nothing is written then.
    pub fn emit(&self, packet: &mut [u8]) -> Result<(), Ipv4Error> {
        let len = packet.len();
        let total = u16::try_from(len).map_err(|_| Ipv4Error::TooLong { len })?;
        let header = packet.first_chunk_mut::<HEADER_LEN>().ok_or(Ipv4Error::TooShort { len })?;
        *header = [0; HEADER_LEN];
        header[0] = 0x45;
        header[1] = self.traffic_class;
        put_u16(header, 2, total);
        put_u16(header, 4, self.identification);
        put_u16(header, 6, if self.dont_fragment { DONT_FRAGMENT } else { 0 });
        header[8] = self.ttl;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let checksum = Sum::default().add(header).checksum();
        put_u16(header, 10, checksum);
        Ok(())
    }
}
