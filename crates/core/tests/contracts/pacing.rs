//! What a paced sender promises, held against what it did: one body for the core, the simulator and the live sender.
//! Written from the test language's reference, not from the core.

use wg_core::pacing::Pacing;
use wg_frame::time::{RunTime, Span};

/// What became of one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// When its generator has it.
    pub(crate) planned: RunTime,
    /// When it was to be sent, as recorded.
    pub(crate) intended: RunTime,
    /// When it was.
    pub(crate) at: RunTime,
}

/// Holds `sent`, the messages of one sender in their order, against `pacing`. A driver's clock counts in steps of
/// `grain`: an instant of a schedule is rounded down to one, the end of a gap up.
pub(crate) fn holds(pacing: Pacing, grain: Span, sent: &[Sent]) {
    let within = |rounding: Span| Span::ZERO <= rounding && rounding < grain;
    for (number, one) in sent.iter().enumerate() {
        assert!(one.at >= one.intended, "message {number} was sent before its time: {one:?}");
        match (pacing, number.checked_sub(1).map(|before| sent[before])) {
            (Pacing::Rate, _) => {
                assert!(within(one.planned - one.intended), "message {number} left its schedule: {one:?}");
            }
            (Pacing::Gap, None) => {
                assert!(within(one.intended - one.planned), "the first is on the schedule: {one:?}");
            }
            (Pacing::Gap, Some(before)) => {
                let gap = one.planned - before.planned;
                assert!(within(one.intended - before.at - gap), "message {number}: {one:?} after {before:?}");
                assert!(one.at - before.at >= gap, "gap {number} is shorter than planned");
            }
        }
    }
}
