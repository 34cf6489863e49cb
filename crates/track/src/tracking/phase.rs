//! The messages of one flow and receiver in one phase, the warm-up or the measured part.

use std::collections::VecDeque;

use super::arrivals::{Arrivals, Ordinal};
use super::facts::Facts;
use super::ledger::{Closed, Ledger, Origin};
use super::window::Window;
use wg_record::Record;

/// Greatest number of lives of a sender with open messages.
const MOST_LIVES: usize = 8;

/// Windows of the sender's lives, and the order of arrival over all of them.
///
/// A sender that hands a number over again has restarted its numbers, by a restart or an overflow of 32 bits. From then
/// on it is in its next life. A frame belongs to the latest life that has handed its number over.
#[derive(Debug)]
pub(super) struct Phase {
    is_warm_up: bool,
    planned: u32,
    /// Limits of a window, and of the intended sends beyond it.
    limits: [usize; 2],
    lives: VecDeque<Window>,
    /// Number of the life of the first of `lives`.
    first_life: u64,
    arrivals: Arrivals,
    /// Whether a record may be waiting for a window to reach it.
    has_waiting: bool,
}

/// A life of the sender, with the state that its records change.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) window: &'a mut Window,
    pub(super) arrivals: &'a mut Arrivals,
    pub(super) number: u64,
    pub(super) planned: u32,
    pub(super) is_warm_up: bool,
}

impl Phase {
    pub(super) fn new(is_warm_up: bool, planned: u32, limits: [usize; 2]) -> Self {
        let lives = VecDeque::from([Window::new(limits)]);
        Self {
            is_warm_up,
            planned,
            limits,
            lives,
            first_life: 0,
            arrivals: Arrivals::default(),
            has_waiting: false,
        }
    }

    #[inline]
    pub(super) fn planned(&self) -> u32 {
        self.planned
    }
    #[inline]
    pub(super) fn window(&mut self, life: usize) -> &mut Window {
        &mut self.lives[life]
    }

    /// The only life of the sender, as in nearly every case, if no record waits for it.
    #[inline]
    pub(super) fn only_life(&mut self) -> Option<Life<'_>> {
        if self.lives.len() == 1 && !self.has_waiting { Some(self.life(0)) } else { None }
    }

    /// One of the lives with open messages.
    #[inline]
    pub(super) fn life(&mut self, life: usize) -> Life<'_> {
        Life {
            window: &mut self.lives[life],
            arrivals: &mut self.arrivals,
            number: self.first_life + life as u64,
            planned: self.planned,
            is_warm_up: self.is_warm_up,
        }
    }

    /// Whether a record may be waiting.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        self.has_waiting
    }

    /// Stores a record of a number ahead; true if too many wait, so that the window must advance to them.
    pub(super) fn keep(&mut self, life: usize, record: &Record) -> bool {
        self.has_waiting = true;
        self.lives[life].keep(record)
    }

    /// The life of a record; a number that the sender's application hands over again begins the next life.
    #[inline]
    pub(super) fn life_of(&mut self, sequence: u32, is_handover: bool, is_at_source: bool) -> usize {
        let last = self.lives.len() - 1;
        if is_handover && self.lives[last].was_handed_over(sequence) {
            self.lives.push_back(Window::new(self.limits));
            return last + 1;
        }
        if last == 0 || is_at_source {
            return last;
        }
        self.lives.iter().rposition(|window| window.was_handed_over(sequence)).unwrap_or(last)
    }

    /// Whether there are more lives than allowed.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.lives.len() > MOST_LIVES
    }

    /// Makes room for `sequence` in `life`, closing much older messages; returns the index of the life among those
    /// left.
    #[cold]
    pub(super) fn advance(
        &mut self,
        life: usize,
        sequence: u32,
        facts: &Facts,
        ledger: &mut Ledger,
        closed: &mut Closed<'_>,
    ) -> usize {
        for _ in 0..life {
            self.close_oldest(facts, ledger, closed);
        }
        let origin = self.origin();
        if let Some(window) = self.lives.front_mut() {
            let base = window.base_for(sequence);
            window.close_below(base, |stretch| ledger.close(facts, origin, stretch, closed));
            self.arrivals.forget_below(ordinal(origin.life, base));
        }
        0
    }

    /// Closes the oldest life; the last one stays, empty.
    #[cold]
    pub(super) fn close_oldest(&mut self, facts: &Facts, ledger: &mut Ledger, closed: &mut Closed<'_>) {
        let origin = self.origin();
        if let Some(window) = self.lives.front_mut() {
            window.close_all(|stretch| ledger.close(facts, origin, stretch, closed));
        }
        if self.lives.len() > 1 {
            self.lives.pop_front();
            self.first_life += 1;
            ledger.restarted(self.is_warm_up);
            self.arrivals.forget_below(ordinal(self.first_life, 0));
        }
    }

    /// Closes everything.
    pub(super) fn close_all(&mut self, facts: &Facts, ledger: &mut Ledger, closed: &mut Closed<'_>) {
        for _ in 0..self.lives.len() {
            self.close_oldest(facts, ledger, closed);
        }
    }

    /// The records of the lowest number that waited and is now reached.
    #[inline]
    pub(super) fn reached(&mut self) -> Option<Vec<Record>> {
        let reached = self.lives.iter_mut().find_map(Window::reached);
        self.has_waiting = reached.is_some() || self.waiting().is_some();
        reached
    }

    /// The lowest number that still waits, and its life.
    pub(super) fn waiting(&self) -> Option<(usize, u32)> {
        let waiting = |(life, window): (usize, &Window)| window.waiting().map(|sequence| (life, sequence));
        self.lives.iter().enumerate().find_map(waiting)
    }

    fn origin(&self) -> Origin {
        Origin { is_warm_up: self.is_warm_up, planned: self.planned, life: self.first_life }
    }
}

/// Position of a message in the order of sending.
#[inline]
pub(super) fn ordinal(life: u64, sequence: u32) -> Ordinal {
    life << 32 | u64::from(sequence)
}
