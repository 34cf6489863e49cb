//! Keeping the time of a stream.
//!
//! Two modes, because a late frame leaves a choice. *Rate* keeps the schedule: what is due leaves at once, several in
//! one call if need be, so that the mean rate is exact and a delay is followed by a burst. *Gap* keeps the distance:
//! no frame leaves earlier after its predecessor than planned, so that a delay shifts everything after it and the
//! mean rate falls. A test of loss under load wants the first, one of jitter or of a device's spacing the second.
//!
//! Where the interface launches frames at stated instants they are handed over ahead of time, and this thread's own lateness
//! does not show on the wire.

use std::sync::atomic::{AtomicBool, Ordering};

use wg_frame::probe::ProbeFlags;
use wg_frame::template::Template;
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::clock;
use wg_net::transmit::{Transmitter, Unlaunched};
use wg_record::tracking::Sketch;

use super::gaps::Gaps;
use crate::spin::Lead;

/// What is kept when a frame is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The schedule.
    #[default]
    Rate,
    /// The gaps.
    Gap,
}

impl Mode {
    /// Its name in the test language and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Gap => "gap",
        }
    }
}

/// A frame that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: RunTime,
    /// Its number; warm-up frames are numbered on their own.
    pub sequence: u32,
    /// Sent in the warm-up.
    pub warm_up: bool,
    /// Which of the stream's templates.
    pub template: u16,
}

/// A template with the bytes it was made for.
pub type Mould = (Vec<u8>, Template);

/// What a sender did.
#[derive(Clone, Debug, Default)]
pub struct Despatched {
    /// Frames handed to the kernel.
    pub offered: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Frames that were so late that they were not sent.
    pub given_up: u64,
    /// Actual minus intended send, ps: in rate mode against the schedule, in gap mode against the instant the gap
    /// asks for.
    pub error: Sketch,
    /// Gaps against the planned ones.
    pub gaps: Gaps,
    /// Launch times that were not kept, where frames had some.
    pub unlaunched: Option<Unlaunched>,
    /// Intended and actual instants of the first and the last frame, ns of `CLOCK_REALTIME`.
    pub span: Option<(i64, i64)>,
}

/// Told of every frame, on the sending thread.
pub trait Witness {
    /// `due`, which should have left at `target`, is handed to the kernel at `at`.
    fn sent(&mut self, due: Due, target: WallNanos, at: WallNanos);
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;
impl Witness for Nobody {
    #[inline]
    fn sent(&mut self, _: Due, _: WallNanos, _: WallNanos) {}
}

/// Longest single sleep, ns, so that a stop is noticed.
const LONGEST_SLEEP: i64 = 20_000_000;
/// Looks at the clock between two looks at the order to stop.
const SPINS_PER_LOOK: u32 = 256;

/// A sender at work.
pub struct Despatch<'a, W> {
    /// The way out.
    pub way: &'a mut Transmitter,
    /// Its frames.
    pub moulds: &'a [Mould],
    /// Start of the schedule.
    pub epoch: Epoch,
    /// What is kept.
    pub mode: Mode,
    /// Frames later than this are given up, ns; `None`: none is.
    pub give_up_ns: Option<i64>,
    /// How long before its launch time a frame is handed over, ns, where something else than this thread keeps the time.
    pub ahead_ns: Option<i64>,
    /// Whether to stay awake shortly before a frame is due; else its time is as exact as the host's timers.
    pub spin: bool,
    /// Set to end early.
    pub stop: &'a AtomicBool,
    /// Who wants to know.
    pub witness: &'a mut W,
}

impl<W: Witness> Despatch<'_, W> {
    /// Sends everything that comes due until the schedule ends.
    ///
    /// # Errors
    /// The way out is unusable; what was sent until then is in the figures.
    pub fn run(
        &mut self,
        mut dues: impl Iterator<Item = Due>,
        figures: &mut Despatched,
    ) -> std::io::Result<()> {
        let mut next = dues.next();
        let mut lead = Lead::new(60_000);
        // Planned and actual instant of the frame before, ns.
        let mut before: Option<(i64, i64)> = None;
        while let Some(due) = next {
            let planned = self.epoch.wall_nanos(due.at).get();
            let target = match (self.mode, before) {
                (Mode::Gap, Some((planned_before, sent_before))) => sent_before + (planned - planned_before),
                _ => planned,
            };
            let target = self.launchable(target);
            if !self.wait(target - self.ahead_ns.unwrap_or(0), &mut lead) {
                break;
            }
            let now = clock::realtime().get();
            if self.give_up_ns.is_some_and(|most| now - target > most) {
                figures.given_up += 1;
                next = dues.next();
                continue;
            }
            let sent = self.lay(due, (planned, target), &mut before, figures);
            next = dues.next();
            if self.mode == Mode::Rate {
                // Whatever is due by now goes with it.
                while let Some(more) = next {
                    let planned = self.epoch.wall_nanos(more.at).get();
                    let due_by = sent + self.ahead_ns.unwrap_or(0);
                    if planned > due_by || !self.has_room() {
                        break;
                    }
                    self.lay(more, (planned, planned), &mut before, figures);
                    next = dues.next();
                }
            }
            let flushed = self.way.flush()?;
            figures.refused += flushed.refused as u64;
        }
        if let Some(ahead) = self.ahead_ns {
            // What was handed over last is launched, or given up, within this time.
            clock::sleep_until(WallNanos::new(clock::realtime().get() + ahead));
            figures.unlaunched = Some(self.way.unlaunched()?);
        }
        Ok(())
    }

    /// A gap to be kept begins no earlier than its frame can still be launched; a schedule is kept whatever it costs.
    fn launchable(&self, target: i64) -> i64 {
        match (self.ahead_ns, self.mode) {
            (Some(ahead), Mode::Gap) => target.max(clock::realtime().get() + ahead),
            _ => target,
        }
    }

    fn has_room(&mut self) -> bool {
        self.way.slot().is_some()
    }

    /// Lays one frame into a slot and returns its transmit time.
    #[inline]
    fn lay(
        &mut self,
        due: Due,
        (planned, target): (i64, i64),
        before: &mut Option<(i64, i64)>,
        figures: &mut Despatched,
    ) -> i64 {
        let (bytes, template) = &self.moulds[usize::from(due.template)];
        // A batch holds what one flush takes; the loop above flushes before it is full.
        let Some(slot) = self.way.slot() else { return target };
        if *slot.holds != u32::from(due.template) + 1 {
            slot.bytes[..bytes.len()].copy_from_slice(bytes);
            *slot.holds = u32::from(due.template) + 1;
        }
        let flags = if due.warm_up { ProbeFlags::WARM_UP } else { ProbeFlags::NONE };
        let at = clock::realtime();
        // What is launched leaves when it says, and not when it is handed over.
        let leaves = if self.ahead_ns.is_some() { WallNanos::new(target) } else { at };
        let time = self.epoch.run_time(leaves).unwrap_or(RunTime::ZERO);
        template.patch(slot.bytes, due.sequence, flags, time);
        self.way.commit(bytes.len());
        if self.ahead_ns.is_some() {
            self.way.launch_at(leaves);
        }
        self.witness.sent(due, WallNanos::new(target), at);
        figures.offered += 1;
        figures.error.add((at.get() - target) * 1_000);
        if let (Some((planned_before, sent_before)), None) = (*before, self.ahead_ns) {
            figures.gaps.add((at.get() - sent_before) * 1_000, (planned - planned_before) * 1_000);
        }
        *before = Some((planned, leaves.get()));
        figures.span = Some((figures.span.map_or(leaves.get(), |span| span.0), leaves.get()));
        at.get()
    }

    /// Sleeps, then spins until `target`, ns. False: told to stop.
    #[inline]
    fn wait(&self, target: i64, lead: &mut Lead) -> bool {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let now = clock::realtime().get();
            if now >= target {
                return true;
            }
            let until = if self.spin { target - lead.ns() } else { target };
            if until > now {
                let until = until.min(now + LONGEST_SLEEP);
                clock::sleep_until(WallNanos::new(until));
                lead.learn(clock::realtime().get() - until);
                continue;
            }
            for _ in 0..SPINS_PER_LOOK {
                if clock::realtime().get() >= target {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
    }
}
