//! The time-triggered windows of one egress port: a cycle that repeats from local time zero.
//!
//! A window opens at offset + k·period and is open from that instant up to, not including, its end; so adjacent windows
//! do not clash. It must hold its flow's longest frame with the preamble, start delimiter and gap around it (84 B at
//! least), since the next frame cannot start earlier.
//!
//! An invalid schedule is refused with all its faults at once, so that the plan's author mends them in one go. Windows
//! may not cross the end of their period; shift the schedule's origin instead. Queries are a binary search. Instants
//! beyond ±106 days panic as all local time does.

use alloc::vec::Vec;

use wg_frame::ethernet::wire_len;
use wg_frame::time::Span;

use crate::clock::LocalTime;

/// Greatest number of openings of windows in one cycle.
pub const MAX_OPENINGS: usize = 65_536;
/// Greatest number of clashes reported for one port.
pub const MAX_CLASHES: usize = 50;

/// A window in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Flow or virtual link of the window; carried for the report of a fault, never interpreted.
    pub flow: u16,
    /// First opening, within its period.
    pub offset: Span,
    /// Time between openings; divides the cycle.
    pub period: Span,
    /// Duration of an opening.
    pub length: Span,
    /// Longest frame of the flow, DA to FCS, in bytes.
    pub longest_frame: u16,
}

/// A fault of a schedule: the plan's fault. Windows are identified by their index in the list given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ScheduleFault {
    /// A cycle that is not positive.
    #[error("the cycle {0} is not positive; give the least common multiple of the windows' periods")]
    Cycle(Span),
    /// The line rate is zero.
    #[error("the line rate is zero; give the port's rate")]
    Rate,
    /// A period that does not divide the cycle.
    #[error(
        "window {window} has period {period}, which does not divide the cycle {cycle}; choose one that does"
    )]
    Period {
        /// Index of the window.
        window: usize,
        /// Period.
        period: Span,
        /// The cycle.
        cycle: Span,
    },
    /// A window that exceeds its period.
    #[error("window {window} does not lie within its period {period}; move it or shorten it")]
    Outside {
        /// Index of the window.
        window: usize,
        /// Period.
        period: Span,
    },
    /// A window too short for its frame.
    #[error(
        "window {window} is open for {length} but its longest frame keeps the line busy for {needed}; \
         lengthen the window or shorten the frame"
    )]
    TooShort {
        /// Index of the window.
        window: usize,
        /// Duration of an opening.
        length: Span,
        /// Time that the frame occupies the line, from the preamble to the end of the gap.
        needed: Span,
    },
    /// Two windows open at once.
    #[error("windows {first} and {second} clash at {at} into the cycle; move one of them")]
    Clash {
        /// Index of the window that is open already.
        first: usize,
        /// Index of the window that opens during it.
        second: usize,
        /// Opening of the second, relative to the beginning of the cycle.
        at: Span,
    },
    /// More openings in a cycle than [`MAX_OPENINGS`].
    #[error("windows open {0} times in a cycle, more than 65536; shorten the cycle")]
    TooMany(u64),
}

/// One opening of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Index of the window in the list given.
    pub window: usize,
    /// Instant of the opening.
    pub opens: LocalTime,
    /// Instant of the closing.
    pub closes: LocalTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    opens_ps: i64,
    closes_ps: i64,
    window: usize,
}

/// The windows of one egress port. Stateless: answers depend on the arguments only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSchedule {
    cycle_ps: i64,
    windows: Vec<Window>,
    /// Openings in one cycle, ascending, without overlap.
    slots: Vec<Slot>,
}

impl PortSchedule {
    /// A schedule of `windows` on a port of `line_rate` bit/s.
    ///
    /// # Errors
    /// Every fault, ascending by kind; clashes are searched only if each window is valid by itself, and each pair of
    /// windows is reported once, at its first clash of the cycle, up to [`MAX_CLASHES`].
    pub fn new(cycle: Span, windows: Vec<Window>, line_rate: u64) -> Result<Self, Vec<ScheduleFault>> {
        let faults = faults_of_windows(cycle, &windows, line_rate);
        if !faults.is_empty() {
            return Err(faults);
        }
        let cycle_ps = cycle.as_picos();
        let openings: u64 = windows.iter().map(|w| (cycle_ps / w.period.as_picos()).unsigned_abs()).sum();
        if openings > MAX_OPENINGS as u64 {
            return Err(alloc::vec![ScheduleFault::TooMany(openings)]);
        }
        let mut slots = Vec::new();
        for (at, window) in windows.iter().enumerate() {
            for k in 0..cycle_ps / window.period.as_picos() {
                let opens_ps = window.offset.as_picos() + k * window.period.as_picos();
                slots.push(Slot { opens_ps, closes_ps: opens_ps + window.length.as_picos(), window: at });
            }
        }
        slots.sort_unstable();
        let clashes = clashes(&slots);
        if clashes.is_empty() { Ok(Self { cycle_ps, windows, slots }) } else { Err(clashes) }
    }

    /// Least common multiple of these periods: the cycle of a port with such windows. `None` if it is longer than 53
    /// days, or a period is not positive.
    pub fn common_cycle(periods: impl IntoIterator<Item = Span>) -> Option<Span> {
        let longest = i128::from(i64::MAX / 2);
        let mut cycle = 1_i128;
        for period in periods {
            let period = i128::from(period.as_picos());
            if period <= 0 {
                return None;
            }
            let (mut divisor, mut rest) = (cycle, period);
            while rest != 0 {
                (divisor, rest) = (rest, divisor % rest);
            }
            cycle = cycle / divisor * period;
            if cycle > longest {
                return None;
            }
        }
        i64::try_from(cycle).ok().map(Span::from_picos)
    }

    /// The windows as given.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The window open at `now`; `None`: none is open.
    pub fn open_at(&self, now: LocalTime) -> Option<Opening> {
        let (base, phase_ps) = self.split(now);
        let before = self.slots.partition_point(|slot| slot.opens_ps <= phase_ps).checked_sub(1)?;
        let slot = self.slots[before];
        (phase_ps < slot.closes_ps).then(|| opening(base, slot))
    }

    /// The first opening strictly after `now`; `None` if there is no window.
    pub fn next_after(&self, now: LocalTime) -> Option<Opening> {
        let (base, phase_ps) = self.split(now);
        let next = self.slots.partition_point(|slot| slot.opens_ps <= phase_ps);
        match self.slots.get(next) {
            Some(slot) => Some(opening(base, *slot)),
            None => self.slots.first().map(|slot| opening(base + Span::from_picos(self.cycle_ps), *slot)),
        }
    }

    /// The longest time between two windows, which bounds what other frames fit between them under timely
    /// block; `None` if there is no window, so no bound.
    pub fn longest_gap(&self) -> Option<Span> {
        let first = self.slots.first()?;
        let last = self.slots.last()?;
        let around_ps = self.cycle_ps - last.closes_ps + first.opens_ps;
        let inner = self.slots.windows(2).map(|pair| pair[1].opens_ps - pair[0].closes_ps);
        inner.chain([around_ps]).max().map(Span::from_picos)
    }

    /// The beginning of the cycle that contains `now`, and the time since then in ps.
    fn split(&self, now: LocalTime) -> (LocalTime, i64) {
        let phase_ps = now.as_picos().rem_euclid(self.cycle_ps);
        (now - Span::from_picos(phase_ps), phase_ps)
    }
}

fn opening(base: LocalTime, slot: Slot) -> Opening {
    let at = |ps| base + Span::from_picos(ps);
    Opening { window: slot.window, opens: at(slot.opens_ps), closes: at(slot.closes_ps) }
}

fn faults_of_windows(cycle: Span, windows: &[Window], line_rate: u64) -> Vec<ScheduleFault> {
    let mut faults = Vec::new();
    if cycle <= Span::ZERO {
        faults.push(ScheduleFault::Cycle(cycle));
    }
    if line_rate == 0 {
        faults.push(ScheduleFault::Rate);
    }
    if !faults.is_empty() {
        return faults;
    }
    for (window, &Window { offset, period, length, longest_frame, .. }) in windows.iter().enumerate() {
        if period <= Span::ZERO || cycle.as_picos() % period.as_picos() != 0 {
            faults.push(ScheduleFault::Period { window, period, cycle });
            continue;
        }
        let end = offset.checked_add(length);
        if offset < Span::ZERO || length < Span::ZERO || end.is_none_or(|end| end > period) {
            faults.push(ScheduleFault::Outside { window, period });
        }
        let bits = wire_len(usize::from(longest_frame)) as u64 * 8;
        let needed = Span::of_bits(bits, line_rate).unwrap_or(Span::from_picos(i64::MAX));
        if length < needed {
            faults.push(ScheduleFault::TooShort { window, length, needed });
        }
    }
    faults.sort_unstable();
    faults
}

/// Each pair of windows that overlaps, at its first overlap, up to [`MAX_CLASHES`]. One pass: it suffices to compare
/// with the open window that closes last.
fn clashes(slots: &[Slot]) -> Vec<ScheduleFault> {
    let mut faults: Vec<ScheduleFault> = Vec::new();
    let Some(mut open) = slots.first() else { return faults };
    for slot in &slots[1..] {
        if faults.len() >= MAX_CLASHES {
            break;
        }
        if slot.opens_ps < open.closes_ps {
            let (first, second) = (open.window, slot.window);
            let named = |fault: &ScheduleFault| {
                matches!(*fault, ScheduleFault::Clash { first: a, second: b, .. }
                    if (a, b) == (first, second) || (b, a) == (first, second))
            };
            if !faults.iter().any(named) {
                faults.push(ScheduleFault::Clash { first, second, at: Span::from_picos(slot.opens_ps) });
            }
        }
        if slot.closes_ps > open.closes_ps {
            open = slot;
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::vec;

    use proptest::prelude::*;

    use super::*;

    const RATE: u64 = 1_000_000_000;

    fn window(offset_us: i64, period_us: i64, length_us: i64) -> Window {
        Window {
            flow: 1,
            offset: Span::from_micros(offset_us),
            period: Span::from_micros(period_us),
            length: Span::from_micros(length_us),
            longest_frame: 64,
        }
    }

    fn us(us: i64) -> LocalTime {
        LocalTime::ZERO + Span::from_micros(us)
    }

    #[test]
    fn faults_name_the_windows() {
        let cycle = Span::from_micros(100);
        let build = |windows| PortSchedule::new(cycle, windows, RATE).unwrap_err();
        let at = Span::from_micros(10);
        assert_eq!(
            build(vec![window(10, 50, 5), window(6, 100, 5)]),
            [ScheduleFault::Clash { first: 1, second: 0, at }]
        );
        assert!(PortSchedule::new(cycle, vec![window(10, 50, 5), window(5, 100, 5)], RATE).is_ok(), "touch");
        // A long window over two others that do not touch each other.
        assert_eq!(
            build(vec![window(0, 100, 50), window(5, 100, 5), window(20, 100, 5)]),
            [
                ScheduleFault::Clash { first: 0, second: 1, at: Span::from_micros(5) },
                ScheduleFault::Clash { first: 0, second: 2, at: Span::from_micros(20) },
            ]
        );
        // 1518 B + 20 B at 1 Gbit/s keep the line for 12.304 µs.
        let long = Window { longest_frame: 1518, ..window(0, 100, 12) };
        let fit = Window { length: Span::from_nanos(12_304), ..long };
        let needed = fit.length;
        assert_eq!(
            build(vec![window(50, 100, 5), long]),
            [ScheduleFault::TooShort { window: 1, length: Span::from_micros(12), needed }]
        );
        assert!(PortSchedule::new(cycle, vec![fit], RATE).is_ok());
        assert_eq!(
            build(vec![window(0, 30, 5), window(48, 50, 5), window(0, 0, 1), window(-1, 50, 2)]),
            [
                ScheduleFault::Period { window: 0, period: Span::from_micros(30), cycle },
                ScheduleFault::Period { window: 2, period: Span::ZERO, cycle },
                ScheduleFault::Outside { window: 1, period: Span::from_micros(50) },
                ScheduleFault::Outside { window: 3, period: Span::from_micros(50) },
            ]
        );
        let none = PortSchedule::new(Span::ZERO, vec![], 0).unwrap_err();
        assert_eq!(none, [ScheduleFault::Cycle(Span::ZERO), ScheduleFault::Rate]);
        let tiny = Window { period: Span::from_picos(1_000_000), ..window(0, 1, 1) };
        let many = PortSchedule::new(Span::from_millis(100), vec![tiny], RATE).unwrap_err();
        assert_eq!(many, [ScheduleFault::TooMany(100_000)]);
        assert!(PortSchedule::new(Span::from_micros(65_536), vec![tiny], RATE).is_ok());
        let over = PortSchedule::new(Span::from_micros(65_537), vec![tiny], RATE).unwrap_err();
        assert_eq!(over, [ScheduleFault::TooMany(65_537)]);
    }

    #[test]
    fn the_common_cycle_is_the_least_that_all_periods_divide() {
        let of = |periods: &[i64]| PortSchedule::common_cycle(periods.iter().map(|&ps| Span::from_picos(ps)));
        let ps = |ps| Some(Span::from_picos(ps));
        assert_eq!([of(&[4, 6]), of(&[7, 7]), of(&[6, 10, 15]), of(&[])], [ps(12), ps(7), ps(30), ps(1)]);
        assert_eq!([of(&[i64::MAX / 2]), of(&[i64::MAX / 2 + 1])], [ps(i64::MAX / 2), None]);
        assert_eq!([of(&[i64::MAX, i64::MAX - 1]), of(&[0]), of(&[3, -3])], [None; 3]);
    }

    #[test]
    fn no_more_clashes_are_named_than_tell_something_new() {
        let windows = (0..60).map(|_| window(10, 100, 5)).collect();
        let faults = PortSchedule::new(Span::from_micros(100), windows, RATE).unwrap_err();
        assert_eq!(faults.len(), MAX_CLASHES);
    }

    #[test]
    fn a_window_is_open_from_its_first_instant_up_to_its_last() {
        let schedule = PortSchedule::new(Span::from_micros(100), vec![window(10, 50, 5)], RATE).unwrap();
        let first = Opening { window: 0, opens: us(10), closes: us(15) };
        let ps = Span::from_picos(1);
        assert_eq!(schedule.open_at(us(10) - ps), None);
        assert_eq!(schedule.open_at(us(10)), Some(first));
        assert_eq!(schedule.open_at(us(15) - ps), Some(first));
        assert_eq!(schedule.open_at(us(15)), None);
        assert_eq!(schedule.next_after(us(10) - ps), Some(first));
        assert_eq!(schedule.next_after(us(10)), Some(Opening { window: 0, opens: us(60), closes: us(65) }));
        assert_eq!(schedule.next_after(us(61)), Some(Opening { window: 0, opens: us(110), closes: us(115) }));
        assert_eq!(
            schedule.next_after(us(-45)),
            Some(Opening { window: 0, opens: us(-40), closes: us(-35) })
        );
        assert_eq!(schedule.longest_gap(), Some(Span::from_micros(45)));
        let empty = PortSchedule::new(Span::from_micros(100), vec![], RATE).unwrap();
        assert_eq!((empty.next_after(us(3)), empty.longest_gap()), (None, None));
    }

    #[test]
    fn the_longest_gap_may_cross_the_cycle() {
        for (offsets, gap) in [([10, 40], 65), ([10, 80], 65), ([0, 95], 90), ([0, 5], 90)] {
            let windows = offsets.map(|offset| window(offset, 100, 5)).to_vec();
            let schedule = PortSchedule::new(Span::from_micros(100), windows, RATE).unwrap();
            assert_eq!(schedule.longest_gap(), Some(Span::from_micros(gap)), "{offsets:?}");
        }
    }

    proptest! {
        /// Oracle: a drawing of the cycle, microsecond by microsecond.
        #[test]
        fn answers_match_a_drawing_of_the_cycle(
            windows in prop::collection::vec(
                (0_i64..60, prop::sample::select(vec![12_i64, 15, 20, 30, 60]), 1_i64..8), 0..6),
            now in -200_i64..200,
        ) {
            let windows: Vec<_> = windows.into_iter().map(|(o, p, l)| window(o % p, p, l)).collect();
            let outside = windows.iter().any(|w| w.offset + w.length > w.period);
            let mut drawing = [(); 60].map(|()| Vec::new());
            for (at, w) in windows.iter().enumerate() {
                let [o, p, l] = [w.offset, w.period, w.length].map(|span| span.as_nanos_floor() / 1_000);
                for k in 0..60 / p {
                    for t in 0..l {
                        drawing[((o + k * p + t) % 60) as usize].push(at);
                    }
                }
            }
            let clash = drawing.iter().any(|open| open.len() > 1);
            match PortSchedule::new(Span::from_micros(60), windows.clone(), RATE) {
                Err(faults) => {
                    prop_assert!(clash || outside);
                    for fault in faults {
                        if let ScheduleFault::Clash { first, second, at } = fault {
                            let there = &drawing[(at.as_nanos_floor() / 1_000) as usize];
                            prop_assert!(there.contains(&first) && there.contains(&second));
                        }
                    }
                }
                Ok(schedule) => {
                    prop_assert!(!clash && !outside);
                    let open = schedule.open_at(us(now)).map(|opening| opening.window);
                    prop_assert_eq!(open, drawing[now.rem_euclid(60) as usize].first().copied());
                    let begins = |t: i64| windows.iter().any(|w| {
                        let since = (us(t) - us(0) - w.offset).as_picos();
                        since.rem_euclid(w.period.as_picos()) == 0
                    });
                    let next = (now + 1..=now + 60).find(|t| begins(*t)).map(us);
                    prop_assert_eq!(schedule.next_after(us(now)).map(|opening| opening.opens), next);
                }
            }
        }
    }
}
