//! The egress port: queues, a line, one transmission at a time, and a transmission selection that says which is next.
//!
//! A port begins a transmission the instant it may: when a frame comes and the line is free, or when the line
//! becomes free and a frame waits. Of the frames that may go it takes the one its [selection](crate::selection) names. A
//! frame on the wire is never taken back, unless a scheduled one needs the line and the selection says so, or the device
//! restarts. Of frames that come at one instant to a port where none waits, its device hands in the most urgent first.
//!
//! The end of a transmission is the driver's to tell, because only it knows the line: it owes an answer to every
//! [`Transmission`]. A simulator knows the end beforehand and answers at once; a live driver answers when the
//! interface reports it. Until then the port is silent.

use wg_frame::time::RunTime;

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::line::{GAP, LineRate};
use crate::queue::{Capacity, Fill, PRIORITIES, QUEUES, QueuePosition, Queues, SharedBuffer};
use crate::selection::{Admission, CreditCourse, Moment, Newcomer, TransmissionSelection};

/// What a port is built from.
#[derive(Clone, Copy, Debug)]
pub struct PortConfig {
    /// The line it feeds.
    pub line: LineRate,
    /// Capacity of each queue.
    pub queue_limits: [Capacity; QUEUES],
    /// Capacity of all queues together, or where rate-constrained frames have a buffer of their own, of either buffer.
    pub limit: Capacity,
    /// Whether rate-constrained frames have a buffer of their own.
    pub own_buffer: bool,
    /// Queue of each priority (IEEE Std 802.1Q-2022, table 8-5); all alike makes one first-in first-out queue.
    pub queue_of_priority: [u8; PRIORITIES],
    /// Queue of each priority of rate-constrained frames.
    pub queue_of_rate_constrained: [u8; PRIORITIES],
}

impl PortConfig {
    /// One queue of its own for every priority, each as large as the port; rate-constrained frames are frames like others.
    pub const fn strict_priority(line: LineRate, limit: Capacity) -> Self {
        let own = [0, 1, 2, 3, 4, 5, 6, 7];
        Self::new(line, limit, own, own)
    }
    /// One queue for everything.
    pub const fn first_in_first_out(line: LineRate, limit: Capacity) -> Self {
        Self::new(line, limit, [0; PRIORITIES], [0; PRIORITIES])
    }
    /// A queue for each traffic class, each as large as the port: `classes` has that of each priority.
    pub const fn traffic_classes(line: LineRate, limit: Capacity, classes: [u8; PRIORITIES]) -> Self {
        Self::new(line, limit, classes, classes)
    }
    /// As [`strict_priority`](Self::strict_priority), with two queues above all others for rate-constrained frames: the
    /// more urgent for priorities 4 to 7 (ARINC 664 part 7 gives a virtual link one of two priorities). They have a buffer
    /// of their own, as large as that of the others.
    pub const fn critical(line: LineRate, limit: Capacity) -> Self {
        let config = Self::new(line, limit, [0, 1, 2, 3, 4, 5, 6, 7], [8, 8, 8, 8, 9, 9, 9, 9]);
        Self { own_buffer: true, ..config }
    }

    /// A queue for each traffic class, and the two above them for rate-constrained frames, but for those of a priority that
    /// `critical` has a class for. Only the two have a buffer of their own.
    pub fn converged(
        line: LineRate,
        limit: Capacity,
        classes: [u8; PRIORITIES],
        critical: [Option<u8>; PRIORITIES],
    ) -> Self {
        let Self { queue_of_rate_constrained: above, .. } = Self::critical(line, limit);
        let rc: [u8; PRIORITIES] =
            core::array::from_fn(|priority| critical[priority].unwrap_or(above[priority]));
        let own_buffer = rc.iter().any(|queue| usize::from(*queue) >= PRIORITIES);
        Self { own_buffer, ..Self::new(line, limit, classes, rc) }
    }

    const fn new(line: LineRate, limit: Capacity, others: [u8; PRIORITIES], rc: [u8; PRIORITIES]) -> Self {
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
pub struct NodeShared<C> {
    /// The buffer.
    pub buffer: SharedBuffer,
    /// The clock.
    pub clock: C,
    /// Whether the driver is told what becomes of every copy of a frame, see [`Life`].
    pub follows: bool,
}

impl<C> NodeShared<C> {
    /// A device with an empty buffer, that follows no copies.
    pub const fn new(limit: Capacity, clock: C) -> Self {
        Self { buffer: SharedBuffer::new(limit), clock, follows: false }
    }
}

/// What becomes of a frame inside a device, told where that [follows](NodeShared::follows) copies: a driver that keeps the bytes of
/// a frame in a buffer then knows when nobody needs them any more.
///
/// A frame that is handed in is one copy. Each copy has one end: [`Sent`](Self::Sent), or a drop, or at a host the delivery. An
/// aborted one waits again and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// This copy became so many, more than one. Told before anything else of any of them; of a stream's frame
    /// first what its stream makes of it, then what becomes of each copy.
    Copied(u32),
    /// It waits in a queue.
    Waits,
    /// It was sent and the line is free of it: it ended here.
    Sent,
}

/// What a port wants done or noticed. The frame lies at one place in all of them.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Effect {
    /// The first bit of the preamble leaves now. The driver owes [`Port::handle_line_free`].
    Transmit {
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// owes [`Port::handle_line_free`] with the end of the gap. The frame waits again, or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// To be handed back with the end.
        transmission: Transmission,
    },
    /// The frame on the wire is sent in fragments (IEEE Std 802.3-2022, clause 99), and one of them ends or begins.
    Fragment {
        /// The frame.
        frame: Frame,
        /// Which.
        edge: FragmentEdge,
    },
    /// A frame ended here.
    Drop {
        /// The frame.
        frame: Frame,
        /// Why.
        cause: Cause,
    },
    /// Where copies are followed: what became of one.
    Follow {
        /// The frame.
        frame: Frame,
        /// What.
        life: Life,
    },
}

/// A fragment of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum FragmentEdge {
    /// The one in progress is not the last: the frame is not through when it was told to be. The port knows when the line is
    /// free.
    Cut {
        /// When the line was said to be free.
        instead_of: RunTime,
    },
    /// The frame goes on now, the first bit of the preamble leaves. The driver owes [`Port::handle_line_free`].
    Continue {
        /// Bytes of the frame that are left, FCS included.
        left: u16,
        /// To be handed back with the end.
        transmission: Transmission,
    },
}

/// The duty to say when a transmission that was begun leaves the line free: hand it to
/// [`Port::handle_line_free`]. It cannot be copied, so no transmission is answered twice.
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
    queue: u16,
    since: RunTime,
}

/// An egress port. What a frame that passes through meets of it lies in two lines of cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Port<S> {
    rate: LineRate,
    queue_of_priority: [u8; PRIORITIES],
    queue_of_rate_constrained: [u8; PRIORITIES],
    queues: Queues,
    line: Line,
    on_wire: Option<OnWire>,
    /// The latest instant a call was made for: what the selection was asked about before is past.
    seen: RunTime,
    /// A deadline may come for the frame on the wire.
    watches: bool,
    selection: S,
}

/// What a selection is to see of a port now.
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

    /// Begins `frame` at `now` as [`handle_frame`](Self::handle_frame) would, where nothing can keep it from being the next: the
    /// line is free, nobody waits, the selection asks for nothing and no copies are followed. `None`: it has to be handed in.
    /// Most frames by far begin so, and what else there may be stays out of their way.
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

    /// As [`handle_frame`](Self::handle_frame), for a frame that keeps to no schedule, as a babbling end system sends
    /// it: it is treated as the most urgent of all others.
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

    /// The clock of `device` was set, or runs differently from `now` on.
    pub fn handle_clock_change<C: LocalClock>(&mut self, now: RunTime, device: &NodeShared<C>) {
        self.selection.handle_clock_change(&moment!(self, now, device));
    }

    /// The device is synchronised from `now` on, or no longer.
    pub fn handle_synchronised<C: LocalClock>(
        &mut self,
        now: RunTime,
        device: &NodeShared<C>,
        is_synchronised: bool,
    ) {
        self.selection.handle_synchronised(&moment!(self, now, device), is_synchronised);
    }

    /// The device restarts: what waits is dropped, what is on the wire is cut off. A transmission that was not
    /// answered yet goes on, because its driver alone knows how far it is.
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

    /// When [`handle_deadline`](Self::handle_deadline) may have something to do.
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

    /// Whether no frame waits here, nor is one to be told as sent: then nothing is due before the next input.
    #[inline]
    pub fn is_at_rest<C>(&self, device: &NodeShared<C>) -> bool {
        self.queues.is_empty()
            && self.queues.apart() == 0
            && !self.watches
            && !(device.follows && self.on_wire.is_some())
    }

    /// Whether a frame that comes at `now` finds the line free and nobody waiting, but for those that go by a schedule.
    #[inline]
    pub fn is_idle(&self, now: RunTime) -> bool {
        self.is_line_free(now) && self.queues.is_empty()
    }

    /// How urgent a frame is among those that come at one instant while the port is idle, more being greater; `None`: it
    /// takes no part in that choice, because it goes by a schedule.
    pub fn urgency(&self, frame: &Frame, unscheduled: bool) -> Option<usize> {
        let queue = if unscheduled { QUEUES - 1 } else { self.queue_of(frame) };
        self.selection.urgency(&Newcomer { frame, queue, unscheduled })
    }

    /// The course of the credit of a queue up to `now`; `None`: it has none.
    pub fn credit<C: LocalClock>(
        &mut self,
        now: RunTime,
        queue: usize,
        device: &NodeShared<C>,
    ) -> Option<&CreditCourse> {
        self.selection.credit(&moment!(self, now, device), queue)
    }

    /// The line it feeds.
    pub fn line(&self) -> LineRate {
        self.rate
    }

    /// What waits here, but for [scheduled](Self::scheduled) frames.
    pub fn fill(&self) -> Fill {
        self.queues.fill()
    }

    /// Frames that wait in queues of the selection's own.
    pub fn scheduled(&self) -> u32 {
        self.queues.apart()
    }

    /// Most bytes that ever waited here, scheduled frames left out.
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

    /// Most selections have no schedule, and most frames find nobody waiting: what else there is stays out of their way.
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

    /// A device that has nothing waiting asks none of its ports for a deadline, unless one of them watches its line.
    fn watch<C>(&mut self, device: &mut NodeShared<C>) {
        let watches = self.selection.watches();
        if watches != self.watches {
            self.watches = watches;
            device.buffer.watch(watches);
        }
    }

    /// Ends the fragment in progress as soon as may be, where a frame waits that it is to give way to.
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

    /// Tells that the frame sent last was sent, once the line is free of it.
    #[inline]
    fn release<C>(&mut self, now: RunTime, device: &NodeShared<C>, effect: &mut impl FnMut(Effect)) {
        if device.follows
            && self.is_line_free(now)
            && let Some(OnWire { frame, .. }) = self.on_wire.take()
        {
            effect(Effect::Follow { frame, life: Life::Sent });
        }
    }

    /// Time has come to `now`: what the selection says is of no use any more is dropped.
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

    /// Tells the selection of the first frame of a queue, which was taken out to be dropped.
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

    /// Begins the frame that is due by schedule at `now`, or makes way for it.
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

    /// Begins the first frame of a queue; the line is free.
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

    /// A frame takes the line.
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
