//! The one total order of events.
//!
//! Every event comes from a *source*: a direction of a link, a relay, a sender, an injector, a node's own timer. A
//! source has at most one next instant, and its own events keep their order. The agenda orders the sources by
//! **(time, class, number)**: the earlier instant first; at equal instants the class in the order of
//! [`Class`]; within a class the number the plan gives. Nothing else in the simulator decides an order: there
//! is no counter of insertions, so the order of two events never depends on what was scheduled before them.
//!
//! It is a tournament tree. Sources are numbered class after class, the leaves stand in that order, and a tie goes to
//! the left: time and place *are* the total order, and no key is stored besides the time. Setting a source
//! costs one climb, at most log2(sources) steps, and fewer where the winner above does not change; the next event is
//! read at the root. A heap was not taken because sources change their instant in place all the time (a link delivers
//! its next frame, a sender plans its next message), which in a heap is a search or a dead entry.

use wg_core::Deadline;
use wg_frame::time::RunTime;

/// What happens at one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A frame comes out of a direction of a link.
    Arrival,
    /// A relay has a message in hand.
    Turn,
    /// A relay has waited long enough for the successor of a swapped message.
    Flush,
    /// A message is due to be sent.
    Send,
    /// A burst of background load is due.
    Inject,
    /// A node does what it has waited for: last, so that a port chooses among all frames of the instant.
    Timer,
}

const ALL: [Class; 6] = [Class::Arrival, Class::Turn, Class::Flush, Class::Send, Class::Inject, Class::Timer];
const CLASSES: usize = ALL.len();
const NEVER: i64 = i64::MAX;

/// The next instant of every source.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Complete binary tree: the root at 1, the children of `i` at `2i` and `2i + 1`, leaves from `leaves` on.
    tree: Vec<Entry>,
    leaves: usize,
    starts: [usize; CLASSES + 1],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    time: i64,
    number: u32,
    class: Class,
}

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// What it does.
    pub(crate) class: Class,
    /// Which of its class.
    pub(crate) number: usize,
}

impl Agenda {
    /// An empty agenda for so many sources of each class, in the order of [`Class`].
    pub(crate) fn new(counts: [usize; CLASSES]) -> Self {
        let mut starts = [0; CLASSES + 1];
        for (class, count) in counts.into_iter().enumerate() {
            starts[class + 1] = starts[class] + count;
        }
        let leaves = starts[CLASSES].next_power_of_two().max(2);
        let mut tree = vec![Entry { time: NEVER, number: 0, class: Class::Timer }; 2 * leaves];
        for class in ALL {
            let own = &mut tree[leaves..][starts[class as usize]..starts[class as usize + 1]];
            for (number, leaf) in (0..).zip(own) {
                *leaf = Entry { time: NEVER, number, class };
            }
        }
        for at in (1..leaves).rev() {
            tree[at] = tree[2 * at];
        }
        Self { tree, leaves, starts }
    }

    /// Sets the next instant of a source.
    #[inline]
    pub(crate) fn set(&mut self, class: Class, number: usize, at: Deadline) {
        let time = at.instant().map_or(NEVER, RunTime::as_picos);
        let source = self.starts[class as usize] + number;
        debug_assert!(source < self.starts[class as usize + 1], "a source of another class");
        let mut at = self.leaves + source;
        if self.tree[at].time == time {
            return;
        }
        self.tree[at].time = time;
        while at > 1 {
            at /= 2;
            let (left, right) = (self.tree[2 * at], self.tree[2 * at + 1]);
            let winner = if right.time < left.time { right } else { left };
            if self.tree[at] == winner {
                return;
            }
            self.tree[at] = winner;
        }
    }

    /// The first event in the total order; `None` when nothing is planned.
    #[inline]
    pub(crate) fn first(&self) -> Option<(RunTime, Source)> {
        let Entry { time, number, class } = self.tree[1];
        if time == NEVER {
            return None;
        }
        Some((RunTime::from_picos(time), Source { class, number: number as usize }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the order as it is written: the least (time, class, number) of all that are planned.
        #[test]
        fn the_first_is_the_least_of_time_class_and_number(
            counts in proptest::array::uniform6(0_usize..5),
            settings in proptest::collection::vec((0_usize..30, prop_oneof![3 => (0_i64..6).prop_map(Some), 1 => Just(None)]), 0..120),
        ) {
            let sources: Vec<(Class, usize)> =
                ALL.iter().zip(counts).flat_map(|(class, n)| (0..n).map(|i| (*class, i))).collect();
            let mut agenda = Agenda::new(counts);
            let mut planned = std::collections::BTreeMap::new();
            for (which, time) in settings {
                if sources.is_empty() { break; }
                let (class, number) = sources[which % sources.len()];
                let time = time.map(RunTime::from_picos);
                agenda.set(class, number, time.into());
                planned.insert((class, number), time);
                let least = planned.iter().filter_map(|(key, at)| at.map(|at| (at, key.0, key.1))).min();
                let first = agenda.first().map(|(at, source)| (at, source.class, source.number));
                prop_assert_eq!(first, least);
            }
        }
    }
}
