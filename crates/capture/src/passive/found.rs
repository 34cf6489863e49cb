//! The relation of the clocks as it is reported.

use serde::Serialize;

use super::assumption::{Clocks, Ground};
use super::leaps;
use super::pairs::Pair;
use super::reading::Captures;

/// The relation of the two clocks: what it rests on, and its parts between steps.
#[derive(Debug, Serialize)]
pub struct ClockRelation {
    /// What it rests on.
    pub ground: Ground,
    /// Number of pairs: frames of a content that each capture has exactly once.
    pub pairs: u64,
    /// Number of pairs that contradict what was stated.
    pub contradicting: u64,
    /// Parts in which no clock was set; one if none was.
    pub segments: Vec<SegmentReport>,
    /// Steps of a clock, or of what the device takes.
    pub steps: Vec<StepReport>,
    /// Likely cause of the offset, if its size has a name.
    pub leap: Option<&'static str>,
    /// Least step that would be seen, ps.
    pub visible_ps: i64,
}

/// A part in which no clock was set.
#[derive(Debug, Serialize)]
pub struct SegmentReport {
    /// Times of its first and last pair before the device, ps after the first frame of the first capture.
    pub came_ps: [i64; 2],
    /// Number of its pairs.
    pub pairs: u64,
    /// What the second clock shows more than the first at its beginning, ps.
    pub offset_ps: i128,
    /// What the second clock gains in a second, ns; 0 if none is certain.
    pub drift_ppb: f64,
    /// Uncertainty of the drift.
    pub drift_uncertainty_ppb: f64,
}

/// A step between two parts.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// Times of the last frame before it and the first after it, ps after the first frame of the first capture.
    pub at_ps: [i64; 2],
    /// What the second clock shows more than before, in relation to the first, ps.
    pub by_ps: i64,
    /// Uncertainty of that, ps, if least residences before and after are equal.
    pub uncertainty_ps: i64,
    /// Name of the capture whose clock was set, as far as times between frames tell.
    pub clock: String,
    /// By how much that clock was set, ps.
    pub set_ps: i64,
    /// Whether the times of that capture go back there, which nothing but its clock can do.
    pub goes_back: bool,
    /// Whether it is taken for a step of a clock, rather than of what the device takes.
    pub is_clock: bool,
    /// Whether it was taken off the times.
    pub removed: bool,
    /// Likely cause, if its size has a name.
    pub leap: Option<&'static str>,
}

/// Reports the relation, whose times are corrected and still in the order of the files. `offset` is what the second
/// clock shows more at the beginning.
pub(super) fn found(read: &Captures, clocks: &Clocks, pairs: &[Pair], offset: i128) -> ClockRelation {
    let Clocks { course, ground, contradicting, .. } = clocks;
    let time = |side: usize, place: u32| read.sides[side].frames[place as usize].time;
    let segments = course.segments.iter().map(|segment| {
        let own = &pairs[segment.pairs.clone()];
        let came = |pair: Option<&Pair>| pair.map_or(0, |pair| time(0, pair.at[0]));
        SegmentReport {
            came_ps: [came(own.first()), came(own.last())],
            pairs: own.len() as u64,
            offset_ps: offset + i128::from(segment.shift[1]) - i128::from(segment.shift[0]),
            drift_ppb: segment.drift.rate * 1e9,
            drift_uncertainty_ppb: segment.drift.within * 1e9,
        }
    });
    let steps = course.steps.iter().map(|step| {
        let first = step.first[step.side];
        StepReport {
            at_ps: [time(step.side, first.saturating_sub(1)), time(step.side, first)],
            by_ps: step.by,
            uncertainty_ps: step.within,
            clock: read.sides[step.side].name.clone(),
            set_ps: if step.side == 1 { step.by } else { step.by.saturating_neg() },
            goes_back: step.goes_back,
            is_clock: step.is_clock,
            removed: course.segments.iter().skip(1).any(|segment| segment.pairs.start == step.pair),
            leap: leaps::of_step(step.by, step.within),
        }
    });
    ClockRelation {
        ground: *ground,
        pairs: pairs.len() as u64,
        contradicting: *contradicting,
        segments: segments.collect(),
        steps: steps.collect(),
        leap: if ground.is_stated() { None } else { leaps::of_offset(offset, clocks.estimate.within) },
        visible_ps: course.visible,
    }
}
