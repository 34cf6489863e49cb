//! The interface of a run and its access points: found, checked, opened, described.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use wg_frame::ethernet::{EtherType, MacAddress};
use wg_net::{DiscardSocket, Interface, MacRange, NetError, Protocols, Socket, Target};

use crate::control::role::{Fault, OpenError, Setup};
use crate::end_system::addressing::AccessKind;
use crate::end_system::assignment::{Assignment, DISCARD_PORT, PROBE_PORT, RAW_ETHER_TYPE};
use crate::end_system::servicing::LONGEST_SLEEP_MS;
use crate::recording::remote_log::RemoteLog;

/// The interface by which a host's messages come to itself.
const LOOPBACK: &str = "lo";

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

/// UDP port that a log over the network comes from.
const LOG_PORT: u16 = PROBE_PORT + 2;

/// The log that this host sends over the network, where it has one.
pub(super) fn open_log(assignment: &Assignment) -> Result<Option<RemoteLog>, OpenError> {
    let Some((to, records, length)) = assignment.remote_log else { return Ok(None) };
    let from = SocketAddrV4::new(assignment.address().ipv4, LOG_PORT);
    RemoteLog::open(from, to, records, length).map(Some).map_err(|error| {
        let what =
            format!("cannot open the log from {from} to {to}: {error}; is another agent at this address?");
        OpenError::new(Fault::Precondition, what)
    })
}

/// Whether frames of an access point may have a tag.
fn is_tagged(assignment: &Assignment, access: AccessKind) -> bool {
    assignment.flows.iter().any(|facts| facts.access == access && facts.vlan_tci.is_some())
}

/// Where frames of an access point lead that come here.
fn macs(assignment: &Assignment, access: AccessKind) -> Vec<MacRange> {
    let flows = assignment.flows.iter().filter(|facts| facts.access == access);
    let mut macs: BTreeSet<MacRange> = flows.flat_map(|facts| assignment.macs_here(facts)).collect();
    // Critical traffic has no address of a station.
    if matches!(access, AccessKind::Raw | AccessKind::Loopback) {
        macs.insert(assignment.address().mac.into());
    }
    macs.into_iter().collect()
}

/// The same of datagrams in whole frames.
fn targets(assignment: &Assignment, access: AccessKind) -> Vec<Target> {
    let flows = assignment.flows.iter().filter(|facts| facts.access == access);
    let targets: BTreeSet<Target> = flows.flat_map(|facts| assignment.targets_here(facts)).collect();
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
