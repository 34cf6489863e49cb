//! Intended sending times of messages not yet sent.
//!
//! An intended send states when a message was due, and a sender that cannot keep its rate sends it seconds later. In
//! the order of time such a record precedes those of all messages sent in between: millions, far more than a window
//! holds. It does not show that the message was sent, so it must not close older ones; it waits here, in some 40
//! octets, until the window reaches its number.

use std::collections::BTreeMap;

use wg_frame::time::RunTime;

use wg_record::Record;

/// Intended sends of numbers beyond a window.
#[derive(Debug)]
pub(super) struct Due {
    /// Earliest intended time and shortest frame length of each number.
    times: BTreeMap<u32, (RunTime, u16)>,
    /// One of the records, as pattern of the others, which differ in nothing else that matters.
    pattern: Option<Record>,
    limit: usize,
}

impl Due {
    /// Stores at most `limit` numbers.
    pub(super) fn new(limit: usize) -> Self {
        Self { times: BTreeMap::new(), pattern: None, limit }
    }

    /// Stores an intended send; false if there is no room for another number.
    pub(super) fn keep(&mut self, record: &Record) -> bool {
        let is_full = self.times.len() >= self.limit;
        if is_full && !self.times.contains_key(&record.sequence) {
            return false;
        }
        self.pattern.get_or_insert(*record);
        let entry = self.times.entry(record.sequence).or_insert((record.time, record.length));
        *entry = (entry.0.min(record.time), entry.1.min(record.length));
        true
    }

    /// Removes and returns the lowest number, if it is below `reach`.
    pub(super) fn take_below(&mut self, reach: u64) -> Option<Record> {
        let first = self.times.first_entry().filter(|first| u64::from(*first.key()) < reach)?;
        let (sequence, (time, length)) = first.remove_entry();
        self.pattern.map(|pattern| Record { time, sequence, length, ..pattern })
    }
}
