//! Frames that arrive at one instant for free lines: a port chooses among all of them, not the first that came.
//!
//! A frame that waits is chosen by a port when its line becomes free, after all inputs of that instant. A frame that
//! comes to a port with a free line and nobody waiting could begin at once; where other inputs of its instant may
//! follow, the device keeps it here until they are in. Then the most urgent begins, the first of equals, and the others
//! are offered in the order they came: only these need room in a buffer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wg_frame::time::RunTime;

use crate::deadline::Deadline;

/// Frames that arrived at one instant for free ports. Usually none, so a device stores one pointer.
#[derive(Debug)]
pub(crate) struct Contenders<T> {
    some: Option<Box<Arrived<T>>>,
}

#[derive(Debug)]
struct Arrived<T> {
    since: RunTime,
    /// The arrivals with their output ports, in the order they came.
    all: Vec<(usize, T)>,
}

impl<T> Contenders<T> {
    pub(crate) const fn new() -> Self {
        Self { some: None }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.some.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.some.as_ref().map_or(0, |some| some.all.len())
    }

    /// Whether arrivals before `now` were not settled, because the driver is late.
    #[inline]
    pub(crate) fn is_overdue(&self, now: RunTime) -> bool {
        self.some.as_ref().is_some_and(|some| some.since < now)
    }

    #[cold]
    pub(crate) fn push(&mut self, now: RunTime, port: usize, contender: T) {
        let some = self.some.get_or_insert_with(|| Box::new(Arrived { since: now, all: Vec::new() }));
        some.since = now;
        some.all.push((port, contender));
    }

    /// Instant at which the arrivals have to be settled: that of their arrival.
    #[inline]
    pub(crate) fn deadline(&self) -> Deadline {
        self.some.as_ref().map_or(Deadline::NEVER, |some| Deadline::at(some.since))
    }

    /// Removes and returns all arrivals, port after port: the most urgent of each port first, the rest in the order
    /// they came.
    #[cold]
    pub(crate) fn settle(&mut self, urgency: impl Fn(usize, &T) -> usize) -> Vec<(usize, T)> {
        let mut all = self.take();
        all.sort_by_key(|(port, _)| *port);
        for group in all.chunk_by_mut(|(one, _), (other, _)| one == other) {
            let rank = |(port, contender): &(usize, T)| urgency(*port, contender);
            let most = group.iter().map(rank).max();
            if let Some(first) = group.iter().position(|one| Some(rank(one)) == most) {
                group[..=first].rotate_right(1);
            }
        }
        all
    }

    /// Removes and returns all arrivals in the order they came.
    pub(crate) fn take(&mut self) -> Vec<(usize, T)> {
        self.some.take().map_or_else(Vec::new, |some| some.all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reference by definition: repeatedly take the first of the most urgent, then the rest in order.
        #[test]
        fn the_first_of_the_most_urgent_leads_each_port(
            came in proptest::collection::vec((0_usize..4, 0_usize..3), 0..30),
        ) {
            let mut contenders = Contenders::new();
            for (number, &(port, urgency)) in came.iter().enumerate() {
                contenders.push(RunTime::ZERO, port, (urgency, number));
            }
            let mut expected = Vec::new();
            for port in 0..4 {
                let mut own: Vec<_> = came.iter().enumerate()
                    .filter(|(_, one)| one.0 == port)
                    .map(|(number, one)| (one.1, number))
                    .collect();
                if let Some(best) = own.iter().copied().max_by_key(|(urgency, number)| (*urgency, came.len() - number)) {
                    own.retain(|one| *one != best);
                    own.insert(0, best);
                }
                expected.extend(own.into_iter().map(|one| (port, one)));
            }
            prop_assert_eq!(contenders.settle(|_, one| one.0), expected);
            prop_assert!(contenders.is_empty() && contenders.deadline() == Deadline::NEVER);
        }
    }
}
