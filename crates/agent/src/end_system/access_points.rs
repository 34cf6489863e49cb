//! Interface and access points of a run: lookup, checks, opening and description.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use wg_frame::ethernet::{EtherType, MacAddress};
use wg_net::{DiscardSocket, Interface, MacRange, NetError, Protocols, Socket, Target};

use crate::control::role::{Fault, OpenError, Setup};
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, DISCARD_PORT, PROBE_PORT, RAW_ETHER_TYPE};
use crate::end_system::servicing::LONGEST_SLEEP_MS;
use crate::recording::remote_log::RemoteLog;

/// Name of the loopback interface, over which a host sends messages to itself.
const LOOPBACK: &str = "lo";

/// Interface of the end system's port; an error if the interface lacks the address that the plan assigns.
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
) -> Result<Socket, OpenError> {
    let lo = if access == AccessKind::Loopback { Some(wg_net::interface_named(LOOPBACK)?) } else { None };
    let interface = lo.as_ref().unwrap_or(interface);
    let by_hardware = by_hardware && lo.is_none();
    let socket = match access {
        AccessKind::Udp => Socket::udp(assignment.address().probes())?,
        AccessKind::Frames | AccessKind::Be => {
            Socket::frames(interface.index, &targets(assignment, access), is_tagged(assignment, access))?
        }
        AccessKind::Rc => {
            let ipv4 = EtherType::IPV4.get();
            Socket::packet(interface.index, &macs(assignment, access), Protocols::Only(ipv4))?
        }
        AccessKind::Raw | AccessKind::Tt | AccessKind::Loopback => {
            let protocols = match is_tagged(assignment, access) {
                true => Protocols::WithTags(RAW_ETHER_TYPE),
                false => Protocols::Only(RAW_ETHER_TYPE),
            };
            Socket::packet(interface.index, &macs(assignment, access), protocols)?
        }
    };
    if by_hardware {
        socket.report_hardware_timestamps()?;
    }
    socket.limit_blocking(LONGEST_SLEEP_MS)?;
    Ok(socket)
}

/// UDP source port of a log sent over the network.
const LOG_PORT: u16 = PROBE_PORT + 2;

/// Sender of this host's log over the network, if the plan has one.
pub(super) fn open_log(assignment: &Assignment) -> Result<Option<RemoteLog>, OpenError> {
    let Some((to, records, length)) = assignment.remote_log else { return Ok(None) };
    let from = SocketAddrV4::new(assignment.address().ipv4, LOG_PORT);
    RemoteLog::open(from, to, records, length).map(Some).map_err(|error| {
        let what =
            format!("cannot open the log from {from} to {to}: {error}; is another agent at this address?");
        OpenError::new(Fault::Precondition, what)
    })
}

/// True if frames of the access point may have a tag.
fn is_tagged(assignment: &Assignment, access: AccessKind) -> bool {
    assignment.flows.iter().any(|facts| facts.access == access && facts.vlan_tci.is_some())
}

/// Destination addresses of the frames that arrive here at an access point.
fn macs(assignment: &Assignment, access: AccessKind) -> Vec<MacRange> {
    let flows = assignment.flows.iter().filter(|facts| facts.access == access);
    let mut macs: BTreeSet<MacRange> = flows.flat_map(|facts| assignment.macs_here(facts)).collect();
    // Critical traffic has no station address.
    if matches!(access, AccessKind::Raw | AccessKind::Loopback) {
        macs.insert(assignment.address().mac.into());
    }
    macs.into_iter().collect()
}

/// Targets of the datagrams in whole frames that arrive here at an access point.
fn targets(assignment: &Assignment, access: AccessKind) -> Vec<Target> {
    let flows = assignment.flows.iter().filter(|facts| facts.access == access);
    let targets: BTreeSet<Target> = flows.flat_map(|facts| assignment.targets_here(facts)).collect();
    targets.into_iter().collect()
}

/// Sockets bound to the ports that only a packet socket reads, so that the host sends no "port unreachable".
///
/// # Errors
/// A port is in use.
pub(super) fn silence(assignment: &Assignment) -> Result<Vec<DiscardSocket>, NetError> {
    let here = assignment.address();
    let mut taken = BTreeSet::from([std::net::SocketAddrV4::new(here.ipv4, DISCARD_PORT)]);
    if assignment.accesses.contains(&AccessKind::Udp) {
        taken.insert(here.probes());
    }
    let all = [AccessKind::Frames, AccessKind::Be].into_iter().flat_map(|kind| targets(assignment, kind));
    let own = all.filter(|target| *target.at.ip() == here.ipv4);
    own.filter(|target| taken.insert(target.at)).map(|target| DiscardSocket::bind(target.at)).collect()
}

pub(super) fn describe(assignment: &Assignment, interface: &str) -> Vec<String> {
    let of = |access: &AccessKind| match access {
        AccessKind::Udp => vec![format!("udp {}", assignment.address().probes())],
        AccessKind::Raw => vec![format!("raw {interface} {RAW_ETHER_TYPE:#06x}")],
        AccessKind::Loopback => vec![format!("{} {LOOPBACK} {RAW_ETHER_TYPE:#06x}", access.name())],
        AccessKind::Rc | AccessKind::Tt => {
            let of = |range: MacRange| format!("{} {interface} {}", access.name(), MacAddress(range.first));
            macs(assignment, *access).into_iter().map(of).collect()
        }
        AccessKind::Frames | AccessKind::Be => targets(assignment, *access)
            .iter()
            .map(|target| format!("{} {} {}", access.name(), MacAddress(target.macs.first), target.at))
            .collect(),
    };
    assignment.accesses.iter().flat_map(of).collect()
}
