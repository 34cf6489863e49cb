//! The traffic classes of IEEE Std 802.1Q-2022, 8.6.8: each queue has an algorithm and a gate in front of it.
//!
//! A queue goes by strict priority or by [credit](super::credit_based); [gates](super::gates), where there are any, say
//! which queues may send when. Of the queues that may, the most urgent is taken; where its first frame would not be
//! through before its gate closes, a shorter one of a less urgent queue may go before it.
//!
//! # Asynchronous shaping
//! A frame of a queue with [schedulers](super::asynchronous) waits for its eligibility time, and lines up by it.
//!
//! # Cyclic queuing
//! One of two queues takes the frames that arrive in a cycle, while only the other sends those of the previous cycle
//! (IEEE Std 802.1Q-2022, Annex T; once 802.1Qch). A frame arrives when it is at the port, after the
//! switch's delay.
//!
//! # Guard
//! The last bit of a frame leaves no later than its gate closes (8.6.8.4). As an alternative no frame of any length
//! begins within a guard band of fixed length before the closing, as in hardware that does not look at the length; a
//! frame longer than the band then reaches beyond the closing.
//!
//! # Idle slopes behind gates
//! A test states the bandwidth of a class over the whole cycle. While the gate is closed a credit does not rise, so
//! while it is open it rises by `idle slope * cycle / time open` (8.6.8.2: `operIdleSlope`), rounded down to a bit per
//! second.
//!
//! # Preemption
//! Frames of preemptable queues are sent in fragments where a frame of another queue, an express one, waits that may
//! begin (IEEE Std 802.3-2022, clause 99, and 802.1Q-2022, 6.7.2; once 802.3br and 802.1Qbu). A fragment that is not
//! the last has at least 60 bytes of the frame, or as many more as the receiver requested, and a check sequence of 4
//! bytes; 60 bytes and the FCS are left for the last one. So a frame of up to 123 bytes is never cut, and an express
//! frame waits for 143 byte times at most. Each further fragment costs 24 byte times: preamble, check sequence and gap.
//! A frame that was cut continues before any other preemptable one begins, whatever the gates: the MAC has it already.
//!
//! Entries of the gate control list may hold the MAC (8.6.8.4, `Set-And-Hold-MAC`): from an advance before the entry it
//! begins and continues no preemptable frame until it is released, and the one on the wire is cut as soon as possible.
//! The line is then free when the entry begins, if no fragment takes longer than the advance. Express frames are
//! unaffected by a hold.
//!
//! # Time
//! Gates follow the device's clock, frames and credits true time. The state of the gates is looked up once for each
//! entry of the list, when it begins; calls between cost a comparison. A change of the clock moves the gates at once.

mod config;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use wg_frame::time::{RunTime, Span};

use super::asynchronous::{Asynchronous, AsynchronousConfig, Eligibility};
use super::credit_based::{Credits, Since};
use super::credit_course::CreditCourse;
use super::gates::Gates;
use super::{Admission, Around, Moment, Newcomer, TransmissionSelection, next_admission};
use crate::cause::Cause;
use crate::clock::{LocalClock, LocalTime};
use crate::deadline::Deadline;
use crate::frame::Frame;
use crate::line::{GAP, LineRate, PREAMBLE, SMALLEST_FRAME};
use crate::queue::{PRIORITIES, QueuePosition};
pub use config::{Cyclic, Guard, Preemption, TrafficClassConfig};
use config::{FRAGMENT_CHECK, SHORTEST_REST};

/// State of the gates during one entry of the list.
#[derive(Clone, Copy, Debug)]
struct View {
    until: RunTime,
    open: u8,
    /// Next change of each queue's gate.
    changes: [Option<LocalTime>; PRIORITIES],
    list: usize,
    /// Instant of the look-up.
    since: RunTime,
    /// Whether the MAC is held: it sends no preemptable frame.
    held: bool,
    /// Instant at which it is next held or released.
    told: RunTime,
}

const FOREVER: RunTime = RunTime::from_picos(i64::MAX);
const ALL_OPEN: View = View {
    until: FOREVER,
    open: u8::MAX,
    changes: [None; PRIORITIES],
    list: 0,
    since: RunTime::from_picos(i64::MIN),
    held: false,
    told: FOREVER,
};

/// Transmission selection by the traffic classes of IEEE Std 802.1Q.
#[derive(Clone, Debug)]
pub struct TrafficClasses {
    credits: Credits,
    is_shaped: bool,
    idle_slopes: [Option<u64>; PRIORITIES],
    longest_frames: [u16; PRIORITIES],
    gates: Option<Gates>,
    guard: Guard,
    preemption: Option<Preemption>,
    /// Whether any entry of the gates holds the MAC.
    holds: bool,
    /// Bytes of the preemptable frame on the wire that were left when its fragment began.
    sending: u32,
    /// Whether that frame is too short, or too far sent, to be cut for a hold.
    uncut: bool,
    /// Queue whose first frame was cut, and the bytes of it that are left.
    cut: Option<(usize, u32)>,
    /// The latest instant of an event.
    seen: RunTime,
    view: View,
    /// ATS schedulers and eligibility times of each queue; `None`: no queue has any.
    asynchronous: Option<Box<[Option<Shaped>; PRIORITIES]>>,
    cyclic: Option<Cyclic>,
}

/// A queue with ATS schedulers.
#[derive(Clone, Debug)]
struct Shaped {
    schedulers: Asynchronous,
    /// Eligibility times of the waiting frames, ascending.
    eligible: VecDeque<RunTime>,
}

impl TrafficClasses {
    /// Traffic classes with this configuration.
    pub fn new(config: TrafficClassConfig) -> Self {
        let TrafficClassConfig {
            idle_slopes,
            longest_frames,
            gates,
            guard,
            preemption,
            asynchronous,
            cyclic,
        } = config;
        let shaped = |config: &AsynchronousConfig| Shaped {
            schedulers: Asynchronous::new(config),
            eligible: VecDeque::new(),
        };
        let is_asynchronous = asynchronous.iter().any(Option::is_some);
        let lines = asynchronous.map(|config| config.as_ref().map(shaped));
        // `until` of the beginning of time forces a look-up before the first use.
        let view = if gates.is_some() {
            View { until: RunTime::from_picos(i64::MIN), list: usize::MAX, ..ALL_OPEN }
        } else {
            ALL_OPEN
        };
        let is_shaped = idle_slopes.iter().any(Option::is_some);
        let holds = preemption.is_some() && gates.as_ref().is_some_and(Gates::holds);
        Self {
            credits: Credits::new(idle_slopes),
            is_shaped,
            idle_slopes,
            longest_frames,
            gates,
            guard,
            preemption,
            holds,
            sending: 0,
            uncut: false,
            cut: None,
            seen: RunTime::from_picos(i64::MIN),
            view,
            asynchronous: is_asynchronous.then(|| Box::new(lines)),
            cyclic,
        }
    }

    /// The credit of a queue now, in bits, rounded down; `None`: not shaped.
    pub fn credit_bits<C>(&self, at: &Moment<'_, C>, queue: usize) -> Option<i64> {
        self.credits.bits(at, queue, self.since(at, queue))
    }

    /// The open gates at the latest event, the lowest bit that of queue 0.
    pub fn open(&self) -> u8 {
        self.view.open
    }

    fn shaped(&self, queue: usize) -> Option<&Shaped> {
        self.asynchronous.as_ref()?.get(queue)?.as_ref()
    }

    fn shaped_mut(&mut self, queue: usize) -> Option<&mut Shaped> {
        self.asynchronous.as_mut()?.get_mut(queue)?.as_mut()
    }

    fn is_preemptable(&self, queue: usize) -> bool {
        queue < PRIORITIES && self.preemption.is_some_and(|preemption| preemption.queues >> queue & 1 == 1)
    }

    /// When the line is free of the fragment that began at `since`, if it is cut as soon as possible from `now` on.
    fn cut_at(&self, now: RunTime, since: RunTime, line: LineRate) -> Option<(RunTime, u32)> {
        let least = u32::from(self.preemption?.shortest_fragment) - FRAGMENT_CHECK;
        let data = self.sending - FRAGMENT_CHECK;
        // A byte whose transmission has begun is sent.
        let gone = now - since - line.time_of(PREAMBLE);
        let (mut begun, mut beyond) = (0, data + 1);
        while begun < beyond {
            let middle = begun.midpoint(beyond);
            if line.time_of(middle) < gone { begun = middle + 1 } else { beyond = middle }
        }
        let cut = begun.max(least);
        (cut + SHORTEST_REST <= data)
            .then(|| (since + line.time_of(PREAMBLE + cut + FRAGMENT_CHECK + GAP), data - cut))
    }

    /// Whether the first frame of `queue` may begin now, whatever is on the wire.
    fn is_admitted<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize) -> bool {
        at.queues.head(queue).is_some_and(|frame| self.admission(at, queue, frame) == Admission::Now)
    }

    fn is_open(&self, queue: usize) -> bool {
        queue >= PRIORITIES || self.view.open >> queue & 1 == 1
    }

    fn since<C>(&self, at: &Moment<'_, C>, queue: usize) -> Since {
        Since { waited: at.queues.len(queue) > 0, open: self.is_open(queue) }
    }

    fn settle_all<C>(&mut self, at: &Moment<'_, C>, now: RunTime) {
        if self.is_shaped {
            for queue in 0..PRIORITIES {
                self.credits.settle(now, queue, self.since(at, queue), at.line);
            }
        }
    }

    /// Looks up the state of the gates from `now` on.
    fn look<C: LocalClock>(&mut self, at: &Moment<'_, C>, now: RunTime) {
        let Some(gates) = &self.gates else { return };
        let local = at.clock.read(now);
        let list = gates.list(local);
        if list != self.view.list {
            for (queue, slope) in self.idle_slopes.iter().enumerate() {
                if let Some(slope) = slope {
                    self.credits.set_slope(queue, scaled(*slope, gates.open_share(list, queue)));
                }
            }
        }
        let (open, until) = gates.at(local);
        let until = until.and_then(|until| at.clock.true_time(until, now)).unwrap_or(FOREVER);
        let changes = core::array::from_fn(|queue| gates.changes(queue, local));
        let (mut held, mut told) = (false, FOREVER);
        if let Some(preemption) = self.preemption.filter(|_| self.holds) {
            let (is_held, until) = gates.held(local, preemption.advances);
            told = until.and_then(|until| at.clock.true_time(until, now)).unwrap_or(FOREVER);
            held = is_held;
        }
        self.view = View { until: until.min(told), open, changes, list, since: now, held, told };
    }

    /// Next change of a queue's gate, in true time.
    fn changes<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize) -> RunTime {
        let change = self.view.changes.get(queue).copied().flatten();
        change.and_then(|change| at.clock.true_time(change, at.now)).unwrap_or(FOREVER)
    }
}

/// An idle slope while the gate is open, given its open time and the cycle time; unchanged for a gate that never opens.
fn scaled(idle_slope: u64, (open, cycle): (Span, Span)) -> u64 {
    let (open, cycle) = (open.as_picos().unsigned_abs(), cycle.as_picos().unsigned_abs());
    let scaled = u128::from(idle_slope) * u128::from(cycle) / u128::from(open.max(1));
    if open == 0 { idle_slope } else { u64::try_from(scaled).unwrap_or(u64::MAX) }
}

fn not_before(instant: RunTime) -> Admission {
    if instant == FOREVER { Admission::Never } else { Admission::NotBefore(instant) }
}

impl TransmissionSelection for TrafficClasses {
    #[inline]
    fn admission<C: LocalClock>(&self, at: &Moment<'_, C>, queue: usize, frame: &Frame) -> Admission {
        // The gates after that are not looked up yet: a port that looks so far ahead asks again then.
        if at.now >= self.view.until {
            return Admission::Now;
        }
        if self.view.held && self.is_preemptable(queue) {
            return not_before(self.view.told);
        }
        if let Some((cut, _)) = self.cut
            && self.is_preemptable(queue)
        {
            return if cut == queue { Admission::Now } else { Admission::Never };
        }
        if let Some(eligible) = self.shaped(queue).and_then(|shaped| shaped.eligible.front().copied())
            && eligible > at.now
        {
            return not_before(eligible);
        }
        let mut closes = FOREVER;
        if self.gates.is_some() && queue < PRIORITIES {
            let changes = self.changes(at, queue);
            if !self.is_open(queue) {
                return not_before(changes);
            }
            closes = changes;
        }
        match self.credits.wait(at, queue) {
            None => {}
            Some(None) => return not_before(closes),
            Some(Some(instant)) => return not_before(instant.min(closes)),
        }
        let needs = match self.guard {
            Guard::Length => at.line.transmission(frame.length),
            Guard::Band(band) => band,
        };
        if closes == FOREVER || at.now + needs <= closes { Admission::Now } else { not_before(closes) }
    }

    #[inline]
    fn select<C: LocalClock>(&self, at: &Moment<'_, C>) -> Option<usize> {
        self.select_by(at, |at, queue, frame| self.admission(at, queue, frame))
    }

    #[inline]
    fn next_deadline<C: LocalClock>(&self, at: &Moment<'_, C>) -> Deadline {
        let admission = |at: &Moment<'_, C>, queue, frame: &Frame| self.admission(at, queue, frame);
        let next = next_admission(self, at);
        if self.may_cut() { next.min(self.next_cut(at, admission)) } else { next }
    }

    #[inline]
    fn handle_enqueue<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        newcomer: &Newcomer<'_>,
    ) -> Result<QueuePosition, Cause> {
        let mut queue = newcomer.queue;
        if let Some(cyclic) = self.cyclic {
            queue = cyclic.queue(queue, at.clock.read(at.now));
        }
        if self.longest_frames.get(queue).is_some_and(|longest| newcomer.frame.length > *longest) {
            return Err(Cause::Filtered);
        }
        self.credits.settle(at.now, queue, self.since(at, queue), at.line);
        let Some(shaped) = self.shaped_mut(queue) else { return Ok(QueuePosition::last(queue)) };
        match shaped.schedulers.assign(at.now, newcomer.frame) {
            Eligibility::Never => Err(Cause::Policed),
            Eligibility::At(instant) => {
                let place = shaped.eligible.partition_point(|before| *before <= instant);
                let overtakes = shaped.eligible.len() - place;
                shaped.eligible.insert(place, instant);
                Ok(QueuePosition { queue, overtakes })
            }
        }
    }

    #[inline]
    fn handle_begin<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, frame: &Frame) {
        // The frame that begins has waited, or came at this very instant.
        self.credits.settle(at.now, queue, Since { waited: true, open: self.is_open(queue) }, at.line);
        self.credits.send(queue);
        if let Some(shaped) = self.shaped_mut(queue) {
            shaped.eligible.pop_front();
        }
        (self.sending, self.uncut) = (0, false);
        if self.is_preemptable(queue) {
            let whole = u32::from(frame.length.max(SMALLEST_FRAME));
            self.sending = self.cut.take().map_or(whole, |(_, left)| left);
        }
    }

    #[inline]
    fn handle_end(&mut self, free_at: RunTime) {
        self.credits.end(free_at);
    }

    #[inline]
    fn handle_abort<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize, _frame: &Frame) {
        // Its fragment counts up to now; `handle_end` follows with the end of the line's occupation.
        self.credits.settle(at.now, queue, Since { waited: true, open: self.is_open(queue) }, at.line);
        self.credits.send(queue);
        if let Some(shaped) = self.shaped_mut(queue) {
            shaped.eligible.push_front(at.now);
        }
    }

    fn handle_discard<C: LocalClock>(&mut self, _at: &Moment<'_, C>, place: QueuePosition, _frame: &Frame) {
        if let Some(shaped) = self.shaped_mut(place.queue)
            && let Some(at) = shaped.eligible.len().checked_sub(place.overtakes + 1)
        {
            shaped.eligible.remove(at);
        }
    }

    fn handle_clock_change<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        self.settle_all(at, at.now);
        self.look(at, at.now);
    }

    fn handle_restart<C: LocalClock>(&mut self, at: &Moment<'_, C>) {
        let _ = self.handle_time(at);
        self.settle_all(at, at.now);
        self.credits.restart(at.now);
        (self.sending, self.cut) = (0, None);
        for shaped in self.asynchronous.iter_mut().flat_map(|queues| queues.iter_mut().flatten()) {
            shaped.eligible.clear();
        }
        self.look(at, at.now);
    }

    fn credit<C: LocalClock>(&mut self, at: &Moment<'_, C>, queue: usize) -> Option<&CreditCourse> {
        let _ = self.handle_time(at);
        self.credits.settle(at.now, queue, self.since(at, queue), at.line);
        self.credits.course(queue)
    }

    #[inline]
    fn has_schedule(&self) -> bool {
        self.gates.is_some() || self.preemption.is_some()
    }

    fn interrupts<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
    ) -> Option<RunTime> {
        self.cut(at, queue, since, |own, until| {
            let then = Moment { now: until, ..*at };
            let waits = |queue: &usize| {
                own.is_express(*queue) && own.is_admitted(at, *queue) && own.is_admitted(&then, *queue)
            };
            at.queues.occupied().any(|queue| waits(&queue))
        })
    }

    #[inline]
    fn watches(&self) -> bool {
        self.holds && self.sending > 0
    }

    fn left(&self, queue: usize) -> Option<u16> {
        let (cut, left) = self.cut?;
        if cut == queue { u16::try_from(left).ok() } else { None }
    }

    #[inline]
    fn handle_time<C: LocalClock>(&mut self, at: &Moment<'_, C>) -> Option<(usize, Cause)> {
        self.seen = at.now;
        while self.view.until <= at.now {
            let change = self.view.until;
            // Credits follow every change of the gates since the last look-up, as long as they move.
            let waits = at.queues.occupied().next().is_some();
            let follows = self.is_shaped && change > RunTime::from_picos(i64::MIN);
            if follows && (waits || !self.credits.at_rest()) {
                self.settle_all(at, change);
                self.look(at, change);
            } else {
                self.settle_all(at, at.now);
                self.look(at, at.now);
            }
        }
        None
    }
}

impl Around for TrafficClasses {
    /// A frame that was cut follows all express ones, and precedes the other preemptable ones.
    #[inline]
    fn select_by<C: LocalClock>(
        &self,
        at: &Moment<'_, C>,
        admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
    ) -> Option<usize> {
        let admitted = |queue: &usize| {
            let head = at.queues.head(*queue);
            head.is_some_and(|frame| admission(at, *queue, frame) == Admission::Now)
        };
        let Some((cut, _)) = self.cut else { return at.queues.occupied().find(admitted) };
        let express = at.queues.occupied().find(|queue| self.is_express(*queue) && admitted(queue));
        express.or_else(|| Some(cut).filter(admitted))
    }

    fn next_cut<C: LocalClock>(
        &self,
        at: &Moment<'_, C>,
        admission: impl Fn(&Moment<'_, C>, usize, &Frame) -> Admission,
    ) -> Deadline {
        if !self.may_cut() {
            return Deadline::NEVER;
        }
        // While a preemptable frame is on the wire, an express one that becomes admissible interrupts it; one that a
        // change of the clock made admissible does so at once.
        let changed = Some(self.view.since).filter(|since| *since > self.seen);
        let seen = Moment { now: changed.unwrap_or(self.seen), ..*at };
        let waiting = at.queues.occupied().filter(|queue| self.is_express(*queue));
        let express = waiting.filter_map(|queue| match admission(&seen, queue, at.queues.head(queue)?) {
            Admission::NotBefore(instant) => Some(instant),
            Admission::Now => changed,
            Admission::Never => None,
        });
        // So does a hold that begins before its end; that end is not reported.
        let hold = if self.uncut || !self.holds || at.now <= self.seen {
            FOREVER
        } else if self.view.held {
            self.view.since
        } else {
            self.view.told
        };
        let hold = if hold < at.now { Deadline::at(hold) } else { Deadline::NEVER };
        Deadline::from(express.min()).min(hold)
    }

    fn cut<C: LocalClock>(
        &mut self,
        at: &Moment<'_, C>,
        queue: usize,
        since: RunTime,
        waits: impl Fn(&Self, RunTime) -> bool,
    ) -> Option<RunTime> {
        if self.sending == 0 || self.is_express(queue) {
            return None;
        }
        let Some((until, left)) = self.cut_at(at.now, since, at.line) else {
            self.uncut = true;
            return None;
        };
        if !self.view.held && !waits(self, until) {
            return None;
        }
        (self.sending, self.cut) = (0, Some((queue, left + FRAGMENT_CHECK)));
        Some(until)
    }

    #[inline]
    fn is_express(&self, queue: usize) -> bool {
        !self.is_preemptable(queue)
    }

    #[inline]
    fn may_cut(&self) -> bool {
        self.preemption.is_some() && self.sending > 0
    }
}

#[cfg(test)]
mod tests;
