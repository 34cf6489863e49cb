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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Mac, Marks, NetworkId, TrafficClass};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Open in the first half of every cycle, for urgent queues only in the second.
    struct Halves {
        half: i64,
    }

    impl Gate for Halves {
        fn admission(&self, now: RunTime, queue: usize, _frame: &Frame, _occupation: Span) -> Admission {
            let (cycle, into) =
                (now.as_picos().div_euclid(2 * self.half), now.as_picos().rem_euclid(2 * self.half));
            let opens_late = queue >= 4;
            match (into < self.half, opens_late) {
                (true, false) | (false, true) => Admission::Now,
                (true, true) => Admission::NotBefore(RunTime::from_picos(2 * self.half * cycle + self.half)),
                (false, false) => Admission::NotBefore(RunTime::from_picos(2 * self.half * (cycle + 1))),
            }
        }
    }

    fn frame(sequence: u32, priority: u8, length: u16) -> Frame {
        Frame {
            destination: Mac::BROADCAST,
            source: Mac::default(),
            length,
            vlan: 0,
            flow: 1,
            virtual_link: 0,
            sequence,
            priority,
            class: TrafficClass::BestEffort,
            network: NetworkId::A,
            virtual_link_sequence: 0,
            marks: Marks::none(),
        }
    }

    proptest! {
        /// A driver that comes whenever asked and at odd instants too: the port always begins with the oldest frame of
        /// the most urgent queue that its gate admits, as soon as line and gate allow, and not a moment later.
        #[test]
        fn the_most_urgent_admitted_frame_goes_first_and_at_once(
            operations in proptest::collection::vec((0_i64..30_000_000, 0_u8..8, 64_u16..1_500), 1..80),
            half in prop_oneof![Just(i64::MAX / 8), 5_000_000_i64..200_000_000],
        ) {
            let line = LineRate::new(100_000_000).expect("a rate");
            let gate = || Halves { half };
            let mut port = EgressPort::new(PortConfig::strict_priority(line, Limit::frames(100)), gate());
            let mut shared = SharedBuffer::new(Limit::frames(100));
            let mut waiting: Vec<Frame> = Vec::new();
            let (mut now, mut free_at) = (RunTime::ZERO, RunTime::ZERO);
            let begin = |waiting: &mut Vec<Frame>, free_at: &mut RunTime, now: RunTime, frame: Frame| {
                let admitted = |f: &Frame| {
                    gate().admission(now, usize::from(f.priority), f, Span::ZERO) == Admission::Now
                };
                let best = waiting.iter().copied().filter(admitted).max_by_key(|f| (f.priority, core::cmp::Reverse(f.sequence)));
                assert_eq!(best, Some(frame));
                assert!(*free_at <= now);
                waiting.retain(|f| f.sequence != frame.sequence);
                *free_at = now + line.occupation(frame.length);
                *free_at
            };
            for (sequence, (step, priority, length)) in (0..).zip(operations) {
                let until = now + Span::from_picos(step);
                while let Deadline::At(at) = port.next_deadline() {
                    if at > until { break; }
                    prop_assert!(at >= now, "a deadline lies in the past");
                    now = at;
                    if let Some((frame, transmission)) = port.handle_deadline(now, &mut shared) {
                        let end = begin(&mut waiting, &mut free_at, now, frame);
                        port.handle_line_free(transmission, end);
                    }
                }
                now = until;
                let frame = frame(sequence, priority, length);
                waiting.push(frame);
                let idle = free_at <= now && waiting.len() == 1;
                let began = port.handle_frame(now, frame, &mut shared).expect("there is room");
                let admitted = gate().admission(now, usize::from(priority), &frame, Span::ZERO) == Admission::Now;
                prop_assert_eq!(began.is_some(), idle && admitted);
                if let Some(transmission) = began {
                    let end = begin(&mut waiting, &mut free_at, now, frame);
                    port.handle_line_free(transmission, end);
                }
            }
            prop_assert_eq!(port.fill().frames as usize, waiting.len());
            prop_assert_eq!(shared.fill(), port.fill());
        }
    }

    #[test]
    fn an_unanswered_transmission_keeps_the_port_silent() {
        let line = LineRate::new(100_000_000).expect("a rate");
        let mut port = EgressPort::new(PortConfig::first_in_first_out(line, Limit::frames(9)), AlwaysOpen);
        let mut shared = SharedBuffer::new(Limit::frames(9));
        let late = RunTime::from_picos(i64::MAX / 2);
        let begun = port.handle_frame(RunTime::ZERO, frame(0, 0, 64), &mut shared);
        let transmission = begun.expect("there is room").expect("the line is free");
        assert_eq!(port.handle_frame(late, frame(1, 7, 64), &mut shared), Ok(None));
        assert_eq!(port.next_deadline(), Deadline::Never);
        assert_eq!(port.handle_deadline(late, &mut shared), None);
        port.handle_line_free(transmission, late);
        assert_eq!(port.next_deadline(), Deadline::At(late));
        assert!(port.handle_deadline(late, &mut shared).is_some());
    }
}
