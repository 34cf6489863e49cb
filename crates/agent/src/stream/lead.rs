//! How long before a deadline a thread stops sleeping and spins.

/// Longest single spin, ns.
pub const LONGEST_SPIN: i64 = 200_000;

/// How long before a deadline to stop sleeping, learnt from how late the wake-ups come.
#[derive(Clone, Debug)]
pub struct Lead {
    ns: i64,
}

impl Lead {
    const LEAST: i64 = 20_000;

    /// The lead to begin with, ns.
    pub const fn new(ns: i64) -> Self {
        Self { ns }
    }

    /// The present lead, ns.
    pub const fn ns(&self) -> i64 {
        self.ns
    }

    /// Learns from a sleep that ended `late` ns after it should have: rises quickly, falls slowly, so that it settles above most of them.
    pub fn learn(&mut self, late: i64) {
        let wanted = (late + late / 4 + 5_000).clamp(Self::LEAST, LONGEST_SPIN);
        let step = if wanted > self.ns { (wanted - self.ns) / 4 } else { (wanted - self.ns) / 64 };
        self.ns = (self.ns + step).clamp(Self::LEAST, LONGEST_SPIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lead_settles_above_a_steady_lateness(late in 0_i64..100_000) {
            let mut lead = Lead::new(60_000);
            for _ in 0..2_000 {
                lead.learn(late);
            }
            prop_assert!(lead.ns() >= late);
            prop_assert!(lead.ns() <= LONGEST_SPIN);
        }
    }
}
