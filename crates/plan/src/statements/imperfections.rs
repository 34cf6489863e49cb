//! What a simulated node does beside its work: errors of timestamps, recurring events, frames of a switch's own, and the
//! threads of an injector.

use wg_frame::time::Span;

use super::parts::{COST, MOST_QUANTILES, distribution};
use crate::diagnostic::{Findings, Place};
use crate::imperfections::{HeldUp, HostEvent, OwnFrames, SendingThreads, Timestamps};
use crate::network::Distribution;
use crate::places::MOST_PORTS;
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader};
use crate::tree::Element;

/// Events of a host, or kinds of own frames of a switch.
const MOST: usize = 64;
/// An error beyond it is no error of a reading.
const MOST_ERROR: Span = Span::from_millis(100);
/// Most drift of a line either way, in ppb: IEEE Std 802.3 allows 100 ppm, a fault may have ten times that.
const MOST_LINE_DRIFT: i64 = 1_000_000;
const PERIOD: (Span, Span, &str) = (Span::from_micros(1), Span::from_millis(604_800_000), "1us to 168h");
const THREADS: u64 = 64;

/// How much too fast the lines of a node run, in ppb.
pub(super) fn line_drift(reader: &mut Reader<'_>) -> i64 {
    let drift = reader.optional("line-drift", Kind::Drift, quantity::drift).flatten();
    match drift {
        Some(drift) if drift.value.abs() > MOST_LINE_DRIFT => {
            let cure = "write by how much its lines are too fast, for example -40ppm";
            reader.refuse("line-drift", &drift.written, "is out of range", "1000ppm either way", cure);
            0
        }
        drift => drift.map_or(0, |drift| drift.value),
    }
}

/// A distribution where it is written.
fn drawn(reader: &mut Reader<'_>, attribute: &'static str) -> Distribution {
    let Some(written) = reader.element.get(attribute) else { return Distribution::default() };
    distribution(reader, attribute, written, COST).unwrap_or_default()
}

/// `<timestamps>`.
pub(super) fn timestamps(element: &Element, found: &mut Findings) -> Timestamps {
    let mut reader = Reader::new(element, found);
    let subtract = reader.optional_choice("subtract-read-cost", &[("no", false), ("least", true)]).flatten();
    let model = Timestamps {
        application_error: error(&mut reader, "application-error"),
        driver_error: error(&mut reader, "driver-error"),
        wire_error: error(&mut reader, "wire-error"),
        read_cost: drawn(&mut reader, "read-cost"),
        subtract_read_cost: subtract.is_some_and(|subtract| subtract.value),
    };
    if model.subtract_read_cost && element.get("read-cost").is_none() {
        let message = "subtract-read-cost has no effect without a read-cost";
        let cure = "add read-cost=\"0%:20ns 100%:200ns\" or remove subtract-read-cost";
        reader.found.error(&reader.place, message, "", cure);
    }
    model
}

/// A bound either way, or quantiles that may be negative: `0%:-5ns 50%:0ns 100%:40ns`.
fn error(reader: &mut Reader<'_>, attribute: &'static str) -> Distribution {
    let Some(written) = reader.element.get(attribute) else { return Distribution::default() };
    if !written.contains(':') {
        let bounds = (Span::ZERO, MOST_ERROR, "0s to 100ms");
        let bound = reader.time_within(attribute, written, bounds);
        return bound.map_or_else(Distribution::default, |bound| Distribution {
            quantiles: vec![(0, -bound.value), (1_000_000, bound.value)],
        });
    }
    let mut quantiles: Vec<(u32, Span)> = Vec::new();
    for word in written.split_whitespace().take(MOST_QUANTILES + 1) {
        let (share, time) = word.split_once(':').unwrap_or((word, ""));
        let share = reader.quantity(attribute, share, Kind::Ratio, quantity::ppm);
        let time = reader.quantity(attribute, time, Kind::Time, quantity::signed_time);
        let (Some(share), Some(time)) = (share, time) else { return Distribution::default() };
        if !(-MOST_ERROR..=MOST_ERROR).contains(&time.value) {
            let cure = "write errors within the limit";
            reader.refuse(attribute, &time.written, "is out of range", "100ms either way", cure);
            return Distribution::default();
        }
        quantiles.push((share.value, time.value));
    }
    let ascending = quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let whole = quantiles.first().is_some_and(|first| first.0 == 0)
        && quantiles.last().is_some_and(|last| last.0 == 1_000_000);
    if !ascending || !whole || quantiles.len() > MOST_QUANTILES {
        let limit = format!("2 to {MOST_QUANTILES} quantiles, shares and times ascending, from 0% to 100%");
        let cure = "write for example \"0%:-20ns 50%:0ns 100%:60ns\", or one bound";
        reader.refuse(attribute, written, "is no distribution of an error", &limit, cure);
        return Distribution::default();
    }
    Distribution { quantiles }
}

/// The `<event>` elements of an end system.
pub(super) fn events(element: &Element, found: &mut Findings) -> Vec<HostEvent> {
    too_many(element, "event", found);
    element.all("event").take(MOST).filter_map(|event| self::event(event, found)).collect()
}

fn event(element: &Element, found: &mut Findings) -> Option<HostEvent> {
    let mut reader = Reader::new(element, found);
    let period = reader.required("period").and_then(|w| reader.time_within("period", w, PERIOD));
    let offset = reader.time_or("offset", "0s");
    let least = (Span::from_picos(1), PERIOD.1, "more than 0s, at most 168h");
    let duration = reader.required("duration").and_then(|w| reader.time_within("duration", w, least));
    let latency = reader.required("latency").and_then(|w| distribution(&mut reader, "latency", w, COST));
    let ramp_to = element.get("ramp-to").map(|w| reader.time_within("ramp-to", w, COST));
    let choices = [("both", HeldUp::Both), ("send", HeldUp::Send), ("receive", HeldUp::Receive)];
    let threads = reader.optional_choice("threads", &choices);
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
        offset: offset?.value,
        duration: duration.value,
        latency,
        ramp_to: ramp_to.flatten().map(|to| to.value),
        threads: threads.flatten().map_or_else(HeldUp::default, |threads| threads.value),
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
    let period = reader.required("period").and_then(|w| reader.time_within("period", w, PERIOD));
    let offset = reader.time_or("offset", "0s");
    let written = element.get("frame").unwrap_or("64B");
    let length = reader.size_within("frame", written, (64, 1_518, "64B to 1518B"));
    let priority: Maybe<u8> = reader.whole("priority", element.get("priority").unwrap_or("7"), 0, 7);
    let mut ports = Vec::new();
    for word in element.get("ports").unwrap_or("").split_whitespace().take(usize::from(MOST_PORTS) + 1) {
        ports.push(reader.whole::<u16>("ports", word, 1, u64::from(MOST_PORTS))?.value);
    }
    ports.sort_unstable();
    ports.dedup();
    let length = u16::try_from(length?.value).ok()?;
    Some(OwnFrames { period: period?.value, offset: offset?.value, length, priority: priority?.value, ports })
}

/// The threads of an injector, where it has any.
pub(super) fn sending_threads(reader: &mut Reader<'_>) -> Option<SendingThreads> {
    let number = reader.optional_whole("threads", 1, THREADS);
    let Some(number) = number else {
        for attribute in ["send-cost", "sleep-overhead"] {
            if reader.element.get(attribute).is_some() {
                let message = format!("{attribute} has no effect without threads");
                let cure = format!("add threads=\"1\" or remove {attribute}");
                reader.found.error(&reader.place, message, "", cure);
            }
        }
        return None;
    };
    for attribute in ["distribution", "active", "pause", "pacing"] {
        if reader.element.get(attribute).is_some_and(|written| written != "periodic") {
            let message = format!("{attribute} belongs to a schedule; threads send and sleep without one");
            let cure = format!("remove {attribute} or threads");
            reader.found.error(&reader.place, message, "", cure);
        }
    }
    let (send_cost, sleep_overhead) = (drawn(reader, "send-cost"), drawn(reader, "sleep-overhead"));
    Some(SendingThreads { number: number?.value, send_cost, sleep_overhead })
}
