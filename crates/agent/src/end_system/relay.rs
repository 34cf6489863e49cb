//! Drives the relay core ([`wg_core::relay`]) on the thread that returns the message.

use wg_core::Deadline;
use wg_core::relay::{Output, Relay};
use wg_frame::arinc664::VirtualLinkId;
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::{FlowId, NodeIndex};

use crate::end_system::assignment::{Assignment, FlowFacts, RelayTask};
use crate::end_system::buffer::Buffer;

/// A message on its way back.
#[derive(Clone, Debug)]
pub struct ReturningMessage {
    /// The frame; its header says "return" already.
    pub buffer: Buffer,
    /// Its header.
    pub probe: Probe,
    /// Position of its flow in the table.
    pub flow: u16,
    /// The virtual link it goes back on, where it does.
    pub link: Option<VirtualLinkId>,
}

/// Where returned messages go.
pub trait Way {
    /// Sends the message to end system `to`, twice if so asked.
    fn send(&mut self, message: ReturningMessage, to: NodeIndex, twice: bool);
    /// The message ends here by a planted fault.
    fn discard(&mut self, message: ReturningMessage);
}

/// A relay task in progress.
#[derive(Debug)]
pub struct RelayState {
    flow: u16,
    from: NodeIndex,
    payload: u16,
    /// The number that its answers carry.
    answers_as: FlowId,
    link: Option<VirtualLinkId>,
    core: Relay<ReturningMessage>,
    /// Messages that came to be relayed.
    pub handled: u64,
    /// Of these, damaged ones, which are not sent on.
    pub damaged: u64,
}

impl RelayState {
    /// At the start of a run.
    pub fn new(task: &RelayTask, facts: &FlowFacts, assignment: &Assignment) -> Self {
        let period = Span::from_picos(facts.period_ns.saturating_mul(1_000));
        Self {
            flow: task.flow,
            from: facts.from,
            payload: facts.payload,
            answers_as: task.relay.answers_as(),
            link: task.relay.vl.map(VirtualLinkId),
            core: Relay::new(task.relay.planted(), period, assignment.drain),
            handled: 0,
            damaged: 0,
        }
    }

    /// Turns an intact message round and hands it, and whatever waited for it, to `way`.
    pub fn turn(&mut self, now: RunTime, mut buffer: Buffer, probe: Probe, way: &mut impl Way) {
        self.handled += 1;
        let answer = Probe { flags: probe.flags.with(ProbeFlags::RETURN), flow: self.answers_as, ..probe };
        let payload = buffer.payload_mut(usize::from(self.payload));
        // The CRC was verified, so the header is whole and this cannot fail.
        let marked = match answer.flow == probe.flow {
            true => probe::set_flags(payload, answer.flags),
            false => probe::seal(payload, answer),
        };
        debug_assert!(marked.is_ok(), "a verified message has a header");
        let message = ReturningMessage { buffer, probe: answer, flow: self.flow, link: self.link };
        self.core.handle_message(now, probe.sequence, probe.flags.has(ProbeFlags::WARM_UP), message);
        self.carry_on(way);
    }

    /// Sends what has waited long enough for a successor.
    pub fn flush(&mut self, now: RunTime, way: &mut impl Way) {
        self.core.handle_deadline(now);
        self.carry_on(way);
    }

    /// The run is over: sends everything that still waits.
    pub fn end(&mut self, way: &mut impl Way) {
        self.core.handle_end();
        self.carry_on(way);
    }

    /// When [`flush`](Self::flush) will have something to do.
    pub fn deadline(&self) -> Deadline {
        self.core.next_deadline()
    }

    /// Position of its flow in the table.
    pub fn flow(&self) -> u16 {
        self.flow
    }

    fn carry_on(&mut self, way: &mut impl Way) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Return(message) => way.send(message, self.from, false),
                Output::Twice(message) => way.send(message, self.from, true),
                Output::Misdirect(message, to) => way.send(message, to, false),
                Output::Drop(message) => way.discard(message),
                Output::Corrupt(mut message) => {
                    if let Some(last) = message.buffer.payload_mut(usize::from(self.payload)).last_mut() {
                        *last ^= 1;
                    }
                    way.send(message, self.from, false);
                }
            }
        }
    }
}
