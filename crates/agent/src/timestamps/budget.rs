//! How many transmit timestamps of an interface may be outstanding.
//!
//! Many interfaces hold one transmit timestamp at a time, some a few: they latch it in a register until the driver has
//! read it, and a frame that wants a timestamp meanwhile gets none. Asking for more than there is room for therefore
//! makes timestamps go missing that look like defects. So a timestamp is asked for only while there is room, and what
//! was not asked for is counted. A timestamp that never comes frees its room when patience ends.

/// Most timestamps that may be under way, whatever the interface.
pub const MAX: usize = 64;
/// After so long a timestamp counts as missing, ns. Longer than a shaper ever holds a frame back; a timestamp that
/// still comes is taken.
pub const PATIENCE_NS: i64 = 100_000_000;
/// Timestamps of the past that are remembered, so that a second one of the same frame is known.
const REMEMBERED: usize = 64;

/// Transmit timestamps by what became of them: `asked = timestamped + missing` once all is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BudgetStats {
    /// Frames whose timestamp was asked for.
    pub asked: u64,
    /// Frames whose timestamp was not asked for, since there was no room.
    pub not_asked: u64,
    /// Timestamps that came.
    pub timestamped: u64,
    /// Of them, those that came when patience had ended.
    pub late: u64,
    /// Timestamps that never came.
    pub missing: u64,
    /// Further timestamps of a frame that had its timestamp.
    pub duplicates: u64,
    /// Timestamps that were not asked for.
    pub unknown: u64,
}

impl BudgetStats {
    /// Adds those of another access point.
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

/// Numbers of sends whose timestamps are under way. Owns no clock and never allocates.
#[derive(Debug)]
pub struct TimestampBudget {
    limit: usize,
    waiting: Vec<Waiting>,
    past: [Option<(u32, Fate)>; REMEMBERED],
    next_past: usize,
    stats: BudgetStats,
}

impl TimestampBudget {
    /// Room for `limit` timestamps, at least 1 and at most [`MOST`].
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

    /// Whether the timestamp of a frame that is about to be sent may be asked for; counted if not.
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

    /// The frame of this number was sent, asking for its timestamp. To be told only after [`may_ask`](Self::may_ask)
    /// allowed it.
    pub fn handle_asked(&mut self, number: u32, now: i64) {
        self.stats.asked += 1;
        if self.is_full() {
            // Nobody promised room for it: it counts as what it would become.
            self.stats.missing += 1;
            self.remember(number, Fate::GivenUp);
        } else {
            self.waiting.push(Waiting { number, asked: now });
        }
    }

    /// A timestamp came; whether it is the first of its frame, and so one to record.
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

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Whether timestamps are under way.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The end: what is still under way is missing.
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
        /// Against an account that remembers everything.
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
                        // Of the latest ones, which it must know.
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
            // A frame may be asked about again only while it is remembered; with more given up since, it is a stranger.
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
