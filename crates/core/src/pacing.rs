//! Pacing of a sender whose messages are late: by schedule or by gap.
//!
//! A message that could not go at its instant leaves a choice. *Rate* keeps the schedule: a message that is due goes at
//! once, so that the mean rate is exact and a delay is followed by a burst. *Gap* keeps the distance: a message goes
//! the planned gap after its predecessor went, so that a delay shifts all later messages and the mean rate falls.
//!
//! The [generators](crate::generator) plan messages: bursts, ramps and limited rates come in as planned instants and
//! are paced like any others. A [`Pacer`] turns planned instants into intended ones. It has no queue: delays after the
//! instant of sending are invisible to it.
//!
//! ```text
//! driver: intended(planned) ──▶ wait ──▶ send ──▶ handle_sent(planned, at) ──▶ next
//! ```
//!
//! All instants are readings of one clock, the sender's own, and saturate at ±106 days.

use wg_frame::time::{RunTime, Span};

/// Property that a sender preserves when a message is late.
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
    /// Name in the test language and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Gap => "gap",
        }
    }

    /// Whether actual sending times change later intended ones. If not, a driver need not report them to its [`Pacer`].
    #[inline]
    pub const fn follows_sends(self) -> bool {
        matches!(self, Self::Gap)
    }
}

/// The time between two consecutive messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Planned gap.
    pub planned: Span,
    /// Gap between the sending times.
    pub sent: Span,
}

/// Planned and actual sending time of a message.
#[derive(Clone, Copy, Debug)]
struct Sent {
    planned: RunTime,
    at: RunTime,
}

/// The pacing of one sender. Needs memory for one message only.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    pacing: Pacing,
    last: Option<Sent>,
}

impl Pacer {
    /// A pacer before its first message.
    pub const fn new(pacing: Pacing) -> Self {
        Self { pacing, last: None }
    }

    /// The kind of pacing.
    #[inline]
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Intended sending time of the next message, planned for `planned`; lateness counts from it. It does not change
    /// until [`handle_sent`](Self::handle_sent).
    #[inline]
    pub const fn intended(&self, planned: RunTime) -> RunTime {
        match (self.pacing, self.last) {
            (Pacing::Gap, Some(last)) => later(last.at, between(last.planned, planned)),
            (Pacing::Rate, _) | (Pacing::Gap, None) => planned,
        }
    }

    /// As [`intended`](Self::intended), for an interface that launches messages at stated instants, of which `earliest`
    /// is the first still possible: a gap ends no earlier, a schedule is unaffected.
    #[inline]
    pub fn intended_launch(&self, planned: RunTime, earliest: RunTime) -> RunTime {
        let intended = self.intended(planned);
        match self.pacing {
            Pacing::Rate => intended,
            Pacing::Gap => intended.max(earliest),
        }
    }

    /// Whether the next message, planned for `planned`, may go together with the one just sent, at `now`: it is due,
    /// and no gap has to be kept.
    #[inline]
    pub fn may_join(&self, planned: RunTime, now: RunTime) -> bool {
        self.pacing == Pacing::Rate && planned <= now
    }

    /// The message planned for `planned` was sent, or refused, at `at`. Returns the gap to the one before; `None` for
    /// the first. Not to be called for a message that is given up.
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
