//! Strict priority (IEEE Std 802.1Q-2022, 8.6.8.1): the first frame of the most urgent non-empty queue begins.
//!
//! With all priorities in one queue, it is first in, first out.

use super::{Admission, Moment, TransmissionSelection};
use crate::clock::LocalClock;
use crate::frame::Frame;

/// Strict-priority transmission selection.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrictPriority;

impl TransmissionSelection for StrictPriority {
    #[inline]
    fn admission<C: LocalClock>(&self, _at: &Moment<'_, C>, _queue: usize, _frame: &Frame) -> Admission {
        Admission::Now
    }

    #[inline]
    fn is_plain(&self) -> bool {
        true
    }
}
