//! Sorting of nearly sorted records by time, in bounded memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::parquet::ROWS_AT_ONCE;
use crate::sighting::Block;
use wg_record::{Clock, Record};

/// Number of records held back in any case.
const LEAST: usize = 1 << 12;
/// Greatest number of records held back, whatever the stated disorder; twice as many may be in memory.
pub(crate) const MOST: usize = 1 << 22;

/// A batch of records.
pub(crate) trait Sortable {
    fn of(records: Vec<Record>) -> Self;
    fn len(&self) -> usize;
    /// Earliest and latest time, ps; `MAX` and `MIN` without records.
    fn times(&self) -> [i64; 2];
    /// Whether they are in the order of time, all of them or those of each flow.
    fn is_sorted(&self) -> bool;
    /// Number of records with a clock time before `ps`. Intended instants do not count: they have no place in the order
    /// of events.
    fn before(&self, ps: i64) -> usize;
    fn append_to(self, pile: &mut Vec<Record>);
}

/// A plain list of records.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    times: [i64; 2],
    is_sorted: bool,
}

impl Sortable for Batch {
    fn of(records: Vec<Record>) -> Self {
        let times = || records.iter().map(|record| record.time.as_picos());
        let is_sorted = records.is_sorted_by_key(|record| record.time);
        let (begins, ends) =
            if is_sorted { (times().next(), times().next_back()) } else { (times().min(), times().max()) };
        Self { times: [begins.unwrap_or(i64::MAX), ends.unwrap_or(i64::MIN)], records, is_sorted }
    }
    fn len(&self) -> usize {
        self.records.len()
    }
    fn times(&self) -> [i64; 2] {
        self.times
    }
    fn is_sorted(&self) -> bool {
        self.is_sorted
    }
    fn before(&self, ps: i64) -> usize {
        let taken = self.records.iter().filter(|record| record.clock != Clock::Schedule);
        taken.filter(|record| record.time.as_picos() < ps).count()
    }
    fn append_to(self, pile: &mut Vec<Record>) {
        pile.extend(self.records);
    }
}

/// Some flows of a block of records that were decoded together.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) block: Arc<Block>,
    pub(crate) ranks: Range<usize>,
    pub(crate) times: [i64; 2],
    pub(crate) is_sorted: bool,
}

/// The records that a tracker receives.
#[derive(Debug)]
pub(crate) enum Portion {
    /// As decoded.
    Flows(Share),
    /// Sorted afterwards.
    Records(Batch),
}

impl Sortable for Portion {
    fn of(records: Vec<Record>) -> Self {
        Self::Records(Batch::of(records))
    }
    fn len(&self) -> usize {
        match self {
            Self::Flows(share) => share.block.of(&share.ranks).len(),
            Self::Records(batch) => batch.len(),
        }
    }
    fn times(&self) -> [i64; 2] {
        match self {
            Self::Flows(share) => share.times,
            Self::Records(batch) => batch.times(),
        }
    }
    fn is_sorted(&self) -> bool {
        match self {
            Self::Flows(share) => share.is_sorted,
            Self::Records(batch) => batch.is_sorted(),
        }
    }
    fn before(&self, ps: i64) -> usize {
        match self {
            Self::Flows(share) => {
                let early = share.block.records(&share.ranks).filter(|record| record.time.as_picos() < ps);
                early.filter(|record| record.clock != Clock::Schedule).count()
            }
            Self::Records(batch) => batch.before(ps),
        }
    }
    fn append_to(self, pile: &mut Vec<Record>) {
        match self {
            Self::Flows(share) => pile.extend(share.block.records(&share.ranks)),
            Self::Records(batch) => batch.append_to(pile),
        }
    }
}

/// Holds records back until no earlier ones can come.
///
/// Equal times keep their order. Batches that come in order pass without being touched.
pub(crate) struct Sorter<B> {
    window: usize,
    /// Batches in order.
    held: VecDeque<B>,
    /// Records that came out of order, until the next sorting.
    pile: Vec<Record>,
    count: usize,
    /// Latest time released, ps.
    out: i64,
    out_of_order: u64,
}

impl<B: Sortable> Sorter<B> {
    /// A sorter for records of which at most `disorder` come before an earlier one.
    pub(crate) fn new(disorder: u64) -> Self {
        let window = usize::try_from(disorder).unwrap_or(MOST).clamp(LEAST, MOST);
        Self { window, held: VecDeque::new(), pile: Vec::new(), count: 0, out: i64::MIN, out_of_order: 0 }
    }

    /// Takes a batch and releases what is old enough.
    pub(crate) fn push(&mut self, batch: B, mut take: impl FnMut(B)) {
        if batch.len() == 0 {
            return;
        }
        let [_, ends] = self.held.back().map_or([i64::MIN; 2], B::times);
        let [begins, _] = batch.times();
        self.count += batch.len();
        if self.pile.is_empty() && batch.is_sorted() && ends <= begins {
            self.held.push_back(batch);
        } else {
            batch.append_to(&mut self.pile);
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

    /// Releases records earlier than `ps`, because no earlier ones can come.
    ///
    /// With few records, a sorter would otherwise hold them back for long, until enough others have come.
    pub(crate) fn let_out_before(&mut self, ps: i64, mut take: impl FnMut(B)) {
        if !self.pile.is_empty() {
            self.sort();
        }
        while let Some([begins, ends]) = self.held.front().map(B::times)
            && begins < ps
        {
            if ends >= ps {
                self.divide_first(ps);
            }
            self.release(&mut take);
        }
    }

    /// Splits the first batch held: records earlier than `ps`, and the rest.
    #[cold]
    fn divide_first(&mut self, ps: i64) {
        let mut early = Vec::new();
        if let Some(first) = self.held.pop_front() {
            first.append_to(&mut early);
        }
        // A batch may be sorted flow by flow only.
        early.sort_by_key(|record| record.time);
        let late = early.split_off(early.partition_point(|record| record.time.as_picos() < ps));
        self.held.push_front(B::of(late));
        self.held.push_front(B::of(early));
    }

    /// Releases everything.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(B)) {
        if !self.pile.is_empty() {
            self.sort();
        }
        while !self.held.is_empty() {
            self.release(&mut take);
        }
    }

    /// Number of records with a clock time that were released after a later one, because they came too late.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn release(&mut self, take: &mut impl FnMut(B)) {
        let Some(batch) = self.held.pop_front() else { return };
        self.count -= batch.len();
        let [begins, ends] = batch.times();
        if begins < self.out {
            self.out_of_order += batch.before(self.out) as u64;
        }
        self.out = self.out.max(ends);
        take(batch);
    }

    #[cold]
    fn sort(&mut self) {
        let mut all = Vec::with_capacity(self.count);
        self.held.drain(..).for_each(|batch| batch.append_to(&mut all));
        all.append(&mut self.pile);
        all.sort_by_key(|record| record.time);
        self.held.extend(all.chunks(ROWS_AT_ONCE).map(|block| B::of(block.to_vec())));
    }
}
