//! Tasks: who sends, receives, relays, injects and captures.

use super::faults::pace;
use super::imperfections::sending_threads;
use super::parts::sequences;
use super::sending::{CycleOffset, FILLS, SendStatement};
use super::shaping::{Shaping, course, shaping};
use crate::campaign::Turn;
use crate::diagnostic::{Findings, Place};
use crate::imperfections::SendingThreads;
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader, payload as frame_size};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) on: Option<Maybe<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultStatement {
    pub(crate) place: Place,
    pub(crate) kind: Maybe<String>,
    /// Ascending.
    pub(crate) sequences: Maybe<Vec<(u32, u32)>>,
    pub(crate) to: Option<Maybe<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RelayStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) on: Option<Maybe<String>>,
    pub(crate) vl: Option<Maybe<u16>>,
    pub(crate) through: Maybe<Turn>,
    pub(crate) faults: Vec<FaultStatement>,
}

#[derive(Clone, Debug)]
pub(crate) struct CaptureStatement {
    pub(crate) place: Place,
    pub(crate) on: Maybe<String>,
    pub(crate) snap: Maybe<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct InjectStatement {
    pub(crate) place: Place,
    pub(crate) on: Maybe<String>,
    pub(crate) to: Maybe<String>,
    pub(crate) load: Maybe<u32>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) burst: Maybe<u32>,
    pub(crate) of_frame: bool,
    pub(crate) exponential: bool,
    pub(crate) shaping: Shaping,
    pub(crate) threads: Option<SendingThreads>,
}

#[derive(Clone, Debug)]
pub(crate) struct RemoteLogStatement {
    pub(crate) place: Place,
    pub(crate) on: Maybe<String>,
    pub(crate) to: Maybe<String>,
    pub(crate) record: Maybe<u64>,
    pub(crate) records: Maybe<u32>,
}

const INJECT_PAYLOAD: &str = "1472B";
const INJECT_BURST: &str = "10";
/// As long as what this program keeps of an event.
const LOG_RECORD: &str = "32B";

/// Where a relay can turn a message round.
pub(crate) const TURNS: [(&str, Turn); 2] = [("servicing", Turn::Servicing), ("task", Turn::Task)];
/// Frames of one burst of an injector, at most.
pub(crate) const MOST_BURST: u64 = 10_000;

pub(super) fn send(element: &Element, found: &mut Findings) -> SendStatement {
    let mut reader = Reader::new(element, found);
    let exponential = exponential(&mut reader);
    let burst = reader.optional_whole("burst", 1, MOST_BURST).flatten();
    let spacing = reader.time_or("spacing", "0s");
    check_pattern(&mut reader, exponential, &burst);
    let uneven = exponential || burst.as_ref().is_some_and(|burst| burst.value > 1);
    let course = course(&mut reader, uneven);
    let (payload, of_frame) = size(&mut reader, None);
    SendStatement {
        cycle_offset: cycle_offset(&mut reader),
        flow: reader.flow_id("flow"),
        pace: pace(&mut reader),
        payload,
        of_frame,
        course,
        fill: reader.choice("fill", element.get("fill").unwrap_or("sequential"), &FILLS),
        count: element.get("count").map(|w| reader.whole("count", w, 1, u64::from(u32::MAX))),
        offset: reader.time_or("offset", "0s"),
        exponential,
        burst,
        spacing,
        rate_limit: reader.optional("rate-limit", Kind::Rate, quantity::rate),
        sub_link: reader.optional_whole("sub-link", 1, 4).flatten(),
        replay: None,
        place: reader.place,
    }
}

/// What keeps a sender from being at one place in each cycle.
const OFF_THE_CYCLE: [(&str, Option<&str>); 6] = [
    ("offset", None),
    ("distribution", Some("exponential")),
    ("ramp-to", None),
    ("rate-limit", None),
    ("active", None),
    ("pacing", Some("gap")),
];

fn cycle_offset(reader: &mut Reader<'_>) -> Option<Maybe<CycleOffset>> {
    let written = reader.element.get("cycle-offset")?;
    let contradicts = OFF_THE_CYCLE.iter().find(|(attribute, value)| {
        let set = reader.element.get(attribute);
        set.is_some_and(|set| value.is_none_or(|value| set == value))
    });
    if let Some((attribute, _)) = contradicts {
        let message = format!(
            "{attribute} takes its messages off the place that cycle-offset gives them in each cycle"
        );
        reader.found.error(&reader.place, message, "1 of the two", "remove one of the two");
        return Some(None);
    }
    if written == "dispatch" {
        return Some(Some(reader.sourced("cycle-offset", written, CycleOffset::Dispatch)));
    }
    let at = reader.quantity("cycle-offset", written, Kind::Time, quantity::time);
    Some(at.map(|at| reader.sourced("cycle-offset", written, CycleOffset::At(at.value))))
}

fn exponential(reader: &mut Reader<'_>) -> bool {
    let choices = [("periodic", false), ("exponential", true)];
    let distribution = reader.optional_choice("distribution", &choices).flatten();
    distribution.is_some_and(|distribution| distribution.value)
}

/// The size of a message, and whether it is that of its frame: one of `payload` and `frame`.
fn size(reader: &mut Reader<'_>, default: Option<&str>) -> (Maybe<u32>, bool) {
    match (reader.element.get("payload"), reader.element.get("frame")) {
        (Some(_), Some(_)) => {
            let message = "both payload and frame say how long a message is";
            reader.found.error(&reader.place, message, "1 of them", "keep one of the two");
            (None, false)
        }
        (None, Some(frame)) => (reader.quantity("frame", frame, Kind::Size, frame_size), true),
        (payload, None) => (reader.payload(payload.or(default)), false),
    }
}

/// Bursts are planned, chance is not; and a spacing is one within a burst.
fn check_pattern(reader: &mut Reader<'_>, exponential: bool, burst: &Maybe<u32>) {
    if exponential && burst.is_some() {
        let cure = "write distribution=\"periodic\" or remove burst";
        reader.found.error(&reader.place, "bursts do not come at exponential intervals", "", cure);
    }
    let single = burst.as_ref().is_none_or(|burst| burst.value == 1);
    let read = reader.element.get("burst").is_none() || burst.is_some();
    if single && read && reader.element.get("spacing").is_some() {
        let cure = "add burst=\"10\" or remove spacing";
        reader.found.error(&reader.place, "spacing has no effect without a burst", "", cure);
    }
}

pub(super) fn capture(element: &Element, found: &mut Findings) -> CaptureStatement {
    let mut reader = Reader::new(element, found);
    let written = element.get("snap").unwrap_or("1522B");
    CaptureStatement {
        on: reader.name("on"),
        snap: reader.size_within("snap", written, (14, 65_535, "14B to 65535B")),
        place: reader.place,
    }
}

pub(super) fn remote_log(element: &Element, found: &mut Findings) -> RemoteLogStatement {
    let mut reader = Reader::new(element, found);
    let record = element.get("record").unwrap_or(LOG_RECORD);
    RemoteLogStatement {
        on: reader.name("on"),
        to: reader.name("to"),
        record: reader.size_within("record", record, (8, 1_472, "8B to 1472B")),
        records: reader.whole("records", element.get("records").unwrap_or("1"), 1, 184),
        place: reader.place,
    }
}

pub(super) fn receive(element: &Element, found: &mut Findings) -> ReceiveStatement {
    let mut reader = Reader::new(element, found);
    ReceiveStatement {
        flow: reader.flow_id("flow"),
        on: element.get("on").map(|_| reader.name("on")),
        place: reader.place,
    }
}

pub(super) fn relay(element: &Element, found: &mut Findings) -> RelayStatement {
    let mut reader = Reader::new(element, found);
    let flow = reader.flow_id("flow");
    let on = element.get("on").map(|_| reader.name("on"));
    let through = reader.choice("through", element.get("through").unwrap_or("servicing"), &TURNS);
    let vl = element.get("vl").map(|_| reader.optional_whole("vl", 1, 65_535).flatten());
    let place = reader.place;
    let faults = element.all("fault").map(|e| fault(e, found)).collect();
    RelayStatement { place, flow, on, vl, through, faults }
}

fn fault(element: &Element, found: &mut Findings) -> FaultStatement {
    let kinds = ["loss", "duplicate", "reorder", "corrupt", "misdirect"].map(|kind| (kind, kind));
    let mut reader = Reader::new(element, found);
    let kind = reader.required("kind").and_then(|written| reader.choice("kind", written, &kinds));
    FaultStatement {
        kind: kind.map(|kind| reader.sourced("kind", kind.value, kind.value.to_owned())),
        sequences: reader.required("sequence").and_then(|written| sequences(&mut reader, written)),
        to: element.get("to").map(|_| reader.name("to")),
        place: reader.place,
    }
}

pub(super) fn inject(element: &Element, found: &mut Findings) -> InjectStatement {
    let mut reader = Reader::new(element, found);
    let load = reader
        .required("load")
        .and_then(|written| reader.quantity("load", written, Kind::Ratio, quantity::ppm));
    let exponential = exponential(&mut reader);
    let shaping = shaping(&mut reader);
    let (payload, of_frame) = size(&mut reader, Some(INJECT_PAYLOAD));
    let threads = sending_threads(&mut reader);
    let burst = element.get("burst").unwrap_or(INJECT_BURST);
    InjectStatement {
        on: reader.name("on"),
        to: reader.name("to"),
        load,
        payload,
        of_frame,
        exponential,
        shaping,
        threads,
        burst: reader.whole("burst", burst, 1, MOST_BURST),
        place: reader.place,
    }
}
