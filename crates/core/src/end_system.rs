//! The end system as a host: what lies between an application and the wire.
//!
//! ```text
//! application ── transmit lane ──▶ egress queue ── driver ──▶ wire
//! application ◀── receive lane ◀── ring ◀── interrupt ◀────── wire
//! ```
//!
//! Each lane is a thread that does one thing at a time. Handing a message down costs a fixed time and a time per
//! byte; then the frame joins the egress queue, and the driver takes it when the line is free. A received
//! frame lies in the ring until the receive lane has handed it to the application; the interrupt that wakes the
//! lane comes for each frame, for several, or by polling. A lane that sleeps must first be woken, which takes as
//! long as the scheduler pleases: the core owns no random source, so that time comes with the input.
//!
//! Two lanes were chosen over one processor because a servicing thread that spins on both directions is
//! closer to that than to strict alternation, and because latency then does not depend on a guess about scheduling.

use alloc::collections::VecDeque;

use wg_frame::time::{RunTime, Span};

use crate::deadline::Deadline;
use crate::frame::Frame;
use crate::line::LineRate;
use crate::port::{Egress, EgressPort, Gate, PortConfig, Transmission};
use crate::queue::{Fill, Full, Limit, SharedBuffer};

/// What handing a frame over costs a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// For any frame.
    pub fixed: Span,
    /// For each byte, destination address to FCS.
    pub per_byte: Span,
}

impl Cost {
    /// The cost of a frame of `length` bytes.
    pub fn of(self, length: u16) -> Span {
        Span::from_picos(self.fixed.as_picos() + self.per_byte.as_picos() * i64::from(length))
    }
}

/// When the interface tells the host of frames in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// As soon as one is there.
    EachFrame,
    /// When so many are there, or when the first has waited so long.
    Coalesced {
        /// Frames that raise it at once; at least 1.
        frames: u32,
        /// Longest wait of the first.
        wait: Span,
    },
    /// At the multiples of a period, counted from the epoch.
    Polled {
        /// Longer than 0.
        period: Span,
    },
}

/// What a host is built from.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// From the application's call to the frame in the egress queue.
    pub transmit: Cost,
    /// From the lane's first look at a frame to the application's possession of it.
    pub receive: Cost,
    /// Messages the transmit lane may have in hand.
    pub backlog: u32,
    /// Frames the receive ring holds.
    pub ring: u32,
    /// When the ring is looked at.
    pub interrupts: Interrupts,
    /// From the interrupt, or the poll, to the driver's look at the ring.
    pub interrupt_latency: Span,
    /// The egress queue and its line.
    pub port: PortConfig,
}

/// The instants at which a message was handed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// The application calls.
    pub application: RunTime,
    /// The frame joins the egress queue.
    pub queued: RunTime,
}

/// What a host wants done or noticed.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// The driver takes the frame and the transmission begins. The driver of this core owes
    /// [`Host::handle_line_free`].
    Transmit {
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// The egress queue had no room for a frame.
    Refused {
        /// The frame.
        frame: Frame,
        /// What was full.
        full: Full,
    },
    /// The application gets a frame. The instants may lie ahead: they are certain, and acting on them before
    /// they come would be too early.
    Deliver {
        /// The frame.
        frame: Frame,
        /// The driver saw it.
        driver: RunTime,
        /// The application has it.
        application: RunTime,
    },
    /// The ring had no room for a frame.
    Overrun {
        /// The frame.
        frame: Frame,
    },
}

/// A host.
#[derive(Debug)]
pub struct Host<G> {
    config: HostConfig,
    port: EgressPort<G>,
    shared: SharedBuffer,
    /// Handed down, but not yet in the queue; ordered, because the lane is one thread.
    handed: VecDeque<(RunTime, Frame)>,
    transmit_free: RunTime,
    /// In the ring, not yet noticed, with the time the lane would take to wake.
    unnoticed: VecDeque<(Frame, Span)>,
    interrupt_at: Deadline,
    /// When the frames in the ring that were noticed leave it; ascending.
    leaving: VecDeque<RunTime>,
    receive_free: RunTime,
    outputs: VecDeque<Output>,
}

impl<G: Gate> Host<G> {
    /// An idle host.
    pub fn new(config: HostConfig, gate: G) -> Self {
        let beginning = RunTime::from_picos(i64::MIN);
        Self {
            config,
            port: EgressPort::new(config.port, gate),
            shared: SharedBuffer::new(Limit { bytes: u64::MAX, frames: u32::MAX }),
            handed: VecDeque::new(),
            transmit_free: beginning,
            unnoticed: VecDeque::new(),
            interrupt_at: Deadline::Never,
            leaving: VecDeque::new(),
            receive_free: beginning,
            outputs: VecDeque::new(),
        }
    }

    /// The application wants `frame` sent. It calls now if the transmit lane is at work, after `wake_up` if the
    /// lane sleeps, and after what the lane has in hand.
    ///
    /// # Errors
    /// The lane has as many messages in hand as it may; the frame is not taken.
    pub fn handle_send(&mut self, now: RunTime, frame: Frame, wake_up: Span) -> Result<Handed, Full> {
        if self.handed.len() >= self.config.backlog as usize {
            return Err(Full::Queue);
        }
        let application = if self.transmit_free > now { self.transmit_free } else { now + wake_up };
        let queued = application + self.config.transmit.of(frame.length);
        self.transmit_free = queued;
        if queued <= now && self.handed.is_empty() {
            self.enqueue(now, frame);
        } else {
            self.handed.push_back((queued, frame));
        }
        Ok(Handed { application, queued })
    }

    /// A frame made past the application, by a generator that costs the host nothing.
    pub fn handle_generated(&mut self, now: RunTime, frame: Frame) {
        self.enqueue(now, frame);
    }

    /// The last bit of `frame` came in at `now`; the receive lane, if it sleeps, takes `wake_up` to wake.
    pub fn handle_frame(&mut self, now: RunTime, frame: Frame, wake_up: Span) {
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() + self.unnoticed.len() >= self.config.ring as usize {
            self.outputs.push_back(Output::Overrun { frame });
            return;
        }
        match self.config.interrupts {
            Interrupts::EachFrame => self.notice(now, frame, wake_up),
            Interrupts::Coalesced { frames, wait } => {
                self.unnoticed.push_back((frame, wake_up));
                if self.unnoticed.len() >= frames as usize {
                    self.interrupt(now);
                } else if self.unnoticed.len() == 1 {
                    self.interrupt_at = Deadline::At(now + wait);
                }
            }
            Interrupts::Polled { period } => {
                self.unnoticed.push_back((frame, wake_up));
                if self.unnoticed.len() == 1 {
                    let into = now.as_picos().rem_euclid(period.as_picos());
                    let rest = if into == 0 { 0 } else { period.as_picos() - into };
                    self.interrupt_at = Deadline::At(now + Span::from_picos(rest));
                }
            }
        }
    }

    /// Does what is due at `now`: messages handed down join the queue, a free line takes the next frame, a due
    /// interrupt looks at the ring. Early calls do nothing; a late call acts as of `now`.
    pub fn handle_deadline(&mut self, now: RunTime) {
        while let Some(&(at, frame)) = self.handed.front()
            && at <= now
        {
            self.handed.pop_front();
            self.enqueue(now, frame);
        }
        if let Some((frame, transmission)) = self.port.begin_next(now, &mut self.shared) {
            self.outputs.push_back(Output::Transmit { frame, transmission });
        }
        if self.interrupt_at.is_due(now) {
            self.interrupt(now);
        }
    }

    /// The line is free from `free_at` on: the answer to [`Output::Transmit`].
    pub fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime) {
        self.port.handle_line_free(transmission, free_at);
    }

    /// The next effect; `None` when all were taken.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`handle_deadline`](Self::handle_deadline) will have something to do.
    #[inline]
    pub fn next_deadline(&self) -> Deadline {
        let handed = self.handed.front().map_or(Deadline::Never, |&(at, _)| Deadline::At(at));
        handed.min(self.port.next_deadline()).min(self.interrupt_at)
    }

    /// The line.
    pub fn line(&self) -> LineRate {
        self.port.line()
    }

    /// What waits in the egress queue.
    pub fn fill(&self) -> Fill {
        self.port.fill()
    }

    /// Messages between application and egress queue, and frames in the ring that nobody has noticed.
    pub fn in_hand(&self) -> (usize, usize) {
        (self.handed.len(), self.unnoticed.len())
    }

    fn enqueue(&mut self, now: RunTime, frame: Frame) {
        match self.port.offer(now, frame, &mut self.shared) {
            Ok(Some(transmission)) => self.outputs.push_back(Output::Transmit { frame, transmission }),
            Ok(None) => {}
            Err(full) => self.outputs.push_back(Output::Refused { frame, full }),
        }
    }

    fn interrupt(&mut self, now: RunTime) {
        self.interrupt_at = Deadline::Never;
        while let Some((frame, wake_up)) = self.unnoticed.pop_front() {
            self.notice(now, frame, wake_up);
        }
    }

    fn notice(&mut self, now: RunTime, frame: Frame, wake_up: Span) {
        let driver = now + self.config.interrupt_latency;
        let begun = if self.receive_free > driver { self.receive_free } else { driver + wake_up };
        let application = begun + self.config.receive.of(frame.length);
        self.receive_free = application;
        self.leaving.push_back(application);
        self.outputs.push_back(Output::Deliver { frame, driver, application });
    }
}
