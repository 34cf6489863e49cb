//! What a sender is told.

use wg_frame::time::Span;

use super::faults::Pace;
use super::shaping::Course;
use crate::campaign::Fill;
use crate::diagnostic::Place;
use crate::language::values::CycleOffset;
use crate::reader::{Maybe, Sourced};
use crate::trace::Trace;

#[derive(Clone, Debug)]
pub(crate) struct SendStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) pace: Option<Pace>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) fill: Maybe<Fill>,
    /// Outer `None`: no count was written.
    pub(crate) count: Option<Maybe<u32>>,
    pub(crate) offset: Maybe<Span>,
    /// Where in a cycle its messages are released; outer `None`: the offset says when.
    pub(crate) cycle_offset: Option<Maybe<CycleOffset>>,
    pub(crate) exponential: bool,
    pub(crate) burst: Maybe<u32>,
    pub(crate) spacing: Maybe<Span>,
    pub(crate) rate_limit: Option<Maybe<u64>>,
    /// From 1, as written.
    pub(crate) sub_link: Maybe<u8>,
    /// The size is that of the frame.
    pub(crate) of_frame: bool,
    pub(crate) course: Course,
    /// What gives its gaps and sizes in place of `pace` and `payload`.
    pub(crate) replay: Option<ReplayStatement>,
}

/// What is particular to a sender that replays.
#[derive(Clone, Debug)]
pub(crate) struct ReplayStatement {
    /// The file, and what could be read of it.
    pub(crate) file: Sourced<Option<Trace>>,
    pub(crate) speed_ppm: Maybe<u32>,
    pub(crate) loops: Maybe<u32>,
    /// Outer `None`: not written.
    pub(crate) loop_gap: Option<Maybe<Span>>,
}
