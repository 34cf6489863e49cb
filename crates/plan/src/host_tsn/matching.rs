//! What tells the frames of one flow from all others, as far as a filter of tc(8) can see: headers, never the probe header.

use wg_frame::ethernet::{EtherType, MacAddress};

use crate::campaign::{Flow, FlowId, Protocol, Run, VlanTag};
use crate::network::{Network, NodeIndex};
use crate::wire::PROBE_PORT;

/// The headers of a flow's frames in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameMatch {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// VLAN identifier and priority of the tag that they have where they are matched.
    pub tag: Option<(u16, u8)>,
    /// Addresses and destination port of UDP; `None`: raw frames.
    pub udp: Option<([u8; 4], [u8; 4], u16)>,
}

/// Frames of a flow that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// As they come from the sockets.
    pub frames: FrameMatch,
    /// Priority of the tag that they have on the link.
    pub priority: Option<u8>,
    /// The tag is a filter's to give: the kernel writes the headers of a UDP socket, and knows none.
    pub untagged: bool,
}

/// The flows whose frames `node` sends, relays' returns among them, with what tells them apart.
pub fn departures(network: &Network, run: &Run, node: NodeIndex) -> Vec<(FlowId, Departure)> {
    let leaving = directed(network, run).filter(|one| one.from == node);
    leaving.map(|one| (one.flow, one.frames.as_it_leaves())).collect()
}

/// The same of those that arrive at it.
pub fn arrivals(network: &Network, run: &Run, node: NodeIndex) -> Vec<(FlowId, FrameMatch)> {
    directed(network, run).filter(|one| one.to == node).map(|one| (one.flow, one.frames)).collect()
}

/// The frames of a flow from one end to another.
struct Directed {
    flow: FlowId,
    from: NodeIndex,
    to: NodeIndex,
    frames: FrameMatch,
}

fn directed<'a>(network: &'a Network, run: &'a Run) -> impl Iterator<Item = Directed> + 'a {
    let out = run.flows.iter().flat_map(|flow| flow.receivers().map(move |to| (flow, flow.from, to, false)));
    let back = run.relays.iter().filter_map(|relay| {
        let flow = run.flows.iter().find(|flow| flow.id == relay.flow)?;
        Some((flow, relay.on, flow.from, true))
    });
    out.chain(back).filter_map(|(flow, from, to, returns)| {
        Some(Directed { flow: flow.id, from, to, frames: frames(network, flow, [from, to], returns)? })
    })
}

/// A flow's frames in one direction; `None` where agents carry no such frames.
fn frames(network: &Network, flow: &Flow, [from, to]: [NodeIndex; 2], returns: bool) -> Option<FrameMatch> {
    let ends = [network.nodes.get(usize::from(from))?, network.nodes.get(usize::from(to))?];
    // What a relay sends back has the addresses of its end systems.
    let own = if returns { Default::default() } else { flow.addresses };
    let source = own.mac.source.unwrap_or(ends[0].mac);
    let destination = own.mac.destination.unwrap_or(ends[1].mac);
    let udp = match flow.protocol {
        Protocol::Raw => None,
        Protocol::Udp => Some((
            own.ipv4.source.unwrap_or(ends[0].ipv4),
            own.ipv4.destination.unwrap_or(ends[1].ipv4),
            own.port.destination.unwrap_or(PROBE_PORT),
        )),
        Protocol::Be | Protocol::Rc | Protocol::Tt => return None,
    };
    let tag = flow.vlan.map(|VlanTag { id, priority }| (id, priority));
    Some(FrameMatch { destination, source, tag, udp })
}

impl FrameMatch {
    fn as_it_leaves(self) -> Departure {
        let untagged = self.udp.is_some() && self.tag.is_some();
        let frames = Self { tag: self.tag.filter(|_| !untagged), ..self };
        Departure { frames, priority: self.tag.map(|(_, priority)| priority), untagged }
    }

    /// The type of frame and the keys that flower(8) matches it by.
    pub(super) fn flower(&self) -> (String, Vec<String>) {
        let raw = format!("0x{:04x}", EtherType::PROBE.get());
        let network = if self.udp.is_some() { "ip".to_owned() } else { raw };
        let mut keys: Vec<String> = Vec::new();
        let mut key = |name: &str, value: String| keys.extend([name.to_owned(), value]);
        key("dst_mac", spelt(self.destination));
        key("src_mac", spelt(self.source));
        let outer = match self.tag {
            None => network,
            Some((id, priority)) => {
                key("vlan_id", id.to_string());
                key("vlan_prio", priority.to_string());
                key("vlan_ethtype", network);
                "802.1Q".to_owned()
            }
        };
        if let Some((source, destination, port)) = self.udp {
            key("ip_proto", "udp".to_owned());
            key("src_ip", dotted(source));
            key("dst_ip", dotted(destination));
            key("dst_port", port.to_string());
        }
        (outer, keys)
    }
}

fn spelt(mac: MacAddress) -> String {
    mac.0.map(|byte| format!("{byte:02x}")).join(":")
}

fn dotted(address: [u8; 4]) -> String {
    address.map(|byte| byte.to_string()).join(".")
}
