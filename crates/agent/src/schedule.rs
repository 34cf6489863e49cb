//! When each message of a sender task is due.

use wg_frame::time::{RunTime, Span};
use wg_plan::Send;

/// One planned message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its intended send.
    pub due: RunTime,
    /// Its number within its phase.
    pub sequence: u32,
    /// Whether it belongs to the warm-up.
    pub warm_up: bool,
}

/// The schedule of one sender task: warm-up messages first, then the measured ones, all one period apart.
#[derive(Clone, Debug)]
pub struct Schedule {
    first_measured: RunTime,
    period: Span,
    warm_up_count: u32,
    count: u32,
    next: u64,
}

impl Schedule {
    /// The schedule of `send` in a run with this warm-up; `None` when a time would lie beyond 106 days.
    pub fn new(send: &Send, warm_up: Span) -> Option<Self> {
        let first = warm_up.checked_add(send.offset)?;
        let longest = send.period.checked_mul(i64::from(send.count.max(send.warm_up_count)))?;
        first.checked_add(longest)?;
        Some(Self {
            first_measured: RunTime::ZERO + first,
            period: send.period,
            warm_up_count: send.warm_up_count,
            count: send.count,
            next: 0,
        })
    }

    /// Intended send of the last message; `None` when there is no message.
    pub fn last_due(&self) -> Option<RunTime> {
        let total = self.total();
        (total > 0).then(|| self.at(total - 1).due)
    }

    /// Messages in all.
    pub fn total(&self) -> u64 {
        u64::from(self.warm_up_count) + u64::from(self.count)
    }

    /// Message `index`, counted over both phases.
    fn at(&self, index: u64) -> Planned {
        let from_first = i64::try_from(index).unwrap_or(i64::MAX) - i64::from(self.warm_up_count);
        let warm_up = from_first < 0;
        let due = self.first_measured + Span::from_picos(self.period.as_picos().saturating_mul(from_first));
        let sequence = if warm_up { index } else { index - u64::from(self.warm_up_count) };
        Planned { due, sequence: u32::try_from(sequence).unwrap_or(u32::MAX), warm_up }
    }
}

impl Iterator for Schedule {
    type Item = Planned;
    fn next(&mut self) -> Option<Planned> {
        if self.next >= self.total() {
            return None;
        }
        let planned = self.at(self.next);
        self.next += 1;
        Some(planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn warm_up_ends_one_period_before_the_first_measured_message(
            period in 1_i64..1_000_000, offset in 0_i64..1_000_000, warm_up in 0_i64..10_000_000,
            count in 0_u32..50, warm_up_count in 0_u32..50,
        ) {
            let send = Send {
                offset: Span::from_nanos(offset), warm_up_count,
                ..Send::periodic(1, Span::from_nanos(period), 64, count)
            };
            let schedule = Schedule::new(&send, Span::from_nanos(warm_up)).expect("small times");
            let last = schedule.last_due();
            let all: Vec<Planned> = schedule.collect();
            prop_assert_eq!(all.len() as u32, count + warm_up_count);
            prop_assert_eq!(all.last().map(|p| p.due), last);
            for (k, planned) in all.iter().filter(|p| !p.warm_up).enumerate() {
                prop_assert_eq!(planned.sequence as usize, k);
                prop_assert_eq!(planned.due.as_picos(), 1000 * (warm_up + offset + k as i64 * period));
            }
            for (j, planned) in all.iter().filter(|p| p.warm_up).enumerate() {
                prop_assert_eq!(planned.sequence as usize, j);
                let before = i64::from(warm_up_count) - j as i64;
                prop_assert_eq!(planned.due.as_picos(), 1000 * (warm_up + offset - before * period));
            }
            prop_assert!(all.windows(2).all(|w| (w[1].due - w[0].due) == Span::from_nanos(period)));
        }
    }

    #[test]
    fn a_schedule_beyond_the_longest_run_is_refused() {
        let send = Send::periodic(1, Span::from_picos(i64::MAX / 2), 64, 3);
        assert!(Schedule::new(&send, Span::ZERO).is_none());
    }
}
