//! The egress port: strict priority, one transmission at a time, a gate in front of every queue.
//!
//! A port begins a transmission the instant it may: when a frame comes and the line is free, or when the line
//! becomes free and a frame waits. Of the frames that may go it takes the first of the most urgent queue (IEEE
//! Std 802.1Q-2022, 8.6.8.1). A frame on the wire is never taken back.
//!
//! The end of a transmission is the driver's to tell, because only it knows the line: it owes an answer to every
//! [`Transmission`]. A simulator knows the end beforehand and answers at once; a live driver answers when the
//! interface reports it. Until then the port is silent.

use wg_frame::time::{RunTime, Span};

use crate::deadline::Deadline;
use crate::frame::Frame;
use crate::line::LineRate;
use crate::queue::{Fill, Full, Limit, QUEUES, Queues, SharedBuffer};

/// What a gate says about the first frame of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may begin now.
    Now,
    /// Not before this instant, which must be later than the one asked about; ask again then.
    NotBefore(RunTime),
    /// Not until something else changes.
    Never,
}

/// Who may transmit when: the place of time-aware gates, shapers and time-triggered windows.
pub trait Gate {
    /// Whether `frame`, first of queue `queue`, may begin at `now` if it occupies the line for `occupation`.
    fn admission(&self, now: RunTime, queue: usize, frame: &Frame, occupation: Span) -> Admission;
}

/// No gate: every queue may transmit at any time.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysOpen;

impl Gate for AlwaysOpen {
    fn admission(&self, _now: RunTime, _queue: usize, _frame: &Frame, _occupation: Span) -> Admission {
        Admission::Now
    }
}

/// What a port is built from.
#[derive(Clone, Copy, Debug)]
pub struct PortConfig {
    /// The line it feeds.
    pub line: LineRate,
    /// Limit of each queue.
    pub queue_limits: [Limit; QUEUES],
    /// Limit of all queues together.
    pub limit: Limit,
    /// Queue of each priority (IEEE Std 802.1Q-2022, table 8-5); all alike makes one first-in first-out queue.
    pub queue_of_priority: [u8; QUEUES],
}

impl PortConfig {
    /// One queue of its own for every priority, each as large as the port.
    pub const fn strict_priority(line: LineRate, limit: Limit) -> Self {
        Self { line, queue_limits: [limit; QUEUES], limit, queue_of_priority: [0, 1, 2, 3, 4, 5, 6, 7] }
    }
    /// One queue for everything.
    pub const fn first_in_first_out(line: LineRate, limit: Limit) -> Self {
        Self { line, queue_limits: [limit; QUEUES], limit, queue_of_priority: [0; QUEUES] }
    }
}

/// The duty to say when a transmission that was begun leaves the line free: hand it to
/// [`EgressPort::handle_line_free`]. It cannot be copied, so no transmission is answered twice.
#[must_use = "a port stays silent until its transmission is answered"]
#[derive(Debug, PartialEq, Eq)]
pub struct Transmission(());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Free from this instant on.
    FreeAt(RunTime),
    /// A transmission has begun and not been answered.
    Taken,
}

/// An egress port.
#[derive(Clone, Debug)]
pub struct EgressPort<G> {
    config: PortConfig,
    queues: Queues,
    line: Line,
    /// The latest instant a call was made for: what gates were asked about before is past.
    seen: RunTime,
    gate: G,
}

impl<G: Gate> EgressPort<G> {
    /// A port with empty queues and a free line.
    pub fn new(config: PortConfig, gate: G) -> Self {
        let queues = Queues::new(config.queue_limits, config.limit);
        let beginning = RunTime::from_picos(i64::MIN);
        Self { config, queues, line: Line::FreeAt(beginning), seen: beginning, gate }
    }

    /// A frame to send. `Ok(Some(…))`: its transmission begins at `now`, without waiting. `Ok(None)`: it waits.
    ///
    /// At the instant the line becomes free a port in which nothing waits takes the frame at once; where frames
    /// wait it lines up with them, and [`handle_deadline`](Self::handle_deadline) decides.
    ///
    /// # Errors
    /// What is full; the frame is not taken.
    #[inline]
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        frame: Frame,
        shared: &mut SharedBuffer,
    ) -> Result<Option<Transmission>, Full> {
        self.seen = now;
        let queue = self.queue_of(&frame);
        if self.is_idle(now) && self.admits(now, queue, &frame) == Admission::Now {
            self.line = Line::Taken;
            return Ok(Some(Transmission(())));
        }
        self.queues.push(queue, frame, shared).map(|()| None)
    }

    /// Begins the next transmission if one may begin at `now`. Early calls do nothing; a late call begins at
    /// `now`, not at the deadline.
    pub fn handle_deadline(
        &mut self,
        now: RunTime,
        shared: &mut SharedBuffer,
    ) -> Option<(Frame, Transmission)> {
        self.seen = now;
        let Line::FreeAt(at) = self.line else { return None };
        if at > now {
            return None;
        }
        let queue = self.queues.occupied().find(|&queue| {
            self.queues.head(queue).is_some_and(|frame| self.admits(now, queue, frame) == Admission::Now)
        })?;
        let frame = self.queues.pop(queue, shared)?;
        self.line = Line::Taken;
        Some((frame, Transmission(())))
    }

    /// The answer to a transmission: the line is free from `free_at` on.
    pub fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime) {
        let Transmission(()) = transmission;
        self.line = Line::FreeAt(free_at);
    }

    /// When [`handle_deadline`](Self::handle_deadline) may have something to begin.
    pub fn next_deadline(&self) -> Deadline {
        let Line::FreeAt(free_at) = self.line else { return Deadline::Never };
        if self.queues.is_empty() {
            return Deadline::Never;
        }
        let from = free_at.max(self.seen);
        let admissions = self.queues.occupied().filter_map(|queue| {
            let frame = self.queues.head(queue)?;
            match self.admits(from, queue, frame) {
                Admission::Now => Some(from),
                Admission::NotBefore(at) => Some(at.max(from)),
                Admission::Never => None,
            }
        });
        admissions.min().into()
    }

    /// Whether a frame that comes at `now` finds the line free and nobody waiting.
    pub fn is_idle(&self, now: RunTime) -> bool {
        matches!(self.line, Line::FreeAt(at) if at <= now) && self.queues.is_empty()
    }

    /// The line it feeds.
    pub const fn line(&self) -> LineRate {
        self.config.line
    }

    /// What waits here.
    pub const fn fill(&self) -> Fill {
        self.queues.fill()
    }

    /// Most bytes that ever waited here.
    pub const fn peak_bytes(&self) -> u64 {
        self.queues.peak_bytes()
    }

    /// The gate, for whoever drives it.
    pub fn gate_mut(&mut self) -> &mut G {
        &mut self.gate
    }

    fn queue_of(&self, frame: &Frame) -> usize {
        usize::from(self.config.queue_of_priority[usize::from(frame.priority & 7)] & 7)
    }

    fn admits(&self, now: RunTime, queue: usize, frame: &Frame) -> Admission {
        self.gate.admission(now, queue, frame, self.config.line.occupation(frame.length))
    }
}
