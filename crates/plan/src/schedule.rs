//! When messages are due: the patterns of the test language as one sequence of intended times.
//!
//! Even spacing and bursts are closed forms of the message's number and cost nothing to carry on; exponential intervals and
//! rate limits come from the core's generators; a replay has the times and lengths of its capture. Times are of the
//! sender's own clock. Simulated and real senders ask here and get the same answer, to the picosecond: otherwise they would
//! not offer the same traffic.

use wg_core::generator::{Exponential, GeneratorError, Ramp, RateLimit};
use wg_frame::ethernet::wire_len;
use wg_frame::time::{RunTime, Span};

use crate::campaign::{Activity, Inject, Pattern, Run, Send};
use crate::random::{Purpose, Stream};
use crate::trace::Replay;

/// A schedule no sender can keep. The plan's fault; a compiled plan has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A period of nothing.
    #[error("the period is not positive")]
    Period,
    /// Bursts that are none.
    #[error("its bursts have no message, or no time between them")]
    Bursts,
    /// Times beyond what a run can tell.
    #[error("it is sent for more than 106 days")]
    TooLong,
    /// In a generator.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
}

/// A message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When, by the sender's clock.
    pub at: RunTime,
    /// Its number; warm-up messages are numbered on their own.
    pub sequence: u32,
    /// Sent in the warm-up.
    pub warm_up: bool,
    /// Length of its frame, destination address to FCS.
    pub length: u16,
}

/// `size` messages every `period`, `spacing` apart.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    first_measured: RunTime,
    period: Span,
    spacing: Span,
    size: u32,
    warm_up_count: u32,
}

impl Bursts {
    /// When message `index` of both phases is due.
    fn at(&self, index: u64) -> RunTime {
        let from_first = index.cast_signed() - i64::from(self.warm_up_count);
        // Divisions are slow, and most bursts are of one.
        let (burst, within) = match self.size {
            1 => (from_first, 0),
            size => (from_first.div_euclid(size.into()), from_first.rem_euclid(size.into())),
        };
        let after = self.period.as_picos() * burst + self.spacing.as_picos() * within;
        self.first_measured + Span::from_picos(after)
    }
}

/// Times that are drawn or reckoned one after another.
#[derive(Clone, Debug)]
enum Base {
    Even { bursts: Bursts, next: u64 },
    Exponential(Exponential<Stream>),
    Ramp { before: Bursts, next: u64, ramp: Ramp },
}

impl Iterator for Base {
    type Item = RunTime;
    fn next(&mut self) -> Option<RunTime> {
        match self {
            Self::Even { bursts, next } => {
                *next += 1;
                Some(bursts.at(*next - 1))
            }
            Self::Exponential(times) => times.next(),
            // The warm-up is at the rate the ramp begins with.
            Self::Ramp { before, next, .. } if *next < u64::from(before.warm_up_count) => {
                *next += 1;
                Some(before.at(*next - 1))
            }
            Self::Ramp { ramp, .. } => ramp.next(),
        }
    }
}

/// Times in which nothing is due in pauses, with the bits of each message.
#[derive(Clone, Debug)]
struct Paused {
    base: Base,
    /// The cycle, and when its first begins.
    activity: Option<(Activity, RunTime)>,
    bits: u64,
}

impl Iterator for Paused {
    type Item = (RunTime, u64);
    fn next(&mut self) -> Option<(RunTime, u64)> {
        let time = self.base.next()?;
        let time = match self.activity {
            Some((activity, begin)) => begin + activity.elapsed(time - begin)?,
            None => time,
        };
        Some((time, self.bits))
    }
}

#[derive(Clone, Debug)]
enum Times {
    Even(Bursts),
    Drawn(Box<Paused>),
    Limited(Box<RateLimit<Paused>>),
    /// From this instant on.
    Replayed(Box<(RunTime, Replay)>),
}

/// The messages of a sender.
#[derive(Clone, Debug)]
pub struct Schedule {
    times: Times,
    /// Of every frame, where no capture says otherwise.
    length: u16,
    warm_up_count: u32,
    total: u64,
    next: u64,
}

impl Schedule {
    /// The schedule of `send`, whose frames are `length` bytes long, in `run`.
    ///
    /// # Errors
    /// See [`ScheduleError`].
    pub fn new(run: &Run, send: &Send, length: u16) -> Result<Self, ScheduleError> {
        Self::of(run, send, length, (Purpose::Generator, u32::from(send.flow)))
    }

    /// The bursts of background load number `number` of `run`, from the epoch on, without end: one item each.
    ///
    /// # Errors
    /// See [`ScheduleError`].
    pub fn of_load(run: &Run, inject: &Inject, number: u32) -> Result<Self, ScheduleError> {
        let pattern = if inject.exponential { Pattern::Exponential } else { Pattern::Periodic };
        let mut send = Send { pattern, ..Send::periodic(0, inject.interval, inject.payload, 1) };
        send.activity = inject.activity;
        // It begins with the epoch and has no warm-up of its own.
        let from_epoch = Run { warm_up: Span::ZERO, seed: run.seed, ..Run::default() };
        let mut schedule = Self::of(&from_epoch, &send, 0, (Purpose::Load, number))?;
        schedule.total = u64::MAX;
        Ok(schedule)
    }

    fn of(run: &Run, send: &Send, length: u16, name: (Purpose, u32)) -> Result<Self, ScheduleError> {
        if send.period <= Span::ZERO {
            return Err(ScheduleError::Period);
        }
        let (size, spacing) = match send.pattern {
            Pattern::Bursts { size, spacing } => (size, spacing),
            Pattern::Periodic | Pattern::Exponential | Pattern::Ramp { .. } => (1, Span::ZERO),
        };
        let whole_burst = spacing.checked_mul(i64::from(size));
        if size == 0 || spacing < Span::ZERO || whole_burst.is_none() {
            return Err(ScheduleError::Bursts);
        }
        let longest = send.period.checked_mul(i64::from(send.count.max(send.warm_up_count)) + 1);
        let first_measured = run.warm_up.checked_add(send.offset).ok_or(ScheduleError::TooLong)?;
        if let Some(replay) = &send.replay {
            return Self::replayed(RunTime::ZERO + first_measured, replay.clone(), u64::from(send.count));
        }
        let last = longest.and_then(|span| span.checked_add(whole_burst?)).ok_or(ScheduleError::TooLong)?;
        first_measured.checked_add(last).ok_or(ScheduleError::TooLong)?;
        let bursts = Bursts {
            first_measured: RunTime::ZERO + first_measured,
            period: send.period,
            size,
            spacing,
            warm_up_count: send.warm_up_count,
        };
        let base = match send.pattern {
            Pattern::Exponential => {
                let uniforms = Stream::new(send.seed.unwrap_or(run.seed), name.0, name.1);
                Some(Base::Exponential(Exponential::new(bursts.at(0), send.period, uniforms)?))
            }
            Pattern::Ramp { to, length } => {
                let count = u64::from(send.count);
                let ramp = Ramp::new(bursts.first_measured, send.period, to, length, count)?;
                Some(Base::Ramp { before: bursts, next: 0, ramp })
            }
            _ if send.rate_limit_bps.is_some() || send.activity.is_some() => {
                Some(Base::Even { bursts, next: 0 })
            }
            _ => None,
        };
        let bits = 8 * wire_len(length.into()) as u64;
        let times = match base {
            None => Times::Even(bursts),
            Some(base) => {
                let activity = send.activity.map(|activity| (activity, bursts.first_measured));
                let paused = Paused { base, activity, bits };
                match send.rate_limit_bps {
                    Some(rate) => Times::Limited(Box::new(RateLimit::new(rate, bits, bits, paused)?)),
                    None => Times::Drawn(Box::new(paused)),
                }
            }
        };
        let total = u64::from(send.warm_up_count) + u64::from(send.count);
        Ok(Self { times, length, warm_up_count: send.warm_up_count, total, next: 0 })
    }

    /// The first `count` frames of `replay` from `first` on.
    ///
    /// # Errors
    /// [`ScheduleError::TooLong`].
    pub fn replayed(first: RunTime, replay: Replay, count: u64) -> Result<Self, ScheduleError> {
        let total = count.min(replay.frames());
        if let Some(last) = total.checked_sub(1) {
            let last = replay.at(last).ok_or(ScheduleError::TooLong)?;
            let since_epoch = first - RunTime::ZERO;
            since_epoch.checked_add(last.after).ok_or(ScheduleError::TooLong)?;
        }
        let length = replay.trace.longest();
        Ok(Self {
            times: Times::Replayed(Box::new((first, replay))),
            length,
            warm_up_count: 0,
            total,
            next: 0,
        })
    }

    /// When its last message is due; `None` without messages. Of drawn times all are drawn once.
    pub fn last_due(&self) -> Option<RunTime> {
        match &self.times {
            Times::Even(bursts) => self.total.checked_sub(1).map(|last| bursts.at(last)),
            Times::Replayed(replayed) => {
                let (first, replay) = &**replayed;
                self.total.checked_sub(1).and_then(|last| Some(*first + replay.at(last)?.after))
            }
            _ => self.clone().last().map(|due| due.at),
        }
    }

    /// Messages due before `until`.
    pub fn due_before(&self, until: RunTime) -> u64 {
        match &self.times {
            Times::Even(bursts) if bursts.size == 1 => {
                let room = (until - bursts.at(0)).as_picos().max(0);
                (room.unsigned_abs().div_ceil(bursts.period.as_picos().unsigned_abs())).min(self.total)
            }
            Times::Replayed(replayed) => replayed.1.before(until - replayed.0).min(self.total),
            _ => self.clone().take_while(|due| due.at < until).count() as u64,
        }
    }

    /// Messages in all.
    pub const fn total(&self) -> u64 {
        self.total
    }
}

impl Iterator for Schedule {
    type Item = Due;
    /// The next message; nothing when all were due, or when the next one is beyond all time.
    #[inline]
    fn next(&mut self) -> Option<Due> {
        if self.next >= self.total {
            return None;
        }
        let mut length = self.length;
        let at = match &mut self.times {
            Times::Even(bursts) => bursts.at(self.next),
            Times::Drawn(times) => times.next()?.0,
            Times::Limited(times) => times.next()?,
            Times::Replayed(replayed) => {
                let (first, replay) = &**replayed;
                let frame = replay.at(self.next)?;
                length = frame.length;
                *first + frame.after
            }
        };
        let index = self.next;
        self.next += 1;
        let warm_up = index < u64::from(self.warm_up_count);
        #[expect(clippy::cast_possible_truncation, reason = "counts of a sender have 32 bits")]
        let sequence = (if warm_up { index } else { index - u64::from(self.warm_up_count) }) as u32;
        Some(Due { at, sequence, warm_up, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(send: &Send, run: &Run) -> Vec<Due> {
        Schedule::new(run, send, 64).expect("a schedule").collect()
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
                Due { at: RunTime::ZERO + Span::from_millis(20), sequence: 0, warm_up: false, length: 64 });
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
