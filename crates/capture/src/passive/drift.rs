//! Drift of one clock against another, from frames that both timestamped.
//!
//! Residence only ever adds to the difference of the times. So the line below all of them that comes nearest to them is
//! the course of the clocks (Moon, Skelly, Towsley: Estimation and removal of clock skew from network delay
//! measurements, INFOCOM 1999); for frames of the other direction, the line above.

use std::collections::BTreeMap;

use super::pairs::Pair;

/// Greatest drift of two clocks: each may be 500 ppm wrong, the most that NTP corrects (RFC 5905, 11.3).
const MOST: f64 = 1e-3;
/// Least number of frames from which a drift is estimated.
const ENOUGH: usize = 16;
/// Number of slopes of which the median is taken.
const SLOPES: usize = 4_096;
/// Quartile ranges below the lower quartile from which a difference belongs to no frame that came through.
const FAR: i64 = 10;

/// Drift of the second clock against the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Drift {
    /// What it gains in a second, s; 0 if none is certain.
    pub(super) rate: f64,
    /// Uncertainty of the estimate.
    pub(super) within: f64,
}

/// Of frames that do not show it.
const UNKNOWN: Drift = Drift { rate: 0.0, within: MOST };

impl Drift {
    /// What the second clock gained in a time, ps.
    pub(super) fn at(self, elapsed: i64) -> i64 {
        product(self.rate, elapsed)
    }

    /// What it may differ by over some pairs, ps.
    pub(super) fn error(self, pairs: &[Pair]) -> i64 {
        let ends = pairs.first().zip(pairs.last());
        let span = ends.map_or(0, |(one, other)| other.times[1].saturating_sub(one.times[1]));
        product(self.within, span.max(0))
    }
}

/// A part of a time, ps.
#[expect(clippy::cast_possible_truncation, reason = "a part of a time is less than the time")]
pub(super) fn product(rate: f64, time: i64) -> i64 {
    (rate * time as f64).round() as i64
}

/// Slope of the differences over the first clock's time: the median of slopes between frames some way apart, which
/// single steps of a clock do not change.
pub(super) fn steepness(pairs: &[Pair]) -> f64 {
    // Distances that vary, so that the median does not fall into one of few values.
    let (least, more) = ((pairs.len() / 16).max(1), pairs.len() / 12);
    if pairs.len() < ENOUGH / 2 {
        return 0.0;
    }
    let stride = (pairs.len() / SLOPES).max(1);
    let mut slopes: Vec<f64> = (0..pairs.len())
        .step_by(stride)
        .filter_map(|at| {
            let one = &pairs[at];
            let other = pairs.get(at + least + at * 31 % (more + 1))?;
            let run = other.times[0].saturating_sub(one.times[0]);
            (run > 0).then(|| other.apart().saturating_sub(one.apart()) as f64 / run as f64)
        })
        .collect();
    if slopes.is_empty() {
        return 0.0;
    }
    let middle = slopes.len() / 2;
    *slopes.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Drift from the pairs of a segment without steps; none if the frames do not show one for certain.
pub(super) fn of(pairs: &[Pair], resolution: i64) -> Drift {
    let mut points = largest_class(pairs);
    if points.len() < ENOUGH {
        return UNKNOWN;
    }
    points.sort_unstable();
    let origin = points[0].0;
    let span = (points[points.len() - 1].0 - origin) as f64;
    if span <= 0.0 {
        return UNKNOWN;
    }
    let slope = steepness(pairs);
    let rest = |&(time, apart): &(i64, i64)| apart.saturating_sub(product(slope, time - origin));
    let mut rests: Vec<i64> = points.iter().map(rest).collect();
    rests.sort_unstable();
    let quantile = |share: usize| rests[(rests.len() * share / 8).min(rests.len() - 1)];
    let range = quantile(6).saturating_sub(quantile(2));
    let sign = if quantile(2).saturating_sub(quantile(0)) <= quantile(8).saturating_sub(quantile(6)) {
        1
    } else {
        -1
    };
    let farthest = range.saturating_mul(FAR).saturating_add(2 * resolution);
    let is_far = |rest: i64| match sign {
        1 => rest < quantile(2).saturating_sub(farthest),
        _ => rest > quantile(6).saturating_add(farthest),
    };
    let mut points: Vec<(i64, i64)> = points
        .iter()
        .filter(|point| !is_far(rest(point)))
        .map(|&(time, apart)| (time, apart.saturating_mul(sign)))
        .collect();
    points.sort_unstable();
    let Some((rate, above)) = lower(&points) else { return UNKNOWN };
    let half = |odd: usize| {
        let own: Vec<(i64, i64)> = points.iter().copied().skip(odd).step_by(2).collect();
        lower(&own).map_or(f64::MAX, |(rate, _)| rate)
    };
    let within = 3.0 * (half(0) - half(1)).abs() + (2 * resolution + above) as f64 / span;
    let rate = rate * sign as f64;
    let is_certain = rate.abs() <= MOST && rate.abs() > within;
    Drift { rate: if is_certain { rate } else { 0.0 }, within: within.min(MOST) }
}

/// Times by the second clock and differences of the class with most pairs.
fn largest_class(pairs: &[Pair]) -> Vec<(i64, i64)> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for pair in pairs {
        *counts.entry(pair.class).or_default() += 1;
    }
    let Some((&class, _)) = counts.iter().max_by_key(|&(_, count)| count) else { return Vec::new() };
    let own = pairs.iter().filter(|pair| pair.class == class);
    own.map(|pair| (pair.times[1], pair.apart())).collect()
}

/// Slope of the line below all points with the least sum of distances, an edge of their lower hull, and the distance
/// above it within which a tenth of the points lies.
fn lower(points: &[(i64, i64)]) -> Option<(f64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for &point in points {
        if hull.last().is_some_and(|last| last.0 == point.0) {
            continue;
        }
        while let [.., one, two] = hull[..]
            && turns_down(one, two, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let sum: i128 = points.iter().map(|(time, _)| i128::from(*time)).sum();
    let middle = sum / i128::try_from(points.len().max(1)).ok()?;
    let after = hull.iter().position(|(time, _)| i128::from(*time) > middle)?;
    let (one, two) = (hull[after.checked_sub(1)?], hull[after]);
    let rate = two.1.saturating_sub(one.1) as f64 / (two.0 - one.0) as f64;
    let mut above: Vec<i64> = points
        .iter()
        .map(|&(time, apart)| apart.saturating_sub(one.1).saturating_sub(product(rate, time - one.0)))
        .collect();
    let tenth = above.len() / 10;
    let above = *above.select_nth_unstable(tenth).1;
    Some((rate, above.max(0)))
}

/// Whether the middle of three points is on or above the line of the others.
fn turns_down(one: (i64, i64), two: (i64, i64), three: (i64, i64)) -> bool {
    let [x2, y2, x3, y3] = [
        two.0.saturating_sub(one.0),
        two.1.saturating_sub(one.1),
        three.0.saturating_sub(one.0),
        three.1.saturating_sub(one.1),
    ]
    .map(i128::from);
    x2 * y3 <= x3 * y2
}
