//! What a simulated node does beside its work: errors of timestamps, recurring events, frames of a switch's own, and the
//! threads of an injector.

use super::host_tsn::beyond_usual;
use crate::diagnostic::{Findings, Place};
use crate::imperfections::{HostEvent, OwnFrames, SendingThreads, Timestamps};
use crate::language::attribute::Declared;
use crate::language::nodes::{event as happening, timestamps as stamps};
use crate::language::switches::own_frames as frames;
use crate::language::tasks::inject;
use crate::reader::Reader;
use crate::tree::Element;

/// Events of a host, or kinds of own frames of a switch.
const MOST: usize = 64;

/// `<timestamps>`.
pub(super) fn timestamps(element: &Element, found: &mut Findings) -> Timestamps {
    let mut reader = Reader::new(element, found);
    let model = Timestamps {
        subtract_read_cost: reader.value(&stamps::SUBTRACT_READ_COST).unwrap_or_default(),
        application_error: reader.value(&stamps::APPLICATION_ERROR).unwrap_or_default(),
        driver_error: reader.value(&stamps::DRIVER_ERROR).unwrap_or_default(),
        wire_error: reader.value(&stamps::WIRE_ERROR).unwrap_or_default(),
        read_cost: reader.value(&stamps::READ_COST).unwrap_or_default(),
    };
    if model.subtract_read_cost && !reader.has(&stamps::READ_COST) {
        let message = "subtract-read-cost has no effect without a read-cost";
        let cure = "add read-cost=\"0%:20ns 100%:200ns\" or remove subtract-read-cost";
        reader.found.error(&reader.place, message, "", cure);
    }
    model
}

/// The `<event>` elements of an end system.
pub(super) fn events(element: &Element, found: &mut Findings) -> Vec<HostEvent> {
    too_many(element, "event", found);
    element.all("event").take(MOST).filter_map(|event| self::event(event, found)).collect()
}

fn event(element: &Element, found: &mut Findings) -> Option<HostEvent> {
    let mut reader = Reader::new(element, found);
    let period = reader.read(&happening::PERIOD);
    let offset = reader.value(&happening::OFFSET);
    let duration = reader.read(&happening::DURATION);
    let latency = reader.value(&happening::LATENCY);
    let ramp_to = reader.optional(&happening::RAMP_TO);
    let threads = reader.value(&happening::THREADS).unwrap_or_default();
    let (period, duration, latency) = (period?, duration?, latency?);
    if duration.value > period.value {
        let message = format!("{} is longer than {}", duration.named(), period.named());
        let limit = format!("at most {}", period.written);
        reader.found.error(&reader.place, message, limit, "write a shorter duration or a longer period");
    }
    if ramp_to.is_some() && latency.quantiles.len() > 1 {
        let message = "the latency of an event is either drawn or rises evenly";
        let cure = "write one time as latency, at which the ramp begins, or remove ramp-to";
        reader.found.error(&reader.place, message, "1 of them", cure);
    }
    Some(HostEvent {
        period: period.value,
        offset: offset?,
        duration: duration.value,
        latency,
        ramp_to: ramp_to.flatten().map(|to| to.value),
        threads,
    })
}

fn too_many(element: &Element, tag: &str, found: &mut Findings) {
    if let Some(beyond) = element.all(tag).nth(MOST) {
        let message = format!("there are more than {MOST} <{tag}> elements here");
        found.error(&beyond.place(), message, MOST.to_string(), "leave the others out");
    }
}

/// The `<own-frames>` elements of a switch.
pub(super) fn own_frames(element: &Element, found: &mut Findings) -> Vec<(OwnFrames, Place)> {
    too_many(element, "own-frames", found);
    element
        .all("own-frames")
        .take(MOST)
        .filter_map(|frames| Some((own(frames, found)?, frames.place())))
        .collect()
}

fn own(element: &Element, found: &mut Findings) -> Option<OwnFrames> {
    let mut reader = Reader::new(element, found);
    let (period, offset) = (reader.value(&frames::PERIOD), reader.value(&frames::OFFSET));
    let (length, priority) = (reader.value(&frames::FRAME), reader.value(&frames::PRIORITY));
    let ports = match reader.optional(&frames::PORTS) {
        None => Vec::new(),
        Some(ports) => ports?.value,
    };
    let length = u16::try_from(length?).ok()?;
    Some(OwnFrames { period: period?, offset: offset?, length, priority: priority?, ports })
}

/// The threads of an injector, where it has any.
pub(super) fn sending_threads(reader: &mut Reader<'_>) -> Option<SendingThreads> {
    let Some(number) = reader.optional(&inject::THREADS) else {
        for attribute in [&inject::SEND_COST, &inject::SLEEP_OVERHEAD] {
            if reader.has(attribute) {
                let message = format!("{} has no effect without threads", attribute.name);
                let cure = format!("add threads=\"1\" or remove {}", attribute.name);
                reader.found.error(&reader.place, message, "", cure);
            }
        }
        return None;
    };
    let of_schedules: [&dyn Declared; 4] =
        [&inject::DISTRIBUTION, &inject::ACTIVE, &inject::PAUSE, &inject::PACING];
    for attribute in beyond_usual(reader, &of_schedules) {
        let message = format!("{attribute} belongs to a schedule; threads send and sleep without one");
        let cure = format!("remove {attribute} or threads");
        reader.found.error(&reader.place, message, "", cure);
    }
    let send_cost = reader.value(&inject::SEND_COST).unwrap_or_default();
    let sleep_overhead = reader.value(&inject::SLEEP_OVERHEAD).unwrap_or_default();
    Some(SendingThreads { number: number?.value, send_cost, sleep_overhead })
}
