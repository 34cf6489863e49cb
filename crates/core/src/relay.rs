//! A relay: returns messages to their sender, with the faults that the test plants.
//!
//! The simulator and the live agents drive it, so a planted fault has one outcome on every bench. It decides; the
//! driver marks, damages, addresses and sends. Warm-up messages are never faulted.
//!
//! A swapped message waits for the first later message that truly goes back, so that the exchange is seen also where
//! the direct successor was dropped or damaged; several in a row leave in falling order. A message without a successor
//! leaves after [`HOLD_PERIODS`] periods, but not before half the drain ([`LONGEST_LEAST`] at most): a sender that runs
//! late must not turn a planted exchange into none, and a swapped last message must get home within the run. Where
//! [`MOST_HELD`] wait already, the next one leaves at once.
//!
//! Road not taken: waiting for the direct successor alone, which never comes where the test dropped it.
//!
//! # Bounds
//! One message leads to at most [`MOST_HELD`] + 1 effects; nothing is allocated once a relay stands.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use crate::deadline::Deadline;

/// Greatest number of messages that wait for their successor at a time.
pub const MOST_HELD: usize = 16;
/// Number of periods that a swapped message waits for a successor.
pub const HOLD_PERIODS: i64 = 4;
/// Upper bound of the least waiting time of a swapped message.
pub const LONGEST_LEAST: Span = Span::from_millis(100);

/// A fault that a test plants in a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "type", rename_all = "lowercase")
)]
pub enum FaultKind {
    /// The message is not sent on.
    Loss,
    /// The message is sent on twice.
    Duplicate,
    /// The message is sent on after its successor.
    Reorder,
    /// One bit of the last payload byte is inverted after the CRC was written.
    Corrupt,
    /// The message is sent to another node.
    Misdirect {
        /// Node that it is sent to, by the driver's number.
        to: u16,
    },
}

/// An effect of a relay, for the driver to carry out. Each message comes out once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<M> {
    /// Send it back to where it came from.
    Return(M),
    /// Send it back, and once more.
    Twice(M),
    /// Invert a bit of its last payload byte without correcting its CRC, then send it back.
    Corrupt(M),
    /// Send it to this node instead of its sender.
    Misdirect(M, u16),
    /// Drop it, as a planted fault demands.
    Drop(M),
}

/// The planted faults of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// First and last sequence number with the fault, ascending and disjoint.
    ranges: Vec<(u32, u32, FaultKind)>,
}

impl Faults {
    /// Faults in inclusive ranges of sequence numbers; where ranges overlap, the one given first counts. A range that
    /// ends before it begins is empty.
    pub fn new(given: impl IntoIterator<Item = (u32, u32, FaultKind)>) -> Self {
        let mut ranges: Vec<(u32, u32, FaultKind)> = Vec::new();
        for (first, last, fault) in given {
            let mut free = Vec::new();
            let mut from = Some(first);
            for &(taken_first, taken_last, _) in &ranges {
                let Some(at) = from.filter(|_| taken_first <= last) else { break };
                if taken_last < at {
                    continue;
                }
                if taken_first > at {
                    free.push((at, taken_first - 1, fault));
                }
                from = taken_last.checked_add(1);
            }
            free.extend(from.filter(|at| *at <= last).map(|at| (at, last, fault)));
            ranges.extend(free);
            ranges.sort_unstable_by_key(|range| range.0);
        }
        Self { ranges }
    }

    /// The fault planted for message `sequence`, if any.
    pub fn of(&self, sequence: u32) -> Option<FaultKind> {
        let after = self.ranges.partition_point(|range| range.0 <= sequence);
        match after.checked_sub(1).map(|at| self.ranges[at]) {
            Some((_, last, fault)) if sequence <= last => Some(fault),
            _ => None,
        }
    }
}

/// The relay of one flow; see the [module](self).
#[derive(Clone, Debug)]
pub struct Relay<M> {
    faults: Faults,
    /// Swapped messages with their sequence numbers, in the order they came.
    held: VecDeque<(u32, M)>,
    patience: Span,
    flush_at: Deadline,
    out: VecDeque<Output<M>>,
}

impl<M> Relay<M> {
    /// A relay for a flow with this period, in a run with this drain.
    pub fn new(faults: Faults, period: Span, drain: Span) -> Self {
        let least = Span::from_picos(drain.as_picos() / 2).clamp(Span::ZERO, LONGEST_LEAST);
        let patience = period.checked_mul(HOLD_PERIODS).unwrap_or(period).max(least);
        Self {
            faults,
            held: VecDeque::with_capacity(MOST_HELD),
            patience,
            flush_at: Deadline::NEVER,
            out: VecDeque::with_capacity(MOST_HELD + 1),
        }
    }

    /// Takes an intact message; its effects follow.
    pub fn handle_message(
        &mut self,
        now: RunTime,
        sequence: u32,
        warm_up: bool,
        message: M,
    ) -> Option<FaultKind> {
        let fault = if warm_up { None } else { self.faults.of(sequence) };
        match fault {
            Some(FaultKind::Loss) => self.out.push_back(Output::Drop(message)),
            Some(FaultKind::Corrupt) => self.out.push_back(Output::Corrupt(message)),
            Some(FaultKind::Misdirect { to }) => self.out.push_back(Output::Misdirect(message, to)),
            Some(FaultKind::Reorder) if self.held.len() < MOST_HELD => {
                self.held.push_back((sequence, message));
                let at = now.as_picos().saturating_add(self.patience.as_picos());
                self.flush_at = Deadline::at(RunTime::from_picos(at));
            }
            Some(FaultKind::Reorder) => self.out.push_back(Output::Return(message)),
            None | Some(FaultKind::Duplicate) => {
                let twice = fault == Some(FaultKind::Duplicate);
                self.out.push_back(if twice { Output::Twice(message) } else { Output::Return(message) });
                if !warm_up {
                    self.release_behind(sequence);
                }
            }
        }
        fault
    }

    /// The next effect.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output<M>> {
        self.out.pop_front()
    }

    /// Instant at which held messages leave without a successor.
    #[inline]
    pub fn next_deadline(&self) -> Deadline {
        self.flush_at
    }

    /// Releases held messages that have waited long enough, in the order they came.
    pub fn handle_deadline(&mut self, now: RunTime) {
        if self.flush_at.is_due(now) {
            self.handle_end();
        }
    }

    /// The run ends: releases all held messages, in the order they came.
    pub fn handle_end(&mut self) {
        self.flush_at = Deadline::NEVER;
        self.out.extend(self.held.drain(..).map(|(_, message)| Output::Return(message)));
    }

    /// Releases the messages whose awaited successor was sent, the latest first.
    fn release_behind(&mut self, sent: u32) {
        while let Some(position) = self.held.iter().rposition(|(sequence, _)| *sequence < sent)
            && let Some((_, message)) = self.held.remove(position)
        {
            self.out.push_back(Output::Return(message));
        }
        if self.held.is_empty() {
            self.flush_at = Deadline::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    fn fault() -> impl Strategy<Value = FaultKind> {
        prop_oneof![
            Just(FaultKind::Loss),
            Just(FaultKind::Duplicate),
            Just(FaultKind::Reorder),
            Just(FaultKind::Corrupt),
            Just(FaultKind::Misdirect { to: 3 }),
        ]
    }

    fn at(ms: i64) -> RunTime {
        RunTime::ZERO + Span::from_millis(ms)
    }

    fn drained(relay: &mut Relay<u32>) -> Vec<Output<u32>> {
        core::iter::from_fn(|| relay.poll_output()).collect()
    }

    proptest! {
        #[test]
        fn the_first_fault_that_names_a_sequence_counts(
            given in prop::collection::vec((fault(), 0_u32..60, 0_u32..10), 0..8), high: bool, sequence in 0_u32..80
        ) {
            // The same at the end of all numbers, where a range cannot be followed by another.
            let base = if high { u32::MAX - 70 } else { 0 };
            let ranges = given.iter().map(|&(what, first, more)| (base + first, base + first + more, what));
            let faults = Faults::new(ranges.clone());
            let sequence = base.saturating_add(sequence);
            let named = ranges.into_iter().find(|(first, last, _)| (*first..=*last).contains(&sequence));
            prop_assert_eq!(faults.of(sequence), named.map(|(.., what)| what));
        }

        /// Played through in order: nothing vanishes, and exactly the swapped messages that have an unswapped successor
        /// come out behind a later one.
        #[test]
        fn swapped_messages_all_leave_and_only_behind_a_later_one(
            swapped in prop::collection::btree_set(0_u32..40, 0..MOST_HELD)
        ) {
            let faults = Faults::new(swapped.iter().map(|&at| (at, at, FaultKind::Reorder)));
            let mut relay = Relay::new(faults, Span::from_millis(1), Span::from_millis(10));
            for sequence in 0..40 {
                relay.handle_message(RunTime::ZERO, sequence, false, sequence);
            }
            relay.handle_end();
            prop_assert_eq!(relay.next_deadline(), Deadline::NEVER);
            let out: Vec<u32> = drained(&mut relay)
                .into_iter()
                .map(|output| match output { Output::Return(sequence) => sequence, _ => u32::MAX })
                .collect();
            let mut sorted = out.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..40).collect::<Vec<_>>());
            for (place, sequence) in out.iter().enumerate() {
                let overtaken = out[..place].iter().any(|earlier| earlier > sequence);
                let has_successor = (*sequence + 1..40).any(|later| !swapped.contains(&later));
                prop_assert_eq!(overtaken, swapped.contains(sequence) && has_successor);
            }
        }
    }

    #[test]
    fn each_treatment_asks_for_its_own() {
        let whats =
            [FaultKind::Loss, FaultKind::Duplicate, FaultKind::Corrupt, FaultKind::Misdirect { to: 7 }];
        let faults = Faults::new((1..).zip(whats).map(|(at, what)| (at, at, what)));
        let mut relay = Relay::new(faults, Span::from_millis(1), Span::ZERO);
        let done: Vec<_> = (0..6).map(|n| relay.handle_message(at(0), n, false, n)).collect();
        assert_eq!(done[1..5], whats.map(Some));
        assert_eq!((done[0], done[5]), (None, None));
        let expected = vec![
            Output::Return(0),
            Output::Drop(1),
            Output::Twice(2),
            Output::Corrupt(3),
            Output::Misdirect(4, 7),
            Output::Return(5),
        ];
        assert_eq!(drained(&mut relay), expected);
        assert_eq!(relay.handle_message(at(0), 1, true, 1), None, "a warm-up message");
    }

    /// A warm-up message is numbered on its own, so it is no successor.
    #[test]
    fn a_warm_up_message_lets_nothing_go() {
        let mut relay =
            Relay::new(Faults::new([(0, 0, FaultKind::Reorder)]), Span::from_millis(1), Span::ZERO);
        relay.handle_message(at(0), 0, false, 0);
        relay.handle_message(at(0), 5, true, 5);
        assert_eq!(drained(&mut relay), [Output::Return(5)]);
        relay.handle_message(at(0), 1, false, 1);
        assert_eq!(drained(&mut relay), [Output::Return(1), Output::Return(0)]);
    }

    #[test]
    fn where_too_many_wait_the_next_leaves_at_once() {
        let faults = Faults::new([(0, 99, FaultKind::Reorder)]);
        let mut relay = Relay::new(faults, Span::from_millis(1), Span::ZERO);
        for sequence in 0..=MOST_HELD as u32 {
            relay.handle_message(at(0), sequence, false, sequence);
        }
        assert_eq!(drained(&mut relay), [Output::Return(MOST_HELD as u32)]);
        relay.handle_end();
        let all: Vec<_> = (0..MOST_HELD as u32).map(Output::Return).collect();
        assert_eq!(drained(&mut relay), all);
    }

    #[test]
    fn patience_is_four_periods_but_at_least_half_the_drain() {
        let leaves = |period, drain| {
            let faults = Faults::new([(0, 0, FaultKind::Reorder)]);
            let mut relay = Relay::new(faults, Span::from_millis(period), Span::from_millis(drain));
            relay.handle_message(at(0), 0, false, 0);
            let deadline = relay.next_deadline().instant()?;
            relay.handle_deadline(deadline - Span::from_picos(1));
            assert_eq!(relay.poll_output(), None, "an early call does nothing");
            relay.handle_deadline(deadline);
            assert_eq!(relay.poll_output(), Some(Output::Return(0)));
            Some(deadline)
        };
        assert_eq!(leaves(50, 100), Some(at(200)));
        assert_eq!(leaves(1, 100), Some(at(50)));
        assert_eq!(leaves(1, 1_000), Some(at(100)));
    }
}
