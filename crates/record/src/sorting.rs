//! Putting records in the order of time that come nearly in it, in bounded memory.

use std::collections::VecDeque;

use crate::parquet::ROWS_AT_ONCE;
use crate::schema::Record;

/// Records that are held back in any case.
const LEAST: usize = 1 << 12;
/// The most that are held back, however disordered the source says it is; twice as many may be in memory.
pub(crate) const MOST: usize = 1 << 22;

/// Records that came together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    /// Earliest and latest time, ps; `MAX` and `MIN` without records.
    pub(crate) begins: i64,
    pub(crate) ends: i64,
    /// In the order of time: all of them, or those of each flow.
    pub(crate) order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Time,
    /// Flow by flow.
    Flow,
    None,
}

impl Batch {
    /// Records in whatever order they are.
    pub(crate) fn of(records: Vec<Record>) -> Self {
        let times = || records.iter().map(|record| record.time.as_picos());
        let is_sorted = records.is_sorted_by_key(|record| record.time);
        let (begins, ends) =
            if is_sorted { (times().next(), times().next_back()) } else { (times().min(), times().max()) };
        let order = if is_sorted { Order::Time } else { Order::None };
        Self { begins: begins.unwrap_or(i64::MAX), ends: ends.unwrap_or(i64::MIN), records, order }
    }
}

/// Holds records back until what can still come is younger.
///
/// Equal times keep their order. Batches that come in order pass without being touched.
pub(crate) struct Sorter {
    window: usize,
    /// In order.
    held: VecDeque<Batch>,
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

    /// Takes a batch and lets out what is old enough.
    pub(crate) fn push(&mut self, batch: Batch, mut take: impl FnMut(Batch)) {
        if batch.records.is_empty() {
            return;
        }
        let ends = self.held.back().map_or(i64::MIN, |held| held.ends);
        self.count += batch.records.len();
        if self.pile.is_empty() && batch.order != Order::None && ends <= batch.begins {
            self.held.push_back(batch);
        } else {
            self.pile.extend(batch.records);
        }
        if !self.pile.is_empty() {
            if self.count < 2 * self.window {
                return;
            }
            self.sort();
        }
        while self.held.front().is_some_and(|first| self.count - first.records.len() >= self.window) {
            self.release(&mut take);
        }
    }

    /// Lets everything out.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(Batch)) {
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

    fn release(&mut self, take: &mut impl FnMut(Batch)) {
        let Some(batch) = self.held.pop_front() else { return };
        self.count -= batch.records.len();
        if batch.begins < self.out {
            let late = batch.records.iter().filter(|record| record.time.as_picos() < self.out);
            self.out_of_order += late.count() as u64;
        }
        self.out = self.out.max(batch.ends);
        take(batch);
    }

    #[cold]
    fn sort(&mut self) {
        let mut all: Vec<Record> = self.held.drain(..).flat_map(|batch| batch.records).collect();
        all.append(&mut self.pile);
        all.sort_by_key(|record| record.time);
        self.held.extend(all.chunks(ROWS_AT_ONCE).map(|block| Batch::of(block.to_vec())));
    }
}
