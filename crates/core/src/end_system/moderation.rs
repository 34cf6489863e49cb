//! Interrupt moderation of an interface whose frames are read one after another.

use wg_frame::time::{RunTime, Span};

use super::config::Interrupts;

/// Interrupt spacing of the levels of an adaptive interface: 70 000, 20 000 and 4 000 interrupts a second, as in the
/// drivers of the e1000 family.
pub const ADAPTIVE_SPACINGS: [Span; 3] =
    [Span::from_picos(14_285_714), Span::from_picos(50_000_000), Span::from_picos(250_000_000)];

/// Interrupt rate of an adaptive interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    /// For single small frames.
    Lowest,
    #[default]
    Low,
    /// For many frames at a time.
    Bulk,
}

impl Level {
    const fn spacing(self) -> Span {
        ADAPTIVE_SPACINGS[self as usize]
    }

    /// The level after a turn in which so many frames were read. Between the thresholds it stays, so that an even load
    /// may keep either of two levels: which, its history decides.
    const fn after(self, frames: u64, bytes: u64) -> Self {
        match self {
            Self::Lowest if bytes > 8_000 * frames => Self::Bulk,
            Self::Lowest if frames < 5 && bytes > 512 => Self::Low,
            Self::Low if bytes > 10_000 && (frames < 10 || bytes > 1_200 * frames) => Self::Bulk,
            Self::Low if bytes > 10_000 && frames > 35 => Self::Lowest,
            Self::Low if bytes <= 10_000 && bytes > 2_000 * frames => Self::Bulk,
            Self::Low if frames <= 2 && bytes < 512 => Self::Lowest,
            Self::Bulk if bytes > 25_000 && frames > 35 || bytes < 6_000 => Self::Low,
            same => same,
        }
    }
}

/// Interrupt moderation of one interface.
#[derive(Debug)]
pub(super) struct Moderation {
    how: Interrupts,
    level: Level,
    /// Instant of the last interrupt.
    last: Option<RunTime>,
}

impl Moderation {
    pub(super) const fn new(how: Interrupts) -> Self {
        Self { how, level: Level::Low, last: None }
    }

    /// Instant of the interrupt for frames of which the first came at `first` and the latest, the `waiting`th, at
    /// `now`. Never before `now`.
    pub(super) fn instant(&self, first: RunTime, now: RunTime, waiting: usize) -> RunTime {
        let spaced = |spacing| self.last.map_or(now, |last| now.max(last + spacing));
        match self.how {
            Interrupts::EachFrame => now,
            Interrupts::Coalesced { frames, .. } if waiting >= frames as usize => now,
            Interrupts::Coalesced { wait, .. } => now.max(first + wait),
            Interrupts::Polled { period } => {
                let into = first.as_picos().rem_euclid(period.as_picos());
                let rest = if into == 0 { 0 } else { period.as_picos() - into };
                now.max(first + Span::from_picos(rest))
            }
            Interrupts::Spaced { spacing } => spaced(spacing),
            Interrupts::Adaptive => spaced(self.level.spacing()),
        }
    }

    pub(super) const fn interrupted(&mut self, now: RunTime) {
        self.last = Some(now);
    }

    /// The driver's turn ended with an empty ring after this many frames and bytes.
    pub(super) const fn turn_ended(&mut self, frames: u64, bytes: u64) {
        if frames > 0 {
            self.level = self.level.after(frames, bytes);
        }
    }

    pub(super) const fn restart(&mut self) {
        (self.level, self.last) = (Level::Low, None);
    }
}
