//! A table of learnt addresses of exact size, entered by a process that takes its time.
//!
//! The hash table of [`Forwarding`](crate::forwarding::Forwarding) stands for a switch whose address table is not under
//! test. This table has an exact size: any address may take any entry, as in a content-addressable memory, so that
//! exactly as many addresses are learnt as there are entries. A switch that learns in software enters one address at a
//! time; an unknown address that arrives meanwhile is not learnt, and its frames are flooded until it is.
//!
//! Every call takes O(log n) for n entries.

use alloc::collections::{BTreeMap, BTreeSet};

use wg_frame::time::{RunTime, Span};

/// Size, learning time and ageing time of an address table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Greatest number of addresses.
    pub entries: usize,
    /// Time to enter an address. Until then the address is unknown, and no other is entered.
    pub entry_time: Span,
    /// Entries that were not seen for longer are forgotten (IEEE Std 802.1Q-2022, 8.8.3).
    pub ageing: Span,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    port: u32,
    /// Instant from which the entry is valid.
    since: RunTime,
    /// Instant of the station's last frame.
    seen: RunTime,
}

/// A table of learnt addresses with an exact number of entries.
#[derive(Clone, Debug)]
pub(crate) struct AddressTable {
    limits: TableLimits,
    stations: BTreeMap<u64, Station>,
    /// Entries in the order of their last use.
    by_age: BTreeSet<(RunTime, u64)>,
    /// End of the entry of the address that is being learnt.
    busy_until: RunTime,
}

impl AddressTable {
    pub(crate) const fn new(limits: TableLimits) -> Self {
        Self {
            limits,
            stations: BTreeMap::new(),
            by_age: BTreeSet::new(),
            busy_until: RunTime::from_picos(i64::MIN),
        }
    }

    pub(crate) fn forget(&mut self) {
        self.stations.clear();
        self.by_age.clear();
        self.busy_until = RunTime::from_picos(i64::MIN);
    }

    /// Learns that the station `key` is behind `port`.
    pub(crate) fn learn(&mut self, now: RunTime, port: u32, key: u64) {
        if let Some(station) = self.stations.get_mut(&key) {
            self.by_age.remove(&(station.seen, key));
            self.by_age.insert((now, key));
            (station.port, station.seen) = (port, now);
            return;
        }
        if now < self.busy_until || !self.has_room(now) {
            return;
        }
        self.busy_until = now + self.limits.entry_time;
        self.stations.insert(key, Station { port, since: self.busy_until, seen: now });
        self.by_age.insert((now, key));
    }

    /// The port behind which the station `key` is, if learnt.
    pub(crate) fn port(&self, now: RunTime, key: u64) -> Option<u32> {
        let station = self.stations.get(&key)?;
        (station.since <= now && now - station.seen <= self.limits.ageing).then_some(station.port)
    }

    /// Whether an entry is free, after removing the one unused for longest if it has aged out.
    fn has_room(&mut self, now: RunTime) -> bool {
        if self.stations.len() < self.limits.entries {
            return true;
        }
        match self.by_age.first() {
            Some(&(seen, key)) if now - seen > self.limits.ageing => {
                self.by_age.remove(&(seen, key));
                self.stations.remove(&key);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGEING: Span = Span::from_millis(1_000);

    fn table(entries: usize, entry_time: Span) -> AddressTable {
        AddressTable::new(TableLimits { entries, entry_time, ageing: AGEING })
    }

    fn at(micros: i64) -> RunTime {
        RunTime::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn it_holds_exactly_as_many_as_it_has_entries() {
        for entries in [1, 7, 64, 1_000] {
            let mut table = table(entries, Span::ZERO);
            for key in 0..2 * entries as u64 {
                table.learn(at(0), 3, key);
            }
            let known = (0..2 * entries as u64).filter(|key| table.port(at(1), *key) == Some(3)).count();
            assert_eq!(known, entries);
        }
    }

    #[test]
    fn an_entry_that_is_out_of_date_makes_room_and_one_that_is_seen_again_does_not() {
        let mut table = table(2, Span::ZERO);
        table.learn(at(0), 1, 10);
        table.learn(at(1), 1, 11);
        table.learn(at(500_000), 1, 10);
        table.learn(at(1_000_001), 1, 12);
        assert_eq!(table.port(at(1_000_001), 12), None, "11 is as old as it may be");
        table.learn(at(1_000_002), 1, 12);
        let known = [10, 11, 12].map(|key| table.port(at(1_000_002), key));
        assert_eq!(known, [Some(1), None, Some(1)]);
    }

    #[test]
    fn while_an_address_is_entered_no_other_is() {
        let mut table = table(9, Span::from_micros(10));
        table.learn(at(0), 1, 10);
        table.learn(at(9), 1, 11);
        assert_eq!(table.port(at(9), 10), None);
        assert_eq!(table.port(at(10), 10), Some(1));
        table.learn(at(10), 1, 12);
        assert_eq!((table.port(at(20), 11), table.port(at(20), 12)), (None, Some(1)));
    }

    #[test]
    fn a_station_that_moved_is_where_it_was_last_seen() {
        let mut table = table(1, Span::ZERO);
        table.learn(at(0), 1, 10);
        table.learn(at(1), 2, 10);
        assert_eq!(table.port(at(1), 10), Some(2));
        table.forget();
        assert_eq!(table.port(at(1), 10), None);
    }
}
