//! Times drawn at random.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

/// Times drawn at random: a piecewise linear distribution through quantiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Share of draws that are not above (parts per million) and the time; both ascending, the first share 0 and the
    /// last 1 000 000. One entry: always that time. None: always zero.
    pub quantiles: Vec<(u32, Span)>,
}

impl Distribution {
    /// Always zero, because nothing is given.
    pub const fn is_none(&self) -> bool {
        self.quantiles.is_empty()
    }

    /// The least it draws.
    pub fn least(&self) -> Span {
        self.quantiles.first().map_or(Span::ZERO, |(_, time)| *time)
    }
}
