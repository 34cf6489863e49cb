//! Checks of stream filters against the flows that enter by their ports (IEEE Std 802.1Q-2022, 8.6.5.2). Their types are in
//! `stream_filter`.

use crate::campaign::{Flow, Protocol, Run};
use crate::diagnostic::{Findings, Place};
use crate::ip_stream::IpHeaders;
use crate::quantity;
use crate::site::{Site, longest_frame, stream};
use crate::stream_filter::{HeaderField, Identify, StreamFilter};

/// Checks the filters of a switch against the flows of a run.
pub(crate) fn check(site: &Site<'_>, run: &Run, found: &mut Findings) {
    let entering = entering(site, run);
    for (filter, place) in site.tsn().filters.iter().zip(&site.statement.filters) {
        let Some(&(port, flow)) = entering.iter().find(|(_, flow)| flow.id == filter.flow) else {
            let message = format!("no flow {} enters \"{}\" by these ports", filter.flow, site.name());
            found.error(place, message, "", "name a flow that passes here, or remove the filter");
            continue;
        };
        let refused = match (flow.protocol, &flow.frer) {
            (Protocol::Rc | Protocol::Tt, _) => {
                Some("is known by its identifier and policed by its own rules")
            }
            (_, Some(_)) => Some("has member streams, each with an address of its own"),
            _ => None,
        };
        if let Some(why) = refused {
            let cure = "remove the filter, or write protocol=\"raw\" or \"udp\" without <frer>";
            found.error(place, format!("flow {} {why}", flow.id), "1 stream for a filter", cure);
            continue;
        }
        if filter.identify == Identify::Ip && flow.protocol == Protocol::Raw {
            let message = format!("flow {} is raw: its frames carry no datagram", flow.id);
            let cure = "write protocol=\"udp\" or \"be\", or another identify";
            found.error(place, message, "IP stream identification of udp and be flows", cure);
            continue;
        }
        let alike = |other: &&(u16, &Flow)| {
            other.0 == port && other.1.id != flow.id && is_alike(site, filter, flow, other.1)
        };
        if let Some((_, other)) = entering.iter().find(alike) {
            let what = match filter.identify {
                Identify::Destination => "destination address and VLAN".to_owned(),
                Identify::Source => "source address and VLAN".to_owned(),
                Identify::Ip if filter.fields.is_empty() => "headers".to_owned(),
                Identify::Ip => named(&filter.fields),
            };
            let message = format!(
                "\"{}\" cannot tell flow {} from flow {}: same {what} at port {port}",
                site.name(),
                flow.id,
                other.id
            );
            let cure = match filter.identify {
                Identify::Ip => "give one of them a destination-port of its own, or compare more fields",
                _ => "give one of them a vlan or a destination-mac of its own, or write another identify",
            };
            found.error(place, message, "", cure);
            continue;
        }
        check_rates(site, (filter, place), port, run, found);
        check_priority(site, (filter, place), found);
        warn_of_lengths(site, filter, flow, run, found);
    }
}

/// Flows with the ports by which they enter, each pair once.
fn entering<'a>(site: &Site<'_>, run: &'a Run) -> Vec<(u16, &'a Flow)> {
    let mut entering: Vec<(u16, &Flow)> = Vec::new();
    for flow in &run.flows {
        for hop in flow.routes.iter().flat_map(|route| &route.hops) {
            let is_new = !entering.iter().any(|(port, known)| *port == hop.to.port && known.id == flow.id);
            if hop.to.node == site.node && site.applies(hop.to.port) && is_new {
                entering.push((hop.to.port, flow));
            }
        }
    }
    entering
}

/// Whether a switch takes the frames of one flow for those of the other. Critical traffic is no stream's, and member streams
/// have addresses of their own.
fn is_alike(site: &Site<'_>, filter: &StreamFilter, flow: &Flow, other: &Flow) -> bool {
    if matches!(other.protocol, Protocol::Rc | Protocol::Tt) {
        return false;
    }
    let vlan = |flow: &Flow| flow.vlan.map_or(0, |tag| tag.id);
    match filter.identify {
        Identify::Ip => {
            let headers = |flow| IpHeaders::of(site.network, flow);
            // Member streams have an address each, so they differ where it is compared.
            let by_mac = filter.fields.is_empty() || filter.fields.contains(&HeaderField::DestinationMac);
            let told = other.frer.is_some() && by_mac;
            let both = headers(flow).zip(headers(other));
            !told && both.is_some_and(|(own, other)| own.is_alike(&other, &filter.fields))
        }
        Identify::Destination => other.frer.is_none() && stream(flow) == stream(other),
        Identify::Source => flow.from == other.from && vlan(flow) == vlan(other),
    }
}

/// Fields as the test language names them.
fn named(fields: &[HeaderField]) -> String {
    let names = HeaderField::ALL.iter().filter(|(_, field)| fields.contains(field)).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(", ")
}

/// What a meter allows is less than what the line can bring.
fn check_rates(
    site: &Site<'_>,
    (filter, place): (&StreamFilter, &Place),
    port: u16,
    run: &Run,
    found: &mut Findings,
) {
    let Some(meter) = filter.meter_among(&site.tsn().filters) else { return };
    let Some(line) = site.lines().get(&port).copied() else { return };
    let line = run.link_rate.unwrap_or(line).bits_per_second();
    for (rate, of) in [(meter.rate_bps, "rate"), (meter.excess_rate_bps, "excess-rate")] {
        if rate > line {
            let message = format!(
                "the {of} {} of flow {} is above that of its link: no frame would ever exceed it",
                quantity::show_rate(rate),
                filter.flow
            );
            let limit = format!("the {} of the link at port {port}", quantity::show_rate(line));
            found.error(place, message, limit, format!("lower {of}"));
        }
    }
}

/// An internal priority needs queues to choose among.
fn check_priority(site: &Site<'_>, (filter, place): (&StreamFilter, &Place), found: &mut Findings) {
    let changes = filter.gate.iter().flat_map(|gate| &gate.entries).any(|entry| entry.priority.is_some());
    if changes && !site.has_queues {
        let message = format!("\"{}\" has one queue at each port: a priority changes nothing", site.name());
        let cure =
            "write priorities=\"strict\" at the switch, add <traffic-class> elements, or remove priority";
        found.error(place, message, "more than 1 queue", cure);
    }
}

/// Frames that can never pass: a test may want that.
fn warn_of_lengths(site: &Site<'_>, filter: &StreamFilter, flow: &Flow, run: &Run, found: &mut Findings) {
    let Some(length) = longest_frame(run, flow) else { return };
    let all = &site.tsn().filters;
    let sdu = length.saturating_sub(if flow.vlan.is_some() { 22 } else { 18 });
    let whose = format!("flow {} at \"{}\"", flow.id, site.name());
    if let Some(most) = filter.max_sdu
        && sdu > u32::from(most)
    {
        found.warn(format!(
            "the service data units of {whose} have {sdu} B, {most} B may enter: all are dropped there"
        ));
    }
    if let Some(meter) = filter.meter_among(all)
        && length > meter.burst.max(meter.excess_burst)
    {
        let most = meter.burst.max(meter.excess_burst);
        found.warn(format!(
            "the frames of {whose} have {length} B, more than the {most} B of its buckets: all are red there"
        ));
    }
    let gate = filter.gate_among(all);
    let entries = || gate.iter().flat_map(|gate| &gate.entries).filter(|entry| entry.open);
    if entries().count() > 0 && entries().all(|entry| entry.max_octets.is_some_and(|most| sdu > most)) {
        found.warn(format!(
            "the service data units of {whose} have {sdu} B, more than max-octets of its gate: all are dropped there"
        ));
    }
}
