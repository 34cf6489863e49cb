//! `<host-tsn>`: what an interface of Linux is to do with the frames that leave and arrive.
//!
//! What concerns the settings alone is checked here; what concerns flows and the rate of the link, where those are known
//! (`host_tsn::check`).

use std::collections::BTreeMap;

use wg_core::selection::MacOperation;
use wg_frame::time::Span;

use super::parts::only;
use super::tsn::{
    PreemptionOf, beyond_usual, check_cycle, check_preemption, check_priorities, class_of, classes,
    gate_entries, preemption_of, several, whole_time,
};
use crate::diagnostic::{Findings, Place, on_line};
use crate::host_tsn::{
    Classify, GateSchedule, HostTsn, IngressRule, MOST_CLASSES, MOST_GATE_ENTRIES, MOST_STREAM_GATE_ENTRIES,
    Meter, Shaper, StreamGate, StreamGateEntry, TrafficClass, TsnOffload,
};
use crate::language::attribute::Declared;
use crate::language::tsn::{
    cbs, classify as classified, etf, gate_schedule as gates, host_tsn as own, ingress as arriving, police,
    stream_gate as gate, stream_gate_entry as gate_line, traffic_class as class,
};
use crate::reader::Reader;
use crate::tree::Element;

/// The settings, and where each part of them is written.
#[derive(Clone, Debug)]
pub(crate) struct HostTsnStatement {
    pub(crate) place: Place,
    pub(crate) tsn: HostTsn,
    pub(crate) classes: Vec<Place>,
    pub(crate) entries: Vec<Place>,
    pub(crate) classify: Vec<Place>,
    pub(crate) ingress: Vec<Place>,
    /// Nothing of it was refused, so what is wrong with the flows is no consequence of it.
    pub(crate) whole: bool,
}

/// Reads the settings of an end system.
pub(crate) fn host_tsn(element: &Element, found: &mut Findings) -> Box<HostTsnStatement> {
    let clean = found.count();
    let mut reader = Reader::new(element, found);
    let channels = reader.value(&own::CHANNELS);
    let offload = reader.value(&own::OFFLOAD);
    let txtime_delay = whole_time(&mut reader, &own::TXTIME_DELAY);
    let preemption = preemption_of(&mut reader);
    let place = reader.place;
    let (classes, class_places) = classes(element, MOST_CLASSES, traffic_class, found);
    let (schedule, entries) = match only(element, "gate-schedule", found) {
        None => (None, Vec::new()),
        Some(gates) => gate_schedule(gates, element.all("traffic-class").count(), found),
    };
    let (classify, classify_places) = several(element, "classify", self::classify, found);
    let (ingress, ingress_places) = several(element, "ingress", self::ingress, found);
    let tsn = HostTsn {
        channels,
        offload: offload.unwrap_or_default(),
        txtime_delay,
        shortest_fragment: preemption.shortest_fragment,
        hold_advance: preemption.hold_advance,
        release_advance: preemption.release_advance,
        classes,
        schedule,
        classify,
        ingress,
    };
    let mut statement = HostTsnStatement {
        place,
        tsn,
        classes: class_places,
        entries,
        classify: classify_places,
        ingress: ingress_places,
        whole: true,
    };
    if found.count() == clean {
        check_classes(&statement, found);
        check_schedule(&statement, found);
        check_fragments(&statement, preemption, found);
        check_offload(&statement, found);
        check_twice(&statement, found);
    }
    statement.whole = found.count() == clean;
    Box::new(statement)
}

fn traffic_class(element: &Element, found: &mut Findings) -> Option<(u8, TrafficClass)> {
    if let Some(ats) = element.all("ats").next() {
        found.error(
            &ats.place(),
            "asynchronous shaping has no effect on a host",
            "<switch-tsn>",
            "remove it",
        );
    }
    let shapers = element.children.iter().filter(|child| matches!(child.tag.as_str(), "cbs" | "etf"));
    if let Some(second) = shapers.clone().nth(1) {
        let message = "the class has two shapers";
        found.error(&second.place(), message, "1 of <cbs> and <etf>", "keep one of them");
    }
    let shaper = shapers.clone().next().map(|child| shaper(child, found));
    let mut reader = Reader::new(element, found);
    let named = class_of(&mut reader, &class::NUMBER);
    refuse_of_switch(&mut reader, &[&class::LONGEST_FRAME]);
    refuse_virtual_links(&mut reader);
    let preemptable = reader.value(&class::PREEMPTABLE).unwrap_or_default();
    let queues = reader.value(&class::QUEUES)?;
    let (number, priorities) = named?;
    if shaper.is_some() && queues != 1 {
        let message = "a class with a shaper has several queues, each of which would get the whole of it";
        reader.found.error(&reader.place, message, "queues=\"1\"", "write queues=\"1\" or remove the shaper");
    }
    let shaper = match shaper {
        None => None,
        Some(shaper) => Some(shaper?),
    };
    Some((number, TrafficClass { priorities, queues, shaper, preemptable }))
}

/// No class of a host holds virtual links back: ARINC 664 part 7 bounds what its regulator adds to the gap between their frames,
/// the output jitter, by 500 µs, whatever else the end system sends.
fn refuse_virtual_links(reader: &mut Reader<'_>) {
    if let Some(written) = reader.text(&class::VIRTUAL_LINKS).filter(|written| !written.trim().is_empty()) {
        let message = format!(
            "virtual-links \"{written}\" would hold virtual links back in their end system, whose output jitter \
             ARINC 664 part 7 bounds"
        );
        let cure = "remove virtual-links: they go before all classes of a host";
        reader.found.error(&reader.place, message, "<switch-tsn>", cure);
    }
}

/// What only ports of a switch have.
fn refuse_of_switch(reader: &mut Reader<'_>, attributes: &[&dyn Declared]) {
    for attribute in beyond_usual(reader, attributes) {
        let message = format!("{attribute} has no effect on a host");
        reader.found.error(&reader.place, message, "<switch-tsn>", format!("remove {attribute}"));
    }
}

fn shaper(element: &Element, found: &mut Findings) -> Option<Shaper> {
    let mut reader = Reader::new(element, found);
    if element.tag == "etf" {
        let offload = reader.value(&etf::OFFLOAD).unwrap_or_default();
        let deadline = reader.value(&etf::DEADLINE).unwrap_or_default();
        let delta = whole_time(&mut reader, &etf::DELTA)?;
        return Some(Shaper::Etf { delta, offload, deadline });
    }
    let offload = reader.value(&cbs::OFFLOAD).unwrap_or_default();
    let slope = reader.read(&cbs::IDLE_SLOPE);
    let [max_frame, max_interference] = [&cbs::MAX_FRAME, &cbs::MAX_INTERFERENCE]
        .map(|frame| reader.value(frame).and_then(|bytes| u32::try_from(bytes).ok()));
    let slope = slope?;
    if slope.value == 0 || slope.value % 1_000 != 0 {
        let problem = "cannot be told to the kernel";
        let limit = "a whole number of kbit/s, more than 0";
        reader.refuse(slope.attribute, &slope.written, problem, limit, "round it up to a kbit/s");
        return None;
    }
    Some(Shaper::Cbs {
        idle_slope_bps: slope.value,
        max_frame: max_frame?,
        max_interference: max_interference?,
        offload,
    })
}

fn gate_schedule(
    element: &Element,
    classes: usize,
    found: &mut Findings,
) -> (Option<GateSchedule>, Vec<Place>) {
    refuse_of_switch(&mut Reader::new(element, found), &[&gates::CYCLE_EXTENSION]);
    let (entries, places) = gate_entries(element, classes, MOST_GATE_ENTRIES, found);
    let mut reader = Reader::new(element, found);
    let base = whole_time(&mut reader, &gates::BASE_TIME);
    (base.zip(entries).map(|(base_time, entries)| GateSchedule { base_time, entries }), places)
}

fn classify(element: &Element, found: &mut Findings) -> Option<Classify> {
    let mut reader = Reader::new(element, found);
    let (flow, priority) = (reader.value(&classified::FLOW), reader.value(&classified::PRIORITY));
    Some(Classify { flow: flow?, priority: priority? })
}

fn ingress(element: &Element, found: &mut Findings) -> Option<IngressRule> {
    let gate = only(element, "stream-gate", found).map(|gate| stream_gate(gate, found));
    let meter = only(element, "police", found).map(|police| meter(police, found));
    let mut reader = Reader::new(element, found);
    let of_switch: [&dyn Declared; 6] = [
        &arriving::IDENTIFY,
        &arriving::FIELDS,
        &arriving::MAX_SDU,
        &arriving::BLOCK_OVERSIZE,
        &arriving::GATE_OF,
        &arriving::METER_OF,
    ];
    refuse_of_switch(&mut reader, &of_switch);
    let flow = reader.value(&arriving::FLOW);
    let offload = reader.value(&arriving::OFFLOAD).unwrap_or_default();
    if gate.is_none() && meter.is_none() {
        let message = "nothing is asked of the frames of the flow";
        let cure = "add <stream-gate> or <police>, or remove the rule";
        reader.found.error(&reader.place, message, "at least 1", cure);
        return None;
    }
    let gate = gate.map_or(Some(None), |gate| gate.map(Some))?;
    let meter = meter.map_or(Some(None), |meter| meter.map(Some))?;
    Some(IngressRule { flow: flow?, offload, gate, meter })
}

fn meter(element: &Element, found: &mut Findings) -> Option<Meter> {
    let mut reader = Reader::new(element, found);
    let two_rates: [&dyn Declared; 6] = [
        &police::EXCESS_RATE,
        &police::EXCESS_BURST,
        &police::COUPLING,
        &police::COLOUR_MODE,
        &police::DROP_ON_YELLOW,
        &police::MARK_ALL_RED,
    ];
    refuse_of_switch(&mut reader, &two_rates);
    let (rate, burst) = (reader.value(&police::RATE), reader.value(&police::BURST));
    Some(Meter { rate_bps: rate?, burst: u32::try_from(burst?).ok()? })
}

fn stream_gate(element: &Element, found: &mut Findings) -> Option<StreamGate> {
    let (entries, _) = several(element, "stream-gate-entry", stream_gate_entry, found);
    let mut reader = Reader::new(element, found);
    refuse_of_switch(&mut reader, &[&gate::CLOSE_ON_INVALID, &gate::CLOSE_ON_OCTETS]);
    let base = whole_time(&mut reader, &gate::BASE_TIME);
    let lengths: Vec<Span> = entries.iter().map(|entry| entry.length).collect();
    if element.all("stream-gate-entry").count() != entries.len()
        || !check_cycle(&mut reader, &lengths, (1, MOST_STREAM_GATE_ENTRIES))
    {
        return None;
    }
    if entries.iter().all(|entry| !entry.open) {
        let cure = "write state=\"open\" in one of its entries";
        reader.found.error(&reader.place, "the gate is never open: no message would arrive", "", cure);
        return None;
    }
    Some(StreamGate { base_time: base?, entries })
}

fn stream_gate_entry(element: &Element, found: &mut Findings) -> Option<StreamGateEntry> {
    let mut reader = Reader::new(element, found);
    refuse_of_switch(&mut reader, &[&gate_line::PRIORITY]);
    let open = reader.value(&gate_line::STATE);
    let length = whole_time(&mut reader, &gate_line::FOR);
    let octets = match reader.optional(&gate_line::MAX_OCTETS) {
        None => None,
        Some(octets) => Some(octets?),
    };
    let open = open?;
    if !open && octets.is_some() {
        let message = "max-octets has no effect while the gate is closed";
        reader.found.error(&reader.place, message, "", "remove max-octets or write state=\"open\"");
        return None;
    }
    let max_octets = octets.and_then(|octets| u32::try_from(octets.value).ok());
    Some(StreamGateEntry { open, length: length?, max_octets })
}

/// Every priority in one class, and the queues of all classes within those of the interface.
fn check_classes(statement: &HostTsnStatement, found: &mut Findings) {
    let HostTsnStatement { tsn, place, classes: places, .. } = statement;
    if tsn.classes.is_empty() {
        return;
    }
    check_priorities(&tsn.classes, |class| &class.priorities, places, place, found);
    let queues = tsn.queues();
    if let Some(channels) = tsn.channels.filter(|channels| *channels < queues) {
        let message = format!("the classes have {queues} queues, the interface {channels}");
        found.error(place, message, format!("{channels} queues"), "raise channels or use fewer queues");
    }
    let shaped = tsn.classes.iter().filter(|class| matches!(class.shaper, Some(Shaper::Cbs { .. }))).count();
    if shaped > 2 {
        let message = format!("{shaped} classes have a credit-based shaper");
        let limit = "2: SR classes A and B of IEEE 802.1Q, Annex L";
        found.error(place, message, limit, "shape the two most urgent classes");
    }
    // Frames of ARP, PTP and all else the host sends name no time, and etf drops what names none.
    let zero = tsn.class_of(0).filter(|class| {
        tsn.offload != TsnOffload::TxtimeAssist
            && matches!(tsn.classes[*class].shaper, Some(Shaper::Etf { .. }))
    });
    if let Some(place) = zero.and_then(|class| places.get(class)) {
        let message = "priority 0 is in a class with <etf>, which drops frames that name no launch time";
        let cure = "give priority 0, that of ARP and all else the host sends, a class of its own";
        found.error(place, message, "", cure);
    }
}

fn check_schedule(statement: &HostTsnStatement, found: &mut Findings) {
    let HostTsnStatement { tsn, place, .. } = statement;
    if tsn.classes.is_empty() {
        for (there, what) in [
            (tsn.schedule.is_some(), "a <gate-schedule>"),
            (!tsn.classify.is_empty(), "<classify>"),
            (tsn.offload != TsnOffload::Off, "offload"),
        ] {
            if there {
                let message = format!("{what} has no effect without traffic classes");
                found.error(place, message, "", "add <traffic-class> elements");
            }
        }
    }
}

/// Fragments and holds of an interface: the card makes them.
fn check_fragments(statement: &HostTsnStatement, preemption: PreemptionOf, found: &mut Findings) {
    let HostTsnStatement { tsn, place, .. } = statement;
    if tsn.classes.is_empty() {
        if preemption.is_stated() {
            let cure = "add <traffic-class> elements";
            found.error(place, "preemption has no effect without traffic classes", "", cure);
        }
        return;
    }
    let lists = tsn.schedule.iter().map(|schedule| (&schedule.entries[..], place)).collect();
    check_preemption(tsn.classes.iter().map(|class| class.preemptable), preemption, lists, place, found);
    let entries = tsn.schedule.iter().flat_map(|schedule| &schedule.entries);
    let holding = entries.zip(&statement.entries).find(|(entry, _)| entry.mac != MacOperation::Unchanged);
    if let Some((_, place)) = holding.filter(|_| tsn.offload != TsnOffload::Full) {
        let cure = "write offload=\"full\" in <host-tsn>, or remove mac";
        found.error(place, "only the card can hold its MAC", "offload=\"full\"", cure);
    }
}

fn check_offload(statement: &HostTsnStatement, found: &mut Findings) {
    let HostTsnStatement { tsn, place, classes: places, .. } = statement;
    if tsn.offload != TsnOffload::TxtimeAssist {
        if tsn.txtime_delay.is_some() {
            let cure = "write offload=\"txtime-assist\" or remove txtime-delay";
            found.error(place, "txtime-delay belongs to offload=\"txtime-assist\"", "", cure);
        }
        return;
    }
    if tsn.schedule.is_none() {
        let cure = "add <gate-schedule> or write another offload";
        found.error(place, "offload \"txtime-assist\" is of a gate schedule, and there is none", "", cure);
    }
    let Some(delay) = tsn.txtime_delay else {
        let cure = "add txtime-delay=\"500us\", more than the delta of every <etf>";
        found.error(place, "offload \"txtime-assist\" needs a txtime-delay", "", cure);
        return;
    };
    for (number, (class, place)) in tsn.classes.iter().zip(places).enumerate() {
        match class.shaper {
            Some(Shaper::Etf { delta, .. }) if delta < delay => {}
            Some(Shaper::Etf { delta, .. }) => {
                let message = format!("its delta {delta} is not less than the txtime-delay {delay}");
                found.error(place, message, "less than txtime-delay", "raise txtime-delay or lower delta");
            }
            _ => {
                let message = format!(
                    "class {number} has no <etf>, by which offload \"txtime-assist\" launches frames"
                );
                found.error(place, message, "", "add <etf/> to the class");
            }
        }
    }
}

/// Flows named twice.
fn check_twice(statement: &HostTsnStatement, found: &mut Findings) {
    let HostTsnStatement { tsn, classify, ingress, .. } = statement;
    let lists = [
        (tsn.classify.iter().map(|one| one.flow).collect::<Vec<_>>(), classify),
        (tsn.ingress.iter().map(|one| one.flow).collect(), ingress),
    ];
    for (flows, places) in lists {
        let mut seen = BTreeMap::new();
        for (flow, place) in flows.iter().zip(places) {
            if let Some(first) = seen.insert(*flow, place.line) {
                let line = on_line(first);
                let message = format!("flow {flow} is named{line} already");
                found.error(place, message, "once per flow", "keep one of them");
            }
        }
    }
}
