//! The queues into a servicing thread, merged by intended send time.

use rtrb::Consumer;
use wg_frame::time::RunTime;

use crate::end_system::buffer::Outgoing;

/// Item with an intended send time.
pub trait Due {
    /// Intended send time.
    fn due(&self) -> RunTime;
}

impl Due for Outgoing {
    fn due(&self) -> RunTime {
        self.due
    }
}

const EMPTY: i64 = i64::MAX;

/// Wait-free queues merged by the due time of their heads; among equal due times the queue added first is served first.
/// Each queue must be in the order of its own due times.
pub struct Outboxes<T> {
    queues: Vec<Consumer<T>>,
    /// Due time of each queue's head, so that finding the earliest does not touch the producers' cache lines.
    heads: Vec<i64>,
}

impl<T: Due> Outboxes<T> {
    /// Merger of these queues.
    pub fn new(queues: Vec<Consumer<T>>) -> Self {
        let heads = vec![EMPTY; queues.len()];
        Self { queues, heads }
    }

    /// Index and due time of the queue with the earliest head; `None` if all are empty.
    pub fn earliest(&mut self) -> Option<(usize, RunTime)> {
        let mut best = (usize::MAX, EMPTY);
        for (i, head) in self.heads.iter_mut().enumerate() {
            if *head == EMPTY
                && let Ok(next) = self.queues[i].peek()
            {
                *head = next.due().as_picos();
            }
            if *head < best.1 {
                best = (i, *head);
            }
        }
        (best.1 != EMPTY).then(|| (best.0, RunTime::from_picos(best.1)))
    }

    /// Removes and returns the head of queue `index`.
    pub fn take(&mut self, index: usize) -> Option<T> {
        let queue = self.queues.get_mut(index)?;
        let taken = queue.pop().ok();
        self.heads[index] = queue.peek().map_or(EMPTY, |next| next.due().as_picos());
        taken
    }

    /// True if there is no queue.
    pub fn is_unused(&self) -> bool {
        self.queues.is_empty()
    }

    /// True if every queue is empty and its producer has ended.
    pub fn is_over(&self) -> bool {
        self.queues.iter().all(|queue| queue.is_abandoned() && queue.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rtrb::RingBuffer;

    struct Item(i64, usize);
    impl Due for Item {
        fn due(&self) -> RunTime {
            RunTime::from_picos(self.0)
        }
    }

    proptest! {
        #[test]
        fn the_merge_is_the_stable_sort_of_all_queues(
            mut queues in proptest::collection::vec(proptest::collection::vec(0_i64..50, 0..20), 0..6)
        ) {
            let mut expected = Vec::new();
            let mut consumers = Vec::new();
            for (i, queue) in queues.iter_mut().enumerate() {
                queue.sort_unstable();
                let (mut producer, consumer) = RingBuffer::new(queue.len().max(1));
                for &due in queue.iter() {
                    prop_assert!(producer.push(Item(due, i)).is_ok());
                    expected.push((due, i));
                }
                consumers.push(consumer);
            }
            expected.sort_by_key(|&(due, i)| (due, i));
            let mut merged = Outboxes::new(consumers);
            let mut got = Vec::new();
            while let Some((index, due)) = merged.earliest() {
                let item = merged.take(index).expect("the earliest queue has a head");
                prop_assert_eq!(due, item.due());
                got.push((item.0, item.1));
            }
            prop_assert_eq!(got, expected);
            prop_assert!(merged.is_over());
        }

        #[test]
        fn messages_that_come_later_are_merged_too(first in 0_i64..100, second in 0_i64..100) {
            let (mut a, ca) = RingBuffer::new(4);
            let (mut b, cb) = RingBuffer::new(4);
            let mut merged = Outboxes::new(vec![ca, cb]);
            prop_assert!(merged.earliest().is_none());
            prop_assert!(a.push(Item(first, 0)).is_ok());
            prop_assert_eq!(merged.earliest(), Some((0, RunTime::from_picos(first))));
            prop_assert!(b.push(Item(second, 1)).is_ok());
            let winner = usize::from(second < first);
            prop_assert_eq!(merged.earliest().map(|e| e.0), Some(winner));
        }
    }
}
