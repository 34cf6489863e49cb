//! What a sender keeps when a message is late: its schedule or its gaps.
//!
//! A message that could not go at its instant leaves a choice. *Rate* keeps the schedule: whatever is due goes at once,
//! so that the mean rate is exact and a delay is followed by a burst. *Gap* keeps the distance: a message is to go the
//! planned gap after its predecessor went, so that a delay shifts everything behind it and the mean rate falls.
//!
//! When messages are planned is the [generators'](crate::generator) business: bursts, ramps and limited rates come in as
//! planned instants and are paced like any others. A [`Pacer`] turns planned instants into intended ones. It knows no
//! queue: what a message waits for behind the instant at which it was sent, its sender does not see.
//!
//! ```text
//! driver: intended(planned) ──▶ wait ──▶ send ──▶ handle_sent(planned, at) ──▶ next
//! ```
//!
//! All instants are readings of one clock, the sender's own. What would lie beyond ±106 days is cut off there.

use wg_frame::time::{RunTime, Span};

/// What is kept when a message is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Pacing {
    /// The schedule.
    #[default]
    Rate,
    /// The gaps.
    Gap,
}

impl Pacing {
    /// Its name in the test language and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Gap => "gap",
        }
    }

    /// Whether what is sent moves what is still to be sent. Where it does not, a driver need not tell its [`Pacer`] of it.
    #[inline]
    pub const fn follows_sends(self) -> bool {
        matches!(self, Self::Gap)
    }
}

/// The time between two messages in succession.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// As planned.
    pub planned: Span,
    /// As sent.
    pub sent: Span,
}

/// When a message was planned, and when it was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    planned: RunTime,
    at: RunTime,
}

/// The pacing of one sender. It holds one message's instants, whatever is sent.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    pacing: Pacing,
    last: Option<Sent>,
}

impl Pacer {
    /// Before the first message.
    pub const fn new(pacing: Pacing) -> Self {
        Self { pacing, last: None }
    }

    /// What is kept.
    #[inline]
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// When the next message, planned for `planned`, is to be sent: what its lateness is counted from. It does not change
    /// until [`handle_sent`](Self::handle_sent).
    #[inline]
    pub const fn intended(&self, planned: RunTime) -> RunTime {
        match (self.pacing, self.last) {
            (Pacing::Gap, Some(last)) => later(last.at, between(last.planned, planned)),
            (Pacing::Rate, _) | (Pacing::Gap, None) => planned,
        }
    }

    /// The same where an interface launches messages at stated instants, of which `earliest` is the first it can still
    /// keep: a gap to be kept ends no earlier, a schedule is kept whatever that costs.
    #[inline]
    pub fn intended_launch(&self, planned: RunTime, earliest: RunTime) -> RunTime {
        let intended = self.intended(planned);
        match self.pacing {
            Pacing::Rate => intended,
            Pacing::Gap => intended.max(earliest),
        }
    }

    /// Whether the next message, planned for `planned`, may go together with the one just sent, at `now`: it is due, and
    /// there is no gap to be kept.
    #[inline]
    pub fn may_join(&self, planned: RunTime, now: RunTime) -> bool {
        self.pacing == Pacing::Rate && planned <= now
    }

    /// The message planned for `planned` was sent at `at`, also if it was refused then. Returns the gap to the one
    /// before; `None` for the first. One that is given up is not told.
    #[inline]
    pub const fn handle_sent(&mut self, planned: RunTime, at: RunTime) -> Option<Gap> {
        let gap = match self.last {
            Some(last) => Some(Gap { planned: between(last.planned, planned), sent: between(last.at, at) }),
            None => None,
        };
        self.last = Some(Sent { planned, at });
        gap
    }
}

const fn between(from: RunTime, to: RunTime) -> Span {
    Span::from_picos(to.as_picos().saturating_sub(from.as_picos()))
}

const fn later(time: RunTime, by: Span) -> RunTime {
    RunTime::from_picos(time.as_picos().saturating_add(by.as_picos()))
}
