//! What a generator can do beyond an even period: ramps, pauses, what it keeps when late, and how frames leave.

use wg_frame::time::Span;

use crate::campaign::{Backend, Pacing};
use crate::language::tasks::send as own;
use crate::language::values::Reached;
use crate::reader::{Maybe, Reader, Sourced};

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
        pacing: reader.value(&own::PACING),
        backend: reader.optional(&own::BACKEND).flatten().and_then(|backend| {
            let value = backend.value?;
            Some(reader.sourced(backend.attribute, &backend.written, value))
        }),
        launch: reader.optional(&own::LAUNCH).flatten(),
    }
}

pub(super) fn course(reader: &mut Reader<'_>, uneven: bool) -> Course {
    let ramp = ramp(reader);
    if uneven && ramp.is_some() {
        let cure = "remove ramp-to, or burst and distribution";
        reader.found.error(&reader.place, "a ramp has neither bursts nor exponential intervals", "", cure);
    }
    let exponential =
        reader.text(&own::DISTRIBUTION).is_some_and(|written| own::DISTRIBUTION.parse(written) == Ok(true));
    let seed = reader.value(&own::SEED);
    if seed.is_some() && !exponential {
        let cure = "add distribution=\"exponential\" or remove seed";
        reader.found.error(&reader.place, "seed has no effect without chance", "", cure);
    }
    let transmit_time = reader
        .read(&own::TRANSMIT_TIME)
        .and_then(|at| Some(reader.sourced(at.attribute, &at.written, u16::try_from(at.value).ok()?)));
    Course { shaping: shaping(reader), ramp, seed, transmit_time }
}

fn activity(reader: &mut Reader<'_>) -> Option<(Sourced<Span>, Sourced<Span>)> {
    let (has, lacks) = match (reader.has(&own::ACTIVE), reader.has(&own::PAUSE)) {
        (false, false) => return None,
        (true, true) => {
            let (active, pause) = (reader.read(&own::ACTIVE), reader.read(&own::PAUSE));
            return active.zip(pause);
        }
        (true, false) => (own::ACTIVE.name, own::PAUSE.name),
        (false, true) => (own::PAUSE.name, own::ACTIVE.name),
    };
    let message = format!("{has} without {lacks} makes no cycle");
    let cure = format!("add {lacks}=\"10ms\" or remove {has}");
    reader.found.error(&reader.place, message, "both or none", cure);
    None
}

fn ramp(reader: &mut Reader<'_>) -> Option<Option<RampEnd>> {
    let end = reader.optional(&own::RAMP_TO)?;
    Some(end.map(|end| match end.value {
        Reached::Period(period) => RampEnd::Period(reader.sourced(end.attribute, &end.written, period)),
        Reached::Load(load) => RampEnd::Load(reader.sourced(end.attribute, &end.written, load)),
    }))
}
