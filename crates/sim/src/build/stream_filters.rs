//! Filters of streams at the input ports of a switch.

use std::collections::BTreeMap;

use wg_core::clock::LocalTime;
use wg_core::psfp::{
    Identification, Instance, MeterConfig, StreamFilterConfig, StreamFilters, StreamGateConfig,
    StreamGateEntry,
};
use wg_plan::{
    FilterGate, FilterGateEntry, Flow, FlowId, FlowMeter, Identify, IpHeaders, Network, NodeIndex,
    StreamFilter, SwitchModel,
};

use super::places::Ports;
use super::places::destination;
use crate::error::SimError;
use crate::world::World;

/// Flow and port number of each stream filter.
pub(super) type Filtered = Vec<(FlowId, u16)>;

/// The stream filters of a switch, if any, with the flow and port number of each.
pub(super) fn filters(
    (world, network): (&World, &Network),
    ports: &Ports,
    node: NodeIndex,
    model: &SwitchModel,
    flows: &BTreeMap<FlowId, Vec<&Flow>>,
) -> Result<(Option<StreamFilters>, Filtered), SimError> {
    let (mut entering, mut names) = (Vec::new(), Filtered::new());
    for (index, &(number, _)) in ports[usize::from(node)].iter().enumerate() {
        for filter in model.filters_of(number) {
            let enters = |flow: &&&Flow| {
                let mut hops = flow.routes.iter().flat_map(|route| &route.hops);
                hops.any(|hop| hop.to.node == node && hop.to.port == number)
            };
            if let Some(flow) = flows.get(&filter.flow).into_iter().flatten().find(enters) {
                entering.push((filter, *flow, index));
                names.push((flow.id, number));
            }
        }
    }
    // A filter that is not here gets a number that the core refuses.
    let place_of = |other: FlowId| names.iter().position(|(flow, _)| *flow == other).unwrap_or(usize::MAX);
    let configs: Vec<StreamFilterConfig> = entering
        .into_iter()
        .map(|(filter, flow, port)| {
            let gate_of = filter.gate_of.map(place_of).map(Instance::Of);
            let meter_of = filter.meter_of.map(place_of).map(Instance::Of);
            StreamFilterConfig {
                port,
                streams: streams(world, network, filter, flow),
                max_sdu: filter.max_sdu,
                block_oversize: filter.block_oversize,
                gate: filter.gate.as_ref().map(|own| Instance::Own(gate(own))).or(gate_of),
                meter: filter.meter.as_ref().map(|own| Instance::Own(meter(own))).or(meter_of),
            }
        })
        .collect();
    if configs.is_empty() {
        return Ok((None, names));
    }
    let filters = StreamFilters::new(configs)
        .map_err(|error| SimError::plan(format!("stream filters of node {node}: {error}")))?;
    Ok((Some(filters), names))
}

/// Stream identifications of the frames of a flow.
fn streams(world: &World, network: &Network, filter: &StreamFilter, flow: &Flow) -> Vec<Identification> {
    let vlan = flow.vlan.map_or(0, |tag| tag.id);
    match filter.identify {
        Identify::Destination => vec![Identification::Destination(destination(flow, &world.addresses), vlan)],
        Identify::Source => {
            let own = world.addresses[usize::from(flow.from)];
            vec![Identification::Source(flow.addresses.mac.source.unwrap_or(own), vlan)]
        }
        Identify::Ip => {
            let headers = IpHeaders::of(network, flow);
            let alike = headers.iter().flat_map(|headers| world.headers.alike(headers, &filter.fields));
            alike.map(Identification::Headers).collect()
        }
    }
}

fn gate(gate: &FilterGate) -> StreamGateConfig {
    let entry = |entry: &FilterGateEntry| StreamGateEntry {
        open: entry.open,
        priority: entry.priority,
        length: entry.length,
        max_octets: entry.max_octets,
    };
    StreamGateConfig {
        base: LocalTime::ZERO + gate.base_time,
        entries: gate.entries.iter().map(entry).collect(),
        close_on_invalid: gate.close_on_invalid,
        close_on_octets: gate.close_on_octets,
    }
}

const fn meter(meter: &FlowMeter) -> MeterConfig {
    MeterConfig {
        committed_rate_bps: meter.rate_bps,
        committed_burst: meter.burst,
        excess_rate_bps: meter.excess_rate_bps,
        excess_burst: meter.excess_burst,
        coupling: meter.coupling,
        colour_aware: meter.colour_aware,
        drop_on_yellow: meter.drop_on_yellow,
        mark_all_red: meter.mark_all_red,
    }
}
