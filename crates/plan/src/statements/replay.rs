//! Replays: senders whose gaps and sizes a capture gives.

use wg_frame::time::Span;

use super::sending::{FILLS, ReplayStatement, SendStatement};
use super::shaping::course;
use crate::diagnostic::Findings;
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader, Sourced};
use crate::trace::{Captures, Trace, Wanted};
use crate::tree::Element;

const DIRECTIONS: [(&str, Option<bool>); 3] =
    [("any", None), ("received", Some(false)), ("sent", Some(true))];
/// Slowest and fastest a capture is replayed, ppm of its own pace.
const SPEEDS: (u32, u32) = (100, 1_000_000_000);
/// Loops of one replay.
const MOST_LOOPS: u64 = 1_000_000;
const LONGEST_LOOP_GAP: Span = Span::from_millis(3_600_000);

pub(super) fn replay(element: &Element, captures: &dyn Captures, found: &mut Findings) -> SendStatement {
    let mut reader = Reader::new(element, found);
    let flow = reader.flow_id("flow");
    let replay = source(&mut reader, captures).map(|file| ReplayStatement {
        file,
        speed_ppm: speed(&mut reader),
        loops: reader.whole("loops", element.get("loops").unwrap_or("1"), 1, MOST_LOOPS),
        loop_gap: element.get("loop-gap").map(|written| {
            reader.time_within("loop-gap", written, (Span::ZERO, LONGEST_LOOP_GAP, "0s to 1h"))
        }),
    });
    if element.get("loop-gap").is_some() && element.get("loops").is_none_or(|loops| loops == "1") {
        let cure = "add loops=\"10\" or remove loop-gap";
        reader.found.error(&reader.place, "loop-gap has no effect without loops", "", cure);
    }
    SendStatement {
        flow,
        pace: None,
        payload: None,
        of_frame: true,
        course: course(&mut reader, false),
        fill: reader.choice("fill", "sequential", &FILLS),
        count: element.get("count").map(|w| reader.whole("count", w, 1, u64::from(u32::MAX))),
        cycle_offset: None,
        offset: reader.time_or("offset", "0s"),
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
    let file = reader.required("file")?;
    let sent = reader.optional_choice("direction", &DIRECTIONS);
    let sent = match sent {
        Some(None) => return Some(reader.sourced("file", file, None)),
        sent => sent.flatten().and_then(|sent| sent.value),
    };
    let wanted = Wanted { file, interface: reader.element.get("interface"), sent };
    let trace = match captures.read(wanted) {
        Ok((trace, notes)) => {
            for note in notes {
                reader.found.warn(format!("capture \"{file}\" {note}"));
            }
            Some(trace)
        }
        Err(none) => {
            reader.refuse("file", file, &none.problem, &none.limit, &none.cure);
            None
        }
    };
    Some(reader.sourced("file", file, trace))
}

fn speed(reader: &mut Reader<'_>) -> Maybe<u32> {
    let written = reader.element.get("speed").unwrap_or("100%");
    let speed = reader.quantity("speed", written, Kind::Ratio, quantity::ppm)?;
    if (SPEEDS.0..=SPEEDS.1).contains(&speed.value) {
        return Some(speed);
    }
    reader.refuse("speed", written, "is out of range", "100ppm to 100000%", "write 200% for twice as fast");
    None
}
