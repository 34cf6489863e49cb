//! Transmission selection: which waiting frame of a port begins next, and when (IEEE Std 802.1Q-2022, 8.6.8).
//!
//! A [port](crate::port) has queues and a line; its selection decides in which queue a frame waits, whether the first
//! of a queue may begin, and which queue is next. The port reports events to it: a frame arrives, begins, is cut off or
//! dropped, the line is free, the clock of the device changed, the device restarts. Each event comes with the clock of
//! the device, the line and the queues. State of its own (credit, turns, eligibility times) a selection keeps itself.
//!
//! Every method but [`admission`](TransmissionSelection::admission) has a default, which is strict priority, so an
//! algorithm is written in one file:
//!
//! - [traffic classes](TrafficClasses) give `admission` by the credit of a queue, counted in `handle_begin` and `handle_end`, and by
//!   its gate, whose list is read with the clock: not before it opens, and not unless the frame is through before it closes;
//! - their asynchronous shapers give each frame an eligibility time, and with it a [place](QueuePosition) in the queue, in
//!   `handle_enqueue`, where cyclic queuing gives a frame the queue of the cycle it came in;
//! - round robin overrides [`select`](TransmissionSelection::select);
//! - preemption that sends a frame again overrides [`gives_way`](TransmissionSelection::gives_way), one that sends it in
//!   fragments [`interrupts`](TransmissionSelection::interrupts).
//!
//! [`StrictPriority`] is the one to copy from; [`TimeTriggered`] uses every method, and wraps another selection.
//!
//! # Order of events
//! Each frame that `handle_enqueue` took leaves by `handle_begin` or `handle_discard`, also when it begins without
//! waiting. `handle_abort` brings one back that began. Calls between two events have no effect on the selection. Events
//! come in the order of time, but for `handle_end`: a driver that knows the end of a transmission beforehand reports it
//! at once.

mod asynchronous;
mod credit_based;
mod credit_course;
mod gates;
mod strict_priority;
mod time_triggered;
mod traffic_classes;

use alloc::boxed::Box;
use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

pub use asynchronous::{AsynchronousConfig, SchedulerConfig};
pub use credit_course::{Credit, CreditCourse, CreditPoint};
pub use gates::{GateEntry, GateError, GateList, Gates, HoldAdvances, MacOperation};
pub use strict_priority::StrictPriority;
pub use time_triggered::{Around, Missed, TimeTriggered, WindowConfig};
pub use traffic_classes::{Cyclic, Guard, Preemption, TrafficClassConfig, TrafficClasses};

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::deadline::Deadline;
use crate::frame::Frame;
use crate::line::LineRate;
use crate::queue::{QueuePosition, Queues};

/// State of a port at the instant of a call of its selection.
#[derive(Debug)]
pub struct Moment<'a, C> {
    /// The instant, in true time.
    pub now: RunTime,
    /// The clock of the device.
    pub clock: &'a C,
    /// The line of the port.
    pub line: LineRate,
    /// The queues of the port.
    pub queues: &'a Queues,
}

impl<C> Moment<'_, C> {
    /// Time for which a frame occupies the line, including the gap after it.
    #[inline]
    pub const fn occupation(&self, frame: &Frame) -> Span {
        self.line.occupation(frame.length)
    }
}

/// A frame that arrives at a port.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// The frame.
    pub frame: &'a Frame,
    /// The queue of its priority.
    pub queue: usize,
    /// Whether it ignores the schedule, as a frame of a babbling end system: its queue is the most urgent below
    /// [`QUEUES`](crate::queue::QUEUES).
    pub unscheduled: bool,
}

/// Whether the first frame of a queue may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Start permitted now.
    Now,
    /// Not before this instant, which is later than the moment of the call; ask again then.
    NotBefore(RunTime),
    /// Not until another event.
    Never,
}

/// An algorithm of transmission selection.
pub trait TransmissionSelection {
    /// Whether `frame`, the first of queue `queue`, may begin now.
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Admission;

    /// The queue whose first frame begins now; the line is free.
    #[inline]
    fn select<C: LocalClock>(&self, at: &Moment<'_, C>) -> Option<usize> {
        first_admitted(at, |at, queue, frame| self.admission(at, queue, frame))
    }

    /// When [`select`](Self::select) will name a queue, or the selection needs [`handle_time`](Self::handle_time). The
    /// line is free from the moment on, which may lie ahead.
    #[inline]
    fn next_deadline<C: LocalClock>(&self, at: &Moment<'_, C>) -> Deadline {
        next_admission(self, at)
    }

    /// Urgency of a frame among those that arrive at one instant while the port is idle, greater is more urgent;
    /// `None`: it takes no part in that choice, because it is sent by schedule.
    #[inline]
    fn urgency(&self, newcomer: &Newcomer<'_>) -> Option<usize> {
        Some(newcomer.queue)
    }

    /// Capacities in frames of its own queues beside those of every port, numbered from
    /// [`QUEUES`](crate::queue::QUEUES) on.
    fn own_queues(&self) -> Vec<usize> {
        Vec::new()
    }

    /// A frame arrives; returns its position in a queue, or why it is dropped.
    #[inline]
    fn handle_enqueue<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        newcomer: &Newcomer<'_>,
    ) -> Result<QueuePosition, Cause> {
        let _ = at;
        Ok(QueuePosition::last(newcomer.queue))
    }

    /// A frame begins and no longer waits. The line is taken.
    #[inline]
    fn handle_begin<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        let _ = (at, queue, frame);
    }

    /// The frame that began last, or was cut off, and the gap after it end at `free_at`.
    #[inline]
    fn handle_end(&mut self, free_at: RunTime) {
        let _ = free_at;
    }

    /// The frame that began last is cut off; `frame` waits again in its place, first of queue `queue`.
    #[inline]
    fn handle_abort<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        let _ = (at, queue, frame);
    }

    /// A frame that waited, or found no room, is dropped: the one at `place`, counted from the last.
    #[inline]
    fn handle_discard<C: LocalClock>(&mut self, at: &Moment<'_, C>, place: QueuePosition, frame: &Frame) {
        let _ = (at, place, frame);
    }

    /// The clock of the device was set, or changes its frequency, now.
    #[inline]
    fn handle_clock_change<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        let _ = at;
    }

    /// The device gains or loses synchronisation now; frames are sent by schedule only while it is synchronised.
    #[inline]
    fn handle_synchronised<C: LocalClock>(&mut self, at: &Moment<'_, C>, is_synchronised: bool) {
        let _ = (at, is_synchronised);
    }

    /// The device restarts: the frame on the wire is cut off; waiting frames are removed afterwards without
    /// `handle_discard`.
    #[inline]
    fn handle_restart<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        let _ = at;
    }

    /// Credit of a queue over time, up to now; `None`: the queue has no credit-based shaper.
    fn credit<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize) -> Option<&CreditCourse> {
        let _ = (at, queue);
        None
    }

    /// Whether it has no state and no queues of its own, and any frame may begin at any time: events of frames that
    /// find a free line and an empty port may then be skipped.
    #[inline]
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether frames are sent by a schedule, or in fragments: only then the methods below are called.
    #[inline]
    fn has_schedule(&self) -> bool {
        false
    }

    /// Time advances to the moment; called before any other event of it. Returns a queue whose first frame is to be
    /// dropped, and why.
    #[inline]
    fn handle_time<C: LocalClock>(&mut self, at: &Moment<'_, C>) -> Option<(usize, Cause)> {
        let _ = at;
        None
    }

    /// The queue whose first frame is due by schedule and is to begin at `begins`: now, or where the line is busy a gap
    /// later. It does not wait for other frames of the same instant.
    #[inline]
    fn due<C: LocalClock>(&self, at: &Moment<'_, C>, begins: RunTime) -> Option<usize> {
        let _ = (at, begins);
        None
    }

    /// Whether `frame` of queue `queue`, on the wire now, is aborted for the one that is due, and which frame then
    /// waits at the head of its queue: the same, or what is left of it.
    #[inline]
    fn gives_way<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Option<Frame> {
        let _ = (at, queue, frame);
        None
    }

    /// When the first fragment of the frame on the wire, of queue `queue` and begun at `since`, has to end for a
    /// waiting frame: the instant at which the line is free, gap included. The frame is then cut, and waits at the head
    /// of its queue, as after an abort.
    #[inline]
    fn interrupts<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
    ) -> Option<RunTime> {
        let _ = (at, queue, since);
        None
    }

    /// Whether a deadline may come because of the frame on the wire, though none waits: the port then asks for one.
    #[inline]
    fn watches(&self) -> bool {
        false
    }

    /// Remaining bytes, FCS included, of an interrupted frame at the head of a queue; `None`: it was not interrupted.
    #[inline]
    fn left(&self, queue: usize) -> Option<u16> {
        let _ = queue;
        None
    }
}

/// Earliest instant, now or later, at which the first frame of a queue below [`QUEUES`](crate::queue::QUEUES) may
/// begin.
#[inline]
pub fn next_admission<C: LocalClock>(
    selection: &(impl TransmissionSelection + ?Sized),
    at: &Moment<'_, C>,
) -> Deadline {
    earliest(at, |at, queue, frame| selection.admission(at, queue, frame))
}

/// As [`next_admission`], with the admissions of `admission`.
#[inline]
fn earliest<C: LocalClock>(
    at: &Moment<'_, C>,
    admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
) -> Deadline {
    let admissions =
        at.queues.occupied().filter_map(|queue| match admission(at, queue, at.queues.head(queue)?) {
            Admission::Now => Some(at.now),
            Admission::NotBefore(instant) => Some(instant.max(at.now)),
            Admission::Never => None,
        });
    admissions.min().into()
}

/// The most urgent queue below [`QUEUES`](crate::queue::QUEUES) whose first frame `admission` admits now.
#[inline]
fn first_admitted<C: LocalClock>(
    at: &Moment<'_, C>,
    admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
) -> Option<usize> {
    let admitted = |queue: &usize| {
        let head = at.queues.head(*queue);
        head.is_some_and(|frame| admission(at, *queue, frame) == Admission::Now)
    };
    at.queues.occupied().find(admitted)
}

/// All algorithms, for devices whose ports have different ones.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Strict priority.
    StrictPriority(StrictPriority),
    /// Time-triggered windows, and strict priority around them.
    TimeTriggered(Box<TimeTriggered>),
    /// Traffic classes with shapers and gates.
    TrafficClasses(Box<TrafficClasses>),
    /// Time-triggered windows, and traffic classes around them.
    Converged(Box<TimeTriggered<TrafficClasses>>),
}

/// Dispatches to the variant. Most ports have strict priority, which is inlined; the other algorithms are called out of
/// line.
macro_rules! each {
    ($selection:expr, $of:ident => $what:expr) => {
        match $selection {
            Selection::StrictPriority($of) => $what,
            Selection::TimeTriggered($of) => out_of_line(move || $what),
            Selection::TrafficClasses($of) => out_of_line(move || $what),
            Selection::Converged($of) => out_of_line(move || $what),
        }
    };
}

#[inline(never)]
fn out_of_line<R>(what: impl FnOnce() -> R) -> R {
    what()
}

impl TransmissionSelection for Selection {
    #[inline(always)]
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Admission {
        each!(self, of => of.admission(at, queue, frame))
    }
    #[inline(always)]
    fn select<C: LocalClock>(&self, at: &Moment<'_, C>) -> Option<usize> {
        each!(self, of => of.select(at))
    }
    #[inline(always)]
    fn next_deadline<C: LocalClock>(&self, at: &Moment<'_, C>) -> Deadline {
        each!(self, of => of.next_deadline(at))
    }
    #[inline(always)]
    fn urgency(&self, newcomer: &Newcomer<'_>) -> Option<usize> {
        each!(self, of => of.urgency(newcomer))
    }
    fn own_queues(&self) -> Vec<usize> {
        each!(self, of => of.own_queues())
    }
    #[inline(always)]
    fn handle_enqueue<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        newcomer: &Newcomer<'_>,
    ) -> Result<QueuePosition, Cause> {
        each!(self, of => of.handle_enqueue(at, newcomer))
    }
    #[inline(always)]
    fn handle_begin<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        each!(self, of => of.handle_begin(at, queue, frame));
    }
    #[inline(always)]
    fn handle_end(&mut self, free_at: RunTime) {
        each!(self, of => of.handle_end(free_at));
    }
    #[inline(always)]
    fn handle_abort<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        each!(self, of => of.handle_abort(at, queue, frame));
    }
    #[inline(always)]
    fn handle_discard<C: LocalClock>(&mut self, at: &Moment<'_, C>, place: QueuePosition, frame: &Frame) {
        each!(self, of => of.handle_discard(at, place, frame));
    }
    #[inline(always)]
    fn handle_clock_change<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        each!(self, of => of.handle_clock_change(at));
    }
    fn handle_synchronised<C: LocalClock>(&mut self, at: &Moment<'_, C>, is_synchronised: bool) {
        each!(self, of => of.handle_synchronised(at, is_synchronised));
    }
    #[inline(always)]
    fn handle_restart<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        each!(self, of => of.handle_restart(at));
    }
    fn credit<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize) -> Option<&CreditCourse> {
        each!(self, of => of.credit(at, queue))
    }
    #[inline(always)]
    fn is_plain(&self) -> bool {
        matches!(self, Self::StrictPriority(_))
    }
    #[inline(always)]
    fn has_schedule(&self) -> bool {
        each!(self, of => of.has_schedule())
    }
    #[inline(always)]
    fn handle_time<C: LocalClock>(&mut self, at: &Moment<'_, C>) -> Option<(usize, Cause)> {
        each!(self, of => of.handle_time(at))
    }
    #[inline(always)]
    fn due<C: LocalClock>(&self, at: &Moment<'_, C>, begins: RunTime) -> Option<usize> {
        each!(self, of => of.due(at, begins))
    }
    #[inline(always)]
    fn gives_way<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Option<Frame> {
        each!(self, of => of.gives_way(at, queue, frame))
    }
    #[inline(always)]
    fn interrupts<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
    ) -> Option<RunTime> {
        each!(self, of => of.interrupts(at, queue, since))
    }
    #[inline(always)]
    fn watches(&self) -> bool {
        each!(self, of => of.watches())
    }
    #[inline(always)]
    fn left(&self, queue: usize) -> Option<u16> {
        each!(self, of => of.left(queue))
    }
}
