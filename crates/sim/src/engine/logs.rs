//! Remote logging: records of messages, sent over the network under test.

use wg_core::Deadline;
use wg_frame::time::{RunTime, Span};

use super::Engine;
use crate::event_queue::Class;
use crate::sink::Sink;

impl<S: Sink> Engine<'_, S> {
    /// Plans the log entry for a message that the application of a host sends or receives at `at`.
    #[cold]
    pub(super) fn plan_log(&mut self, number: usize, at: RunTime) {
        let log = &mut self.world.logs[number];
        let place = log.due.partition_point(|due| *due <= at);
        log.due.insert(place, at);
        let first = log.due.front().copied();
        self.queue.set(Class::Log, number, first.into());
    }

    /// Writes a record; a frame full of records is sent like any message, through the stack and the interface.
    pub(super) fn log(&mut self, number: usize) {
        let log = &mut self.world.logs[number];
        log.due.pop_front();
        let next = log.due.front().copied();
        log.logged += 1;
        let (host, frame, is_full) = (log.host, log.frame, log.logged.is_multiple_of(u64::from(log.records)));
        self.queue.set(Class::Log, number, next.map_or(Deadline::NEVER, Deadline::at));
        if !is_full {
            return;
        }
        let more = self.queue.has_input_at(self.now);
        let sent = self.world.hosts[host].core.handle_send(self.now, frame, Span::ZERO, more).is_ok();
        self.world.logs[number].sent += u64::from(sent);
        self.drain_host(host);
    }
}
