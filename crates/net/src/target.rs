//! Destinations of the frames that a socket receives.

use std::net::SocketAddrV4;

/// A range of consecutive MAC addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacRange {
    /// The first address.
    pub first: [u8; 6],
    /// Number of addresses; 0 counts as 1.
    pub count: u32,
}

impl From<[u8; 6]> for MacRange {
    fn from(first: [u8; 6]) -> Self {
        Self { first, count: 1 }
    }
}

/// Destination of UDP messages in complete frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Destination MAC addresses.
    pub macs: MacRange,
    /// Destination IPv4 address and UDP port.
    pub at: SocketAddrV4,
}
