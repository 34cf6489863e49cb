//! Times at which a core needs to be called again.

use wg_frame::time::RunTime;

/// The next instant at which a core has something to do by itself, or [never](Self::NEVER).
///
/// Never is the end of all time, greater than all, so that the earliest of several is their `min`. A raw
/// `Option<RunTime>` was not taken because there `None`, the quiet core, would be the least and hide the rest; an enum
/// not because comparing two costs a simulator several times as much as comparing two numbers.
///
/// ```
/// # use wg_core::Deadline;
/// # use wg_frame::time::RunTime;
/// let busy = Deadline::at(RunTime::from_picos(5));
/// assert_eq!(busy.min(Deadline::NEVER), busy);
/// assert_eq!((busy.instant(), Deadline::NEVER.instant()), (Some(RunTime::from_picos(5)), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(RunTime);

impl Deadline {
    /// No deadline: the core acts only on an input.
    pub const NEVER: Self = Self(RunTime::from_picos(i64::MAX));

    /// A deadline at `instant`; the end of all time means never.
    #[inline]
    pub const fn at(instant: RunTime) -> Self {
        Self(instant)
    }

    /// The instant of the deadline; `None`: never.
    #[inline]
    pub fn instant(self) -> Option<RunTime> {
        (self != Self::NEVER).then_some(self.0)
    }

    /// Whether the deadline is at or before `now`.
    #[inline]
    pub fn is_due(self, now: RunTime) -> bool {
        self.0 <= now && self != Self::NEVER
    }
}

impl From<Option<RunTime>> for Deadline {
    #[inline]
    fn from(at: Option<RunTime>) -> Self {
        at.map_or(Self::NEVER, Self)
    }
}
