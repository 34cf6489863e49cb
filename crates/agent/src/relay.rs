//! What a relay does with a message: turn it round, or the fault the test planted.
//!
//! Pure logic: it decides, the servicing thread or the relay task carries out. A swapped message waits for the first later
//! message that truly goes back, so that the exchange is seen also where the direct successor was dropped or
//! damaged; several in a row leave in falling order. A message without a successor leaves after four periods,
//! but not before a fixed time: a sender that runs late must not turn a planted exchange into none.

use std::collections::VecDeque;

use wg_plan::{Fault, FaultKind, NodeIndex};

/// Most messages of one flow that wait for their successor at a time.
pub const MOST_HELD: usize = 16;
/// Periods a swapped message waits for a successor.
pub const HOLD_PERIODS: i64 = 4;

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Send it back.
    Return,
    /// Planted: do not send it on.
    Drop,
    /// Planted: send it back twice.
    Twice,
    /// Planted: send it back after its successor.
    Swap,
    /// Planted: invert a bit of its last payload byte, then send it back.
    Corrupt,
    /// Planted: send it to this end system instead.
    Misdirect(NodeIndex),
}

/// The planted faults of a flow, in order of sequence number.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    ranges: Vec<(u32, u32, Treatment)>,
}

impl Faults {
    /// Where ranges of several faults overlap, the one given first counts.
    pub fn new(faults: &[Fault]) -> Self {
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
                ranges.extend(gaps(&ranges, first, last).into_iter().map(|(a, b)| (a, b, treatment)));
                ranges.sort_unstable_by_key(|r| r.0);
            }
        }
        Self { ranges }
    }

    /// What to do with message `sequence`. Warm-up messages are never faulted.
    pub fn treatment(&self, sequence: u32, warm_up: bool) -> Treatment {
        if warm_up {
            return Treatment::Return;
        }
        let after = self.ranges.partition_point(|r| r.0 <= sequence);
        match after.checked_sub(1).map(|i| self.ranges[i]) {
            Some((_, last, treatment)) if sequence <= last => treatment,
            _ => Treatment::Return,
        }
    }
}

/// The parts of `first..=last` that none of `taken` (ascending, disjoint) covers.
fn gaps(taken: &[(u32, u32, Treatment)], first: u32, last: u32) -> Vec<(u32, u32)> {
    let mut free = Vec::new();
    let mut from = Some(first);
    for &(a, b, _) in taken {
        let Some(at) = from else { break };
        if a > last {
            break;
        }
        if b < at {
            continue;
        }
        if a > at {
            free.push((at, a - 1));
        }
        from = b.checked_add(1);
    }
    if let Some(at) = from
        && at <= last
    {
        free.push((at, last));
    }
    free
}

/// Swapped messages of one flow that wait for a successor.
#[derive(Debug)]
pub struct Held<M> {
    waiting: VecDeque<(u32, M)>,
    patience: i64,
    flush_at: i64,
}

impl<M> Held<M> {
    /// For a flow of this period, which waits at least `least`; ns both.
    pub fn new(period_ns: i64, least: i64) -> Self {
        Self {
            waiting: VecDeque::with_capacity(MOST_HELD),
            patience: period_ns.saturating_mul(HOLD_PERIODS).max(least),
            flush_at: i64::MAX,
        }
    }

    /// Holds message `sequence` back; returns it when too many are held already.
    ///
    /// # Errors
    /// The message, which must then be sent at once.
    pub fn hold(&mut self, now: i64, sequence: u32, message: M) -> Result<(), M> {
        if self.waiting.len() >= MOST_HELD {
            return Err(message);
        }
        self.waiting.push_back((sequence, message));
        self.flush_at = now.saturating_add(self.patience);
        Ok(())
    }

    /// The next held message that may leave because message `sent` has gone back, latest first.
    pub fn released_by(&mut self, sent: u32) -> Option<M> {
        let position = self.waiting.iter().rposition(|(sequence, _)| *sequence < sent)?;
        self.remove(position)
    }

    /// The next held message that has waited long enough, in order of sequence.
    pub fn expired(&mut self, now: i64) -> Option<M> {
        if now < self.flush_at || self.waiting.is_empty() { None } else { self.remove(0) }
    }

    /// When [`expired`](Self::expired) will have one; `i64::MAX`: never.
    pub fn deadline(&self) -> i64 {
        self.flush_at
    }

    fn remove(&mut self, position: usize) -> Option<M> {
        let removed = self.waiting.remove(position);
        if self.waiting.is_empty() {
            self.flush_at = i64::MAX;
        }
        removed.map(|(_, message)| message)
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
            let expected = given
                .iter()
                .find(|(_, first, more)| (*first..=first + more).contains(&sequence))
                .map(|(kind, ..)| *kind);
            let got = match table.treatment(sequence, false) {
                Treatment::Return => None,
                Treatment::Drop => Some(FaultKind::Drop),
                Treatment::Twice => Some(FaultKind::Duplicate),
                Treatment::Swap => Some(FaultKind::Swap),
                Treatment::Corrupt => Some(FaultKind::Corrupt),
                Treatment::Misdirect(to) => Some(FaultKind::Misdirect { to }),
            };
            prop_assert_eq!(got, expected);
            prop_assert_eq!(table.treatment(sequence, true), Treatment::Return);
        }

        /// Played through with every message arriving in order: nothing vanishes, and exactly the swapped
        /// messages that have an unswapped successor come out behind a later one.
        #[test]
        fn swapped_messages_leave_behind_their_successor(swapped in proptest::collection::btree_set(0_u32..40, 0..MOST_HELD)) {
            let mut held = Held::new(10, 0);
            let mut out = Vec::new();
            for sequence in 0..40 {
                let now = i64::from(sequence) * 10;
                while let Some(late) = held.expired(now) {
                    out.push(late);
                }
                if swapped.contains(&sequence) {
                    prop_assert!(held.hold(now, sequence, sequence).is_ok());
                } else {
                    out.push(sequence);
                    while let Some(late) = held.released_by(sequence) {
                        out.push(late);
                    }
                }
            }
            while let Some(late) = held.expired(i64::MAX) {
                out.push(late);
            }
            let mut sorted = out.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..40).collect::<Vec<_>>());
            for (i, sequence) in out.iter().enumerate() {
                let overtaken = out[..i].iter().any(|earlier| earlier > sequence);
                let has_successor = (*sequence + 1..40).any(|s| !swapped.contains(&s));
                let wait = (*sequence + 1..40).find(|s| !swapped.contains(s)).map_or(0, |s| s - sequence);
                if wait <= 4 {
                    prop_assert_eq!(overtaken, swapped.contains(sequence) && has_successor);
                }
            }
        }
    }

    #[test]
    fn a_full_hold_gives_the_message_back() {
        let mut held = Held::new(1, 0);
        for sequence in 0..MOST_HELD as u32 {
            assert!(held.hold(0, sequence, sequence).is_ok());
        }
        assert_eq!(held.hold(0, 99, 99), Err(99));
        assert_eq!(held.deadline(), HOLD_PERIODS);
    }
}
