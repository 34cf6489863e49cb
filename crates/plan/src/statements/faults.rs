//! Faults of the network: what links do to frames, and what befalls nodes and links.

use wg_frame::time::Span;

use super::parts::sequences;
use super::parts::{End, link_ends};
use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind, QuantityError};
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct NetworkFault {
    pub(crate) place: Place,
    pub(crate) kind: NetworkFaultKind,
}

#[derive(Clone, Debug)]
pub(crate) enum NetworkFaultKind {
    Frames(FrameFault),
    Cut { link: Maybe<[End; 2]>, from: Maybe<Span>, until: Option<Maybe<Span>> },
    Babble(Babble),
    Restart { switch: Maybe<String>, from: Maybe<Span>, until: Maybe<Span> },
    StepClock { on: Maybe<String>, at: Maybe<Span>, by: Maybe<Span> },
}

/// What a link does to frames.
#[derive(Clone, Debug)]
pub(crate) struct FrameFault {
    pub(crate) what: FrameFaultKind,
    pub(crate) link: Maybe<[End; 2]>,
    pub(crate) sent_by: Option<Maybe<String>>,
    pub(crate) whom: Option<Whom>,
    pub(crate) from: Maybe<Span>,
    pub(crate) until: Option<Maybe<Span>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFaultKind {
    BitErrors,
    Loss,
    Duplicate,
    /// By so much.
    Delay(Option<Span>),
    Corrupt,
    /// They have this length.
    WrongLength(Option<u16>),
}

/// The frames it strikes.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    Share(u32),
    Bits(u64),
    Messages(Sourced<u16>, Sourced<Vec<(u32, u32)>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Babble {
    pub(crate) flow: Maybe<u16>,
    pub(crate) from: Maybe<Span>,
    pub(crate) until: Maybe<Span>,
    pub(crate) pace: Option<Pace>,
    pub(crate) length: Option<Maybe<u16>>,
}

/// How fast messages come: at a period, or so that they take a share of the sender's link.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    Period(Sourced<Span>),
    Load(Sourced<u32>),
}

/// One of `period` and `load`.
pub(super) fn pace(reader: &mut Reader<'_>) -> Option<Pace> {
    let (period, load) = (reader.element.get("period"), reader.element.get("load"));
    match (period, load) {
        (Some(period), None) => {
            reader.quantity("period", period, Kind::Time, quantity::time).map(Pace::Period)
        }
        (None, Some(load)) => {
            let load = reader.quantity("load", load, Kind::Ratio, quantity::ppm)?;
            if (1..=1_000_000).contains(&load.value) {
                return Some(Pace::Load(load));
            }
            let cure = "write the share of the sender's link";
            reader.refuse("load", &load.written, "is out of range", "more than 0%, at most 100%", cure);
            None
        }
        (None, None) => {
            let cure = "add period=\"2ms\" or load=\"10%\"";
            reader.found.error(&reader.place, "period is missing", "", cure);
            None
        }
        (Some(_), Some(_)) => {
            let message = "both period and load say how fast messages come";
            reader.found.error(&reader.place, message, "1 of them", "keep one of the two");
            None
        }
    }
}

pub(super) fn network_fault(element: &Element, found: &mut Findings) -> Option<NetworkFault> {
    let mut reader = Reader::new(element, found);
    let kind = match element.tag.as_str() {
        "bit-errors" => frames(&mut reader, FrameFaultKind::BitErrors),
        "loss" => frames(&mut reader, FrameFaultKind::Loss),
        "duplicate" => frames(&mut reader, FrameFaultKind::Duplicate),
        "corrupt" => frames(&mut reader, FrameFaultKind::Corrupt),
        "wrong-length" => {
            let length = wrong_length(&mut reader);
            frames(&mut reader, FrameFaultKind::WrongLength(length))
        }
        "delay" => {
            let bounds = (Span::from_picos(1), Span::from_millis(60_000), "more than 0s, at most 1min");
            let by = reader.required("by").and_then(|w| reader.time_within("by", w, bounds));
            frames(&mut reader, FrameFaultKind::Delay(by.map(|by| by.value)))
        }
        "cut" => NetworkFaultKind::Cut {
            link: link(&mut reader),
            from: instant(&mut reader, "from"),
            until: element.get("until").map(|_| instant(&mut reader, "until")),
        },
        "babble" => NetworkFaultKind::Babble(Babble {
            flow: reader.flow_id("flow"),
            from: instant(&mut reader, "from"),
            until: instant(&mut reader, "until"),
            pace: pace(&mut reader),
            length: element.get("length").map(|w| {
                let length = reader.quantity("length", w, Kind::Size, frame_length)?;
                if (64..=1_518).contains(&length.value) {
                    return Some(length);
                }
                let cure = "write a length, destination address to FCS";
                reader.refuse("length", w, "is no length of a frame", "64B to 1518B", cure);
                None
            }),
        }),
        "restart" => NetworkFaultKind::Restart {
            switch: reader.name("switch"),
            from: instant(&mut reader, "from"),
            until: instant(&mut reader, "until"),
        },
        "step-clock" => NetworkFaultKind::StepClock {
            on: reader.name("on"),
            at: instant(&mut reader, "at"),
            by: reader.required("by").and_then(|w| step(&mut reader, w)),
        },
        _ => return None,
    };
    Some(NetworkFault { place: reader.place, kind })
}

fn frame_length(text: &str) -> Result<u16, QuantityError> {
    u16::try_from(quantity::size(text)?).map_err(|_| QuantityError::TooLarge)
}

/// From a header and an FCS to what no receiver of jumbo frames takes; not those of good frames.
fn wrong_length(reader: &mut Reader<'_>) -> Option<u16> {
    let written = reader.required("length")?;
    let length = reader.quantity("length", written, Kind::Size, frame_length)?;
    if (18..64).contains(&length.value) || (1_519..=16_000).contains(&length.value) {
        return Some(length.value);
    }
    let cure = "write the length of a runt or a giant, destination address to FCS";
    reader.refuse("length", written, "is no wrong length of a frame", "18B to 63B, or 1519B to 16000B", cure);
    None
}

fn instant(reader: &mut Reader<'_>, attribute: &'static str) -> Maybe<Span> {
    let written = reader.required(attribute)?;
    reader.quantity(attribute, written, Kind::Time, quantity::time)
}

fn link(reader: &mut Reader<'_>) -> Maybe<[End; 2]> {
    let written = reader.required("link")?;
    let ends = link_ends(reader, "link", written)?;
    Some(reader.sourced("link", written, ends))
}

fn step(reader: &mut Reader<'_>, written: &str) -> Maybe<Span> {
    let day = Span::from_millis(86_400_000);
    let by = reader.quantity("by", written, Kind::Time, quantity::signed_time)?;
    if by.value != Span::ZERO && (-day..=day).contains(&by.value) {
        return Some(by);
    }
    let limit = "not 0s, one day either way";
    reader.refuse("by", written, "is no step of a clock", limit, "write by how much the clock is set");
    None
}

fn frames(reader: &mut Reader<'_>, what: FrameFaultKind) -> NetworkFaultKind {
    let element = reader.element;
    let from = element.get("from").unwrap_or("0s");
    NetworkFaultKind::Frames(FrameFault {
        what,
        link: link(reader),
        sent_by: element.get("sent-by").map(|_| reader.name("sent-by")),
        whom: whom(reader, what),
        from: reader.quantity("from", from, Kind::Time, quantity::time),
        until: element.get("until").map(|_| instant(reader, "until")),
    })
}

fn whom(reader: &mut Reader<'_>, what: FrameFaultKind) -> Option<Whom> {
    let element = reader.element;
    if what == FrameFaultKind::BitErrors {
        let written = reader.required("rate")?;
        let bits = quantity::mean_bits(written);
        if bits.is_none() {
            let cure = "write errors per bit as a bare number, for example 1e-9";
            reader.refuse("rate", written, "is no bit error rate", "1e-18 to 1", cure);
        }
        return bits.map(Whom::Bits);
    }
    let (share, flow, numbers) = (element.get("share"), element.get("flow"), element.get("sequence"));
    match (share, flow, numbers) {
        (Some(written), None, None) => {
            let share = reader.quantity("share", written, Kind::Ratio, quantity::ppm)?;
            if (1..=1_000_000).contains(&share.value) {
                return Some(Whom::Share(share.value));
            }
            let cure = "write the share of frames that are struck";
            reader.refuse("share", written, "is out of range", "more than 0%, at most 100%", cure);
            None
        }
        (None, Some(_), Some(numbers)) => {
            let (flow, sequences) = (reader.flow_id("flow"), sequences(reader, numbers));
            Some(Whom::Messages(flow?, sequences?))
        }
        (None, None, None) => {
            let cure = "add share=\"1%\", or flow=\"…\" with sequence=\"…\"";
            reader.found.error(&reader.place, "nothing says which frames are struck", "", cure);
            None
        }
        (None, _, _) => {
            let (present, missing) = if flow.is_some() { ("flow", "sequence") } else { ("sequence", "flow") };
            let message = format!("{present} stands without {missing}");
            reader.found.error(&reader.place, message, "", format!("add {missing}=\"…\" or write a share"));
            None
        }
        (Some(_), _, _) => {
            let message = "both a share and single messages are struck";
            reader.found.error(&reader.place, message, "1 of them", "write two elements");
            None
        }
    }
}
