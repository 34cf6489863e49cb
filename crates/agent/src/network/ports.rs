//! Whether interfaces can be the ports of a test, and remain so until its end.

use std::collections::BTreeMap;

use wg_frame::ethernet::FRAME_OVERHEAD;
use wg_net::Interface;
use wg_plan::wire::{frame_length, sized_as};
use wg_plan::{NodeIndex, Run};

use crate::control::role::{Fault, NetworkInterface, OpenError, Setup};
use crate::proto;

/// The interfaces of a run, each with room for the longest frame of the test that passes it.
///
/// # Errors
/// An interface does not exist, or its MTU is too small.
pub(super) fn open(setup: &Setup) -> Result<Vec<Interface>, OpenError> {
    let longest = longest(&setup.run);
    let open = |port: &NetworkInterface| {
        let found = wg_net::interface_named(&port.interface).map_err(OpenError::from)?;
        let needed = longest.get(&port.node).copied().unwrap_or(0);
        let mtu = wg_net::mtu(&found.name).map_err(|error| OpenError::new(Fault::Precondition, error))?;
        if mtu < needed {
            return Err(OpenError::new(Fault::Precondition, too_small(setup, port, mtu, needed)));
        }
        Ok(found)
    };
    setup.network_ports.iter().map(open).collect()
}

fn too_small(setup: &Setup, port: &NetworkInterface, mtu: usize, needed: usize) -> String {
    let NetworkInterface { node, interface } = port;
    let end = setup.name(*node);
    format!(
        "interface '{interface}', which leads to {end}, has an MTU of {mtu}, and frames of this run have up to \
         {needed} bytes after the header: `ip link set dev {interface} mtu {needed}`, and the same at {end}, or send less"
    )
}

/// Most bytes behind the header, without the tag, of a frame that each end system sends or receives.
fn longest(run: &Run) -> BTreeMap<NodeIndex, usize> {
    let mut found: BTreeMap<NodeIndex, usize> = BTreeMap::new();
    let mut meet = |node: NodeIndex, bytes: usize| {
        let own = found.entry(node).or_default();
        *own = bytes.max(*own);
    };
    for send in &run.sends {
        let Some(flow) = run.flows.iter().find(|flow| flow.id == send.flow) else { continue };
        let within = flow.virtual_link.is_some_and(|link| link.number_within);
        let payload = frame_length(sized_as(flow.protocol, within), None, send.payload) as usize;
        let traced = send.replay.as_ref().map(|replay| {
            let lengths = replay.trace.frames().iter().map(|frame| frame.length.max(replay.least));
            usize::from(lengths.max().unwrap_or(0))
        });
        let bytes = traced.unwrap_or(payload).saturating_sub(FRAME_OVERHEAD);
        [flow.from, flow.to].into_iter().chain(flow.also_to.iter().copied()).for_each(|end| meet(end, bytes));
    }
    for inject in &run.injects {
        let bytes = frame_length(wg_plan::Protocol::Udp, None, inject.payload) as usize;
        [inject.on, inject.to].into_iter().for_each(|end| meet(end, bytes.saturating_sub(FRAME_OVERHEAD)));
    }
    found
}

/// Why a port cannot be used any more; `None`: all can.
pub(super) fn gone(setup: &Setup, before: &[Interface]) -> Option<String> {
    setup.network_ports.iter().zip(before).find_map(|(port, before)| {
        let what = match wg_net::interface_named(&port.interface) {
            Ok(now) if now.index != before.index => "was taken away while the network was played",
            Ok(now) if wg_net::is_running(&now.name).is_ok_and(|is_running| !is_running) => {
                "is down, or has lost its carrier, since the network was played"
            }
            Ok(_) | Err(wg_net::NoInterface::Unknown(_)) => return None,
            Err(wg_net::NoInterface::Missing { .. }) => "was taken away while the network was played",
        };
        let (interface, end) = (&port.interface, setup.name(port.node));
        Some(format!(
            "interface '{interface}', which leads to {end}, {what}: look at it, and run the test again"
        ))
    })
}

/// Number of frames longer than Ethernet allows, by port.
pub(super) fn overlong(setup: &Setup, counted: &[(u64, u32)]) -> Vec<proto::OverlongFrames> {
    let ports = setup.network_ports.iter().zip(counted).filter(|(_, (frames, _))| *frames > 0);
    let told = ports.map(|(port, (frames, longest))| proto::OverlongFrames {
        end_system: setup.name(port.node),
        interface: port.interface.clone(),
        frames: *frames,
        longest: *longest,
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::time::Span;
    use wg_plan::{Flow, Protocol, Route, Send, VlanTag};

    #[test]
    fn a_port_needs_room_for_what_passes_it_and_no_more() {
        let long = Flow {
            to: 1,
            vlan: Some(VlanTag { id: 5, priority: 3 }),
            ..Flow::plain(1, Protocol::Udp, Route::default())
        };
        let short = Flow { from: 2, to: 1, ..Flow::plain(2, Protocol::Udp, Route::default()) };
        let send = |flow, payload| Send::periodic(flow, Span::from_millis(1), payload, 1);
        let run =
            Run { flows: vec![long, short], sends: vec![send(1, 1_472), send(2, 100)], ..Run::default() };
        // IP and UDP take 28 bytes; a tag needs no MTU.
        assert_eq!(longest(&run), BTreeMap::from([(0, 1_500), (1, 1_500), (2, 128)]));
    }
}
