//! UDP datagrams over IPv4 (RFC 768).

use core::net::Ipv4Addr;

use crate::bytes::{put_u16, u16_at};
use crate::checksum::Sum;
use crate::ipv4::PROTOCOL_UDP;

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = 8;

/// Reason why bytes are not a valid UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UdpError {
    /// Too short for the header.
    #[error("{len} B cannot hold the 8 B of a UDP header")]
    TooShort {
        /// Number of bytes available.
        len: usize,
    },
    /// Too long for the length field.
    #[error("{len} B are more than a UDP datagram can hold; it ends at 65535 B")]
    TooLong {
        /// Number of bytes available.
        len: usize,
    },
    /// A length field shorter than the header or longer than the packet.
    #[error("UDP length {found} B does not lie between 8 B and the {len} B of the packet")]
    Length {
        /// The field.
        found: usize,
        /// Number of bytes available.
        len: usize,
    },
}

/// The addresses the checksum covers besides the datagram (RFC 768, "pseudo header").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoHeader {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

/// State of the checksum of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Not computed by the sender (an all-zero field).
    Absent,
    /// Right.
    Right,
    /// Wrong: the datagram is damaged, or the sending interface has yet to compute it.
    Wrong,
}

/// A view of a UDP datagram; bytes after its length are ignored. See [`ethernet::Frame`](crate::ethernet::Frame) about
/// `T`. No setter changes the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<T>(T);

impl<T: AsRef<[u8]>> Datagram<T> {
    /// A view of `bytes`, whose length field must be valid. The length 0 of IPv6 jumbograms (RFC 2675) is refused like
    /// any other below 8.
    ///
    /// # Errors
    /// [`UdpError::TooShort`] and [`UdpError::Length`].
    pub fn new_checked(bytes: T) -> Result<Self, UdpError> {
        let len = bytes.as_ref().len();
        if len < HEADER_LEN {
            return Err(UdpError::TooShort { len });
        }
        let datagram = Self(bytes);
        let found = datagram.total_len();
        if found < HEADER_LEN || found > len {
            return Err(UdpError::Length { found, len });
        }
        Ok(datagram)
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Source port; 0: no reply expected.
    pub fn source_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 0)
    }
    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }
    /// Length of header and payload, in bytes.
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 4))
    }
    /// The checksum as found.
    pub fn checksum_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }
    /// State of the checksum.
    pub fn checksum(&self, pseudo: &PseudoHeader) -> Checksum {
        // RFC 768: "An all zero transmitted checksum value means that the transmitter generated no checksum".
        if self.checksum_field() == 0 {
            return Checksum::Absent;
        }
        if sum(self.datagram(), pseudo).folded() == 0xFFFF { Checksum::Right } else { Checksum::Wrong }
    }
    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.datagram()[HEADER_LEN..]
    }
    fn datagram(&self) -> &[u8] {
        &self.0.as_ref()[..self.total_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Datagram<T> {
    /// Sets the source port; the checksum must follow.
    pub fn set_source_port(&mut self, port: u16) {
        put_u16(self.0.as_mut(), 0, port);
    }
    /// Sets the destination port; the checksum must follow.
    pub fn set_destination_port(&mut self, port: u16) {
        put_u16(self.0.as_mut(), 2, port);
    }
    /// Computes and sets the checksum.
    pub fn fill_checksum(&mut self, pseudo: &PseudoHeader) {
        put_u16(self.0.as_mut(), 6, 0);
        let checksum = match sum(self.datagram(), pseudo).checksum() {
            // RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
            0 => 0xFFFF,
            checksum => checksum,
        };
        put_u16(self.0.as_mut(), 6, checksum);
    }
    /// Marks the checksum as absent.
    pub fn clear_checksum(&mut self) {
        put_u16(self.0.as_mut(), 6, 0);
    }
    /// The payload.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let len = self.total_len();
        &mut self.0.as_mut()[HEADER_LEN..len]
    }
}

fn sum(datagram: &[u8], pseudo: &PseudoHeader) -> Sum {
    // The length is counted twice, in the pseudo header and in the header, and both come from one field.
    Sum::default()
        .add(&pseudo.source.octets())
        .add(&pseudo.destination.octets())
        .add_word(u16::from(PROTOCOL_UDP))
        .add_word(u16_at(datagram, 4))
        .add(datagram)
}

/// Content of a UDP header. The length is not part of it: it is that of the bytes it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Whether it has a checksum; [`Datagram::checksum`] checks it.
    pub checksummed: bool,
}

impl Repr {
    /// Parses the header of `datagram`; it cannot fail, because the view checked the length.
    pub fn parse<T: AsRef<[u8]>>(datagram: &Datagram<T>) -> Self {
        Self {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            checksummed: datagram.checksum_field() != 0,
        }
    }

    /// Writes the header to the start of `datagram`, whose length must be that of the datagram; the payload must be in
    /// place, because the checksum covers it.
    ///
    /// # Errors
    /// [`UdpError::TooShort`] and [`UdpError::TooLong`]; nothing is written then.
    pub fn emit(&self, datagram: &mut [u8], pseudo: &PseudoHeader) -> Result<(), UdpError> {
        let len = datagram.len();
        let field = u16::try_from(len).map_err(|_| UdpError::TooLong { len })?;
        let header = datagram.first_chunk_mut::<HEADER_LEN>().ok_or(UdpError::TooShort { len })?;
        *header = [0; HEADER_LEN];
        put_u16(header, 4, field);
        let mut datagram = Datagram(datagram);
        datagram.set_source_port(self.source_port);
        datagram.set_destination_port(self.destination_port);
        if self.checksummed {
            datagram.fill_checksum(pseudo);
        }
        Ok(())
    }
}
