//! Strict priority (IEEE Std 802.1Q-2022, 8.6.8.1): of the frames that wait the first of the most urgent queue begins.
//!
//! With all priorities in one queue, it is first in, first out.

use super::{Admission, Moment, TransmissionSelection};
use crate::clock::LocalClock;
use crate::frame::Frame;

/// The algorithm.
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
