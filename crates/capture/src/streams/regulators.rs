//! A virtual link as traffic regulators see it: one for each BAG, whatever the contract is.

use super::report::BagReport;

const PS_PER_MS: i64 = 1_000_000_000;
/// Number of BAGs: 1 to 128 ms in powers of two (ARINC 664 part 7, 3.2.1).
const BAGS: usize = 8;
/// Share of a BAG, as 1 in so many, by which a sender may be faster: 100 ppm, as far as IEEE Std 802.3 (22.2.2.1)
/// allows a transmitter. Without it the difference of two clocks would add up, frame by frame, in a long capture.
const CLOCKS: i64 = 10_000;

/// A regulator: when the next frame is due, and the longest that one was held.
#[derive(Clone, Copy, Debug)]
struct Regulator {
    due: i64,
    held: i64,
}

impl Default for Regulator {
    fn default() -> Self {
        Self { due: i64::MIN, held: 0 }
    }
}

impl Regulator {
    fn take(&mut self, at: i64, gap: i64) {
        let leaves = at.max(self.due);
        self.held = self.held.max(leaves.saturating_sub(at));
        self.due = leaves.saturating_add(gap);
    }
}

/// Regulators of all BAGs.
#[derive(Clone, Debug, Default)]
pub(super) struct Regulators {
    /// By the clock of the capture.
    exact: [Regulator; BAGS],
    /// With a sender that is faster by [`CLOCKS`].
    tolerant: [Regulator; BAGS],
    /// As `tolerant`, from the last frame before the last call of `take_recent` on: a frame that was too early makes
    /// all after it late for good, and a period in which the spacing is right again is to be seen.
    recent: [Regulator; BAGS],
    last: i64,
}

impl Regulators {
    pub(super) fn take(&mut self, at: i64) {
        for power in 0..BAGS {
            let gap = PS_PER_MS << power;
            self.exact[power].take(at, gap);
            self.tolerant[power].take(at, gap - gap / CLOCKS);
            self.recent[power].take(at, gap - gap / CLOCKS);
        }
        self.last = at;
    }

    /// The longest that a frame was held since the last call, with the tolerance of clocks.
    pub(super) fn take_recent(&mut self) -> Vec<i64> {
        let held = self.recent.iter().map(|regulator| regulator.held).collect();
        for (power, regulator) in self.recent.iter_mut().enumerate() {
            let gap = PS_PER_MS << power;
            *regulator = Regulator { due: self.last.saturating_add(gap - gap / CLOCKS), held: 0 };
        }
        held
    }

    pub(super) fn report(&self) -> Vec<BagReport> {
        let pairs = self.exact.iter().zip(&self.tolerant).enumerate();
        pairs
            .map(|(power, (exact, tolerant))| BagReport {
                bag_ps: PS_PER_MS << power,
                jitter_ps: exact.held,
                tolerant_jitter_ps: tolerant.held,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_clocks_does_not_add_up() {
        let mut regulators = Regulators::default();
        let fast = PS_PER_MS - PS_PER_MS / 20_000;
        for n in 0..10_000 {
            regulators.take(n * fast);
        }
        let one_ms = &regulators.report()[0];
        assert_eq!((one_ms.jitter_ps, one_ms.tolerant_jitter_ps), (9_999 * (PS_PER_MS / 20_000), 0));
        assert_eq!(regulators.take_recent()[0], 0);
        regulators.take(9_999 * fast + 600_000_000);
        let early = PS_PER_MS - PS_PER_MS / CLOCKS - 600_000_000;
        assert_eq!(regulators.report()[0].tolerant_jitter_ps, early);
        assert_eq!([0; 2].map(|_| regulators.take_recent()[0]), [early, 0]);
        regulators.take(9_999 * fast + 600_000_000 + PS_PER_MS);
        assert_eq!(regulators.take_recent()[0], 0, "kept again");
        assert_eq!(regulators.report()[0].tolerant_jitter_ps, early);
    }
}
