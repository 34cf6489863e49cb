//! Static tables of a switch: stations, groups, VLANs, virtual links, windows.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::address_table::TableLimits;
use wg_core::arinc664::VirtualLinkId;
use wg_core::arinc664::filter::Entry;
use wg_core::arinc664::policing::Account;
use wg_core::forwarding::{Forwarding, Learning, PortSet};
use wg_core::frame::TrafficClass;
use wg_core::ingress::{
    CriticalIngress, Egress, IngressRules, InputTable, TimeTriggeredEntry, VirtualLinkEntry,
};
use wg_core::line::{LineRate, SMALLEST_FRAME};
use wg_core::port::Port;
use wg_core::selection::{Missed, Selection, StrictPriority, TimeTriggered, WindowConfig};
use wg_core::tte::dispatch::{AcceptanceWindow, Instants};
use wg_core::tte::schedule::{PortSchedule, Window};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;
use wg_plan::{
    AddressTable, Attachment, DeltaRaster, Flow, FlowId, Frer, Integration, Network, NodeIndex, NodeKind,
    Policing, Protocol, Relay, Route, Run, SwitchModel, VirtualLink,
};

use super::places::{Ports, destination, position};
use super::stream_filters::{self, Filtered};
use super::traffic_classes::{self, Stream, Streams};
use crate::error::SimError;
use crate::models::{Capabilities, port_config, switch_config, traffic_class};
use crate::world::{SwitchCore, World};

/// Address learning of a switch: ageing time and places in the table (IEEE Std 802.1Q-2022, 8.8.3).
const LEARNING: Learning = Learning { ageing: Span::from_millis(300_000), places: 8_192 };

/// A switch to be built, with its part of the plan.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) network: &'a Network,
    pub(super) ports: &'a Ports,
    pub(super) node: NodeIndex,
    pub(super) model: &'a SwitchModel,
    pub(super) tables: &'a Tables<'a>,
}

/// A flow whose address belongs to no station (a group's, or its own), as it passes a switch.
pub(super) struct Passage<'a> {
    flow: &'a Flow,
    /// Address with which its frames leave.
    address: MacAddress,
    enters: usize,
    leaves: BTreeSet<usize>,
}

/// Indexes of the flows by node and port, made in one pass over all flows, so that building does not take flows times
/// nodes.
pub(super) struct Tables<'a> {
    /// Where frames to a station leave, by node.
    stations: Stations,
    /// Flows with an address of no station, by node, in the order of the plan.
    passages: Vec<Vec<Passage<'a>>>,
    windows: Windows,
    /// Flows by number, in the order of the plan: a virtual link back from a relay has the number of its flow.
    pub(super) flows: BTreeMap<FlowId, Vec<&'a Flow>>,
    /// Flows that enter each node, each with its first ingress port, in the order of the plan.
    entering: Vec<Vec<(&'a Flow, u16)>>,
    /// Flows whose copies are made or removed at each node, in the order of the plan.
    pub(super) copied: Vec<Vec<&'a Flow>>,
    /// Flows that begin or end at each end system, in the order of the plan.
    pub(super) own: Vec<Vec<&'a Flow>>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(network: &Network, run: &'a Run, ports: &Ports) -> Self {
        Self {
            stations: stations(network, run),
            passages: passages(network, run, ports),
            windows: windows(run),
            flows: by_number(run),
            entering: entering(network, run),
            copied: copied(network, run),
            own: own(network, run),
        }
    }

    /// The windows of a port.
    pub(super) fn windows(&self, at: Attachment) -> &[Window] {
        self.windows.get(&at).map_or(&[], Vec::as_slice)
    }
}

/// Windows of each port, in the order of the plan.
type Windows = BTreeMap<Attachment, Vec<Window>>;

fn windows(run: &Run) -> Windows {
    let mut windows = Windows::new();
    for schedule in run.flows.iter().filter_map(|flow| flow.schedule.as_ref()) {
        for window in &schedule.windows {
            windows.entry(window.at).or_default().push(Window {
                flow: schedule.id,
                offset: window.offset,
                period: schedule.period,
                length: window.length,
                longest_frame: schedule.longest_frame,
            });
        }
    }
    windows
}

fn by_number(run: &Run) -> BTreeMap<FlowId, Vec<&Flow>> {
    let mut flows: BTreeMap<FlowId, Vec<&Flow>> = BTreeMap::new();
    run.flows.iter().for_each(|flow| flows.entry(flow.id).or_default().push(flow));
    flows
}

fn entering<'a>(network: &Network, run: &'a Run) -> Vec<Vec<(&'a Flow, u16)>> {
    let mut entering: Vec<Vec<(&Flow, u16)>> = network.nodes.iter().map(|_| Vec::new()).collect();
    // Only switches with TSN ports need it.
    let is_asked = |node: NodeIndex| match network.nodes.get(usize::from(node)).map(|node| &node.kind) {
        Some(NodeKind::Switch(model)) => !model.tsn.is_empty(),
        _ => false,
    };
    for flow in &run.flows {
        for hop in flow.routes.iter().flat_map(|route| &route.hops).filter(|hop| is_asked(hop.to.node)) {
            let here = &mut entering[usize::from(hop.to.node)];
            if here.last().is_none_or(|(last, _)| !std::ptr::eq(*last, flow)) {
                here.push((flow, hop.to.port));
            }
        }
    }
    entering
}

fn copied<'a>(network: &Network, run: &'a Run) -> Vec<Vec<&'a Flow>> {
    let mut copied: Vec<Vec<&Flow>> = network.nodes.iter().map(|_| Vec::new()).collect();
    for (flow, frer) in run.flows.iter().filter_map(|flow| Some((flow, flow.frer?))) {
        let junctions = frer.junctions(&flow.routes).into_keys();
        for node in BTreeSet::from_iter(junctions.chain([frer.replicate_at, frer.eliminate_at])) {
            copied.get_mut(usize::from(node)).into_iter().for_each(|here| here.push(flow));
        }
    }
    copied
}

fn own<'a>(network: &Network, run: &'a Run) -> Vec<Vec<&'a Flow>> {
    let mut own: Vec<Vec<&Flow>> = network.nodes.iter().map(|_| Vec::new()).collect();
    for flow in &run.flows {
        let ends: BTreeSet<NodeIndex> = flow.receivers().chain([flow.from]).collect();
        for end in ends {
            if let Some(of_end) = own.get_mut(usize::from(end)) {
                of_end.push(flow);
            }
        }
    }
    own
}

/// Where frames to a station leave, by node; one entry for each VLAN on their way.
type Stations = Vec<BTreeSet<(u16, NodeIndex, u16)>>;

/// Station entries for the routes of a run: those of flows, of frames that relays return and misdirect, of background
/// load and of logs.
fn stations(network: &Network, run: &Run) -> Stations {
    let mut stations: Stations = vec![BTreeSet::new(); network.nodes.len()];
    let mut enter = |route: &Route, vlan: u16| {
        let Some(to) = route.receiver() else { return };
        for hop in &route.hops {
            if let Some(of_node) = stations.get_mut(usize::from(hop.from.node)) {
                of_node.insert((vlan, to, hop.from.port));
            }
        }
    };
    let vlan = |flow: &Flow| flow.vlan.map_or(0, |tag| tag.id);
    let mut relays: BTreeMap<FlowId, Vec<&Relay>> = BTreeMap::new();
    run.relays.iter().for_each(|relay| relays.entry(relay.flow).or_default().push(relay));
    for flow in run.flows.iter().filter(|flow| traffic_class(flow.protocol) == TrafficClass::BestEffort) {
        let by_station = flow.also_to.is_empty() && flow.frer.is_none();
        flow.routes.iter().filter(|_| by_station).for_each(|route| enter(route, vlan(flow)));
        for relay in relays.get(&flow.id).into_iter().flatten() {
            flow.routes_to(relay.on).for_each(|route| enter(&route.reversed(), vlan(flow)));
            relay.detours.iter().for_each(|route| enter(route, vlan(flow)));
        }
    }
    run.injects.iter().for_each(|inject| enter(&inject.route, 0));
    run.remote_logs.iter().for_each(|log| enter(&log.route, 0));
    stations
}

/// Builds the switch.
pub(super) fn switch(world: &World, site: &Site<'_>) -> Result<(SwitchCore, Filtered), SimError> {
    let Site { model, ports, node, .. } = *site;
    let own = &ports[usize::from(node)];
    let mut forwarding = match &model.address_table {
        Some(table) => Forwarding::limited(own.len(), limits(table)),
        None => Forwarding::new(own.len(), model.learning.then_some(LEARNING)),
    };
    let mut vlans = BTreeSet::from([0]);
    for vlan in &model.vlans {
        let members = vlan.ports.iter().map(|&number| position(own, number));
        forwarding.set_vlan(vlan.id, PortSet::of(own.len(), members));
        vlans.insert(vlan.id);
    }
    let passages = &site.tables.passages[usize::from(node)];
    if !model.learning {
        for &(vlan, station, port) in &site.tables.stations[usize::from(node)] {
            let address = world.addresses[usize::from(station)];
            forwarding.set_station(vlan, address, position(own, port));
        }
        for &vlan in &vlans {
            for Passage { flow, address, leaves, .. } in passages {
                let members = match *address == MacAddress::BROADCAST {
                    true => PortSet::all(own.len()),
                    false => PortSet::of(own.len(), leaves.iter().copied()),
                };
                for further in 0..u64::from(flow.addresses.macs.destination.unwrap_or(1)) {
                    forwarding.set_group(vlan, address.offset_by(further), members.clone());
                }
            }
        }
    }
    let config = switch_config(model);
    let can = Capabilities::of(model);
    let critical = if can.virtual_links { Some(ingress(site, passages, &mut forwarding)?) } else { None };
    let (filters, filtered) =
        stream_filters::filters((world, site.network), ports, node, model, &site.tables.flows)?;
    let rules = IngressRules { critical, streams: filters.map(Box::new) };
    let streams = streams(world, site);
    let egress = own.iter().map(|&(number, channel)| {
        let line = world.channels[channel].line;
        let at = Attachment { node, port: number };
        let (config, others) = match model.tsn_of(number) {
            None => (port_config(model, line), Selection::StrictPriority(StrictPriority)),
            Some(tsn) => {
                let limit = model.port_buffer;
                let queue = model.queue_buffer.unwrap_or(limit);
                let port = traffic_classes::port(tsn, &streams, at, line, limit, queue)?;
                (traffic_classes::critical(port.0, tsn, can.virtual_links), port.1)
            }
        };
        let windows = if can.windows { site.tables.windows(at) } else { &[] };
        let raster = model.raster.filter(|_| can.windows);
        Ok(Port::new(config, selection(windows, at, line, (model.integration, raster), others)?))
    });
    let egress = egress.collect::<Result<Vec<_>, SimError>>()?;
    let clock = world.nodes[usize::from(node)].shared_clock();
    Ok((SwitchCore::new(config, egress, forwarding, rules, clock), filtered))
}

const fn limits(table: &AddressTable) -> TableLimits {
    TableLimits { entries: table.entries as usize, entry_time: table.entry_time, ageing: table.ageing }
}

/// Flows that pass a switch, with the identification of their frames.
fn streams(world: &World, site: &Site<'_>) -> Streams {
    let mut streams = Streams::new();
    for &(flow, enters) in &site.tables.entering[usize::from(site.node)] {
        // The first entry of a number is the flow; a virtual link back from its relay is ignored.
        streams.entry(flow.id).or_insert_with(|| Stream {
            destination: destination(flow, &world.addresses),
            vlan: flow.vlan.map_or(0, |tag| tag.id),
            enters,
        });
    }
    streams
}

/// Flows whose address belongs to no station, as they pass each node, in the order of the plan.
fn passages<'a>(network: &Network, run: &'a Run, ports: &Ports) -> Vec<Vec<Passage<'a>>> {
    let stations: Vec<MacAddress> = network.nodes.iter().map(|node| node.mac).collect();
    let mut passages: Vec<Vec<Passage<'a>>> = ports.iter().map(|_| Vec::new()).collect();
    for flow in &run.flows {
        let grouped = matches!(flow.protocol, Protocol::Rc | Protocol::Tt)
            || !flow.also_to.is_empty()
            || flow.addresses.mac.destination.is_some()
            || flow.frer.is_some();
        if !grouped {
            continue;
        }
        let address = destination(flow, &stations);
        let addresses = (0..flow.routes.len()).map(|member| {
            let streams = flow.frer.map(|frer| frer.addresses(flow, member));
            streams.unwrap_or_else(|| vec![address; flow.routes[member].hops.len()])
        });
        let steps = flow.routes.iter().zip(addresses).flat_map(|(route, addresses)| {
            route.hops.windows(2).zip(addresses.into_iter().skip(1)).collect::<Vec<_>>()
        });
        for (steps, address) in steps {
            let [into, out] = steps else { continue };
            let node = usize::from(into.to.node);
            let (Some(own), Some(here)) = (ports.get(node), passages.get_mut(node)) else { continue };
            // Flows are handled one by one, so an entry of this flow can only be the last.
            let same =
                |passage: &&mut Passage<'_>| std::ptr::eq(passage.flow, flow) && passage.address == address;
            let known = here.iter_mut().rev().take(Frer::MOST_MEMBERS + 1).find(same);
            let leaves = position(own, out.from.port);
            if let Some(passage) = known {
                passage.leaves.insert(leaves);
                continue;
            }
            let enters = position(own, into.to.port);
            here.push(Passage { flow, address, enters, leaves: BTreeSet::from([leaves]) });
        }
    }
    passages
}

fn ingress(
    site: &Site<'_>,
    passages: &[Passage<'_>],
    forwarding: &mut Forwarding,
) -> Result<CriticalIngress, SimError> {
    let own = &site.ports[usize::from(site.node)];
    let mut tables: Vec<InputTable> = own.iter().map(|_| InputTable::default()).collect();
    for Passage { flow, enters, leaves, .. } in passages {
        let group = |forwarding: &mut Forwarding| {
            forwarding.add_group(PortSet::of(own.len(), leaves.iter().copied()))
        };
        match (flow.protocol, &flow.virtual_link, &flow.schedule) {
            (Protocol::Rc, Some(link), _) => tables[*enters].virtual_links.push(VirtualLinkEntry {
                entry: Entry {
                    virtual_link: VirtualLinkId(link.id),
                    lmin: SMALLEST_FRAME,
                    lmax: link.contract.lmax(),
                },
                account: account(link, site.model.policing)?,
                // A group needs a look-up, and most flows leave a switch by one port.
                to: match leaves.first() {
                    Some(only) if leaves.len() == 1 => Egress::Port(*only),
                    _ => Egress::Group(group(forwarding)),
                },
            }),
            (Protocol::Tt, _, Some(schedule)) => {
                let at = Attachment { node: site.node, port: own[*enters].0 };
                tables[*enters].time_triggered.push(TimeTriggeredEntry {
                    id: schedule.id,
                    longest_frame: schedule.longest_frame,
                    window: acceptance(schedule, at)?,
                    group: group(forwarding),
                });
            }
            (Protocol::Rc | Protocol::Tt, ..) => {
                return Err(SimError::plan(format!("flow {} has no contract or no schedule", flow.id)));
            }
            _ => {}
        }
    }
    CriticalIngress::new(tables).map_err(|error| SimError::plan(format!("switch {}: {error}", site.node)))
}

fn account(link: &VirtualLink, policing: Policing) -> Result<Option<Account>, SimError> {
    let Some(mode) = policing.mode() else { return Ok(None) };
    let account = Account::new(link.contract, link.jitter, mode);
    account.map(Some).map_err(|error| SimError::plan(format!("virtual link {}: {error}", link.id)))
}

/// Acceptance window of a port for frames of a schedule, if the plan states one.
pub(super) fn acceptance(
    schedule: &wg_plan::TimeTriggered,
    at: Attachment,
) -> Result<Option<AcceptanceWindow>, SimError> {
    let Some(reception) = schedule.receptions.iter().find(|reception| reception.at == at) else {
        return Ok(None);
    };
    Instants::new(reception.offset, schedule.period)
        .and_then(|instants| AcceptanceWindow::new(instants, schedule.early, schedule.late))
        .map(Some)
        .map_err(|error| SimError::plan(format!("critical-traffic identifier {}: {error}", schedule.id)))
}

/// Transmission selection of a port: its windows, if it has any, and the selection for other frames around them.
pub(super) fn selection(
    windows: &[Window],
    at: Attachment,
    line: LineRate,
    (integration, raster): (Integration, Option<DeltaRaster>),
    others: Selection,
) -> Result<Selection, SimError> {
    let named = |error: &dyn std::fmt::Display| {
        SimError::plan(format!("port {} of node {}: {error}", at.port, at.node))
    };
    if windows.is_empty() && raster.is_none() {
        return Ok(others);
    }
    let cycle = windows.iter().try_fold(None, |cycle: Option<i64>, window| {
        let period = window.period.as_picos();
        match cycle {
            None => Some(Some(period)),
            Some(cycle) => least_common_multiple(cycle, period).map(Some),
        }
    });
    let cycle = cycle.ok_or_else(|| named(&"the cycle of its windows is longer than 106 days"))?;
    // A raster alone needs a cycle too, of any length.
    let cycle = cycle.map_or(Span::from_millis(1), Span::from_picos);
    let schedule = PortSchedule::new(cycle, windows.to_vec(), line.bits_per_second())
        .map_err(|faults| faults.first().map_or_else(|| named(&"no schedule"), |fault| named(fault)))?;
    let windows = WindowConfig { schedule, integration, raster, frames: 1, missed: Missed::Keep };
    Ok(match others {
        Selection::TrafficClasses(classes) => {
            Selection::Converged(Box::new(TimeTriggered::with(windows, *classes)))
        }
        Selection::StrictPriority(_) => Selection::TimeTriggered(Box::new(TimeTriggered::new(windows))),
        Selection::TimeTriggered(_) | Selection::Converged(_) => {
            return Err(named(&"windows around a selection that has windows"));
        }
    })
}

fn least_common_multiple(a: i64, b: i64) -> Option<i64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    if divisor == 0 { None } else { (a / divisor).checked_mul(b) }
}

#[cfg(test)]
mod tests;
