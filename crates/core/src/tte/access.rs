//! Who may use an egress port now: time-triggered frames in their windows, other frames around them.
//!
//! Three ways to integrate the classes (SAE AS6802 leaves the choice to the device; the terms are TTEthernet's):
//!
//! - *Timely block*: another frame starts only if it, and the gap after it, end before the next window opens. A
//!   time-triggered frame never waits. CoRE4INET's TTShaper does the same.
//! - *Shuffling*: another frame starts whenever the line is free; a time-triggered frame waits for at most the one
//!   in progress.
//! - *Preemption*: another frame in progress is aborted when a time-triggered one is due, and sent again from its
//!   beginning (Steiner and others, "Time-Triggered Ethernet", on the preemptive switch). The time-triggered
//!   frame waits for one gap.
//!
//! In all three a window whose buffer is empty is free for others: under timely block up to the next window.
//!
//! On top, [`DeltaRaster`] makes the port alternate between time-triggered and other traffic in fixed slots. The
//! MAPS evaluation (Verbree and Shvartsman, 2015) found its switch configured with a delta raster parameter of
//! one, "which indicates that subsequent switch clock cycles alternate between transmitting TTE and transmitting
//! RC or BE messages". Only one is defined there; that a parameter of n gives n slots to the others is our
//! reading.
//!
//! # Call order
//! Ask [`MediaAccess::decide`] after every input and at every instant it names; report what was done by
//! [`handle_start`](MediaAccess::handle_start) and [`handle_abort`](MediaAccess::handle_abort). Asking has no effect.
//! A start at the very opening of a window is in it; an end at the very opening of the next window is before it.
//! A late question is answered for its own instant: a window missed is missed. The line's occupation counts to
//! the end of the gap, so an answer to start may be followed at once. Each question costs two binary searches.

use wg_frame::time::Span;

use super::schedule::{Opening, PortSchedule};
use crate::oscillator::LocalTime;

/// How other traffic is kept out of a time-triggered frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integration {
    /// Abort what is in the way.
    Preemption,
    /// Start nothing that would be in the way.
    TimelyBlock,
    /// Let what is in progress finish.
    Shuffling,
}

/// Alternation of time-triggered and other traffic in slots of fixed length, from local time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaRaster {
    slot_ps: i64,
    others: i64,
}

/// A raster without time: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a raster of {others} slots of {slot} for other traffic has no end; give a positive slot and 1 to 65535 slots"
)]
pub struct RasterError {
    /// Length of a slot.
    pub slot: Span,
    /// The raster parameter.
    pub others: u16,
}

/// Whose slot of the raster it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RasterPhase {
    /// The slot is for time-triggered frames; else for all others.
    pub time_triggered: bool,
    /// When the other side's turn comes.
    pub ends: LocalTime,
}

impl DeltaRaster {
    /// One slot for time-triggered traffic, then `others` slots (the raster parameter) for the rest.
    ///
    /// # Errors
    /// [`RasterError`] for a slot without length, or none for the others.
    pub fn new(slot: Span, others: u16) -> Result<Self, RasterError> {
        let error = RasterError { slot, others };
        let total = slot.checked_mul(i64::from(others) + 1);
        if slot <= Span::ZERO || others == 0 || total.is_none() {
            return Err(error);
        }
        Ok(Self { slot_ps: slot.as_picos(), others: i64::from(others) })
    }

    /// Whose turn it is at `now`.
    pub fn phase_at(&self, now: LocalTime) -> RasterPhase {
        let total_ps = self.slot_ps * (self.others + 1);
        let phase_ps = now.as_picos().rem_euclid(total_ps);
        let time_triggered = phase_ps < self.slot_ps;
        let end_ps = if time_triggered { self.slot_ps } else { total_ps };
        RasterPhase { time_triggered, ends: now + Span::from_picos(end_ps - phase_ps) }
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start the time-triggered frame of this window; report it.
    StartTimeTriggered {
        /// Which window.
        window: usize,
    },
    /// Start the other frame; report it.
    StartOther,
    /// Abort the other frame in progress, put it back at the head of its queue, and report that.
    Preempt,
    /// Ask again at this instant, or after any input before it.
    WaitUntil(LocalTime),
    /// Nothing waits; ask again after an input.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    time_triggered: bool,
    until: LocalTime,
}

/// Media access of one egress port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaAccess {
    schedule: PortSchedule,
    integration: Integration,
    raster: Option<DeltaRaster>,
    busy: Option<Busy>,
}

impl MediaAccess {
    /// A free port.
    pub const fn new(schedule: PortSchedule, integration: Integration, raster: Option<DeltaRaster>) -> Self {
        Self { schedule, integration, raster, busy: None }
    }

    /// What to do at `now`. `time_triggered` gives, for a window, how long its waiting frame occupies the line,
    /// gap included; `other` the same of the other frame that is next.
    pub fn decide(
        &self,
        now: LocalTime,
        time_triggered: impl Fn(usize) -> Option<Span>,
        other: Option<Span>,
    ) -> Decision {
        let due = self.schedule.open_at(now).filter(|open| self.can_start(now, open, &time_triggered));
        if let Some(busy) = self.busy.filter(|busy| busy.until > now) {
            return self.while_busy(now, busy, due);
        }
        if let Some(open) = due {
            return Decision::StartTimeTriggered { window: open.window };
        }
        let next = self.next_time_triggered(now, &time_triggered);
        let Some(occupied) = other else {
            return next.map_or(Decision::Idle, Decision::WaitUntil);
        };
        match self.other_may_start(now, occupied) {
            Ok(()) => Decision::StartOther,
            Err(again) => Decision::WaitUntil(next.map_or(again, |next| next.min(again))),
        }
    }

    /// A frame began at `now` and occupies the line for `occupied`, gap included.
    pub fn handle_start(&mut self, now: LocalTime, time_triggered: bool, occupied: Span) {
        self.busy = Some(Busy { time_triggered, until: now + occupied });
    }

    /// The frame in progress was aborted at `now`; the line is free again after `gap`.
    pub fn handle_abort(&mut self, now: LocalTime, gap: Span) {
        self.busy = Some(Busy { time_triggered: true, until: now + gap });
    }

    /// The schedule.
    pub const fn schedule(&self) -> &PortSchedule {
        &self.schedule
    }

    fn while_busy(&self, now: LocalTime, busy: Busy, due: Option<Opening>) -> Decision {
        if busy.time_triggered || self.integration != Integration::Preemption {
            return Decision::WaitUntil(busy.until);
        }
        if due.is_some() {
            return Decision::Preempt;
        }
        let next = self.schedule.next_after(now).map(|next| next.opens);
        Decision::WaitUntil(next.map_or(busy.until, |opens| opens.min(busy.until)))
    }

    fn can_start(&self, now: LocalTime, open: &Opening, waiting: impl Fn(usize) -> Option<Span>) -> bool {
        let Some(occupied) = waiting(open.window) else { return false };
        let phase = self.raster.map(|raster| raster.phase_at(now));
        occupied <= open.closes - now
            && phase.is_none_or(|phase| phase.time_triggered && occupied <= phase.ends - now)
    }

    /// The next instant at which a time-triggered frame that waits could start: the next window, or the next
    /// slot of the raster while a window is open that still has a frame.
    fn next_time_triggered(
        &self,
        now: LocalTime,
        waiting: impl Fn(usize) -> Option<Span>,
    ) -> Option<LocalTime> {
        let opens = self.schedule.next_after(now)?.opens;
        let kept_back = self.schedule.open_at(now).is_some_and(|open| waiting(open.window).is_some());
        match self.raster {
            Some(raster) if kept_back => Some(opens.min(raster.phase_at(now).ends)),
            _ => Some(opens),
        }
    }

    /// Whether another frame may start; if not, when to ask again.
    fn other_may_start(&self, now: LocalTime, occupied: Span) -> Result<(), LocalTime> {
        if let Some(phase) = self.raster.map(|raster| raster.phase_at(now))
            && (phase.time_triggered || occupied > phase.ends - now)
        {
            return Err(phase.ends);
        }
        match self.schedule.next_after(now) {
            Some(next) if self.integration == Integration::TimelyBlock && occupied > next.opens - now => {
                Err(next.opens)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::tte::schedule::Window;

    const RATE: u64 = 100_000_000;
    const TT: Span = Span::from_nanos(6_720);
    const GAP: Span = Span::from_nanos(960);
    const LONGEST: Span = Span::from_nanos(123_040);

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Sent {
        time_triggered: bool,
        began: LocalTime,
        ended: LocalTime,
        whole: bool,
    }

    fn us(us: i64) -> LocalTime {
        LocalTime::ZERO + Span::from_micros(us)
    }

    fn schedule(offsets_us: &[i64], length: Span) -> PortSchedule {
        let period = Span::from_millis(1);
        let window = |&offset: &i64| {
            let offset = Span::from_micros(offset);
            Window { flow: 0, offset, period, length, longest_frame: 64 }
        };
        PortSchedule::new(period, offsets_us.iter().map(window).collect(), RATE).unwrap()
    }

    /// A port with a time-triggered frame ready before each window and others always waiting, of the given
    /// occupations in turn. Returns what was on the wire; panics if the port asks for the past or stalls.
    fn run(mut port: MediaAccess, others: &[Span], until: LocalTime) -> Vec<Sent> {
        let mut wire: Vec<Sent> = Vec::new();
        let (mut now, mut other, mut sent_in) = (LocalTime::ZERO, 0, None);
        while now < until {
            let open = port.schedule().open_at(now);
            // One frame per opening: taken out once sent.
            let taken = open.is_some() && open.map(|open| open.opens) == sent_in;
            let waiting = |window: usize| (open.is_none_or(|o| o.window != window) || !taken).then_some(TT);
            match port.decide(now, waiting, Some(others[other % others.len()])) {
                Decision::StartTimeTriggered { .. } => {
                    port.handle_start(now, true, TT);
                    sent_in = open.map(|open| open.opens);
                    wire.push(Sent { time_triggered: true, began: now, ended: now + TT, whole: true });
                }
                Decision::StartOther => {
                    let occupied = others[other % others.len()];
                    port.handle_start(now, false, occupied);
                    other += 1;
                    wire.push(Sent { time_triggered: false, began: now, ended: now + occupied, whole: true });
                }
                Decision::Preempt => {
                    port.handle_abort(now, GAP);
                    other -= 1;
                    let last = wire.last_mut().expect("something is in progress");
                    (last.ended, last.whole) = (now + GAP, false);
                }
                Decision::WaitUntil(then) => {
                    assert!(then > now, "asked back at once");
                    now = then;
                }
                Decision::Idle => panic!("others always wait"),
            }
        }
        wire
    }

    /// What each way of integration promises, of any wire.
    fn breach(wire: &[Sent], integration: Integration, windows: usize, cycles: i64) -> Option<&'static str> {
        if wire.windows(2).any(|pair| pair[1].began < pair[0].ended) {
            return Some("two frames on one wire");
        }
        let tt: Vec<_> = wire.iter().filter(|sent| sent.time_triggered).collect();
        if tt.len() as i64 != windows as i64 * cycles {
            return Some("a window without its frame");
        }
        let allowed = match integration {
            Integration::TimelyBlock => Span::ZERO,
            Integration::Preemption => GAP,
            Integration::Shuffling => LONGEST,
        };
        let late = |sent: &&&Sent| {
            let offset = sent.began.as_picos().rem_euclid(1_000_000_000) - 200_000_000;
            offset.rem_euclid(300_000_000) > allowed.as_picos()
        };
        if tt.iter().find(late).is_some() {
            return Some("a time-triggered frame waited too long");
        }
        let aborted = wire.iter().any(|sent| !sent.whole);
        (aborted && integration != Integration::Preemption).then_some("aborted")
    }

    const ALL: [Integration; 3] = [Integration::Preemption, Integration::TimelyBlock, Integration::Shuffling];

    proptest! {
        #[test]
        fn each_integration_keeps_its_promise(
            others in prop::collection::vec((6_720_i64..=123_040).prop_map(Span::from_nanos), 1..20),
            integration in prop::sample::select(&ALL[..]),
        ) {
            // Windows at 200, 500 and 800 µs, long enough for a frame after the longest other one.
            let port = MediaAccess::new(schedule(&[200, 500, 800], LONGEST + TT), integration, None);
            let wire = run(port, &others, us(10_000));
            prop_assert_eq!(breach(&wire, integration, 3, 10), None);
        }

        /// The raster: every frame lies in a slot of its own kind, whatever the integration.
        #[test]
        fn frames_lie_in_their_slots_of_the_raster(
            others in prop::collection::vec((6_720_i64..=123_040).prop_map(Span::from_nanos), 1..20),
            integration in prop::sample::select(&ALL[..]),
            slot_us in 130_i64..400, parameter in 1_u16..4,
        ) {
            let raster = DeltaRaster::new(Span::from_micros(slot_us), parameter).unwrap();
            let port = MediaAccess::new(schedule(&[200, 500, 800], LONGEST + TT), integration, Some(raster));
            let slot = |time: LocalTime| time.as_picos().div_euclid(slot_us * 1_000_000);
            let count = i64::from(parameter) + 1;
            for sent in run(port, &others, us(10_000)) {
                let (first, last) = (slot(sent.began), slot(sent.ended - Span::from_picos(1)));
                if sent.time_triggered {
                    prop_assert!(first.rem_euclid(count) == 0 && first == last);
                } else {
                    prop_assert!(first.rem_euclid(count) != 0);
                    prop_assert!(!sent.whole || first.div_euclid(count) == last.div_euclid(count));
                }
            }
        }
    }

    #[test]
    fn wrong_integrations_are_found_out() {
        let port =
            |integration| MediaAccess::new(schedule(&[200, 500, 800], LONGEST + TT), integration, None);
        let wire = |integration| run(port(integration), &[Span::from_micros(70)], us(10_000));
        for real in ALL {
            assert_eq!(breach(&wire(real), real, 3, 10), None);
        }
        assert!(breach(&wire(Integration::Shuffling), Integration::TimelyBlock, 3, 10).is_some());
        assert!(breach(&wire(Integration::Shuffling), Integration::Preemption, 3, 10).is_some());
        assert!(breach(&wire(Integration::Preemption), Integration::TimelyBlock, 3, 10).is_some());
        assert_eq!(breach(&wire(Integration::Preemption), Integration::Shuffling, 3, 10), Some("aborted"));
    }

    #[test]
    fn timely_block_to_the_picosecond() {
        let port = MediaAccess::new(schedule(&[200], TT), Integration::TimelyBlock, None);
        let fits = us(200) - LONGEST;
        let ask = |now, tt: Option<Span>| port.decide(now, |_| tt, Some(LONGEST));
        assert_eq!(ask(fits, Some(TT)), Decision::StartOther);
        assert_eq!(ask(fits + Span::from_picos(1), Some(TT)), Decision::WaitUntil(us(200)));
        assert_eq!(ask(us(200), Some(TT)), Decision::StartTimeTriggered { window: 0 });
        assert_eq!(ask(us(200), None), Decision::StartOther, "an empty buffer frees the window");
        assert_eq!(ask(us(200) + Span::from_picos(1), Some(TT)), Decision::StartOther, "missed");
        assert_eq!(port.decide(us(0), |_| None, None), Decision::WaitUntil(us(200)));
        let unscheduled = MediaAccess::new(schedule(&[], TT), Integration::TimelyBlock, None);
        assert_eq!(unscheduled.decide(us(0), |_| None, None), Decision::Idle);
        assert_eq!(unscheduled.decide(us(0), |_| None, Some(LONGEST)), Decision::StartOther);
    }

    #[test]
    fn a_frame_may_fill_its_slot_of_the_raster() {
        let raster = DeltaRaster::new(Span::from_micros(10), 1).unwrap();
        let latest = us(10) - TT;
        let port = MediaAccess::new(schedule(&[0], LONGEST), Integration::Shuffling, Some(raster));
        let ask = |now| port.decide(now, |_| Some(TT), Some(Span::from_micros(10)));
        assert_eq!(ask(latest), Decision::StartTimeTriggered { window: 0 });
        assert_eq!(ask(latest + Span::from_picos(1)), Decision::WaitUntil(us(10)));
        assert_eq!(ask(us(10)), Decision::StartOther);
        assert_eq!(ask(us(10) + Span::from_picos(1)), Decision::WaitUntil(us(20)));
    }

    #[test]
    fn the_earlier_of_slot_and_window_is_waited_for() {
        let raster = DeltaRaster::new(Span::from_micros(10), 1).unwrap();
        let port = MediaAccess::new(schedule(&[3], TT), Integration::Shuffling, Some(raster));
        assert_eq!(port.decide(us(0), |_| None, Some(TT)), Decision::WaitUntil(us(3)));
        assert_eq!(port.decide(us(4), |_| None, Some(TT)), Decision::WaitUntil(us(10)));
    }

    #[test]
    fn the_raster_of_one_alternates() {
        let raster = DeltaRaster::new(Span::from_micros(10), 1).unwrap();
        let phases: Vec<_> = (0..4).map(|k| raster.phase_at(us(10 * k)).time_triggered).collect();
        assert_eq!(phases, [true, false, true, false]);
        assert_eq!(raster.phase_at(us(-1)), RasterPhase { time_triggered: false, ends: us(0) });
        let two = DeltaRaster::new(Span::from_micros(10), 2).unwrap();
        assert_eq!(two.phase_at(us(15)), RasterPhase { time_triggered: false, ends: us(30) });
        assert!(DeltaRaster::new(Span::from_picos(i64::MAX / 2), 1).is_ok());
        for (slot, others) in [(0, 1), (-1, 1), (5, 0), (i64::MAX, 1)] {
            assert!(DeltaRaster::new(Span::from_picos(slot), others).is_err());
        }
    }
}
