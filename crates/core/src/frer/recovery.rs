//! The base recovery function (7.4.3): an algorithm, the reset timer, the counters.

use wg_frame::time::{RunTime, Span};

use super::SEQUENCE_SPACE;
use super::matching::MatchRecovery;
use super::vector::{Judgement, VectorRecovery};

/// Detection of repeated numbers (frerSeqRcvyAlgorithm).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Algorithm {
    /// Vector recovery: a history of the last numbers.
    Vector {
        /// History length in numbers (frerSeqRcvyHistoryLength), 2 to [`RecoveryConfig::LONGEST_HISTORY`].
        history_length: u32,
    },
    /// Match recovery: the last number alone.
    Match,
}

/// Configuration of a recovery function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RecoveryConfig {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Time without an accepted frame after which any number is accepted (frerSeqRcvyResetMSec); positive.
    pub reset: Span,
    /// Whether frames without a number pass (frerSeqRcvyTakeNoSequence).
    #[cfg_attr(feature = "serde", serde(default))]
    pub take_no_sequence: bool,
    /// Whether it works on one member stream alone (frerSeqRcvyIndividualRecovery): then discarded frames restart the
    /// timer, too.
    #[cfg_attr(feature = "serde", serde(default))]
    pub individual: bool,
}

impl RecoveryConfig {
    /// The longest history: half the sequence number space.
    pub const LONGEST_HISTORY: u32 = SEQUENCE_SPACE / 2;
    /// The shortest history, and the standard's default.
    pub const SHORTEST_HISTORY: u32 = 2;
}

/// A configuration that cannot work: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// A history length out of range.
    #[error("a history of {0} sequence numbers is outside 2 to 32768; choose it within")]
    HistoryLength(u32),
    /// A reset time that is not positive: the timer would always have run out.
    #[error("a recovery reset after {0} is not more than 0s; lengthen it")]
    Reset(Span),
}

/// Decision of the recovery function on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Accepted: the first frame with its number.
    Pass,
    /// Discarded: its number came before.
    Repeated,
    /// Discarded: its number is beyond the history.
    Rogue,
    /// Discarded: it has no number.
    Tagless,
}

/// Counters of the standard (10.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that passed.
    pub passed: u64,
    /// Frames discarded because their numbers came before, or were rogue.
    pub discarded: u64,
    /// Discarded frames whose number was beyond the history.
    pub rogue: u64,
    /// Passed frames whose number was not the highest so far plus one.
    pub out_of_order: u64,
    /// Numbers that left the history and never came.
    pub lost: u64,
    /// Frames without a number.
    pub tagless: u64,
    /// Number of timeouts.
    pub resets: u64,
}

#[derive(Clone, Debug)]
enum State {
    Vector(VectorRecovery),
    Match(MatchRecovery),
}

/// One recovery function.
#[derive(Clone, Debug)]
pub struct Recovery {
    state: State,
    reset: Span,
    take_no_sequence: bool,
    individual: bool,
    now: RunTime,
    /// Instant at which the reset timer runs out; `None`: it did, or never ran.
    runs_out: Option<RunTime>,
    counters: Counters,
}

impl Recovery {
    /// A function that accepts any number first.
    ///
    /// # Errors
    /// [`RecoveryError`].
    pub fn new(config: RecoveryConfig) -> Result<Self, RecoveryError> {
        if config.reset <= Span::ZERO {
            return Err(RecoveryError::Reset(config.reset));
        }
        let state = match config.algorithm {
            Algorithm::Match => State::Match(MatchRecovery::default()),
            Algorithm::Vector { history_length } => {
                let limits = RecoveryConfig::SHORTEST_HISTORY..=RecoveryConfig::LONGEST_HISTORY;
                if !limits.contains(&history_length) {
                    return Err(RecoveryError::HistoryLength(history_length));
                }
                State::Vector(VectorRecovery::new(history_length as usize))
            }
        };
        Ok(Self {
            state,
            reset: config.reset,
            take_no_sequence: config.take_no_sequence,
            individual: config.individual,
            now: RunTime::from_picos(i64::MIN),
            runs_out: None,
            counters: Counters::default(),
        })
    }

    /// Decides on a frame that came at `now`; `None`: it has no sequence number.
    pub fn handle_frame(&mut self, now: RunTime, number: Option<u16>) -> Decision {
        self.advance(now);
        let decision = self.decide(number);
        match decision {
            Decision::Pass => self.counters.passed += 1,
            Decision::Repeated => self.counters.discarded += 1,
            Decision::Rogue => {
                self.counters.discarded += 1;
                self.counters.rogue += 1;
            }
            Decision::Tagless => return decision,
        }
        if decision == Decision::Pass || self.individual {
            self.runs_out = Some(saturating(self.now, self.reset));
        }
        decision
    }

    fn decide(&mut self, number: Option<u16>) -> Decision {
        let Some(number) = number else {
            self.counters.tagless += 1;
            return if self.take_no_sequence { Decision::Pass } else { Decision::Tagless };
        };
        let out_of_order = match &mut self.state {
            State::Match(recovery) => match recovery.handle_number(number) {
                Some(out_of_order) => out_of_order,
                None => return Decision::Repeated,
            },
            State::Vector(recovery) => match recovery.handle_number(number) {
                Judgement::Pass { out_of_order, lost } => {
                    self.counters.lost += u64::from(lost);
                    out_of_order
                }
                Judgement::Repeated => return Decision::Repeated,
                Judgement::Rogue => return Decision::Rogue,
            },
        };
        self.counters.out_of_order += u64::from(out_of_order);
        Decision::Pass
    }

    /// Does what the timer had due up to and at `now`.
    pub fn advance(&mut self, now: RunTime) {
        self.now = self.now.max(now);
        if self.runs_out.is_some_and(|at| at <= self.now) {
            self.runs_out = None;
            self.counters.resets += 1;
            self.forget();
        }
    }

    /// The system restarts: history and timer are reset. Counters stay, for whoever reads them.
    pub fn handle_restart(&mut self) {
        self.runs_out = None;
        self.forget();
    }

    fn forget(&mut self) {
        match &mut self.state {
            State::Vector(recovery) => recovery.handle_reset(),
            State::Match(recovery) => recovery.handle_reset(),
        }
    }

    /// The counters so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

fn saturating(at: RunTime, span: Span) -> RunTime {
    RunTime::from_picos(at.as_picos().saturating_add(span.as_picos()))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
