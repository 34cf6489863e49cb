//! Conditions under which a servicing thread may spin instead of sleep.
//!
//! A wake-up takes tens of microseconds, most of a round trip over a virtual link, and varies. Spinning on the socket
//! avoids it but blocks the core for other threads, under SCHED_FIFO completely. A thread therefore spins only when a
//! send or an expected arrival is near, for a bounded time and within a bounded share of the core, and reduces this
//! share if another thread needs the core.
//!
//! Pure logic: the time is an argument, in ns of any clock that does not step during a run.

/// Share of a core for which a thread may stay awake, as a bucket of nanoseconds. Work is done at any level; only
/// spinning checks it. Work and spinning together stay below the 95 % at which the kernel stops real-time threads for
/// tens of milliseconds (`sched_rt_runtime_us`), with time left for the task threads.
#[derive(Clone, Debug)]
pub struct Budget {
    level: i64,
    last: i64,
    share_ppm: i64,
    most_ppm: i64,
}

impl Budget {
    const FULL: i64 = 2_000_000;
    const MAX_PPM: i64 = 700_000;
    const LEAST_PPM: i64 = 15_000;
    /// Duration of a yield, ns, above which another thread has used it.
    const TAKEN_UP: i64 = 20_000;

    /// Up to this number of agents on a core share it by yields; more agents have a fixed share each, since the sum of
    /// their minimum shares would exceed the core.
    const FEW: i64 = 4;

    /// Full bucket of an agent whose core `agents` agents share, this one included.
    pub fn new(now: i64, agents: u32) -> Self {
        let agents = i64::from(agents);
        let most_ppm = if agents > Self::FEW { Self::MAX_PPM / agents } else { Self::MAX_PPM };
        Self { level: Self::FULL, last: now, share_ppm: most_ppm, most_ppm }
    }

    /// Full bucket of a thread whose core is shared by all agents of a host with few agents.
    pub const fn of_small_host(now: i64) -> Self {
        let most_ppm = 200_000;
        Self { level: Self::FULL, last: now, share_ppm: most_ppm, most_ppm }
    }

    /// True if budget for spinning is left.
    pub const fn allows(&self) -> bool {
        self.level > 0
    }

    /// Accounts the time since the last call, of which `awake` ns were worked or spun. `yielded` is the longest yield
    /// within it: a thread of the same priority that used it halves the share, which recovers within a second.
    pub fn account(&mut self, now: i64, awake: i64, yielded: i64) {
        let passed = (now - self.last).clamp(0, 1_000_000_000);
        self.last = now;
        self.share_ppm = if yielded > Self::TAKEN_UP {
            (self.share_ppm / 2).max(Self::LEAST_PPM.min(self.most_ppm))
        } else {
            (self.share_ppm + passed / 1_000).min(self.most_ppm)
        };
        let earned = passed * self.share_ppm / 1_000_000;
        self.level = (self.level + earned - awake.max(0)).clamp(-Self::FULL, Self::FULL);
    }
}

/// Expected arrival of the next message of a periodic flow.
#[derive(Clone, Debug)]
pub struct Expectation {
    period: i64,
    next: Option<i64>,
    misses: u32,
}

impl Expectation {
    /// Periods without an arrival after which the flow is no longer expected.
    const PATIENCE: u32 = 4;

    /// Expectation without a first arrival, which expects nothing.
    pub const fn new(period: i64) -> Self {
        Self { period, next: None, misses: 0 }
    }

    /// Registers an arrival at `now`.
    pub fn arrived(&mut self, now: i64) {
        self.next = (self.period > 0).then(|| now.saturating_add(self.period));
        self.misses = 0;
    }

    /// Expected arrival of the next message; an instant more than `tail` before `now` is skipped as missed.
    pub fn next(&mut self, now: i64, tail: i64) -> Option<i64> {
        let mut at = self.next?;
        while now.saturating_sub(at) > tail {
            self.misses += 1;
            if self.misses > Self::PATIENCE {
                self.next = None;
                return None;
            }
            at = at.saturating_add(self.period);
        }
        self.next = Some(at);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::lead::LONGEST_SPIN;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_sequence_of_spins_burns_more_than_the_share_and_one_bucket(
            spins in proptest::collection::vec((0_i64..1_000_000, 0_i64..LONGEST_SPIN), 1..200)
        ) {
            let mut now = 0;
            let mut budget = Budget::new(now, 1);
            let mut burnt = 0;
            for (idle, spin) in spins {
                now += idle;
                budget.account(now, 0, 0);
                if budget.allows() {
                    now += spin;
                    burnt += spin;
                    budget.account(now, spin, 0);
                }
            }
            prop_assert!(burnt <= now * Budget::MAX_PPM / 1_000_000 + Budget::FULL + LONGEST_SPIN);
        }

        #[test]
        fn an_expectation_ends_after_a_few_silent_periods(period in 1_i64..1_000_000, silent in 0_i64..20) {
            let mut expectation = Expectation::new(period);
            prop_assert_eq!(expectation.next(0, 10), None);
            expectation.arrived(1_000);
            let now = 1_000 + silent * period;
            match expectation.next(now, 0) {
                Some(at) => prop_assert!(at >= now && at - now <= period && silent <= 5),
                None => prop_assert!(silent > 4),
            }
        }
    }

    #[test]
    fn many_agents_together_never_have_more_than_one_would() {
        for agents in [1, 4, 5, 125, 4_000] {
            let mut budget = Budget::new(0, agents);
            for i in 1..100 {
                budget.account(i * 10_000, 5_000, 1_000_000);
            }
            let (least, most) = (budget.share_ppm, budget.most_ppm);
            assert!(least <= most && least * i64::from(agents) <= Budget::MAX_PPM, "{agents}: {least}");
            budget.account(3_000_000_000, 0, 0);
            assert_eq!(budget.share_ppm, most);
        }
    }

    #[test]
    fn a_contended_core_shrinks_the_share_and_a_quiet_second_restores_it() {
        let mut budget = Budget::new(0, 1);
        for i in 1..100 {
            budget.account(i * 10_000, 5_000, 1_000_000);
        }
        assert_eq!(budget.share_ppm, Budget::LEAST_PPM);
        budget.account(2_000_000_000, 0, 0);
        assert_eq!(budget.share_ppm, Budget::MAX_PPM);
    }
}
