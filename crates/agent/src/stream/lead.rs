//! Time before a deadline at which a thread stops sleeping and spins.

/// Longest single spin, ns.
pub const LONGEST_SPIN: i64 = 200_000;

/// Adaptive lead time before a deadline, derived from wake-up latencies.
#[derive(Clone, Debug)]
pub struct Lead {
    ns: i64,
    /// Ratio of a step up to a step down for the same deviation.
    fall: i64,
}

impl Lead {
    const LEAST: i64 = 20_000;

    /// Initial lead, ns; it settles above most wake-up latencies.
    pub const fn new(ns: i64) -> Self {
        Self { ns, fall: 16 }
    }

    /// Lead for a thread with its own core, which settles above 99 % of wake-up latencies.
    pub const fn cautious(ns: i64) -> Self {
        Self { ns, fall: 256 }
    }

    /// Current lead, ns.
    pub const fn ns(&self) -> i64 {
        self.ns
    }

    /// Adapts to a sleep that ended `late` ns after its deadline: rises quickly, falls slowly.
    pub fn learn(&mut self, late: i64) {
        let wanted = (late + late / 4 + 5_000).clamp(Self::LEAST, LONGEST_SPIN);
        let step = if wanted > self.ns { (wanted - self.ns) / 4 } else { (wanted - self.ns) / 4 / self.fall };
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
