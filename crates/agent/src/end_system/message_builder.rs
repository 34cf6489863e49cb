//! Sender task: builds messages ahead of their due time, so that the servicing thread only sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};
use wg_frame::fill::Pattern;
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_plan::Fill;
use wg_plan::schedule::Due;

use crate::end_system::assignment::{Assignment, SendTask};
use crate::end_system::buffer::{Buffer, Outgoing};
use crate::end_system::framing;

/// Time by which messages are built ahead, ns, within the limits below.
const AHEAD: i64 = 200_000_000;
const LEAST_AHEAD: i64 = 16;
const MAX_AHEAD: i64 = 4096;

/// One sender task and its queue.
pub struct MessageBuilder {
    task: SendTask,
    outbox: Producer<Outgoing>,
    home: Consumer<Buffer>,
    next: Option<Due>,
    refill_every: i64,
}

/// The servicing thread's ends of a feed.
pub struct BuilderQueues {
    /// Messages to be sent.
    pub outbox: Consumer<Outgoing>,
    /// Return path of their buffers.
    pub home: Producer<Buffer>,
}

impl MessageBuilder {
    /// A task with all its buffers.
    pub fn new(task: SendTask) -> (Self, BuilderQueues) {
        let period = task.send.period.as_nanos_floor().max(1);
        let depth = (AHEAD / period).clamp(LEAST_AHEAD, MAX_AHEAD);
        let messages = usize::try_from(task.schedule.total()).unwrap_or(usize::MAX);
        let slots = usize::try_from(depth).unwrap_or(1).min(messages.max(1));
        let (outbox, outbox_end) = RingBuffer::new(slots);
        let (mut home_end, home) = RingBuffer::new(slots);
        for _ in 0..slots {
            // As many buffers as slots: the ring has room.
            drop(home_end.push(Buffer::new()));
        }
        let mut task = task;
        let next = task.schedule.next();
        let refill_every = (period.saturating_mul(depth) / 4).clamp(500_000, 20_000_000);
        (
            Self { task, outbox, home, next, refill_every },
            BuilderQueues { outbox: outbox_end, home: home_end },
        )
    }

    /// Builds messages while there are free buffers; false if all messages are built.
    fn refill(&mut self, assignment: &Assignment) -> bool {
        let facts = &assignment.flows[usize::from(self.task.flow)];
        while let Some(planned) = self.next {
            let Ok(mut buffer) = self.home.pop() else { return true };
            let payload = buffer.payload_mut(usize::from(facts.payload));
            let pattern = match self.task.send.fill {
                Fill::Sequential => Pattern::Sequential,
                Fill::Random => {
                    Pattern::Random { seed: assignment.seed, flow: facts.id, sequence: planned.sequence }
                }
            };
            pattern.write(payload);
            let flags = if planned.warm_up { ProbeFlags::WARM_UP } else { ProbeFlags::NONE };
            let probe = Probe { flow: facts.id, sequence: planned.sequence, flags };
            let sealed = probe::seal(payload, probe);
            debug_assert!(sealed.is_ok(), "the assignment admits only payloads that hold a header");
            let envelope = assignment.outward(facts, planned.sequence);
            let frame = framing::write_headers(&mut buffer, facts, &envelope, self.task.send.sub_link);
            let message = Outgoing {
                due: planned.at,
                buffer,
                frame,
                to: facts.first_receiver(),
                flow: self.task.flow,
                probe,
                scheduled: true,
                length: facts.length,
            };
            if self.outbox.push(message).is_err() {
                // The servicing thread has ended, so the run is over.
                return false;
            }
            self.next = self.task.schedule.next();
        }
        false
    }
}

/// Feeds all sender tasks of an access point until their schedules end or `stop` is set.
pub fn run(mut feeds: Vec<MessageBuilder>, assignment: &Arc<Assignment>, stop: &AtomicBool) {
    let pause = feeds.iter().map(|feed| feed.refill_every).min().unwrap_or(0);
    let pause = Duration::from_nanos(pause.unsigned_abs());
    while !stop.load(Ordering::Relaxed) {
        feeds.retain_mut(|feed| feed.refill(assignment));
        if feeds.is_empty() {
            break;
        }
        std::thread::sleep(pause);
    }
}
