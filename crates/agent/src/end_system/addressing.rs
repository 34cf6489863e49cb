//! Access points, the sockets by which messages of a flow reach an end system, and the addresses of a flow's frames.

use std::net::{Ipv4Addr, SocketAddrV4};

use wg_frame::ethernet::MacAddress;
use wg_frame::layout::Carrier;
use wg_net::Target;
use wg_plan::{Addresses, Protocol};

use crate::end_system::assignment::{Address, PROBE_PORT};

/// UDP port streams come from.
const STREAM_PORT: u16 = PROBE_PORT + 1;

/// A kind of access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// A UDP socket.
    Udp,
    /// A packet socket for raw messages.
    Raw,
    /// A packet socket for UDP messages with addresses that the kernel's stack would not take.
    Frames,
}

impl AccessKind {
    /// That of a flow.
    pub fn of(protocol: Protocol, addresses: &Addresses) -> Self {
        match protocol {
            Protocol::Raw | Protocol::Tt => Self::Raw,
            // A source address from elsewhere may be refused by the host's reverse path filter.
            _ if !addresses.leads_home() || addresses.ipv4.source.is_some() => Self::Frames,
            Protocol::Udp | Protocol::Be | Protocol::Rc => Self::Udp,
        }
    }

    /// Its name in grants and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Raw => "raw",
            Self::Frames => "udp-frames",
        }
    }
}

/// Addresses of the frames of a flow, as far as they are not its end systems' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAddresses {
    /// Source and destination.
    pub mac: [MacAddress; 2],
    /// The same of UDP.
    pub udp: [SocketAddrV4; 2],
}

impl FlowAddresses {
    /// From one end system to another.
    pub fn new(addresses: &Addresses, from: Address, to: Address) -> Self {
        let udp = |ip: Option<[u8; 4]>, own: Ipv4Addr, port: Option<u16>, plain: u16| {
            SocketAddrV4::new(ip.map_or(own, Ipv4Addr::from), port.unwrap_or(plain))
        };
        let Addresses { mac, ipv4, port, .. } = addresses;
        Self {
            mac: [mac.source.unwrap_or(MacAddress(from.mac)), mac.destination.unwrap_or(MacAddress(to.mac))],
            udp: [
                // Not from the access point's port: a connected socket there would take what is sent to it.
                udp(ipv4.source, from.ipv4, port.source, STREAM_PORT),
                udp(ipv4.destination, to.ipv4, port.destination, PROBE_PORT),
            ],
        }
    }

    /// UDP over IPv4.
    pub fn carrier(&self) -> Carrier {
        Carrier::udp(self.udp[0], self.udp[1])
    }

    /// What tells its frames where they arrive.
    pub fn target(&self) -> Target {
        Target { mac: self.mac[1].0, at: self.udp[1] }
    }
}
