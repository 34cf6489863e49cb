//! Drives the relay core ([`wg_core::relay`]) on the thread that returns the message.

use wg_core::Deadline;
use wg_core::relay::{Output, Relay};
use wg_frame::arinc664::VirtualLinkId;
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_plan::{FlowId, NodeIndex};

use crate::end_system::assignment::{Assignment, FlowFacts, RelayTask};
use crate::end_system::buffer::Buffer;

/// Message that a relay returns.
#[derive(Clone, Debug)]
pub struct ReturningMessage {
    /// Frame, with the "return" flag already set in its header.
    pub buffer: Buffer,
    /// Probe header.
    pub probe: Probe,
    /// Position of its flow in the flow table.
    pub flow: u16,
    /// Virtual link of the return path, if any.
    pub link: Option<VirtualLinkId>,
}

/// Destination of returned messages.
pub trait Way {
    /// Sends the message to end system `to`; twice if `twice` is set.
    fn send(&mut self, message: ReturningMessage, to: NodeIndex, twice: bool);
    /// Discards a message that a planted fault loses.
    fn discard(&mut self, message: ReturningMessage);
}

/// State of a relay task.
#[derive(Debug)]
pub struct RelayState {
    flow: u16,
    from: NodeIndex,
    payload: u16,
    /// Flow number of its answers.
    answers_as: FlowId,
    link: Option<VirtualLinkId>,
    core: Relay<ReturningMessage>,
    /// Messages received for relaying.
    pub handled: u64,
    /// Damaged messages among them, which are not returned.
    pub damaged: u64,
}

impl RelayState {
    /// State at the start of a run.
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

    /// Turns an intact message around and passes it, with any message held back for it, to `way`.
    pub fn turn(&mut self, now: RunTime, mut buffer: Buffer, probe: Probe, way: &mut impl Way) {
        self.handled += 1;
        let answer = Probe { flags: probe.flags.with(ProbeFlags::RETURN), flow: self.answers_as, ..probe };
        let payload = buffer.payload_mut(usize::from(self.payload));
        // The CRC was checked, so the header is complete and this cannot fail.
        let marked = match answer.flow == probe.flow {
            true => probe::set_flags(payload, answer.flags),
            false => probe::seal(payload, answer),
        };
        debug_assert!(marked.is_ok(), "a verified message has a header");
        let message = ReturningMessage { buffer, probe: answer, flow: self.flow, link: self.link };
        self.core.handle_message(now, probe.sequence, probe.flags.has(ProbeFlags::WARM_UP), message);
        self.carry_on(way);
    }

    /// Sends held messages whose wait for a successor has expired.
    pub fn flush(&mut self, now: RunTime, way: &mut impl Way) {
        self.core.handle_deadline(now);
        self.carry_on(way);
    }

    /// Sends all held messages at the end of the run.
    pub fn end(&mut self, way: &mut impl Way) {
        self.core.handle_end();
        self.carry_on(way);
    }

    /// Time of the next [`flush`](Self::flush).
    pub fn deadline(&self) -> Deadline {
        self.core.next_deadline()
    }

    /// Position of its flow in the flow table.
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
