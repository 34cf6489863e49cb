//! Fates of all frames before the device.

use std::collections::BTreeMap;

use crate::edges;

use super::matching::{Fate, Limits, Matching, matched};
use super::order::{LONGEST, Order, PassiveError};
use super::reading::{Captures, Side, files};

/// Least number of frames of unique content from which a greatest residence is derived.
const ENOUGH: u64 = 30;
/// Greatest number of rounds in which the order of certain pairs makes further pairs certain.
const MOST_ROUNDS: usize = 8;

/// Clock offset, directions and residence limits of the two captures.
#[derive(Debug)]
pub(super) struct Relation {
    /// Reading of the second clock minus the first, ps.
    pub(super) offset: i64,
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

/// Frames of each side by content, then time.
#[derive(Debug)]
struct Groups {
    sorted: [Vec<u32>; 2],
    /// Range of each content on each side.
    ranges: Vec<[[u32; 2]; 2]>,
}

/// Fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Not followed from here: it came out of the device, or its flow does not come from this side.
    Elsewhere,
    /// Came through, with this residence time, ps.
    Through(i64),
    /// May have come through, with a residence time in an interval.
    Ambiguous {
        /// Least and greatest residence, ps.
        residence: [i64; 2],
        /// Whether it may have been lost.
        may_be_lost: bool,
    },
    /// Did not come through.
    Lost,
    /// May have come through before the other capture began or after it ended.
    Edge,
    /// Its content is on the other side, outside the search window.
    Outside,
}

/// Origin of a frame behind the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was seen before the device, or has a known origin.
    Known,
    /// No origin.
    Appeared,
    /// No origin, at the edge of the capture before the device.
    Edge,
    /// The same content came before the device, outside the search window.
    Outside,
}

/// A certain match: a frame behind the device, or a copy, with its frame before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followed {
    /// Side from which it came.
    pub(super) side: usize,
    /// Index of the frame on that side.
    pub(super) from: u32,
    /// Index of the frame on the other side.
    pub(super) to: u32,
}

/// Fates of all frames.
#[derive(Debug)]
pub(super) struct Fates {
    /// Fate of each frame, by side.
    pub(super) ends: [Vec<End>; 2],
    /// Origin of each frame as one that came out there, by side.
    pub(super) origins: [Vec<Origin>; 2],
    pub(super) followed: Vec<Followed>,
    /// Least and greatest number of frames that came through, by flow.
    pub(super) through: Vec<[u64; 2]>,
    /// Number of frames behind the device that stem from one before it, by flow.
    pub(super) stemming: Vec<u64>,
    /// Number of frames on both sides outside the search window, by flow: those of unique content, and the least number
    /// of the others.
    pub(super) outside: Vec<[u64; 2]>,
}

impl Fates {
    /// Whether content of the flow is on both sides of the device.
    pub(super) fn crossed(&self, flow: usize) -> bool {
        self.stemming[flow] > 0 || self.outside[flow] != [0, 0]
    }
}

#[expect(clippy::cast_possible_truncation, reason = "frames are counted in 32 bits")]
fn groups(sides: &[Side; 2]) -> Groups {
    let sorted = [0, 1].map(|side: usize| {
        let frames = &sides[side].frames;
        let mut places: Vec<u32> = (0..frames.len() as u32).collect();
        // Frames are in the order of time, and so are their indices.
        places.sort_unstable_by_key(|&place| (frames[place as usize].key, place));
        places
    });
    let key =
        |side: usize, at: usize| sorted[side].get(at).map(|&place| sides[side].frames[place as usize].key);
    let mut ranges = Vec::new();
    let mut at = [0, 0];
    while let Some(next) = [key(0, at[0]), key(1, at[1])].into_iter().flatten().min() {
        let range = [0, 1].map(|side: usize| {
            let begin = at[side];
            while key(side, at[side]) == Some(next) {
                at[side] += 1;
            }
            [begin as u32, at[side] as u32]
        });
        ranges.push(range);
    }
    Groups { sorted, ranges }
}

impl Groups {
    fn places(&self, range: &[[u32; 2]; 2], side: usize) -> &[u32] {
        let [begin, end] = range[side];
        &self.sorted[side][begin as usize..end as usize]
    }

    /// The first frames of each content that both sides have, and the last ones.
    fn ends(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let common = self.ranges.iter().filter(|range| range.iter().all(|[begin, end]| begin < end));
        common.flat_map(|range| {
            let places = [0, 1].map(|side| self.places(range, side));
            [places.map(|places| places[0]), places.map(|places| places[places.len() - 1])]
        })
    }

    /// Frames of a content that each side has exactly once.
    fn unique(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        self.ranges
            .iter()
            .filter(|range| range.iter().all(|[begin, end]| end - begin == 1))
            .map(|range| [0, 1].map(|side| self.places(range, side)[0]))
    }
}

impl Relation {
    /// Interval from arrival to departure of a frame of this flow and length, ps, if a capture has its content `times`
    /// times.
    fn window_of(&self, (flow, length): (usize, u16), times: usize) -> [i64; 2] {
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

/// Estimates the clock offset, and from frames of unique content the residence times and the directions of flows. Times
/// of the second capture are converted to the clock of the first.
pub(super) fn relate(order: &Order, read: &mut Captures) -> Result<Relation, PassiveError> {
    let groups = groups(&read.sides);
    let bases = read.sides[1].base_picos - read.sides[0].base_picos;
    let common = groups.ranges.iter().any(|range| range.iter().all(|[begin, end]| begin < end));
    if !common {
        let frames = read.sides.iter().map(|side| side.frames.len()).sum();
        return Err(PassiveError::NothingInCommon { files: files(order), frames });
    }
    let said = order.agree_ps.or(read.one_file.then_some(0));
    let limit = order.greatest_ps.unwrap_or(LONGEST);
    let estimate = match said {
        Some(within) => {
            Estimate { shift: bases - i128::from(order.offset_ps), within: Some(within), votes: None }
        }
        None => estimated(order, read, &groups, limit)?,
    };
    let Ok(moved) = i64::try_from(estimate.shift) else {
        return Err(apart(order, estimate.shift));
    };
    for frame in &mut read.sides[1].frames {
        frame.time = frame.time.saturating_add(moved);
    }
    let agree = estimate.within;
    let slack = agree.unwrap_or(0).saturating_add(steps(read));
    let mut from = estimate.votes.unwrap_or_else(|| Votes::new(read));
    let Alone { unique, greatest, nearest, own } = alone(read, &groups, limit.saturating_add(slack));
    if said.is_some() {
        // The first and the last frame of a content are on the side from which it comes, whatever the device loses or
        // copies.
        for pair in groups.ends() {
            let apart = difference(read, pair);
            if apart.abs() > slack && apart.abs() <= limit.saturating_add(slack) {
                from.vote(read.sides[0].frames[pair[0] as usize].flow, usize::from(apart < 0));
            }
        }
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
        offset: i64::try_from(bases - estimate.shift).unwrap_or(i64::MAX),
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

/// Time of a frame in the second capture minus its time in the first, ps.
fn difference(read: &Captures, pair: [u32; 2]) -> i64 {
    let [before, after] = [0, 1].map(|side| read.sides[side].frames[pair[side] as usize].time);
    after - before
}

/// Estimated clock offset of the second capture.
struct Estimate {
    /// Offset to apply, ps.
    shift: i128,
    /// Uncertainty of it, ps; `None` if only a residence of at least 0 is known.
    within: Option<i64>,
    /// Sides from which flows come, as their times show.
    votes: Option<Votes>,
}

/// Estimates the unknown offset between the clocks.
///
/// No frame leaves before it came. Of flows between two stations, those with the greater time differences therefore go
/// from the first capture to the second, and the offset lies between their least difference and the greatest difference
/// of those that go back (as in Cristian's exchange). Traffic of one direction bounds it on one side only. Clocks that
/// drift by more than the residence leave an empty interval: then no more is known than from one direction.
fn estimated(order: &Order, read: &Captures, groups: &Groups, limit: i64) -> Result<Estimate, PassiveError> {
    let mut all: Vec<(i64, u32)> = groups
        .unique()
        .map(|pair| (difference(read, pair), read.sides[0].frames[pair[0] as usize].flow))
        .collect();
    all.sort_unstable();
    let Some(&(median, _)) = all.get(all.len() / 2) else {
        return Err(PassiveError::Unaligned { files: files(order) });
    };
    all.retain(|(apart, _)| apart.abs_diff(median) <= limit.unsigned_abs());
    let mut pairs: BTreeMap<[u8; 12], Vec<i64>> = BTreeMap::new();
    for &(apart, flow) in &all {
        pairs.entry(read.flows[flow as usize].macs).or_default().push(apart);
    }
    let mut votes = Votes::new(read);
    let mut goes_back = false;
    for &(_, flow) in &all {
        let macs = read.flows[flow as usize].macs;
        let mut answer = macs;
        answer.rotate_left(6);
        if answer != macs
            && let (Some(own), Some(other)) = (pairs.get(&macs), pairs.get(&answer))
        {
            let side = usize::from(own[own.len() / 2] < other[other.len() / 2]);
            goes_back |= side == 1;
            votes.vote(flow, side);
        }
    }
    let from = votes.decide(read);
    let of = |side: usize| {
        all.iter()
            .filter(|(_, flow)| from[*flow as usize] == side)
            .map(|(apart, _)| *apart)
            .collect::<Vec<_>>()
    };
    let (forth, back) = (of(0).into_iter().min(), of(1).into_iter().max());
    let votes = goes_back.then_some(votes);
    if let (Some(upper), Some(lower)) = (forth, back)
        && lower <= upper
    {
        let within = (upper - lower + 1) / 2;
        return Ok(Estimate { shift: -i128::from(lower + (upper - lower) / 2), within: Some(within), votes });
    }
    Ok(Estimate { shift: -i128::from(forth.or(back).unwrap_or(median)), within: None, votes })
}

fn apart(order: &Order, picos: i128) -> PassiveError {
    let limit_s = order.greatest_ps.unwrap_or(LONGEST) as f64 / 1e12;
    PassiveError::Apart { files: files(order), apart_s: picos.abs() as f64 / 1e12, limit_s }
}

/// Resolution of the timestamps of both captures, ps.
fn steps(read: &Captures) -> i64 {
    let steps = read.sides.iter().map(|side| if side.step_picos > 1 { side.step_picos } else { 0 });
    i64::try_from(steps.sum::<u64>()).unwrap_or(i64::MAX)
}

/// Side from which a flow comes: by the majority of its frames, or else by other flows of its station.
struct Votes {
    flows: Vec<[u32; 2]>,
}

impl Votes {
    fn new(read: &Captures) -> Self {
        Self { flows: vec![[0; 2]; read.flows.len()] }
    }

    fn vote(&mut self, flow: u32, side: usize) {
        self.flows[flow as usize][side] += 1;
    }

    fn decide(&self, read: &Captures) -> Vec<usize> {
        let mut stations: BTreeMap<[u8; 6], [u64; 2]> = BTreeMap::new();
        for (flow, votes) in read.flows.iter().zip(&self.flows) {
            if let Some(source) = flow.source() {
                let all = stations.entry(source).or_default();
                *all = [0, 1].map(|side| all[side] + u64::from(votes[side]));
            }
        }
        let side = |[before, after]: [u64; 2]| usize::from(after > before);
        read.flows
            .iter()
            .zip(&self.flows)
            .map(|(flow, votes)| match (votes, flow.source()) {
                ([0, 0], Some(source)) => stations.get(&source).map_or(0, |votes| side(*votes)),
                (votes, _) => side(votes.map(u64::from)),
            })
            .collect()
    }
}

/// Determines the fate of every frame.
pub(super) fn follow(order: &Order, read: &Captures, relation: &Relation) -> Result<Fates, PassiveError> {
    let mut fates = round(read, relation, None);
    if !order.in_order {
        return Ok(fates);
    }
    let mut certain = fates.followed.len();
    for round_number in 0..MOST_ROUNDS {
        let limits = limits(read, relation, &fates);
        if round_number == 0
            && let Some((pairs, flow)) = limits.overtaken
        {
            return Err(PassiveError::Overtaken { pairs, flow: read.flows[flow as usize].name() });
        }
        fates = round(read, relation, Some(&limits.limits));
        if fates.followed.len() == certain {
            break;
        }
        certain = fates.followed.len();
    }
    Ok(fates)
}

struct InOrder {
    /// Limits of each frame, by side.
    limits: [Vec<Limits>; 2],
    /// Number of certain pairs out of order, and the flow of the first.
    overtaken: Option<(u64, u32)>,
}

/// Interval in which each frame may have left, from the departures of frames that came before and after it.
fn limits(read: &Captures, relation: &Relation, fates: &Fates) -> InOrder {
    let mut overtaken: Option<(u64, u32)> = None;
    let limits = [0, 1].map(|side: usize| {
        let frames = &read.sides[side].frames;
        let left = |place: usize| match fates.ends[side][place] {
            End::Through(residence) => Some(frames[place].time.saturating_add(residence)),
            _ => None,
        };
        let mut limits = vec![[i64::MIN, i64::MAX]; frames.len()];
        let mut latest = vec![i64::MIN; read.flows.len()];
        for (place, frame) in frames.iter().enumerate() {
            if relation.from[frame.flow as usize] != side {
                continue;
            }
            let latest = &mut latest[frame.flow as usize];
            limits[place][0] = *latest;
            if let Some(left) = left(place) {
                if left < *latest {
                    overtaken = Some(overtaken.map_or((1, frame.flow), |(pairs, flow)| (pairs + 1, flow)));
                }
                *latest = left.max(*latest);
            }
        }
        let mut earliest = vec![i64::MAX; read.flows.len()];
        for (place, frame) in frames.iter().enumerate().rev() {
            let earliest = &mut earliest[frame.flow as usize];
            limits[place][1] = *earliest;
            if let Some(left) = left(place) {
                *earliest = left.min(*earliest);
            }
        }
        limits
    });
    InOrder { limits, overtaken }
}

fn round(read: &Captures, relation: &Relation, limits: Option<&[Vec<Limits>; 2]>) -> Fates {
    let all = |side: usize| read.sides[side].frames.len();
    let mut fates = Fates {
        ends: [0, 1].map(|side| vec![End::Elsewhere; all(side)]),
        origins: [0, 1].map(|side| vec![Origin::Known; all(side)]),
        followed: Vec::with_capacity(all(0).max(all(1))),
        through: vec![[0; 2]; read.flows.len()],
        stemming: vec![0; read.flows.len()],
        outside: vec![[0; 2]; read.flows.len()],
    };
    let (mut before, mut behind, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (flow, places) in relation.contents(read) {
        let from = relation.from[flow];
        let time = |side: usize, place: &u32| read.sides[side].frames[*place as usize].time;
        before.clear();
        before.extend(places[from].iter().map(|place| time(from, place)));
        behind.clear();
        behind.extend(places[1 - from].iter().map(|place| time(1 - from, place)));
        own.clear();
        own.extend(
            limits.iter().flat_map(|limits| places[from].iter().map(|&place| limits[from][place as usize])),
        );
        let length = (0..2).find_map(|side| {
            places[side].first().map(|&place| read.sides[side].frames[place as usize].length)
        });
        let times = before.len().max(behind.len());
        let window = relation.window_of((flow, length.unwrap_or_default()), times);
        let found = matched(&before, &behind, window, limits.map(|_| own.as_slice()));
        note(read, window, from, &places, [&before, &behind], &found, &mut fates);
        fates.stemming[flow] += found.stemming as u64;
        let through = &mut fates.through[flow];
        *through = [0, 1].map(|end| through[end] + found.through[end] as u64);
    }
    fates
}

fn note(
    read: &Captures,
    window: [i64; 2],
    from: usize,
    places: &[&[u32]; 2],
    [before, behind]: [&[i64]; 2],
    found: &Matching,
    fates: &mut Fates,
) {
    let inside = edges::inside(window, read.sides[1 - from].span());
    let back = [window[1], window[0]].map(i64::saturating_neg);
    let captured = edges::inside(back, read.sides[from].span());
    // With recurring content, a frame behind the device may be one that came before the other capture began.
    let is_open = |left: i64| before.len().max(behind.len()) > 1 && edges::is_at(left, captured);
    let mut first_known = vec![false; behind.len()];
    for (at, fate) in found.fates.iter().enumerate() {
        let came = before[at];
        let place = places[from][at];
        fates.ends[from][place as usize] = match *fate {
            Fate::Matched { first, .. } if is_open(behind[first]) => {
                End::Ambiguous { residence: [behind[first] - came; 2], may_be_lost: true }
            }
            Fate::Matched { first, .. } => {
                first_known[first] = true;
                fates.followed.push(Followed { side: from, from: place, to: places[1 - from][first] });
                End::Through(behind[first] - came)
            }
            Fate::Ambiguous { range, may_be_lost } => {
                End::Ambiguous { residence: range.map(|place| behind[place] - came), may_be_lost }
            }
            Fate::Lost if edges::is_at(came, inside) => End::Edge,
            Fate::Lost => End::Lost,
        };
    }
    // Copies that can stem from one frame only.
    for (at, &origin) in found.only.iter().enumerate() {
        if let Some(origin) = origin
            && !first_known[at]
            && matches!(fates.ends[from][places[from][origin] as usize], End::Through(_))
        {
            let (from_place, to) = (places[from][origin], places[1 - from][at]);
            fates.followed.push(Followed { side: from, from: from_place, to });
        }
    }
    for (at, _) in found.strays.iter().enumerate().filter(|(_, is_stray)| **is_stray) {
        fates.origins[1 - from][places[1 - from][at] as usize] =
            if edges::is_at(behind[at], captured) { Origin::Edge } else { Origin::Appeared };
    }
}
