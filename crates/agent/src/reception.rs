//! The receiver task: judges what the servicing thread received, and the watch for what should not have come.

use std::sync::Arc;
use std::time::Duration;

use rtrb::{Consumer, Producer};
use wg_frame::probe::ProbeFlags;
use wg_record::Crc;

use crate::assignment::Assignment;
use crate::buffer::{Buffer, Incoming};
use crate::log::Log;
use crate::wire;

/// Pause between looks into the queue: the servicing thread must never pay for a wake-up.
const PAUSE: Duration = Duration::from_millis(1);

/// What came of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowFigures {
    /// Intact messages that belong here.
    pub received: u64,
    /// Damaged messages.
    pub crc_errors: u64,
    /// Intact messages for another end system.
    pub wrong_destination: u64,
    /// Jumps forward in the sequence.
    pub sequence_gaps: u64,
    /// Numbers not above the one before.
    pub sequence_repeats: u64,
    next: [Option<u32>; 2],
}

impl FlowFigures {
    /// Adds what another receiver task counted.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.crc_errors += other.crc_errors;
        self.wrong_destination += other.wrong_destination;
        self.sequence_gaps += other.sequence_gaps;
        self.sequence_repeats += other.sequence_repeats;
    }

    /// Takes the number of an intact message; warm-up messages are numbered on their own.
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

/// What came at all.
#[derive(Clone, Debug, Default)]
pub struct ReceptionFigures {
    /// By position in the flow table.
    pub flows: Vec<FlowFigures>,
    /// Intact messages of no flow of this run.
    pub unknown_flow: u64,
}

/// Judges and records until the servicing thread has gone and its queue is empty.
pub fn run(
    assignment: &Arc<Assignment>,
    mut inbox: Consumer<Incoming>,
    mut spent: Producer<Buffer>,
    mut log: Log,
) -> ReceptionFigures {
    let mut figures = ReceptionFigures {
        flows: vec![FlowFigures::default(); assignment.flows.len()],
        ..ReceptionFigures::default()
    };
    loop {
        // Asked first: what was pushed before the producer went is then still found.
        let over = inbox.is_abandoned();
        while let Ok(incoming) = inbox.pop() {
            judge(assignment, &incoming, &mut log, &mut figures);
            // A servicing thread that has gone needs no buffers.
            drop(spent.push(incoming.buffer));
        }
        if over {
            return figures;
        }
        std::thread::sleep(PAUSE);
    }
}

fn judge(assignment: &Assignment, incoming: &Incoming, log: &mut Log, figures: &mut ReceptionFigures) {
    let inspected = wire::inspect(assignment, &incoming.buffer, incoming.payload, incoming.length);
    log.received(inspected.seen, incoming.at);
    let Some(flow) = inspected.flow else {
        figures.unknown_flow += u64::from(inspected.crc == Crc::Ok);
        return;
    };
    let of_flow = &mut figures.flows[usize::from(flow)];
    if inspected.crc != Crc::Ok {
        of_flow.crc_errors += 1;
    } else if inspected.at_home {
        of_flow.received += 1;
        of_flow.follow(inspected.probe.sequence, inspected.probe.flags.has(ProbeFlags::WARM_UP));
    } else {
        of_flow.wrong_destination += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_swap_makes_one_gap_and_one_repeat_and_nothing_more(at in 0_u32..50) {
            let mut figures = FlowFigures::default();
            let mut order: Vec<u32> = (0..60).collect();
            order.swap(at as usize, at as usize + 1);
            for sequence in order {
                figures.follow(sequence, false);
            }
            prop_assert_eq!((figures.sequence_gaps, figures.sequence_repeats), (1, 1));
        }

        #[test]
        fn phases_are_numbered_on_their_own(warm_up in 0_u32..20, measured in 0_u32..20) {
            let mut figures = FlowFigures::default();
            for sequence in 0..warm_up {
                figures.follow(sequence, true);
            }
            for sequence in 0..measured {
                figures.follow(sequence, false);
            }
            prop_assert_eq!((figures.sequence_gaps, figures.sequence_repeats), (0, 0));
        }
    }
}
