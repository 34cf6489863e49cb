//! The one total order of events.
//!
//! Every event comes from a *source*: a direction of a link, a hub, a relay, a sender, an injector, a node's own timer
//! or clock. A source has at most one next instant, and its own events keep their order. The queue orders the sources
//! by **(time, class, number)**: the earlier instant first; at equal instants the class in the order of [`Class`];
//! within a class the number the plan gives. Nothing else in the simulator decides an order: there is no counter of
//! insertions, so the order of two events never depends on what was scheduled before them.
//!
//! Sources are numbered class after class; an instant and the number of its source make one integer, so that the order
//! above is the order of integers. They are the leaves of a tree whose nodes have eight children, one cache line, and
//! each node is the least of its eight. A key that becomes earlier is written upwards as far as it is the least; where
//! the least key becomes later, or is taken, its neighbours are compared. A binary tree climbs three times as far, each
//! step waiting for the one before. A heap was not taken because sources change their instant in place all the time (a
//! link delivers its next frame, a sender plans its next message), which in a heap is a search or a dead entry.
//!
//! The integer has 64 bits and a run may last 106 days: instants count from a base, and those too far from it wait
//! outside the tree until all earlier ones are gone. With a thousand sources the limit is five hours.

use std::collections::BTreeMap;

use wg_core::Deadline;
use wg_frame::time::RunTime;

/// Classes of events, in their order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A clock changes: before anything reads it.
    Clock,
    /// The network changes: a link is cut, a switch restarts, a sender babbles. The instant already sees it changed.
    Incident,
    /// An event of a host begins or ends: inputs of the instant already see it.
    HostEvent,
    /// A frame comes out of a direction of a link.
    Arrival,
    /// A frame that a faulty link held back or doubled comes out of it, after those without delay.
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
    /// A host logs a message that it sent or received, and sends its records: after the messages of its tasks.
    Log,
    /// A switch sends frames of its own.
    OwnFrames,
    /// A device of an AS6802 cluster is due: after the frames of the instant.
    Synchronise,
    /// A PTP clock is due: after the frames of the instant.
    Ptp,
    /// A node's deadline: after all inputs of the instant, so that a port chooses among all frames.
    Timer,
    /// A clock is compared with true time: last, because it changes nothing.
    Sample,
}

const ALL: [Class; 17] = [
    Class::Clock,
    Class::Incident,
    Class::HostEvent,
    Class::Arrival,
    Class::Straggler,
    Class::Medium,
    Class::Turn,
    Class::Flush,
    Class::Send,
    Class::Babble,
    Class::Inject,
    Class::Log,
    Class::OwnFrames,
    Class::Synchronise,
    Class::Ptp,
    Class::Timer,
    Class::Sample,
];
const CLASSES: usize = ALL.len();
/// The key of no instant, greater than all others.
const NEVER: u64 = u64::MAX;

/// Children of a node: the keys in a cache line.
const WIDTH: usize = 8;

/// The keys of eight neighbours.
type Node = [u64; WIDTH];

/// The least key of a node, computed without branches.
#[inline]
fn least(node: &Node) -> u64 {
    let [a, b, c, d, e, f, g, h] = *node;
    let least = |a: u64, b: u64| if b < a { b } else { a };
    least(least(least(a, b), least(c, d)), least(least(e, f), least(g, h)))
}

/// The next instant of every source.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// The keys of nodes, level by level, the root first and the leaves last: the children of a node follow those of the
    /// nodes before it. Key n - 1, counted over all nodes, is the least key of node n.
    keys: Vec<u64>,
    /// Index of the root's first key: so that each node is a cache line.
    root: usize,
    /// Place of the first source's key, counted from the root; those of the others follow.
    leaves: usize,
    /// The least key of all.
    earliest: u64,
    /// Number of low bits of a key that hold the number of the source.
    bits: u32,
    /// Instant from which keys count, in picoseconds of the run.
    base: i64,
    /// Instants at this distance from the base or farther have no key. One bit less than available: no key is
    /// [`NEVER`], and no sum with the base overflows.
    limit: u64,
    /// Equal to `limit` while there are no far instants, otherwise 0, so that every change then takes the slow path.
    reach: u64,
    /// Instants too far from the base for a key, by source; later than all in the tree.
    far: BTreeMap<usize, i64>,
    starts: [usize; CLASSES + 1],
    /// The source of each leaf.
    sources: Vec<Source>,
}

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Class of its events.
    pub(crate) class: Class,
    /// Its number within the class.
    pub(crate) number: u32,
}

impl EventQueue {
    /// An empty queue with this number of sources for each class, in the order of [`Class`].
    pub(crate) fn new(counts: [usize; CLASSES]) -> Self {
        let mut starts = [0; CLASSES + 1];
        for (class, count) in counts.into_iter().enumerate() {
            starts[class + 1] = starts[class] + count;
        }
        // The first node of the lowest level, and the number of its nodes.
        let (mut lowest, mut room) = (0, 1);
        while room * WIDTH < starts[CLASSES] {
            lowest = lowest * WIDTH + 1;
            room *= WIDTH;
        }
        let nodes = lowest + starts[CLASSES].div_ceil(WIDTH).max(1);
        let all = ALL.into_iter().zip(counts);
        #[expect(clippy::cast_possible_truncation, reason = "nodes and links are numbered in 32 bits")]
        let sources = all
            .flat_map(|(class, count)| (0..count).map(move |number| Source { class, number: number as u32 }));
        let sources: Vec<Source> = sources.collect();
        let bits = usize::BITS - sources.len().leading_zeros();
        let limit = 1 << (u64::BITS - 1 - bits);
        let keys = vec![NEVER; (nodes + 1) * WIDTH];
        Self {
            root: keys.as_ptr().align_offset(WIDTH * size_of::<u64>()).min(WIDTH),
            keys,
            leaves: lowest * WIDTH,
            earliest: NEVER,
            bits,
            base: 0,
            limit,
            reach: limit,
            far: BTreeMap::new(),
            starts,
            sources,
        }
    }

    /// Sets the next instant of a source.
    #[inline]
    pub(crate) fn set(&mut self, class: Class, number: usize, at: Deadline) {
        let source = self.starts[class as usize] + number;
        debug_assert!(source < self.starts[class as usize + 1], "a source of another class");
        match at.instant() {
            Some(at) if self.since_base(at) < self.reach => self.put(source, self.key(source, at)),
            at => self.set_otherwise(source, at),
        }
    }

    /// Slow path of [`set`](Self::set): there is no near instant, or there are far ones.
    #[cold]
    fn set_otherwise(&mut self, source: usize, at: Option<RunTime>) {
        let key = if at.is_none() && self.reach > 0 { NEVER } else { self.set_far(source, at) };
        self.put(source, key);
    }

    /// Instant of the next event.
    #[inline]
    pub(crate) fn earliest(&mut self) -> Deadline {
        if self.earliest == NEVER && !self.approach() {
            return Deadline::NEVER;
        }
        Deadline::at(RunTime::from_picos(self.base + (self.earliest >> self.bits).cast_signed()))
    }

    /// The next event in the total order; `None` if there is none. Its source has no further instant until one is set.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(RunTime, Source)> {
        if self.earliest == NEVER && !self.approach() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of sources")]
        let (time, source) = (self.earliest >> self.bits, (self.earliest & !(NEVER << self.bits)) as usize);
        self.take(source);
        Some((RunTime::from_picos(self.base + time.cast_signed()), *self.sources.get(source)?))
    }

    /// Whether any event but a node's timer or a sample is still due at `now`, the instant of the last event taken.
    #[inline]
    pub(crate) fn has_input_at(&self, now: RunTime) -> bool {
        self.earliest < self.key(self.starts[Class::Timer as usize], now)
    }

    #[inline]
    fn since_base(&self, at: RunTime) -> u64 {
        at.as_picos().wrapping_sub(self.base).cast_unsigned()
    }

    #[inline]
    fn key(&self, source: usize, at: RunTime) -> u64 {
        self.since_base(at) << self.bits | source as u64
    }

    #[inline]
    fn put(&mut self, source: usize, key: u64) {
        let place = self.leaves + source;
        let was = self.tree()[place];
        if key < was {
            self.advance(source, key);
        } else if key > was {
            self.put_off(source, key);
        }
    }

    /// The keys from the root on.
    #[inline]
    fn tree(&mut self) -> &mut [u64] {
        &mut self.keys[self.root..]
    }

    /// Place of a node's least key in the level above; for the root one that belongs to no node.
    #[inline]
    const fn above(node: usize) -> usize {
        node.wrapping_sub(1)
    }

    /// A source becomes earlier: its key is written upwards as far as it is the least. The comparisons go to the top in
    /// any case: an unpredictable exit would cost more.
    #[inline]
    fn advance(&mut self, source: usize, key: u64) {
        let mut place = self.leaves + source;
        let tree = self.tree();
        while let Some(own) = tree.get_mut(place) {
            *own = key.min(*own);
            place = Self::above(place / WIDTH);
        }
        self.earliest = self.earliest.min(key);
    }

    /// A source becomes later: if it was the least, its neighbours are compared. Out of line, because it is rare.
    #[inline(never)]
    fn put_off(&mut self, source: usize, key: u64) {
        let (mut place, mut key) = (self.leaves + source, key);
        let tree = self.tree();
        let was = tree[place];
        loop {
            tree[place] = key;
            key = least(&tree.as_chunks().0[place / WIDTH]);
            if place < WIDTH {
                break;
            }
            place = place / WIDTH - 1;
            if tree[place] != was {
                return;
            }
        }
        if self.earliest == was {
            self.earliest = key;
        }
    }

    /// Removes the instant of the first source.
    #[inline]
    fn take(&mut self, source: usize) {
        let (mut place, mut key) = (self.leaves + source, NEVER);
        let nodes: &mut [Node] = self.tree().as_chunks_mut().0;
        while let Some(node) = nodes.get_mut(place / WIDTH) {
            node[place % WIDTH] = key;
            key = least(node);
            place = Self::above(place / WIDTH);
        }
        self.earliest = key;
    }

    /// As [`set`](Self::set) where an instant is or was far; returns the key.
    #[cold]
    fn set_far(&mut self, source: usize, at: Option<RunTime>) -> u64 {
        self.far.remove(&source);
        let key = match at {
            None => NEVER,
            Some(at) if self.since_base(at) < self.limit => self.key(source, at),
            // Nothing is planned for the past; if it were, it would be due at once.
            Some(at) if at.as_picos() < self.base => self.key(source, RunTime::from_picos(self.base)),
            Some(at) => {
                self.far.insert(source, at.as_picos());
                NEVER
            }
        };
        self.reach = if self.far.is_empty() { self.limit } else { 0 };
        key
    }

    /// Moves the base to the first far instant and takes in those near it; returns whether there was one.
    #[cold]
    fn approach(&mut self) -> bool {
        let Some(first) = self.far.values().copied().min() else { return false };
        self.base = first;
        for (source, at) in std::mem::take(&mut self.far) {
            let key = self.set_far(source, Some(RunTime::from_picos(at)));
            self.put(source, key);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few distinct instants, near and far: up to the end of all time.
    fn instant() -> impl Strategy<Value = Option<i64>> {
        let far = prop_oneof![Just(1_i64 << 55), Just(1 << 62), Just(i64::MAX)];
        prop_oneof![
            6 => (0_i64..6).prop_map(Some),
            1 => (far, 0_i64..3).prop_map(|(far, less)| Some(far - less)),
            2 => Just(None),
        ]
    }

    /// docs/explanation/order-of-events.md is the contract.
    #[test]
    fn the_classes_are_those_of_the_page_in_its_order() {
        let page = include_str!("../../../docs/explanation/order-of-events.md");
        let named = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let own: Vec<String> = ALL.iter().map(|class| format!("{class:?}")).collect();
        assert_eq!(named.collect::<Vec<_>>(), own);
        assert!(ALL.is_sorted());
    }

    proptest! {
        /// Reference: the least (time, class, number) of all that are planned.
        #[test]
        fn the_first_is_the_least_of_time_class_and_number(
            counts in proptest::array::uniform17(0_usize..4),
            settings in proptest::collection::vec((0_usize..40, instant(), any::<bool>()), 0..120),
        ) {
            let sources: Vec<(Class, usize)> =
                ALL.iter().zip(counts).flat_map(|(class, n)| (0..n).map(|i| (*class, i))).collect();
            let mut queue = EventQueue::new(counts);
            let mut now = RunTime::ZERO;
            let mut planned = std::collections::BTreeMap::new();
            for (which, time, looks) in settings {
                if sources.is_empty() { break; }
                let (class, number) = sources[which % sources.len()];
                // As in a simulation, nothing is planned for the past; the end of all time means never.
                let time = time.filter(|at| *at < i64::MAX).map(|at| RunTime::from_picos(at).max(now));
                queue.set(class, number, time.into());
                planned.insert((class, number), time);
                if !looks { continue; }
                let least = planned.iter().filter_map(|(key, at)| at.map(|at| (at, key.0, key.1))).min();
                let next = queue.next().map(|(at, source)| (at, source.class, source.number as usize));
                prop_assert_eq!(next, least);
                if let Some((at, class, number)) = next {
                    let follows = planned.iter().any(|(key, other)| {
                        *key != (class, number) && *other == Some(at) && key.0 < Class::Timer
                    });
                    prop_assert_eq!(queue.has_input_at(at), follows);
                }
                if let Some((at, class, number)) = next {
                    planned.insert((class, number), None);
                    now = at;
                }
            }
        }
    }
}
