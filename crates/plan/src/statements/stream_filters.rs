//! `<ingress>` in `<switch-tsn>`: filters, gates and meters of streams.

use wg_frame::time::Span;

use super::parts::only;
use super::tsn::{beyond_usual, check_cycle, several, whole_time};
use crate::campaign::FlowId;
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::Attribute;
use crate::language::switches::cyclic_queuing;
use crate::language::tsn::{ingress as own, police, stream_gate, stream_gate_entry as line};
use crate::reader::Reader;
use crate::stream_filter::HeaderField;
use crate::stream_filter::{FilterGate, FilterGateEntry, FlowMeter, Identify, StreamFilter};
use crate::switch_tsn::MOST_PORT_ENTRIES;
use crate::tree::Element;

/// The instant at which a cycle begins, as of every schedule of a switch.
const BASE_TIME: Attribute<Span> = cyclic_queuing::BASE_TIME;
const LENGTH: Attribute<Span> = line::FOR.within("1ns to 1s");
const RATE: Attribute<u64> =
    police::RATE.within("1kbit/s to 400Gbit/s").cure("write the most that may come, for example 10Mbit/s");

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
                own::GATE_OF.name,
                "<stream-gate>",
                one.gate_of,
                (|filter| filter.gate.is_some()) as fn(&StreamFilter) -> bool,
            ),
            (own::METER_OF.name, "<police>", one.meter_of, |filter| filter.meter.is_some()),
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
    let flow = reader.value(&own::FLOW);
    if !beyond_usual(&reader, &[&own::OFFLOAD]).is_empty() {
        let message = "offload has no effect at a switch";
        reader.found.error(&reader.place, message, "<host-tsn>", "remove offload");
    }
    let identify = reader.value(&own::IDENTIFY);
    let max_sdu = match reader.optional(&own::MAX_SDU) {
        None => None,
        Some(size) => Some(u16::try_from(size?.value).ok()?),
    };
    let block_oversize = reader.value(&own::BLOCK_OVERSIZE).unwrap_or_default();
    if block_oversize && max_sdu.is_none() {
        let cure = "add max-sdu, or remove block-oversize";
        reader.found.error(&reader.place, "block-oversize has no effect without max-sdu", "", cure);
    }
    let gate_of = shared(&mut reader, &own::GATE_OF, "<stream-gate>", gate.is_some())?;
    let meter_of = shared(&mut reader, &own::METER_OF, "<police>", meter.is_some())?;
    let asks = [gate.is_some(), gate_of.is_some(), meter.is_some(), meter_of.is_some(), max_sdu.is_some()];
    if !asks.contains(&true) {
        let cure = "add max-sdu, <stream-gate>, gate-of, <police> or meter-of, or remove the filter";
        reader.found.error(&reader.place, "nothing is asked of the frames of the flow", "at least 1", cure);
        return None;
    }
    let gate = gate.map_or(Some(None), |gate| gate.map(Some))?;
    let meter = meter.map_or(Some(None), |meter| meter.map(Some))?;
    let identify = identify.unwrap_or_default();
    let fields = fields(&mut reader, identify)?;
    let flow = flow?;
    Some(StreamFilter { flow, identify, fields, max_sdu, block_oversize, gate, gate_of, meter, meter_of })
}

/// The flow whose gate or meter this one shares; `Some(None)`: it has its own, or none.
fn shared(
    reader: &mut Reader<'_>,
    attribute: &Attribute<FlowId>,
    part: &str,
    has_own: bool,
) -> Option<Option<FlowId>> {
    let Some(written) = reader.text(attribute) else { return Some(None) };
    if has_own {
        let why = format!("stands beside a {part} of its own");
        reader.refuse(attribute.name, written, &why, "1 of them", "remove one of them");
        return None;
    }
    reader.value(attribute).map(Some)
}

/// Fields that IP stream identification compares, ascending.
fn fields(reader: &mut Reader<'_>, identify: Identify) -> Option<Vec<HeaderField>> {
    if reader.has(&own::FIELDS) && identify != Identify::Ip {
        let cure = "write identify=\"ip\", or remove fields";
        reader.found.error(&reader.place, "fields has no effect without IP stream identification", "", cure);
        return None;
    }
    match reader.optional(&own::FIELDS) {
        None => Some(Vec::new()),
        Some(fields) => Some(fields?.value),
    }
}

fn gate(element: &Element, found: &mut Findings) -> Option<FilterGate> {
    let (entries, _) = several(element, "stream-gate-entry", entry, found);
    let mut reader = Reader::new(element, found);
    let base = whole_time(&mut reader, &BASE_TIME);
    let close_on_invalid = reader.value(&stream_gate::CLOSE_ON_INVALID).unwrap_or_default();
    let close_on_octets = reader.value(&stream_gate::CLOSE_ON_OCTETS).unwrap_or_default();
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
    let open = reader.value(&line::STATE);
    let length = whole_time(&mut reader, &LENGTH);
    let octets = match reader.optional(&line::MAX_OCTETS) {
        None => None,
        Some(octets) => Some(octets?),
    };
    let priority = reader.value(&line::PRIORITY);
    let open = open?;
    for (attribute, is_there) in
        [(line::MAX_OCTETS.name, octets.is_some()), (line::PRIORITY.name, priority.is_some())]
    {
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
    let (rate, burst) = (reader.value(&RATE), reader.value(&police::BURST));
    let excess_rate = match reader.optional(&police::EXCESS_RATE) {
        None => 0,
        Some(rate) => rate?.value,
    };
    let excess_burst = match reader.optional(&police::EXCESS_BURST) {
        None => 0,
        Some(burst) => u32::try_from(burst?.value).ok()?,
    };
    let [coupling, colour_aware, drop_on_yellow, mark_all_red] =
        [police::COUPLING, police::COLOUR_MODE, police::DROP_ON_YELLOW, police::MARK_ALL_RED]
            .map(|attribute| reader.value(&attribute).unwrap_or_default());
    for (attribute, is_there) in [
        (police::EXCESS_RATE.name, excess_rate > 0),
        (police::COUPLING.name, coupling),
        (police::DROP_ON_YELLOW.name, drop_on_yellow),
    ] {
        if is_there && excess_burst == 0 {
            let message = format!("{attribute} has no effect without excess-burst: no frame is ever yellow");
            reader.found.error(&reader.place, message, "", format!("add excess-burst or remove {attribute}"));
        }
    }
    Some(FlowMeter {
        rate_bps: rate?,
        burst: u32::try_from(burst?).ok()?,
        excess_rate_bps: excess_rate,
        excess_burst,
        coupling,
        colour_aware,
        drop_on_yellow,
        mark_all_red,
    })
}
