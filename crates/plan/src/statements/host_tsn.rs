//! `<host-tsn>`: what an interface of Linux is to do with the frames that leave and arrive.
//!
//! What concerns the settings alone is checked here; what concerns flows and the rate of the link, where those are known
//! (`host_tsn::check`).

use std::collections::BTreeMap;

use wg_core::line::SMALLEST_FRAME;
use wg_core::selection::MacOperation;
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::hold::Held;
use crate::host_tsn::{
    Classify, GateEntry, GateSchedule, HostTsn, IngressRule, LONGEST_CYCLE, MOST_CLASSES, MOST_GATE_ENTRIES,
    MOST_STREAM_GATE_ENTRIES, Meter, Shaper, StreamGate, StreamGateEntry, TrafficClass, TsnOffload,
};
use crate::language::attribute::{Attribute, Declared, Need, Text};
use crate::language::tsn::{
    cbs, classify as classified, etf, gate_entry, gate_schedule as gates, host_tsn as own,
    ingress as arriving, police, stream_gate as gate, stream_gate_entry as gate_line, traffic_class as class,
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

const PRIORITIES: u8 = 8;
const MOST_RULES: usize = 1_024;

/// Reads the settings of an end system.
pub(super) fn host_tsn(element: &Element, found: &mut Findings) -> Box<HostTsnStatement> {
    let clean = found.count();
    let mut reader = Reader::new(element, found);
    let channels = reader.value(&own::CHANNELS);
    let offload = reader.value(&own::OFFLOAD);
    let txtime_delay = whole_time(&mut reader, &own::TXTIME_DELAY);
    let preemption = preemption_of(&mut reader);
    let place = reader.place;
    let (classes, class_places) = classes(element, MOST_CLASSES, traffic_class, found);
    let (schedule, entries) = match super::parts::only(element, "gate-schedule", found) {
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

/// Reads every child with this tag, with its place; what could not be read is left out.
pub(super) fn several<T>(
    element: &Element,
    tag: &str,
    read: impl Fn(&Element, &mut Findings) -> Option<T>,
    found: &mut Findings,
) -> (Vec<T>, Vec<Place>) {
    if let Some(beyond) = element.all(tag).nth(MOST_RULES) {
        let message = format!("there are more than {MOST_RULES} <{tag}> elements");
        found.error(&beyond.place(), message, MOST_RULES.to_string(), "name fewer flows");
    }
    let all = element.all(tag).take(MOST_RULES);
    all.filter_map(|child| Some((read(child, found)?, child.place()))).unzip()
}

/// A time that is a whole number of nanoseconds, as the kernel counts.
pub(super) fn whole_time(reader: &mut Reader<'_>, attribute: &Attribute<Span>) -> Option<Span> {
    let time = reader.read(attribute)?;
    if time.value.as_picos() % 1_000 == 0 {
        return Some(time.value);
    }
    let cure = "write a whole number of nanoseconds";
    reader.refuse(attribute.name, &time.written, "is finer than the kernel counts", "1ns", cure);
    None
}

/// Numbers from 0 with spaces between, ascending in the result.
pub(super) fn numbers(
    reader: &mut Reader<'_>,
    attribute: &Attribute<Text>,
    written: &str,
    below: u64,
) -> Option<Vec<u8>> {
    let mut numbers = Vec::new();
    for word in written.split_whitespace() {
        let number: u8 = reader.whole(attribute.name, word, (0, below.saturating_sub(1)))?;
        if numbers.contains(&number) {
            let problem = format!("names {word} twice");
            reader.refuse(attribute.name, written, &problem, "", "name each number once");
            return None;
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    Some(numbers)
}

/// Reads traffic classes, which are numbered in the order of the file.
pub(super) fn classes<T>(
    element: &Element,
    most: usize,
    read: impl Fn(&Element, &mut Findings) -> Option<(u8, T)>,
    found: &mut Findings,
) -> (Vec<T>, Vec<Place>) {
    let (classes, places): (Vec<_>, Vec<_>) = several(element, "traffic-class", read, found);
    if let Some(beyond) = places.get(most) {
        let message = format!("there are more than {most} traffic classes");
        found.error(beyond, message, most.to_string(), "put priorities together into one class");
    }
    // A class that could not be read leaves a gap, which is no mistake of the others.
    let whole = classes.len() == element.all("traffic-class").count();
    for ((expected, (number, _)), place) in classes.iter().enumerate().zip(&places).filter(|_| whole) {
        if usize::from(*number) != expected {
            let message = format!("number {number} stands where {expected} should");
            let cure = "number the classes from 0, in the order of the file";
            found.error(place, message, "0, 1, 2, …", cure);
            break;
        }
    }
    (classes.into_iter().map(|(_, class)| class).collect(), places)
}

/// Number and priorities of a class.
pub(super) fn class_of(reader: &mut Reader<'_>, number: &Attribute<u8>) -> Option<(u8, Vec<u8>)> {
    let number = reader.value(number);
    let priorities = reader
        .written(&class::PRIORITIES)
        .and_then(|written| numbers(reader, &class::PRIORITIES, written, u64::from(PRIORITIES)))?;
    if priorities.is_empty() {
        let cure = "list priorities, or remove the class";
        reader.refuse(class::PRIORITIES.name, "", "names no priority", "at least 1", cure);
        return None;
    }
    Some((number?, priorities))
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

/// What is stated of preemption beside the classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreemptionOf {
    /// Where it is not the usual one.
    pub(super) shortest_fragment: Option<u16>,
    pub(super) hold_advance: Option<Span>,
    pub(super) release_advance: Option<Span>,
}

impl PreemptionOf {
    pub(super) const fn is_stated(self) -> bool {
        self.shortest_fragment.is_some() || self.hold_advance.is_some() || self.release_advance.is_some()
    }
}

/// Reads it from the settings of a host or of ports of a switch.
pub(super) fn preemption_of(reader: &mut Reader<'_>) -> PreemptionOf {
    let fragment = reader.value(&own::SHORTEST_FRAGMENT);
    PreemptionOf {
        hold_advance: whole_time(reader, &own::HOLD_ADVANCE),
        release_advance: whole_time(reader, &own::RELEASE_ADVANCE),
        shortest_fragment: fragment.filter(|bytes| *bytes > SMALLEST_FRAME),
    }
}

/// Some class gives way, not all do, and what lists ask of the MAC can be done. `preemptable`: whether each class is.
pub(super) fn check_preemption(
    preemptable: impl Iterator<Item = bool> + Clone,
    stated: PreemptionOf,
    lists: Vec<(&[GateEntry], &Place)>,
    place: &Place,
    found: &mut Findings,
) {
    let preempts = preemptable.clone().any(|one| one);
    if preempts && preemptable.clone().all(|one| one) {
        let cure = "write preemptable=\"off\" at the classes that are not to wait";
        found.error(place, "every class is preemptable: none makes the others give way", "", cure);
    }
    if !preempts && stated.shortest_fragment.is_some() {
        let cure = "write preemptable=\"on\" at a class, or remove shortest-fragment";
        found.error(place, "shortest-fragment has no effect without a preemptable class", "", cure);
    }
    let stated = [
        ("hold-advance", stated.hold_advance.is_some()),
        ("release-advance", stated.release_advance.is_some()),
    ];
    Held { preempts, lists, stated, place }.check(found);
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

/// Attributes that say something else than what counts where they are left out, which may be said.
pub(super) fn beyond_usual(reader: &Reader<'_>, attributes: &[&dyn Declared]) -> Vec<&'static str> {
    let beyond = attributes.iter().filter(|attribute| {
        let written = reader.element.get(attribute.name());
        written.is_some_and(|written| !matches!(attribute.need(), Need::Usual(usual) if usual == written))
    });
    beyond.map(|attribute| attribute.name()).collect()
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

/// Checks that what a list of entries adds up to is what was meant, and that the kernel takes it.
pub(super) fn check_cycle(reader: &mut Reader<'_>, lengths: &[Span], (fewest, most): (usize, usize)) -> bool {
    if !(fewest..=most).contains(&lengths.len()) {
        let message = format!("the schedule has {} entries", lengths.len());
        let cure = "write fewer, longer entries; no more are carried";
        let cure = if lengths.is_empty() { "add entries, or remove the schedule" } else { cure };
        reader.found.error(&reader.place, message, format!("{fewest} to {most}"), cure);
        return false;
    }
    let sum = Span::from_picos(lengths.iter().fold(0, |sum, length| sum + length.as_picos()));
    if sum > LONGEST_CYCLE {
        let message = format!("the entries add up to {sum}");
        reader.found.error(&reader.place, message, "2147483647ns", "shorten them");
        return false;
    }
    // That of a stream gate is as that of a list of gates.
    match reader.optional(&gates::CYCLE_TIME) {
        None => true,
        Some(Some(cycle)) if cycle.value != sum => {
            let problem = format!("is not the {sum} that its entries add up to");
            let cure = "correct an entry or the cycle-time";
            reader.refuse(cycle.attribute, &cycle.written, &problem, "the sum of the entries", cure);
            false
        }
        Some(cycle) => cycle.is_some(),
    }
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

/// The entries of a gate control list, with the place of each; `None` where they make no list.
pub(super) fn gate_entries(
    element: &Element,
    classes: usize,
    most: usize,
    found: &mut Findings,
) -> (Option<Vec<GateEntry>>, Vec<Place>) {
    let entry = |child: &Element, found: &mut Findings| {
        let mut reader = Reader::new(child, found);
        let length = whole_time(&mut reader, &gate_entry::FOR);
        let open = reader.text(&gate_entry::OPEN).unwrap_or("");
        let open = numbers(&mut reader, &gate_entry::OPEN, open, classes.max(1) as u64);
        let mac = reader.value(&gate_entry::MAC).unwrap_or(MacOperation::Unchanged);
        Some(GateEntry { open: open?, length: length?, mac })
    };
    let (entries, places) = several(element, "gate-entry", entry, found);
    let mut reader = Reader::new(element, found);
    let lengths: Vec<Span> = entries.iter().map(|entry| entry.length).collect();
    let whole = element.all("gate-entry").count() == entries.len();
    let whole = whole && check_cycle(&mut reader, &lengths, (1, most));
    (whole.then_some(entries), places)
}

fn classify(element: &Element, found: &mut Findings) -> Option<Classify> {
    let mut reader = Reader::new(element, found);
    let (flow, priority) = (reader.value(&classified::FLOW), reader.value(&classified::PRIORITY));
    Some(Classify { flow: flow?, priority: priority? })
}

fn ingress(element: &Element, found: &mut Findings) -> Option<IngressRule> {
    let gate = super::parts::only(element, "stream-gate", found).map(|gate| stream_gate(gate, found));
    let meter = super::parts::only(element, "police", found).map(|police| meter(police, found));
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

/// Every priority is in one class.
pub(super) fn check_priorities<T>(
    classes: &[T],
    priorities: impl Fn(&T) -> &[u8],
    places: &[Place],
    place: &Place,
    found: &mut Findings,
) {
    for (number, (class, place)) in classes.iter().zip(places).enumerate() {
        let before = &classes[..number];
        for priority in priorities(class) {
            if let Some(other) = before.iter().position(|other| priorities(other).contains(priority)) {
                let message = format!("priority {priority} is in class {other} already");
                found.error(place, message, "1 class per priority", "remove it from one of them");
            }
        }
    }
    let is_missing = |priority: &u8| !classes.iter().any(|class| priorities(class).contains(priority));
    let missing: Vec<String> = (0..PRIORITIES).filter(is_missing).map(|p| p.to_string()).collect();
    if !missing.is_empty() {
        let message = format!("no class has priority {}", missing.join(", "));
        found.error(place, message, "priorities 0 to 7", "add what is missing to a class");
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
                let line = crate::diagnostic::on_line(first);
                let message = format!("flow {flow} is named{line} already");
                found.error(place, message, "once per flow", "keep one of them");
            }
        }
    }
}
