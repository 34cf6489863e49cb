//! What a relay does with a message: turn it round, or the fault the test planted.
//!
//! The rules are those of the live agent, so that a planted fault has one outcome on every bench. A swapped message
//! waits for the first later message that truly goes back; several in a row leave in falling order. A message
//! without a successor leaves after four periods, but not before half the drain (100 ms at most).

use std::collections::VecDeque;

use wg_core::Deadline;
use wg_frame::time::{RunTime, Span};
use wg_plan::{Fault, FaultKind, NodeIndex};

/// Most messages of one flow that wait for their successor at a time.
const MOST_HELD: usize = 16;
/// Periods a swapped message waits for a successor.
const HOLD_PERIODS: i64 = 4;
/// Longest of the shortest waits.
const LONGEST_LEAST: Span = Span::from_millis(100);

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    Return,
    Drop,
    Twice,
    Swap,
    Corrupt,
    Misdirect(NodeIndex),
}

/// The planted faults of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Ascending and disjoint.
    ranges: Vec<(u32, u32, Treatment)>,
}

impl Faults {
    /// Where ranges of several faults overlap, the one given first counts.
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let mut ranges: Vec<(u32, u32, Treatment)> = Vec::new();
        for fault in faults {
            let treatment = match fault.kind {
                FaultKind::Drop => Treatment::Drop,
                FaultKind::Duplicate => Treatment::Twice,
                FaultKind::Swap => Treatment::Swap,
                FaultKind::Corrupt => Treatment::Corrupt,
                FaultKind::Misdirect { to } => Treatment::Misdirect(to),
            };
            for &(first, last) in &fault.sequences {
                let mut from = u64::from(first);
                for (taken_first, taken_last, _) in ranges.clone() {
                    if u64::from(taken_last) < from || taken_first > last {
                        continue;
                    }
                    if u64::from(taken_first) > from {
                        ranges.push((from as u32, taken_first - 1, treatment));
                    }
                    from = u64::from(taken_last) + 1;
                }
                if from <= u64::from(last) {
                    ranges.push((from as u32, last, treatment));
                }
                ranges.sort_unstable_by_key(|range| range.0);
            }
        }
        Self { ranges }
    }

    /// What to do with message `sequence`. Warm-up messages are never faulted.
    pub(crate) fn treatment(&self, sequence: u32, warm_up: bool) -> Treatment {
        let after = self.ranges.partition_point(|range| range.0 <= sequence);
        match after.checked_sub(1).map(|at| self.ranges[at]) {
            Some((_, last, treatment)) if sequence <= last && !warm_up => treatment,
            _ => Treatment::Return,
        }
    }
}

/// Swapped messages of one flow that wait for a successor.
#[derive(Clone, Debug)]
pub(crate) struct Held<M> {
    waiting: VecDeque<(u32, M)>,
    patience: Span,
    flush_at: Deadline,
}

impl<M> Held<M> {
    /// For a flow of this period in a run with this drain.
    pub(crate) fn new(period: Span, drain: Span) -> Self {
        let least = Span::from_picos(drain.as_picos() / 2).clamp(Span::ZERO, LONGEST_LEAST);
        let patience = period.checked_mul(HOLD_PERIODS).unwrap_or(period).max(least);
        Self { waiting: VecDeque::new(), patience, flush_at: Deadline::Never }
    }

    /// Holds message `sequence` back; gives it back when too many are held already.
    pub(crate) fn hold(&mut self, now: RunTime, sequence: u32, message: M) -> Result<(), M> {
        if self.waiting.len() >= MOST_HELD {
            return Err(message);
        }
        self.waiting.push_back((sequence, message));
        self.flush_at = Deadline::At(now + self.patience);
        Ok(())
    }

    /// The next held message that may leave because message `sent` has gone back, latest first.
    pub(crate) fn released_by(&mut self, sent: u32) -> Option<M> {
        let position = self.waiting.iter().rposition(|(sequence, _)| *sequence < sent)?;
        let (_, message) = self.waiting.remove(position)?;
        self.settle();
        Some(message)
    }

    /// The next held message, whatever it waits for, in the order of holding.
    pub(crate) fn give_up(&mut self) -> Option<M> {
        let (_, message) = self.waiting.pop_front()?;
        self.settle();
        Some(message)
    }

    /// When held messages are to be [given up](Self::give_up).
    pub(crate) fn deadline(&self) -> Deadline {
        self.flush_at
    }

    fn settle(&mut self) {
        if self.waiting.is_empty() {
            self.flush_at = Deadline::Never;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = FaultKind> {
        prop_oneof![
            Just(FaultKind::Drop),
            Just(FaultKind::Duplicate),
            Just(FaultKind::Swap),
            Just(FaultKind::Corrupt),
            Just(FaultKind::Misdirect { to: 3 }),
        ]
    }

    fn treated(kind: FaultKind) -> Treatment {
        match kind {
            FaultKind::Drop => Treatment::Drop,
            FaultKind::Duplicate => Treatment::Twice,
            FaultKind::Swap => Treatment::Swap,
            FaultKind::Corrupt => Treatment::Corrupt,
            FaultKind::Misdirect { to } => Treatment::Misdirect(to),
        }
    }

    proptest! {
        #[test]
        fn the_first_fault_that_names_a_sequence_counts(
            given in proptest::collection::vec((kind(), 0_u32..60, 0_u32..10), 0..8), sequence in 0_u32..80
        ) {
            let faults: Vec<Fault> = given
                .iter()
                .map(|&(kind, first, more)| Fault { kind, sequences: vec![(first, first + more)] })
                .collect();
            let table = Faults::new(&faults);
            let named = given.iter().find(|(_, first, more)| (*first..=first + more).contains(&sequence));
            let expected = named.map_or(Treatment::Return, |(kind, ..)| treated(*kind));
            prop_assert_eq!(table.treatment(sequence, false), expected);
            prop_assert_eq!(table.treatment(sequence, true), Treatment::Return);
        }

        #[test]
        fn held_messages_all_leave_and_only_behind_a_later_one(
            swapped in proptest::collection::btree_set(0_u32..40, 0..MOST_HELD)
        ) {
            let mut held = Held::new(Span::from_millis(1), Span::from_millis(10));
            let mut out = Vec::new();
            for sequence in 0..40 {
                if swapped.contains(&sequence) {
                    prop_assert!(held.hold(RunTime::ZERO, sequence, sequence).is_ok());
                } else {
                    out.push(sequence);
                    while let Some(late) = held.released_by(sequence) {
                        out.push(late);
                    }
                }
            }
            while let Some(late) = held.give_up() {
                out.push(late);
            }
            prop_assert_eq!(held.deadline(), Deadline::Never);
            let mut sorted = out.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..40).collect::<Vec<_>>());
            for (at, sequence) in out.iter().enumerate() {
                let overtaken = out[..at].iter().any(|earlier| earlier > sequence);
                let has_successor = (*sequence + 1..40).any(|later| !swapped.contains(&later));
                prop_assert_eq!(overtaken, swapped.contains(sequence) && has_successor);
            }
        }
    }

    #[test]
    fn patience_is_four_periods_but_at_least_half_the_drain() {
        let patience = |period, drain| {
            let mut held = Held::new(Span::from_millis(period), Span::from_millis(drain));
            assert!(held.hold(RunTime::ZERO, 0, ()).is_ok());
            held.deadline()
        };
        let at = |ms| Deadline::At(RunTime::ZERO + Span::from_millis(ms));
        assert_eq!(patience(50, 100), at(200));
        assert_eq!(patience(1, 100), at(50));
        assert_eq!(patience(1, 1_000), at(100));
    }
}
