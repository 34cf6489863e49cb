//! The interface of a run and its access points: found, checked, opened, described.

use std::collections::BTreeSet;

use wg_frame::ethernet::MacAddress;
use wg_net::{DiscardSocket, Interface, NetError, Protocols, Socket, Target};

use crate::control::role::{Fault, OpenError, Setup};
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, DISCARD_PORT, RAW_ETHER_TYPE};
use crate::end_system::servicing::LONGEST_SLEEP_MS;

/// The interface of the end system's port, which has to have the address that the plan gives it.
pub(super) fn check_interface(setup: &Setup, assignment: &Assignment) -> Result<Interface, OpenError> {
    let name = match &setup.ports[..] {
        [one] if one.port == assignment.port.0 => &one.interface,
        _ => {
            let problem = format!("end system '{}' has one port, {}", assignment.name, assignment.port.0);
            return Err(OpenError::new(Fault::Request, problem));
        }
    };
    let found = wg_net::interface_named(name)?;
    let planned = assignment.address().mac;
    if let Some(mac) = wg_net::hardware_address(&found.name)?
        && mac != planned
    {
        let problem = format!(
            "interface '{name}' has the address {}, but the plan gives {} to '{}'",
            MacAddress(mac),
            MacAddress(planned),
            assignment.name
        );
        return Err(OpenError::new(Fault::Request, problem));
    }
    Ok(found)
}

pub(super) fn open(
    access: AccessKind,
    assignment: &Assignment,
    interface: &Interface,
    by_hardware: bool,
) -> Result<Socket, NetError> {
    let socket = match access {
        AccessKind::Udp => Socket::udp(assignment.address().probes())?,
        AccessKind::Raw => {
            let raw = assignment.flows.iter().filter(|f| f.access == access);
            let tagged = raw.clone().any(|f| f.vlan_tci.is_some());
            let protocols =
                if tagged { Protocols::WithTags(RAW_ETHER_TYPE) } else { Protocols::Only(RAW_ETHER_TYPE) };
            let here = raw.filter(|f| f.to == assignment.node);
            let mut macs: BTreeSet<[u8; 6]> = here.map(|f| assignment.route(f).mac[1].0).collect();
            macs.insert(assignment.address().mac);
            Socket::packet(interface.index, &macs.into_iter().collect::<Vec<_>>(), protocols)?
        }
        AccessKind::Frames => Socket::frames(interface.index, &targets(assignment))?,
    };
    if by_hardware {
        socket.report_hardware_timestamps()?;
    }
    socket.limit_blocking(LONGEST_SLEEP_MS)?;
    Ok(socket)
}

/// Where frames with addresses of their own arrive here.
fn targets(assignment: &Assignment) -> Vec<Target> {
    let own = assignment.flows.iter().filter(|f| f.access == AccessKind::Frames && f.to == assignment.node);
    let targets: BTreeSet<Target> = own.map(|facts| assignment.route(facts).target()).collect();
    targets.into_iter().collect()
}

/// Sockets for ports of this host that only a packet socket listens to: the host would answer that nobody does.
///
/// # Errors
/// A port is in use.
pub(super) fn silence(assignment: &Assignment) -> Result<Vec<DiscardSocket>, NetError> {
    let here = assignment.address();
    let mut taken = BTreeSet::from([std::net::SocketAddrV4::new(here.ipv4, DISCARD_PORT)]);
    if assignment.accesses.contains(&AccessKind::Udp) {
        taken.insert(here.probes());
    }
    let own = targets(assignment).into_iter().filter(|t| t.mac == here.mac && *t.at.ip() == here.ipv4);
    own.filter(|target| taken.insert(target.at)).map(|target| DiscardSocket::bind(target.at)).collect()
}

pub(super) fn describe(assignment: &Assignment, interface: &str) -> Vec<String> {
    let of = |access: &AccessKind| match access {
        AccessKind::Udp => vec![format!("udp {}", assignment.address().probes())],
        AccessKind::Raw => vec![format!("raw {interface} {RAW_ETHER_TYPE:#06x}")],
        AccessKind::Frames => targets(assignment)
            .iter()
            .map(|target| format!("{} {} {}", access.name(), MacAddress(target.mac), target.at))
            .collect(),
    };
    assignment.accesses.iter().flat_map(of).collect()
}
