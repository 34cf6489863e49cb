//! State changes that follow from the number of masters in schedule: the same for end systems and compression masters.

use super::{Clique, Parameters, State};

/// Numbers of good and bad cycles since the state was entered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    good_cycles: u32,
    bad_cycles: u32,
}

/// Result of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The device stays in its state.
    None,
    /// The device, still in schedule, enters another state.
    Enter(State),
    /// Too few masters are in schedule.
    TooFew,
}

impl Standing {
    /// Judges a cycle in which `heard` masters were in schedule.
    pub(super) fn judge(&mut self, parameters: &Parameters, state: State, heard: u32) -> Finding {
        let thresholds = parameters.thresholds;
        let enough = heard >= u32::from(thresholds.sync);
        match state {
            State::TentativeSync if enough => Finding::Enter(State::Sync),
            State::TentativeSync if heard < u32::from(thresholds.tentative) => Finding::TooFew,
            State::Sync if enough => {
                self.good_cycles += 1;
                if self.good_cycles >= parameters.stable_cycles {
                    Finding::Enter(State::Stable)
                } else {
                    Finding::None
                }
            }
            State::Sync => Finding::TooFew,
            State::Stable if enough => {
                self.bad_cycles = 0;
                Finding::None
            }
            State::Stable => {
                self.bad_cycles += 1;
                if self.bad_cycles > parameters.unstable_cycles { Finding::TooFew } else { Finding::None }
            }
            _ => Finding::None,
        }
    }
}

/// Whether a device that fails listens first, because it may itself be wrong: it was stable, or hears no other.
pub(super) fn listens(clique: Clique, members: u32, state: State) -> bool {
    let is_deaf = clique == Clique::Synchronous && members == 0 && state == State::Sync;
    is_deaf || state == State::Stable
}
