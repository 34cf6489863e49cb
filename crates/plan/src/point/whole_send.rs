//! A sender whose values are all known.

use wg_frame::time::Span;

use crate::campaign::Pattern;
use crate::diagnostic::Place;
use crate::model::SendModel;
use crate::reader::Sourced;
use crate::trace::Replay;

/// A sender whose values are all known.
pub(super) struct WholeSend<'a> {
    pub(super) send: &'a SendModel,
    pub(super) period: Span,
    /// How the period is written, for messages.
    pub(super) pace: Named,
    pub(super) payload: Sourced<u32>,
    pub(super) offset: Span,
    /// Where it follows from the dispatch of its flow: how long before that.
    pub(super) before_dispatch: Option<Span>,
    /// Destination address to FCS.
    pub(super) frame: u32,
    pub(super) wire_bits: u64,
    /// Messages of a burst; 1 without bursts.
    pub(super) burst: u32,
    pub(super) spacing: Span,
    /// The period at the end of a ramp.
    pub(super) ramp_to: Option<Span>,
    /// The capture whose gaps and sizes it has; period and bits on the wire are then means.
    pub(super) replay: Option<Replay>,
}

impl WholeSend<'_> {
    /// Bits on the wire in one period.
    pub(super) fn bits(&self) -> u128 {
        u128::from(self.wire_bits) * u128::from(self.burst)
    }
}

impl WholeSend<'_> {
    /// The shortest time between two messages or bursts.
    pub(super) fn shortest(&self) -> Span {
        self.ramp_to.map_or(self.period, |to| to.min(self.period))
    }

    pub(super) fn pattern(&self) -> Pattern {
        match (self.send.exponential, self.burst) {
            (true, _) => Pattern::Exponential,
            (false, 1) => Pattern::Periodic,
            (false, size) => Pattern::Bursts { size, spacing: self.spacing },
        }
    }

    /// Messages due before `room` picoseconds are over; of exponential intervals as many as on average.
    pub(super) fn fitting(&self, room: i128) -> i128 {
        if room <= 0 {
            return 0;
        }
        if let Some(replay) = &self.replay {
            let room = Span::from_picos(i64::try_from(room).unwrap_or(i64::MAX));
            return i128::from(replay.before(room));
        }
        let (period, spacing) = (i128::from(self.period.as_picos()), i128::from(self.spacing.as_picos()));
        let bursts = (room + period - 1) / period;
        let rest = room - (bursts - 1) * period;
        let of_last = match spacing {
            0 => i128::from(self.burst),
            _ => ((rest + spacing - 1) / spacing).min(i128::from(self.burst)),
        };
        (bursts - 1) * i128::from(self.burst) + of_last
    }
}

/// What a message calls a value, and where it points.
pub(super) struct Named {
    pub(super) text: String,
    pub(super) place: Place,
    pub(super) is_load: bool,
}
