//! The egress port of a device that knows time-triggered traffic: windows first, everything else around them.
//!
//! Time-triggered frames wait in buffers of their own, one for each flow, and leave in the windows of the port's
//! [schedule](crate::tte::schedule), by the device's local clock. All other frames wait in the queues of an
//! [`EgressPort`] in strict priority; [media access](crate::tte::access) says how they keep clear of the windows:
//! timely block, shuffling or preemption, and the delta raster on top. Of those that may begin, the first of the most
//! urgent queue does: where it would reach into a window, a shorter one of a less urgent queue may go before it (as
//! IEEE Std 802.1Q-2022, 8.6.8.4 has it for gates).
//!
//! Buffers of windows are bounded in frames and lie outside the shared buffer, as memory a device sets aside for its
//! schedule. When a buffer is full the oldest frame in it gives way to the new one: a time-triggered message is a
//! state, and the young one is worth more. A frame whose window closes over it waits for the next or is dropped, by
//! rule.
//!
//! A port without a schedule costs a comparison more than a plain one, so a device may have this kind everywhere.
//!
//! # Preemption
//! Only a transmission that the driver has answered can be aborted, because only then the port knows when its last
//! bit leaves; a driver that answers at the end gets shuffling. An aborted frame goes back to the head of its queue and
//! is sent again from its beginning. A frame whose last bit has left is not aborted: the time-triggered one waits for
//! its gap.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::deadline::Deadline;
use crate::frame::{Frame, TrafficClass};
use crate::line::{GAP, LineRate};
use crate::oscillator::LocalClock;
use crate::port::{Admission, Device, Effect, Egress, EgressPort, Gate, PortConfig, Transmission};
use crate::queue::{Fill, QUEUES};
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

/// When other frames may be on the line.
#[derive(Clone, Copy, Debug)]
struct Others {
    from: RunTime,
    until: RunTime,
}

impl Gate for Others {
    #[inline]
    fn admission(&self, now: RunTime, _queue: usize, _frame: &Frame, occupation: Span) -> Admission {
        if now < self.from {
            return Admission::NotBefore(self.from);
        }
        // What holds at `until` and after is not known yet: a port that looks so far ahead asks again then.
        if self.until == FOREVER || now >= self.until || now + occupation <= self.until {
            Admission::Now
        } else {
            Admission::NotBefore(self.until)
        }
    }
}

const FOREVER: RunTime = RunTime::from_picos(i64::MAX);

#[derive(Clone, Debug)]
struct Buffer {
    id: u16,
    frames: VecDeque<Frame>,
}

#[derive(Clone, Debug)]
struct Windows {
    access: MediaAccess,
    /// Ascending by identifier.
    buffers: Vec<Buffer>,
    /// By window.
    buffer_of: Vec<u32>,
    capacity: usize,
    missed: Missed,
    waiting: u32,
}

/// An egress port with time-triggered windows, or without.
#[derive(Clone, Debug)]
pub struct CriticalPort<C> {
    port: EgressPort<Others>,
    windows: Option<Box<Windows>>,
    clock: PhantomData<fn() -> C>,
}

impl<C: LocalClock> CriticalPort<C> {
    /// A port without a schedule: time-triggered frames are frames like others.
    pub fn new(config: PortConfig) -> Self {
        let always = Others { from: RunTime::from_picos(i64::MIN), until: FOREVER };
        Self { port: EgressPort::new(config, always), windows: None, clock: PhantomData }
    }

    /// A port with a schedule. Time-triggered frames without a window are dropped.
    ///
    /// Panics when `frames` is 0.
    pub fn with_windows(config: PortConfig, windows: WindowConfig) -> Self {
        let WindowConfig { schedule, integration, raster, frames, missed } = windows;
        assert!(frames > 0, "wg-core misuse: the buffer of a window holds at least one frame");
        let mut ids: Vec<u16> = schedule.windows().iter().map(|window| window.flow).collect();
        ids.sort_unstable();
        ids.dedup();
        let place = |id: u16| ids.partition_point(|other| *other < id) as u32;
        let buffer_of = schedule.windows().iter().map(|window| place(window.flow)).collect();
        let buffers = ids.iter().map(|&id| Buffer { id, frames: VecDeque::new() }).collect();
        let windows = Windows {
            access: MediaAccess::new(schedule, integration, raster),
            buffers,
            buffer_of,
            capacity: frames as usize,
            missed,
            waiting: 0,
        };
        Self { windows: Some(Box::new(windows)), ..Self::new(config) }
    }

    /// Time-triggered frames that wait.
    pub fn in_windows(&self) -> u32 {
        self.windows.as_ref().map_or(0, |windows| windows.waiting)
    }

    /// Looks at schedule and raster at `now` and drops what missed its window.
    fn look(&mut self, now: RunTime, device: &mut Device<C>, effect: &mut impl FnMut(Effect)) {
        self.port.pass(now);
        let Some(windows) = &mut self.windows else { return };
        let closed = windows.access.look(now, &device.clock);
        if let (Some(window), Missed::Drop) = (closed, windows.missed) {
            let buffer = windows.buffer_of[window] as usize;
            while let Some(frame) = windows.buffers[buffer].frames.pop_front() {
                windows.waiting -= 1;
                device.in_windows -= 1;
                effect(Effect::Drop { frame, cause: Cause::MissedWindow });
            }
        }
        let (from, until) = windows.access.others();
        *self.port.gate_mut() = Others { from, until };
    }

    /// Begins the time-triggered frame that may begin at `now`, or makes way for it.
    fn begin_time_triggered(
        &mut self,
        now: RunTime,
        device: &mut Device<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let Some(windows) = self.windows.as_mut().filter(|windows| windows.waiting > 0) else { return };
        let Some(free_at) = self.port.free_at() else { return };
        let line = self.port.line();
        let Some((buffer, occupation, until)) = windows.due(line) else { return };
        if free_at <= now {
            if now + occupation <= until
                && let Some(frame) = windows.buffers[buffer].frames.pop_front()
            {
                windows.waiting -= 1;
                device.in_windows -= 1;
                let transmission = self.port.begin_from_outside(now, frame);
                effect(Effect::Transmit { frame, transmission });
            }
        } else if windows.access.integration() == Integration::Preemption
            && now + line.time_of(GAP) + occupation <= until
            && let Some((frame, transmission)) = self.port.abort(now, &mut device.buffer)
        {
            effect(Effect::Abort { frame, transmission });
        }
    }

    fn offer_other(
        &mut self,
        queue: Option<usize>,
        now: RunTime,
        frame: Frame,
        device: &mut Device<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        let begun = match queue {
            None => self.port.offer(now, frame, &mut device.buffer),
            Some(queue) => self.port.offer_to(queue, now, frame, &mut device.buffer),
        };
        match begun {
            Ok(Some(transmission)) => effect(Effect::Transmit { frame, transmission }),
            Ok(None) => {}
            Err(full) => effect(Effect::Drop { frame, cause: Cause::Full(full) }),
        }
    }

    /// When a time-triggered frame that waits may begin, or make another one give way, or miss its window.
    fn next_time_triggered(&self) -> Deadline {
        let Some(windows) = self.windows.as_ref().filter(|windows| windows.waiting > 0) else {
            return Deadline::NEVER;
        };
        let Some(free_at) = self.port.free_at() else { return Deadline::NEVER };
        let from = free_at.max(self.port.seen());
        let again = windows.access.again_at();
        if let Some((_, occupation, until)) = windows.due(self.port.line())
            && from < until
            && from + occupation <= until
        {
            return Deadline::at(from);
        }
        let acts_while_busy =
            windows.access.integration() == Integration::Preemption || windows.missed == Missed::Drop;
        Deadline::at(if acts_while_busy { again } else { again.max(from) })
    }
}

impl Windows {
    /// Of the window that may be used now: its buffer, how long the first frame in it occupies the line, and when
    /// that must have ended.
    fn due(&self, line: LineRate) -> Option<(usize, Span, RunTime)> {
        let open = self.access.open()?;
        let buffer = self.buffer_of[open.window] as usize;
        let frame = self.buffers[buffer].frames.front()?;
        Some((buffer, line.occupation(frame.length), open.until))
    }
}

impl<C: LocalClock> Egress for CriticalPort<C> {
    type Clock = C;

    #[inline]
    fn handle_frame(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut Device<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        if self.windows.is_none() {
            self.offer_other(None, now, frame, device, effect);
            return;
        }
        self.look(now, device, effect);
        if frame.class == TrafficClass::TimeTriggered
            && let Some(windows) = &mut self.windows
        {
            let Ok(at) = windows.buffers.binary_search_by_key(&frame.virtual_link, |buffer| buffer.id) else {
                effect(Effect::Drop { frame, cause: Cause::NoWindow });
                return;
            };
            let waiting = &mut windows.buffers[at].frames;
            waiting.push_back(frame);
            windows.waiting += 1;
            device.in_windows += 1;
            if waiting.len() > windows.capacity
                && let Some(frame) = waiting.pop_front()
            {
                windows.waiting -= 1;
                device.in_windows -= 1;
                effect(Effect::Drop { frame, cause: Cause::Superseded });
            }
            self.begin_time_triggered(now, device, effect);
        } else {
            self.begin_time_triggered(now, device, effect);
            self.offer_other(None, now, frame, device, effect);
        }
    }

    fn handle_unscheduled(
        &mut self,
        now: RunTime,
        frame: Frame,
        device: &mut Device<C>,
        effect: &mut impl FnMut(Effect),
    ) {
        self.look(now, device, effect);
        self.begin_time_triggered(now, device, effect);
        self.offer_other(Some(QUEUES - 1), now, frame, device, effect);
    }

    #[inline]
    fn handle_deadline(&mut self, now: RunTime, device: &mut Device<C>, effect: &mut impl FnMut(Effect)) {
        if self.windows.is_some() {
            self.look(now, device, effect);
            self.begin_time_triggered(now, device, effect);
        }
        if let Some((frame, transmission)) = self.port.begin_next(now, &mut device.buffer) {
            effect(Effect::Transmit { frame, transmission });
        }
    }

    fn handle_line_free(&mut self, transmission: Transmission, free_at: RunTime) {
        self.port.handle_line_free(transmission, free_at);
    }

    fn handle_clock_change(&mut self, now: RunTime, device: &Device<C>) {
        if let Some(windows) = &mut self.windows {
            windows.access.look_anew(now, &device.clock);
            let (from, until) = windows.access.others();
            *self.port.gate_mut() = Others { from, until };
        }
    }

    fn handle_restart(&mut self, now: RunTime, device: &mut Device<C>, effect: &mut impl FnMut(Effect)) {
        self.port.restart(now, &mut device.buffer, effect);
        let Some(windows) = &mut self.windows else { return };
        for frame in windows.buffers.iter_mut().flat_map(|buffer| buffer.frames.drain(..)) {
            effect(Effect::Drop { frame, cause: Cause::Down });
        }
        device.in_windows -= windows.waiting;
        windows.waiting = 0;
    }

    #[inline]
    fn next_deadline(&self) -> Deadline {
        let others = self.port.next_deadline();
        if self.windows.is_none() { others } else { others.min(self.next_time_triggered()) }
    }

    fn is_empty(&self) -> bool {
        self.port.is_empty() && self.in_windows() == 0
    }

    fn is_idle(&self, now: RunTime) -> bool {
        self.port.is_idle(now)
    }

    fn urgency(&self, frame: &Frame) -> Option<usize> {
        let by_window = self.windows.is_some() && frame.class == TrafficClass::TimeTriggered;
        if by_window { None } else { self.port.urgency(frame) }
    }

    fn line(&self) -> LineRate {
        self.port.line()
    }

    fn fill(&self) -> Fill {
        self.port.fill()
    }

    fn peak_bytes(&self) -> u64 {
        self.port.peak_bytes()
    }
}

#[cfg(test)]
mod tests;
