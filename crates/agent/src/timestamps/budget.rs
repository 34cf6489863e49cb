//! Limit on outstanding transmit timestamps of an interface.
//!
//! Many interfaces store only one transmit timestamp at a time, some a few: they latch it in a register until the
//! driver reads it, and further frames get no timestamp meanwhile. Requests beyond this limit would produce missing
//! timestamps that look like defects. A timestamp is therefore requested only below the limit, and other frames are
//! counted. A timestamp that does not arrive frees its place after a timeout.

/// Maximum number of outstanding timestamps for any interface.
pub const MAX: usize = 64;
/// Timeout of a timestamp, ns; longer than any delay in a shaper. A later timestamp is still accepted.
pub const PATIENCE_NS: i64 = 100_000_000;
/// Number of past timestamps stored to detect duplicates.
const REMEMBERED: usize = 64;

/// Transmit timestamps by result; `asked = timestamped + missing` at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BudgetStats {
    /// Frames with a timestamp request.
    pub asked: u64,
    /// Frames without a request because the limit was reached.
    pub not_asked: u64,
    /// Received timestamps.
    pub timestamped: u64,
    /// Timestamps of these received after the timeout.
    pub late: u64,
    /// Timestamps that never arrived.
    pub missing: u64,
    /// Duplicate timestamps.
    pub duplicates: u64,
    /// Timestamps without a request.
    pub unknown: u64,
}

impl BudgetStats {
    /// Adds the statistics of another access point.
    pub fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.not_asked += other.not_asked;
        self.timestamped += other.timestamped;
        self.late += other.late;
        self.missing += other.missing;
        self.duplicates += other.duplicates;
        self.unknown += other.unknown;
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    asked: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Timestamped,
    GivenUp,
}

/// Numbers of sends with outstanding timestamps. Reads no clock and never allocates.
#[derive(Debug)]
pub struct TimestampBudget {
    limit: usize,
    waiting: Vec<Waiting>,
    past: [Option<(u32, Fate)>; REMEMBERED],
    next_past: usize,
    stats: BudgetStats,
}

impl TimestampBudget {
    /// Budget of `limit` timestamps, limited to 1 to [`MAX`].
    pub fn new(limit: usize) -> Self {
        let limit = limit.clamp(1, MAX);
        Self {
            limit,
            waiting: Vec::with_capacity(limit),
            past: [None; REMEMBERED],
            next_past: 0,
            stats: BudgetStats::default(),
        }
    }

    /// True if a timestamp may be requested for the next frame; a refusal is counted.
    pub fn may_ask(&mut self, now: i64) -> bool {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            if now.saturating_sub(waiting.asked) > PATIENCE_NS {
                self.stats.missing += 1;
                let gone = self.waiting.swap_remove(at);
                self.remember(gone.number, Fate::GivenUp);
            } else {
                at += 1;
            }
        }
        let room = !self.is_full();
        self.stats.not_asked += u64::from(!room);
        room
    }

    /// Registers that frame `number` was sent with a timestamp request. Valid only after [`may_ask`](Self::may_ask)
    /// returned true.
    pub fn handle_asked(&mut self, number: u32, now: i64) {
        self.stats.asked += 1;
        if self.is_full() {
            // Without a reserved place it counts as missing.
            self.stats.missing += 1;
            self.remember(number, Fate::GivenUp);
        } else {
            self.waiting.push(Waiting { number, asked: now });
        }
    }

    /// Registers a timestamp; true if it is the first of its frame and to be recorded.
    pub fn handle_timestamp(&mut self, number: u32) -> bool {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.number == number) {
            self.waiting.swap_remove(at);
            self.stats.timestamped += 1;
            self.remember(number, Fate::Timestamped);
            return true;
        }
        let known = self.past.iter_mut().flatten().find(|(past, _)| *past == number);
        match known.map(|(_, fate)| std::mem::replace(fate, Fate::Timestamped)) {
            Some(Fate::GivenUp) => {
                self.stats.missing -= 1;
                self.stats.timestamped += 1;
                self.stats.late += 1;
                true
            }
            Some(Fate::Timestamped) => {
                self.stats.duplicates += 1;
                false
            }
            None => {
                self.stats.unknown += 1;
                false
            }
        }
    }

    /// True if the limit is reached.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// True if timestamps are outstanding.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Statistics at the end of the run; outstanding timestamps count as missing.
    pub fn finish(&mut self) -> BudgetStats {
        self.stats.missing += self.waiting.len() as u64;
        self.waiting.clear();
        self.stats
    }

    fn remember(&mut self, number: u32, fate: Fate) {
        self.past[self.next_past] = Some((number, fate));
        self.next_past = (self.next_past + 1) % REMEMBERED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Send,
        Timestamp(usize),
        Again(usize),
        Strange,
        Pass(i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Send),
            3 => (0_usize..8).prop_map(Step::Timestamp),
            1 => (0_usize..8).prop_map(Step::Again),
            1 => Just(Step::Strange),
            2 => (0..2 * PATIENCE_NS).prop_map(Step::Pass),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        /// Comparison with a model of unlimited memory.
        #[test]
        fn room_is_never_exceeded_and_every_request_ends_once(limit in 1_usize..6, first: u32, steps in steps()) {
            let mut budget = TimestampBudget::new(limit);
            let (mut now, mut number) = (0, first);
            let mut open: Vec<(u32, i64)> = Vec::new();
            let (mut asked, mut refused, mut came, mut again, mut strange) = (0, 0, Vec::new(), 0, 0);
            for step in steps {
                match step {
                    Step::Send => {
                        open.retain(|(_, at)| now - at <= PATIENCE_NS);
                        let may = budget.may_ask(now);
                        prop_assert_eq!(may, open.len() < limit);
                        if may {
                            budget.handle_asked(number, now);
                            open.push((number, now));
                            asked += 1;
                        } else {
                            refused += 1;
                        }
                        number = number.wrapping_add(1);
                    }
                    Step::Timestamp(which) if !open.is_empty() => {
                        let (number, _) = open.swap_remove(which % open.len());
                        prop_assert!(budget.handle_timestamp(number));
                        came.push(number);
                    }
                    Step::Again(which) if !came.is_empty() => {
                        // One of the latest timestamps, which must be stored.
                        let latest = &came[came.len().saturating_sub(REMEMBERED / 4)..];
                        prop_assert!(!budget.handle_timestamp(latest[which % latest.len()]));
                        again += 1;
                    }
                    Step::Strange => {
                        prop_assert!(!budget.handle_timestamp(number.wrapping_add(1_000_000)));
                        strange += 1;
                    }
                    Step::Pass(ns) => now += ns,
                    _ => {}
                }
            }
            let stats = budget.finish();
            prop_assert_eq!((stats.asked, stats.not_asked), (asked, refused));
            prop_assert_eq!(stats.timestamped + stats.missing, asked);
            prop_assert_eq!(stats.timestamped, came.len() as u64);
            // A duplicate of a timestamp that is no longer stored counts as unknown.
            prop_assert_eq!(stats.duplicates + stats.unknown, again + strange);
            prop_assert!(stats.unknown >= strange);
            prop_assert!(!budget.is_waiting());
        }
    }

    #[test]
    fn a_timestamp_that_comes_after_all_is_taken_and_was_late() {
        let mut budget = TimestampBudget::new(1);
        assert!(budget.may_ask(0));
        budget.handle_asked(7, 0);
        assert!(!budget.may_ask(PATIENCE_NS), "its room is taken");
        assert!(budget.may_ask(PATIENCE_NS + 1), "patience has ended");
        budget.handle_asked(8, PATIENCE_NS + 1);
        assert!(budget.handle_timestamp(7) && !budget.handle_timestamp(7));
        assert!(budget.handle_timestamp(8));
        let wanted = BudgetStats {
            asked: 2,
            not_asked: 1,
            timestamped: 2,
            late: 1,
            duplicates: 1,
            ..BudgetStats::default()
        };
        assert_eq!(budget.finish(), wanted);
    }
}
