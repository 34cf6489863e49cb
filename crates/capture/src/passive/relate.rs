//! The relation of the two captures: clocks, directions of flows, and how long the device keeps frames.

use std::collections::BTreeMap;

use super::assumption::{Clocks, ENOUGH, clocks};
use super::clocks::Course;
use super::found::{ClockRelation, found};
use super::groups::{Groups, groups};
use super::offset::{Votes, apart, steps};
use super::order::{LONGEST, Order, PassiveError};
use super::pairs::{Class, Pair};
use super::reading::{Captures, files};

/// Clock offset, directions and residence limits of the two captures.
#[derive(Debug)]
pub(super) struct Relation {
    /// Reading of the second clock minus the first at the beginning, ps.
    pub(super) offset: i128,
    /// How the clocks are related.
    pub(super) found: ClockRelation,
    /// Uncertainty of the offset, ps; `None` if it was estimated.
    pub(super) uncertainty: Option<i64>,
    /// Longest residence searched, ps.
    pub(super) greatest: i64,
    /// Whether it is the default maximum, rather than twice the greatest seen.
    pub(super) is_most: bool,
    /// Longest residence searched where no frame shows it, ps.
    most: i64,
    /// Interval from arrival to departure of a frame, ps; it may begin below 0 by the uncertainty of the clocks.
    window: [i64; 2],
    /// Side from which each flow comes.
    pub(super) from: Vec<usize>,
    /// Whether the times of a flow's own frames show its side.
    pub(super) told: Vec<bool>,
    /// Longest residence searched for frames of recurring content, ps, by flow. The residence of a flow without enough
    /// frames of unique content is unknown: that of another flow may be a whole cycle of its content.
    pub(super) recurring: Vec<i64>,
    /// The same by flow and frame size, for sizes with enough frames of unique content: small frames may be of another
    /// kind than large ones, with another residence.
    by_size: BTreeMap<(usize, u32), i64>,
    /// Number of frames of a content that each capture has exactly once.
    pub(super) unique: u64,
    /// Frames of each side, by content.
    groups: Groups,
}

impl Relation {
    /// Interval from arrival to departure of a frame of this flow and length, ps, if a capture has its content `times`
    /// times.
    pub(super) fn window_of(&self, (flow, length): (usize, u16), times: usize) -> [i64; 2] {
        if times <= 1 {
            return self.window;
        }
        let longest = self.by_size.get(&(flow, size(length))).copied().unwrap_or(self.most);
        let longer = longest.saturating_sub(self.greatest);
        // Between unsynchronised clocks a frame may seem to leave that much before its arrival.
        let earlier = if self.uncertainty.is_some() { 0 } else { longer };
        [self.window[0].saturating_sub(earlier), self.window[1].saturating_add(longer)]
    }

    /// Flow, and indices of the frames on each side, by content.
    pub(super) fn contents<'a>(
        &'a self,
        read: &'a Captures,
    ) -> impl Iterator<Item = (usize, [&'a [u32]; 2])> {
        self.groups.ranges.iter().filter_map(|range| {
            let places = [0, 1].map(|side| self.groups.places(range, side));
            let flow = (0..2).find_map(|side| {
                places[side].first().map(|&place| read.sides[side].frames[place as usize].flow)
            })?;
            Some((flow as usize, places))
        })
    }
}

/// Finds the relation of the clocks, and from frames of unique content the residence times and the directions of flows.
/// Times of the second capture are converted to the clock of the first, and steps are removed.
pub(super) fn relate(order: &Order, read: &mut Captures) -> Result<Relation, PassiveError> {
    let groups = groups(&read.sides);
    let bases = read.sides[1].base_picos - read.sides[0].base_picos;
    let common = groups.ranges.iter().any(|range| range.iter().all(|[begin, end]| begin < end));
    if !common {
        let frames = read.sides.iter().map(|side| side.frames.len()).sum();
        return Err(PassiveError::NothingInCommon { files: files(order), frames });
    }
    let (pairs, classes) = pairs(read, &groups);
    drop(groups);
    let clocks = clocks(order, read, &pairs, &classes)?;
    let Ok(moved) = i64::try_from(clocks.estimate.shift) else {
        return Err(apart(order, clocks.estimate.shift));
    };
    let offset = bases - clocks.estimate.shift;
    correct(read, &clocks.course, moved);
    let found = found(read, &clocks, &pairs, offset);
    drop(pairs);
    let Clocks { ground, estimate, limit, .. } = clocks;
    for side in &mut read.sides {
        side.frames.sort_by_key(|frame| frame.time);
    }
    let groups = self::groups(&read.sides);
    let agree = estimate.within;
    let slack = agree.unwrap_or(0).saturating_add(steps(read));
    let mut from = estimate.votes.unwrap_or_else(|| Votes::new(read));
    let Alone { unique, greatest, nearest, own } = alone(read, &groups, limit.saturating_add(slack));
    if ground.is_stated() {
        vote(read, &groups, slack, limit, &mut from);
    }
    if unique == 0 && nearest < i64::MAX {
        return Err(apart(order, i128::from(nearest)));
    }
    let twice = |longest: i64| longest.saturating_mul(2).saturating_add(2 * slack).min(limit);
    let seen = (unique >= ENOUGH).then(|| twice(greatest));
    let greatest = order.greatest_ps.or(seen).unwrap_or(LONGEST);
    let most = order.greatest_ps.unwrap_or(LONGEST).max(greatest);
    let enough = own.iter().filter(|(_, (count, _))| *count >= ENOUGH);
    let by_size: BTreeMap<(usize, u32), i64> = enough
        .map(|(&of, &(_, longest))| (of, order.greatest_ps.unwrap_or_else(|| twice(longest)).max(greatest)))
        .collect();
    let recurring = recurring(read, &groups, &by_size, most);
    let earliest = if agree.is_some() { -slack } else { -greatest };
    Ok(Relation {
        offset,
        found,
        uncertainty: agree,
        greatest,
        is_most: order.greatest_ps.is_none() && greatest == LONGEST,
        window: [earliest, greatest.saturating_add(slack)],
        recurring,
        by_size,
        most,
        told: from.flows.iter().map(|votes| *votes != [0; 2]).collect(),
        from: from.decide(read),
        unique,
        groups,
    })
}

/// Votes by clocks that are known: the first and the last frame of a content are on the side from which it comes,
/// whatever the device loses or copies.
fn vote(read: &Captures, groups: &Groups, slack: i64, limit: i64, from: &mut Votes) {
    for pair in groups.ends() {
        let apart = difference(read, pair);
        if apart.abs() > slack && apart.abs() <= limit.saturating_add(slack) {
            from.vote(read.sides[0].frames[pair[0] as usize].flow, usize::from(apart < 0));
        }
    }
}

/// Pairs in the order of the file behind the device, and the classes of their frames. Where there are few, also frames
/// of a content that one capture has once, with the first of the other: the device makes copies.
fn pairs(read: &Captures, groups: &Groups) -> (Vec<Pair>, Vec<Class>) {
    let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut pair = |at: [u32; 2]| {
        let frames = [0, 1].map(|side: usize| &read.sides[side].frames[at[side] as usize]);
        let flow = frames[0].flow;
        let class = *known.entry((flow, size(frames[0].length))).or_insert_with(|| {
            let macs = read.flows[flow as usize].macs;
            let (to, from) = macs.split_at(macs.len() / 2);
            classes.push(Class { is_forth: (to != from).then_some(to > from) });
            u32::try_from(classes.len() - 1).unwrap_or(u32::MAX)
        });
        Pair { at, times: frames.map(|frame| frame.time), flow, class }
    };
    let mut pairs: Vec<Pair> = groups.unique().map(&mut pair).collect();
    if (pairs.len() as u64) < ENOUGH {
        pairs.extend(groups.copied().map(&mut pair));
    }
    pairs.sort_unstable_by_key(|pair| pair.at[1]);
    (pairs, classes)
}

/// Takes steps and drift off the times, and moves those of the second capture by a constant.
fn correct(read: &mut Captures, course: &Course, moved: i64) {
    for (side, captured) in read.sides.iter_mut().enumerate() {
        let constant = if side == 1 { moved } else { 0 };
        if !course.corrects() {
            captured.frames.iter_mut().for_each(|frame| frame.time = frame.time.saturating_add(constant));
            continue;
        }
        let (mut latest, mut before) = (i64::MIN, i64::MIN);
        (captured.back_picos, captured.turns) = (0, 0);
        for (place, frame) in (0..).zip(&mut captured.frames) {
            frame.time = course.corrected(side, place, frame.time).saturating_add(constant);
            latest = latest.max(frame.time);
            captured.back_picos = captured.back_picos.max(latest.abs_diff(frame.time));
            captured.turns += u64::from(frame.time < before);
            before = frame.time;
        }
    }
}

/// Time of a frame in the second capture minus its time in the first, ps.
fn difference(read: &Captures, pair: [u32; 2]) -> i64 {
    let [before, after] = [0, 1].map(|side| read.sides[side].frames[pair[side] as usize].time);
    after.saturating_sub(before)
}

/// Residence times of frames of unique content.
struct Alone {
    /// Number of them within the search limit.
    unique: u64,
    /// Longest residence of these, ps.
    greatest: i64,
    /// Shortest residence of all, ps.
    nearest: i64,
    /// Number of these and their longest residence, by flow and size.
    own: BTreeMap<(usize, u32), (u64, i64)>,
}

/// Size class of a frame length: lengths up to twice the shortest are one class.
const fn size(length: u16) -> u32 {
    u16::BITS - length.leading_zeros()
}

/// Longest residence searched for frames of recurring content, by flow; 0 for a flow without any.
fn recurring(read: &Captures, groups: &Groups, by_size: &BTreeMap<(usize, u32), i64>, most: i64) -> Vec<i64> {
    let mut longest = vec![0; read.flows.len()];
    for range in &groups.ranges {
        let places = [0, 1].map(|side| groups.places(range, side));
        if places.iter().all(|places| places.len() <= 1) {
            continue;
        }
        for (side, places) in places.iter().enumerate() {
            let Some(&place) = places.first() else { continue };
            let frame = &read.sides[side].frames[place as usize];
            let flow = frame.flow as usize;
            let looked = by_size.get(&(flow, size(frame.length))).copied().unwrap_or(most);
            longest[flow] = looked.max(longest[flow]);
        }
    }
    longest
}

fn alone(read: &Captures, groups: &Groups, most: i64) -> Alone {
    let own = BTreeMap::new();
    let mut found = Alone { unique: 0, greatest: 0, nearest: i64::MAX, own };
    for pair in groups.unique() {
        let apart = difference(read, pair).abs();
        found.nearest = found.nearest.min(apart);
        if apart > most {
            continue;
        }
        found.unique += 1;
        found.greatest = found.greatest.max(apart);
        let frame = &read.sides[0].frames[pair[0] as usize];
        let own = found.own.entry((frame.flow as usize, size(frame.length))).or_insert((0, 0));
        *own = (own.0 + 1, own.1.max(apart));
    }
    found
}
