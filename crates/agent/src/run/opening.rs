//! The interface of a run and its access points: found, checked, opened, described.

use wg_net::{Interface, NetError, Protocols, Socket};
use wg_plan::Protocol;

use super::{RunError, Setup};
use crate::assignment::{Assignment, RAW_ETHER_TYPE};
use crate::servicing::LONGEST_SLEEP;

pub(super) fn check_interface(setup: &Setup, assignment: &Assignment) -> Result<Interface, RunError> {
    let existing = wg_net::interfaces()?;
    let Some(found) = existing.iter().find(|i| i.name == setup.interface) else {
        let existing: Vec<&str> = existing.iter().map(|i| i.name.as_str()).collect();
        return Err(RunError::NoInterface { name: setup.interface.clone(), existing: existing.join(", ") });
    };
    let planned = assignment.address().mac;
    if let Some(mac) = wg_net::hardware_address(&found.name)?
        && mac != planned
    {
        let text = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
        return Err(RunError::OtherAddress {
            name: found.name.clone(),
            found: text(mac),
            planned: text(planned),
            end_system: assignment.name.clone(),
        });
    }
    Ok(found.clone())
}

pub(super) fn open(
    protocol: Protocol,
    assignment: &Assignment,
    interface: &Interface,
    by_hardware: bool,
) -> Result<Socket, NetError> {
    let socket = match protocol {
        Protocol::Udp | Protocol::Be | Protocol::Rc => Socket::udp(assignment.address().probes())?,
        Protocol::Raw | Protocol::Tt => {
            let tagged = assignment.flows.iter().any(|f| f.protocol == protocol && f.vlan_tci.is_some());
            let protocols =
                if tagged { Protocols::WithTags(RAW_ETHER_TYPE) } else { Protocols::Only(RAW_ETHER_TYPE) };
            Socket::packet(interface.index, assignment.address().mac, protocols)?
        }
    };
    if by_hardware {
        socket.report_hardware_stamps()?;
    }
    socket.limit_blocking((LONGEST_SLEEP / 1_000_000) as u32)?;
    Ok(socket)
}

pub(super) fn describe(assignment: &Assignment, interface: &str) -> Vec<String> {
    assignment
        .protocols
        .iter()
        .map(|protocol| match protocol {
            Protocol::Udp | Protocol::Be | Protocol::Rc => format!("udp {}", assignment.address().probes()),
            Protocol::Raw | Protocol::Tt => format!("raw {interface} {RAW_ETHER_TYPE:#06x}"),
        })
        .collect()
}

/// The name of an access point in grants and reports.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Udp | Protocol::Be | Protocol::Rc => "udp",
        Protocol::Raw | Protocol::Tt => "raw",
    }
}
