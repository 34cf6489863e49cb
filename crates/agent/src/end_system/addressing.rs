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

/// UDP port streams come from that may leave by the host's own stack: a connected socket at the access point's port
/// would take what is sent there.
const STREAM_PORT: u16 = PROBE_PORT + 1;

/// A kind of access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// A UDP socket.
    Udp,
    /// A packet socket for raw messages.
    Raw,
    /// A packet socket for UDP messages in frames that the kernel's stack would not write, or not take: with addresses
    /// of their own, a tag, a code point, or to a group.
    Frames,
    /// The same for best effort beside critical traffic.
    Be,
    /// A packet socket for frames of virtual links.
    Rc,
    /// A packet socket for frames of critical-traffic identifiers.
    Tt,
    /// A packet socket at the host's loopback, for raw messages to itself.
    Loopback,
}

impl AccessKind {
    /// That of a flow; `tagged_by_host` where filters of the hosts' interfaces give and take its tag.
    pub fn of(flow: &Flow, tagged_by_host: bool) -> Self {
        let addresses = &flow.addresses;
        match flow.protocol {
            Protocol::Raw if flow.is_loopback() => Self::Loopback,
            Protocol::Raw => Self::Raw,
            Protocol::Tt => Self::Tt,
            Protocol::Rc => Self::Rc,
            Protocol::Udp | Protocol::Be if flow.is_loopback() => Self::Udp,
            Protocol::Be => Self::Be,
            // A source address from elsewhere may be refused by the host's reverse path filter.
            Protocol::Udp if !addresses.leads_home() || addresses.ipv4.source.is_some() => Self::Frames,
            Protocol::Udp if flow.dscp != 0 || !flow.also_to.is_empty() => Self::Frames,
            Protocol::Udp if flow.vlan.is_some() && !tagged_by_host => Self::Frames,
            Protocol::Udp => Self::Udp,
        }
    }

    /// Its name in grants and reports.
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

    /// Whether messages are UDP datagrams in whole frames: what a padded one holds is known by its header.
    pub const fn is_datagrams(self) -> bool {
        matches!(self, Self::Frames | Self::Be | Self::Rc)
    }

    /// Whether it takes what leads to a UDP port of the host, as others of these kinds do at the same time: of a
    /// message that several of them see, the one of its flow tells.
    pub const fn shares_ports(self) -> bool {
        matches!(self, Self::Udp | Self::Frames | Self::Be)
    }
}

/// An end system as frames name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its index in the plan.
    pub node: NodeIndex,
    /// Its addresses.
    pub address: Address,
}

/// What the frames of a flow carry round their messages, whichever of its end systems sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeaders {
    protocol: Protocol,
    tag: Option<Tag>,
    dscp: u8,
    /// Addresses in place of those of its end systems.
    pub addresses: Addresses,
    /// Where it has several receivers.
    group: Option<(MacAddress, [u8; 4])>,
    /// What its destination names in place of a station: a virtual link, or a critical-traffic identifier.
    critical: u16,
    /// Interface of its senders, as their addresses of virtual links name it.
    interface: u8,
    /// Port that its datagrams come from where the test gives none.
    source_port: u16,
}

impl FrameHeaders {
    /// Those of a flow with this access point.
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

    /// Everything round message `sequence` from its sender; `to` is its first receiver.
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

    /// Everything round a message that a relay sends on to `to`, on the virtual link `link` where it has one: what
    /// relays send has the addresses of its end systems.
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

    /// Which destination addresses its messages have where they arrive.
    pub fn macs(&self, from: Station, to: Address) -> MacRange {
        let first = self.outward(from, to, 0).destination.0;
        MacRange { first, count: self.addresses.macs.destination.unwrap_or(1).max(1) }
    }

    /// What tells its datagrams where they arrive.
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
    /// Of its interface under test.
    pub mac: [u8; 6],
    /// Of the same.
    pub ipv4: Ipv4Addr,
}

impl Address {
    /// Where its UDP access point listens.
    pub fn probes(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.ipv4, PROBE_PORT)
    }
}
