//! When messages are due: the patterns of the test language as one sequence of intended times.
//!
//! Even spacing and bursts are closed forms of the message's number and cost nothing to carry on; exponential intervals and
//! rate limits come from the core's generators. Times are of the sender's own clock.

use wg_core::generator::{Exponential, RateLimit};
use wg_core::line::{GAP, PREAMBLE, SMALLEST_FRAME};
use wg_frame::time::{RunTime, Span};
use wg_plan::{Pattern, Run, Send};

use crate::error::SimError;
use crate::random::{Purpose, Stream};

/// A message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When, by the sender's clock.
    pub(crate) at: RunTime,
    /// Its number; warm-up messages are numbered on their own.
    pub(crate) sequence: u32,
    /// Sent in the warm-up.
    pub(crate) warm_up: bool,
}

/// `size` messages every `period`, `spacing` apart.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    first_measured: RunTime,
    period: Span,
    size: i64,
    spacing: Span,
    warm_up_count: i64,
}

impl Bursts {
    /// When message `index` of both phases is due.
    fn at(&self, index: u64) -> RunTime {
        let from_first = index as i64 - self.warm_up_count;
        let (burst, within) = (from_first.div_euclid(self.size), from_first.rem_euclid(self.size));
        let after = self.period.as_picos() * burst + self.spacing.as_picos() * within;
        self.first_measured + Span::from_picos(after)
    }
}

enum Times {
    Even(Bursts),
    Drawn(Box<dyn Iterator<Item = RunTime>>),
}

/// The messages of a sender.
pub(crate) struct Schedule {
    times: Times,
    warm_up_count: u64,
    total: u64,
    next: u64,
}

impl Schedule {
    /// The schedule of `send`, whose frames are `length` bytes long, in `run`.
    pub(crate) fn new(run: &Run, send: &Send, length: u16) -> Result<Self, SimError> {
        let problem = |what: &str| SimError::plan(format!("flow {}: {what}", send.flow));
        if send.period <= Span::ZERO {
            return Err(problem("the period is not positive"));
        }
        let (size, spacing) = match send.pattern {
            Pattern::Bursts { size, spacing } => (size, spacing),
            Pattern::Periodic | Pattern::Exponential => (1, Span::ZERO),
        };
        let whole_burst = spacing.checked_mul(i64::from(size));
        if size == 0 || spacing < Span::ZERO || whole_burst.is_none() {
            return Err(problem("its bursts have no message, or no time between them"));
        }
        let too_long = || problem("it is sent for more than 106 days");
        let longest = send.period.checked_mul(i64::from(send.count.max(send.warm_up_count)) + 1);
        let first_measured = run.warm_up.checked_add(send.offset).ok_or_else(too_long)?;
        let last = longest.and_then(|span| span.checked_add(whole_burst?)).ok_or_else(too_long)?;
        first_measured.checked_add(last).ok_or_else(too_long)?;
        let bursts = Bursts {
            first_measured: RunTime::ZERO + first_measured,
            period: send.period,
            size: i64::from(size),
            spacing,
            warm_up_count: i64::from(send.warm_up_count),
        };
        let total = u64::from(send.warm_up_count) + u64::from(send.count);
        let drawn: Option<Box<dyn Iterator<Item = RunTime>>> = match send.pattern {
            Pattern::Exponential => {
                let uniforms = Stream::new(run.seed, Purpose::Generator, u32::from(send.flow));
                let times = Exponential::new(bursts.at(0), send.period, uniforms);
                Some(Box::new(times.map_err(|error| problem(&error.to_string()))?))
            }
            _ if send.rate_limit_bps.is_some() => Some(Box::new((0..total).map(move |at| bursts.at(at)))),
            _ => None,
        };
        let times = match (drawn, send.rate_limit_bps) {
            (Some(drawn), Some(rate)) => {
                let bits = 8 * u64::from(u32::from(length.max(SMALLEST_FRAME)) + PREAMBLE + GAP);
                let limited = RateLimit::new(rate, bits, bits, drawn.map(move |at| (at, bits)));
                Times::Drawn(Box::new(limited.map_err(|error| problem(&error.to_string()))?))
            }
            (Some(drawn), None) => Times::Drawn(drawn),
            (None, _) => Times::Even(bursts),
        };
        Ok(Self { times, warm_up_count: u64::from(send.warm_up_count), total, next: 0 })
    }

    /// The next message; nothing when all were due, or when the next one is beyond all time.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Due> {
        if self.next >= self.total {
            return None;
        }
        let at = match &mut self.times {
            Times::Even(bursts) => bursts.at(self.next),
            Times::Drawn(times) => times.next()?,
        };
        let index = self.next;
        self.next += 1;
        let warm_up = index < self.warm_up_count;
        Some(Due { at, sequence: (if warm_up { index } else { index - self.warm_up_count }) as u32, warm_up })
    }

    /// Messages in all.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(send: &Send, run: &Run) -> Vec<Due> {
        let mut schedule = Schedule::new(run, send, 64).expect("a schedule");
        std::iter::from_fn(|| schedule.next()).collect()
    }

    fn run() -> Run {
        Run { warm_up: Span::from_millis(20), seed: 9, ..Run::default() }
    }

    proptest! {
        #[test]
        fn messages_come_in_order_and_message_0_at_the_end_of_the_warm_up(
            size in 1_u32..6, spacing in 0_i64..100, warm_up_count in 0_u32..9, count in 1_u32..20, limited: bool,
        ) {
            let mut send = Send::periodic(3, Span::from_millis(1), 64, count);
            send.warm_up_count = warm_up_count;
            send.pattern = Pattern::Bursts { size, spacing: Span::from_micros(spacing) };
            let free = due(&send, &run());
            prop_assert_eq!(free.len() as u32, warm_up_count + count);
            prop_assert!(free.windows(2).all(|pair| pair[0].at <= pair[1].at));
            prop_assert_eq!(free[warm_up_count as usize],
                Due { at: RunTime::ZERO + Span::from_millis(20), sequence: 0, warm_up: false });
            // 84 B on the wire at 1 Mbit/s: 672 µs apart at least.
            send.rate_limit_bps = limited.then_some(1_000_000);
            let held = due(&send, &run());
            prop_assert!(held.iter().zip(&free).all(|(held, free)| held.at >= free.at));
            if limited {
                prop_assert!(held.windows(2).all(|p| p[1].at - p[0].at >= Span::from_micros(672)));
            } else {
                prop_assert_eq!(held, free);
            }
        }
    }

    #[test]
    fn exponential_intervals_have_their_mean_and_follow_the_seed() {
        let mut send = Send::periodic(3, Span::from_millis(1), 64, 20_000);
        (send.pattern, send.warm_up_count) = (Pattern::Exponential, 20);
        let drawn = due(&send, &run());
        let mean = (drawn[20_019].at - RunTime::ZERO).as_picos() as f64 / 20_020.0 / 1e9;
        // Four standard errors.
        assert!((mean - 1.0).abs() < 0.03, "{mean} ms");
        assert_eq!(drawn, due(&send, &run()));
        assert_ne!(drawn, due(&send, &Run { seed: 10, ..run() }));
        assert!(drawn[19].warm_up && !drawn[20].warm_up && drawn[20].sequence == 0);
    }
}
