//! Positions of ports among those of their node, and destination addresses.

use wg_core::arinc664::VirtualLinkId;
use wg_frame::ethernet::MacAddress;
use wg_frame::tte::CriticalTrafficId;
use wg_plan::{Flow, Frer, Protocol};

/// Ports of each node, ascending by number, each with its outgoing channel.
pub(crate) type Ports = Vec<Vec<(u16, usize)>>;

/// Index of port `number` among a node's ports.
pub(crate) fn position(ports: &[(u16, usize)], number: u16) -> usize {
    ports.partition_point(|(port, _)| *port < number)
}

/// The destination address of a flow's frames: the receiver's, or a group's.
pub(super) fn destination(flow: &Flow, addresses: &[MacAddress]) -> MacAddress {
    match (flow.protocol, &flow.virtual_link, &flow.schedule) {
        (Protocol::Rc, Some(link), _) => MacAddress(VirtualLinkId(link.id).destination().0),
        (Protocol::Tt, _, Some(schedule)) => MacAddress(CriticalTrafficId(schedule.id).destination().0),
        _ if flow.frer.is_some() => Frer::address(flow.id, 0),
        _ if flow.also_to.is_empty() => {
            flow.addresses.mac.destination.unwrap_or(addresses[usize::from(flow.to)])
        }
        _ => flow.addresses.mac.destination.unwrap_or(flow.group().0),
    }
}
