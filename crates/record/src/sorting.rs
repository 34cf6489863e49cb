//! Putting records in the order of time that come nearly in it, in bounded memory.

use std::collections::VecDeque;

use crate::parquet::ROWS_AT_ONCE;
use crate::schema::Record;

/// Records that are held back in any case.
const LEAST: usize = 1 << 12;
/// The most that are held back, however disordered the source says it is; twice as many may be in memory.
pub(crate) const MOST: usize = 1 << 22;

/// Holds records back until what can still come is younger.
///
/// Equal times keep their order. Blocks that come in order pass without being touched.
pub(crate) struct Sorter {
    window: usize,
    /// In order.
    held: VecDeque<Vec<Record>>,
    /// What came out of order and waits for the next sorting.
    pile: Vec<Record>,
    count: usize,
    /// Latest time that was let out, ps.
    out: i64,
    out_of_order: u64,
}

impl Sorter {
    /// For records of which at most `disorder` come before an earlier one.
    pub(crate) fn new(disorder: u64) -> Self {
        let window = usize::try_from(disorder).unwrap_or(MOST).clamp(LEAST, MOST);
        Self { window, held: VecDeque::new(), pile: Vec::new(), count: 0, out: i64::MIN, out_of_order: 0 }
    }

    /// Takes a block and lets out what is old enough.
    pub(crate) fn push(&mut self, block: Vec<Record>, mut take: impl FnMut(Vec<Record>)) {
        let Some(begins) = block.first().map(|record| record.time) else { return };
        let ends = self.held.back().and_then(|held| held.last()).map(|record| record.time);
        self.count += block.len();
        let is_sorted = block.is_sorted_by_key(|record| record.time);
        if self.pile.is_empty() && is_sorted && ends <= Some(begins) {
            self.held.push_back(block);
        } else {
            self.pile.extend(block);
        }
        if !self.pile.is_empty() {
            if self.count < 2 * self.window {
                return;
            }
            self.sort();
        }
        while self.held.front().is_some_and(|first| self.count - first.len() >= self.window) {
            self.release(&mut take);
        }
    }

    /// Lets everything out.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(Vec<Record>)) {
        if !self.pile.is_empty() {
            self.sort();
        }
        while !self.held.is_empty() {
            self.release(&mut take);
        }
    }

    /// Records that were let out after a later one, because they came too late.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn release(&mut self, take: &mut impl FnMut(Vec<Record>)) {
        let Some(block) = self.held.pop_front() else { return };
        self.count -= block.len();
        self.out_of_order += block.partition_point(|record| record.time.as_picos() < self.out) as u64;
        self.out = self.out.max(block.last().map_or(i64::MIN, |record| record.time.as_picos()));
        take(block);
    }

    #[cold]
    fn sort(&mut self) {
        let mut all: Vec<Record> = self.held.drain(..).flatten().collect();
        all.append(&mut self.pile);
        all.sort_by_key(|record| record.time);
        self.held.extend(all.chunks(ROWS_AT_ONCE).map(<[Record]>::to_vec));
    }
}
