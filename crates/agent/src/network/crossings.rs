//! Frames that cross between hosts and network, stored so that the run of the network can be replayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use wg_record::Crossing;

use super::files::Piece;

/// Rows handed to the writer at a time: few enough that the allocator needs no separate mapping for a list.
const ROWS: usize = 1_024;
/// Lists that may wait for the writer, 64 MiB: a writer without a core for that long would not catch up.
const MOST_WAITING: usize = 1_024;

/// The crossings of a run on their way to the writer.
pub(super) struct Crossings {
    rows: Vec<Crossing>,
    pieces: Sender<Piece>,
    /// Number of lists that the writer has not taken.
    waiting: Arc<AtomicUsize>,
    /// Whether nothing has been left out so far; rows after a gap are of no use.
    is_whole: bool,
}

impl Crossings {
    /// No crossings yet. The receiver of `pieces` decrements `waiting`.
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

    /// Hands the collected rows to the writer.
    pub(super) fn hand_on(&mut self) {
        self.is_whole &= self.waiting.load(Ordering::Relaxed) < MOST_WAITING;
        if self.is_whole {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let full = std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS));
            // A writer that has ended is reported by its thread.
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
