//! Faults of the network: what links do to frames, and what befalls nodes and links.

use wg_frame::time::Span;

use super::parts::{End, link_ends};
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::Attribute;
use crate::language::faults::{babble, bit_errors, cut, delay, loss, restart, step_clock, wrong_length};
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
    /// Delays frames by a time.
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
pub(super) fn pace(reader: &mut Reader<'_>, period: &Attribute<Span>, load: &Attribute<u32>) -> Option<Pace> {
    match (reader.has(period), reader.has(load)) {
        (true, false) => reader.read(period).map(Pace::Period),
        (false, true) => reader.read(load).map(Pace::Load),
        (false, false) => {
            let cure = "add period=\"2ms\" or load=\"10%\"";
            reader.found.error(&reader.place, "period is missing", "", cure);
            None
        }
        (true, true) => {
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
            let length = reader.value(&wrong_length::LENGTH);
            frames(&mut reader, FrameFaultKind::WrongLength(length))
        }
        "delay" => {
            let by = reader.value(&delay::BY);
            frames(&mut reader, FrameFaultKind::Delay(by))
        }
        "cut" => NetworkFaultKind::Cut {
            link: link(&mut reader),
            from: reader.read(&cut::FROM),
            until: reader.optional(&cut::UNTIL),
        },
        "babble" => NetworkFaultKind::Babble(Babble {
            flow: reader.read(&babble::FLOW),
            from: reader.read(&babble::FROM),
            until: reader.read(&babble::UNTIL),
            pace: pace(&mut reader, &babble::PERIOD, &babble::LOAD),
            length: reader.optional(&babble::LENGTH),
        }),
        "restart" => NetworkFaultKind::Restart {
            switch: reader.read(&restart::SWITCH),
            from: reader.read(&restart::FROM),
            until: reader.read(&restart::UNTIL),
        },
        "step-clock" => NetworkFaultKind::StepClock {
            on: reader.read(&step_clock::ON),
            at: reader.read(&step_clock::AT),
            by: reader.read(&step_clock::BY),
        },
        _ => return None,
    };
    Some(NetworkFault { place: reader.place, kind })
}

fn link(reader: &mut Reader<'_>) -> Maybe<[End; 2]> {
    let written = reader.written(&loss::LINK)?;
    let ends = link_ends(reader, loss::LINK.name, written)?;
    Some(reader.sourced(loss::LINK.name, written, ends))
}

fn frames(reader: &mut Reader<'_>, what: FrameFaultKind) -> NetworkFaultKind {
    NetworkFaultKind::Frames(FrameFault {
        what,
        link: link(reader),
        sent_by: reader.optional(&loss::SENT_BY),
        whom: whom(reader, what),
        from: reader.read(&loss::FROM),
        until: reader.optional(&loss::UNTIL),
    })
}

fn whom(reader: &mut Reader<'_>, what: FrameFaultKind) -> Option<Whom> {
    if what == FrameFaultKind::BitErrors {
        return reader.value(&bit_errors::RATE).map(Whom::Bits);
    }
    match (reader.has(&loss::SHARE), reader.has(&loss::FLOW), reader.has(&loss::SEQUENCE)) {
        (true, false, false) => reader.value(&loss::SHARE).map(Whom::Share),
        (false, true, true) => {
            let (flow, sequences) = (reader.read(&loss::FLOW), reader.read(&loss::SEQUENCE));
            Some(Whom::Messages(flow?, sequences?))
        }
        (false, false, false) => {
            let cure = "add share=\"1%\", or flow=\"…\" with sequence=\"…\"";
            reader.found.error(&reader.place, "nothing says which frames are struck", "", cure);
            None
        }
        (false, flow, _) => {
            let (present, missing) = if flow { ("flow", "sequence") } else { ("sequence", "flow") };
            let message = format!("{present} stands without {missing}");
            reader.found.error(&reader.place, message, "", format!("add {missing}=\"…\" or write a share"));
            None
        }
        (true, _, _) => {
            let message = "both a share and single messages are struck";
            reader.found.error(&reader.place, message, "1 of them", "write two elements");
            None
        }
    }
}
