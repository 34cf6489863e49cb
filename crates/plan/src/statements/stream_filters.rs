//! `<ingress>` in `<switch-tsn>`: filters, gates and meters of streams.

use wg_frame::time::Span;

use super::host_tsn::{BURST, check_cycle, on, several, whole_time};
use super::parts::BASE;
use super::parts::only;
use crate::campaign::FlowId;
use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind};
use crate::reader::Reader;
use crate::stream_filter::HeaderField;
use crate::stream_filter::{FilterGate, FilterGateEntry, FlowMeter, Identify, StreamFilter};
use crate::switch_tsn::MOST_PORT_ENTRIES;
use crate::tree::Element;

const IDENTIFY: [(&str, Identify); 3] =
    [("destination", Identify::Destination), ("source", Identify::Source), ("ip", Identify::Ip)];
const MODES: [(&str, bool); 2] = [("blind", false), ("aware", true)];
const SDU: (u64, u64, &str) = (1, 9_216, "1B to 9216B");
const LENGTH: (Span, Span, &str) = (Span::from_nanos(1), Span::from_millis(1_000), "1ns to 1s");
const LEAST_RATE: u64 = 1_000;
const MOST_RATE: u64 = 400_000_000_000;

/// Reads the filters of a switch, each with its place.
pub(super) fn stream_filters(element: &Element, found: &mut Findings) -> (Vec<StreamFilter>, Vec<Place>) {
    let (filters, places) = several(element, "ingress", filter, found);
    for (number, (one, place)) in filters.iter().zip(&places).enumerate() {
        let one: &StreamFilter = one;
        if filters[..number].iter().any(|other| other.flow == one.flow) {
            let message = format!("flow {} has a stream filter already", one.flow);
            found.error(place, message, "1 <ingress> per flow", "keep one of them");
        }
        for (attribute, part, of, has) in [
            (
                "gate-of",
                "<stream-gate>",
                one.gate_of,
                (|filter| filter.gate.is_some()) as fn(&StreamFilter) -> bool,
            ),
            ("meter-of", "<police>", one.meter_of, |filter| filter.meter.is_some()),
        ] {
            if let Some(of) = of
                && !filters.iter().any(|filter| filter.flow == of && has(filter))
            {
                let message =
                    format!("{attribute}=\"{of}\": flow {of} has no {part} of its own in this <switch-tsn>");
                let cure = format!("name a flow whose <ingress> here has a {part}, or write one in this");
                found.error(place, message, "", cure);
            }
        }
    }
    (filters, places)
}

fn filter(element: &Element, found: &mut Findings) -> Option<StreamFilter> {
    let gate = only(element, "stream-gate", found).map(|gate| self::gate(gate, found));
    let meter = only(element, "police", found).map(|police| self::meter(police, found));
    let mut reader = Reader::new(element, found);
    let flow = reader.flow_id("flow");
    if element.get("offload").is_some_and(|offload| offload != "off") {
        reader.found.error(
            &reader.place,
            "offload has no effect at a switch",
            "<host-tsn>",
            "remove offload",
        );
    }
    let identify = reader.optional_choice("identify", &IDENTIFY).flatten();
    let max_sdu = match element.get("max-sdu") {
        None => None,
        Some(written) => Some(u16::try_from(reader.size_within("max-sdu", written, SDU)?.value).ok()?),
    };
    let block_oversize = on(&mut reader, "block-oversize");
    if block_oversize && max_sdu.is_none() {
        let cure = "add max-sdu, or remove block-oversize";
        reader.found.error(&reader.place, "block-oversize has no effect without max-sdu", "", cure);
    }
    let gate_of = shared(&mut reader, "gate-of", "<stream-gate>", gate.is_some())?;
    let meter_of = shared(&mut reader, "meter-of", "<police>", meter.is_some())?;
    let asks = [gate.is_some(), gate_of.is_some(), meter.is_some(), meter_of.is_some(), max_sdu.is_some()];
    if !asks.contains(&true) {
        let cure = "add max-sdu, <stream-gate>, gate-of, <police> or meter-of, or remove the filter";
        reader.found.error(&reader.place, "nothing is asked of the frames of the flow", "at least 1", cure);
        return None;
    }
    let gate = gate.map_or(Some(None), |gate| gate.map(Some))?;
    let meter = meter.map_or(Some(None), |meter| meter.map(Some))?;
    let identify = identify.map_or_else(Identify::default, |identify| identify.value);
    let fields = fields(&mut reader, identify)?;
    let flow = flow?.value;
    Some(StreamFilter { flow, identify, fields, max_sdu, block_oversize, gate, gate_of, meter, meter_of })
}

/// The flow whose gate or meter this one shares; `Some(None)`: it has its own, or none.
fn shared(
    reader: &mut Reader<'_>,
    attribute: &'static str,
    part: &str,
    has_own: bool,
) -> Option<Option<FlowId>> {
    let Some(written) = reader.element.get(attribute) else { return Some(None) };
    if has_own {
        let why = format!("stands beside a {part} of its own");
        reader.refuse(attribute, written, &why, "1 of them", "remove one of them");
        return None;
    }
    reader.flow_id(attribute).map(|flow| Some(flow.value))
}

/// Fields that IP stream identification compares, ascending.
fn fields(reader: &mut Reader<'_>, identify: Identify) -> Option<Vec<HeaderField>> {
    let Some(written) = reader.element.get("fields") else { return Some(Vec::new()) };
    if identify != Identify::Ip {
        let cure = "write identify=\"ip\", or remove fields";
        reader.found.error(&reader.place, "fields has no effect without IP stream identification", "", cure);
        return None;
    }
    let mut fields = Vec::new();
    for word in written.split_whitespace() {
        fields.push(reader.choice("fields", word, &HeaderField::ALL)?.value);
    }
    if fields.is_empty() {
        reader.refuse("fields", written, "compares nothing", "at least 1 field", "name fields, or remove it");
        return None;
    }
    fields.sort_unstable();
    fields.dedup();
    Some(fields)
}

fn gate(element: &Element, found: &mut Findings) -> Option<FilterGate> {
    let (entries, _) = several(element, "stream-gate-entry", entry, found);
    let mut reader = Reader::new(element, found);
    let base = whole_time(&mut reader, "base-time", element.get("base-time").unwrap_or("0s"), BASE);
    let close_on_invalid = on(&mut reader, "close-on-invalid");
    let close_on_octets = on(&mut reader, "close-on-octets");
    let lengths: Vec<Span> = entries.iter().map(|entry: &FilterGateEntry| entry.length).collect();
    if element.all("stream-gate-entry").count() != entries.len()
        || !check_cycle(&mut reader, &lengths, (1, MOST_PORT_ENTRIES))
    {
        return None;
    }
    let place = &reader.place;
    if entries.iter().all(|entry| !entry.open) {
        let cure = "write state=\"open\" in one of its entries";
        reader.found.error(place, "the gate is never open: no frame of the stream would pass", "", cure);
        return None;
    }
    if close_on_invalid && entries.iter().all(|entry| entry.open) {
        let cure = "remove it, or write state=\"closed\" in one of its entries";
        reader.found.error(place, "close-on-invalid has no effect: the gate is always open", "", cure);
    }
    if close_on_octets && entries.iter().all(|entry| entry.max_octets.is_none()) {
        let cure = "remove it, or write max-octets in one of its entries";
        reader.found.error(place, "close-on-octets has no effect without max-octets", "", cure);
    }
    Some(FilterGate { base_time: base?, close_on_invalid, close_on_octets, entries })
}

fn entry(element: &Element, found: &mut Findings) -> Option<FilterGateEntry> {
    let mut reader = Reader::new(element, found);
    let states = [("open", true), ("closed", false)];
    let open = reader.required("state").and_then(|written| reader.choice("state", written, &states));
    let length = reader.required("for").and_then(|written| whole_time(&mut reader, "for", written, LENGTH));
    let octets = match element.get("max-octets") {
        None => None,
        Some(written) => Some(reader.size_within("max-octets", written, BURST)?),
    };
    let priority = reader.optional_whole::<u8>("priority", 0, 7).flatten().map(|priority| priority.value);
    let open = open?.value;
    for (attribute, is_there) in [("max-octets", octets.is_some()), ("priority", priority.is_some())] {
        if !open && is_there {
            let message = format!("{attribute} has no effect while the gate is closed");
            let cure = format!("remove {attribute} or write state=\"open\"");
            reader.found.error(&reader.place, message, "", cure);
            return None;
        }
    }
    let max_octets = octets.and_then(|octets| u32::try_from(octets.value).ok());
    Some(FilterGateEntry { open, length: length?, max_octets, priority })
}

fn meter(element: &Element, found: &mut Findings) -> Option<FlowMeter> {
    let mut reader = Reader::new(element, found);
    let rate = reader.required("rate").and_then(|written| self::rate(&mut reader, "rate", written));
    let burst = reader.required("burst").and_then(|written| reader.size_within("burst", written, BURST));
    let excess_rate = match element.get("excess-rate") {
        None => 0,
        Some(written) => self::rate(&mut reader, "excess-rate", written)?,
    };
    let excess_burst = match element.get("excess-burst") {
        None => 0,
        Some(written) => u32::try_from(reader.size_within("excess-burst", written, BURST)?.value).ok()?,
    };
    let coupling = on(&mut reader, "coupling");
    let mode = reader.optional_choice("colour-mode", &MODES).flatten();
    let drop_on_yellow = on(&mut reader, "drop-on-yellow");
    let mark_all_red = on(&mut reader, "mark-all-red");
    for (attribute, is_there) in
        [("excess-rate", excess_rate > 0), ("coupling", coupling), ("drop-on-yellow", drop_on_yellow)]
    {
        if is_there && excess_burst == 0 {
            let message = format!("{attribute} has no effect without excess-burst: no frame is ever yellow");
            reader.found.error(&reader.place, message, "", format!("add excess-burst or remove {attribute}"));
        }
    }
    Some(FlowMeter {
        rate_bps: rate?,
        burst: u32::try_from(burst?.value).ok()?,
        excess_rate_bps: excess_rate,
        excess_burst,
        coupling,
        colour_aware: mode.is_some_and(|mode| mode.value),
        drop_on_yellow,
        mark_all_red,
    })
}

fn rate(reader: &mut Reader<'_>, attribute: &'static str, written: &str) -> Option<u64> {
    let rate = reader.quantity(attribute, written, Kind::Rate, quantity::rate)?;
    if (LEAST_RATE..=MOST_RATE).contains(&rate.value) {
        return Some(rate.value);
    }
    let cure = "write the most that may come, for example 10Mbit/s";
    reader.refuse(attribute, &rate.written, "is out of range", "1kbit/s to 400Gbit/s", cure);
    None
}
