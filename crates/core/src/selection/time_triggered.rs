//! Time-triggered windows, with all other traffic around them.
//!
//! Time-triggered frames wait in separate queues, one for each flow, and leave in the windows of the port's
//! [schedule](crate::tte::schedule), by the device's local clock. All other frames have a selection of [their
//! own](Around): strict priority, or the [traffic classes](super::TrafficClasses) of a converged port with their
//! shapers and gates. Such a frame begins when that selection and [media access](crate::tte::access) both admit it;
//! media access keeps the windows clear by timely block, shuffling or preemption, and the delta raster on top. The
//! first frame of the most urgent queue that may begin does so: where it would reach into a window, a shorter one of a
//! less urgent queue may precede it (as IEEE Std 802.1Q-2022, 8.6.8.4 has it for gates).
//!
//! To a shaper a window is like any other frame: credit rises while frames wait for it. It is no closed gate, since an
//! empty window is free for all.
//!
//! A frame whose window closes over it waits for the next or is dropped, by rule.
//!
//! # Synchronisation
//! A device of a [synchronised cluster](crate::as6802) that loses synchronisation has no windows: arriving
//! time-triggered frames are dropped, waiting ones wait until it is synchronised again, and all others have the line.
//!
//! # Preemption
//! Only a transmission that the driver has answered can be aborted, because only then the port knows when its last
//! bit leaves; a driver that answers at the end gets shuffling. An aborted frame goes back to the head of its queue and
//! is sent again from its beginning. A frame whose last bit has left is not aborted: the time-triggered one waits for
//! its gap.
//!
//! Frames that are sent in fragments (IEEE Std 802.3-2022, clause 99) are cut for a time-triggered one, which is an
//! express one to them; what is left of one begins where it is through before the window, as a frame would be. Cutting
//! off whole frames and sending fragments do not go together: the receiving MAC would wait for the rest of a frame that
//! is sent anew.

use alloc::vec::Vec;

use wg_frame::time::RunTime;

use super::{Admission, Moment, Newcomer, StrictPriority, TransmissionSelection, earliest, first_admitted};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::queue::{QUEUES, QueuePosition};
use crate::selection::CreditCourse;
use crate::tte::access::{DeltaRaster, Integration, MediaAccess};
use crate::tte::schedule::PortSchedule;

/// Treatment of a waiting frame when its window closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Waits for the next window of its flow.
    Keep,
    /// Dropped with [`Cause::MissedWindow`].
    Drop,
}

/// Configuration of the time-triggered windows of a port.
#[derive(Clone, Debug)]
pub struct WindowConfig {
    /// Windows of the flows; a window's flow is the critical-traffic identifier of its frames.
    pub schedule: PortSchedule,
    /// Protection of the windows against other frames.
    pub integration: Integration,
    /// Delta raster, in addition; `None`: none.
    pub raster: Option<DeltaRaster>,
    /// Capacity of each flow's queue in frames; at least 1.
    pub frames: u32,
    /// Treatment of a frame that misses its window.
    pub missed: Missed,
}

const FOREVER: RunTime = RunTime::from_picos(i64::MAX);

/// A selection for the frames around windows. The windows restrict further what it admits.
pub trait Around: TransmissionSelection {
    /// The queue whose first frame begins now, of those that `admission` admits; the line is free.
    fn select_by<C: LocalClock>(
        &self,
        at: &Moment<'_, C>,
        admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
    ) -> Option<usize> {
        first_admitted(at, admission)
    }

    /// Instant at which the frame on the wire may have to be cut for one that `admission` admits from then on.
    fn next_cut<C: LocalClock>(
        &self,
        at: &Moment<'_, C>,
        admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
    ) -> Deadline {
        let _ = (at, admission);
        Deadline::NEVER
    }

    /// As [`interrupts`](TransmissionSelection::interrupts), for an interrupting frame given by `waits`, which tells
    /// from the selection and the end of transmission whether it waits.
    fn cut<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
        waits: impl Fn(&Self, RunTime) -> bool,
    ) -> Option<RunTime> {
        let _ = (at, queue, since, waits);
        None
    }

    /// Whether the first frame of a queue is express: never cut, and others are cut for it.
    fn is_express(&self, queue: usize) -> bool {
        let _ = queue;
        true
    }

    /// Whether the frame on the wire can be cut.
    fn may_cut(&self) -> bool {
        false
    }
}

impl Around for StrictPriority {}

/// Selection with time-triggered windows.
#[derive(Clone, Debug)]
pub struct TimeTriggered<S = StrictPriority> {
    windows: Windows,
    /// Selection for all other frames.
    others: S,
}

/// State of the time-triggered windows.
#[derive(Clone, Debug)]
struct Windows {
    access: MediaAccess,
    /// Identifiers of flows with a window, ascending; in the order of their queues.
    flows: Vec<u16>,
    /// Queue of each window.
    queue_of: Vec<u32>,
    capacity: usize,
    missed: Missed,
    /// Whether windows are suspended, because the device is not synchronised.
    suspended: bool,
}

impl TimeTriggered {
    /// Windows by schedule, and strict priority around them. Time-triggered frames without a window are dropped.
    ///
    /// Panics when `frames` is 0.
    pub fn new(config: WindowConfig) -> Self {
        Self::with(config, StrictPriority)
    }
}

impl<S: Around> TimeTriggered<S> {
    /// Windows by schedule, with `others` around them.
    ///
    /// Panics when `frames` is 0.
    pub fn with(config: WindowConfig, others: S) -> Self {
        Self { windows: Windows::new(config), others }
    }

    /// Whether the windows admit a frame that has none.
    #[inline]
    fn admits<C: LocalClock>(
        windows: &Windows,
        others: &S,
        at: &Moment<'_, C>,
        queue: usize,
        frame: &Frame,
    ) -> Admission {
        match others.admission(at, queue, frame) {
            Admission::Now => windows.admission(at, others.left(queue).unwrap_or(frame.length)),
            other => other,
        }
    }
}

impl Windows {
    fn new(config: WindowConfig) -> Self {
        let WindowConfig { schedule, integration, raster, frames, missed } = config;
        assert!(frames > 0, "wg-core misuse: the buffer of a window holds at least one frame");
        let mut flows: Vec<u16> = schedule.windows().iter().map(|window| window.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        #[expect(clippy::cast_possible_truncation, reason = "flows are 16-bit numbers")]
        let place = |id: u16| (QUEUES + flows.partition_point(|other| *other < id)) as u32;
        let queue_of = schedule.windows().iter().map(|window| place(window.flow)).collect();
        let access = MediaAccess::new(schedule, integration, raster);
        Self { access, flows, queue_of, capacity: frames as usize, missed, suspended: false }
    }

    /// Whether a frame of which `length` bytes are left may begin without reaching into a window.
    #[inline]
    fn admission<C>(&self, at: &Moment<'_, C>, length: u16) -> Admission {
        if self.suspended {
            return Admission::Now;
        }
        let (from, until) = self.access.others();
        if at.now < from {
            return Admission::NotBefore(from);
        }
        // What holds at `until` and after is not known yet: a port that looks so far ahead asks again then.
        if until == FOREVER || at.now >= until || at.now + at.line.occupation(length) <= until {
            Admission::Now
        } else {
            Admission::NotBefore(until)
        }
    }

    /// The window open now: its queue, the first frame there, and the instant by which that must have ended.
    fn open<'a, C>(&self, at: &Moment<'a, C>) -> Option<(usize, &'a Frame, RunTime)> {
        if at.queues.apart() == 0 || self.suspended {
            return None;
        }
        let open = self.access.open()?;
        let queue = self.queue_of[open.window] as usize;
        Some((queue, at.queues.head(queue)?, open.until))
    }

    /// The queue whose frame fits into its window if it begins at `begins`.
    fn due<C>(&self, at: &Moment<'_, C>, begins: RunTime) -> Option<usize> {
        let (queue, frame, until) = self.open(at)?;
        (begins + at.occupation(frame) <= until).then_some(queue)
    }

    /// Next instant at which a waiting time-triggered frame may begin, interrupt another, or miss its window.
    fn next<C>(&self, at: &Moment<'_, C>, may_cut: bool) -> Deadline {
        if at.queues.apart() == 0 || self.suspended {
            return Deadline::NEVER;
        }
        if let Some((_, frame, until)) = self.open(at)
            && at.now < until
            && at.now + at.occupation(frame) <= until
        {
            return Deadline::at(at.now);
        }
        let acts_while_busy =
            self.access.integration() == Integration::Preemption || self.missed == Missed::Drop || may_cut;
        let again = self.access.again_at();
        Deadline::at(if acts_while_busy { again } else { again.max(at.now) })
    }
}

fn goes_by_window(newcomer: &Newcomer<'_>) -> bool {
    newcomer.frame.class == TrafficClass::TimeTriggered && !newcomer.unscheduled
}

impl<S: Around> TransmissionSelection for TimeTriggered<S> {
    /// Admission of frames without a window.
    #[inline]
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Admission {
        Self::admits(&self.windows, &self.others, at, queue, frame)
    }

    #[inline]
    fn select<C: LocalClock>(&self, at: &Moment<'_, C>) -> Option<usize> {
        self.others.select_by(at, |at, queue, frame| self.admission(at, queue, frame))
    }

    fn next_deadline<C: LocalClock>(&self, at: &Moment<'_, C>) -> Deadline {
        let admission = |at: &Moment<'_, C>, queue, frame: &Frame| self.admission(at, queue, frame);
        let next = self.windows.next(at, self.others.may_cut()).min(earliest(at, admission));
        next.min(self.others.next_cut(at, admission))
    }

    fn urgency(&self, newcomer: &Newcomer<'_>) -> Option<usize> {
        if goes_by_window(newcomer) { None } else { self.others.urgency(newcomer) }
    }

    fn own_queues(&self) -> Vec<usize> {
        alloc::vec![self.windows.capacity; self.windows.flows.len()]
    }

    #[inline]
    fn handle_enqueue<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        newcomer: &Newcomer<'_>,
    ) -> Result<QueuePosition, Cause> {
        if !goes_by_window(newcomer) {
            return self.others.handle_enqueue(at, newcomer);
        }
        if self.windows.suspended {
            return Err(Cause::MissedWindow);
        }
        let flow = self.windows.flows.binary_search(&newcomer.frame.virtual_link);
        flow.map(|at| QueuePosition::last(QUEUES + at)).map_err(|_| Cause::NoWindow)
    }

    #[inline]
    fn handle_begin<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        self.others.handle_begin(at, queue, frame);
    }

    #[inline]
    fn handle_end(&mut self, free_at: RunTime) {
        self.others.handle_end(free_at);
    }

    #[inline]
    fn handle_abort<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        self.others.handle_abort(at, queue, frame);
    }

    #[inline]
    fn handle_discard<C: LocalClock>(&mut self, at: &Moment<'_, C>, place: QueuePosition, frame: &Frame) {
        self.others.handle_discard(at, place, frame);
    }

    fn handle_clock_change<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        self.others.handle_clock_change(at);
        self.windows.access.look_anew(at.now, at.clock);
    }

    /// Gates follow the device's clock and not the cluster: they go on.
    fn handle_synchronised<C: LocalClock>(&mut self, at: &Moment<'_, C>, is_synchronised: bool) {
        self.windows.suspended = !is_synchronised;
        self.windows.access.look_anew(at.now, at.clock);
    }

    fn handle_restart<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        self.others.handle_restart(at);
    }

    fn credit<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize) -> Option<&CreditCourse> {
        self.others.credit(at, queue)
    }

    fn has_schedule(&self) -> bool {
        true
    }

    fn handle_time<C: LocalClock>(&mut self, at: &Moment<'_, C>) -> Option<(usize, Cause)> {
        // The other selection has gates and credits to advance, and drops no frames.
        let _ = self.others.handle_time(at);
        let Windows { access, queue_of, missed, suspended, .. } = &mut self.windows;
        let closed = access.look(at.now, at.clock).filter(|_| !*suspended)?;
        (*missed == Missed::Drop).then(|| (queue_of[closed] as usize, Cause::MissedWindow))
    }

    fn due<C: LocalClock>(&self, at: &Moment<'_, C>, begins: RunTime) -> Option<usize> {
        self.windows.due(at, begins)
    }

    fn gives_way<C: LocalClock>(&self, _at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Option<Frame> {
        let aborts = self.windows.access.integration() == Integration::Preemption;
        (queue < QUEUES && aborts).then_some(*frame)
    }

    fn interrupts<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
    ) -> Option<RunTime> {
        let Self { windows, others } = self;
        others.cut(at, queue, since, |others, until| {
            let then = Moment { now: until, ..*at };
            let admitted = |at: &Moment<'_, C>, queue: usize| {
                let head = at.queues.head(queue);
                head.is_some_and(|frame| Self::admits(windows, others, at, queue, frame) == Admission::Now)
            };
            let express =
                |queue: &usize| others.is_express(*queue) && admitted(at, *queue) && admitted(&then, *queue);
            windows.due(at, until).is_some() || at.queues.occupied().any(|queue| express(&queue))
        })
    }

    #[inline]
    fn watches(&self) -> bool {
        self.others.watches()
    }

    #[inline]
    fn left(&self, queue: usize) -> Option<u16> {
        self.others.left(queue)
    }
}

#[cfg(test)]
mod tests;
