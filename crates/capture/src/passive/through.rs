//! Fates of all frames before the device.

use crate::edges;

use super::matching::{Fate, Limits, Matching, matched};
use super::order::{Order, PassiveError};
use super::reading::Captures;
use super::relate::Relation;

/// Greatest number of rounds in which the order of certain pairs makes further pairs certain.
const MOST_ROUNDS: usize = 8;

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
