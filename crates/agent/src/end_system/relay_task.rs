//! Relay task: returns messages behind the queues, like an application.

use std::sync::Arc;
use std::time::Duration;

use rtrb::{Consumer, Producer};
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::{Wake, clock};
use wg_plan::NodeIndex;
use wg_record::{Clock, Crc, DropReason, Point};

use crate::end_system::assignment::{Assignment, FlowRole};
use crate::end_system::buffer::{Buffer, Incoming, Outgoing};
use crate::end_system::framing;
use crate::end_system::relay::{RelayState, ReturningMessage, Way};
use crate::recording::record_ring::RecordProducer;

/// Longest sleep, which bounds the delay of held messages and of the end of the run.
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// The queues of the task.
pub struct RelayQueues {
    /// Messages to be returned.
    pub inbox: Consumer<Incoming>,
    /// Returned messages.
    pub outbox: Producer<Outgoing>,
    /// Buffers of discarded messages.
    pub spent: Producer<Buffer>,
    /// Record ring.
    pub records: RecordProducer,
    /// Wakes the servicing thread.
    pub wake: Arc<Wake>,
}

/// Statistics of the task.
#[derive(Debug)]
pub struct RelayTaskStats {
    /// Relay states.
    pub relays: Vec<RelayState>,
    /// Returned messages dropped because the return queue was full.
    pub refused: u64,
}

struct TaskReturnPath<'a> {
    assignment: &'a Assignment,
    epoch: Epoch,
    ends: RelayQueues,
    /// Messages for which the servicing thread's queue had no space.
    refused: u64,
}

/// Returns messages until the servicing thread closes its queue.
pub fn run(assignment: &Arc<Assignment>, epoch: Epoch, mut ends: RelayQueues) -> RelayTaskStats {
    ends.records.begin(epoch);
    let mut relays: Vec<RelayState> = assignment
        .relays
        .iter()
        .map(|task| RelayState::new(task, &assignment.flows[usize::from(task.flow)], assignment))
        .collect();
    let mut way = TaskReturnPath { assignment, epoch, ends, refused: 0 };
    loop {
        let over = way.ends.inbox.is_abandoned();
        while let Ok(incoming) = way.ends.inbox.pop() {
            way.turn_round(&mut relays, incoming);
        }
        let now = way.run_time(clock::realtime());
        for relay in &mut relays {
            if over { relay.end(&mut way) } else { relay.flush(now, &mut way) }
        }
        if over {
            return RelayTaskStats { relays, refused: way.refused };
        }
        if way.ends.inbox.is_empty() {
            std::thread::park_timeout(LONGEST_SLEEP);
        }
    }
}

impl TaskReturnPath<'_> {
    fn run_time(&self, wall: WallNanos) -> RunTime {
        // Only a grossly wrong clock exceeds the range of run time.
        self.epoch.run_time(wall).unwrap_or(RunTime::from_picos(i64::MAX))
    }

    fn turn_round(&mut self, relays: &mut [RelayState], incoming: Incoming) {
        let Incoming { buffer, payload, length, at } = incoming;
        let inspected = framing::inspect(self.assignment, &buffer, payload, length);
        self.ends.records.received(inspected.seen, at);
        let facts = inspected.flow.map(|flow| &self.assignment.flows[usize::from(flow)]);
        let relay = match facts.map(|facts| facts.role) {
            Some(FlowRole::RelayInTask(relay)) => relays.get_mut(relay),
            _ => None,
        };
        let whole = facts.is_some_and(|facts| facts.payload == inspected.payload);
        match relay {
            Some(relay) if inspected.crc == Crc::Ok && whole => {
                relay.turn(self.run_time(at.application), buffer, inspected.probe, self);
            }
            relay => {
                if let Some(relay) = relay {
                    relay.damaged += 1;
                }
                self.ends.records.push(
                    inspected.seen,
                    Point::Drop,
                    Clock::Realtime,
                    DropReason::CorruptAtRelay,
                    at.application,
                );
                drop(self.ends.spent.push(buffer));
            }
        }
    }

    fn push(&mut self, message: ReturningMessage, to: NodeIndex) {
        let facts = &self.assignment.flows[usize::from(message.flow)];
        let mut buffer = message.buffer;
        let envelope = self.assignment.returned(facts, to, message.link);
        let frame = framing::write_headers(&mut buffer, facts, &envelope, 0);
        let outgoing = Outgoing {
            // Before everything a schedule holds: at once.
            due: RunTime::from_picos(i64::MIN),
            buffer,
            frame,
            to,
            flow: message.flow,
            probe: message.probe,
            scheduled: false,
            length: facts.length,
        };
        if let Err(rtrb::PushError::Full(outgoing)) = self.ends.outbox.push(outgoing) {
            self.refused += 1;
            let seen = framing::seen(outgoing.probe, outgoing.length, Crc::Ok);
            self.ends.records.push(
                seen,
                Point::Drop,
                Clock::Realtime,
                DropReason::SendRefused,
                clock::realtime(),
            );
            drop(self.ends.spent.push(outgoing.buffer));
        }
    }
}

impl Way for TaskReturnPath<'_> {
    fn send(&mut self, message: ReturningMessage, to: NodeIndex, twice: bool) {
        if twice {
            self.push(message.clone(), to);
        }
        self.push(message, to);
        self.ends.wake.signal();
    }

    fn discard(&mut self, message: ReturningMessage) {
        let facts = &self.assignment.flows[usize::from(message.flow)];
        let flags = message.probe.flags.without(ProbeFlags::RETURN);
        let arrived = Probe { flags, flow: facts.id, ..message.probe };
        let seen = framing::seen(arrived, facts.length, Crc::Ok);
        self.ends.records.push(
            seen,
            Point::Drop,
            Clock::Realtime,
            DropReason::PlantedFault,
            clock::realtime(),
        );
        drop(self.ends.spent.push(message.buffer));
    }
}
