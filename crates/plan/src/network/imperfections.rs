//! What distinguishes a simulated node from a perfect one beside its clock and its host model: errors of its timestamps,
//! events of its host that recur, frames of its own.
//!
//! Real hosts and switches have their own; a bench of real frames takes nothing from here.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use super::kinds::HeldUp;
use crate::diagnostic::{Findings, Place};
use crate::distribution::Distribution;
use crate::language::nodes::{event as happening, timestamps as stamps};
use crate::language::switches::own_frames as frames;
use crate::reader::Reader;
use crate::tree::Element;

/// Errors of the timestamps of a node, drawn for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamps {
    /// Error of a timestamp that an application takes.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub application_error: Distribution,
    /// Error of a timestamp that the driver takes.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub driver_error: Distribution,
    /// Error of a timestamp that the interface, or the port of a switch, takes.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub wire_error: Distribution,
    /// Time that an application takes to read its clock: a message leaves, and a reception is known, later by it.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub read_cost: Distribution,
    /// Whether the least read cost is subtracted from every timestamp of an application.
    #[serde(default, skip_serializing_if = "is_false")]
    pub subtract_read_cost: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A recurring event of a host, which holds up the threads that have to be woken meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// Time from the beginning of one event to that of the next.
    pub period: Span,
    /// When the first event begins, after the epoch.
    #[serde(default)]
    pub offset: Span,
    /// Duration of each event.
    pub duration: Span,
    /// Latency that it adds to a thread that is woken meanwhile; with a ramp, at its beginning.
    pub latency: Distribution,
    /// Latency at its end, to which it rises or falls evenly; absent: no ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_to: Option<Span>,
    /// The threads it holds up.
    #[serde(default)]
    pub threads: HeldUp,
}

/// Frames that a switch sends by itself, as those of a spanning tree or of a discovery protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFrames {
    /// Time between two frames of a port.
    pub period: Span,
    /// When the first frame is sent, after the epoch.
    #[serde(default)]
    pub offset: Span,
    /// Length of a frame, destination address to FCS, in bytes.
    pub length: u16,
    /// Priority of the frames at the output port, 0 to 7.
    pub priority: u8,
    /// Ports that send them, ascending; empty: all that have a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// Events of a host, or kinds of own frames of a switch.
const MOST: usize = 64;

/// Reads `<timestamps>`.
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

/// Reads the `<event>` elements of an end system.
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

/// Reads the `<own-frames>` elements of a switch.
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
