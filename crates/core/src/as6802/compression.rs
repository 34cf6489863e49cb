//! The compression function: frames of one integration cycle to one instant.
//!
//! Collecting begins with the first permanent frame. It goes on for an observation window, and for another one as long
//! as the last one brought a frame, up to one window for each faulty master tolerated and one more. The instant is
//! reckoned from the first frame by a fault-tolerant mean of how much later each came.

use alloc::vec::Vec;

use wg_frame::time::Span;

use super::{MASTERS, Parameters};
use crate::clock::LocalTime;

/// The fault-tolerant mean of instants relative to the first, ascending: of 1 none; of 2 the mean; of 3 the median; of
/// 4 the mean of 2nd and 3rd; of 5 that of 2nd and 4th; of more that of the (k+1)-th earliest and latest, k being the
/// number of faulty masters tolerated, at least 1.
pub fn correction(after: &[Span], faulty: u8) -> Span {
    let mean = |a: usize, b: usize| {
        let [low, high] = [after[a], after[b]];
        low + Span::from_picos((high - low).as_picos() / 2)
    };
    match after.len() {
        0 | 1 => Span::ZERO,
        2 => mean(0, 1),
        3 => after[1],
        4 => mean(1, 2),
        5 => mean(1, 3),
        n => {
            let k = usize::from(faulty).max(1);
            mean(k, n - 1 - k)
        }
    }
}

/// Integration frames of one cycle that are compressed together.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The integration cycle of the frames.
    pub cycle: u32,
    first: LocalTime,
    /// Delays of each further frame's permanence after the first, ascending.
    after: Vec<Span>,
    members: u32,
    /// Number of observation windows so far.
    windows: i64,
    /// Whether a frame came in the current window.
    has_new: bool,
    open: bool,
}

/// The result of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The compressed permanence instant.
    pub pit: LocalTime,
    /// The frames' integration cycle.
    pub cycle: u32,
    /// Membership of the collected frames, a bit for each master.
    pub members: u32,
}

impl Collection {
    /// Begins a collection with a frame permanent at `first`.
    pub fn new(cycle: u32, members: u32, first: LocalTime) -> Self {
        let after = alloc::vec![Span::ZERO];
        Self { cycle, first, after, members, windows: 1, has_new: false, open: true }
    }

    /// Ends the current window, or extends it, as of `pit`.
    fn settle(&mut self, parameters: &Parameters, pit: LocalTime) {
        let most = i64::from(parameters.faulty_masters) + 1;
        while self.open {
            let ends = self.first + Span::from_picos(parameters.precision.as_picos() * self.windows);
            if pit <= ends {
                return;
            }
            if !self.has_new || self.windows == most {
                self.open = false;
            }
            self.windows += 1;
            self.has_new = false;
        }
    }

    /// Adds a frame permanent at `pit` and returns whether it belongs to this collection. A second frame of the same
    /// master does not.
    pub fn take(&mut self, parameters: &Parameters, cycle: u32, members: u32, pit: LocalTime) -> bool {
        self.settle(parameters, pit);
        let fits = self.open && self.cycle == cycle && self.members & members == 0;
        if !fits || self.after.len() >= usize::from(MASTERS) {
            return false;
        }
        self.after.push(pit - self.first);
        self.members |= members;
        self.has_new = true;
        true
    }

    /// End of collection as far as it is determined now. Never later than the instant of [`Self::compressed`].
    pub fn closes(&self, parameters: &Parameters) -> LocalTime {
        self.first + parameters.max_observation_window()
    }

    /// The compressed instant, cycle and membership.
    pub fn compressed(&self, parameters: &Parameters) -> Compressed {
        let correction = correction(&self.after, parameters.faulty_masters);
        let fixed = parameters.max_observation_window() + parameters.calculation_overhead;
        Compressed { pit: self.first + fixed + correction, cycle: self.cycle, members: self.members }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn spans(ps: &[i64]) -> Vec<Span> {
        ps.iter().map(|ps| Span::from_picos(*ps)).collect()
    }

    #[test]
    fn the_mean_of_each_number_of_frames() {
        for (after, faulty, expected) in [
            (&[0][..], 1, 0),
            (&[0, 10], 1, 5),
            (&[0, 3, 100], 1, 3),
            (&[0, 4, 8, 100], 1, 6),
            (&[0, 4, 5, 8, 100], 1, 6),
            (&[0, 4, 5, 6, 8, 100], 1, 6),
            (&[0, 1, 4, 5, 6, 8, 100], 2, 5),
        ] {
            assert_eq!(correction(&spans(after), faulty).as_picos(), expected, "{after:?}");
        }
    }

    proptest! {
        /// Whatever one faulty master does, the instant is among those of the correct ones.
        #[test]
        fn one_faulty_frame_moves_the_instant_within_the_correct_ones(
            mut correct in prop::collection::vec(1_000_i64..2_000, 2..20), faulty in 0_i64..3_000,
        ) {
            correct.sort_unstable();
            let mut all = correct.clone();
            all.push(faulty);
            all.sort_unstable();
            let after: Vec<Span> = all.iter().map(|pit| Span::from_picos(pit - all[0])).collect();
            let at = all[0] + correction(&after, 1).as_picos();
            prop_assert!((correct[0]..=correct[correct.len() - 1]).contains(&at), "{} of {:?}", at, all);
        }
    }
}
