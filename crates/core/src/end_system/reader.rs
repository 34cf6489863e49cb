//! Sequential reading of an interface's frames.
//!
//! ```text
//! wire ── byte FIFO ── slots ──┐
//! wire ── byte FIFO ── slots ──┼── reader ──▶ application, or receive lane
//! wire ── byte FIFO ── slots ──┘
//! ```
//!
//! For hosts whose order of frames cannot be computed on arrival: because classes have separate buffers, because the
//! processor reads the card word by word, or because a reader at work also takes frames that arrive meanwhile. A frame
//! is accepted if all of it fits into the FIFO of its buffer (or, without FIFO, if a slot is free); the FIFO passes
//! frames on in order as slots become free. A slot is free when its frame has been read. The reader reads one frame at
//! a time without preemption, time-triggered before rate-constrained before best-effort where they have separate
//! buffers. Interrupts wake it; then it reads until no slot holds a frame.
//!
//! Reads end and slots become free before the frames of an instant are taken; the reader chooses its next frame in
//! [`handle_deadline`](Reader::handle_deadline), behind them.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use super::config::{HostConfig, ReceiveBuffer};
use super::moderation::Moderation;
use crate::cause::Cause;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};

/// A frame that waits to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) port: u8,
    pub(super) frame: Frame,
    came: RunTime,
    wake_up: Span,
}

/// A frame that is read, with the instants of its delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) port: u8,
    pub(super) frame: Frame,
    pub(super) driver: RunTime,
    pub(super) application: RunTime,
}

#[derive(Debug)]
struct Buffer {
    size: ReceiveBuffer,
    fifo: VecDeque<Waiting>,
    fifo_bytes: u32,
    /// Frames in the slots. The first is being read if the reader is at this buffer.
    slots: VecDeque<Waiting>,
}

impl Buffer {
    fn take(&mut self, waiting: Waiting) -> Result<(), Cause> {
        let Some(limit) = self.size.fifo_bytes else {
            if self.slots.len() >= self.size.slots as usize {
                return Err(Cause::Overrun);
            }
            self.slots.push_back(waiting);
            return Ok(());
        };
        let bytes = self.fifo_bytes + u32::from(waiting.frame.length);
        if bytes > limit {
            return Err(Cause::FifoOverrun);
        }
        self.fifo_bytes = bytes;
        self.fifo.push_back(waiting);
        self.hand_on();
        Ok(())
    }

    fn hand_on(&mut self) {
        while self.slots.len() < self.size.slots as usize
            && let Some(first) = self.fifo.pop_front()
        {
            self.fifo_bytes -= u32::from(first.frame.length);
            self.slots.push_back(first);
        }
    }
}

/// State of the reader.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No slot holds a frame.
    Idle,
    /// An interrupt is due at `at`; the first frame came at `first`.
    Interrupt { at: RunTime, first: RunTime },
    /// Interrupted; begins to read at this instant.
    Begins(RunTime),
    /// Reads a frame until this instant.
    Reads(RunTime),
    /// Has read a frame, and chooses the next at this instant.
    Chooses(RunTime),
}

/// The buffers of an interface and their reader.
#[derive(Debug)]
pub(super) struct Reader {
    /// Host configuration. Without `card_read`, frames are in memory already, and reading one means handing it to the
    /// application.
    config: Arc<HostConfig>,
    moderation: Moderation,
    /// One buffer for all frames, or one for each class: time-triggered, rate-constrained, best-effort.
    buffers: Vec<Buffer>,
    phase: Phase,
    /// Buffer whose first slot is being read.
    reading: usize,
    /// Instant at which the driver looked at the slots in this turn.
    looked: RunTime,
    /// Wake-up time of the thread, given with the frame that wakes it.
    wake_up: Span,
    /// Frames and bytes of this turn.
    turn: (u64, u64),
    /// Instant from which the receive lane is free, for frames read from the card and for those that bypassed the
    /// interface.
    lane_free: RunTime,
}

impl Reader {
    /// The reader of a host; `None` for a host that needs none.
    pub(super) fn of(config: &Arc<HostConfig>) -> Option<Self> {
        let needed =
            config.card_read.is_some() || config.buffers.is_some() || config.interrupts.keeps_reading();
        needed.then(|| {
            let all = [ReceiveBuffer { slots: config.ring, fifo_bytes: None }];
            let sizes = config.buffers.as_ref().map_or(&all[..], |own| &own[..]);
            let buffer = |&size: &ReceiveBuffer| Buffer {
                size,
                fifo: VecDeque::new(),
                fifo_bytes: 0,
                slots: VecDeque::new(),
            };
            let beginning = RunTime::from_picos(i64::MIN);
            Self {
                config: config.clone(),
                moderation: Moderation::new(config.interrupts),
                buffers: sizes.iter().map(buffer).collect(),
                phase: Phase::Idle,
                reading: 0,
                looked: beginning,
                wake_up: Span::ZERO,
                turn: (0, 0),
                lane_free: beginning,
            }
        })
    }

    /// A frame arrives.
    pub(super) fn handle_frame(
        &mut self,
        now: RunTime,
        port: u8,
        frame: Frame,
        wake_up: Span,
    ) -> Result<(), Cause> {
        self.end_read(now);
        let buffer = match (self.buffers.len(), frame.class) {
            (1, _) | (_, TrafficClass::TimeTriggered) => 0,
            (_, TrafficClass::RateConstrained) => 1,
            (_, TrafficClass::BestEffort) => 2,
        };
        self.buffers[buffer].take(Waiting { port, frame, came: now, wake_up })?;
        let first = match self.phase {
            Phase::Idle => {
                self.wake_up = wake_up;
                now
            }
            Phase::Interrupt { first, .. } => first,
            Phase::Begins(_) | Phase::Reads(_) | Phase::Chooses(_) => return Ok(()),
        };
        let at = self.moderation.instant(first, now, self.waiting());
        self.phase = Phase::Interrupt { at, first };
        if at <= now {
            self.interrupt(now);
        }
        Ok(())
    }

    /// Does what is due at `now`, and hands over the frames it begins to read.
    pub(super) fn handle_deadline(&mut self, now: RunTime, mut hand_over: impl FnMut(Read)) {
        loop {
            match self.phase {
                Phase::Interrupt { at, .. } if at <= now => self.interrupt(now),
                Phase::Begins(at) | Phase::Chooses(at) if at <= now => self.choose(now, &mut hand_over),
                Phase::Reads(until) if until <= now => self.end_read(now),
                _ => return,
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Deadline {
        match self.phase {
            Phase::Idle => Deadline::NEVER,
            Phase::Interrupt { at, .. } | Phase::Begins(at) | Phase::Reads(at) | Phase::Chooses(at) => {
                Deadline::at(at)
            }
        }
    }

    /// The instant from which the receive lane is free, for frames that bypass the interface.
    pub(super) fn lane_free(&mut self) -> &mut RunTime {
        &mut self.lane_free
    }

    /// The host restarts: frames not yet begun are dropped; the one being read was handed over already.
    pub(super) fn handle_restart(&mut self, now: RunTime, mut gone: impl FnMut(Waiting)) {
        if matches!(self.phase, Phase::Reads(_)) {
            self.buffers[self.reading].slots.pop_front();
        }
        for buffer in &mut self.buffers {
            buffer.slots.drain(..).chain(buffer.fifo.drain(..)).for_each(&mut gone);
            buffer.fifo_bytes = 0;
        }
        self.moderation.restart();
        (self.phase, self.turn, self.lane_free) = (Phase::Idle, (0, 0), now);
    }

    /// Number of frames not yet begun.
    pub(super) fn waiting(&self) -> usize {
        let held: usize = self.buffers.iter().map(|buffer| buffer.slots.len() + buffer.fifo.len()).sum();
        held - usize::from(matches!(self.phase, Phase::Reads(_)))
    }

    fn interrupt(&mut self, now: RunTime) {
        self.moderation.interrupted(now);
        self.looked = now + self.config.interrupt_latency;
        // The processor that reads a card does so as it is interrupted; a thread has to be woken first.
        let wake_up = if self.config.card_read.is_some() { Span::ZERO } else { self.wake_up };
        self.phase = Phase::Begins(self.looked + wake_up);
    }

    fn end_read(&mut self, now: RunTime) {
        if let Phase::Reads(until) = self.phase
            && until <= now
        {
            let buffer = &mut self.buffers[self.reading];
            buffer.slots.pop_front();
            buffer.hand_on();
            self.phase = Phase::Chooses(now);
        }
    }

    fn choose(&mut self, now: RunTime, hand_over: &mut impl FnMut(Read)) {
        let next = self.buffers.iter().position(|buffer| !buffer.slots.is_empty());
        let Some((at, waiting)) = next.and_then(|at| Some((at, *self.buffers[at].slots.front()?))) else {
            self.moderation.turn_ended(self.turn.0, self.turn.1);
            (self.phase, self.turn) = (Phase::Idle, (0, 0));
            return;
        };
        let Waiting { port, frame, came, wake_up } = waiting;
        self.reading = at;
        self.turn = (self.turn.0 + 1, self.turn.1 + u64::from(frame.length));
        let (card, receive) = (self.config.card_read, self.config.receive_of(&frame));
        let until = now + card.map_or(receive, |card| card.of(frame.length));
        let (driver, application) = match card {
            None => (self.looked.max(came), until),
            Some(_) => {
                let begun = if self.lane_free > until { self.lane_free } else { until + wake_up };
                self.lane_free = begun + receive;
                (until, self.lane_free)
            }
        };
        self.phase = Phase::Reads(until);
        hand_over(Read { port, frame, driver, application });
    }
}
