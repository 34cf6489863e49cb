//! Tasks: who sends, receives, relays, injects and captures.

use super::faults::pace;
use super::sending::SendStatement;
use super::shaping::{Shaping, course, shaping};
use super::tsn::beyond_usual;
use crate::campaign::{SendingThreads, Turn};
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::{Attribute, Declared};
use crate::language::tasks::{
    capture as writing, fault as planted, inject as load, receive as receiver, relay as returned,
    remote_log as log, send as own,
};
use crate::language::values::CycleOffset;
use crate::reader::{Maybe, Reader};
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

pub(super) fn send(element: &Element, found: &mut Findings) -> SendStatement {
    let mut reader = Reader::new(element, found);
    let exponential = reader.value(&own::DISTRIBUTION).unwrap_or_default();
    let burst = reader.read(&own::BURST);
    let spacing = reader.read(&own::SPACING);
    check_pattern(&mut reader, exponential, &burst);
    let uneven = exponential || burst.as_ref().is_some_and(|burst| burst.value > 1);
    let course = course(&mut reader, uneven);
    let (payload, of_frame) = size(&mut reader, &own::PAYLOAD);
    SendStatement {
        cycle_offset: cycle_offset(&mut reader),
        flow: reader.read(&own::FLOW),
        pace: pace(&mut reader, &own::PERIOD, &own::LOAD),
        payload,
        of_frame,
        course,
        fill: reader.read(&own::FILL),
        count: reader.optional(&own::COUNT),
        offset: reader.read(&own::OFFSET),
        exponential,
        burst,
        spacing,
        rate_limit: reader.optional(&own::RATE_LIMIT),
        sub_link: reader.optional(&own::SUB_LINK).flatten(),
        replay: None,
        place: reader.place,
    }
}

/// What keeps a sender from being at one place in each cycle.
const OFF_THE_CYCLE: [(&dyn Declared, Option<&str>); 6] = [
    (&own::OFFSET, None),
    (&own::DISTRIBUTION, Some("exponential")),
    (&own::RAMP_TO, None),
    (&own::RATE_LIMIT, None),
    (&own::ACTIVE, None),
    (&own::PACING, Some("gap")),
];

fn cycle_offset(reader: &mut Reader<'_>) -> Option<Maybe<CycleOffset>> {
    if !reader.has(&own::CYCLE_OFFSET) {
        return None;
    }
    let contradicts = OFF_THE_CYCLE.iter().find(|(attribute, value)| {
        let set = reader.element.get(attribute.name());
        set.is_some_and(|set| value.is_none_or(|value| set == value))
    });
    if let Some((attribute, _)) = contradicts {
        let message = format!(
            "{} takes its messages off the place that cycle-offset gives them in each cycle",
            attribute.name()
        );
        reader.found.error(&reader.place, message, "1 of the two", "remove one of the two");
        return Some(None);
    }
    Some(reader.read(&own::CYCLE_OFFSET))
}

/// The size of a message, and whether it is that of its frame: one of `payload` and `frame`.
fn size(reader: &mut Reader<'_>, payload: &Attribute<u32>) -> (Maybe<u32>, bool) {
    match (reader.has(payload), reader.has(&own::FRAME)) {
        (true, true) => {
            let message = "both payload and frame say how long a message is";
            reader.found.error(&reader.place, message, "1 of them", "keep one of the two");
            (None, false)
        }
        (false, true) => (reader.read(&own::FRAME), true),
        (false, false) if payload.default().is_none() => {
            reader.missing(payload.name);
            (None, false)
        }
        _ => (reader.read(payload), false),
    }
}

/// Bursts are planned, chance is not; and a spacing is one within a burst.
fn check_pattern(reader: &mut Reader<'_>, exponential: bool, burst: &Maybe<u32>) {
    if exponential && burst.is_some() {
        let cure = "write distribution=\"periodic\" or remove burst";
        reader.found.error(&reader.place, "bursts do not come at exponential intervals", "", cure);
    }
    let single = burst.as_ref().is_none_or(|burst| burst.value == 1);
    let read = !reader.has(&own::BURST) || burst.is_some();
    if single && read && reader.has(&own::SPACING) {
        let cure = "add burst=\"10\" or remove spacing";
        reader.found.error(&reader.place, "spacing has no effect without a burst", "", cure);
    }
}

pub(super) fn capture(element: &Element, found: &mut Findings) -> CaptureStatement {
    let mut reader = Reader::new(element, found);
    CaptureStatement { on: reader.read(&writing::ON), snap: reader.read(&writing::SNAP), place: reader.place }
}

pub(super) fn remote_log(element: &Element, found: &mut Findings) -> RemoteLogStatement {
    let mut reader = Reader::new(element, found);
    RemoteLogStatement {
        on: reader.read(&log::ON),
        to: reader.read(&log::TO),
        record: reader.read(&log::RECORD),
        records: reader.read(&log::RECORDS),
        place: reader.place,
    }
}

pub(super) fn receive(element: &Element, found: &mut Findings) -> ReceiveStatement {
    let mut reader = Reader::new(element, found);
    ReceiveStatement {
        flow: reader.read(&receiver::FLOW),
        on: reader.optional(&receiver::ON),
        place: reader.place,
    }
}

pub(super) fn relay(element: &Element, found: &mut Findings) -> RelayStatement {
    let mut reader = Reader::new(element, found);
    let flow = reader.read(&returned::FLOW);
    let on = reader.optional(&returned::ON);
    let through = reader.read(&returned::THROUGH);
    let vl = reader.optional(&returned::VL);
    let place = reader.place;
    let faults = element.all("fault").map(|e| fault(e, found)).collect();
    RelayStatement { place, flow, on, vl, through, faults }
}

fn fault(element: &Element, found: &mut Findings) -> FaultStatement {
    let mut reader = Reader::new(element, found);
    let kind = reader.read(&planted::KIND);
    FaultStatement {
        kind: kind.map(|kind| reader.sourced(kind.attribute, kind.value, kind.value.to_owned())),
        sequences: reader.read(&planted::SEQUENCE),
        to: reader.optional(&planted::TO),
        place: reader.place,
    }
}

pub(super) fn inject(element: &Element, found: &mut Findings) -> InjectStatement {
    let mut reader = Reader::new(element, found);
    let share = reader.read(&load::LOAD);
    let exponential = reader.value(&load::DISTRIBUTION).unwrap_or_default();
    let shaping = shaping(&mut reader);
    let (payload, of_frame) = size(&mut reader, &load::PAYLOAD);
    let threads = sending_threads(&mut reader);
    InjectStatement {
        on: reader.read(&load::ON),
        to: reader.read(&load::TO),
        load: share,
        payload,
        of_frame,
        exponential,
        shaping,
        threads,
        burst: reader.read(&load::BURST),
        place: reader.place,
    }
}

/// Reads the threads of an injector, where it has any.
fn sending_threads(reader: &mut Reader<'_>) -> Option<SendingThreads> {
    let Some(number) = reader.optional(&load::THREADS) else {
        for attribute in [&load::SEND_COST, &load::SLEEP_OVERHEAD] {
            if reader.has(attribute) {
                let message = format!("{} has no effect without threads", attribute.name);
                let cure = format!("add threads=\"1\" or remove {}", attribute.name);
                reader.found.error(&reader.place, message, "", cure);
            }
        }
        return None;
    };
    let of_schedules: [&dyn Declared; 4] = [&load::DISTRIBUTION, &load::ACTIVE, &load::PAUSE, &load::PACING];
    for attribute in beyond_usual(reader, &of_schedules) {
        let message = format!("{attribute} belongs to a schedule; threads send and sleep without one");
        let cure = format!("remove {attribute} or threads");
        reader.found.error(&reader.place, message, "", cure);
    }
    let send_cost = reader.value(&load::SEND_COST).unwrap_or_default();
    let sleep_overhead = reader.value(&load::SLEEP_OVERHEAD).unwrap_or_default();
    Some(SendingThreads { number: number?.value, send_cost, sleep_overhead })
}
