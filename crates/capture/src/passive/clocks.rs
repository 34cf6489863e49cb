//! How the two clocks are related: where one of them was set, and how they drift against each other.
//!
//! Frames of a content that each capture has exactly once are pairs, whatever their times say. In the order of the file
//! behind the device, the difference of their times is a level, plus the residence, which varies. A clock that is set
//! moves the level at one instant and for all flows. A device that keeps frames for longer does so gradually, for one
//! direction, or until it is empty again: a level that comes back is therefore no step, unless times go back in a file,
//! which no device can do.

use std::collections::VecDeque;
use std::ops::Range;

use super::drift::{self, Drift};
use super::order::LONGEST;
use super::pairs::{Class, Pair, median};

/// Least number of pairs in a row that make a level of their own.
const FEWEST: usize = 3;
/// Number of pairs after which a level counts in any case.
const ENOUGH: usize = 10;
/// Number of accepted pairs of which the median is the level.
const RECENT: usize = 5;
/// Number of pairs on both sides of a step that are compared.
const BESIDE: usize = 32;
/// Number of levels back among which one that comes back is looked for.
const LOOK_BACK: usize = 32;
/// Greatest number of steps; more are no clock's.
const MOST_STEPS: usize = 64;
/// Least step, ps. Clocks are steered, not set, below it: ptp4l steps by more than 20 µs only (first_step_threshold).
const LEAST_STEP: i64 = 10_000_000;
/// Step from which one that stands out by far is a clock's without further evidence, ps.
const PLAIN_STEP: i64 = 10_000_000_000;
/// Part of its distance within which a level comes back to an earlier one.
const COMES_BACK: u64 = 20;
/// A step stands out by far if it is so many times what residences vary beside it.
const BY_FAR: i64 = 10;

/// Time of a frame of a side, in the order of its file.
pub(super) type Times<'a> = &'a dyn Fn(usize, u32) -> i64;

/// Part of the captures in which no clock was set.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its pairs.
    pub(super) pairs: Range<usize>,
    /// Its first frame on each side.
    pub(super) first: [u32; 2],
    /// Time of the second clock at which its drift counts from, ps.
    pub(super) start: i64,
    /// What is to be taken off the times of each side, ps.
    pub(super) shift: [i64; 2],
    pub(super) drift: Drift,
}

/// A step of a clock, or of what the device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// First pair after it.
    pub(super) pair: usize,
    /// First frame after it, on each side.
    pub(super) first: [u32; 2],
    /// By how much the second clock shows more than before, in relation to the first, ps.
    pub(super) by: i64,
    /// Uncertainty of that, ps, if least residences before and after are equal.
    pub(super) within: i64,
    /// Side whose clock was set, as far as the times of the files tell.
    pub(super) side: usize,
    /// Whether times of that file go back there.
    pub(super) goes_back: bool,
    /// Whether it is taken for a step of a clock.
    pub(super) is_clock: bool,
}

/// What the pairs tell about the clocks.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) segments: Vec<Segment>,
    pub(super) steps: Vec<Step>,
    /// Least step that would be seen, ps.
    pub(super) visible: i64,
}

impl Course {
    /// Segment of a frame.
    pub(super) fn segment_of(&self, side: usize, place: u32) -> usize {
        self.segments.partition_point(|segment| segment.first[side] <= place).saturating_sub(1)
    }

    /// Time without steps and drift: then the clocks differ by a constant.
    pub(super) fn corrected(&self, side: usize, place: u32, time: i64) -> i64 {
        let segment = &self.segments[self.segment_of(side, place)];
        let drifted = if side == 1 { segment.drift.at(time.saturating_sub(segment.start)) } else { 0 };
        time.saturating_sub(segment.shift[side]).saturating_sub(drifted)
    }

    pub(super) fn apart(&self, pair: &Pair) -> i64 {
        let [before, behind] = [0, 1].map(|side| self.corrected(side, pair.at[side], pair.times[side]));
        behind.saturating_sub(before)
    }

    /// Leaves times as they are. Steps are only noted; between interfaces of one file they are the device's.
    pub(super) fn undo(&mut self, one_clock: bool) {
        if let (Some(first), Some(last)) = (self.segments.first(), self.segments.last()) {
            let whole = Segment {
                pairs: first.pairs.start..last.pairs.end,
                drift: Drift::default(),
                ..first.clone()
            };
            self.segments = vec![whole];
        }
        if one_clock {
            self.steps.clear();
        }
    }

    /// Whether it changes any time.
    pub(super) fn corrects(&self) -> bool {
        self.segments.len() > 1 || self.segments.iter().any(|segment| segment.drift.rate != 0.0)
    }
}

/// Finds steps and drift in pairs in the order of the file behind the device. With `all`, every step that is seen is
/// taken for a clock's; otherwise one that a device may have made is only noted. `resolution`: that of the timestamps.
pub(super) fn course(
    pairs: &[Pair],
    classes: &[Class],
    times: Times<'_>,
    resolution: i64,
    all: bool,
) -> Course {
    let level = Levelled::of(pairs, classes.len(), resolution);
    let mut bounds = vec![0];
    let mut steps = Vec::new();
    let found = level.segments(pairs, times);
    for (number, pair) in found.windows(2).enumerate() {
        let from = bounds.last().copied().unwrap_or_default();
        let end = found.get(number + 2).map_or(pairs.len(), |next| next.first);
        let sides = [from..pair[1].first, pair[1].first..end];
        let Some(step) = level.step(pairs, classes, times, &sides, pair[1].last, all) else { continue };
        if step.is_clock {
            bounds.push(pair[1].first);
        }
        steps.push(step);
    }
    let mut course = Course { segments: Vec::new(), steps, visible: level.tolerance };
    for (number, &first) in bounds.iter().enumerate() {
        let end = bounds.get(number + 1).copied().unwrap_or(pairs.len());
        course.add(pairs, first..end, resolution);
    }
    course
}

impl Course {
    /// Adds the next segment, whose level is then that of the ones before.
    fn add(&mut self, pairs: &[Pair], range: Range<usize>, resolution: i64) {
        let number = self.steps.iter().position(|step| step.is_clock && step.pair == range.start);
        let next = self.steps.iter().find(|step| step.is_clock && step.pair == range.end);
        let begin = number.map_or([0; 2], |number| self.steps[number].first);
        let own = wholly(&pairs[range.clone()], begin, next.map(|step| step.first));
        let start = own.first().map_or(0, |pair| pair.times[1]);
        let drift = drift::of(&own, resolution);
        let mut segment = Segment { pairs: range, first: begin, start, shift: [0; 2], drift };
        if let (Some(number), Some(previous)) = (number, self.segments.last()) {
            let before = wholly(&pairs[previous.pairs.clone()], previous.first, Some(begin));
            let level =
                |pair: &Pair| pair.apart().saturating_sub(drift.at(pair.times[1].saturating_sub(start)));
            let compared = compare([&before, &own], [&|pair| self.apart(pair), &level]);
            let step = &mut self.steps[number];
            // The drift of the segment before goes on until the step.
            let set = if step.side == 1 { step.by } else { 0 };
            let gained = previous.drift.at(start.saturating_sub(set).saturating_sub(previous.start));
            let ahead = previous.shift[1].saturating_sub(previous.shift[0]);
            step.by = compared.by.saturating_sub(ahead).saturating_sub(gained);
            let drifted = previous.drift.error(&before).saturating_add(drift.error(&own));
            step.within = compared.within.saturating_add(resolution).saturating_add(drifted);
            segment.shift[0] = previous.shift[0].saturating_sub(if step.side == 0 { step.by } else { 0 });
            segment.shift[1] = compared.by.saturating_add(segment.shift[0]);
        }
        self.segments.push(segment);
    }
}

/// Pairs of which both frames are between two steps: others were in the device while a clock was set.
fn wholly(pairs: &[Pair], begin: [u32; 2], end: Option<[u32; 2]>) -> Vec<Pair> {
    let is_whole = |pair: &&Pair| {
        (0..2).all(|side| pair.at[side] >= begin[side] && end.is_none_or(|end| pair.at[side] < end[side]))
    };
    pairs.iter().filter(is_whole).copied().collect()
}

/// Difference of two levels.
struct Compared {
    by: i64,
    within: i64,
    /// Whether some frames of similar size of one flow are in both parts.
    is_alike: bool,
}

/// Level of the second part less that of the first, from the class that both have most frames of: by its least or its
/// greatest value, those of frames without queueing in the one or the other direction.
fn compare(parts: [&[Pair]; 2], values: [&dyn Fn(&Pair) -> i64; 2]) -> Compared {
    let by_class = [0, 1].map(|part| {
        let mut all: Vec<(u32, i64)> =
            parts[part].iter().map(|pair| (pair.class, values[part](pair))).collect();
        all.sort_unstable();
        all
    });
    let of = |part: usize, class: u32| {
        let all: &Vec<(u32, i64)> = &by_class[part];
        let from = all.partition_point(|(own, _)| *own < class);
        let to = all.partition_point(|(own, _)| *own <= class);
        &by_class[part][from..to]
    };
    let mut best: Option<(usize, u32)> = None;
    let mut at = 0;
    while let Some(&(class, _)) = by_class[0].get(at) {
        let own = of(0, class).len();
        at += own;
        let common = own.min(of(1, class).len());
        if common > 0 && best.is_none_or(|(most, _)| common > most) {
            best = Some((common, class));
        }
    }
    let Some((_, class)) = best else {
        let middle = [0, 1].map(|part| {
            let mut all: Vec<i64> = by_class[part].iter().map(|(_, value)| *value).collect();
            median(&mut all)
        });
        return Compared { by: middle[1].saturating_sub(middle[0]), within: i64::MAX / 4, is_alike: false };
    };
    let [one, other] = [0, 1].map(|part| End::of(of(part, class)));
    let by = |end: usize| other.value[end].saturating_sub(one.value[end]);
    let middle = other.middle.saturating_sub(one.middle);
    // Frames that were held for long are at the other end, in one part only.
    let far = |end: usize| (by(end).abs_diff(middle), one.gap[end].saturating_add(other.gap[end]));
    let end = usize::from(far(0) > far(1));
    Compared { by: by(end), within: one.error(end).saturating_add(other.error(end)), is_alike: true }
}

/// Least and greatest of some values, and how far the quarter next to each reaches.
struct End {
    value: [i64; 2],
    middle: i64,
    gap: [i64; 2],
    n: i64,
}

impl End {
    fn of(sorted: &[(u32, i64)]) -> Self {
        let value = |at: usize| sorted[at.min(sorted.len() - 1)].1;
        let (n, last) = (sorted.len(), sorted.len() - 1);
        let value_ends = [value(0), value(last)];
        let quarter = [value(n / 4), value(last - n / 4)];
        Self {
            value: value_ends,
            middle: value(n / 2),
            gap: [quarter[0].saturating_sub(value_ends[0]), value_ends[1].saturating_sub(quarter[1])],
            n: i64::try_from(n).unwrap_or(i64::MAX),
        }
    }

    /// Distance of the end from where it would be with more values: some of the steps of the quarter next to it.
    fn error(&self, end: usize) -> i64 {
        (self.gap[end].saturating_mul(4) / (self.n / 4).max(1)).min(self.gap[end])
    }
}

/// A level that some pairs in a row have.
#[derive(Clone, Copy, Debug)]
struct Level {
    first: usize,
    /// Last pair of the level before, where it begins.
    last: usize,
    value: i64,
    /// Whether times go back in a file where it begins.
    goes_back: bool,
}

/// Differences of the pairs, without a common slope and without what classes differ by.
struct Levelled {
    values: Vec<i64>,
    /// Difference that residences explain, ps.
    tolerance: i64,
}

impl Levelled {
    fn of(pairs: &[Pair], classes: usize, resolution: i64) -> Self {
        let slope = drift::steepness(pairs);
        let origin = pairs.first().map_or(0, |pair| pair.times[0]);
        let mut values: Vec<i64> = pairs
            .iter()
            .map(|pair| {
                pair.apart().saturating_sub(drift::product(slope, pair.times[0].saturating_sub(origin)))
            })
            .collect();
        if classes > 1 {
            centre(pairs, classes, &mut values);
        }
        let mut last = vec![None; classes];
        let mut changes = Vec::with_capacity(pairs.len());
        for (pair, &value) in pairs.iter().zip(&values) {
            if let Some(before) = last[pair.class as usize].replace(value) {
                changes.push(value.saturating_sub(before).saturating_abs());
            }
        }
        let most = changes.len() * 7 / 10;
        let usual = if changes.is_empty() { 0 } else { *changes.select_nth_unstable(most).1 };
        let tolerance = usual.saturating_mul(6).saturating_add(2 * resolution).max(LEAST_STEP);
        Self { values, tolerance }
    }

    /// Segments of one level, without those that come back to an earlier level.
    fn segments(&self, pairs: &[Pair], times: Times<'_>) -> Vec<Level> {
        let firsts = self.firsts();
        let mut kept: Vec<Level> = Vec::new();
        for (number, &[last, first]) in firsts.iter().enumerate() {
            let end = firsts.get(number + 1).map_or(pairs.len(), |next| next[1]);
            let value = median(&mut self.values[first..end].to_vec());
            let by = kept.last().map_or(0, |last| value.saturating_sub(last.value));
            let goes_back = first > 0 && set_back(pairs, times, [last, first], by).is_some();
            let level = Level { first, last, value, goes_back };
            let back = kept.len().saturating_sub(LOOK_BACK);
            let farthest =
                |from: usize| kept[from..].iter().map(|one| one.value.abs_diff(value)).max().unwrap_or(0);
            let same = (back..kept.len()).rev().find(|&at| {
                let between = &kept[at + 1..];
                let far = farthest(at + 1);
                let near = (far / COMES_BACK).max(self.tolerance.unsigned_abs());
                let is_device =
                    !goes_back && between.iter().all(|one| !one.goes_back) && far < LONGEST.unsigned_abs();
                value.abs_diff(kept[at].value) <= near && (between.is_empty() || is_device)
            });
            match same {
                Some(at) => kept.truncate(at + 1),
                None => kept.push(level),
            }
        }
        let least = (pairs.len() / 10).clamp(FEWEST, ENOUGH);
        let ends: Vec<usize> = kept.iter().skip(1).map(|level| level.first).chain([pairs.len()]).collect();
        let mut found: Vec<Level> = Vec::new();
        // A step is looked for after the last long level.
        let mut last = None;
        for (level, end) in kept.iter().zip(ends) {
            if end - level.first >= least {
                found.push(Level { last: last.take().unwrap_or(level.last), ..*level });
            } else {
                last = last.or(Some(level.last));
            }
        }
        if let Some(first) = found.first_mut() {
            first.first = 0;
        }
        if found.is_empty() || found.len() > MOST_STEPS {
            found = vec![Level { first: 0, last: 0, value: 0, goes_back: false }];
        }
        found
    }

    /// First pairs of levels, some in a row that are farther from the level before than residences vary, each after the
    /// last pair of that level.
    fn firsts(&self) -> Vec<[usize; 2]> {
        let near = |one: i64, other: i64| one.abs_diff(other) <= self.tolerance.unsigned_abs();
        let (mut firsts, mut last) = (vec![[0; 2]], 0);
        let mut recent: VecDeque<i64> = VecDeque::with_capacity(RECENT);
        let mut others: VecDeque<usize> = VecDeque::with_capacity(RECENT);
        for (at, &value) in self.values.iter().enumerate() {
            let is_near =
                recent.is_empty() || near(median(&mut recent.iter().copied().collect::<Vec<_>>()), value);
            if is_near {
                others.clear();
                recent.truncate(RECENT - 1);
                recent.push_front(value);
                last = at;
                continue;
            }
            others.truncate(RECENT - 1);
            others.push_front(at);
            let middle = median(&mut others.iter().map(|&other| self.values[other]).collect::<Vec<_>>());
            let alike: Vec<usize> =
                others.iter().copied().filter(|&other| near(self.values[other], middle)).collect();
            if alike.len() >= FEWEST {
                firsts.push([last, alike[alike.len() - 1]]);
                last = at;
                recent = alike.iter().map(|&other| self.values[other]).collect();
                others.clear();
            }
        }
        firsts
    }

    /// The step between two parts, if there is one.
    fn step(
        &self,
        pairs: &[Pair],
        classes: &[Class],
        times: Times<'_>,
        [before, behind]: &[Range<usize>; 2],
        last: usize,
        all: bool,
    ) -> Option<Step> {
        let near = [
            before.end.saturating_sub(BESIDE).max(before.start)..before.end,
            behind.start..behind.end.min(behind.start + BESIDE),
        ];
        let [low, high] = near.clone().map(|range| middle_half(&self.values[range]));
        let spread = (low[1] - low[0]).max(high[1] - high[0]);
        let gap = (high[0].saturating_sub(low[1])).max(low[0].saturating_sub(high[1]));
        if gap <= spread || gap <= self.tolerance / 2 {
            return None;
        }
        let [lower, upper] = near.clone().map(|range| median(&mut self.values[range].to_vec()));
        let border = Border::at(pairs, times, [last, behind.start], upper.saturating_sub(lower));
        let parts = [
            wholly(&pairs[near[0].clone()], [0; 2], Some(border.first)),
            wholly(&pairs[near[1].clone()], border.first, None),
        ];
        let mut compared = compare([&parts[0], &parts[1]], [&Pair::apart, &Pair::apart]);
        if !compared.is_alike {
            let all = near.clone().map(|range| &pairs[range]);
            compared = compare(all, [&Pair::apart, &Pair::apart]);
        }
        let by = compared.by;
        if !compared.is_alike && by.saturating_abs() < LONGEST {
            return None;
        }
        let is_plain = by.saturating_abs() >= PLAIN_STEP && by.saturating_abs() / BY_FAR >= spread;
        let is_clock = all
            || border.goes_back
            || by.saturating_abs() >= LONGEST
            || is_plain
            || both_ways([&parts[0], &parts[1]], classes, self.tolerance);
        Some(Step {
            pair: behind.start,
            first: border.first,
            by,
            within: compared.within,
            side: border.side,
            goes_back: border.goes_back,
            is_clock,
        })
    }
}

/// Whether frames of both directions between two stations have the same step: a device that takes longer moves the
/// times of the two directions to opposite sides.
fn both_ways(parts: [&[Pair]; 2], classes: &[Class], tolerance: i64) -> bool {
    let directions = |forth: bool| {
        parts.map(|part| {
            part.iter()
                .filter(|pair| classes[pair.class as usize].is_forth == Some(forth))
                .copied()
                .collect::<Vec<_>>()
        })
    };
    let [forth, back] = [true, false].map(|forth| {
        let [before, behind] = directions(forth);
        let compared = compare([&before, &behind], [&Pair::apart, &Pair::apart]);
        (compared.is_alike, compared.by)
    });
    forth.0 && back.0 && forth.1.abs_diff(back.1) <= tolerance.unsigned_abs()
}

/// Where a step lies in the two files.
struct Border {
    first: [u32; 2],
    side: usize,
    goes_back: bool,
}

impl Border {
    /// A clock that was set has an unusual time between two frames there. Between the frames of pairs, the step is taken
    /// to be where that is most unusual.
    fn at(pairs: &[Pair], times: Times<'_>, [last, pair]: [usize; 2], by: i64) -> Self {
        if let Some((side, place)) = set_back(pairs, times, [last, pair], by) {
            let mut first = pairs[pair].at;
            first[side] = place;
            return Self { first, side, goes_back: true };
        }
        // The second clock was set forwards, or the first one back, where `by` is positive.
        let near = &pairs[pair.saturating_sub(BESIDE)..pairs.len().min(pair + BESIDE)];
        let mut first = pairs[pair].at;
        let mut unusual = [0; 2];
        for side in 0..2 {
            let mut usual: Vec<i64> = near
                .windows(2)
                .map(|two| two[1].times[side].saturating_sub(two[0].times[side]).saturating_abs())
                .collect();
            let usual = median(&mut usual);
            let sign = if (side == 1) == (by > 0) { 1 } else { -1 };
            let (place, jump) = steepest(pairs, times, [last, pair], side, sign);
            first[side] = place;
            unusual[side] = jump.saturating_sub(usual).saturating_abs();
        }
        Self { first, side: usize::from(unusual[1] >= unusual[0]), goes_back: false }
    }
}

/// The side and frame at which times of a file go back by at least half of a step.
fn set_back(pairs: &[Pair], times: Times<'_>, between: [usize; 2], by: i64) -> Option<(usize, u32)> {
    // The second clock was set back, or the first one.
    let side = usize::from(by < 0);
    let (place, jump) = steepest(pairs, times, between, side, -1);
    (jump < 0 && jump.saturating_abs() >= by.saturating_abs() / 2).then_some((side, place))
}

/// The frame of a side, after the last pair of a level and up to the first of the next, whose time is farthest after
/// (`sign` 1) or before (−1) that of the frame before it; and by how much.
fn steepest(
    pairs: &[Pair],
    times: Times<'_>,
    [last, first]: [usize; 2],
    side: usize,
    sign: i64,
) -> (u32, i64) {
    let to = pairs[first].at[side];
    let from = pairs[last].at[side].min(to.saturating_sub(1));
    let jump = |place: u32| times(side, place).saturating_sub(times(side, place - 1));
    let best = (from + 1..=to).max_by_key(|&place| jump(place).saturating_mul(sign));
    best.map_or((to, 0), |place| (place, jump(place)))
}

/// Takes off what the classes differ by where they are mixed, as residences depend on flow and length.
fn centre(pairs: &[Pair], classes: usize, values: &mut [i64]) {
    const AROUND: usize = 8;
    let mut differences: Vec<Vec<i64>> = vec![Vec::new(); classes];
    for (at, pair) in pairs.iter().enumerate() {
        let around = at.saturating_sub(AROUND)..values.len().min(at + AROUND + 1);
        let middle = median(&mut values[around].to_vec());
        differences[pair.class as usize].push(values[at].saturating_sub(middle));
    }
    let centres: Vec<i64> = differences.iter_mut().map(|all| median(all)).collect();
    for (value, pair) in values.iter_mut().zip(pairs) {
        *value = value.saturating_sub(centres[pair.class as usize]);
    }
}

/// Range of the middle half of values.
fn middle_half(values: &[i64]) -> [i64; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let off = sorted.len() / 4;
    [sorted[off], sorted[sorted.len() - 1 - off]]
}
