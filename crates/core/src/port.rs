//! The egress port: strict priority, one transmission at a time, a gate in front of every queue.
//!
//! A port begins a transmission the instant it may: when a frame comes and the line is free, or when the line
//! becomes free and a frame waits. Of the frames that may go it takes the first of the most urgent queue (IEEE
//! Std 802.1Q-2022, 8.6.8.1). A frame on the wire is never taken back, unless the device restarts. Of frames that come at
//! one instant to a port where none waits, its device hands in the most urgent first.
//!
//! The end of a transmission is the driver's to tell, because only it knows the line: it owes an answer to every
//! [`Transmission`]. A simulator knows the end beforehand and answers at once; a live driver answers when the
//! interface reports it. Until then the port is silent.
//!
//! Devices are built from anything that is an [`Egress`]: this port, or the
//! [critical port](crate::critical_port::CriticalPort) that also knows time-triggered windows.

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::line::LineRate;
use crate::oscillator::{LocalClock, TrueTime};
use crate::queue::{Fill, Full, Limit, PRIORITIES, QUEUES, Queues, SharedBuffer};

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
    /// Limit of all queues together, or where rate-constrained frames have a buffer of their own, of either buffer.
    pub limit: Limit,
    /// Whether rate-constrained frames have a buffer of their own.
    pub own_buffer: bool,
    /// Queue of each priority (IEEE Std 802.1Q-2022, table 8-5); all alike makes one first-in first-out queue.
    pub queue_of_priority: [u8; PRIORITIES],
    /// Queue of each priority of rate-constrained frames.
    pub queue_of_rate_constrained: [u8; PRIORITIES],
}

impl PortConfig {
    /// One queue of its own for every priority, each as large as the port; rate-constrained frames are frames like others.
    pub const fn strict_priority(line: LineRate, limit: Limit) -> Self {
        let own = [0, 1, 2, 3, 4, 5, 6, 7];
        Self::new(line, limit, own, own)
    }
    /// One queue for everything.
    pub const fn first_in_first_out(line: LineRate, limit: Limit) -> Self {
        Self::new(line, limit, [0; PRIORITIES], [0; PRIORITIES])
    }
    /// As [`strict_priority`](Self::strict_priority), with two queues above all others for rate-constrained frames: the
    /// more urgent for priorities 4 to 7 (ARINC 664 part 7 gives a virtual link one of two priorities). They have a buffer
    /// of their own, as large as that of the others.
    pub const fn critical(line: LineRate, limit: Limit) -> Self {
        let config = Self::new(line, limit, [0, 1, 2, 3, 4, 5, 6, 7], [8, 8, 8, 8, 9, 9, 9, 9]);
        Self { own_buffer: true, ..config }
    }

    const fn new(line: LineRate, limit: Limit, others: [u8; PRIORITIES], rc: [u8; PRIORITIES]) -> Self {
        Self {
            line,
            queue_limits: [limit; QUEUES],
            limit,
            own_buffer: false,
            queue_of_priority: others,
            queue_of_rate_constrained: rc,
        }
    }
}

/// What the ports of a device share.
#[derive(Clone, Debug)]
pub struct Device<C> {
    /// The buffer.
    pub buffer: SharedBuffer,
    /// Frames that wait in buffers of windows, outside the shared buffer.
    pub in_windows: u32,
    /// The clock.
    pub clock: C,
}

impl<C> Device<C> {
    /// A device with an empty buffer.
    pub const fn new(limit: Limit, clock: C) -> Self {
        Self { buffer: SharedBuffer::new(limit), in_windows: 0, clock }
    }
    /// Whether no frame waits at any port.
    pub const fn is_empty(&self) -> bool {
        self.buffer.fill().frames == 0 && self.in_windows == 0
    }
}

/// What a port wants done or noticed.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// The first bit of the preamble leaves now. The driver owes [`Egress::handle_line_free`].
    Transmit {
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// owes [`Egress::handle_line_free`] with the end of the gap. The frame waits again, or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// A frame ended here.
    Drop {
        /// The frame.
        frame: Frame,
        /// Why.
        cause: Cause,
    },
}

/// A port as a device drives it. Effects go to `effect` as they happen.
pub trait Egress {
    /// The clock it acts by.
    type Clock: LocalClock;

    /// A frame to send. Where the line is free and nobody waits, its transmission begins at `now`.
    fn handle_frame(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut Device<Self::Clock>,
        effect: &mut impl FnMut(Effect),
    );

    /// As [`handle_frame`](Self::handle_frame), for a frame that keeps to no window, as a babbling end system sends
    /// it: it is treated as the most urgent of all others.
    fn handle_unscheduled(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut Device<Self::Clock>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.handle_frame(now, frame, device, effect);
    }

    /// Does what is due at `now`. Early calls do nothing; a late call acts as of `now`.
    fn handle_deadline(
        &mut self,
        now: RunTime,
        device: &mut Device<Self::Clock>,
        effect: &mut impl FnMut(Effect),
    );

    /// The answer to [`Effect::Transmit`] and [`Effect::Abort`]: the line is free from `free_at` on.
    fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime);

    /// The clock of `device` was set, or runs differently from `now` on.
    fn handle_clock_change(&mut self, now: RunTime, device: &Device<Self::Clock>) {
        let _ = (now, device);
    }

    /// The device restarts: what waits is dropped, what is on the wire is cut off. A transmission that was not
    /// answered yet goes on, because its driver alone knows how far it is.
    fn handle_restart(
        &mut self,
        now: RunTime,
        device: &mut Device<Self::Clock>,
        effect: &mut impl FnMut(Effect),
    );

    /// When [`handle_deadline`](Self::handle_deadline) may have something to do.
    fn next_deadline(&self) -> Deadline;

    /// Whether no frame waits here: then nothing is due before the next input.
    fn is_empty(&self) -> bool;

    /// Whether a frame that comes at `now` finds the line free and nobody waiting.
    fn is_idle(&self, now: RunTime) -> bool;

    /// How urgent a frame is among those that come at one instant while the port is idle, more being greater; `None`: it
    /// takes no part in that choice, because it goes by a window of its own.
    fn urgency(&self, frame: &Frame) -> Option<usize>;

    /// The line it feeds.
    fn line(&self) -> LineRate;

    /// What waits here.
    fn fill(&self) -> Fill;

    /// Most bytes that ever waited here.
    fn peak_bytes(&self) -> u64;
}

/// The duty to say when a transmission that was begun leaves the line free: hand it to
/// [`Egress::handle_line_free`]. It cannot be copied, so no transmission is answered twice.
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

/// What was sent last, and whether it still is.
#[derive(Clone, Copy, Debug)]
struct OnWire {
    frame: Frame,
    queue: u8,
    since: RunTime,
}

/// An egress port. What a frame that passes through meets of it lies in two lines of cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct EgressPort<G> {
    rate: LineRate,
    queue_of_priority: [u8; PRIORITIES],
    queue_of_rate_constrained: [u8; PRIORITIES],
    queues: Queues,
    line: Line,
    on_wire: Option<OnWire>,
    /// The latest instant a call was made for: what gates were asked about before is past.
    seen: RunTime,
    gate: G,
}

impl<G: Gate> EgressPort<G> {
    /// A port with empty queues and a free line.
    pub fn new(config: PortConfig, gate: G) -> Self {
        let queues = Queues::new(config.queue_limits, config.limit, config.own_buffer);
        let beginning = RunTime::from_picos(i64::MIN);
        Self {
            rate: config.line,
            queue_of_priority: config.queue_of_priority,
            queue_of_rate_constrained: config.queue_of_rate_constrained,
            queues,
            line: Line::FreeAt(beginning),
            on_wire: None,
            seen: beginning,
            gate,
        }
    }

    /// A frame to send. `Ok(Some(…))`: its transmission begins at `now`, without waiting. `Ok(None)`: it waits.
    ///
    /// At the instant the line becomes free a port in which nothing waits takes the frame at once; where frames
    /// wait it lines up with them, and [`begin_next`](Self::begin_next) decides.
    ///
    /// # Errors
    /// What is full; the frame is not taken.
    #[inline]
    pub fn offer(
        &mut self,
        now: RunTime,
        frame: Frame,
        buffer: &mut SharedBuffer,
    ) -> Result<Option<Transmission>, Full> {
        self.offer_to(self.queue_of(&frame), now, frame, buffer)
    }

    /// As [`offer`](Self::offer), to this queue whatever the frame's priority.
    ///
    /// # Errors
    /// As [`offer`](Self::offer).
    #[inline]
    pub fn offer_to(
        &mut self,
        queue: usize,
        now: RunTime,
        frame: Frame,
        buffer: &mut SharedBuffer,
    ) -> Result<Option<Transmission>, Full> {
        self.seen = now;
        if self.is_idle(now) && self.admits(now, queue, &frame) == Admission::Now {
            return Ok(Some(self.begin(now, queue, frame)));
        }
        self.queues.push(queue, frame, buffer).map(|()| None)
    }

    /// Begins the next transmission if one may begin at `now`. Early calls do nothing; a late call begins at
    /// `now`, not at the deadline.
    pub fn begin_next(&mut self, now: RunTime, buffer: &mut SharedBuffer) -> Option<(Frame, Transmission)> {
        self.seen = now;
        if !self.is_line_free(now) {
            return None;
        }
        let queue = self.queues.occupied().find(|&queue| {
            self.queues.head(queue).is_some_and(|frame| self.admits(now, queue, frame) == Admission::Now)
        })?;
        let frame = self.queues.pop(queue, buffer)?;
        Some((frame, self.begin(now, queue, frame)))
    }

    /// Begins a frame from outside the queues at `now`, where the line is free.
    ///
    /// Panics where it is not.
    pub fn begin_from_outside(&mut self, now: RunTime, frame: Frame) -> Transmission {
        assert!(self.is_line_free(now), "wg-core misuse: two frames on one line");
        self.seen = now;
        self.begin(now, QUEUES, frame)
    }

    /// Cuts off the frame from a queue that is on the wire at `now`, and whose transmission was answered; it waits
    /// again at the head of its queue.
    pub fn abort(&mut self, now: RunTime, buffer: &mut SharedBuffer) -> Option<(Frame, Transmission)> {
        let OnWire { frame, queue, .. } = self.abortable(now)?;
        self.queues.put_back(usize::from(queue), frame, buffer);
        self.cut_off(now);
        Some((frame, Transmission(())))
    }

    /// When the line is free; `None` before that was answered.
    pub const fn free_at(&self) -> Option<RunTime> {
        match self.line {
            Line::FreeAt(at) => Some(at),
            Line::Taken => None,
        }
    }

    /// Takes note that time has come to `now`.
    pub const fn pass(&mut self, now: RunTime) {
        self.seen = now;
    }

    /// The latest instant a call was made for.
    pub const fn seen(&self) -> RunTime {
        self.seen
    }

    fn begin(&mut self, now: RunTime, queue: usize, frame: Frame) -> Transmission {
        self.on_wire = Some(OnWire { frame, queue: queue as u8, since: now });
        self.line = Line::Taken;
        Transmission(())
    }

    fn in_progress(&self, now: RunTime) -> Option<OnWire> {
        if self.line == Line::Taken {
            return None;
        }
        let transmission = |on_wire: &OnWire| self.rate.transmission(on_wire.frame.length);
        self.on_wire.filter(|on_wire| on_wire.since + transmission(on_wire) > now)
    }

    fn abortable(&self, now: RunTime) -> Option<OnWire> {
        self.in_progress(now).filter(|on_wire| usize::from(on_wire.queue) < QUEUES)
    }

    fn cut_off(&mut self, now: RunTime) {
        self.seen = now;
        self.on_wire = None;
        self.line = Line::Taken;
    }

    /// Cuts off what is on the wire, whoever sent it, and drops it with everything that waits.
    pub fn restart(&mut self, now: RunTime, buffer: &mut SharedBuffer, effect: &mut impl FnMut(Effect)) {
        let cause = Cause::Down;
        if let Some(OnWire { frame, .. }) = self.in_progress(now) {
            self.cut_off(now);
            effect(Effect::Abort { frame, transmission: Transmission(()) });
            effect(Effect::Drop { frame, cause });
        }
        for queue in (0..QUEUES).rev() {
            while let Some(frame) = self.queues.pop(queue, buffer) {
                effect(Effect::Drop { frame, cause });
            }
        }
    }

    fn is_line_free(&self, now: RunTime) -> bool {
        matches!(self.line, Line::FreeAt(at) if at <= now)
    }

    /// The gate.
    pub const fn gate(&self) -> &G {
        &self.gate
    }

    /// The gate, for whoever drives it.
    pub const fn gate_mut(&mut self) -> &mut G {
        &mut self.gate
    }

    fn queue_of(&self, frame: &Frame) -> usize {
        let queues = match frame.class {
            TrafficClass::RateConstrained => &self.queue_of_rate_constrained,
            TrafficClass::BestEffort | TrafficClass::TimeTriggered => &self.queue_of_priority,
        };
        usize::from(queues[usize::from(frame.priority & 7)]).min(QUEUES - 1)
    }

    fn admits(&self, now: RunTime, queue: usize, frame: &Frame) -> Admission {
        self.gate.admission(now, queue, frame, self.rate.occupation(frame.length))
    }
}

impl<G: Gate> Egress for EgressPort<G> {
    type Clock = TrueTime;

    #[inline]
    fn handle_frame(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut Device<TrueTime>,
        effect: &mut impl FnMut(Effect),
    ) {
        match self.offer(now, frame, &mut device.buffer) {
            Ok(Some(transmission)) => effect(Effect::Transmit { frame, transmission }),
            Ok(None) => {}
            Err(full) => effect(Effect::Drop { frame, cause: Cause::Full(full) }),
        }
    }

    #[inline]
    fn handle_deadline(
        &mut self,
        now: RunTime,
        device: &mut Device<TrueTime>,
        effect: &mut impl FnMut(Effect),
    ) {
        if let Some((frame, transmission)) = self.begin_next(now, &mut device.buffer) {
            effect(Effect::Transmit { frame, transmission });
        }
    }

    fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime) {
        let Transmission(()) = transmission;
        self.line = Line::FreeAt(free_at);
    }

    fn handle_restart(
        &mut self,
        now: RunTime,
        device: &mut Device<TrueTime>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.restart(now, &mut device.buffer, effect);
    }

    fn next_deadline(&self) -> Deadline {
        let Line::FreeAt(free_at) = self.line else { return Deadline::NEVER };
        if self.queues.is_empty() {
            return Deadline::NEVER;
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

    #[inline]
    fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    #[inline]
    fn is_idle(&self, now: RunTime) -> bool {
        self.is_line_free(now) && self.queues.is_empty()
    }

    fn urgency(&self, frame: &Frame) -> Option<usize> {
        Some(self.queue_of(frame))
    }

    fn line(&self) -> LineRate {
        self.rate
    }

    fn fill(&self) -> Fill {
        self.queues.fill()
    }

    fn peak_bytes(&self) -> u64 {
        self.queues.peak_bytes()
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
                while let Some(at) = port.next_deadline().instant() {
                    if at > until { break; }
                    prop_assert!(at >= now, "a deadline lies in the past");
                    now = at;
                    if let Some((frame, transmission)) = port.begin_next(now, &mut shared) {
                        let end = begin(&mut waiting, &mut free_at, now, frame);
                        port.handle_line_free(transmission, end);
                    }
                }
                now = until;
                let frame = frame(sequence, priority, length);
                waiting.push(frame);
                let idle = free_at <= now && waiting.len() == 1;
                let began = port.offer(now, frame, &mut shared).expect("there is room");
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
        let begun = port.offer(RunTime::ZERO, frame(0, 0, 64), &mut shared);
        let transmission = begun.expect("there is room").expect("the line is free");
        assert_eq!(port.offer(late, frame(1, 7, 64), &mut shared), Ok(None));
        assert_eq!(port.next_deadline(), Deadline::NEVER);
        assert_eq!(port.begin_next(late, &mut shared), None);
        port.handle_line_free(transmission, late);
        assert_eq!(port.next_deadline(), Deadline::at(late));
        assert!(port.begin_next(late, &mut shared).is_some());
    }
}
