//! Replays: senders whose gaps and sizes a capture gives.

use super::sending::{ReplayStatement, SendStatement};
use super::shaping::course;
use crate::campaign::Fill;
use crate::diagnostic::Findings;
use crate::language::tasks::replay as own;
use crate::language::tasks::send;
use crate::reader::{Reader, Sourced};
use crate::trace::{Captures, Trace, Wanted};
use crate::tree::Element;

pub(super) fn replay(element: &Element, captures: &dyn Captures, found: &mut Findings) -> SendStatement {
    let mut reader = Reader::new(element, found);
    let flow = reader.read(&own::FLOW);
    let replay = source(&mut reader, captures).map(|file| ReplayStatement {
        file,
        speed_ppm: reader.read(&own::SPEED),
        loops: reader.read(&own::LOOPS),
        loop_gap: reader.optional(&own::LOOP_GAP),
    });
    if reader.has(&own::LOOP_GAP) && reader.text(&own::LOOPS).is_none_or(|loops| loops == "1") {
        let cure = "add loops=\"10\" or remove loop-gap";
        reader.found.error(&reader.place, "loop-gap has no effect without loops", "", cure);
    }
    SendStatement {
        flow,
        pace: None,
        payload: None,
        of_frame: true,
        course: course(&mut reader, false),
        fill: Some(reader.sourced(send::FILL.name, "sequential", Fill::Sequential)),
        count: reader.optional(&own::COUNT),
        cycle_offset: None,
        offset: reader.read(&own::OFFSET),
        exponential: false,
        burst: None,
        spacing: None,
        rate_limit: None,
        sub_link: None,
        replay,
        place: reader.place,
    }
}

/// The capture; inner `None` where it gives no trace, which was reported.
fn source(reader: &mut Reader<'_>, captures: &dyn Captures) -> Option<Sourced<Option<Trace>>> {
    let file = reader.written(&own::FILE)?;
    let Some(sent) = reader.value(&own::DIRECTION) else {
        return Some(reader.sourced(own::FILE.name, file, None));
    };
    let wanted = Wanted { file, interface: reader.text(&own::INTERFACE), sent };
    let trace = match captures.read(wanted) {
        Ok((trace, notes)) => {
            for note in notes {
                reader.found.warn(format!("capture \"{file}\" {note}"));
            }
            Some(trace)
        }
        Err(none) => {
            reader.refuse(own::FILE.name, file, &none.problem, &none.limit, &none.cure);
            None
        }
    };
    Some(reader.sourced(own::FILE.name, file, trace))
}
