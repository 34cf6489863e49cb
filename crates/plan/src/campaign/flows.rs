//! Flows: who sends to whom, in which frames, under which contract or schedule.

use serde::{Deserialize, Serialize};
use wg_core::arinc664::Contract;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::addresses::Addresses;
use super::frer::Frer;
use super::routes::Route;
use crate::network::NetworkId;
use crate::places::{Attachment, NodeIndex};
pub use crate::places::{FlowId, LAST_FLOW};

/// Frames a flow is carried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// UDP over IPv4 through the kernel's socket.
    Udp,
    /// Ethernet II frames through a packet socket, EtherType 0x88B5.
    Raw,
    /// Best effort: UDP over IPv4 beside rate-constrained and time-triggered frames, forwarded by address.
    Be,
    /// Rate-constrained: a virtual link (ARINC 664 part 7).
    Rc,
    /// Time-triggered: sent and forwarded at planned instants (SAE AS6802).
    Tt,
}

/// A stream of numbered messages from one end system to one or several others (and back, where a relay returns it).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Number of the flow.
    pub id: FlowId,
    /// The protocol that carries it.
    pub protocol: Protocol,
    /// Sending end system.
    pub from: NodeIndex,
    /// Receiving end system; the first of them where the flow is multicast.
    pub to: NodeIndex,
    /// The others of a multicast flow, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_to: Vec<NodeIndex>,
    /// Age at the application beyond which a message is late; absent: no message is late.
    pub deadline: Option<Span>,
    /// 802.1Q tag of its frames.
    pub vlan: Option<VlanTag>,
    /// Differentiated services code point of its IPv4 packets (RFC 2474), 0 to 63.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dscp: u8,
    /// Routes to each receiver on each of its networks: network A first, receivers in their order. A loopback has none.
    /// With `frer` those of its member streams.
    pub routes: Vec<Route>,
    /// The network that carries it; absent: both, each frame is sent on A and on B.
    #[serde(default = "network_a", skip_serializing_if = "is_network_a")]
    pub network: Option<NetworkId>,
    /// Contract of a rate-constrained flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_link: Option<VirtualLink>,
    /// Schedule of a time-triggered flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<TimeTriggered>,
    /// Where its frames are copied and the copies removed; absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frer: Option<Frer>,
    /// Addresses its frames carry in place of those of its end systems.
    #[serde(default, skip_serializing_if = "Addresses::is_none")]
    pub addresses: Addresses,
    /// Two-way exchange that compares clocks; no flow under test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exchange: bool,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

fn network_a() -> Option<NetworkId> {
    Some(NetworkId::A)
}

fn is_network_a(network: &Option<NetworkId>) -> bool {
    *network == network_a()
}

impl Flow {
    /// A flow to one end system over one network, without anything optional.
    pub fn plain(id: FlowId, protocol: Protocol, route: Route) -> Self {
        Self {
            id,
            protocol,
            from: route.sender().unwrap_or_default(),
            to: route.receiver().unwrap_or_default(),
            also_to: Vec::new(),
            deadline: None,
            vlan: None,
            dscp: 0,
            network: Some(route.network),
            routes: vec![route],
            virtual_link: None,
            schedule: None,
            frer: None,
            addresses: Addresses::default(),
            exchange: false,
        }
    }

    /// A flow over network A that its own sender receives, without anything optional: it takes no link.
    pub fn loopback(id: FlowId, protocol: Protocol, node: NodeIndex) -> Self {
        let nowhere = Route::default();
        Self { from: node, to: node, routes: Vec::new(), ..Self::plain(id, protocol, nowhere) }
    }

    /// Whether its sender is its receiver, and none of its messages comes to an interface.
    pub fn is_loopback(&self) -> bool {
        self.from == self.to && self.also_to.is_empty()
    }

    /// The group that its frames go to where it has several receivers, unless they are critical traffic: one of the IPv4
    /// groups 239.87.0.0/16, numbered by flow, and the MAC address that goes with it (RFC 1112, 6.4).
    pub const fn group(&self) -> (MacAddress, [u8; 4]) {
        let [high, low] = self.id.to_be_bytes();
        (MacAddress([0x01, 0x00, 0x5e, 0x57, high, low]), [239, 0x57, high, low])
    }

    /// Its receivers, in the order of the file.
    pub fn receivers(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        core::iter::once(self.to).chain(self.also_to.iter().copied())
    }

    /// Its routes to one of its receivers.
    pub fn routes_to(&self, receiver: NodeIndex) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(move |route| route.receiver() == Some(receiver))
    }
}

/// The contract of a virtual link (ARINC 664 part 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualLink {
    /// Number of the virtual link: the last two bytes of the destination address.
    pub id: u16,
    /// Bandwidth allocation gap and longest frame.
    #[serde(flatten)]
    pub contract: Contract,
    /// Sub-virtual-links, 1 to 4.
    pub sub_links: u8,
    /// Capacity of each sub-virtual-link, in frames.
    pub queue: u32,
    /// Longest time between two copies of a frame at which the second is removed.
    pub skew_max: Span,
    /// Whether second copies are removed.
    pub redundancy_management: bool,
    /// Jitter that a switch allows the virtual link at an input port.
    pub jitter: Span,
    /// Priority at switches with strict priorities: 0 to 3 use the lower, 4 to 7 the upper of the two queues for
    /// virtual links, which go before all others. The frames carry no tag.
    #[serde(default = "VirtualLink::usual_priority")]
    pub priority: u8,
    /// Whether the sequence number is the last byte of the payload: frames are then as long as those of UDP.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub number_within: bool,
}

impl VirtualLink {
    /// The priority of a virtual link where the test gives none: that of the upper queue.
    pub const fn usual_priority() -> u8 {
        4
    }
}

/// The schedule of a time-triggered flow (SAE AS6802). All instants are of the node's own clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeTriggered {
    /// Critical-traffic identifier: the last two bytes of the destination address.
    pub id: u16,
    /// Time between two dispatches.
    pub period: Span,
    /// Instant of the first dispatch, less than the period.
    pub offset: Span,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// Messages that wait at the sender for their dispatch; absent: only the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Windows of the egress ports on its routes, the sender's own port first.
    pub windows: Vec<TtWindow>,
    /// How long before the planned instant of reception a frame is accepted.
    pub early: Span,
    /// How long after the planned instant of reception a frame is accepted.
    pub late: Span,
    /// Planned instants at which the last bit of a frame is in, by receiver.
    pub receptions: Vec<TtReception>,
}

/// A window of one egress port; it repeats with the flow's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtWindow {
    /// The port.
    pub at: Attachment,
    /// When the window first opens, less than the period.
    pub offset: Span,
    /// How long the window is open.
    pub length: Span,
}

/// When a receiver expects a time-triggered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtReception {
    /// The port at which the frame arrives.
    pub at: Attachment,
    /// The instant of reception, less than the period.
    pub offset: Span,
}

/// 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanTag {
    /// VLAN identifier, 1 to 4094 (0: priority-tagged).
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

impl Frer {
    /// The address that frames of member stream `member` of `flow`, counted from 0, have on each link of its route.
    pub fn addresses(&self, flow: &Flow, member: usize) -> Vec<MacAddress> {
        let streams = flow.routes.get(member).map(|route| self.streams(&flow.routes, route, member));
        streams.unwrap_or_default().into_iter().map(|stream| Self::address(flow.id, stream)).collect()
    }
}
