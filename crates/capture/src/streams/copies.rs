//! Redundant copies: which frames came on both networks, how far apart, and which on one alone.

use serde::Serialize;
use serde_json::{Map, Value as Json};
use wg_record::Sketch;

use super::distribution::Distribution;

/// Longest time between two copies, ps.
const LONGEST: i64 = 1_000_000_000_000;
/// Numbers that are remembered of each network.
const REMEMBERED: usize = 1 << 10;
/// Frames after which the same number is the next round's, of which the shortest has 255.
const ROUND: u64 = 100;
/// Number of frames without a copy that are listed.
const LISTED: usize = 16;

/// Where a copy was seen: interface of the capture, and network as the frame states it (0: not stated).
pub(super) type Place = (u16, u8);

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    at: i64,
    /// Number of frames of each network up to it.
    place: [u64; 2],
    is_paired: bool,
}

/// A frame without a copy.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Alone {
    /// Its time, ps after the first frame of the capture.
    pub at_ps: i64,
    /// Its sequence number.
    pub number: u64,
}

/// The copies of one series of numbers on two networks.
#[derive(Debug, Default)]
pub(super) struct Copies {
    places: Vec<Place>,
    remembered: [Vec<Option<Slot>>; 2],
    frames: [u64; 2],
    skew: Sketch,
    alone: [u64; 2],
    listed: [Vec<Alone>; 2],
    /// Frames without a copy that lie within the greatest skew of an end of the capture are told at the end.
    early: Vec<(usize, Slot)>,
    repeated: [u64; 2],
    elsewhere: u64,
    start: i64,
    latest: [Option<u64>; 2],
    recent: (u64, u64),
}

/// What copies tell.
#[derive(Debug, Serialize)]
pub struct CopiesReport {
    /// Kind of the streams.
    pub kind: &'static str,
    /// Name of the series.
    pub name: String,
    /// Parts of the identity that the copies share.
    pub fields: Map<String, Json>,
    /// VLANs, outermost first.
    pub vlans: Vec<u16>,
    /// Names of the networks.
    pub networks: [String; 2],
    /// Frames on each.
    pub frames: [u64; 2],
    /// Frames that came on both.
    pub pairs: u64,
    /// Frames of each that never came on the other, which so lost them.
    pub alone: [u64; 2],
    /// The first of them.
    pub listed: [Vec<Alone>; 2],
    /// Frames so near to an end of the capture that their copy may lie beyond.
    pub at_edge: u64,
    /// Frames that came on one network twice.
    pub repeated: [u64; 2],
    /// Frames on a third network or interface.
    pub elsewhere: u64,
    /// Time on the second network minus time on the first.
    pub skew: Distribution,
    /// The smallest SkewMax that joins all pairs, ps.
    pub skew_max_ps: Option<u64>,
}

impl Copies {
    /// Takes a frame with a number, of which a round has `numbers`.
    pub(super) fn take(&mut self, place: Place, number: u64, numbers: u64, at: i64, start: i64) {
        let Some(side) = self.side(place) else {
            self.elsewhere += 1;
            return;
        };
        self.start = start;
        self.frames[side] += 1;
        if self.latest[side].replace(number) == Some(number) {
            self.repeated[side] += 1;
            return;
        }
        let index = usize::try_from(number % REMEMBERED as u64).unwrap_or_default();
        if self.remembered[side].is_empty() {
            self.remembered = [vec![None; REMEMBERED], vec![None; REMEMBERED]];
        }
        let own = self.remembered[side][index];
        // A network may be silent for a while, so the other one's frames tell as well how long ago it was: half a round
        // later, the same number is another frame's.
        let frames = self.frames;
        let since = |slot: &Slot| (frames[0] - slot.place[0]).max(frames[1] - slot.place[1]);
        let mut window = LONGEST;
        if let Some(own) = own.filter(|own| own.number == number) {
            // The same number comes again after a round of all numbers, or is a repetition.
            let round = at.saturating_sub(own.at);
            if since(&own) < ROUND && round < LONGEST {
                self.repeated[side] += 1;
                return;
            }
            window = window.min(round / 2);
        }
        let other = self.remembered[1 - side][index].as_mut();
        let partner = other.filter(|other| {
            let later = at.saturating_sub(other.at);
            other.number == number && !other.is_paired && later <= window && since(other) <= numbers / 2
        });
        let is_paired = partner.is_some();
        if let Some(partner) = partner {
            partner.is_paired = true;
            let later = at.saturating_sub(partner.at);
            self.skew.add(if side == 1 { later } else { later.saturating_neg() });
            self.recent = (self.recent.0 + 1, self.recent.1.max(later.unsigned_abs()));
        }
        if let Some(own) = own.filter(|own| !own.is_paired) {
            self.lonely(side, own);
        }
        self.remembered[side][index] = Some(Slot { number, at, place: self.frames, is_paired });
    }

    fn side(&mut self, place: Place) -> Option<usize> {
        if let Some(side) = self.places.iter().position(|known| *known == place) {
            return Some(side);
        }
        (self.places.len() < 2).then(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    fn lonely(&mut self, side: usize, slot: Slot) {
        if slot.at.saturating_sub(self.start) <= LONGEST && self.early.len() < REMEMBERED {
            self.early.push((side, slot));
        } else {
            count(&mut self.alone[side], &mut self.listed[side], slot);
        }
    }

    /// Pairs since the last call, and the greatest difference between two copies.
    pub(super) fn take_recent(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.recent)
    }

    /// The result for a capture that ended at `end`; `None` with one network only, or if most frames repeat the number
    /// before: a sender that does not count leaves nothing to tell copies by. While frames still come, those whose copy
    /// may yet come are `at_edge`.
    pub(super) fn report(
        &self,
        named: Named,
        end: i64,
        is_open: bool,
        taps: &[String],
    ) -> Option<CopiesReport> {
        let [first, second] = self.places[..] else { return None };
        if self.repeated.iter().sum::<u64>() > self.skew.n() {
            return None;
        }
        let by_network = first.1 != 0 && second.1 != 0 && first.1 != second.1;
        let mut open = self.early.clone();
        for (side, slots) in self.remembered.iter().enumerate() {
            open.extend(slots.iter().flatten().filter(|slot| !slot.is_paired).map(|slot| (side, *slot)));
        }
        open.sort_by_key(|(_, slot)| (slot.at, slot.number));
        let greatest = [self.skew.min(), self.skew.max()].into_iter().flatten().map(i64::unsigned_abs).max();
        let edge = greatest.map_or(0, |skew| i64::try_from(skew).unwrap_or(i64::MAX));
        let last_edge = if is_open { LONGEST } else { edge };
        let (mut alone, mut listed, mut at_edge) = (self.alone, self.listed.clone(), 0);
        for (side, slot) in open {
            if slot.at.saturating_sub(self.start) < edge || end.saturating_sub(slot.at) < last_edge {
                at_edge += 1;
            } else {
                count(&mut alone[side], &mut listed[side], slot);
            }
        }
        // Networks are named in their order, A before B.
        let is_swapped = (by_network && first.1 > second.1) || (!by_network && first.0 > second.0);
        let order = if is_swapped { [1, 0] } else { [0, 1] };
        let skew = Distribution::of(&self.skew);
        let place_name = |(tap, network): Place| match (by_network, network) {
            (true, 1) => "A".to_owned(),
            (true, 2) => "B".to_owned(),
            _ => taps[usize::from(tap)].clone(),
        };
        let Named { kind, name, fields, vlans } = named;
        Some(CopiesReport {
            kind,
            name,
            fields,
            vlans,
            networks: order.map(|side| place_name(self.places[side])),
            frames: order.map(|side| self.frames[side]),
            pairs: self.skew.n(),
            alone: order.map(|side| alone[side]),
            listed: order.map(|side| std::mem::take(&mut listed[side])),
            at_edge,
            repeated: order.map(|side| self.repeated[side]),
            elsewhere: self.elsewhere,
            skew: if is_swapped { skew.negated() } else { skew },
            skew_max_ps: greatest,
        })
    }
}

/// What a series is called.
pub(super) struct Named {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) fields: Map<String, Json>,
    pub(super) vlans: Vec<u16>,
}

fn count(alone: &mut u64, listed: &mut Vec<Alone>, slot: Slot) {
    *alone += 1;
    if listed.len() < LISTED {
        listed.push(Alone { at_ps: slot.at, number: slot.number });
    }
}
