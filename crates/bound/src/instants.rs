//! Known instants: of senders, and the line time that a class has behind its gate.

use crate::rational::Rational;

pub(crate) const PICOS_PER_SECOND: i128 = 1_000_000_000_000;

/// Instants at which the messages of a flow are sent.
#[derive(Clone, Debug)]
pub struct Instants {
    /// Earliest call of the application for the first message, ps since the epoch.
    pub first: i128,
    /// Greatest time by which a call is later than that, ps.
    pub varies: i128,
    /// Period, ps.
    pub period: i128,
}

/// Time in ps, rounded up.
pub(crate) fn picos_up(time: &Rational) -> i128 {
    let picos = time * &Rational::integer(PICOS_PER_SECOND);
    rounded(picos.to_f64_up().ceil())
}

/// Time in ps, rounded down.
pub(crate) fn picos_down(time: &Rational) -> i128 {
    let picos = time * &Rational::integer(PICOS_PER_SECOND);
    rounded(picos.to_f64_down().floor())
}

#[expect(clippy::cast_possible_truncation, reason = "a cast saturates, and times of a run fit by far")]
pub(crate) fn rounded(picos: f64) -> i128 {
    picos as i128
}

/// Instants at which the gate of a class is open, in true time since the epoch, ps.
#[derive(Clone, Debug)]
pub struct GateTimes {
    /// Cycle time.
    pub cycle: i128,
    /// Openings in one cycle, ascending; the last may end in the next cycle.
    pub open: Vec<Opening>,
    /// Greatest time by which the gate changes earlier or later than that.
    pub deviation: i128,
    /// Guard band before a closing in which no frame begins; `None`: a frame begins if it ends in time.
    pub guard: Option<i128>,
    /// Whether frames of other classes may last beyond the closing of their own gates.
    pub overrun: bool,
}

/// An interval in which a gate is open.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Its beginning.
    pub from: i128,
    /// Its end.
    pub until: i128,
    /// Whether the gate of another class is open across its beginning.
    pub straddled: bool,
}

/// Line time that others take from a class, ps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Once, to a frame that is on the line at the start.
    pub at_start: i128,
    /// At each opening that another class straddles.
    pub at_opening: i128,
    /// At each opening that no other class straddles, to the gap behind a frame of another class.
    pub before: i128,
    /// Longest frame of the class: less than this is lost before a closing if it does not fit.
    pub own: i128,
    /// Gap behind a frame, which need not fit before a closing.
    pub gap: i128,
}

impl GateTimes {
    /// A gate that never closes.
    pub(crate) fn always() -> Self {
        let open = vec![Opening { from: 0, until: 1, straddled: false }];
        Self { cycle: 1, open, deviation: 0, guard: None, overrun: false }
    }

    fn closes(&self) -> bool {
        !matches!(&self.open[..], [one] if one.until - one.from >= self.cycle)
    }

    /// Openings from the one that contains or follows an instant, in the narrowest or the widest place of their edges.
    fn from(&self, instant: i128, widened: i128) -> impl Iterator<Item = Opening> + '_ {
        let turn = instant.div_euclid(self.cycle) - 2;
        let turns = (0..).map(move |more| (turn + more) * self.cycle);
        let all = turns.flat_map(move |base| {
            self.open.iter().map(move |one| Opening {
                from: base + one.from - widened,
                until: base + one.until + widened,
                ..*one
            })
        });
        all.filter(move |one| one.until > instant)
    }

    /// Latest end, with the gap behind it, of `work` ps of line time that begins to wait at `start`; `None`: later than
    /// `limit`.
    ///
    /// In an opening everything is served if all of it fits, and else all but what a frame that does not fit leaves.
    pub(crate) fn served(&self, start: i128, work: i128, lost: Lost, limit: i128) -> Option<i128> {
        let mut left = work;
        if !self.closes() {
            return Some(start + left + lost.at_start).filter(|end| *end <= limit);
        }
        for opening in self.from(start, -self.deviation) {
            let straddled = opening.straddled || self.overrun;
            // Another frame has ended before its own gate closed, and its gap may have not.
            let begins = start.max(if straddled { opening.from } else { opening.from + lost.before });
            if begins > limit {
                return None;
            }
            left += match opening.from > start {
                false => lost.at_start,
                true if straddled => lost.at_opening,
                true => 0,
            };
            let room = opening.until - begins - self.guard.unwrap_or(0);
            if left - lost.gap <= room {
                return Some(begins + left);
            }
            let unused = if self.guard.is_some() { 0 } else { lost.own };
            left -= (room - unused).max(0);
        }
        None
    }

    /// Earliest end of a frame of `length` ps without its gap that comes at `instant`.
    pub(crate) fn earliest(&self, instant: i128, length: i128) -> i128 {
        if !self.closes() {
            return instant + length;
        }
        let needs = if self.guard.is_some() { 0 } else { length };
        let begins = self.from(instant, self.deviation).take(3 * self.open.len()).find_map(|opening| {
            let begins = opening.from.max(instant);
            (begins + needs <= opening.until).then_some(begins)
        });
        begins.unwrap_or(instant) + length
    }

    /// Openings of a class from its open entries: whether its gate is open, whether another is, and lengths in ps.
    pub(crate) fn openings(base: i128, entries: &[(bool, Vec<u8>, i128)]) -> (i128, Vec<Opening>) {
        let cycle: i128 = entries.iter().map(|entry| entry.2).sum();
        let Some(first) = entries.iter().position(|entry| entry.0) else { return (cycle, Vec::new()) };
        let around = entries.len();
        // From a closed entry on, so that no opening is cut in two.
        let start = (0..around).find(|at| !entries[(first + at) % around].0).map(|at| (first + at) % around);
        let Some(start) = start else {
            return (cycle, vec![Opening { from: 0, until: cycle, straddled: false }]);
        };
        let mut at = base + entries[..start].iter().map(|entry| entry.2).sum::<i128>();
        let mut found: Vec<Opening> = Vec::new();
        for (position, entry) in entries.iter().cycle().skip(start).take(around).enumerate() {
            let before = &entries[(start + position + around - 1) % around];
            let until = at + entry.2;
            match (before.0, found.last_mut()) {
                (true, Some(last)) if entry.0 => last.until = until,
                _ if entry.0 => {
                    let straddled = before.1.iter().any(|other| entry.1.contains(other));
                    found.push(Opening { from: at, until, straddled });
                }
                _ => {}
            }
            at = until;
        }
        let shift = found.first().map_or(0, |one| one.from.div_euclid(cycle) * cycle);
        for one in &mut found {
            (one.from, one.until) = (one.from - shift, one.until - shift);
        }
        (cycle, found)
    }
}

/// Line time of one flow whose instants are not known: the least of several buckets, ps and parts of [`WHOLE`].
#[derive(Clone, Debug)]
pub(crate) struct Curve(pub Vec<(i128, i128)>);

/// Denominator of the rates of a [`Curve`].
pub(crate) const WHOLE: i128 = 1_000_000_000_000;

impl Curve {
    /// Greatest line time in any `time`.
    pub(crate) fn within(&self, time: i128) -> i128 {
        let each = self.0.iter().map(|(burst, rate)| burst + (time.max(0) * rate + WHOLE - 1) / WHOLE);
        each.min().unwrap_or(0)
    }
}

/// Frames of a flow at one place: each within an interval, and all of them again after `every`, ps.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub every: i128,
    /// Earliest and latest instant of each frame, in the order in which they are sent.
    pub frames: Vec<(i128, i128)>,
}

impl Pattern {
    /// Number of frames whose interval meets the time after `since`, up to and with `until`.
    pub(crate) fn meeting(&self, since: i128, until: i128) -> i128 {
        let count = |(early, late): &(i128, i128)| {
            let last = (until - early).div_euclid(self.every);
            let first = (since - late).div_euclid(self.every) + 1;
            (last - first + 1).max(0)
        };
        self.frames.iter().map(count).sum()
    }

    /// The same frames, with a longer time after which they come again.
    pub(crate) fn over(&self, every: i128) -> Self {
        let times = (every / self.every).max(1);
        let turns = (0..times).map(|turn| turn * self.every);
        let frames = turns.flat_map(|more| {
            self.frames.iter().map(move |(early, late)| (early + more, late + more)).collect::<Vec<_>>()
        });
        Self { every: times * self.every, frames: frames.collect() }
    }

    /// Line instants of all frames moved by different times.
    pub(crate) fn moved(&self, early: i128, late: i128) -> Self {
        let frames = self.frames.iter().map(|(from, until)| (from + early, until + late)).collect();
        Self { every: self.every, frames }
    }
}
