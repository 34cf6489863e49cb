//! What a generator can do beyond an even period: ramps, pauses, what it keeps when late, and how frames leave.

use wg_frame::time::Span;

use crate::campaign::{Backend, Pacing};
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader, Sourced};

/// What is kept when a message is late.
const MODES: [(&str, Pacing); 2] = [("rate", Pacing::Rate), ("gap", Pacing::Gap)];
/// How frames leave a real host; `auto` is none of them.
const BACKENDS: [(&str, Option<Backend>); 5] = [
    ("auto", None),
    ("udp", Some(Backend::Udp)),
    ("packet", Some(Backend::Packet)),
    ("xdp", Some(Backend::Xdp)),
    ("xdp-live", Some(Backend::XdpLive)),
];

/// Whether frames are launched; `auto` is neither.
const LAUNCHES: [(&str, Option<bool>); 3] = [("auto", None), ("on", Some(true)), ("off", Some(false))];

/// Attributes senders and injectors share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shaping {
    /// Active time and pause.
    pub(crate) activity: Option<(Sourced<Span>, Sourced<Span>)>,
    pub(crate) pacing: Option<Pacing>,
    pub(crate) backend: Maybe<Backend>,
    pub(crate) launch: Maybe<Option<bool>>,
}

/// Attributes of senders alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    pub(crate) shaping: Shaping,
    /// Outer `None`: no ramp was written.
    pub(crate) ramp: Option<Option<RampEnd>>,
    pub(crate) seed: Option<u64>,
    pub(crate) transmit_time: Maybe<u16>,
}

/// Where a ramp ends.
#[derive(Clone, Debug)]
pub(crate) enum RampEnd {
    Period(Sourced<Span>),
    Load(Sourced<u32>),
}

pub(super) fn shaping(reader: &mut Reader<'_>) -> Shaping {
    Shaping {
        activity: activity(reader),
        pacing: reader.optional_choice("pacing", &MODES).flatten().map(|mode| mode.value),
        backend: reader.optional_choice("backend", &BACKENDS).flatten().and_then(|backend| {
            let value = backend.value?;
            Some(reader.sourced("backend", &backend.written, value))
        }),
        launch: reader.optional_choice("launch", &LAUNCHES).flatten(),
    }
}

pub(super) fn course(reader: &mut Reader<'_>, uneven: bool) -> Course {
    let ramp = ramp(reader);
    if uneven && ramp.is_some() {
        let cure = "remove ramp-to, or burst and distribution";
        reader.found.error(&reader.place, "a ramp has neither bursts nor exponential intervals", "", cure);
    }
    let exponential = reader.element.get("distribution") == Some("exponential");
    let seed = reader.optional_whole("seed", 0, u64::MAX).flatten().map(|seed: Sourced<u64>| seed.value);
    if seed.is_some() && !exponential {
        let cure = "add distribution=\"exponential\" or remove seed";
        reader.found.error(&reader.place, "seed has no effect without chance", "", cure);
    }
    let transmit_time = reader.element.get("transmit-time").and_then(|written| {
        let at = reader.size_within("transmit-time", written, (12, 1_492, "12B to 1492B"))?;
        Some(reader.sourced("transmit-time", written, u16::try_from(at.value).ok()?))
    });
    Course { shaping: shaping(reader), ramp, seed, transmit_time }
}

fn activity(reader: &mut Reader<'_>) -> Option<(Sourced<Span>, Sourced<Span>)> {
    let (active, pause) = (reader.element.get("active"), reader.element.get("pause"));
    let (active, pause) = match (active, pause) {
        (None, None) => return None,
        (Some(active), Some(pause)) => (active, pause),
        (given, _) => {
            let (has, lacks) = if given.is_some() { ("active", "pause") } else { ("pause", "active") };
            let message = format!("{has} without {lacks} makes no cycle");
            let cure = format!("add {lacks}=\"10ms\" or remove {has}");
            reader.found.error(&reader.place, message, "both or none", cure);
            return None;
        }
    };
    let bounds = (Span::from_micros(1), Span::from_millis(3_600_000), "1us to 1h");
    let active = reader.time_within("active", active, bounds);
    let pause = reader.time_within("pause", pause, bounds);
    active.zip(pause)
}

fn ramp(reader: &mut Reader<'_>) -> Option<Option<RampEnd>> {
    let written = reader.element.get("ramp-to")?;
    if !written.ends_with('%') && !written.ends_with("ppm") {
        let period = reader.quantity("ramp-to", written, Kind::Time, quantity::time);
        return Some(period.map(RampEnd::Period));
    }
    let load = reader.quantity("ramp-to", written, Kind::Ratio, quantity::ppm);
    let Some(load) = load else { return Some(None) };
    if (1..=1_000_000).contains(&load.value) {
        return Some(Some(RampEnd::Load(load)));
    }
    let cure = "write the share of the sender's link at the end";
    reader.refuse("ramp-to", written, "is out of range", "more than 0%, at most 100%", cure);
    Some(None)
}
