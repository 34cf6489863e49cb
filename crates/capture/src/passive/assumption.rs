//! What is said of the clocks against what the frames show: which of the two holds.
//!
//! Pairs that lie outside the stated window are evidence against the statement. They follow another relation if that
//! leaves next to none of them outside: clocks that were set, drift or differ otherwise, or a device that keeps frames
//! for longer. Where no relation does so the statement stays, and the frames outside are counted.

use serde::Serialize;

use super::clocks::{Course, Segment, course};
use super::offset::{Apart, Estimate, estimated, steps};
use super::order::{LONGEST, Order, PassiveError};
use super::pairs::{Class, Pair, median};
use super::reading::Captures;

/// Least number of frames from which a longest residence is derived.
pub(super) const ENOUGH: u64 = 30;
/// A relation is that of the frames if fewer than one of so many are outside it.
const FEW: u64 = 100;
/// A relation explains contradictions if it leaves fewer than one of so many.
const LEFT: u64 = 10;

/// What the relation of the clocks rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// As stated, or both captures are in one file; no frame contradicts it.
    Stated,
    /// As stated, and the device keeps many frames for longer than is searched by default.
    Slow,
    /// On the frames: nothing was stated.
    Frames,
    /// On the frames, which contradict what was stated.
    Overruled,
    /// As stated, although frames contradict it: they show no other relation.
    Contradicted,
}

impl Ground {
    /// Whether the clocks are taken to be as stated.
    pub(super) fn is_stated(self) -> bool {
        !matches!(self, Self::Frames | Self::Overruled)
    }
}

/// The relation of the clocks.
pub(super) struct Clocks {
    pub(super) ground: Ground,
    pub(super) course: Course,
    pub(super) estimate: Estimate,
    /// Longest residence that unique content may show, ps.
    pub(super) limit: i64,
    /// Number of pairs that contradict the statement.
    pub(super) contradicting: u64,
}

/// Decides on the relation of the clocks.
pub(super) fn clocks(
    order: &Order,
    read: &Captures,
    pairs: &[Pair],
    classes: &[Class],
) -> Result<Clocks, PassiveError> {
    let limit = order.greatest_ps.unwrap_or(LONGEST);
    let resolution = steps(read);
    let times = |side: usize, place: u32| read.sides[side].frames[place as usize].time;
    let found = |all: bool| course(pairs, classes, &times, resolution, all);
    let Some(within) = order.agree_ps.or(read.one_file.then_some(0)) else {
        let course = found(false);
        let all = apart(&course, pairs);
        let limit = reach(order, &all, limit);
        let estimate = with_drift(estimated(order, read, all, limit)?, &course, pairs);
        return Ok(Clocks { ground: Ground::Frames, course, estimate, limit, contradicting: 0 });
    };
    let shift = read.sides[1].base_picos - read.sides[0].base_picos - i128::from(order.offset_ps);
    let stated = i64::try_from(shift).unwrap_or(if shift < 0 { i64::MIN } else { i64::MAX });
    let held = Held::by(read, pairs, stated, within.saturating_add(resolution), limit);
    let as_said = |ground: Ground, limit: i64| {
        let mut course = found(false);
        course.undo(read.one_file);
        let estimate = Estimate { shift, within: Some(within), votes: None };
        Clocks { ground, course, estimate, limit, contradicting: held.early + held.late }
    };
    if held.early + held.late == 0 {
        return Ok(as_said(Ground::Stated, limit));
    }
    let course = found(true);
    let all = apart(&course, pairs);
    if explains(order, &course, &all, &held, limit) {
        let estimate = with_drift(estimated(order, read, all, limit)?, &course, pairs);
        let contradicting = held.early + held.late;
        return Ok(Clocks { ground: Ground::Overruled, course, estimate, limit, contradicting });
    }
    if held.early == 0 && held.inside > 0 && order.greatest_ps.is_none() && is_many(held.late, pairs.len()) {
        return Ok(as_said(Ground::Slow, held.farthest));
    }
    Ok(as_said(Ground::Contradicted, limit))
}

/// Differences of the pairs without steps and drift.
fn apart(course: &Course, pairs: &[Pair]) -> Vec<Apart> {
    let one = |pair: &Pair| Apart {
        by: course.apart(pair),
        flow: pair.flow,
        segment: course.segment_of(1, pair.at[1]),
    };
    pairs.iter().map(one).collect()
}

/// Whether a number of pairs is more than some odd ones.
fn is_many(count: u64, of: usize) -> bool {
    count >= ENOUGH && count.saturating_mul(FEW) > of as u64
}

/// Median of the differences, and the number of those farther from it than the longest residence.
fn outside(all: &[Apart], limit: i64) -> (i64, u64) {
    let middle = median(&mut all.iter().map(|one| one.by).collect::<Vec<_>>());
    let far = all.iter().filter(|one| one.by.abs_diff(middle) > limit.unsigned_abs()).count();
    (middle, far as u64)
}

/// Longest residence if the clocks are not known: what the pairs show, if that is more than is usual.
fn reach(order: &Order, all: &[Apart], limit: i64) -> i64 {
    let (_, far) = outside(all, limit);
    let ends = all.iter().map(|one| one.by).min().zip(all.iter().map(|one| one.by).max());
    match ends {
        Some((least, most)) if order.greatest_ps.is_none() && is_many(far, all.len()) => {
            most.saturating_sub(least).max(limit)
        }
        _ => limit,
    }
}

/// Whether a relation that frames show leaves next to none of the contradictions to the statement.
fn explains(order: &Order, course: &Course, all: &[Apart], held: &Held, limit: i64) -> bool {
    let (middle, far) = outside(all, limit);
    let is_other = if course.corrects() {
        true
    } else {
        // No frame is where it should be. Within a residence that was stated to be longest, either may be wrong.
        let is_residence = order.greatest_ps.is_some()
            && middle.saturating_add(held.stated).saturating_abs() <= LONGEST.max(limit);
        held.inside.saturating_mul(FEW) <= all.len() as u64 && !is_residence
    };
    is_other && far.saturating_mul(LEFT) <= held.early + held.late
}

/// The estimate with the uncertainty of the drift.
fn with_drift(estimate: Estimate, course: &Course, pairs: &[Pair]) -> Estimate {
    let gained = |segment: &Segment| match segment.drift.rate {
        0.0 => 0,
        _ => segment.drift.error(&pairs[segment.pairs.clone()]),
    };
    let more = course.segments.iter().map(gained).max().unwrap_or_default();
    Estimate { within: estimate.within.map(|within| within.saturating_add(more)), ..estimate }
}

/// How many pairs are as stated.
struct Held {
    inside: u64,
    /// Pairs that would have left before they came.
    early: u64,
    /// Pairs that would have stayed for longer than the longest residence.
    late: u64,
    /// Longest residence as stated, ps.
    farthest: i64,
    /// What is added to the second clock's times, ps.
    stated: i64,
}

impl Held {
    fn by(read: &Captures, pairs: &[Pair], stated: i64, slack: i64, limit: i64) -> Self {
        let apart = |pair: &Pair| pair.apart().saturating_add(stated);
        // Each flow passes the device in the direction that most of its frames show.
        let mut votes = vec![[0_u64; 2]; read.flows.len()];
        for pair in pairs {
            let by = apart(pair);
            if by.saturating_abs() > slack {
                votes[pair.flow as usize][usize::from(by < 0)] += 1;
            }
        }
        let mut held = Self { inside: 0, early: 0, late: 0, farthest: limit, stated };
        for pair in pairs {
            let [forth, back] = votes[pair.flow as usize];
            let by = if back > forth { apart(pair).saturating_neg() } else { apart(pair) };
            let count = if by < slack.saturating_neg() {
                &mut held.early
            } else if by > limit.saturating_add(slack) {
                &mut held.late
            } else {
                &mut held.inside
            };
            *count += 1;
            held.farthest = held.farthest.max(by);
        }
        held
    }
}
