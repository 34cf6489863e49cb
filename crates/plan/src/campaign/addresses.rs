//! Addresses a flow's frames carry in place of those of its end systems.

use serde::{Deserialize, Serialize};
use wg_frame::ethernet::MacAddress;

/// Addresses that frames carry; what is absent is that of the end system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// MAC addresses.
    #[serde(default, skip_serializing_if = "Ends::is_none")]
    pub mac: Ends<MacAddress>,
    /// Number of MAC addresses that messages take in turn, from `mac` on.
    #[serde(default, skip_serializing_if = "Ends::is_none")]
    pub macs: Ends<u32>,
    /// IPv4 addresses.
    #[serde(default, skip_serializing_if = "Ends::is_none")]
    pub ipv4: Ends<[u8; 4]>,
    /// UDP ports.
    #[serde(default, skip_serializing_if = "Ends::is_none")]
    pub port: Ends<u16>,
}

impl Addresses {
    /// Whether every address is the end system's own.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Source and destination of message `sequence`, of those it has in turn from these on.
    #[must_use]
    pub fn in_turn(&self, [source, destination]: [MacAddress; 2], sequence: u32) -> [MacAddress; 2] {
        let at = |first: MacAddress, count: Option<u32>| match count {
            Some(count) => first.offset_by(u64::from(sequence % count.max(1))),
            None => first,
        };
        [at(source, self.macs.source), at(destination, self.macs.destination)]
    }

    /// Whether what the receiver listens to is its own.
    pub fn leads_home(&self) -> bool {
        self.mac.destination.is_none() && self.ipv4.destination.is_none() && self.port.destination.is_none()
    }
}

/// An address at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends<T> {
    /// The source address.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub source: Option<T>,
    /// The destination address.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub destination: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Ends<T> {
    /// Whether neither is given.
    pub fn is_none(&self) -> bool {
        self.source.is_none() && self.destination.is_none()
    }
}
