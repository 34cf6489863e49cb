//! The latent error detection function (7.4.4): copies are missing, though every message came.
//!
//! On n paths, each number passes once and is discarded n − 1 times. So `passed · (n − 1) − discarded` stays constant,
//! up to copies still under way, as long as every path delivers. The test compares it with its value at the last reset;
//! a reset forgets earlier losses, so that a loss long ago does not warn for ever.

use wg_frame::time::{RunTime, Span};

/// Configuration of latent error detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LatentErrorConfig {
    /// Member streams (frerSeqRcvyLatentErrorPaths), at least 2.
    pub paths: u32,
    /// Missing or surplus copies beyond which there is an error (frerSeqRcvyLatentErrorDifference).
    pub difference: u64,
    /// Time between two tests (frerSeqRcvyLatentErrorPeriod), more than zero.
    pub period: Span,
    /// Time between two resets (frerSeqRcvyLatentResetPeriod), more than zero.
    pub reset_period: Span,
}

impl LatentErrorConfig {
    /// The standard's times: a test every 2 s, a reset every 30 s.
    pub const PERIODS: (Span, Span) = (Span::from_millis(2_000), Span::from_millis(30_000));
}

/// Latent error detection of one stream. Its timers begin at time zero.
#[derive(Clone, Copy, Debug)]
pub struct LatentErrors {
    config: LatentErrorConfig,
    /// CurBaseDifference.
    base: i128,
    next_test: i128,
    next_reset: i128,
    /// Number of SIGNAL_LATENT_ERROR events.
    signalled: u64,
    /// Instant of the first one.
    first: Option<RunTime>,
}

impl LatentErrors {
    /// A detector with all counters zero.
    pub const fn new(config: LatentErrorConfig) -> Self {
        Self {
            config,
            base: 0,
            next_test: config.period.as_picos() as i128,
            next_reset: config.reset_period.as_picos() as i128,
            signalled: 0,
            first: None,
        }
    }

    /// Does what was due up to and at `now`, the counters having been the same since the last call: a test at the
    /// instant of a reset comes before it. Takes bounded time, however much was due.
    pub fn advance(&mut self, now: RunTime, passed: u64, discarded: u64) {
        let now = i128::from(now.as_picos());
        let apart = i128::from(passed) * (i128::from(self.config.paths) - 1) - i128::from(discarded);
        if self.next_test <= now {
            // After a reset nothing differs until the counters move.
            let last = if self.next_reset <= now { self.next_reset } else { now };
            if self.next_test <= last
                && (self.base - apart).unsigned_abs() > u128::from(self.config.difference)
            {
                let tests = (last - self.next_test) / i128::from(self.config.period.as_picos()) + 1;
                self.signalled = self.signalled.saturating_add(u64::try_from(tests).unwrap_or(u64::MAX));
                let at = i64::try_from(self.next_test).unwrap_or(i64::MAX);
                self.first.get_or_insert(RunTime::from_picos(at));
            }
            self.next_test = after(self.next_test, now, self.config.period);
        }
        if self.next_reset <= now {
            self.base = apart;
            self.next_reset = after(self.next_reset, now, self.config.reset_period);
        }
    }

    /// Number of tests that found an error.
    pub const fn signalled(&self) -> u64 {
        self.signalled
    }
    /// Instant of the first error found.
    pub const fn first(&self) -> Option<RunTime> {
        self.first
    }
}

/// The first instant of `due`, `due + period`, … after `now`.
fn after(due: i128, now: i128, period: Span) -> i128 {
    let period = i128::from(period.as_picos());
    due + ((now - due) / period + 1) * period
}
