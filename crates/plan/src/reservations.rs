//! Stream reservations: credit-based shapers of the ports on the ways of reserved streams (IEEE Std 802.1Q-2022, clauses 34
//! and 35).
//!
//! A talker says how long its frames are (`MaxFrameSize`) and how many come in a class measurement interval
//! (`MaxIntervalFrames`). Every port on the way gives the class of the stream so much bandwidth more: the idle slope of a class
//! is the sum over its streams (34.3), and MSRP would have come to the same, port by port. The protocol itself is not played:
//! a reservation that a port has no room for is an error of the test and not a listener without a stream.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::line::bytes;
use wg_frame::{ethernet, rtag, vlan};

use crate::campaign::{Flow, FlowId, Pattern, Run, Send};
use crate::diagnostic::{Findings, Place};
use crate::host_tsn::{HostTsn, Shaper, TrafficClass};
use crate::network::{Attachment, Network, NodeKind, SwitchModel};
use crate::quantity;
use crate::statements::{ReservationStatement, Statements};
use crate::stream_class::StreamClass;
use crate::switch_tsn::{PortClass, PortTsn};
use crate::wire::{AROUND_FRAME, frame_length};

/// Destination and source address, tag, EtherType and FCS.
const AROUND_PAYLOAD: u32 = bytes(ethernet::FRAME_OVERHEAD + vlan::TAG_LEN);
const REDUNDANCY_TAG: u32 = bytes(rtag::TAG_LEN);
const SMALLEST_FRAME: u32 = bytes(ethernet::MIN_FRAME_LEN);
/// The longest frame of other traffic on the wire, as Linux has it by default.
const LONGEST_ON_WIRE: u32 = 1_542;

/// What a stream is given at every port on its way.
struct Reserved<'a> {
    statement: &'a ReservationStatement,
    flow: FlowId,
    /// A frame on the wire, with preamble and gap, bytes.
    on_wire: u32,
    bps: u64,
    ports: BTreeSet<Attachment>,
}

/// What a port gives its classes.
#[derive(Default)]
struct Granted {
    bps: BTreeMap<StreamClass, u64>,
    longest: BTreeMap<StreamClass, u32>,
}

/// Gives every port on the way of a reserved stream the shapers that it needs.
pub(crate) fn apply(test: &Statements, network: &mut Network, runs: &[Run], found: &mut Findings) {
    let statements: BTreeMap<FlowId, &ReservationStatement> = test
        .flows
        .iter()
        .filter_map(|flow| Some((flow.id.as_ref()?.value, flow.reservation.as_ref()?)))
        .collect();
    let Some(first) = runs.first().filter(|_| !statements.is_empty()) else { return };
    let reserved: Vec<Reserved<'_>> =
        statements.iter().filter_map(|(flow, one)| reserve(*flow, one, runs, found)).collect();
    let mut ports: BTreeMap<Attachment, Granted> = BTreeMap::new();
    for one in &reserved {
        for port in &one.ports {
            if !grant(one, *port, ports.entry(*port).or_default(), (network, runs, test.reservable), found) {
                return;
            }
        }
    }
    check_others(first, &statements, &ports, network, found);
    for (port, granted) in &ports {
        let place = reserved.iter().find(|one| one.ports.contains(port)).map(|one| &one.statement.place);
        let Some(place) = place else { continue };
        let name = network.nodes[usize::from(port.node)].name.clone();
        match &mut network.nodes[usize::from(port.node)].kind {
            NodeKind::Switch(model) => shape_switch(model, *port, granted, (&name, place), found),
            NodeKind::EndSystem { .. } => {}
            NodeKind::Hub { .. } => {
                let message = format!("hub \"{name}\" has no queues to shape");
                found.error(place, message, "switches of kind cots", "put a switch in its place");
            }
        }
        if let NodeKind::EndSystem { .. } = network.nodes[usize::from(port.node)].kind {
            let tsn = network.nodes[usize::from(port.node)].tsn.get_or_insert_default();
            shape_host(tsn, granted, (&name, place), found);
        }
    }
}

fn reserve<'a>(
    id: FlowId,
    statement: &'a ReservationStatement,
    runs: &[Run],
    found: &mut Findings,
) -> Option<Reserved<'a>> {
    let place = &statement.place;
    let of_run = |run: &'_ Run| run.flows.iter().position(|flow| flow.id == id);
    let flow: &Flow = runs.first().and_then(|run| run.flows.get(of_run(run)?))?;
    if flow.is_loopback() {
        let message = format!("flow {id} comes to no link, so there is nothing to reserve");
        found.error(place, message, "", "remove the reservation, or send it to another end system");
        return None;
    }
    if runs.iter().any(|run| run.relays.iter().any(|relay| relay.flow == id)) {
        let message = format!("flow {id} is relayed, and its reservation is for one direction");
        found.error(place, message, "", "reserve another flow for the answers, or remove the reservation");
        return None;
    }
    let mut longest = 0;
    for run in runs {
        for send in run.sends.iter().filter(|send| send.flow == id) {
            let sent = frame_length(flow.protocol, flow.vlan, send.payload);
            if !check_sender(statement, flow, (send, sent), found) {
                return None;
            }
            longest = longest.max(sent);
        }
    }
    let own = statement.max_frame_size.map(|size| (size + AROUND_PAYLOAD).max(SMALLEST_FRAME));
    let tag = if flow.frer.is_some() { REDUNDANCY_TAG } else { 0 };
    let on_wire = own.unwrap_or(longest) + tag + AROUND_FRAME;
    let per_interval = u64::from(on_wire) * 8 * u64::from(statement.interval_frames);
    Some(Reserved {
        statement,
        flow: id,
        on_wire,
        bps: per_interval * statement.class.intervals_a_second(),
        ports: flow.routes.iter().flat_map(|route| &route.hops).map(|hop| hop.from).collect(),
    })
}

/// A talker keeps to what it asked for: frames no longer, and on average no more of them.
fn check_sender(
    statement: &ReservationStatement,
    flow: &Flow,
    (send, sent): (&Send, u32),
    found: &mut Findings,
) -> bool {
    let (place, class) = (&statement.place, statement.class);
    if let Some(size) = statement.max_frame_size
        && sent > (size + AROUND_PAYLOAD).max(SMALLEST_FRAME)
    {
        let message =
            format!("frames of flow {} have {sent} B, {} B of payload", flow.id, sent - AROUND_PAYLOAD);
        found.error(place, message, format!("max-frame-size {size}B"), "raise it, or send shorter messages");
        return false;
    }
    let burst = match send.pattern {
        Pattern::Bursts { size, .. } => u64::from(size),
        _ => 1,
    };
    let (period, interval) = (send.period.as_picos(), class.interval().as_picos());
    let frames = u64::from(statement.interval_frames);
    if u128::from(burst) * u128::from(interval.unsigned_abs())
        > u128::from(frames) * u128::from(period.unsigned_abs())
    {
        let message = format!("flow {} sends {burst} messages every {}", flow.id, send.period);
        let limit =
            format!("{frames} in {}, the measurement interval of class {}", class.interval(), class.name());
        found.error(place, message, limit, "raise interval-frames, or send less often");
        return false;
    }
    if burst > frames {
        found.warn(format!(
            "flow {} sends {burst} messages at once and has reserved {frames} in {}: they wait for the shaper of their sender",
            flow.id,
            class.interval()
        ));
    }
    true
}

/// Adds a stream to what a port gives; whether there is room for it.
fn grant(
    one: &Reserved<'_>,
    port: Attachment,
    granted: &mut Granted,
    (network, runs, share): (&Network, &[Run], u32),
    found: &mut Findings,
) -> bool {
    let before: u64 = granted.bps.values().sum();
    *granted.bps.entry(one.statement.class).or_default() += one.bps;
    let longest = granted.longest.entry(one.statement.class).or_default();
    *longest = (*longest).max(one.on_wire);
    let own = network.links.iter().find(|link| link.ends.contains(&port)).map(|link| link.rate);
    let rate = runs.iter().filter_map(|run| run.link_rate.or(own)).map(|rate| rate.bits_per_second()).min();
    let most = u128::from(rate.unwrap_or(0)) * u128::from(share) / 1_000_000;
    if u128::from(before + one.bps) <= most {
        return true;
    }
    let message = format!(
        "flow {} needs {} at port {}:{}, where {} are reserved",
        one.flow,
        quantity::show_rate(one.bps),
        network.nodes[usize::from(port.node)].name,
        port.port,
        quantity::show_rate(before)
    );
    let limit = format!("{} of {}", quantity::show_ppm(share), quantity::show_rate(rate.unwrap_or(0)));
    let cure = "reserve less, use a faster link, or raise reservable of <flows>";
    found.error(&one.statement.place, message, limit, cure);
    false
}

/// Other flows leave the priorities of reserved streams alone.
fn check_others(
    run: &Run,
    statements: &BTreeMap<FlowId, &ReservationStatement>,
    ports: &BTreeMap<Attachment, Granted>,
    network: &Network,
    found: &mut Findings,
) {
    for flow in run.flows.iter().filter(|flow| !statements.contains_key(&flow.id)) {
        let Some(tag) = flow.vlan else { continue };
        let is_of = |class: &StreamClass| class.priority() == tag.priority;
        let shared = flow.routes.iter().flat_map(|route| &route.hops).find_map(|hop| {
            let class = ports.get(&hop.from)?.bps.keys().copied().find(is_of)?;
            Some((hop.from, class))
        });
        let Some((port, class)) = shared else { continue };
        let whose = statements.values().find(|one| one.class == class);
        let Some(whose) = whose else { continue };
        let message = format!(
            "flow {} has priority {} at port {}:{}, that of class {}, and no reservation",
            flow.id,
            tag.priority,
            network.nodes[usize::from(port.node)].name,
            port.port,
            class.name()
        );
        let cure = "give it another priority, or a <stream-reservation>";
        found.error(&whose.place, message, "reserved streams only", cure);
    }
}

/// Priorities of the classes of a port, and what each is given: all others, then B, then A.
fn classes(granted: &Granted) -> Vec<(Vec<u8>, Option<StreamClass>)> {
    let reserved: Vec<StreamClass> = granted.bps.keys().copied().collect();
    let others = (0..8).filter(|priority| reserved.iter().all(|class| class.priority() != *priority));
    let mut classes = vec![(others.collect(), None)];
    classes.extend(reserved.into_iter().map(|class| (vec![class.priority()], Some(class))));
    classes
}

fn shape_switch(
    model: &mut SwitchModel,
    port: Attachment,
    granted: &Granted,
    (name, place): (&str, &Place),
    found: &mut Findings,
) {
    if model.tsn_of(port.port).is_some() {
        return own_classes(&format!("{name}:{}", port.port), place, found);
    }
    let shape = |(priorities, class): (Vec<u8>, Option<StreamClass>)| PortClass {
        priorities,
        virtual_links: Vec::new(),
        idle_slope_bps: class.map(|class| granted.bps[&class]),
        longest_frame: None,
        preemptable: false,
        asynchronous: None,
    };
    let filters = model.filters_of(port.port).to_vec();
    // Filters of a port stay with it.
    model.tsn.retain_mut(|tsn| {
        let named = !tsn.ports.is_empty();
        tsn.ports.retain(|own| *own != port.port);
        !named || !tsn.ports.is_empty()
    });
    model.tsn.push(PortTsn {
        ports: vec![port.port],
        classes: classes(granted).into_iter().map(shape).collect(),
        filters,
        ..PortTsn::default()
    });
}

fn shape_host(tsn: &mut HostTsn, granted: &Granted, (name, place): (&str, &Place), found: &mut Findings) {
    if !tsn.classes.is_empty() {
        return own_classes(name, place, found);
    }
    let shape = |(priorities, class): (Vec<u8>, Option<StreamClass>)| TrafficClass {
        priorities,
        queues: 1,
        shaper: class.map(|class| Shaper::Cbs {
            idle_slope_bps: granted.bps[&class],
            max_frame: granted.longest[&class],
            max_interference: LONGEST_ON_WIRE,
            offload: false,
        }),
        preemptable: false,
    };
    tsn.classes = classes(granted).into_iter().map(shape).collect();
}

fn own_classes(whose: &str, place: &Place, found: &mut Findings) {
    let message = format!("\"{whose}\" has traffic classes of its own, and reservations would set them");
    let cure = "remove its <traffic-class> elements, or the reservation";
    found.error(place, message, "1 of the two", cure);
}
