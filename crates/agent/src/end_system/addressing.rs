//! Access points, the sockets by which messages of a flow reach an end system, and what the frames of a flow carry
//! round their messages.

use std::net::{Ipv4Addr, SocketAddrV4};

use wg_frame::arinc664::{Sender, VirtualLinkId};
use wg_frame::ethernet::MacAddress;
use wg_frame::layout::{Carrier, Envelope, Tag};
use wg_frame::tte::CriticalTrafficId;
use wg_frame::vlan::{Priority, VlanId};
use wg_net::{MacRange, Target};
use wg_plan::{Addresses, Flow, NetworkId, NodeIndex, Protocol};

use wg_plan::wire::PROBE_PORT;

/// UDP source port of streams that may leave through the host's own stack. A socket connected from the access point's
/// port would receive messages meant for the access point.
const STREAM_PORT: u16 = PROBE_PORT + 1;

/// A kind of access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// A UDP socket.
    Udp,
    /// A packet socket for raw messages.
    Raw,
    /// A packet socket for UDP messages in frames that the kernel's stack does not write or does not accept: own
    /// addresses, a tag, a code point, or a group address.
    Frames,
    /// As `Frames`, for best-effort traffic beside critical traffic.
    Be,
    /// A packet socket for frames of virtual links (rate-constrained traffic).
    Rc,
    /// A packet socket for frames with critical-traffic identifiers (time-triggered traffic).
    Tt,
    /// A packet socket on the host's loopback, for raw messages to itself.
    Loopback,
}

impl AccessKind {
    /// Access point of a flow; `tagged_by_host`: filters of the hosts' interfaces add and remove the flow's tag.
    pub fn of(flow: &Flow, tagged_by_host: bool) -> Self {
        let addresses = &flow.addresses;
        match flow.protocol {
            Protocol::Raw if flow.is_loopback() => Self::Loopback,
            Protocol::Raw => Self::Raw,
            Protocol::Tt => Self::Tt,
            Protocol::Rc => Self::Rc,
            Protocol::Udp | Protocol::Be if flow.is_loopback() => Self::Udp,
            Protocol::Be => Self::Be,
            // The host's reverse path filter may drop a foreign source address.
            Protocol::Udp if !addresses.leads_home() || addresses.ipv4.source.is_some() => Self::Frames,
            Protocol::Udp if flow.dscp != 0 || !flow.also_to.is_empty() => Self::Frames,
            Protocol::Udp if flow.vlan.is_some() && !tagged_by_host => Self::Frames,
            Protocol::Udp => Self::Udp,
        }
    }

    /// Name in grants and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Raw => "raw",
            Self::Frames => "udp-frames",
            Self::Be => "be",
            Self::Rc => "rc",
            Self::Tt => "tt",
            Self::Loopback => "raw-loopback",
        }
    }

    /// True if messages are UDP datagrams in whole frames; the header gives the length of a padded message.
    pub const fn is_datagrams(self) -> bool {
        matches!(self, Self::Frames | Self::Be | Self::Rc)
    }

    /// True if the access point receives everything sent to a UDP port of the host. Several kinds do so at once; a
    /// message that more than one receives is counted at the access point of its flow.
    pub const fn shares_ports(self) -> bool {
        matches!(self, Self::Udp | Self::Frames | Self::Be)
    }
}

/// Index and addresses of an end system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Index in the plan.
    pub node: NodeIndex,
    /// MAC and IPv4 address.
    pub address: Address,
}

/// Headers and trailers of a flow's frames, the same for every sending end system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeaders {
    protocol: Protocol,
    tag: Option<Tag>,
    dscp: u8,
    /// Addresses that replace those of the end systems.
    pub addresses: Addresses,
    /// Group addresses, if the flow has several receivers.
    group: Option<(MacAddress, [u8; 4])>,
    /// Virtual link or critical-traffic identifier in the destination address.
    critical: u16,
    /// Interface number in the source addresses of virtual links.
    interface: u8,
    /// UDP source port, if the test gives none.
    source_port: u16,
}

impl FrameHeaders {
    /// Headers of a flow with this access point.
    pub fn new(flow: &Flow, access: AccessKind) -> Self {
        let link = flow.virtual_link.map(|link| link.id);
        let schedule = || flow.schedule.as_ref().map(|schedule| schedule.id);
        Self {
            protocol: flow.protocol,
            tag: flow.vlan.map(|tag| Tag {
                priority: Priority::new(tag.priority & 7).unwrap_or_default(),
                drop_eligible: false,
                id: VlanId::new(tag.id & 0x0FFF).unwrap_or_default(),
            }),
            dscp: flow.dscp,
            addresses: flow.addresses,
            group: (!flow.also_to.is_empty()).then(|| flow.group()),
            critical: link.or_else(schedule).unwrap_or(0),
            interface: if flow.network == Some(NetworkId::B) { 2 } else { 1 },
            source_port: if access == AccessKind::Udp { STREAM_PORT } else { PROBE_PORT },
        }
    }

    /// Headers of message `sequence` from its sender; `to` is the first receiver.
    pub fn outward(&self, from: Station, to: Address, sequence: u32) -> Envelope {
        let own = &self.addresses;
        let group = self.group.map(|(mac, _)| mac);
        let destination = match self.protocol {
            Protocol::Rc => return self.on_link(from.node, VirtualLinkId(self.critical)),
            Protocol::Tt => CriticalTrafficId(self.critical).destination(),
            _ => own.mac.destination.or(group).unwrap_or(MacAddress(to.mac)),
        };
        let source = own.mac.source.unwrap_or(MacAddress(from.address.mac));
        let [source, destination] = own.in_turn([source, destination], sequence);
        let group = match destination.0 {
            [0x01, 0x00, 0x5E, b, c, d] => Some(Ipv4Addr::new(239, b & 0x7F, c, d)),
            _ => None,
        };
        let at = |own: Option<[u8; 4]>, ip: Ipv4Addr, port: Option<u16>, plain: u16| {
            SocketAddrV4::new(own.map_or(ip, Ipv4Addr::from), port.unwrap_or(plain))
        };
        let udp = [
            at(own.ipv4.source, from.address.ipv4, own.port.source, self.source_port),
            at(own.ipv4.destination, group.unwrap_or(to.ipv4), own.port.destination, PROBE_PORT),
        ];
        Envelope { destination, source, tag: self.tag, carrier: self.carrier(udp) }
    }

    /// Headers of a message that a relay returns to `to`, on the virtual link `link` if given. Relayed messages have
    /// the addresses of their end systems.
    pub fn returned(&self, from: Station, to: Address, link: Option<VirtualLinkId>) -> Envelope {
        if let (Protocol::Rc, Some(link)) = (self.protocol, link) {
            return self.on_link(from.node, link);
        }
        Envelope {
            destination: MacAddress(to.mac),
            source: MacAddress(from.address.mac),
            tag: self.tag,
            carrier: self.carrier([from.address.probes(), to.probes()]),
        }
    }

    /// Destination addresses of the messages at the receiver.
    pub fn macs(&self, from: Station, to: Address) -> MacRange {
        let first = self.outward(from, to, 0).destination.0;
        MacRange { first, count: self.addresses.macs.destination.unwrap_or(1).max(1) }
    }

    /// Match for the datagrams at the receiver.
    pub fn target(&self, from: Station, to: Address) -> Target {
        let at = match self.outward(from, to, 0).carrier {
            Carrier::Udp { destination, .. } => destination,
            Carrier::Raw => to.probes(),
        };
        Target { macs: self.macs(from, to), at }
    }

    fn on_link(&self, sender: NodeIndex, link: VirtualLinkId) -> Envelope {
        Envelope::of_virtual_link(link, Sender::of_station(sender, self.interface), PROBE_PORT)
    }

    fn carrier(&self, [from, to]: [SocketAddrV4; 2]) -> Carrier {
        if matches!(self.protocol, Protocol::Raw | Protocol::Tt) {
            return Carrier::Raw;
        }
        let mut carrier = Carrier::udp(from, to);
        if let Carrier::Udp { traffic_class, .. } = &mut carrier {
            *traffic_class = self.dscp << 2;
        }
        carrier
    }
}

/// Address of an end system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// MAC address of the interface under test.
    pub mac: [u8; 6],
    /// IPv4 address of the interface under test.
    pub ipv4: Ipv4Addr,
}

impl Address {
    /// Address and port of the UDP access point.
    pub fn probes(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ipv4, PROBE_PORT)
    }
}
