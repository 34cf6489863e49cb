//! Carrying out what [`crate::relay`] decides, on whichever thread the message is turned round.

use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_plan::NodeIndex;

use crate::assignment::{Assignment, FlowFacts, RelayTask};
use crate::buffer::Buffer;
use crate::relay::{Faults, Held, Treatment};

/// A message on the point of going back.
#[derive(Debug)]
pub struct Turned {
    /// The frame; its header says "return" already.
    pub buffer: Buffer,
    /// Its header.
    pub probe: Probe,
    /// Position of its flow in the table.
    pub flow: u16,
}

/// Where turned messages go.
pub trait Way {
    /// Sends the message to end system `to`, twice if so asked.
    fn send(&mut self, message: Turned, to: NodeIndex, twice: bool);
    /// The message ends here by a planted fault.
    fn discard(&mut self, message: Turned);
}

/// A relay task at work.
#[derive(Debug)]
pub struct RelayState {
    flow: u16,
    from: NodeIndex,
    payload: u16,
    faults: Faults,
    held: Held<Turned>,
    /// Messages that came to be relayed.
    pub handled: u64,
    /// Of these, damaged ones, which are not sent on.
    pub damaged: u64,
}

impl RelayState {
    /// At the start of a run.
    pub fn new(task: &RelayTask, facts: &FlowFacts, assignment: &Assignment) -> Self {
        // Half the drain at most, or a swapped last message would not get home within the run.
        let half_drain = assignment.drain.as_nanos_floor() / 2;
        Self {
            flow: task.flow,
            from: facts.from,
            payload: facts.payload,
            faults: Faults::new(&task.relay.faults),
            held: Held::new(facts.period_ns, half_drain.clamp(0, 100_000_000)),
            handled: 0,
            damaged: 0,
        }
    }

    /// Turns an intact message round and hands it, and whatever waited for it, to `way`. `now` in ns.
    pub fn turn(&mut self, now: i64, mut buffer: Buffer, probe: Probe, way: &mut impl Way) {
        self.handled += 1;
        let flags = probe.flags.with(ProbeFlags::RETURN);
        let payload = buffer.payload_mut(usize::from(self.payload));
        // The CRC was verified, so the header is whole and this cannot fail.
        let marked = probe::set_flags(payload, flags);
        debug_assert!(marked.is_ok(), "a verified message has a header");
        let treatment = self.faults.treatment(probe.sequence, probe.flags.has(ProbeFlags::WARM_UP));
        if treatment == Treatment::Corrupt
            && let Some(last) = payload.last_mut()
        {
            *last ^= 1;
        }
        let message = Turned { buffer, probe: Probe { flags, ..probe }, flow: self.flow };
        match treatment {
            Treatment::Drop => way.discard(message),
            Treatment::Corrupt => way.send(message, self.from, false),
            Treatment::Misdirect(to) => way.send(message, to, false),
            Treatment::Swap => {
                if let Err(message) = self.held.hold(now, probe.sequence, message) {
                    way.send(message, self.from, false);
                }
            }
            Treatment::Return | Treatment::Twice => {
                way.send(message, self.from, treatment == Treatment::Twice);
                if !probe.flags.has(ProbeFlags::WARM_UP) {
                    while let Some(waiting) = self.held.released_by(probe.sequence) {
                        way.send(waiting, self.from, false);
                    }
                }
            }
        }
    }

    /// Sends what has waited long enough for a successor; everything with `now` of `i64::MAX`.
    pub fn flush(&mut self, now: i64, way: &mut impl Way) {
        while let Some(waiting) = self.held.expired(now) {
            way.send(waiting, self.from, false);
        }
    }

    /// When [`flush`](Self::flush) will have something to do; `i64::MAX`: never.
    pub fn deadline(&self) -> i64 {
        self.held.deadline()
    }

    /// Position of its flow in the table.
    pub fn flow(&self) -> u16 {
        self.flow
    }
}
