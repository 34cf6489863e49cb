//! The egress port: queues, a line, one transmission at a time, and a transmission selection that chooses the next
//! frame.
//!
//! A port begins a transmission the instant it may: when a frame comes and the line is free, or when the line becomes
//! free and a frame waits. Of the frames that may go it takes the one its [selection](crate::selection) names. A frame
//! on the wire is never taken back, unless a scheduled one needs the line and the selection says so, or the device
//! restarts. Of frames that come at one instant to a port where none waits, its device hands in the most urgent first.
//!
//! The driver reports the end of a transmission, because only it knows the line: it owes an answer to every
//! [`Transmission`]. A simulator knows the end beforehand and answers at once; a live driver answers when the interface
//! reports it. Until then the port sends nothing else.

mod config;
mod effect;

use wg_frame::time::RunTime;

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::line::{GAP, LineRate};
use crate::queue::{Capacity, Fill, PRIORITIES, QUEUES, QueuePosition, Queues, SharedBuffer};
use crate::selection::{Admission, CreditCourse, Moment, Newcomer, TransmissionSelection};
pub use config::PortConfig;
pub use effect::{Effect, FragmentEdge, Life, Transmission};

/// State that the ports of a device share.
#[derive(Clone, Debug)]
pub struct NodeShared<C> {
    /// Buffer shared by all ports.
    pub buffer: SharedBuffer,
    /// Clock of the device.
    pub clock: C,
    /// Whether what becomes of every copy of a frame is reported to the driver, see [`Life`].
    pub follows: bool,
}

impl<C> NodeShared<C> {
    /// A device with an empty buffer that does not follow copies.
    pub const fn new(limit: Capacity, clock: C) -> Self {
        Self { buffer: SharedBuffer::new(limit), clock, follows: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Free from this instant on.
    FreeAt(RunTime),
    /// A transmission has begun and is not answered yet.
    Taken,
}

/// The frame sent last, and whether it is still on the wire.
#[derive(Clone, Copy, Debug)]
struct OnWire {
    frame: Frame,
    queue: u16,
    since: RunTime,
}

/// An egress port. The fields used for a frame that passes without waiting lie in two cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Port<S> {
    rate: LineRate,
    queue_of_priority: [u8; PRIORITIES],
    queue_of_rate_constrained: [u8; PRIORITIES],
    queues: Queues,
    line: Line,
    on_wire: Option<OnWire>,
    /// The latest instant of a call: answers of the selection for earlier instants are past.
    seen: RunTime,
    /// Whether a deadline may be due for the frame on the wire.
    watches: bool,
    selection: S,
}

/// State of a port that a selection sees at an instant.
macro_rules! moment {
    ($port:expr, $now:expr, $device:expr) => {
        Moment { now: $now, clock: &$device.clock, line: $port.rate, queues: &$port.queues }
    };
}

impl<S: TransmissionSelection> Port<S> {
    /// A port with empty queues and a free line.
    pub fn new(config: PortConfig, selection: S) -> Self {
        let own = selection.own_queues();
        let queues = Queues::new(config.queue_limits, config.limit, config.own_buffer, own);
        let beginning = RunTime::from_picos(i64::MIN);
        Self {
            rate: config.line,
            queue_of_priority: config.queue_of_priority,
            queue_of_rate_constrained: config.queue_of_rate_constrained,
            queues,
            line: Line::FreeAt(beginning),
            on_wire: None,
            seen: beginning,
            watches: false,
            selection,
        }
    }

    /// A frame to send. Where the line is free and nobody waits, its transmission begins at `now`.
    ///
    /// At the instant the line becomes free a port in which nothing waits takes the frame at once; where frames
    /// wait it lines up with them, and [`handle_deadline`](Self::handle_deadline) decides.
    #[inline]
    pub fn handle_frame<C: LocalClock>(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let queue = self.queue_of(&frame);
        self.take(now, &Newcomer { frame: &frame, queue, unscheduled: false }, device, effect);
    }

    /// Begins `frame` at `now` as [`handle_frame`](Self::handle_frame) would, if nothing can precede it: the line is
    /// free, nothing waits, the selection is plain and copies are not followed. `None`: hand it in instead. The fast
    /// path for most frames.
    #[inline]
    pub(crate) fn begin_at_once<C>(
        &mut self,
        now: RunTime,
        frame: &Frame,
        device: &NodeShared<C>,
    ) -> Option<Transmission> {
        if !self.is_idle(now) || !self.selection.is_plain() || device.follows {
            return None;
        }
        self.seen = now;
        Some(self.occupy(now, self.queue_of(frame), frame))
    }

    /// As [`handle_frame`](Self::handle_frame), for a frame that ignores the schedule, as a babbling end system sends
    /// it: it is more urgent than all other frames.
    pub fn handle_unscheduled<C: LocalClock>(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.take(now, &Newcomer { frame: &frame, queue: QUEUES - 1, unscheduled: true }, device, effect);
    }

    /// Does what is due at `now`. Early calls do nothing; a late call acts as of `now`.
    #[inline]
    pub fn handle_deadline<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        if self.selection.has_schedule() {
            self.go_on::<true, C>(now, device, effect);
            self.watch(device);
        } else {
            self.go_on::<false, C>(now, device, effect);
        }
    }

    /// The answer to [`Effect::Transmit`] and [`Effect::Abort`]: the line is free from `free_at` on.
    #[inline]
    pub fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime) {
        let Transmission(()) = transmission;
        self.line = Line::FreeAt(free_at);
        self.selection.handle_end(free_at);
    }

    /// The clock of `device` was set, or changes its frequency, at `now`.
    pub fn handle_clock_change<C: LocalClock>(&mut self, now: RunTime, device: &NodeShared<C>) {
        // Deadlines count from here: before, the clock may have shown a time that it has yet to show again.
        self.seen = self.seen.max(now);
        self.selection.handle_clock_change(&moment!(self, now, device));
    }

    /// The device gains or loses synchronisation at `now`.
    pub fn handle_synchronised<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &NodeShared<C>,
        is_synchronised: bool,
    ) {
        self.selection.handle_synchronised(&moment!(self, now, device), is_synchronised);
    }

    /// The device restarts: waiting frames are dropped, the frame on the wire is cut off. A transmission that was not
    /// answered yet goes on, because only its driver knows how far it is.
    pub fn handle_restart<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let cause = Cause::Down;
        self.release(now, device, effect);
        if let Some(OnWire { frame, .. }) = self.in_progress(now) {
            let transmission = self.cut_off(now);
            effect(Effect::Abort { frame, transmission });
            effect(Effect::Drop { frame, cause });
        }
        self.selection.handle_restart(&moment!(self, now, device));
        for queue in self.queues.all() {
            while let Some(frame) = self.queues.pop(queue, &mut device.buffer) {
                effect(Effect::Drop { frame, cause });
            }
        }
        self.watch(device);
    }

    /// Time of the next possible action of [`handle_deadline`](Self::handle_deadline).
    #[inline]
    pub fn next_deadline<C: LocalClock>(&self, device: &NodeShared<C>) -> Deadline {
        let Line::FreeAt(free_at) = self.line else { return Deadline::NEVER };
        if self.is_at_rest(device) {
            return Deadline::NEVER;
        }
        let from = free_at.max(self.seen);
        let sent =
            if device.follows && self.on_wire.is_some() { Deadline::at(from) } else { Deadline::NEVER };
        self.selection.next_deadline(&moment!(self, from, device)).min(sent)
    }

    /// Whether no frame waits and none is still to be reported as sent: then nothing is due before the next input.
    #[inline]
    pub fn is_at_rest<C>(&self, device: &NodeShared<C>) -> bool {
        self.queues.is_empty()
            && self.queues.apart() == 0
            && !self.watches
            && !(device.follows && self.on_wire.is_some())
    }

    /// Whether a frame that comes at `now` finds the line free and no frame waiting, scheduled frames aside.
    #[inline]
    pub fn is_idle(&self, now: RunTime) -> bool {
        self.is_line_free(now) && self.queues.is_empty()
    }

    /// Urgency of a frame among those that come at one instant while the port is idle, greater is more urgent; `None`:
    /// it takes no part in that choice, because it is sent by schedule.
    pub fn urgency(&self, frame: &Frame, unscheduled: bool) -> Option<usize> {
        let queue = if unscheduled { QUEUES - 1 } else { self.queue_of(frame) };
        self.selection.urgency(&Newcomer { frame, queue, unscheduled })
    }

    /// Credit of a queue over time, up to `now`; `None`: the queue has no credit-based shaper.
    pub fn credit<C: LocalClock>(
        &mut self,
        now: RunTime,
        queue: usize,
        device: &NodeShared<C>,
    ) -> Option<&CreditCourse> {
        self.selection.credit(&moment!(self, now, device), queue)
    }

    /// Line that the port feeds.
    pub fn line(&self) -> LineRate {
        self.rate
    }

    /// Occupancy of the queues, without [scheduled](Self::scheduled) frames.
    pub fn fill(&self) -> Fill {
        self.queues.fill()
    }

    /// Number of frames waiting in the selection's own queues.
    pub fn scheduled(&self) -> u32 {
        self.queues.apart()
    }

    /// Greatest occupancy so far, in bytes, without scheduled frames.
    pub fn peak_bytes(&self) -> u64 {
        self.queues.peak_bytes()
    }

    /// Begins what is due at `now`, with or without a schedule.
    #[inline]
    fn go_on<const SCHEDULE: bool, C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.pass::<SCHEDULE, C>(now, device, effect);
        if SCHEDULE {
            self.begin_due(now, device, effect);
        }
        if self.is_line_free(now)
            && let Some(queue) = self.selection.select(&moment!(self, now, device))
        {
            self.begin_first::<SCHEDULE, C>(now, queue, device, effect);
        }
    }

    /// Fast path: most selections have no schedule, and most frames find nothing waiting.
    #[inline]
    fn take<C: LocalClock>(
        &mut self,
        now: RunTime,
        newcomer: &Newcomer<'_>,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        if self.selection.has_schedule() {
            self.take_beside_schedule(now, newcomer, device, effect);
        } else {
            self.take_any::<false, C>(now, newcomer, device, effect);
        }
    }

    #[inline(never)]
    fn take_beside_schedule<C: LocalClock>(
        &mut self,
        now: RunTime,
        newcomer: &Newcomer<'_>,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.take_any::<true, C>(now, newcomer, device, effect);
        self.interrupt(now, device, effect);
        self.watch(device);
    }

    /// Tells the device whether this port watches its line: a device without waiting frames asks only such ports for
    /// deadlines.
    fn watch<C>(&mut self, device: &mut NodeShared<C>) {
        let watches = self.selection.watches();
        if watches != self.watches {
            self.watches = watches;
            device.buffer.watch(watches);
        }
    }

    /// Ends the fragment in progress as soon as possible, if a waiting frame may interrupt it.
    fn interrupt<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let Line::FreeAt(free_at) = self.line else { return };
        let Some(OnWire { frame, queue, since }) = self.on_wire.filter(|_| now < free_at) else { return };
        let queue = usize::from(queue);
        let Some(until) = self.selection.interrupts(&moment!(self, now, device), queue, since) else {
            return;
        };
        self.queues.put_back(queue, frame, &mut device.buffer);
        self.on_wire = None;
        self.line = Line::FreeAt(until);
        self.selection.handle_abort(&moment!(self, now, device), queue, &frame);
        self.selection.handle_end(until);
        effect(Effect::Fragment { frame, edge: FragmentEdge::Cut { instead_of: free_at } });
    }

    #[inline(always)]
    fn take_any<const SCHEDULE: bool, C: LocalClock>(
        &mut self,
        now: RunTime,
        newcomer: &Newcomer<'_>,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let frame = *newcomer.frame;
        self.pass::<SCHEDULE, C>(now, device, effect);
        match self.selection.handle_enqueue(&moment!(self, now, device), newcomer) {
            Err(cause) => effect(Effect::Drop { frame, cause }),
            Ok(place) if place.queue >= QUEUES => {
                waits(&frame, device, effect);
                if let Some(oldest) = self.queues.push_apart(place, frame, &mut device.buffer) {
                    self.discarded(now, place.queue, &oldest, device);
                    effect(Effect::Drop { frame: oldest, cause: Cause::Superseded });
                }
                if SCHEDULE {
                    self.begin_due(now, device, effect);
                }
            }
            Ok(place) => {
                if SCHEDULE {
                    self.begin_due(now, device, effect);
                }
                if self.is_idle(now)
                    && self.selection.admission(&moment!(self, now, device), place.queue, &frame)
                        == Admission::Now
                {
                    let transmission = self.begin(now, place.queue, &frame, device);
                    effect(Effect::Transmit { frame, transmission });
                } else if let Err(full) = self.queues.push(place, frame, &mut device.buffer) {
                    self.selection.handle_discard(&moment!(self, now, device), place, &frame);
                    effect(Effect::Drop { frame, cause: Cause::Full(full) });
                } else {
                    waits(&frame, device, effect);
                }
            }
        }
    }

    /// Reports the frame sent last as sent, once the line is free.
    #[inline]
    fn release<C>(&mut self, now: RunTime, device: &NodeShared<C>, effect: &mut impl FnMut(Effect)) {
        if device.follows
            && self.is_line_free(now)
            && let Some(OnWire { frame, .. }) = self.on_wire.take()
        {
            effect(Effect::Follow { frame, life: Life::Sent });
        }
    }

    /// Advances to `now`: drops frames that the selection gives up.
    #[inline]
    fn pass<const SCHEDULE: bool, C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.seen = now;
        self.release(now, device, effect);
        if SCHEDULE && let Some((queue, cause)) = self.selection.handle_time(&moment!(self, now, device)) {
            while let Some(frame) = self.queues.pop(queue, &mut device.buffer) {
                self.discarded(now, queue, &frame, device);
                effect(Effect::Drop { frame, cause });
            }
        }
    }

    /// Informs the selection that the first frame of a queue is dropped.
    #[cold]
    fn discarded<C: LocalClock>(
        &mut self,
        now: RunTime,
        queue: usize,
        frame: &Frame,
        device: &NodeShared<C>,
    ) {
        let place = QueuePosition { queue, overtakes: self.queues.len(queue) };
        self.selection.handle_discard(&moment!(self, now, device), place, frame);
    }

    /// Begins the frame that is due by schedule at `now`, or interrupts the transmission in its way.
    fn begin_due<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let Line::FreeAt(free_at) = self.line else { return };
        let begins = if free_at <= now { now } else { now + self.rate.time_of(GAP) };
        let at = moment!(self, now, device);
        let Some(queue) = self.selection.due(&at, begins) else {
            return self.interrupt(now, device, effect);
        };
        if free_at <= now {
            self.begin_first::<true, C>(now, queue, device, effect);
        } else if let Some(OnWire { frame, queue, .. }) = self.in_progress(now)
            && let Some(again) = self.selection.gives_way(&at, usize::from(queue), &frame)
        {
            let queue = usize::from(queue);
            self.queues.put_back(queue, again, &mut device.buffer);
            let transmission = self.cut_off(now);
            self.selection.handle_abort(&moment!(self, now, device), queue, &again);
            effect(Effect::Abort { frame, transmission });
        } else {
            self.interrupt(now, device, effect);
        }
    }

    /// Begins the first frame of a queue on the free line.
    #[inline]
    fn begin_first<const SCHEDULE: bool, C: LocalClock>(
        &mut self,
        now: RunTime,
        queue: usize,
        device: &mut NodeShared<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        if let Some(frame) = self.queues.pop(queue, &mut device.buffer) {
            let left = if SCHEDULE { self.selection.left(queue) } else { None };
            let transmission = self.begin(now, queue, &frame, device);
            effect(match left {
                None => Effect::Transmit { frame, transmission },
                Some(left) => Effect::Fragment { frame, edge: FragmentEdge::Continue { left, transmission } },
            });
        }
    }

    #[inline]
    fn begin<C: LocalClock>(
        &mut self,
        now: RunTime,
        queue: usize,
        frame: &Frame,
        device: &NodeShared<C>,
    ) -> Transmission {
        let transmission = self.occupy(now, queue, frame);
        self.selection.handle_begin(&moment!(self, now, device), queue, frame);
        transmission
    }

    /// Occupies the line with a frame.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "queues are eight and one for each of the windows' 16-bit flows"
    )]
    fn occupy(&mut self, now: RunTime, queue: usize, frame: &Frame) -> Transmission {
        self.on_wire = Some(OnWire { frame: *frame, queue: queue as u16, since: now });
        self.line = Line::Taken;
        Transmission(())
    }

    fn in_progress(&self, now: RunTime) -> Option<OnWire> {
        let Line::FreeAt(free_at) = self.line else { return None };
        // The last fragment of a frame takes less than the whole.
        let (transmission, gap) =
            (|frame: &Frame| self.rate.transmission(frame.length), self.rate.time_of(GAP));
        self.on_wire
            .filter(|on_wire| on_wire.since + transmission(&on_wire.frame) > now && now + gap < free_at)
    }

    fn cut_off(&mut self, now: RunTime) -> Transmission {
        self.seen = now;
        self.on_wire = None;
        self.line = Line::Taken;
        Transmission(())
    }

    #[inline]
    fn is_line_free(&self, now: RunTime) -> bool {
        matches!(self.line, Line::FreeAt(at) if at <= now)
    }

    #[inline]
    fn queue_of(&self, frame: &Frame) -> usize {
        let queues = match frame.class {
            TrafficClass::RateConstrained => &self.queue_of_rate_constrained,
            TrafficClass::BestEffort | TrafficClass::TimeTriggered => &self.queue_of_priority,
        };
        usize::from(queues[usize::from(frame.priority & 7)]).min(QUEUES - 1)
    }
}

#[inline]
fn waits<C>(frame: &Frame, device: &NodeShared<C>, effect: &mut impl FnMut(Effect)) {
    if device.follows {
        effect(Effect::Follow { frame: *frame, life: Life::Waits });
    }
}

#[cfg(test)]
mod tests;
