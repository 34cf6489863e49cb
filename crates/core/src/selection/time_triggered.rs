//! Time-triggered windows first, everything else around them.
//!
//! Time-triggered frames wait in queues of their own, one for each flow, and leave in the windows of the port's
//! [schedule](crate::tte::schedule), by the device's local clock. All other frames keep to strict priority;
//! [media access](crate::tte::access) says how they keep clear of the windows: timely block, shuffling or preemption, and
//! the delta raster on top. Of those that may begin, the first of the most urgent queue does: where it would reach into a
//! window, a shorter one of a less urgent queue may go before it (as IEEE Std 802.1Q-2022, 8.6.8.4 has it for gates).
//!
//! A frame whose window closes over it waits for the next or is dropped, by rule.
//!
//! # Synchronisation
//! A device that is of a [synchronised cluster](crate::as6802), and has lost it, has no windows: time-triggered frames that
//! come are dropped, those that wait do so until it is synchronised again, and all others have the line.
//!
//! # Preemption
//! Only a transmission that the driver has answered can be aborted, because only then the port knows when its last
//! bit leaves; a driver that answers at the end gets shuffling. An aborted frame goes back to the head of its queue and
//! is sent again from its beginning. A frame whose last bit has left is not aborted: the time-triggered one waits for
//! its gap.

use alloc::vec::Vec;

use wg_frame::time::RunTime;

use super::{Admission, Moment, Newcomer, TransmissionSelection, next_admission};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::queue::{QUEUES, QueuePosition};
use crate::tte::access::{DeltaRaster, Integration, MediaAccess};
use crate::tte::schedule::PortSchedule;

/// What becomes of a frame that waits when its window closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It waits for the next window of its flow.
    Keep,
    /// It is dropped with [`Cause::MissedWindow`].
    Drop,
}

/// The time-triggered side of a port.
#[derive(Clone, Debug)]
pub struct WindowConfig {
    /// When which flow may send; a window's flow is the critical-traffic identifier of its frames.
    pub schedule: PortSchedule,
    /// How other frames keep clear of the windows.
    pub integration: Integration,
    /// Alternation in fixed slots, on top.
    pub raster: Option<DeltaRaster>,
    /// Frames of each flow that may wait; at least 1.
    pub frames: u32,
    /// What becomes of a frame that misses its window.
    pub missed: Missed,
}

const FOREVER: RunTime = RunTime::from_picos(i64::MAX);

/// The algorithm.
#[derive(Clone, Debug)]
pub struct TimeTriggered {
    access: MediaAccess,
    /// Identifiers of flows with a window, ascending; their queues are in this order.
    flows: Vec<u16>,
    /// By window.
    queue_of: Vec<u32>,
    capacity: usize,
    missed: Missed,
    /// The device is not synchronised: there are no windows.
    suspended: bool,
}

impl TimeTriggered {
    /// Windows by schedule. Time-triggered frames without a window are dropped.
    ///
    /// Panics when `frames` is 0.
    pub fn new(config: WindowConfig) -> Self {
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

    /// Of the window that may be used now: its queue, the first frame there, and when that must have ended.
    fn open<'a, C>(&self, at: &Moment<'a, C>) -> Option<(usize, &'a Frame, RunTime)> {
        if at.queues.apart() == 0 || self.suspended {
            return None;
        }
        let open = self.access.open()?;
        let queue = self.queue_of[open.window] as usize;
        Some((queue, at.queues.head(queue)?, open.until))
    }

    /// When a time-triggered frame that waits may begin, or make another one give way, or miss its window.
    fn next_window<C>(&self, at: &Moment<'_, C>) -> Deadline {
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
            self.access.integration() == Integration::Preemption || self.missed == Missed::Drop;
        let again = self.access.again_at();
        Deadline::at(if acts_while_busy { again } else { again.max(at.now) })
    }

    fn goes_by_window(newcomer: &Newcomer<'_>) -> bool {
        newcomer.frame.class == TrafficClass::TimeTriggered && !newcomer.unscheduled
    }
}

impl TransmissionSelection for TimeTriggered {
    /// Of frames that go by no window.
    #[inline]
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, _queue: usize, frame: &Frame) -> Admission {
        if self.suspended {
            return Admission::Now;
        }
        let (from, until) = self.access.others();
        if at.now < from {
            return Admission::NotBefore(from);
        }
        // What holds at `until` and after is not known yet: a port that looks so far ahead asks again then.
        if until == FOREVER || at.now >= until || at.now + at.occupation(frame) <= until {
            Admission::Now
        } else {
            Admission::NotBefore(until)
        }
    }

    fn next_deadline<C: LocalClock>(&self, at: &Moment<'_, C>) -> Deadline {
        self.next_window(at).min(next_admission(self, at))
    }

    fn urgency(&self, newcomer: &Newcomer<'_>) -> Option<usize> {
        (!Self::goes_by_window(newcomer)).then_some(newcomer.queue)
    }

    fn own_queues(&self) -> Vec<usize> {
        alloc::vec![self.capacity; self.flows.len()]
    }

    #[inline]
    fn handle_enqueue<C: LocalClock>(
        &mut self,
        _at: &Moment<'_, C>,
        newcomer: &Newcomer<'_>,
    ) -> Result<QueuePosition, Cause> {
        if !Self::goes_by_window(newcomer) {
            return Ok(QueuePosition::last(newcomer.queue));
        }
        if self.suspended {
            return Err(Cause::MissedWindow);
        }
        let flow = self.flows.binary_search(&newcomer.frame.virtual_link);
        flow.map(|at| QueuePosition::last(QUEUES + at)).map_err(|_| Cause::NoWindow)
    }

    fn handle_clock_change<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        self.access.look_anew(at.now, at.clock);
    }

    fn handle_synchronised<C: LocalClock>(&mut self, at: &Moment<'_, C>, is_synchronised: bool) {
        self.suspended = !is_synchronised;
        self.access.look_anew(at.now, at.clock);
    }

    fn has_schedule(&self) -> bool {
        true
    }

    fn handle_time<C: LocalClock>(&mut self, at: &Moment<'_, C>) -> Option<(usize, Cause)> {
        let closed = self.access.look(at.now, at.clock).filter(|_| !self.suspended)?;
        (self.missed == Missed::Drop).then(|| (self.queue_of[closed] as usize, Cause::MissedWindow))
    }

    fn due<C: LocalClock>(&self, at: &Moment<'_, C>, begins: RunTime) -> Option<usize> {
        let (queue, frame, until) = self.open(at)?;
        (begins + at.occupation(frame) <= until).then_some(queue)
    }

    fn gives_way<C: LocalClock>(&self, _at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Option<Frame> {
        (queue < QUEUES && self.access.integration() == Integration::Preemption).then_some(*frame)
    }
}

#[cfg(test)]
mod tests;
