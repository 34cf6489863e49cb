//! The one total order of events.
//!
//! Every event comes from a *source*: a direction of a link, a hub, a relay, a sender, an injector, a node's own
//! timer or clock. A source has at most one next instant, and its own events keep their order. The agenda orders the sources by
//! **(time, class, number)**: the earlier instant first; at equal instants the class in the order of
//! [`Class`]; within a class the number the plan gives. Nothing else in the simulator decides an order: there
//! is no counter of insertions, so the order of two events never depends on what was scheduled before them.
//!
//! It is a tournament tree of wide nodes. Sources are numbered class after class, the leaves stand in that order, and a
//! tie goes to the left: time and place *are* the total order, and no key is stored besides the time. A node
//! holds the earliest instants of its eight children in one cache line, and knows which child is the least. Setting a source
//! compares it with the least of its node and goes up only where it becomes the least there; only where it was the least
//! and is no more are eight children compared. The next event is found by as many steps down as there are levels,
//! log8(sources).
//!
//! The source that acts is the least of all, and it always changes its instant, most often among other changes. So its way
//! to the root is gone once, when the next event is asked for; until then the nodes on it hold an instant that has
//! come, and no other change goes further up than to one of them.
//!
//! A binary tree climbs three times as far, each step waiting for the one before. A heap was not taken because
//! sources change their instant in place all the time (a link delivers its next frame, a sender plans its
//! next message), which in a heap is a search or a dead entry.

use wg_core::Deadline;
use wg_frame::time::RunTime;

/// What happens at one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// What an oscillator will do in the time ahead becomes known: before anything is planned by it.
    Clock,
    /// The network changes: a link is cut, a switch restarts, a sender babbles. The instant already sees it changed.
    Incident,
    /// A frame comes out of a direction of a link.
    Arrival,
    /// A frame that a faulty link held back or doubled comes out of it, behind those that came in time.
    Straggler,
    /// The shared medium of a hub: transmissions and signals begin and end.
    Medium,
    /// A relay has a message in hand.
    Turn,
    /// A relay has waited long enough for the successor of a swapped message.
    Flush,
    /// A message is due to be sent.
    Send,
    /// A babbling end system sends.
    Babble,
    /// A burst of background load is due.
    Inject,
    /// A node does what it has waited for: after all inputs of the instant, so that a port chooses among all frames.
    Timer,
    /// A clock is compared with the true time: last, it changes nothing.
    Sample,
}

const ALL: [Class; 12] = [
    Class::Clock,
    Class::Incident,
    Class::Arrival,
    Class::Straggler,
    Class::Medium,
    Class::Turn,
    Class::Flush,
    Class::Send,
    Class::Babble,
    Class::Inject,
    Class::Timer,
    Class::Sample,
];
const CLASSES: usize = ALL.len();
const NEVER: i64 = i64::MAX;

/// Children of a node: as many instants as a cache line holds.
const WIDTH: usize = 8;

/// The earliest instants of eight neighbours.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node([i64; WIDTH]);

impl Node {
    const EMPTY: Self = Self([NEVER; WIDTH]);

    /// The least instant and the leftmost child that has it, found without a branch that the processor would have to
    /// guess.
    #[inline]
    fn least(&self) -> (i64, u8) {
        let first = |a: (i64, u8), b: (i64, u8)| if b.0 < a.0 { b } else { a };
        let [a, b, c, d, e, f, g, h] = self.0;
        let left = first(first((a, 0), (b, 1)), first((c, 2), (d, 3)));
        let right = first(first((e, 4), (f, 5)), first((g, 6), (h, 7)));
        first(left, right)
    }
}

/// The next instant of every source.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// Level by level, the leaves first and the root last.
    nodes: Vec<Node>,
    /// By node: its child with the least instant.
    best: Vec<u8>,
    /// The least of all.
    earliest: i64,
    /// Where each level begins in `nodes`.
    levels: Vec<usize>,
    starts: [usize; CLASSES + 1],
    /// What each leaf stands for.
    sources: Vec<Source>,
}

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// What it does.
    pub(crate) class: Class,
    /// Which of its class.
    pub(crate) number: u32,
}

impl Agenda {
    /// An empty agenda for so many sources of each class, in the order of [`Class`].
    pub(crate) fn new(counts: [usize; CLASSES]) -> Self {
        let mut starts = [0; CLASSES + 1];
        for (class, count) in counts.into_iter().enumerate() {
            starts[class + 1] = starts[class] + count;
        }
        let (mut levels, mut nodes, mut count) = (Vec::new(), 0, starts[CLASSES].max(1));
        while count > 1 || levels.is_empty() {
            count = count.div_ceil(WIDTH);
            levels.push(nodes);
            nodes += count;
        }
        let all = ALL.into_iter().zip(counts);
        let sources = all
            .flat_map(|(class, count)| (0..count).map(move |number| Source { class, number: number as u32 }));
        let sources = sources.collect();
        Self {
            nodes: vec![Node::EMPTY; nodes],
            best: vec![0; nodes],
            earliest: NEVER,
            levels,
            starts,
            sources,
        }
    }

    /// Sets the next instant of a source.
    #[inline]
    pub(crate) fn set(&mut self, class: Class, number: usize, at: Deadline) {
        let time = at.instant().map_or(NEVER, RunTime::as_picos);
        let source = self.starts[class as usize] + number;
        debug_assert!(source < self.starts[class as usize + 1], "a source of another class");
        let was = self.nodes[source / WIDTH].0[source % WIDTH];
        if time < was {
            self.advance(source, time);
        } else if time > was {
            self.put_off(source, time);
        }
    }

    /// A source comes earlier: it goes up as far as it is the least.
    #[inline]
    fn advance(&mut self, source: usize, time: i64) {
        let mut at = source;
        for level in &self.levels {
            let (number, place) = (level + at / WIDTH, at % WIDTH);
            let (node, best) = (&mut self.nodes[number].0, &mut self.best[number]);
            node[place] = time;
            let first = usize::from(*best) % WIDTH;
            let least = node[first];
            if time > least || time == least && place > first {
                return;
            }
            *best = place as u8;
            at /= WIDTH;
        }
        self.earliest = time;
    }

    /// A source comes later: where it was the least, its neighbours are compared.
    #[inline]
    fn put_off(&mut self, source: usize, time: i64) {
        let (mut at, mut time) = (source, time);
        for level in &self.levels {
            let (number, place) = (level + at / WIDTH, at % WIDTH);
            let node = &mut self.nodes[number];
            node.0[place] = time;
            if usize::from(self.best[number]) != place {
                return;
            }
            (time, self.best[number]) = node.least();
            at /= WIDTH;
        }
        self.earliest = time;
    }

    /// The next event in the total order; `None` when nothing is planned. Its source acts and has no further instant until
    /// one is set.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(RunTime, Source)> {
        let time = self.earliest;
        if time == NEVER {
            return None;
        }
        let down = |at: usize, level: &usize| at * WIDTH + usize::from(self.best[level + at]);
        let leaf = self.levels.iter().rev().fold(0, down);
        self.put_off(leaf, NEVER);
        Some((RunTime::from_picos(time), *self.sources.get(leaf)?))
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
            counts in proptest::array::uniform12(0_usize..4),
            settings in proptest::collection::vec((0_usize..40, prop_oneof![3 => (0_i64..6).prop_map(Some), 1 => Just(None)], any::<bool>()), 0..120),
        ) {
            let sources: Vec<(Class, usize)> =
                ALL.iter().zip(counts).flat_map(|(class, n)| (0..n).map(|i| (*class, i))).collect();
            let mut agenda = Agenda::new(counts);
            let mut planned = std::collections::BTreeMap::new();
            for (which, time, looks) in settings {
                if sources.is_empty() { break; }
                let (class, number) = sources[which % sources.len()];
                let time = time.map(RunTime::from_picos);
                agenda.set(class, number, time.into());
                planned.insert((class, number), time);
                if !looks { continue; }
                let least = planned.iter().filter_map(|(key, at)| at.map(|at| (at, key.0, key.1))).min();
                let next = agenda.next().map(|(at, source)| (at, source.class, source.number as usize));
                prop_assert_eq!(next, least);
                if let Some((_, class, number)) = next { planned.insert((class, number), None); }
            }
        }
    }
}
