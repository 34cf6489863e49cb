//! Configuration of an end system: ports, and the virtual link layer where its flows need one.

use wg_core::arinc664::redundancy::Redundancy;
use wg_core::arinc664::regulator::{MAX_OUTPUT_JITTER, output_jitter};
use wg_core::clock::{LocalClock, SharedClock};
use wg_core::end_system::Host;
use wg_core::frame::NetworkId;
use wg_core::port::Port;
use wg_core::queue::Capacity;
use wg_core::selection::{Selection, StrictPriority};
use wg_core::tte::dispatch::{Instants, PortMode};
use wg_core::virtual_link_layer::{
    IncomingLink, IncomingSchedule, Networks, OutgoingLink, OutgoingSchedule, VirtualLinkLayer,
    VirtualLinkLayerConfig,
};
use wg_frame::time::{RunTime, Span};
use wg_plan::{
    Attachment, Flow, HostModel, Integration, Network, NodeIndex, Protocol, TimeTriggered, VirtualLink,
};

use super::forwarding::{Tables, acceptance, selection};
use super::traffic_classes::{self, Streams};
use crate::error::SimError;
use crate::models::{host_config, host_port_config};
use crate::world::World;

/// A host to be built, with its part of the plan.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) network: &'a Network,
    pub(super) tables: &'a Tables<'a>,
    pub(super) node: NodeIndex,
    /// Its ports: number and outgoing channel.
    pub(super) own: &'a [(u16, usize)],
    pub(super) model: &'a HostModel,
}

/// Builds the host.
pub(super) fn host(world: &World, site: &Site<'_>) -> Result<Host<Selection, Option<SharedClock>>, SimError> {
    let Site { network, node, own, model, .. } = *site;
    let networks: Vec<NetworkId> =
        own.iter().map(|&(_, channel)| network.links[channel / 2].network).collect();
    let sound = match networks[..] {
        [_] => true,
        [one, other] => one != other,
        _ => false,
    };
    if !sound {
        let problem =
            format!("end system {node} has {} links, not one or one on each network", networks.len());
        return Err(SimError::plan(problem));
    }
    let clock = world.nodes[usize::from(node)].shared_clock();
    let layer = layer(world, site, &clock)?;
    let config = host_config(model);
    let lines = own.iter().map(|&(number, channel)| (number, world.channels[channel].line));
    let tsn = network.nodes[usize::from(node)].tsn.as_ref().and_then(|tsn| tsn.port());
    let ports = networks.into_iter().zip(lines);
    let ports = ports.map(|(network, (number, line))| {
        let at = Attachment { node, port: number };
        let (config, others) = if let Some(tsn) = &tsn {
            let limit = Capacity::bytes(model.egress_bytes);
            let (classes, others) = traffic_classes::port(tsn, &Streams::new(), at, line, limit, limit)?;
            (traffic_classes::critical(classes, tsn, layer.is_some()), others)
        } else {
            (host_port_config(model, line, layer.is_some()), Selection::StrictPriority(StrictPriority))
        };
        let windows = site.tables.windows(at);
        let selection = selection(windows, at, line, (Integration::TimelyBlock, None), others)?;
        Ok((network, Port::new(config, selection)))
    });
    let ports = ports.collect::<Result<Vec<_>, SimError>>()?;
    Ok(Host::new(config, ports, layer, clock))
}

fn layer(
    world: &World,
    site: &Site<'_>,
    clock: &impl LocalClock,
) -> Result<Option<VirtualLinkLayer>, SimError> {
    let Site { node, own, .. } = *site;
    let mut config = VirtualLinkLayerConfig::default();
    let budget = jitter_budget(world, site);
    for flow in &site.tables.own[usize::from(node)] {
        let named = |error: &dyn std::fmt::Display| SimError::plan(format!("flow {}: {error}", flow.id));
        let receives = flow.receivers().any(|receiver| receiver == node);
        match (flow.protocol, &flow.virtual_link, &flow.schedule) {
            (Protocol::Rc, Some(link), _) => {
                if flow.from == node {
                    config.outgoing_links.push(outgoing(flow, link, budget));
                }
                if receives {
                    let redundancy = if link.redundancy_management {
                        Redundancy::FirstValidWins { skew_max: link.skew_max }
                    } else {
                        Redundancy::Off
                    };
                    let bag = link.contract.bag();
                    config.incoming_links.push(IncomingLink { id: link.id, bag, redundancy });
                }
            }
            (Protocol::Tt, _, Some(schedule)) => {
                if flow.from == node {
                    let instants =
                        Instants::new(schedule.offset, schedule.period).map_err(|error| named(&error))?;
                    config.outgoing_schedules.push(OutgoingSchedule {
                        id: schedule.id,
                        instants,
                        mode: schedule.queue.map_or(PortMode::Sampling, |n| PortMode::Queuing(n as usize)),
                        longest_frame: schedule.longest_frame,
                        networks: networks(flow),
                    });
                }
                if receives {
                    config.incoming_schedules.push(incoming(site, schedule, own)?);
                }
            }
            _ => {}
        }
    }
    let VirtualLinkLayerConfig { outgoing_links, outgoing_schedules, incoming_links, incoming_schedules } =
        &config;
    if outgoing_links.is_empty()
        && outgoing_schedules.is_empty()
        && incoming_links.is_empty()
        && incoming_schedules.is_empty()
    {
        return Ok(None);
    }
    let start = clock.read(RunTime::ZERO);
    VirtualLinkLayer::new(config, start)
        .map(Some)
        .map_err(|error| SimError::plan(format!("end system {node}: {error}")))
}

/// Budget of the output jitter that the virtual links of an end system may cause one another.
fn jitter_budget(world: &World, site: &Site<'_>) -> Span {
    let own = site.tables.own[usize::from(site.node)].iter().filter(|other| other.from == site.node);
    let contracts = own.filter_map(|other| other.virtual_link.as_ref()).map(|link| link.contract);
    let rates = site.own.iter().map(|&(_, channel)| world.channels[channel].line.bits_per_second());
    let budget = output_jitter(contracts, rates.min().unwrap_or(0)).unwrap_or(MAX_OUTPUT_JITTER);
    budget.min(MAX_OUTPUT_JITTER)
}

fn outgoing(flow: &Flow, link: &VirtualLink, budget: Span) -> OutgoingLink {
    OutgoingLink {
        id: link.id,
        contract: link.contract,
        queues: vec![link.queue as usize; usize::from(link.sub_links)],
        networks: networks(flow),
        jitter_budget: budget,
    }
}

fn incoming(
    site: &Site<'_>,
    schedule: &TimeTriggered,
    own: &[(u16, usize)],
) -> Result<IncomingSchedule, SimError> {
    let mut windows = [None; 2];
    for &(port, channel) in own {
        let network = site.network.links[channel / 2].network;
        let window = acceptance(schedule, Attachment { node: site.node, port })?;
        windows[usize::from(network == NetworkId::B)] = window;
    }
    // Copies of a frame arrive within its period.
    let redundancy = Redundancy::FirstValidWins { skew_max: schedule.period };
    Ok(IncomingSchedule { id: schedule.id, period: schedule.period, windows, redundancy })
}

fn networks(flow: &Flow) -> Networks {
    flow.network.map_or(Networks::Both, Networks::One)
}
