//! Whom frames are for: what a socket takes of all that comes to its interface.

use std::net::SocketAddrV4;

/// MAC addresses, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacRange {
    /// The first.
    pub first: [u8; 6],
    /// How many; none counts as one.
    pub count: u32,
}

impl From<[u8; 6]> for MacRange {
    fn from(first: [u8; 6]) -> Self {
        Self { first, count: 1 }
    }
}

/// Where UDP messages in whole frames lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Destination MAC addresses.
    pub macs: MacRange,
    /// Destination IPv4 address and UDP port.
    pub at: SocketAddrV4,
}
