//! Credit-based shaping (IEEE Std 802.1Q-2022, 8.6.8.2 and Annex L): a queue sends at its idle slope on average,
//! whatever waits.
//!
//! A shaped queue has a credit in bits. It falls at `idle slope - line rate` while a frame of the queue is on the wire,
//! preamble and gap included, rises at the idle slope while frames of the queue wait, and otherwise rises to zero at
//! most. A credit above zero is lost when the queue runs empty. While the gate of the queue is closed it does not rise.
//! The first frame may begin unless the credit is below zero. Queues without a slope, and shaped ones among themselves,
//! have strict priority.
//!
//! Credits are exact: a slope is whole bits per second and time is whole picoseconds, so a credit is a whole number of
//! 10^-12 bits. Times are true time, as the line's are. A [course](super::credit_course) records the corners of each
//! credit.

use alloc::boxed::Box;

use wg_frame::time::{RunTime, Span};

use super::Moment;
use super::credit_course::{Credit, CreditCourse};
use crate::line::LineRate;
use crate::queue::PRIORITIES;

const PICO: Credit = 1_000_000_000_000;

/// Greatest number of corners of a credit between two settlements: sent so far, at zero, now.
const MOST_CORNERS: usize = 3;

/// A shaped queue.
#[derive(Clone, Debug)]
struct Shaper {
    idle_slope: u64,
    /// Credit at `since`.
    credit: Credit,
    since: RunTime,
    sending: Sending,
    course: Box<CreditCourse>,
}

/// Whether a frame of the queue is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    No,
    /// Yes; the end is not reported yet.
    Yes,
    /// Until this instant, gap included.
    Until(RunTime),
}

/// State of a queue since its credit was settled last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// Whether frames waited.
    pub(super) waited: bool,
    /// Whether its gate was open.
    pub(super) open: bool,
}

impl Shaper {
    #[inline]
    fn credit_at(&self, now: RunTime, was: Since, line: LineRate) -> Credit {
        self.walk(now, was, line, |_, _| {})
    }

    /// The credit at `now`; calls back for every corner after that of `since`.
    #[inline]
    fn walk(
        &self,
        now: RunTime,
        was: Since,
        line: LineRate,
        mut corner: impl FnMut(RunTime, Credit),
    ) -> Credit {
        let slope = Credit::from(self.idle_slope);
        let after =
            |credit: Credit, slope: Credit, span: Span| credit + slope * Credit::from(span.as_picos().max(0));
        let sent_until = match self.sending {
            Sending::No => self.since,
            Sending::Yes => now,
            Sending::Until(end) => end.min(now),
        };
        let send_slope = slope - Credit::from(line.bits_per_second());
        let sent = after(self.credit, send_slope, sent_until - self.since);
        corner(sent_until, sent);
        let still = match self.sending {
            Sending::No => false,
            Sending::Yes => true,
            Sending::Until(end) => now < end,
        };
        if still {
            return sent;
        }
        let risen = if was.open { after(sent, slope, now - sent_until) } else { sent };
        let credit = if was.waited { risen } else { risen.min(0) };
        if credit < risen {
            // The credit was lost when the queue ran empty, or rose to zero and stayed there.
            let wait =
                if sent < 0 { (-sent).unsigned_abs().div_ceil(slope.unsigned_abs().max(1)) } else { 0 };
            let zero = i64::try_from(wait).map_or(now, |wait| (sent_until + Span::from_picos(wait)).min(now));
            corner(zero, credit);
        }
        corner(now, credit);
        credit
    }

    fn settle(&mut self, now: RunTime, was: Since, line: LineRate) {
        let (mut corners, mut number) = ([(now, 0); MOST_CORNERS], 0);
        self.credit = self.walk(now, was, line, |at, credit| {
            corners[number] = (at, credit);
            number += 1;
        });
        for &(at, credit) in &corners[..number] {
            self.course.push(at, credit);
        }
        self.since = now;
        if matches!(self.sending, Sending::Until(end) if end <= now) {
            self.sending = Sending::No;
        }
    }
}

/// Credits of the shaped queues of a port.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    shapers: [Option<Shaper>; PRIORITIES],
}

impl Credits {
    /// Credits for idle slopes in bit/s of frames with preamble and gap; `None`: the queue is not shaped.
    pub(super) fn new(idle_slopes: [Option<u64>; PRIORITIES]) -> Self {
        let shaper = |idle_slope: u64| Shaper {
            idle_slope,
            credit: 0,
            since: RunTime::ZERO,
            sending: Sending::No,
            course: Box::new(CreditCourse::new(RunTime::ZERO)),
        };
        Self { shapers: idle_slopes.map(|slope| slope.map(shaper)) }
    }

    /// The credit of a queue now, in bits, rounded down; `None`: not shaped.
    pub(super) fn bits<C>(&self, at: &Moment<'_, C>, queue: usize, was: Since) -> Option<i64> {
        let shaper = self.shapers.get(queue)?.as_ref()?;
        i64::try_from(shaper.credit_at(at.now, was, at.line).div_euclid(PICO)).ok()
    }

    /// Whether the credit of a queue with an open gate is below zero, and until when; inner `None`: for ever.
    #[inline]
    pub(super) fn wait<C>(&self, at: &Moment<'_, C>, queue: usize) -> Option<Option<RunTime>> {
        let shaper = self.shapers.get(queue)?.as_ref()?;
        let was = Since { waited: at.queues.len(queue) > 0, open: true };
        let credit = shaper.credit_at(at.now, was, at.line);
        if credit >= 0 {
            return None;
        }
        // Rounded up: a picosecond earlier it would still be below zero.
        let wait = (-credit).unsigned_abs().div_ceil(u128::from(shaper.idle_slope.max(1)));
        let instant = i64::try_from(wait).ok().and_then(|picos| at.now.as_picos().checked_add(picos));
        Some(instant.map(RunTime::from_picos))
    }

    /// The course of a queue's credit up to its last settlement; `None`: not shaped.
    pub(super) fn course(&self, queue: usize) -> Option<&CreditCourse> {
        Some(&self.shapers.get(queue)?.as_ref()?.course)
    }

    /// Settles the credit of a queue at `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: RunTime, queue: usize, was: Since, line: LineRate) {
        if let Some(Some(shaper)) = self.shapers.get_mut(queue) {
            shaper.settle(now, was, line);
        }
    }

    /// A frame of a queue, whose credit is settled for now, begins or is cut off: it counts as on the wire until
    /// [`end`](Self::end).
    #[inline]
    pub(super) fn send(&mut self, queue: usize) {
        if let Some(Some(shaper)) = self.shapers.get_mut(queue) {
            shaper.sending = Sending::Yes;
        }
    }

    #[inline]
    pub(super) fn end(&mut self, free_at: RunTime) {
        let shapers = self.shapers.iter_mut().flatten();
        for shaper in shapers.filter(|shaper| shaper.sending == Sending::Yes) {
            shaper.sending = Sending::Until(free_at);
        }
    }

    /// Replaces the idle slope of a queue whose credit is settled for now.
    pub(super) fn set_slope(&mut self, queue: usize, idle_slope: u64) {
        if let Some(Some(shaper)) = self.shapers.get_mut(queue) {
            shaper.idle_slope = idle_slope;
        }
    }

    /// Whether no credit changes while no frame waits: none is below zero or falls.
    pub(super) fn at_rest(&self) -> bool {
        let mut shapers = self.shapers.iter().flatten();
        shapers.all(|shaper| shaper.credit >= 0 && shaper.sending == Sending::No)
    }

    pub(super) fn restart(&mut self, now: RunTime) {
        for shaper in self.shapers.iter_mut().flatten() {
            (shaper.credit, shaper.since, shaper.sending) = (0, now, Sending::No);
            shaper.course.push(now, 0);
        }
    }
}
