//! Media access of an egress port: time-triggered frames in their windows, other frames around them.
//!
//! Three ways to integrate the classes (SAE AS6802 leaves the choice to the device; the terms are TTEthernet's):
//!
//! - *Timely block*: another frame starts only if it, and the gap after it, end before the next window opens. A
//!   time-triggered frame never waits. CoRE4INET's TTShaper does the same.
//! - *Shuffling*: another frame starts whenever the line is free; a time-triggered frame waits for at most the one
//!   in progress.
//! - *Preemption*: another frame in progress is aborted when a time-triggered one is due, and sent again from its
//!   beginning, as often as need be (Steiner and others, "Time-Triggered Ethernet", on the preemptive switch;
//!   Mikolasek, Ademaj and Racek, ETFA 2008: such a switch sends a preempted message again as soon as the real-time one
//!   is through, and may preempt it several times). The time-triggered frame waits for one gap.
//!
//! In all three a window whose buffer is empty is free for others: under timely block up to the next window. Under
//! preemption a frame longer than every gap between windows that carry traffic is aborted over and over.
//!
//! On top, [`DeltaRaster`] makes the port alternate between time-triggered and other traffic in fixed slots. The
//! MAPS evaluation (Verbree and Shvartsman, 2015) found its switch configured with a delta raster parameter of
//! one, "which indicates that subsequent switch clock cycles alternate between transmitting TTE and transmitting
//! RC or BE messages". Only one is defined there; that a parameter of n gives n slots to the others is our
//! reading.
//!
//! # Time
//! Windows and slots are in the device's local time, frames and lines in true time. [`MediaAccess`] converts each
//! boundary once, when the one before has passed, and compares in true time: a clock that runs fast, or shows only
//! multiples of its granularity, moves the windows, but never makes a frame reach into one. An unforeseen change of the
//! clock (a step) may: a frame in progress then stays in progress.
//!
//! A start at the very opening of a window is in it; an end at the very opening of the next window is before it. A late
//! call is answered for its own instant: a window missed is missed. The line's occupation counts to the end of the gap,
//! so a frame that ends in time may be followed at once. Calls between two boundaries cost a comparison; a call past
//! one costs two binary searches and the conversions.

use wg_frame::time::{RunTime, Span};

use super::schedule::PortSchedule;
use crate::clock::{LocalClock, LocalTime};

/// Protection of time-triggered frames against delay by other traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Integration {
    /// Abort the frame in progress, and send it again.
    Preemption,
    /// Start no frame that would delay a time-triggered one.
    #[default]
    TimelyBlock,
    /// Let the frame in progress finish.
    Shuffling,
}

/// Alternation of time-triggered and other traffic in slots of fixed length, from local time zero (Verbree and
/// Shvartsman 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Slots", into = "Slots")
)]
pub struct DeltaRaster {
    slot: Span,
    others: u16,
}

/// A delta raster as it is written in a file, before its values are checked.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Slots {
    slot: Span,
    others: u16,
}

#[cfg(feature = "serde")]
impl TryFrom<Slots> for DeltaRaster {
    type Error = RasterError;
    fn try_from(Slots { slot, others }: Slots) -> Result<Self, RasterError> {
        Self::new(slot, others)
    }
}

#[cfg(feature = "serde")]
impl From<DeltaRaster> for Slots {
    fn from(DeltaRaster { slot, others }: DeltaRaster) -> Self {
        Self { slot, others }
    }
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

/// The phase of a delta raster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RasterPhase {
    /// Whether the slot is for time-triggered frames, or for all others.
    pub time_triggered: bool,
    /// Start of the other phase.
    pub ends: LocalTime,
}

impl DeltaRaster {
    /// One slot for time-triggered traffic, then `others` slots (the raster parameter) for the rest.
    ///
    /// # Errors
    /// [`RasterError`] for a slot that is not positive, or no slots for the others.
    pub fn new(slot: Span, others: u16) -> Result<Self, RasterError> {
        let error = RasterError { slot, others };
        let total = slot.checked_mul(i64::from(others) + 1);
        if slot <= Span::ZERO || others == 0 || total.is_none() {
            return Err(error);
        }
        Ok(Self { slot, others })
    }

    /// Duration of the other traffic's slots in a row.
    pub const fn others(&self) -> Span {
        Span::from_picos(self.slot.as_picos() * self.others as i64)
    }

    /// The phase at `now`.
    pub fn phase_at(&self, now: LocalTime) -> RasterPhase {
        let slot_ps = self.slot.as_picos();
        let total_ps = slot_ps + self.others().as_picos();
        let phase_ps = now.as_picos().rem_euclid(total_ps);
        let time_triggered = phase_ps < slot_ps;
        let end_ps = if time_triggered { slot_ps } else { total_ps };
        RasterPhase { time_triggered, ends: now + Span::from_picos(end_ps - phase_ps) }
    }
}

/// Later than any instant of a run.
const NEVER: RunTime = RunTime::from_picos(i64::MAX);

/// A window, as far as it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Index of the window in the schedule.
    pub window: usize,
    /// Instant by which a frame, with the gap after it, must have ended.
    pub until: RunTime,
}

/// Windows and raster between two boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    since: RunTime,
    /// Instant of the next boundary.
    until: RunTime,
    /// Index of the open window, and its end.
    window: Option<(usize, RunTime)>,
    /// The open window, as far as the raster lets it be used.
    open: Option<Open>,
    others_from: RunTime,
    others_until: RunTime,
}

const NOTHING: View = View {
    since: NEVER,
    until: RunTime::from_picos(i64::MIN),
    window: None,
    open: None,
    others_from: NEVER,
    others_until: NEVER,
};

/// Media access of one egress port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaAccess {
    schedule: PortSchedule,
    integration: Integration,
    raster: Option<DeltaRaster>,
    view: View,
}

impl MediaAccess {
    /// Media access before its first [`look`](Self::look).
    pub const fn new(schedule: PortSchedule, integration: Integration, raster: Option<DeltaRaster>) -> Self {
        Self { schedule, integration, raster, view: NOTHING }
    }

    /// Updates the answers of the other methods to `now`. Returns the window that closed since the last call, if one
    /// did.
    pub fn look(&mut self, now: RunTime, clock: &impl LocalClock) -> Option<usize> {
        if self.view.since <= now && now < self.view.until {
            return None;
        }
        let closed = self.view.window.filter(|(_, closes)| *closes <= now).map(|(window, _)| window);
        self.view = self.view_at(now, clock);
        closed
    }

    /// The clock was changed at `now`: all boundaries are converted again.
    pub fn look_anew(&mut self, now: RunTime, clock: &impl LocalClock) {
        self.view = self.view_at(now, clock);
    }

    /// The window that a time-triggered frame may use now.
    pub const fn open(&self) -> Option<Open> {
        self.view.open
    }

    /// Index of the open window, regardless of the raster.
    pub fn window(&self) -> Option<usize> {
        self.view.window.map(|(window, _)| window)
    }

    /// From when another frame may begin, and by when it, with the gap after it, must have ended.
    pub const fn others(&self) -> (RunTime, RunTime) {
        (self.view.others_from, self.view.others_until)
    }

    /// Instant of the next boundary: call [`look`](Self::look) again then.
    pub const fn again_at(&self) -> RunTime {
        self.view.until
    }

    /// The kind of integration.
    pub const fn integration(&self) -> Integration {
        self.integration
    }

    /// The schedule.
    pub const fn schedule(&self) -> &PortSchedule {
        &self.schedule
    }

    fn view_at(&self, now: RunTime, clock: &impl LocalClock) -> View {
        let local = clock.read(now);
        let instant = |local| clock.true_time(local, now).unwrap_or(NEVER);
        let window = self.schedule.open_at(local).map(|open| (open.window, instant(open.closes)));
        let opens = self.schedule.next_after(local).map_or(NEVER, |next| instant(next.opens));
        let phase = self.raster.map(|raster| raster.phase_at(local));
        let phase_ends = phase.map_or(NEVER, |phase| instant(phase.ends));
        let open = window.filter(|_| phase.is_none_or(|phase| phase.time_triggered));
        let blocked = phase.is_some_and(|phase| phase.time_triggered);
        let before_window = if self.integration == Integration::TimelyBlock { opens } else { NEVER };
        View {
            since: now,
            until: opens.min(phase_ends).min(window.map_or(NEVER, |(_, closes)| closes)),
            window,
            open: open.map(|(window, closes)| Open { window, until: closes.min(phase_ends) }),
            others_from: if blocked { phase_ends } else { now },
            others_until: before_window.min(phase_ends),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::clock::{DisciplinedClock, TrueTime};
    use crate::oscillator::{FrequencyOffset, Oscillator};
    use crate::tte::schedule::Window;

    const RATE: u64 = 100_000_000;

    fn at(us: i64) -> RunTime {
        RunTime::ZERO + Span::from_micros(us)
    }

    fn us(us: i64) -> LocalTime {
        LocalTime::ZERO + Span::from_micros(us)
    }

    fn schedule(offsets_us: &[i64], length_us: i64) -> PortSchedule {
        let (period, length) = (Span::from_millis(1), Span::from_micros(length_us));
        let window = |&offset: &i64| {
            let offset = Span::from_micros(offset);
            Window { flow: 0, offset, period, length, longest_frame: 64 }
        };
        PortSchedule::new(period, offsets_us.iter().map(window).collect(), RATE).unwrap()
    }

    #[test]
    fn boundaries_are_where_the_schedule_has_them() {
        let mut port = MediaAccess::new(schedule(&[200, 500], 10), Integration::TimelyBlock, None);
        assert_eq!(port.look(at(0), &TrueTime), None);
        assert_eq!((port.open(), port.others(), port.again_at()), (None, (at(0), at(200)), at(200)));
        assert_eq!(port.look(at(199), &TrueTime), None);
        assert_eq!(port.open(), None);
        assert_eq!(port.look(at(200), &TrueTime), None);
        assert_eq!(port.open(), Some(Open { window: 0, until: at(210) }));
        assert_eq!((port.others(), port.again_at()), ((at(200), at(500)), at(210)));
        assert_eq!(port.look(at(210), &TrueTime), Some(0), "the window closed");
        assert_eq!((port.open(), port.again_at()), (None, at(500)));
        assert_eq!(port.look(at(1_205), &TrueTime), None);
        assert_eq!(port.look(at(9_000), &TrueTime), Some(0));
        let mut free = MediaAccess::new(schedule(&[], 10), Integration::TimelyBlock, None);
        free.look(at(5), &TrueTime);
        assert_eq!((free.open(), free.others(), free.again_at()), (None, (at(5), NEVER), NEVER));
        let mut shuffled = MediaAccess::new(schedule(&[200], 10), Integration::Shuffling, None);
        shuffled.look(at(0), &TrueTime);
        assert_eq!((shuffled.others(), shuffled.again_at()), ((at(0), NEVER), at(200)));
    }

    /// A clock 10 % fast, 30 µs ahead and read in ticks of 7 µs shows 200 µs first at 203 µs of its own, which is
    /// (203 − 30) / 1.1 µs of true time, rounded up to a picosecond.
    #[test]
    fn boundaries_move_with_the_clock() {
        let fast = FrequencyOffset::from_ppb(100_000_000).unwrap();
        let clock = DisciplinedClock::new(Oscillator::new(fast), Span::from_micros(30), Span::from_micros(7))
            .unwrap();
        let mut port = MediaAccess::new(schedule(&[200], 10), Integration::TimelyBlock, None);
        port.look(at(0), &clock);
        let opens = RunTime::from_picos(173_000_000_i64 * 10 / 11 + 1);
        assert_eq!((port.others(), port.again_at()), ((at(0), opens), opens));
        port.look(opens, &clock);
        assert_eq!(port.window(), Some(0));
        // Set back by 100 µs, the window opens once more.
        port.look_anew(opens, &TrueTime);
        assert_eq!((port.window(), port.again_at()), (None, at(200)));
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

    #[test]
    fn the_raster_cuts_windows_and_keeps_others_out_of_its_slots() {
        let raster = DeltaRaster::new(Span::from_micros(10), 1).unwrap();
        let mut port = MediaAccess::new(schedule(&[3], 20), Integration::Shuffling, Some(raster));
        port.look(at(4), &TrueTime);
        assert_eq!(port.open(), Some(Open { window: 0, until: at(10) }));
        assert_eq!((port.others().0, port.again_at()), (at(10), at(10)));
        port.look(at(10), &TrueTime);
        assert_eq!((port.open(), port.window()), (None, Some(0)));
        assert_eq!((port.others(), port.again_at()), ((at(10), at(20)), at(20)));
        port.look(at(20), &TrueTime);
        assert_eq!(port.open(), Some(Open { window: 0, until: at(23) }));
    }
}
