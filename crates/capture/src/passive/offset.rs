//! The constant offset between the two clocks, and the side from which each flow comes.

use std::collections::BTreeMap;

use super::order::{LONGEST, Order, PassiveError};
use super::reading::{Captures, files};

/// A pair without steps and drift of the clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    /// Time behind less time before, ps.
    pub(super) by: i64,
    pub(super) flow: u32,
    /// Index of the segment of the clocks to which it belongs.
    pub(super) segment: usize,
}

/// Estimated clock offset of the second capture.
pub(super) struct Estimate {
    /// Offset to apply, ps.
    pub(super) shift: i128,
    /// Uncertainty of it, ps; `None` if only a residence of at least 0 is known.
    pub(super) within: Option<i64>,
    /// Sides from which flows come, as their times show.
    pub(super) votes: Option<Votes>,
}

/// Estimates the unknown offset between the clocks, from pairs no farther than `limit` from most others.
///
/// No frame leaves before it came. Of flows between two stations, those with the greater time differences therefore go
/// from the first capture to the second, and the offset lies between their least difference and the greatest difference
/// of those that go back (as in Cristian's exchange), in every segment. Traffic of one direction bounds it on one side
/// only. Clocks that drift by more than the residence leave an empty interval: then no more is known than from one
/// direction.
pub(super) fn estimated(
    order: &Order,
    read: &Captures,
    mut all: Vec<Apart>,
    limit: i64,
) -> Result<Estimate, PassiveError> {
    all.sort_unstable_by_key(|one| (one.by, one.flow));
    let Some(&Apart { by: median, .. }) = all.get(all.len() / 2) else {
        return Err(PassiveError::Unaligned { files: files(order) });
    };
    all.retain(|one| one.by.abs_diff(median) <= limit.unsigned_abs());
    let mut pairs: BTreeMap<[u8; 12], Vec<i64>> = BTreeMap::new();
    for one in &all {
        pairs.entry(read.flows[one.flow as usize].macs).or_default().push(one.by);
    }
    let mut votes = Votes::new(read);
    let mut goes_back = false;
    for &Apart { flow, .. } in &all {
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
    // Least difference of frames that go forth, and greatest of those that go back, by segment.
    let mut bounds: BTreeMap<usize, [Option<i64>; 2]> = BTreeMap::new();
    for one in &all {
        let [upper, lower] = bounds.entry(one.segment).or_default();
        if from[one.flow as usize] == 0 {
            *upper = Some(upper.map_or(one.by, |least| least.min(one.by)));
        } else {
            *lower = Some(lower.map_or(one.by, |most| most.max(one.by)));
        }
    }
    let forth = bounds.values().filter_map(|[upper, _]| *upper).min();
    let back = bounds.values().filter_map(|[_, lower]| *lower).max();
    let votes = goes_back.then_some(votes);
    if let (Some(upper), Some(lower)) = (forth, back)
        && lower <= upper
    {
        let middle = lower + (upper - lower) / 2;
        // A segment with wider bounds may be that much away from the others.
        let widest =
            bounds.values().map(|[upper, lower]| Some((*upper)? - middle).max(Some(middle - (*lower)?)));
        let within = widest.collect::<Option<Vec<i64>>>().and_then(|all| all.into_iter().max());
        let within = within.map(|widest| widest.max((upper - lower + 1) / 2));
        return Ok(Estimate { shift: -i128::from(middle), within, votes });
    }
    Ok(Estimate { shift: -i128::from(forth.or(back).unwrap_or(median)), within: None, votes })
}

pub(super) fn apart(order: &Order, picos: i128) -> PassiveError {
    let limit_s = order.greatest_ps.unwrap_or(LONGEST) as f64 / 1e12;
    PassiveError::Apart { files: files(order), apart_s: picos.abs() as f64 / 1e12, limit_s }
}

/// Resolution of the timestamps of both captures, ps.
pub(super) fn steps(read: &Captures) -> i64 {
    let steps = read.sides.iter().map(|side| if side.step_picos > 1 { side.step_picos } else { 0 });
    i64::try_from(steps.sum::<u64>()).unwrap_or(i64::MAX)
}

/// Side from which a flow comes: by the majority of its frames, or else by other flows of its station.
pub(super) struct Votes {
    pub(super) flows: Vec<[u32; 2]>,
}

impl Votes {
    pub(super) fn new(read: &Captures) -> Self {
        Self { flows: vec![[0; 2]; read.flows.len()] }
    }

    pub(super) fn vote(&mut self, flow: u32, side: usize) {
        self.flows[flow as usize][side] += 1;
    }

    pub(super) fn decide(&self, read: &Captures) -> Vec<usize> {
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
