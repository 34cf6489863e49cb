//! Sending at planned instants, and judging what arrives against them.
//!
//! - [`Dispatcher`]: the end system hands over messages whenever it likes; one leaves at each planned instant.
//! - [`AcceptanceWindow`]: a frame received outside the planned window is dropped as early or late.
//! - [`permanence_pit`] and [`PermanenceQueue`]: hold a protocol control frame until every older one must have
//!   arrived, which restores the order of sending.
//!
//! # Time
//! Late calls change neither what is sent in which instant nor the order: instants are computed, and a message
//! handed in after an instant has no part in it. A message handed in at the very instant is in time unless
//! [`Dispatcher::handle_deadline`] was called for it before. A call earlier than one before (the local clock was
//! set back) counts as made at the later instant. Poll until empty after each call.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::Span;
pub use wg_frame::tte::TransparentClock;

use crate::clock::LocalTime;

/// Treatment of messages that come faster than the schedule sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortMode {
    /// The last one wins (state message). The cards of the MAPS evaluation behave so: of several messages within one
    /// period "only the last packet would be transmitted".
    Sampling,
    /// They wait in order, at most this many.
    Queuing(usize),
}

/// Instants offset + k·period that make no schedule: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstantsError {
    /// The period is not positive or the offset not within it.
    #[error("offset {offset} does not lie within period {period}; choose 0 <= offset < period")]
    Offset {
        /// The first instant.
        offset: Span,
        /// Time between instants.
        period: Span,
    },
    /// A queue without capacity.
    #[error("a dispatch queue for 0 messages sends nothing; give it room for at least 1")]
    NoRoom,
    /// The window around an instant reaches the next one's.
    #[error("a window of {early} before to {late} after does not fit period {period}; make it narrower")]
    Window {
        /// Time allowed before the instant.
        early: Span,
        /// Time allowed after it.
        late: Span,
        /// Time between instants.
        period: Span,
    },
}

/// Planned instants in local time: offset + k·period for every whole k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instants {
    offset_ps: i64,
    period_ps: i64,
}

impl Instants {
    /// Instants `period` apart, one of them at `offset`.
    ///
    /// # Errors
    /// [`InstantsError::Offset`] unless 0 ≤ offset < period.
    pub fn new(offset: Span, period: Span) -> Result<Self, InstantsError> {
        if offset < Span::ZERO || offset >= period {
            return Err(InstantsError::Offset { offset, period });
        }
        Ok(Self { offset_ps: offset.as_picos(), period_ps: period.as_picos() })
    }
    /// The first planned instant at or after `time`.
    pub fn at_or_after(&self, time: LocalTime) -> LocalTime {
        time + Span::from_picos((-self.since_ps(time)).rem_euclid(self.period_ps))
    }
    /// Time in ps since the last planned instant at or before `time`.
    #[expect(clippy::cast_possible_truncation, reason = "less than the period")]
    fn since_ps(&self, time: LocalTime) -> i64 {
        (i128::from(time.as_picos()) - i128::from(self.offset_ps)).rem_euclid(i128::from(self.period_ps))
            as i64
    }
}

/// An effect of a dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch<M> {
    /// Send this message; it belongs to instant `at`.
    Send {
        /// The message.
        message: M,
        /// The planned instant.
        at: LocalTime,
    },
    /// No message was waiting at this instant and the `count` − 1 after it.
    Empty {
        /// The first empty instant.
        first: LocalTime,
        /// Number of empty instants.
        count: u64,
    },
}

/// A message that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent<M> {
    /// A younger one replaced it.
    Overwritten(M),
    /// The queue was full.
    QueueFull(M),
}

/// Time-triggered sending of one flow.
#[derive(Clone, Debug)]
pub struct Dispatcher<M> {
    instants: Instants,
    buffer: PortMode,
    waiting: VecDeque<M>,
    next: LocalTime,
    now: LocalTime,
    done: VecDeque<Dispatch<M>>,
}

impl<M> Dispatcher<M> {
    /// A dispatcher whose first instant is the first at or after `start`.
    ///
    /// # Errors
    /// [`InstantsError::NoRoom`] for a queue without capacity.
    pub fn new(instants: Instants, buffer: PortMode, start: LocalTime) -> Result<Self, InstantsError> {
        if buffer == PortMode::Queuing(0) {
            return Err(InstantsError::NoRoom);
        }
        let next = instants.at_or_after(start);
        Ok(Self { instants, buffer, waiting: VecDeque::new(), next, now: start, done: VecDeque::new() })
    }

    /// Takes a message; returns the one that is dropped for it, if any.
    pub fn handle_message(&mut self, now: LocalTime, message: M) -> Option<Unsent<M>> {
        self.now = self.now.max(now);
        if self.next < self.now {
            self.dispatch(self.now - Span::from_picos(1));
        }
        match self.buffer {
            PortMode::Sampling => {
                let old = self.waiting.pop_front();
                self.waiting.push_back(message);
                old.map(Unsent::Overwritten)
            }
            PortMode::Queuing(capacity) if self.waiting.len() < capacity => {
                self.waiting.push_back(message);
                None
            }
            PortMode::Queuing(_) => Some(Unsent::QueueFull(message)),
        }
    }

    /// The local clock has reached `now`: instants up to and including it have passed. At most one output for each
    /// waiting message, and one more for all empty instants.
    pub fn handle_deadline(&mut self, now: LocalTime) {
        self.now = self.now.max(now);
        self.dispatch(self.now);
    }

    /// The local clock was changed and now shows `now`. Set forward, it skips the instants between; set back, it
    /// repeats instants.
    pub fn handle_clock_change(&mut self, now: LocalTime) {
        let first = self.instants.at_or_after(now);
        self.next = if now < self.now { first } else { self.next.max(first) };
        self.now = now;
    }

    /// The end system restarts at `now`: waiting messages are handed back.
    pub fn handle_reset(&mut self, now: LocalTime) -> impl Iterator<Item = M> + '_ {
        (self.next, self.now) = (self.instants.at_or_after(now), now);
        self.done.clear();
        self.waiting.drain(..)
    }

    /// Number of messages that wait for their instants.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether [`poll_output`](Self::poll_output) has an effect.
    pub fn has_output(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next effect, oldest first.
    pub fn poll_output(&mut self) -> Option<Dispatch<M>> {
        self.done.pop_front()
    }

    /// The next planned instant. There always is one, also without messages: an empty instant is an event.
    pub const fn next_deadline(&self) -> LocalTime {
        self.next
    }

    fn dispatch(&mut self, last: LocalTime) {
        let period = Span::from_picos(self.instants.period_ps);
        while self.next <= last {
            if let Some(message) = self.waiting.pop_front() {
                self.done.push_back(Dispatch::Send { message, at: self.next });
                self.next = self.next + period;
            } else {
                let more = (last - self.next).as_picos() / self.instants.period_ps;
                self.done.push_back(Dispatch::Empty { first: self.next, count: more.unsigned_abs() + 1 });
                self.next = self.next + Span::from_picos(more * self.instants.period_ps) + period;
            }
        }
    }
}

/// Position of a received frame relative to its acceptance window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// In the window, this much after the planned instant (negative: before).
    InSchedule(Span),
    /// Drop it: this much before the window opened.
    Early(Span),
    /// Drop it: this much after the window closed.
    Late(Span),
}

/// The window around each planned instant of reception. Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptanceWindow {
    instants: Instants,
    early_ps: i64,
    late_ps: i64,
}

impl AcceptanceWindow {
    /// A window from `early` before each instant to `late` after it.
    ///
    /// # Errors
    /// [`InstantsError::Window`] if either is negative or the window reaches that of the next instant.
    pub fn new(instants: Instants, early: Span, late: Span) -> Result<Self, InstantsError> {
        let period = Span::from_picos(instants.period_ps);
        let width = early.checked_add(late);
        if early < Span::ZERO || late < Span::ZERO || width.is_none_or(|width| width >= period) {
            return Err(InstantsError::Window { early, late, period });
        }
        Ok(Self { instants, early_ps: early.as_picos(), late_ps: late.as_picos() })
    }

    /// Judges a frame received at `local`. Between two windows the nearer names the reason; halfway it is late,
    /// since a frame can be delayed but not sped up.
    pub fn judge(&self, local: LocalTime) -> Acceptance {
        let after_ps = self.instants.since_ps(local);
        let before_ps = self.instants.period_ps - after_ps;
        if after_ps <= self.late_ps {
            return Acceptance::InSchedule(Span::from_picos(after_ps));
        }
        if before_ps <= self.early_ps {
            return Acceptance::InSchedule(Span::from_picos(-before_ps));
        }
        let (late_ps, early_ps) = (after_ps - self.late_ps, before_ps - self.early_ps);
        if late_ps <= early_ps {
            Acceptance::Late(Span::from_picos(late_ps))
        } else {
            Acceptance::Early(Span::from_picos(early_ps))
        }
    }
}

/// A frame that took longer than the plan's greatest transmission delay: its clock is damaged or the plan wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transparent clock shows {shown}, more than max_transmission_delay {limit}; drop the frame")]
pub struct TooLongUnderway {
    /// The frame's transparent clock: delay collected on its way.
    pub shown: Span,
    /// Greatest transmission delay of the plan.
    pub limit: Span,
}

/// Instant at which a frame received at `receive_pit` is permanent: receive_pit + (max_transmission_delay −
/// transparent_clock) (SAE AS6802 permanence function; ECSS-E-ST-50-16C).
///
/// # Errors
/// [`TooLongUnderway`] where the permanence delay would be negative.
pub fn permanence_pit(
    receive_pit: LocalTime,
    max_transmission_delay: Span,
    transparent_clock: TransparentClock,
) -> Result<LocalTime, TooLongUnderway> {
    let shown = transparent_clock.delay();
    if shown > max_transmission_delay {
        return Err(TooLongUnderway { shown, limit: max_transmission_delay });
    }
    Ok(receive_pit + (max_transmission_delay - shown))
}

/// Reason why a frame was not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// Negative permanence delay.
    TooLongUnderway(TooLongUnderway),
    /// The queue holds its greatest number of frames.
    Full {
        /// Greatest number of frames.
        capacity: usize,
    },
}

/// Holds received frames until they are permanent, and gives them out in that order.
#[derive(Clone, Debug)]
pub struct PermanenceQueue<F> {
    max_transmission_delay: Span,
    capacity: usize,
    /// Held frames, descending by permanence, and by arrival among equals, so that the next is last.
    held: Vec<(LocalTime, F)>,
    now: LocalTime,
}

impl<F> PermanenceQueue<F> {
    /// A queue for at most `capacity` frames.
    pub const fn new(max_transmission_delay: Span, capacity: usize) -> Self {
        let now = LocalTime::from_picos(i64::MIN);
        Self { max_transmission_delay, capacity, held: Vec::new(), now }
    }

    /// Holds a frame received at `now`. Work: a binary search and a move of those held.
    ///
    /// # Errors
    /// The frame, with the reason to drop it.
    pub fn handle_frame(
        &mut self,
        now: LocalTime,
        transparent_clock: TransparentClock,
        frame: F,
    ) -> Result<(), (F, NotHeld)> {
        self.now = self.now.max(now);
        let pit = match permanence_pit(self.now, self.max_transmission_delay, transparent_clock) {
            Ok(pit) => pit,
            Err(error) => return Err((frame, NotHeld::TooLongUnderway(error))),
        };
        if self.held.len() >= self.capacity {
            return Err((frame, NotHeld::Full { capacity: self.capacity }));
        }
        let place = self.held.partition_point(|(other, _)| *other > pit);
        self.held.insert(place, (pit, frame));
        Ok(())
    }

    /// The local clock has reached `now`.
    pub fn handle_deadline(&mut self, now: LocalTime) {
        self.now = self.now.max(now);
    }

    /// The next frame that is permanent, with the instant since which it is.
    pub fn poll_output(&mut self) -> Option<(LocalTime, F)> {
        self.next_deadline().filter(|pit| *pit <= self.now)?;
        self.held.pop()
    }

    /// Instant at which the next frame becomes permanent; `None`: none is held.
    pub fn next_deadline(&self) -> Option<LocalTime> {
        self.held.last().map(|(pit, _)| *pit)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    const PERIOD: i64 = 1_000;

    fn at(ps: i64) -> LocalTime {
        LocalTime::from_picos(ps)
    }
    fn ps(ps: i64) -> Span {
        Span::from_picos(ps)
    }
    fn instants(offset: i64) -> Instants {
        Instants::new(ps(offset), ps(PERIOD)).unwrap()
    }

    /// What was sent at which instant, and how many instants were empty.
    fn sent(buffer: PortMode, arrivals: &[i64], wake: i64) -> (Vec<(usize, i64)>, u64, usize) {
        let mut core = Dispatcher::new(instants(100), buffer, at(0)).unwrap();
        let (mut out, mut empty, mut unsent) = (Vec::new(), 0, 0);
        let mut take = |core: &mut Dispatcher<usize>| {
            while let Some(dispatch) = core.poll_output() {
                match dispatch {
                    Dispatch::Send { message, at } => out.push((message, at.as_picos())),
                    Dispatch::Empty { count, .. } => empty += count,
                }
            }
        };
        for (message, &arrival) in arrivals.iter().enumerate() {
            // A prompt driver wakes at the deadlines; a late one only now and then.
            while wake > 0 && core.next_deadline() < at(arrival) {
                let due = core.next_deadline();
                core.handle_deadline(due + ps((arrival - due.as_picos() - 1).min(wake - 1)));
                take(&mut core);
            }
            unsent += usize::from(core.handle_message(at(arrival), message).is_some());
            take(&mut core);
        }
        core.handle_deadline(at(200_000));
        take(&mut core);
        (out, empty, unsent)
    }

    proptest! {
        /// Oracle: at each instant look at the whole list of arrivals again.
        #[test]
        fn the_last_message_before_an_instant_is_sent(
            mut arrivals in prop::collection::vec(0_i64..100_000, 0..60), wake in 0_i64..5_000,
        ) {
            arrivals.sort_unstable();
            let expected: Vec<_> = (0..200).map(|k| 100 + k * PERIOD).filter_map(|instant| {
                let last = arrivals.iter().rposition(|&arrival| arrival <= instant)?;
                (arrivals[last] > instant - PERIOD).then_some((last, instant))
            }).collect();
            let (out, empty, unsent) = sent(PortMode::Sampling, &arrivals, wake);
            prop_assert_eq!(unsent, arrivals.len() - expected.len());
            prop_assert_eq!(empty, 200 - expected.len() as u64);
            prop_assert_eq!(out, expected);
        }

        /// Without a limit that bites, each message gets the first free instant at or after its arrival.
        #[test]
        fn a_queue_sends_each_message_once_and_in_order(
            mut arrivals in prop::collection::vec(0_i64..100_000, 0..60), wake in 0_i64..5_000,
        ) {
            arrivals.sort_unstable();
            let mut free = 0;
            let expected: Vec<_> = arrivals.iter().enumerate().map(|(message, &arrival)| {
                let instant = 100 + ((arrival - 100).max(0) + PERIOD - 1) / PERIOD * PERIOD;
                let instant = instant.max(free);
                free = instant + PERIOD;
                (message, instant)
            }).collect();
            let (out, empty, unsent) = sent(PortMode::Queuing(60), &arrivals, wake);
            prop_assert_eq!((unsent, empty), (0, 200 - arrivals.len() as u64));
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn a_frame_is_in_schedule_exactly_within_a_window(
            offset in 0_i64..PERIOD, early in 0_i64..500, late in 0_i64..500, local in -5_000_i64..5_000,
        ) {
            let window = AcceptanceWindow::new(instants(offset), ps(early), ps(late)).unwrap();
            let nearest = (-7..=7).map(|k| local - offset - k * PERIOD);
            let inside = nearest.clone().find(|off| (-early..=late).contains(off));
            match window.judge(at(local)) {
                Acceptance::InSchedule(off) => prop_assert_eq!(Some(off.as_picos()), inside),
                verdict => {
                    prop_assert_eq!(inside, None);
                    let late_by = nearest.clone().filter(|off| *off > 0).map(|off| off - late).min().unwrap();
                    let early_by = nearest.filter(|off| *off < 0).map(|off| -off - early).min().unwrap();
                    prop_assert_eq!(verdict, if late_by <= early_by {
                        Acceptance::Late(ps(late_by))
                    } else {
                        Acceptance::Early(ps(early_by))
                    });
                }
            }
        }

        /// Frames sent in order and delayed at will come out in the order sent, each max_transmission_delay
        /// after its sending; the oracle is the order itself.
        #[test]
        fn permanence_restores_the_order_of_sending(
            frames in prop::collection::vec((1_i64..1_000, 0_i64..=50_000), 1..60), late in 0_i64..100_000,
        ) {
            let mut sent_at = 0;
            let mut arrivals = Vec::new();
            for (frame, (gap, delay)) in frames.iter().enumerate() {
                sent_at += gap;
                arrivals.push((sent_at + delay, *delay, frame, sent_at));
            }
            let planned: Vec<_> = arrivals.iter().map(|a| (at(a.3 + 50_000), a.2)).collect();
            arrivals.sort_unstable();
            let mut queue = PermanenceQueue::new(ps(50_000), 60);
            let mut out = Vec::new();
            for (received, delay, frame, _) in arrivals {
                queue.handle_deadline(at(received - late.min(received)));
                out.extend(core::iter::from_fn(|| queue.poll_output()));
                let clock = TransparentClock::from_delay(ps(delay)).unwrap();
                queue.handle_frame(at(received), clock, frame).unwrap();
            }
            queue.handle_deadline(at(i64::MAX));
            out.extend(core::iter::from_fn(|| queue.poll_output()));
            prop_assert_eq!(out, planned);
        }
    }

    #[test]
    fn wrong_dispatch_is_found_out() {
        let arrivals = [10, 50, 100, 101, 5_000];
        let right = (vec![(2, 100), (3, 1_100), (4, 5_100)], 197, 2);
        assert_eq!(sent(PortMode::Sampling, &arrivals, 0), right);
        assert_ne!(sent(PortMode::Queuing(1), &arrivals, 0), right, "the first wins instead of the last");
        assert_ne!(
            sent(PortMode::Sampling, &[10, 50, 101, 101, 5_000], 0),
            right,
            "at the instant is in time"
        );
        let clocks = |shown: u64| permanence_pit(at(0), ps(1_000), TransparentClock(shown));
        assert_eq!(clocks(65_536), Ok(at(0)), "one nanosecond is 65536 units");
        assert_eq!(clocks(0), Ok(at(1_000)));
        let error = TooLongUnderway { shown: ps(1_001), limit: ps(1_000) };
        assert_eq!(clocks(65_602), Err(error));
    }

    #[test]
    fn halfway_between_two_instants_is_late() {
        let window = AcceptanceWindow::new(instants(0), ps(100), ps(100)).unwrap();
        assert_eq!(window.judge(at(500)), Acceptance::Late(ps(400)));
        assert_eq!(window.judge(at(501)), Acceptance::Early(ps(399)));
    }

    #[test]
    fn a_clock_set_back_makes_no_frame_permanent_earlier() {
        let mut queue = PermanenceQueue::new(ps(1_000), 2);
        queue.handle_deadline(at(500));
        assert_eq!(queue.handle_frame(at(100), TransparentClock(0), 'a'), Ok(()));
        assert_eq!(queue.next_deadline(), Some(at(1_500)));
        queue.handle_deadline(at(1_499));
        assert_eq!(queue.poll_output(), None);
        queue.handle_deadline(at(1_500));
        assert_eq!(queue.poll_output(), Some((at(1_500), 'a')));
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        for (offset, period) in [(-1, 5), (5, 5), (0, 0), (0, -3)] {
            assert!(Instants::new(ps(offset), ps(period)).is_err());
        }
        for (early, late) in [(-1, 0), (0, -1), (500, 500), (i64::MAX, 1)] {
            assert!(AcceptanceWindow::new(instants(0), ps(early), ps(late)).is_err());
        }
        let none = Dispatcher::<u8>::new(instants(0), PortMode::Queuing(0), at(0));
        assert_eq!(none.err(), Some(InstantsError::NoRoom));
        let mut full = PermanenceQueue::new(ps(1_000), 1);
        assert_eq!(full.handle_frame(at(0), TransparentClock(0), 'a'), Ok(()));
        let refused = full.handle_frame(at(0), TransparentClock(0), 'b');
        assert_eq!(refused, Err(('b', NotHeld::Full { capacity: 1 })));
        let mut core = Dispatcher::new(instants(0), PortMode::Queuing(1), at(1)).unwrap();
        assert_eq!(core.handle_message(at(1), 'a'), None);
        assert_eq!(core.handle_message(at(1), 'b'), Some(Unsent::QueueFull('b')));
    }
}
