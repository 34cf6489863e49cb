//! The receiver task: checks what the servicing thread received, unexpected messages included.
//!
//! The task is a thread behind a queue, so that checks delay no reception. At message rates at which the servicing
//! thread never sleeps, the task would need its own core, and without one any queue overflows; in this case the
//! servicing thread checks each message itself, at little cost compared with the receive call.

use std::sync::Arc;
use std::time::Duration;

use rtrb::{Consumer, Producer};
use wg_frame::probe::ProbeFlags;
use wg_record::Crc;

use crate::end_system::assignment::Assignment;
use crate::end_system::buffer::{Buffer, Incoming};
use crate::end_system::framing;
use crate::recording::record_ring::RecordProducer;

/// Pause between polls of the queue, which spares the servicing thread a wake-up call. It doubles while nothing
/// arrives, since hundreds of agents may share a processor; the queue holds half a second of messages.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

/// Reception counts of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowStats {
    /// Intact messages that belong here.
    pub received: u64,
    /// Damaged messages.
    pub crc_errors: u64,
    /// Intact messages for another end system.
    pub wrong_destination: u64,
    /// Forward jumps in the sequence numbers.
    pub sequence_gaps: u64,
    /// Sequence numbers not above the previous one.
    pub sequence_repeats: u64,
    next: [Option<u32>; 2],
}

impl FlowStats {
    /// Adds the counts of another receiver task.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.crc_errors += other.crc_errors;
        self.wrong_destination += other.wrong_destination;
        self.sequence_gaps += other.sequence_gaps;
        self.sequence_repeats += other.sequence_repeats;
    }

    /// Counts the sequence number of an intact message; warm-up messages have their own sequence.
    fn follow(&mut self, sequence: u32, warm_up: bool) {
        let next = &mut self.next[usize::from(warm_up)];
        let expected = next.unwrap_or(0);
        if sequence > expected {
            self.sequence_gaps += 1;
        } else if sequence < expected {
            self.sequence_repeats += 1;
        }
        if sequence >= expected {
            *next = Some(sequence.saturating_add(1));
        }
    }
}

/// Messages in half a second above which the servicing thread checks them itself.
const MAX_QUEUED: u64 = 10_000;

/// Same limit if threads of other agents, all of higher priority than a task, use the core.
const MAX_QUEUED_ON_SHARED_CORE: u64 = 1_000;

/// True if the servicing thread checks messages itself: `in_half_a_second` messages may arrive and `sharing` agents
/// share its core.
pub fn checks_inline(in_half_a_second: u64, sharing: u32) -> bool {
    in_half_a_second > if sharing > 1 { MAX_QUEUED_ON_SHARED_CORE } else { MAX_QUEUED }
}

/// Place of the message checks.
#[derive(Debug)]
pub enum Inbox {
    /// In the receiver task.
    Task(Producer<Incoming>),
    /// On the servicing thread.
    Inline(MessageChecker),
}

/// Reception counts of all flows.
#[derive(Clone, Debug, Default)]
pub struct ReceptionStats {
    /// Counts by position in the flow table.
    pub flows: Vec<FlowStats>,
    /// Intact messages of flows that are not in this run.
    pub unknown_flow: u64,
}

/// Checks and records messages until the servicing thread has ended and its queue is empty.
pub fn run(
    mut checker: MessageChecker,
    mut inbox: Consumer<Incoming>,
    mut spent: Producer<Buffer>,
    mut records: RecordProducer,
) -> ReceptionStats {
    let mut pause = PAUSE;
    loop {
        // Read before the queue is drained, so that messages pushed before the producer ended are still found.
        let over = inbox.is_abandoned();
        pause = if inbox.is_empty() { (pause * 2).min(LONGEST_PAUSE) } else { PAUSE };
        while let Ok(incoming) = inbox.pop() {
            checker.take(&incoming, &mut records);
            // A servicing thread that has ended needs no buffers.
            drop(spent.push(incoming.buffer));
        }
        if over {
            return checker.stats;
        }
        std::thread::sleep(pause);
    }
}

/// Message checker for any thread.
#[derive(Debug)]
pub struct MessageChecker {
    assignment: Arc<Assignment>,
    /// Counts so far.
    pub stats: ReceptionStats,
}

impl MessageChecker {
    /// Checker with all counts zero.
    pub fn new(assignment: &Arc<Assignment>) -> Self {
        let flows = vec![FlowStats::default(); assignment.flows.len()];
        let stats = ReceptionStats { flows, ..ReceptionStats::default() };
        Self { assignment: Arc::clone(assignment), stats }
    }

    /// Checks and records a message.
    pub fn take(&mut self, incoming: &Incoming, records: &mut RecordProducer) {
        let Incoming { buffer, payload, length, at } = incoming;
        let inspected = framing::inspect(&self.assignment, buffer, *payload, *length);
        records.received(inspected.seen, *at);
        let Some(flow) = inspected.flow else {
            self.stats.unknown_flow += u64::from(inspected.crc == Crc::Ok);
            return;
        };
        let of_flow = &mut self.stats.flows[usize::from(flow)];
        if inspected.crc != Crc::Ok {
            of_flow.crc_errors += 1;
        } else if inspected.belongs_here {
            of_flow.received += 1;
            of_flow.follow(inspected.probe.sequence, inspected.probe.flags.has(ProbeFlags::WARM_UP));
        } else {
            of_flow.wrong_destination += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_swap_makes_one_gap_and_one_repeat_and_nothing_more(at in 0_u32..50) {
            let mut stats = FlowStats::default();
            let mut order: Vec<u32> = (0..60).collect();
            order.swap(at as usize, at as usize + 1);
            for sequence in order {
                stats.follow(sequence, false);
            }
            prop_assert_eq!((stats.sequence_gaps, stats.sequence_repeats), (1, 1));
        }

        #[test]
        fn phases_are_numbered_on_their_own(warm_up in 0_u32..20, measured in 0_u32..20) {
            let mut stats = FlowStats::default();
            for sequence in 0..warm_up {
                stats.follow(sequence, true);
            }
            for sequence in 0..measured {
                stats.follow(sequence, false);
            }
            prop_assert_eq!((stats.sequence_gaps, stats.sequence_repeats), (0, 0));
        }
    }
}
