//! When a core wants to be called again.

use wg_frame::time::RunTime;

/// The next instant at which a core has something to do by itself.
///
/// [`Never`](Self::Never) is the greatest of all, so that the earliest of several is their `min`. A raw
/// `Option<RunTime>` was not taken because there `None`, the quiet core, would be the least and hide the rest.
///
/// ```
/// # use wg_core::Deadline;
/// # use wg_frame::time::RunTime;
/// let busy = Deadline::At(RunTime::from_picos(5));
/// assert_eq!(busy.min(Deadline::Never), busy);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    /// At this instant.
    At(RunTime),
    /// Not before an input comes.
    Never,
}

impl Deadline {
    /// The instant, where there is one.
    #[inline]
    pub const fn instant(self) -> Option<RunTime> {
        match self {
            Self::At(at) => Some(at),
            Self::Never => None,
        }
    }

    /// As it is, but never where it lies at the end of all time.
    #[inline]
    pub fn finite(self) -> Self {
        if self == Self::At(RunTime::from_picos(i64::MAX)) { Self::Never } else { self }
    }

    /// Whether there is something to do at `now`.
    #[inline]
    pub fn is_due(self, now: RunTime) -> bool {
        self <= Self::At(now)
    }
}

impl From<Option<RunTime>> for Deadline {
    #[inline]
    fn from(at: Option<RunTime>) -> Self {
        at.map_or(Self::Never, Self::At)
    }
}
