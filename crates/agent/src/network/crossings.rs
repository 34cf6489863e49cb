//! What crosses between hosts and network, kept so that what the network did can be done again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use wg_record::Crossing;

use super::files::Piece;

/// Rows that go to their writer at a time: few enough that a list of them is no mapping of its own.
const ROWS: usize = 1_024;
/// Lists that may wait for their writer, 64 MiB: who has no core for so long has none for the rest either.
const MOST_WAITING: usize = 1_024;

/// The crossings of a run, on their way to their writer.
pub(super) struct Crossings {
    rows: Vec<Crossing>,
    pieces: Sender<Piece>,
    /// Lists that their writer has not taken.
    waiting: Arc<AtomicUsize>,
    /// Nothing was left out so far: what comes after a gap is of no use.
    is_whole: bool,
}

impl Crossings {
    /// None so far. Who takes them from `pieces` counts `waiting` down.
    pub(super) fn new(pieces: Sender<Piece>, waiting: Arc<AtomicUsize>) -> Self {
        Self { rows: Vec::with_capacity(ROWS), pieces, waiting, is_whole: true }
    }

    #[inline]
    pub(super) fn push(&mut self, row: Crossing) {
        if self.is_whole {
            self.rows.push(row);
            if self.rows.len() == ROWS {
                self.hand_on();
            }
        }
    }

    /// Hands on what is here.
    pub(super) fn hand_on(&mut self) {
        self.is_whole &= self.waiting.load(Ordering::Relaxed) < MOST_WAITING;
        if self.is_whole {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let full = std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS));
            // Its thread tells of its end.
            let _ = self.pieces.send(Piece::Crossings(full));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::time::RunTime;

    #[test]
    fn what_comes_after_a_gap_is_left_out() {
        let (pieces, taken) = std::sync::mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut crossings = Crossings::new(pieces, Arc::clone(&waiting));
        let row = |at: usize| Crossing::ended(RunTime::from_picos(at as i64));
        (0..(MOST_WAITING + 2) * ROWS).for_each(|at| crossings.push(row(at)));
        let lists: Vec<_> = taken.try_iter().collect();
        assert_eq!(lists.len(), MOST_WAITING);
        waiting.store(0, Ordering::Relaxed);
        crossings.push(row(0));
        crossings.hand_on();
        assert!(taken.try_recv().is_err(), "a gap, and then rows");
    }
}
