//! Order of arrival, and reordering.

use std::collections::VecDeque;

/// Number of a message in the order of sending: life of its sender, and sequence number in it.
pub(super) type Ordinal = u64;

/// Reordering of one flow, phase and receiver, after RFC 4737.
///
/// Arrivals come in order of time. Those that raised the highest number so far are stored, as runs in which position
/// and number both count up by one, for as long as a lower number can still come.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Number of messages that have arrived.
    count: u64,
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    place: u64,
    number: Ordinal,
    length: u64,
}

impl Arrivals {
    /// Takes the next arrival. Returns its reordering extent: 0, or its distance in arrivals from the earliest arrival
    /// with a higher number (RFC 4737, 4.2.1), if its number is below one that came before it (3.3).
    #[inline]
    pub(super) fn next(&mut self, number: Ordinal) -> u32 {
        let place = self.count;
        self.count += 1;
        if let Some(run) = self.runs.back_mut() {
            let after = run.number + run.length;
            if number == after && run.place + run.length == place {
                run.length += 1;
                return 0;
            }
            if number < after {
                return self.extent(place, number);
            }
        }
        self.runs.push_back(Run { place, number, length: 1 });
        0
    }

    #[cold]
    fn extent(&self, place: u64, number: Ordinal) -> u32 {
        let first = self.runs.partition_point(|run| run.number + run.length - 1 <= number);
        let Some(run) = self.runs.get(first) else { return 0 };
        let inside = (number + 1).saturating_sub(run.number);
        u32::try_from(place - (run.place + inside)).unwrap_or(u32::MAX)
    }

    /// Removes arrivals that no number from `lowest` on needs for comparison.
    pub(super) fn forget_below(&mut self, lowest: Ordinal) {
        while self.runs.len() > 1 && self.runs.front().is_some_and(|run| run.number + run.length <= lowest) {
            self.runs.pop_front();
        }
    }
}
