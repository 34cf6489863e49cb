//! Time-aware gates (IEEE Std 802.1Q-2022, 8.6.8.4 and 8.6.9): each queue has a gate, opened and closed by a cyclic
//! list.
//!
//! All times are the device's local time. A list is in force from its base time until that of the next one; the first
//! is in force from the start, with whole cycles before its base time. Between two lists the cycle timer's rule of
//! 8.6.9.1 holds: a cycle that would begin less than the cycle-time extension before the change does not, and the gates
//! stay in the state of the last entry; a cycle that has begun is cut off.
//!
//! Entries may also hold or release the MAC (table 8-7): while held it sends no preemptable frame, whatever the gates.
//! Hold and release are requested in advance, so that a transmission can end before the entry begins.

use alloc::vec::Vec;

use wg_frame::time::Span;

use crate::clock::LocalTime;
use crate::queue::PRIORITIES;

/// An entry of a gate control list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// Queues whose gates are open, the lowest bit that of queue 0.
    pub open: u8,
    /// Duration of the entry.
    pub length: Span,
    /// Hold or release of the MAC.
    pub mac: MacOperation,
}

/// What an entry does to a MAC with preemption besides setting gates (IEEE Std 802.1Q-2022, table 8-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum MacOperation {
    /// Nothing (`SetGateStates`).
    #[default]
    Unchanged,
    /// Holds the MAC: it sends no preemptable frame from here on (`Set-And-Hold-MAC`).
    Hold,
    /// Releases the MAC: preemptable frames may be sent again (`Set-And-Release-MAC`).
    Release,
}

/// Time before an entry at which the MAC is held or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldAdvances {
    /// Advance of a hold (`holdAdvance`): shorter than the released time before it.
    pub hold: Span,
    /// Advance of a release (`releaseAdvance`): shorter than the held time before it.
    pub release: Span,
}

/// A gate control list as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateList {
    /// Base time: the beginning of the first cycle.
    pub base: LocalTime,
    /// Longest extension of its last cycle before the next list takes over (`OperCycleTimeExtension`).
    pub extension: Span,
    /// Entries; the cycle time is the sum of their lengths.
    pub entries: Vec<GateEntry>,
}

/// Invalid gate control lists: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A list without entries.
    #[error("gate control list {0} has no entry, or one without length; give each entry a positive length")]
    Empty(usize),
    /// A list longer than the range of times.
    #[error("gate control list {0} lasts longer than 106 days; shorten it")]
    TooLong(usize),
    /// Base times that do not ascend.
    #[error("gate control list {0} does not begin after the one before it; give each a later base time")]
    Order(usize),
}

/// Later than any time.
const NEVER: i64 = i64::MAX;
/// Index of the hold state of the MAC, behind the gates of all queues.
const HELD: usize = PRIORITIES;

#[derive(Clone, Debug)]
struct Entry {
    /// Beginning, relative to that of the cycle.
    begins: i64,
    /// Bits of the open gates, and bit [`HELD`].
    open: u16,
    /// Next change of each gate after this entry, relative to the beginning of the cycle, within two cycles; last, that
    /// of the hold state.
    changes: [i64; PRIORITIES + 1],
}

#[derive(Clone, Debug)]
struct List {
    base: i64,
    cycle: i64,
    /// Start of the next list.
    ends: i64,
    /// Beginning of the last cycle.
    last: i64,
    entries: Vec<Entry>,
}

impl List {
    fn new(number: usize, list: &GateList, next: Option<&GateList>) -> Result<Self, GateError> {
        let mut cycle = 0_i64;
        let mut entries = Vec::with_capacity(list.entries.len());
        let told = list.entries.iter().map(|entry| entry.mac).rfind(|mac| *mac != MacOperation::Unchanged);
        let mut held = told == Some(MacOperation::Hold);
        for entry in &list.entries {
            if entry.length <= Span::ZERO {
                return Err(GateError::Empty(number));
            }
            held = match entry.mac {
                MacOperation::Unchanged => held,
                MacOperation::Hold => true,
                MacOperation::Release => false,
            };
            let open = u16::from(entry.open) | u16::from(held) << HELD;
            entries.push(Entry { begins: cycle, open, changes: [NEVER; PRIORITIES + 1] });
            cycle = cycle.checked_add(entry.length.as_picos()).ok_or(GateError::TooLong(number))?;
        }
        if cycle == 0 {
            return Err(GateError::Empty(number));
        }
        let second = cycle.checked_mul(2).ok_or(GateError::TooLong(number))?;
        // Backwards from the end of a second cycle, so that a state may last beyond the end of the first.
        for queue in 0..=HELD {
            let is_open = |entry: &Entry| entry.open >> queue & 1 == 1;
            if entries.iter().all(is_open) || !entries.iter().any(is_open) {
                continue;
            }
            let mut change = NEVER;
            for turn in [cycle, 0] {
                for at in (0..entries.len()).rev() {
                    let (following, wraps) = ((at + 1) % entries.len(), at + 1 == entries.len());
                    if is_open(&entries[at]) != is_open(&entries[following]) {
                        change = if wraps { turn + cycle } else { turn + entries[following].begins };
                    }
                    if turn == 0 {
                        entries[at].changes[queue] = change;
                    }
                }
            }
            debug_assert!(entries.iter().all(|entry| entry.changes[queue] <= second));
        }
        let base = list.base.as_picos();
        let (mut ends, mut last) = (NEVER, NEVER);
        if let Some(next) = next {
            ends = next.base.as_picos();
            if ends <= base {
                return Err(GateError::Order(number + 1));
            }
            let begins_before =
                ends.saturating_sub(list.extension.as_picos().max(0)).saturating_sub(base) - 1;
            let cycles = begins_before.div_euclid(cycle);
            // A list that took over at its base time has begun its first cycle in any case.
            let cycles = if number == 0 { cycles } else { cycles.max(0) };
            last = base.saturating_add(cycle.saturating_mul(cycles));
        }
        Ok(Self { base, cycle, ends, last, entries })
    }

    /// The beginning of the cycle at `time`, the entry in force, and when the next one begins.
    fn at(&self, time: i64) -> (i64, usize, i64) {
        let begins = if time >= self.last {
            self.last
        } else {
            time - (time.saturating_sub(self.base)).rem_euclid(self.cycle)
        };
        let into = time - begins;
        let entry = self.entries.partition_point(|entry| entry.begins <= into).max(1) - 1;
        let until = match self.entries.get(entry + 1) {
            Some(next) => begins.saturating_add(next.begins),
            None if begins == self.last => self.ends,
            None => begins.saturating_add(self.cycle),
        };
        (begins, entry, until.min(self.ends))
    }

    /// Time that a gate is open in a cycle, ps.
    fn open_in_cycle(&self, queue: usize) -> i64 {
        let ends = self.entries.iter().skip(1).map(|entry| entry.begins).chain([self.cycle]);
        let lengths = self.entries.iter().zip(ends).map(|(entry, ends)| (entry.open, ends - entry.begins));
        lengths.filter(|(open, _)| open >> queue & 1 == 1).map(|(_, length)| length).sum()
    }
}

/// The gates of a port.
#[derive(Clone, Debug)]
pub struct Gates {
    lists: Vec<List>,
}

impl Gates {
    /// Gates with these lists, in the order they take over.
    ///
    /// # Errors
    /// [`GateError`] for invalid lists; a port without a list has no gates.
    pub fn new(lists: &[GateList]) -> Result<Self, GateError> {
        if lists.is_empty() {
            return Err(GateError::Empty(0));
        }
        let all =
            lists.iter().enumerate().map(|(number, list)| List::new(number, list, lists.get(number + 1)));
        Ok(Self { lists: all.collect::<Result<_, _>>()? })
    }

    fn list_at(&self, time: i64) -> usize {
        self.lists.partition_point(|list| list.base <= time).max(1) - 1
    }

    /// Index of the list in force.
    pub fn list(&self, time: LocalTime) -> usize {
        self.list_at(time.as_picos())
    }

    /// Bits of the open gates, and the beginning of the next entry or list; `None`: no further change.
    pub fn at(&self, time: LocalTime) -> (u8, Option<LocalTime>) {
        let list = &self.lists[self.list_at(time.as_picos())];
        let (_, entry, until) = list.at(time.as_picos());
        (list.entries[entry].open.to_le_bytes()[0], local(until))
    }

    /// Whether any entry holds the MAC.
    pub fn holds(&self) -> bool {
        self.lists.iter().any(|list| list.entries.iter().any(|entry| entry.open >> HELD & 1 == 1))
    }

    /// Whether the MAC is held at `time`, advances included, and when that changes; `None`: never.
    pub fn held(&self, time: LocalTime, advances: HoldAdvances) -> (bool, Option<LocalTime>) {
        let list = &self.lists[self.list_at(time.as_picos())];
        let held = list.entries[list.at(time.as_picos()).1].open >> HELD & 1 == 1;
        let Some(edge) = self.changes(HELD, time) else { return (held, None) };
        let (own, following) =
            if held { (advances.release, advances.hold) } else { (advances.hold, advances.release) };
        if edge - own > time {
            return (held, Some(edge - own));
        }
        // The hold or release has begun already.
        let later = LocalTime::from_picos(time.as_picos() + 1);
        (!held, self.changes(HELD, edge).map(|edge| (edge - following).max(later)))
    }

    /// Next change of the gate of `queue` after `time`; `None`: never.
    pub fn changes(&self, queue: usize, time: LocalTime) -> Option<LocalTime> {
        let is_open = |open: u16| open >> queue & 1 == 1;
        let mut at = time.as_picos();
        let mut number = self.list_at(at);
        let was = is_open(self.lists[number].entries[self.lists[number].at(at).1].open);
        loop {
            let list = &self.lists[number];
            let (begins, entry, until) = list.at(at);
            if is_open(list.entries[entry].open) != was {
                return local(at);
            }
            let change = match list.entries[entry].changes[queue] {
                NEVER => NEVER,
                after => begins.saturating_add(after),
            };
            if change <= list.last {
                return local(change);
            }
            if at >= list.last {
                // The last cycle, entry by entry.
                at = until;
            } else if list.last == NEVER {
                return None;
            } else {
                at = list.last;
            }
            if at >= list.ends {
                number += 1;
            }
        }
    }

    /// Time that a gate is open in each cycle of a list, and the cycle time.
    pub fn open_share(&self, list: usize, queue: usize) -> (Span, Span) {
        let list = &self.lists[list];
        (Span::from_picos(list.open_in_cycle(queue)), Span::from_picos(list.cycle))
    }
}

fn local(picos: i64) -> Option<LocalTime> {
    (picos != NEVER).then(|| LocalTime::ZERO + Span::from_picos(picos))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn at(picos: i64) -> LocalTime {
        LocalTime::ZERO + Span::from_picos(picos)
    }

    fn list(base: i64, extension: i64, entries: &[(u8, i64)]) -> GateList {
        let entry = |&(open, length): &(u8, i64)| GateEntry {
            open,
            length: Span::from_picos(length),
            mac: MacOperation::Unchanged,
        };
        GateList {
            base: at(base),
            extension: Span::from_picos(extension),
            entries: entries.iter().map(entry).collect(),
        }
    }

    #[test]
    fn a_list_repeats_before_and_after_its_base() {
        let gates = Gates::new(&[list(5, 0, &[(1, 10), (2, 20), (2, 5)])]).unwrap();
        assert_eq!(gates.at(at(5)), (1, Some(at(15))));
        assert_eq!(gates.at(at(15)), (2, Some(at(35))));
        assert_eq!(gates.at(at(39)), (2, Some(at(40))));
        assert_eq!(gates.at(at(4)), (2, Some(at(5))));
        assert_eq!((gates.changes(0, at(5)), gates.changes(1, at(15))), (Some(at(15)), Some(at(40))));
        assert_eq!((gates.changes(0, at(36)), gates.changes(2, at(36))), (Some(at(40)), None));
        assert_eq!(gates.open_share(0, 1), (Span::from_picos(25), Span::from_picos(35)));
    }

    #[test]
    fn a_cycle_that_would_be_short_is_an_extension_of_the_one_before() {
        // Cycles of 100 begin at 0, 100, 200; the change comes at 230.
        let next = list(230, 0, &[(4, 100)]);
        let cut = Gates::new(&[list(0, 29, &[(1, 50), (2, 50)]), next.clone()]).unwrap();
        assert_eq!(cut.at(at(199)), (2, Some(at(200))));
        assert_eq!(cut.at(at(200)), (1, Some(at(230))), "it begins 30 before, more than the extension");
        let extended = Gates::new(&[list(0, 30, &[(1, 50), (2, 50)]), next]).unwrap();
        assert_eq!(extended.at(at(200)), (2, Some(at(230))), "it does not begin: the last entry lasts");
        assert_eq!(extended.changes(1, at(150)), Some(at(230)));
        assert_eq!((extended.changes(0, at(200)), extended.changes(2, at(0))), (None, Some(at(230))));
    }

    #[test]
    fn lists_that_cannot_be_followed_are_refused() {
        assert_eq!(Gates::new(&[]).unwrap_err(), GateError::Empty(0));
        assert_eq!(Gates::new(&[list(0, 0, &[(1, 0)])]).unwrap_err(), GateError::Empty(0));
        assert_eq!(Gates::new(&[list(0, 0, &[(1, i64::MAX - 1)])]).unwrap_err(), GateError::TooLong(0));
        let twice = [list(7, 0, &[(1, 1)]), list(7, 0, &[(1, 1)])];
        assert_eq!(Gates::new(&twice).unwrap_err(), GateError::Order(1));
    }

    /// Walks the cycle timer of 8.6.9.1 instant by instant: the gates, and whether the entry or one before it held the
    /// MAC.
    fn walked(lists: &[GateList], from: i64, to: i64) -> Vec<(u8, bool)> {
        let cycle = |list: &GateList| list.entries.iter().map(|entry| entry.length.as_picos()).sum::<i64>();
        let (mut number, mut begins) = (0, lists[0].base.as_picos());
        while begins > from - 100 {
            begins -= cycle(&lists[0]);
        }
        let (mut seen, mut held) = (vec![], false);
        // A whole cycle earlier, so that what holds at its beginning is known.
        begins -= cycle(&lists[0]);
        let first = begins;
        for now in first..to {
            let change = lists.get(number + 1).map(|next| next.base.as_picos());
            let due = begins + cycle(&lists[number]);
            if change == Some(now) {
                (number, begins) = (number + 1, now);
            } else if now == due
                && change.is_none_or(|change| change > due + lists[number].extension.as_picos())
            {
                begins = now;
            }
            let mut left = now - begins;
            let entries = &lists[number].entries;
            let entry = entries.iter().find(|entry| {
                left -= entry.length.as_picos();
                left < 0
            });
            let entry = entry.unwrap_or(&entries[entries.len() - 1]);
            match entry.mac {
                MacOperation::Unchanged => {}
                MacOperation::Hold => held = true,
                MacOperation::Release => held = false,
            }
            if now >= from {
                seen.push((entry.open, held));
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn gates_are_as_the_cycle_timer_walks_them(
            lists in proptest::collection::vec(
                (1_i64..60, 0_i64..12, proptest::collection::vec((0_u8..4, 1_i64..9), 1..5)), 1..4,
            ),
        ) {
            let mut base = -20;
            let lists: Vec<GateList> = lists.iter().map(|(after, extension, entries)| {
                base += after;
                list(base, *extension, entries)
            }).collect();
            let gates = Gates::new(&lists).unwrap();
            let seen = walked(&lists, 0, 400);
            for (now, (open, _)) in (0_i64..300).zip(&seen) {
                let (is, until) = gates.at(at(now));
                prop_assert_eq!(is, *open, "at {}", now);
                prop_assert!(until.is_none_or(|until| until > at(now)));
                for queue in 0..2 {
                    let ahead = &seen[usize::try_from(now).unwrap()..];
                    let change = ahead.iter().position(|(open, _)| open >> queue & 1 != is >> queue & 1);
                    let expected = change.map(|change| at(now + i64::try_from(change).unwrap()));
                    prop_assert_eq!(gates.changes(queue, at(now)), expected, "queue {} at {}", queue, now);
                }
            }
        }

        #[test]
        fn the_mac_is_told_to_hold_and_to_release_in_advance(
            lists in proptest::collection::vec(
                (1_i64..60, 0_i64..12, proptest::collection::vec((0_u8..3, 1_i64..9), 1..5)), 1..4,
            ),
            (hold, release) in (0_i64..12, 0_i64..12),
        ) {
            let mut base = -20;
            let lists: Vec<GateList> = lists.iter().enumerate().map(|(number, (after, extension, entries))| {
                base += after;
                let mut all = list(base, *extension, entries);
                for (entry, (mac, _)) in all.entries.iter_mut().zip(entries) {
                    entry.mac = [MacOperation::Unchanged, MacOperation::Hold, MacOperation::Release][usize::from(*mac)];
                }
                // Where a list takes over its first entry says what holds from there.
                if number > 0 && all.entries[0].mac == MacOperation::Unchanged {
                    all.entries[0].mac = MacOperation::Release;
                }
                all
            }).collect();
            let gates = Gates::new(&lists).unwrap();
            let seen = walked(&lists, -100, 500);
            // Held and released long enough for what is told in advance.
            let edges: Vec<(i64, bool)> =
                (-100..).zip(seen.windows(2)).filter(|(_, pair)| pair[0].1 != pair[1].1).map(|(at, pair)| (at + 1, pair[1].1)).collect();
            let short = edges.windows(2).any(|pair| pair[1].0 - pair[0].0 <= if pair[1].1 { hold } else { release });
            prop_assume!(!short);
            let told: Vec<(i64, bool)> =
                edges.iter().map(|&(at, holds)| (at - if holds { hold } else { release }, holds)).collect();
            let advances = HoldAdvances { hold: Span::from_picos(hold), release: Span::from_picos(release) };
            for now in 0_i64..300 {
                let expected = told.iter().rfind(|(at, _)| *at <= now).map_or(seen[0].1, |(_, holds)| *holds);
                let next = told.iter().find(|(at, _)| *at > now).map(|(at, _)| *at);
                let (held, until) = gates.held(at(now), advances);
                prop_assert_eq!(held, expected, "at {}", now);
                match (until.map(LocalTime::as_picos), next) {
                    (until, Some(next)) if next < 450 => prop_assert_eq!(until, Some(next), "at {}", now),
                    (until, _) => prop_assert!(until.is_none_or(|until| until >= 450), "at {}", now),
                }
            }
        }
    }
}
