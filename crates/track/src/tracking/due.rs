//! When messages were to be sent that are not on their way yet.
//!
//! An intended send says when a message was due, and a sender that cannot keep its rate sends it seconds later. In the order
//! of time such a record comes before those of everything that is sent in between: millions of messages, far more than a
//! window holds. It is no sign of the message being sent, so it must not close what is older; it waits here, in some
//! 40 octets, until the window comes to its number.

use std::collections::BTreeMap;

use wg_frame::time::RunTime;

use wg_record::Record;

/// Intended sends of numbers ahead of a window.
#[derive(Debug)]
pub(super) struct Due {
    /// By number: when, and the length of the frame; of several the earliest and the shortest, as a window does.
    times: BTreeMap<u32, (RunTime, u16)>,
    /// One of the records; the others, unchecked like it, differ from it in nothing else that means anything.
    pattern: Option<Record>,
    limit: usize,
}

impl Due {
    /// Keeps at most `limit` numbers.
    pub(super) fn new(limit: usize) -> Self {
        Self { times: BTreeMap::new(), pattern: None, limit }
    }

    /// False when there is no room for one more number.
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

    /// The lowest number kept, if it is below `reach`.
    pub(super) fn take_below(&mut self, reach: u64) -> Option<Record> {
        let first = self.times.first_entry().filter(|first| u64::from(*first.key()) < reach)?;
        let (sequence, (time, length)) = first.remove_entry();
        self.pattern.map(|pattern| Record { time, sequence, length, ..pattern })
    }
}
