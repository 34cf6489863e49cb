//! UDP datagrams over IPv4 (RFC 768).

use core::net::Ipv4Addr;

use crate::bytes::{put_u16, u16_at};
use crate::checksum::Sum;
use crate::ipv4::PROTOCOL_UDP;

/// Header, in bytes.
pub const HEADER_LEN: usize = 8;

/// Why bytes are no UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UdpError {
    /// No room for the header.
    #[error("{len} B cannot hold the 8 B of a UDP header")]
    TooShort {
        /// Bytes there are.
        len: usize,
    },
    /// Longer than the length field can say.
    #[error("{len} B are more than a UDP datagram can hold; it ends at 65535 B")]
    TooLong {
        /// Bytes there are.
        len: usize,
    },
    /// A length field shorter than the header or longer than the packet.
    #[error("UDP length {found} B does not lie between 8 B and the {len} B of the packet")]
    Length {
        /// The field.
        found: usize,
        /// Bytes there are.
        len: usize,
    },
}

/// The addresses the checksum covers besides the datagram (RFC 768, "pseudo header").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoHeader {
    /// Where the packet comes from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
}

/// What the checksum of a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The sender made none (an all-zero field).
    Absent,
    /// Right.
    Right,
    /// Wrong: damaged, or not yet made, as on frames captured before a sending interface that makes it.
    Wrong,
}

/// A view of a UDP datagram; bytes behind its length are ignored. See
/// [`ethernet::Frame`](crate::ethernet::Frame) about `T`. No setter touches the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<T>(T);

impl<T: AsRef<[u8]>> Datagram<T> {
    /// A view of `bytes`, of which the length must make sense. The length 0 of IPv6 jumbograms (RFC 2675) is
    /// refused like any other below 8.
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
    /// The bytes back.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Port it comes from; 0: no reply expected.
    pub fn source_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 0)
    }
    /// Port it goes to.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }
    /// Header and payload, in bytes.
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 4))
    }
    /// The checksum as found.
    pub fn checksum_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }
    /// What the checksum says.
    pub fn checksum(&self, pseudo: &PseudoHeader) -> Checksum {
        // RFC 768: "An all zero transmitted checksum value means that the transmitter generated no checksum".
        if self.checksum_field() == 0 {
            return Checksum::Absent;
        }
        if sum(self.datagram(), pseudo).folded() == 0xFFFF { Checksum::Right } else { Checksum::Wrong }
    }
    /// What it carries.
    pub fn payload(&self) -> &[u8] {
        &self.datagram()[HEADER_LEN..]
    }
    fn datagram(&self) -> &[u8] {
        &self.0.as_ref()[..self.total_len()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Datagram<T> {
    /// Sets the port it comes from; the checksum must follow.
    pub fn set_source_port(&mut self, port: u16) {
        put_u16(self.0.as_mut(), 0, port);
    }
    /// Sets the port it goes to; the checksum must follow.
    pub fn set_destination_port(&mut self, port: u16) {
        put_u16(self.0.as_mut(), 2, port);
    }
    /// Makes the checksum right.
    pub fn fill_checksum(&mut self, pseudo: &PseudoHeader) {
        put_u16(self.0.as_mut(), 6, 0);
        let checksum = match sum(self.datagram(), pseudo).checksum() {
            // RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
            0 => 0xFFFF,
            checksum => checksum,
        };
        put_u16(self.0.as_mut(), 6, checksum);
    }
    /// Says that there is no checksum.
    pub fn clear_checksum(&mut self) {
        put_u16(self.0.as_mut(), 6, 0);
    }
    /// What it carries.
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

/// The content of a UDP header. Its length is not part of it: it is that of the bytes it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Port it comes from.
    pub source_port: u16,
    /// Port it goes to.
    pub destination_port: u16,
    /// Whether it has a checksum. Whether that is right, [`Datagram::checksum`] says.
    pub checksummed: bool,
}

impl Repr {
    /// The header of `datagram`; every length the view admits makes sense, so this cannot fail.
    pub fn parse<T: AsRef<[u8]>>(datagram: &Datagram<T>) -> Self {
        Self {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            checksummed: datagram.checksum_field() != 0,
        }
    }

    /// Writes the header to the start of `datagram`, which must be exactly as long as the datagram is to be
    /// and hold its payload already, because the checksum covers it.
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
