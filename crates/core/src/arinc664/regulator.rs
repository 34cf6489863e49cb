//! The virtual-link regulator of a sending end system, and the jitter budget of its output.
//!
//! Frames wait in up to four sub-virtual-links, each a FIFO of its own, which are read in turn (ARINC 664p7
//! sub-VLs; round robin with at most four as in the public Ada model and AIM's manual). The regulator makes one
//! frame *eligible* at a time, at least a BAG after the one before. Eligible frames go to the end system's
//! multiplexer, where those of other virtual links may delay them: that delay is the output jitter.
//!
//! Eligible times follow e(k) = max(a(k), e(k−1) + BAG): the gap runs from the eligible time, not from the
//! moment the frame at last went out, so a frame delayed in the multiplexer costs its virtual link no bandwidth.
//! CoRE4INET's RCBuffer states the same rule as a timer of BAG − min(delay, jitter) after the actual sending.
//! Road not taken: the gap from the actual sending, which lets a virtual link fall behind by its jitter at
//! every frame.
//!
//! The gap is measured by the end system's own clock, so that one which runs fast sends sooner; e(k) and a(k) are what
//! has [elapsed](LocalClock::elapsed) by it, and eligible times become run time where a deadline is asked for. Whoever
//! drives the clock tells the regulator ([`handle_clock_change`](Regulator::handle_clock_change)). Without a clock it
//! is run time.
//!
//! # Time
//! Late calls change nothing: eligible times are computed, not observed, and each frame keeps the instant it
//! was handed in, so a frame that came after an eligible time has no part in that choice. A frame handed in at
//! the very instant of a choice has a part in it unless the choice was already polled. A call earlier than one
//! before counts as made at the later instant. Poll until empty after each call: only what was polled makes
//! room in the FIFOs. Each call inspects at most four FIFO heads.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wg_frame::ethernet::WIRE_OVERHEAD;
use wg_frame::time::{RunTime, Span};

use super::{Contract, SHORTEST_FRAME_LEN};
use crate::Deadline;
use crate::clock::LocalClock;
use crate::fifo::Fifo;

/// Most sub-virtual-links of one virtual link.
pub const MAX_SUB_VIRTUAL_LINKS: usize = 4;

/// The end of a gap before all time.
const NO_GAP: (RunTime, Span) = (RunTime::from_picos(i64::MIN), Span::from_picos(i64::MIN));
/// Beyond all time.
const NEVER: RunTime = RunTime::from_picos(i64::MAX);

/// A frame that may go to the wire from `eligible_at` on.
///
/// The driver owes it to the multiplexer at once, and its real start to a [`JitterAccount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eligible<F> {
    /// The frame.
    pub frame: F,
    /// The sub-virtual-link it came from, from zero.
    pub sub_virtual_link: usize,
    /// Instant from which the frame may be sent.
    pub eligible_at: RunTime,
}

/// Reason why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The FIFO of the sub-virtual-link is full.
    QueueFull {
        /// The FIFO's capacity, in frames.
        capacity: usize,
    },
    /// Longer than the contract's Lmax, in bytes.
    AboveLmax {
        /// Lmax, in bytes.
        lmax: u16,
    },
    /// Shorter than an Ethernet frame.
    Runt,
    /// There is no such sub-virtual-link.
    NoSuchSubVirtualLink,
}

/// A refused frame, handed back with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<F> {
    /// The frame.
    pub frame: F,
    /// The reason.
    pub reason: RefusalReason,
}

/// Sub-virtual-links that make no regulator: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegulatorError {
    /// The number of sub-virtual-links is not one to four.
    #[error("{0} sub-virtual-links are not between 1 and 4; give each virtual link 1 to 4")]
    SubVirtualLinks(usize),
    /// A sub-virtual-link with a capacity of zero.
    #[error("sub-virtual-link {0} holds no frame; give its queue room for at least 1")]
    NoRoom(usize),
}

#[derive(Clone, Debug)]
struct Waiting<F> {
    arrived: RunTime,
    frame: F,
}

#[derive(Clone, Debug)]
struct SubLink<F> {
    capacity: usize,
    frames: Fifo<Waiting<F>>,
}

/// The regulator of one virtual link. `F` is whatever the driver calls a frame.
#[derive(Clone, Debug)]
pub struct Regulator<F> {
    contract: Contract,
    fifos: Box<[SubLink<F>]>,
    /// The sub-virtual-link whose turn it is.
    turn: usize,
    /// Earliest eligible time of the next frame.
    gap_ends: RunTime,
    /// Same instant as elapsed time of the end system's clock since the epoch.
    gap_elapsed: Span,
    /// The latest instant of any call.
    now: RunTime,
}

impl<F> Regulator<F> {
    /// A regulator whose sub-virtual-links hold at most `capacities` frames.
    ///
    /// # Errors
    /// [`RegulatorError`] unless there are one to four capacities, none of them zero.
    pub fn new(contract: Contract, capacities: &[usize]) -> Result<Self, RegulatorError> {
        if capacities.is_empty() || capacities.len() > MAX_SUB_VIRTUAL_LINKS {
            return Err(RegulatorError::SubVirtualLinks(capacities.len()));
        }
        if let Some(at) = capacities.iter().position(|capacity| *capacity == 0) {
            return Err(RegulatorError::NoRoom(at));
        }
        let fifos = capacities.iter().map(|&capacity| SubLink { capacity, frames: Fifo::new() }).collect();
        let (gap_ends, gap_elapsed) = NO_GAP;
        Ok(Self { contract, fifos, turn: 0, gap_ends, gap_elapsed, now: gap_ends })
    }

    /// Takes in a frame of `frame_len` bytes (DA to FCS) for a sub-virtual-link.
    ///
    /// # Errors
    /// [`Refusal`] hands the frame back; nothing has changed but the time.
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        sub_virtual_link: usize,
        frame_len: usize,
        frame: F,
    ) -> Result<(), Refusal<F>> {
        self.now = self.now.max(now);
        let lmax = self.contract.lmax();
        let refusal = |frame, reason| Err(Refusal { frame, reason });
        if frame_len < SHORTEST_FRAME_LEN {
            return refusal(frame, RefusalReason::Runt);
        }
        if frame_len > usize::from(lmax) {
            return refusal(frame, RefusalReason::AboveLmax { lmax });
        }
        let Some(fifo) = self.fifos.get_mut(sub_virtual_link) else {
            return refusal(frame, RefusalReason::NoSuchSubVirtualLink);
        };
        if fifo.frames.len() == fifo.capacity {
            return refusal(frame, RefusalReason::QueueFull { capacity: fifo.capacity });
        }
        fifo.frames.push_back(Waiting { arrived: self.now, frame });
        Ok(())
    }

    /// Takes in a frame ahead of the instant `comes` at which it comes, where nothing that may happen until then makes
    /// a difference to it: there is one sub-virtual-link, nobody waits in it, and the gap ends after the frame came.
    /// Else the frame is handed back, to be [handed in](Self::handle_frame) when it comes.
    ///
    /// # Errors
    /// The frame.
    pub fn handle_ahead(&mut self, comes: RunTime, frame_len: usize, frame: F) -> Result<(), F> {
        let fits = (SHORTEST_FRAME_LEN..=usize::from(self.contract.lmax())).contains(&frame_len);
        let [fifo] = &mut self.fifos[..] else { return Err(frame) };
        if !fits || !fifo.frames.is_empty() || comes >= self.gap_ends {
            return Err(frame);
        }
        fifo.frames.push_back(Waiting { arrived: comes, frame });
        Ok(())
    }

    /// Time has come to `now`.
    pub fn handle_deadline(&mut self, now: RunTime) {
        self.now = self.now.max(now);
    }

    /// The clock that the gap is measured by was driven or set at `now`.
    pub fn handle_clock_change(&mut self, now: RunTime, clock: &impl LocalClock) {
        if self.gap_ends > now {
            self.gap_ends = clock.when_elapsed(self.gap_elapsed, now).unwrap_or(NEVER);
        }
    }

    /// The next frame that has become eligible, in the order of eligible times; the gap behind it is measured by
    /// `clock`.
    pub fn poll_output(&mut self, clock: &impl LocalClock) -> Option<Eligible<F>> {
        let first = self.first_arrival()?;
        let eligible_at = first.max(self.gap_ends);
        if eligible_at > self.now {
            return None;
        }
        let count = self.fifos.len();
        let has_arrived = |at: &usize| self.fifos[*at].head().is_some_and(|arrived| arrived <= eligible_at);
        // Less than two rounds: a division would be slow.
        let in_turn = |at: usize| if at < count { at } else { at - count };
        let chosen = match count {
            1 => 0,
            _ => (0..count).map(|step| in_turn(self.turn + step)).find(has_arrived)?,
        };
        let waiting = self.fifos[chosen].frames.pop_front()?;
        self.turn = in_turn(chosen + 1);
        if first >= self.gap_ends {
            self.gap_elapsed = self.gap_elapsed.max(clock.elapsed(first));
        }
        self.gap_elapsed += self.contract.bag().span();
        self.gap_ends = clock.when_elapsed(self.gap_elapsed, eligible_at).unwrap_or(NEVER);
        Some(Eligible { frame: waiting.frame, sub_virtual_link: chosen, eligible_at })
    }

    /// Time at which the next frame becomes eligible, if one waits.
    pub fn next_deadline(&self) -> Deadline {
        self.first_arrival().map(|first| first.max(self.gap_ends)).into()
    }

    /// Frames waiting in all sub-virtual-links.
    pub fn waiting(&self) -> usize {
        self.fifos.iter().map(|fifo| fifo.frames.len()).sum()
    }

    /// The end system restarts: what waited is handed back, and no gap runs.
    pub fn handle_reset(&mut self) -> Vec<F> {
        self.turn = 0;
        (self.gap_ends, self.gap_elapsed) = NO_GAP;
        self.fifos.iter_mut().flat_map(|fifo| fifo.frames.drain()).map(|waiting| waiting.frame).collect()
    }

    fn first_arrival(&self) -> Option<RunTime> {
        match &self.fifos[..] {
            // As nearly every virtual link has.
            [only] => only.head(),
            all => all.iter().filter_map(SubLink::head).min(),
        }
    }
}

impl<F> SubLink<F> {
    fn head(&self) -> Option<RunTime> {
        self.frames.front().map(|waiting| waiting.arrived)
    }
}

/// Most jitter any end system's output may have (kad8.com "AFDX Deep Dive"; Net2Plan-AFDX MaxJitter).
pub const MAX_OUTPUT_JITTER: Span = Span::from_micros(500);
/// The technological part of the output jitter (the same sources: 40 µs).
pub const TECHNOLOGICAL_JITTER: Span = Span::from_micros(40);

/// Jitter that an end system's virtual links can cause at its output of `line_rate` bit/s: 40 µs plus the
/// time that one longest frame of each occupies the line, rounded up to a picosecond.
///
/// The formula, 40 µs + Σ (20 + Lmax)·8 / Nbw, is the one AFDX publications quote from the standard; that the
/// result must not exceed [`MAX_OUTPUT_JITTER`] is the caller's to hold. `None` for a zero rate or a result
/// beyond 106 days.
pub fn output_jitter(contracts: impl IntoIterator<Item = Contract>, line_rate: u64) -> Option<Span> {
    let bytes: u64 =
        contracts.into_iter().map(|contract| u64::from(contract.lmax()) + WIRE_OVERHEAD as u64).sum();
    TECHNOLOGICAL_JITTER.checked_add(Span::of_bits(bytes * 8, line_rate)?)
}

/// Comparison of a frame's actual start with its eligible time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterVerdict {
    /// Delayed by this much, within the budget.
    Within(Span),
    /// Delayed by this much, beyond the budget.
    Exceeded(Span),
    /// Sent this much before it was eligible: the driver broke the regulator's order.
    Early(Span),
}

/// Keeps an end system's output jitter against its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterAccount {
    budget: Span,
    greatest: Span,
    exceeded: u64,
}

impl JitterAccount {
    /// An account with `budget`, usually [`output_jitter`].
    pub const fn new(budget: Span) -> Self {
        Self { budget, greatest: Span::ZERO, exceeded: 0 }
    }

    /// A frame eligible at `eligible_at` began on the wire at `started_at`.
    pub fn handle_start(&mut self, eligible_at: RunTime, started_at: RunTime) -> JitterVerdict {
        let jitter = started_at - eligible_at;
        if jitter < Span::ZERO {
            return JitterVerdict::Early(-jitter);
        }
        self.greatest = self.greatest.max(jitter);
        if jitter <= self.budget {
            return JitterVerdict::Within(jitter);
        }
        self.exceeded += 1;
        JitterVerdict::Exceeded(jitter)
    }

    /// The greatest jitter so far.
    pub const fn greatest(&self) -> Span {
        self.greatest
    }
    /// Frames beyond the budget so far.
    pub const fn exceeded(&self) -> u64 {
        self.exceeded
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::arinc664::Bag;
    use crate::clock::TrueTime;

    const BAG: i64 = 1_000_000_000;

    fn contract() -> Contract {
        Contract::new(Bag::ALL[0], 200).unwrap()
    }

    fn at(ps: i64) -> RunTime {
        RunTime::from_picos(ps)
    }

    /// (arrival, sub-VL) in ascending order of arrival.
    type Script = Vec<(i64, usize)>;
    /// (frame's place in the script, eligible time).
    type Trace = Vec<(usize, i64)>;

    /// Drives the core with a call at every arrival and, in between, only when `wakes` says so.
    fn drive(
        script: &Script,
        sub_virtual_links: usize,
        wakes: impl Fn(&Regulator<usize>) -> Vec<RunTime>,
    ) -> Trace {
        let mut core = Regulator::new(contract(), &vec![1_000; sub_virtual_links]).unwrap();
        let mut trace = Trace::new();
        let take = |core: &mut Regulator<usize>, trace: &mut Trace| {
            while let Some(out) = core.poll_output(&TrueTime) {
                trace.push((out.frame, out.eligible_at.as_picos()));
            }
        };
        for (frame, &(arrival, sub)) in script.iter().enumerate() {
            for wake in wakes(&core) {
                if wake < at(arrival) {
                    core.handle_deadline(wake);
                    take(&mut core, &mut trace);
                }
            }
            core.handle_frame(at(arrival), sub, 100, frame).unwrap();
        }
        core.handle_deadline(at(i64::MAX / 2));
        take(&mut core, &mut trace);
        trace
    }

    fn prompt(core: &Regulator<usize>) -> Vec<RunTime> {
        core.next_deadline()
            .instant()
            .map(|first| (0..200).map(|k| first + Span::from_picos(k * BAG)).collect())
            .unwrap_or_default()
    }

    /// Naive reference: no queues and no turn pointer, but the whole history looked at again for each choice.
    fn reference(script: &Script, sub_virtual_links: usize) -> Trace {
        let mut left: Vec<usize> = (0..script.len()).collect();
        let (mut trace, mut served_last, mut free) = (Trace::new(), sub_virtual_links - 1, i64::MIN);
        while let Some(first) = left.iter().map(|&f| script[f].0).min() {
            let eligible = first.max(free);
            let rank = |sub: usize| (sub + sub_virtual_links - served_last - 1) % sub_virtual_links;
            let chosen = *left
                .iter()
                .filter(|&&f| script[f].0 <= eligible)
                .min_by_key(|&&f| (rank(script[f].1), f))
                .unwrap();
            left.retain(|f| *f != chosen);
            served_last = script[chosen].1;
            free = eligible + BAG;
            trace.push((chosen, eligible));
        }
        trace
    }

    /// What must hold of any trace, said without an algorithm.
    fn breach(script: &Script, trace: &Trace) -> Option<String> {
        let mut frames: Vec<_> = trace.iter().map(|(frame, _)| *frame).collect();
        frames.sort_unstable();
        if frames != (0..script.len()).collect::<Vec<_>>() {
            return Some("a frame was lost or doubled".to_string());
        }
        for pair in trace.windows(2) {
            if pair[1].1 - pair[0].1 < BAG {
                return Some("closer than a BAG".to_string());
            }
        }
        for (place, &(frame, eligible)) in trace.iter().enumerate() {
            let (arrival, sub) = script[frame];
            let gap_over = if place == 0 { i64::MIN } else { trace[place - 1].1 + BAG };
            if eligible < arrival {
                return Some("eligible before it came".to_string());
            }
            if eligible > gap_over && trace[place..].iter().any(|&(later, _)| script[later].0 < eligible) {
                return Some("the gap was over and a frame waited".to_string());
            }
            if trace[..place].iter().any(|&(earlier, _)| script[earlier].1 == sub && earlier > frame) {
                return Some("overtaken within its sub-virtual-link".to_string());
            }
        }
        None
    }

    fn script(sub_virtual_links: usize) -> impl Strategy<Value = Script> {
        let gap = prop_oneof![3 => Just(0_i64), 2 => 0..BAG, 1 => Just(BAG), 1 => 0..4 * BAG];
        prop::collection::vec((gap, 0..sub_virtual_links), 1..60).prop_map(|steps| {
            let mut now = 0;
            steps
                .into_iter()
                .map(|(gap, sub)| {
                    now += gap;
                    (now, sub)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn eligible_times_follow_the_reference_at_any_wake_up(
            (count, script) in (1_usize..=4).prop_flat_map(|count| (Just(count), script(count)))
        ) {
            let never = drive(&script, count, |_| Vec::new());
            prop_assert_eq!(breach(&script, &never), None);
            prop_assert_eq!(&never, &reference(&script, count));
            prop_assert_eq!(&never, &drive(&script, count, prompt), "late calls change nothing");
        }
    }

    #[test]
    fn wrong_regulators_are_found_out() {
        let script: Script = (0..8).map(|i| (0, i % 2)).collect();
        let spaced = |gap: i64| (0..8).map(|i| (i, i as i64 * gap)).collect::<Trace>();
        assert_eq!(breach(&script, &spaced(BAG)), None);
        // The gap counted from an actual sending 100 ns late falls behind.
        assert!(breach(&script, &spaced(BAG + 100_000)).is_some());
        assert!(breach(&script, &spaced(BAG - 1)).is_some());
        let mut swapped = spaced(BAG);
        (swapped[0].0, swapped[2].0) = (2, 0);
        assert!(breach(&script, &swapped).is_some());
        assert!(breach(&script, &spaced(BAG)[..7].to_vec()).is_some());
        // No turns: one sub-virtual-link is drained first.
        let greedy: Trace = (0..8).map(|i| ((2 * i) % 8 + i / 4, i as i64 * BAG)).collect();
        assert_eq!(breach(&script, &greedy), None);
        assert_ne!(greedy, reference(&script, 2));
    }

    #[test]
    fn a_delayed_frame_costs_no_bandwidth() {
        let mut core = Regulator::new(contract(), &[100]).unwrap();
        let mut jitter = JitterAccount::new(Span::from_micros(400));
        for frame in 0..100 {
            core.handle_frame(RunTime::ZERO, 0, 64, frame).unwrap();
        }
        for k in 0..100 {
            // The driver is 400 µs late at every frame and sends at once.
            let late = core.next_deadline().instant().unwrap() + Span::from_micros(400);
            core.handle_deadline(late);
            let out = core.poll_output(&TrueTime).unwrap();
            assert_eq!(out.eligible_at, at(k * BAG));
            assert_eq!(
                jitter.handle_start(out.eligible_at, late),
                JitterVerdict::Within(Span::from_micros(400))
            );
            assert_eq!(core.poll_output(&TrueTime), None);
        }
        assert_eq!(core.next_deadline(), Deadline::NEVER);
        assert_eq!((jitter.greatest(), jitter.exceeded()), (Span::from_micros(400), 0));
        let verdict = jitter.handle_start(at(0), at(400_000_001));
        assert_eq!(verdict, JitterVerdict::Exceeded(Span::from_picos(400_000_001)));
        assert_eq!(jitter.handle_start(at(7), at(7)), JitterVerdict::Within(Span::ZERO));
        assert_eq!(jitter.handle_start(at(7), at(4)), JitterVerdict::Early(Span::from_picos(3)));
        assert_eq!(jitter.exceeded(), 1);
    }

    #[test]
    fn refusals_hand_the_frame_back() {
        let mut core = Regulator::new(contract(), &[1, 2]).unwrap();
        let now = RunTime::ZERO;
        let mut refused =
            |sub, len, frame| core.handle_frame(now, sub, len, frame).map_err(|r| (r.frame, r.reason));
        assert_eq!(refused(0, 200, 1), Ok(()));
        assert_eq!(refused(0, 200, 2), Err((2, RefusalReason::QueueFull { capacity: 1 })));
        assert_eq!(refused(1, 201, 3), Err((3, RefusalReason::AboveLmax { lmax: 200 })));
        assert_eq!(refused(1, 63, 4), Err((4, RefusalReason::Runt)));
        assert_eq!(refused(2, 64, 5), Err((5, RefusalReason::NoSuchSubVirtualLink)));
        assert_eq!(refused(1, 64, 6), Ok(()));
        assert_eq!(core.handle_reset(), [1, 6]);
        assert_eq!(core.waiting(), 0);
        for (capacities, error) in [
            (&[][..], RegulatorError::SubVirtualLinks(0)),
            (&[1; 5], RegulatorError::SubVirtualLinks(5)),
            (&[1, 0], RegulatorError::NoRoom(1)),
        ] {
            assert_eq!(Regulator::<u8>::new(contract(), capacities).err(), Some(error));
        }
    }

    #[test]
    fn the_jitter_budget_is_the_published_formula() {
        let longest = Contract::new(Bag::ALL[0], 1518).unwrap();
        // 40 µs + 3 · 1538 B · 8 / 100 Mbit/s = 40 + 3 · 123.04 µs.
        assert_eq!(output_jitter([longest; 3], 100_000_000), Some(Span::from_nanos(409_120)));
        assert!(output_jitter([longest; 3], 100_000_000) <= Some(MAX_OUTPUT_JITTER));
        assert!(output_jitter([longest; 4], 100_000_000) > Some(MAX_OUTPUT_JITTER));
        assert_eq!(output_jitter([], 1), Some(TECHNOLOGICAL_JITTER));
        assert_eq!(output_jitter([longest], 0), None);
    }
}
