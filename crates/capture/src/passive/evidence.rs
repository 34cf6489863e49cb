//! Evidence against two captures showing the same frames before and behind a device with the stated clocks.
//!
//! Content on both sides was seen on both, whatever its times say. If its times differ by more than the search window,
//! nothing was lost: the window is too short, a clock was set or has a greater error than stated, or the sides are not
//! before and behind. The captures cannot tell which, so these frames become unknown, counted and named.

use std::collections::BTreeMap;

use serde::Serialize;

use super::reading::Captures;
use super::relate::Relation;
use super::through::{End, Fates, Origin};

/// Least number of contents for a statement about shares.
const ENOUGH: u64 = 10;

/// Frames of a content in both captures, farther apart than the search window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// Frames of contents that both captures have equally often, none within the window.
    pub unique: u64,
    /// Frames of contents with others within the window: as many as are missing behind the device and in excess there.
    pub recurring: u64,
    /// Number of `unique` frames whose departure time precedes their arrival time.
    pub before: u64,
    /// Least and greatest time from before to behind of `unique` frames, ps.
    pub apart_ps: Option<[i64; 2]>,
    /// Arrival times of the first and the last of all, ps after the first frame of the first capture.
    pub came_ps: Option<[i64; 2]>,
}

/// Further evidence against the assumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Number of flows whose frames and answers both seem to cross in the same direction, which is impossible.
    pub one_way_conversations: u64,
    /// Whether all frames were seen first in the capture that was named second, of two.
    pub all_backwards: bool,
    /// Number of contents that the capture before the device has exactly twice as often as the one behind it, in most
    /// flows.
    pub doubled: u64,
    /// Number of contents in both captures.
    pub contents: u64,
}

impl Outside {
    fn came(&mut self, time: i64) {
        let [first, last] = self.came_ps.unwrap_or([time, time]);
        self.came_ps = Some([first.min(time), last.max(time)]);
    }

    fn lies(&mut self, apart: i64) {
        let [least, greatest] = self.apart_ps.unwrap_or([apart, apart]);
        self.apart_ps = Some([least.min(apart), greatest.max(apart)]);
        self.unique += 1;
        self.before += u64::from(apart < 0);
    }
}

/// Moves frames whose content is on the other side after all out of the lost and the appeared ones.
pub(super) fn outside(read: &Captures, relation: &Relation, fates: &mut Fates) -> Outside {
    let mut all = Outside::default();
    for (flow, places) in relation.contents(read) {
        let from = relation.from[flow];
        let (before, behind) = (places[from], places[1 - from]);
        let ends = |is: fn(End) -> bool| {
            before.iter().copied().filter(|&at| is(fates.ends[from][at as usize])).collect::<Vec<u32>>()
        };
        let origins = |is: fn(Origin) -> bool| {
            let own = &fates.origins[1 - from];
            behind.iter().copied().filter(|&at| is(own[at as usize])).collect::<Vec<u32>>()
        };
        let mut missing = ends(|end| matches!(end, End::Lost | End::Edge));
        let mut strangers = origins(|origin| matches!(origin, Origin::Appeared | Origin::Edge));
        let as_often = before.len() == behind.len();
        let is_alone = as_often && missing.len() == before.len() && strangers.len() == behind.len();
        if !is_alone {
            // Near an end of a capture a frame of this content may be one that the other capture missed.
            missing = ends(|end| end == End::Lost);
            if !as_often {
                strangers = origins(|origin| origin == Origin::Appeared);
            }
        }
        let count = missing.len().min(strangers.len()) as u64;
        if count == 0 {
            continue;
        }
        let time = |side: usize, place: u32| read.sides[side].frames[place as usize].time;
        if is_alone {
            for (&came, &left) in missing.iter().zip(&strangers) {
                all.lies(time(1 - from, left).saturating_sub(time(from, came)));
            }
        } else {
            all.recurring += count;
        }
        fates.outside[flow][usize::from(!is_alone)] += count;
        for &place in &missing {
            all.came(time(from, place));
            fates.ends[from][place as usize] = End::Outside;
        }
        for &place in &strangers {
            fates.origins[1 - from][place as usize] = Origin::Outside;
        }
    }
    all
}

/// Evidence against frames passing a device from one capture to the other.
pub(super) fn against(read: &Captures, relation: &Relation, fates: &Fates) -> Against {
    let mut found = Against::default();
    let crossed: Vec<usize> = (0..read.flows.len()).filter(|&flow| fates.stemming[flow] > 0).collect();
    // Sides from which frames come, by sender and receiver.
    let mut stations: BTreeMap<[u8; 12], [bool; 2]> = BTreeMap::new();
    let told: Vec<usize> = crossed.iter().copied().filter(|&flow| relation.told[flow]).collect();
    for &flow in &told {
        stations.entry(read.flows[flow].macs).or_default()[relation.from[flow]] = true;
    }
    found.one_way_conversations = told
        .iter()
        .filter(|&&flow| {
            let macs = read.flows[flow].macs;
            let mut answer = macs;
            answer.rotate_left(6);
            let back = stations.get(&answer).filter(|_| answer != macs && macs != [0; 12]);
            back.is_some_and(|sides| !sides[1 - relation.from[flow]])
        })
        .count() as u64;
    found.all_backwards = !read.one_file
        && relation.uncertainty.is_some()
        && !crossed.is_empty()
        && crossed.iter().all(|&flow| relation.from[flow] == 1);
    for (flow, places) in relation.contents(read) {
        let from = relation.from[flow];
        let [before, behind] = [places[from].len(), places[1 - from].len()];
        found.contents += u64::from(before > 0 && behind > 0);
        found.doubled += u64::from(behind > 0 && before == 2 * behind);
    }
    if found.doubled < ENOUGH || 2 * found.doubled < found.contents {
        found.doubled = 0;
    }
    found
}
