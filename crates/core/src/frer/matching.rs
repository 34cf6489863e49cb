//! The match recovery algorithm (7.4.3.5): whether a number repeats the last one.
//!
//! For streams whose copies come before the next message is sent. A copy that comes later passes again: that is the
//! standard's rule, and why the plan refuses match recovery where paths are farther apart than messages.

use super::delta;

/// RecovSeqNum; `None`: TakeAny.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MatchRecovery {
    latest: Option<u16>,
}

impl MatchRecovery {
    /// Whether a number passes and is out of order; `None`: it repeats the last one.
    pub(super) const fn handle_number(&mut self, number: u16) -> Option<bool> {
        let out_of_order = match self.latest {
            None => false,
            Some(latest) => match delta(number, latest) {
                0 => return None,
                step => step != 1,
            },
        };
        self.latest = Some(number);
        Some(out_of_order)
    }

    /// SequenceRecoveryReset: any number is accepted next.
    pub(super) const fn handle_reset(&mut self) {
        self.latest = None;
    }
}
