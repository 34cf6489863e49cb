//! Frames of both captures by content.

use super::reading::Side;

/// Frames of each side by content.
#[derive(Debug)]
pub(super) struct Groups {
    sorted: [Vec<u32>; 2],
    /// Range of each content on each side.
    pub(super) ranges: Vec<[[u32; 2]; 2]>,
}

/// Groups the frames of both sides. Those of a content keep the order of `sides`: of the files, or of time.
#[expect(clippy::cast_possible_truncation, reason = "frames are counted in 32 bits")]
pub(super) fn groups(sides: &[Side; 2]) -> Groups {
    let sorted = [0, 1].map(|side: usize| {
        let frames = &sides[side].frames;
        let mut places: Vec<u32> = (0..frames.len() as u32).collect();
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
    pub(super) fn places(&self, range: &[[u32; 2]; 2], side: usize) -> &[u32] {
        let [begin, end] = range[side];
        &self.sorted[side][begin as usize..end as usize]
    }

    /// The first frames of each content that both sides have, and the last ones.
    pub(super) fn ends(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let common = self.ranges.iter().filter(|range| range.iter().all(|[begin, end]| begin < end));
        common.flat_map(|range| {
            let places = [0, 1].map(|side| self.places(range, side));
            [places.map(|places| places[0]), places.map(|places| places[places.len() - 1])]
        })
    }

    /// Frames of a content that each side has exactly once.
    pub(super) fn unique(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        self.ranges
            .iter()
            .filter(|range| range.iter().all(|[begin, end]| end - begin == 1))
            .map(|range| [0, 1].map(|side| self.places(range, side)[0]))
    }

    /// The first frames of each content that one side has exactly once and the other more often.
    pub(super) fn copied(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let once = |range: &&[[u32; 2]; 2]| {
            let [before, behind] = range.map(|[begin, end]| end - begin);
            before.min(behind) == 1 && before != behind
        };
        self.ranges.iter().filter(once).map(|range| [0, 1].map(|side| self.places(range, side)[0]))
    }
}
