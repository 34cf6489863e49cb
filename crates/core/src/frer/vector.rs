//! The vector recovery algorithm (7.4.3.4): a history of the last numbers.
//!
//! With a history of length H, the first copy passes of each number up to H − 1 before or after the highest one
//! accepted, in whatever order they come. Numbers farther off are rogue.

use alloc::boxed::Box;
use alloc::vec;

use super::delta;

/// Decision of the algorithm about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Accepted; this many numbers left the history without arriving.
    Pass {
        /// True if the number does not follow the highest one so far.
        out_of_order: bool,
        /// Count of numbers that left the history without arriving.
        lost: u32,
    },
    /// Repeated number.
    Repeated,
    /// Number beyond the history.
    Rogue,
}

/// SequenceHistory and RecovSeqNum.
#[derive(Clone, Debug)]
pub(super) struct VectorRecovery {
    /// Whether number `latest − i` came, at `(begin + i) mod H`.
    history: Box<[bool]>,
    begin: usize,
    /// RecovSeqNum; `None`: TakeAny.
    latest: Option<u16>,
    /// Number of places of the history that stand for numbers since the first after the reset.
    awaited: usize,
}

impl VectorRecovery {
    pub(super) fn new(length: usize) -> Self {
        Self { history: vec![false; length].into_boxed_slice(), begin: 0, latest: None, awaited: 0 }
    }

    pub(super) fn handle_number(&mut self, number: u16) -> Judgement {
        let Some(latest) = self.latest else {
            self.history.fill(false);
            (self.begin, self.awaited, self.latest) = (0, 1, Some(number));
            self.history[0] = true;
            return Judgement::Pass { out_of_order: false, lost: 0 };
        };
        let delta = delta(number, latest);
        let distance = usize::from(delta.unsigned_abs());
        if distance >= self.history.len() {
            return Judgement::Rogue;
        }
        if delta <= 0 {
            let place = (self.begin + distance) % self.history.len();
            if core::mem::replace(&mut self.history[place], true) {
                return Judgement::Repeated;
            }
            return Judgement::Pass { out_of_order: true, lost: 0 };
        }
        let mut lost = 0;
        for step in 1..=distance {
            lost += u32::from(self.shift(step == distance));
        }
        self.latest = Some(number);
        Judgement::Pass { out_of_order: delta != 1, lost }
    }

    /// ShiftSequenceHistory: whether the number that leaves the history was awaited and never came.
    fn shift(&mut self, came: bool) -> bool {
        let length = self.history.len();
        self.begin = (self.begin + length - 1) % length;
        let left = core::mem::replace(&mut self.history[self.begin], came);
        if self.awaited < length {
            self.awaited += 1;
            return false;
        }
        !left
    }

    /// SequenceRecoveryReset: any number is accepted next.
    pub(super) const fn handle_reset(&mut self) {
        self.latest = None;
    }
}
