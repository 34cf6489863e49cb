//! One station's medium access: what it is sending, what it hears, and whether it defers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use super::medium::{
    ATTEMPT_LIMIT, BACKOFF_LIMIT, GAP_BITS, GAP_PART1_BITS, HubDrop, Output, Rate, StationPlan,
};

/// A frame that waits or is being sent, with its time on the wire, preamble included.
#[derive(Clone, Debug)]
pub(super) struct Outgoing<F> {
    pub(super) frame: F,
    pub(super) duration: Span,
}

/// A transmission in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) transmission: u64,
    pub(super) began: RunTime,
    /// Last bit, of the frame or of the jam.
    pub(super) ends: RunTime,
    /// Whether it collided, and if so, late.
    pub(super) collision: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmitter {
    /// No frame waits.
    Idle,
    /// A frame waits for the deference to end ("frameWaiting").
    Ready,
    Sending(Sending),
    /// The driver owes a random number.
    AwaitingDraw {
        since: RunTime,
        limit: u16,
    },
    BackingOff {
        until: RunTime,
    },
}

/// The Deference process of 4.2.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deference {
    /// Not deferring, and nothing to hear.
    Quiet,
    /// Something is on the medium here, own or foreign.
    Busy { was_transmitting: bool },
    /// The gap runs; in its first part carrier restarts it, unless the station itself was transmitting.
    Gap { restartable: bool, began: RunTime, ends: RunTime },
}

/// Another station's signal as present here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    pub(super) from: usize,
    pub(super) transmission: u64,
    /// Never together with another signal, nor with the station's own.
    pub(super) clean: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Station<F> {
    pub(super) delay: Span,
    pub(super) capacity: usize,
    pub(super) queue: VecDeque<Outgoing<F>>,
    /// Transmissions begun for the frame at the head.
    pub(super) attempts: u8,
    pub(super) transmitter: Transmitter,
    pub(super) deference: Deference,
    pub(super) present: Vec<Signal>,
}

impl<F> Station<F> {
    pub(super) fn new(plan: &StationPlan) -> Self {
        Self {
            delay: plan.delay,
            capacity: plan.queue,
            queue: VecDeque::new(),
            attempts: 0,
            transmitter: Transmitter::Idle,
            deference: Deference::Quiet,
            present: Vec::new(),
        }
    }

    /// A signal begins here.
    pub(super) fn hear(&mut self, now: RunTime, rate: Rate, signal: Signal) {
        let clean = self.present.is_empty();
        for other in &mut self.present {
            other.clean = false;
        }
        self.present.push(Signal { clean, ..signal });
        let restarts = match self.deference {
            Deference::Quiet => true,
            Deference::Gap { restartable, began, .. } => {
                restartable && now < began + rate.bits(GAP_PART1_BITS)
            }
            Deference::Busy { .. } => false,
        };
        if restarts {
            self.deference = Deference::Busy { was_transmitting: false };
        }
    }

    /// A signal ends here; whether it was clean.
    pub(super) fn unhear(&mut self, transmission: u64) -> bool {
        match self.present.iter().position(|signal| signal.transmission == transmission) {
            Some(at) => self.present.swap_remove(at).clean,
            None => false,
        }
    }

    /// If nothing is on the medium here any more, the gap begins; when it ends.
    pub(super) fn silence(&mut self, now: RunTime, rate: Rate) -> Option<RunTime> {
        let sending = matches!(self.transmitter, Transmitter::Sending(_));
        let Deference::Busy { was_transmitting } = self.deference else { return None };
        if sending || !self.present.is_empty() {
            return None;
        }
        let ends = now + rate.bits(GAP_BITS);
        self.deference = Deference::Gap { restartable: !was_transmitting, began: now, ends };
        Some(ends)
    }

    /// The gap may have ended; whether the waiting frame is to start, carrier or not.
    pub(super) fn gap_ends(&mut self, now: RunTime) -> bool {
        if !matches!(self.deference, Deference::Gap { ends, .. } if ends == now) {
            return false;
        }
        let starts = self.transmitter == Transmitter::Ready;
        self.deference = if starts || self.present.is_empty() {
            Deference::Quiet
        } else {
            Deference::Busy { was_transmitting: false }
        };
        starts
    }

    /// The last bit, of frame or jam, has left.
    pub(super) fn end_transmission(
        &mut self,
        station: usize,
        at: RunTime,
        collision: Option<bool>,
    ) -> Output<F> {
        let reason = match collision {
            Some(true) => Some(HubDrop::LateCollision),
            Some(false) if self.attempts >= ATTEMPT_LIMIT => Some(HubDrop::ExcessiveCollisions),
            Some(false) => {
                let limit = 1 << self.attempts.min(BACKOFF_LIMIT);
                self.transmitter = Transmitter::AwaitingDraw { since: at, limit };
                return Output::DrawBackoff { station, at, limit };
            }
            None => None,
        };
        let head =
            self.queue.pop_front().expect("invariant: a station sends the frame at the head of its queue");
        self.attempts = 0;
        self.transmitter = if self.queue.is_empty() { Transmitter::Idle } else { Transmitter::Ready };
        match reason {
            Some(reason) => Output::Dropped { station, at, frame: head.frame, reason },
            None => Output::Sent { station, at, frame: head.frame },
        }
    }
}
