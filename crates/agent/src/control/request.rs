//! Preparation of a run from a caller's request.

use std::path::PathBuf;
use std::time::Duration;

use tonic::Status;
use wg_net::transmit::Backend;
use wg_plan::{Network, NodeIndex, Run};
use wg_record::segment::ALL_NODES;

use super::role::{NetworkInterface, PortInterface, Setup};
use crate::proto;

/// The node of this name.
fn named(network: &Network, name: &str) -> Result<NodeIndex, Status> {
    let node = network.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
        let names: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        Status::invalid_argument(format!("the plan has no node '{name}'; it has {}", names.join(", ")))
    })?;
    u16::try_from(node).map_err(|_| Status::invalid_argument("the plan has more than 65536 nodes"))
}

/// Checks and decodes a request; the place of records and planted clocks are added elsewhere.
pub(super) fn setup(request: proto::PrepareRequest) -> Result<Setup, Status> {
    let network = Network::from_json(&request.network_json)
        .map_err(|e| Status::invalid_argument(format!("network_json is not a network: {e}")))?;
    let run = Run::from_json(&request.run_json)
        .map_err(|e| Status::invalid_argument(format!("run_json is not a run: {e}")))?;
    if request.fifo_priority > 99 {
        let asked = request.fifo_priority;
        return Err(Status::invalid_argument(format!("fifo_priority is {asked}; it must be from 0 to 99")));
    }
    let network_ports = request
        .network_ports
        .into_iter()
        .map(|one| Ok(NetworkInterface { node: named(&network, &one.end_system)?, interface: one.interface }))
        .collect::<Result<Vec<_>, Status>>()?;
    let node = if network_ports.is_empty() { named(&network, &request.end_system)? } else { ALL_NODES };
    let ports = request
        .ports
        .into_iter()
        .map(|one| match u16::try_from(one.port) {
            Ok(port) if port > 0 => Ok(PortInterface { port, interface: one.interface }),
            _ => Err(Status::invalid_argument(format!(
                "port {} is not a port; ports go from 1 to 65535",
                one.port
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Setup {
        network,
        run,
        node,
        ports,
        network_ports,
        card: request.card,
        spool: PathBuf::new(),
        agents_on_host: request.agents_on_host,
        distrusted: request
            .distrusted
            .into_iter()
            .filter_map(|one| Some((Backend::named(&one.backend)?, one.seen)))
            .collect(),
        servicing_core: usize::try_from(request.servicing_core).ok(),
        own_core: request.own_core,
        fifo_priority: request.fifo_priority,
        hold: (request.capture_hold_ms > 0)
            .then(|| Duration::from_millis(u64::from(request.capture_hold_ms))),
        planted_hardware: None,
        planted_clock: None,
        tsn_folder: None,
    })
}
