//! Matching of frames before and behind a device by content and time.
//!
//! Frames of one content are compared by time alone: a frame behind the device may stem from each one before it that
//! came at most the greatest residence earlier. Both lists are in the order of time, so that the candidates of a frame
//! are a range of the other list, and both ends of the range only ever advance. A device may lose, copy and overtake:
//! nothing but the window, and the order of certain pairs if order is stated to be kept, excludes a pair.

use std::ops::Range;

/// Interval, ps, in which a frame left the device, from the certain pairs around it, if nothing overtakes.
pub(super) type Limits = [i64; 2];

/// Fate of a frame before the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Matched with a frame behind the device, with a number of copies that can stem from no other.
    Matched {
        /// Index of the frame in the list behind.
        first: usize,
        /// Number of copies after the first.
        copies: usize,
    },
    /// It may be any of a range of frames, or, with `may_be_lost`, none.
    Ambiguous {
        /// Indices of the first and the last candidate.
        range: [usize; 2],
        /// Whether it may have been lost.
        may_be_lost: bool,
    },
    /// No frame of its content came behind the device in time.
    Lost,
}

/// Matching of the frames of one content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    /// Fate of each frame before the device.
    pub(super) fates: Vec<Fate>,
    /// Whether each frame behind the device may stem from none before.
    pub(super) strays: Vec<bool>,
    /// The only frame before the device from which each frame behind may stem; `None`: none or several.
    pub(super) only: Vec<Option<usize>>,
    /// Least and greatest number of frames that came through.
    pub(super) through: [usize; 2],
    /// Number of frames behind the device that stem from one before it.
    pub(super) stemming: usize,
}

/// Matches frames of one content by their times in ps. A frame leaves between `window[0]` and `window[1]` after its
/// arrival, and within its `limits`, which ascend with it.
pub(super) fn matched(
    before: &[i64],
    behind: &[i64],
    window: [i64; 2],
    limits: Option<&[Limits]>,
) -> Matching {
    let mut candidates: Vec<Range<usize>> = Vec::with_capacity(before.len());
    let (mut begin, mut end) = (0, 0);
    for (place, &came) in before.iter().enumerate() {
        let [from, to] = limits.map_or([i64::MIN, i64::MAX], |limits| limits[place]);
        let earliest = came.saturating_add(window[0]).max(from);
        let latest = came.saturating_add(window[1]).min(to);
        while begin < behind.len() && behind[begin] < earliest {
            begin += 1;
        }
        end = end.max(begin);
        while end < behind.len() && behind[end] <= latest {
            end += 1;
        }
        candidates.push(begin..end);
    }
    let origins = origins(&candidates, behind.len());
    // Number of frames behind, up to here, that stem from exactly one frame.
    let exclusive = |place: usize| origins[place].len() == 1;
    let mut following = behind.len();
    let mut next_exclusive = vec![following; behind.len() + 1];
    let mut counted = vec![0; behind.len() + 1];
    for place in 0..behind.len() {
        counted[place + 1] = counted[place] + usize::from(exclusive(place));
    }
    for place in (0..behind.len()).rev() {
        following = if exclusive(place) { place } else { following };
        next_exclusive[place] = following;
    }
    let fates = candidates
        .iter()
        .map(|range| {
            let own = next_exclusive[range.start];
            if range.is_empty() {
                Fate::Lost
            } else if own == range.start {
                Fate::Matched { first: own, copies: counted[range.end] - counted[range.start] - 1 }
            } else if own < range.end {
                Fate::Ambiguous { range: [range.start, own], may_be_lost: false }
            } else {
                Fate::Ambiguous { range: [range.start, range.end - 1], may_be_lost: true }
            }
        })
        .collect();
    Matching {
        fates,
        through: [fewest(&origins), most(&candidates)],
        stemming: origins.iter().filter(|range| !range.is_empty()).count(),
        strays: origins.iter().map(Range::is_empty).collect(),
        only: origins.iter().map(|range| (range.len() == 1).then_some(range.start)).collect(),
    }
}

/// Candidate origins of each frame behind.
fn origins(candidates: &[Range<usize>], behind: usize) -> Vec<Range<usize>> {
    let (mut begin, mut end) = (0, 0);
    (0..behind)
        .map(|place| {
            while begin < candidates.len() && candidates[begin].end <= place {
                begin += 1;
            }
            end = end.max(begin);
            while end < candidates.len() && candidates[end].start <= place {
                end += 1;
            }
            begin..end
        })
        .collect()
}

/// Greatest number of frames that can have come through: a maximum matching, which a greedy choice of the earliest
/// finds in such ordered lists.
fn most(candidates: &[Range<usize>]) -> usize {
    let (mut free, mut count) = (0, 0);
    for range in candidates {
        let place = range.start.max(free);
        if place < range.end {
            free = place + 1;
            count += 1;
        }
    }
    count
}

/// Least number of frames that must have come through: every frame behind that stems from one before needs one of its
/// origins.
fn fewest(origins: &[Range<usize>]) -> usize {
    let (mut last, mut count) = (None, 0);
    for range in origins.iter().filter(|range| !range.is_empty()) {
        if last.is_none_or(|chosen| chosen < range.start) {
            last = Some(range.end - 1);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_of_each_is_certain_whatever_the_window_holds() {
        let found = matched(&[10], &[25], [0, 100], None);
        assert_eq!(found.fates, [Fate::Matched { first: 0, copies: 0 }]);
        assert_eq!((found.through, found.stemming), ([1, 1], 1));
    }

    #[test]
    fn two_that_could_have_swapped_are_ambiguous_and_two_that_could_not_are_not() {
        let swapped = matched(&[0, 5], &[10, 12], [0, 100], None);
        assert!(swapped.fates.iter().all(|fate| matches!(fate, Fate::Ambiguous { .. })));
        assert_eq!((swapped.through, swapped.stemming), ([1, 2], 2));
        let apart = matched(&[0, 200], &[10, 212], [0, 100], None);
        assert_eq!(apart.fates, [0, 1].map(|first| Fate::Matched { first, copies: 0 }));
        // The first left before the second came; a late copy of it may still be what seems to be the second.
        let passed = matched(&[0, 50], &[10, 60], [0, 100], None);
        assert_eq!(passed.fates[0], Fate::Matched { first: 0, copies: 0 });
        assert_eq!(passed.fates[1], Fate::Ambiguous { range: [1, 1], may_be_lost: true });
        let in_order = matched(&[0, 5], &[10, 12], [0, 100], Some(&[[0, 10], [11, 20]]));
        assert_eq!(in_order.fates, [0, 1].map(|first| Fate::Matched { first, copies: 0 }));
    }

    #[test]
    fn copies_strays_and_losses_are_told() {
        let found = matched(&[0, 1_000], &[10, 20, 500], [0, 100], None);
        assert_eq!(found.fates, [Fate::Matched { first: 0, copies: 1 }, Fate::Lost]);
        assert_eq!(found.strays, [false, false, true]);
        assert_eq!((found.through, found.stemming), ([1, 1], 2));
    }

    /// All ways in which frames behind may stem from frames before, by enumeration.
    fn every_way(before: &[i64], behind: &[i64], window: [i64; 2]) -> Vec<Vec<usize>> {
        let mut ways: Vec<Vec<usize>> = vec![Vec::new()];
        for &left in behind {
            let origins: Vec<usize> = (0..before.len())
                .filter(|&i| (window[0]..=window[1]).contains(&(left - before[i])))
                .collect();
            ways = ways
                .iter()
                .flat_map(|way| {
                    let origins = if origins.is_empty() { vec![usize::MAX] } else { origins.clone() };
                    origins.into_iter().map(|origin| way.iter().copied().chain([origin]).collect())
                })
                .collect();
        }
        ways
    }

    proptest! {
        /// Whatever the device did, a certain match holds in every possible history, and an ambiguous one differs
        /// between some two.
        #[test]
        fn certain_means_in_every_way_and_ambiguous_in_some(
            mut before in prop::collection::vec(0_i64..40, 0..5),
            mut behind in prop::collection::vec(0_i64..60, 0..6),
            least in -3_i64..4,
            span in 0_i64..25,
        ) {
            before.sort_unstable();
            behind.sort_unstable();
            let window = [least, least + span];
            let found = matched(&before, &behind, window, None);
            let ways = every_way(&before, &behind, window);
            for (frame, fate) in found.fates.iter().enumerate() {
                let firsts: std::collections::BTreeSet<Option<usize>> =
                    ways.iter().map(|way| way.iter().position(|&origin| origin == frame)).collect();
                match *fate {
                    Fate::Lost => prop_assert!(firsts.iter().all(Option::is_none)),
                    Fate::Matched { first, copies } => {
                        prop_assert_eq!(firsts, [Some(first)].into());
                        let fewest = ways.iter().map(|way| way.iter().filter(|&&o| o == frame).count()).min();
                        prop_assert_eq!(fewest, Some(copies + 1));
                    }
                    Fate::Ambiguous { range, may_be_lost } => {
                        prop_assert!(firsts.len() > 1);
                        prop_assert_eq!(may_be_lost, firsts.contains(&None));
                        let told: Vec<usize> = firsts.into_iter().flatten().collect();
                        prop_assert_eq!([told[0], told[told.len() - 1]], range);
                    }
                }
            }
            let through = |way: &Vec<usize>| {
                way.iter().filter(|&&o| o != usize::MAX).collect::<std::collections::BTreeSet<_>>().len()
            };
            prop_assert_eq!(Some(found.through[0]), ways.iter().map(through).min());
            prop_assert_eq!(Some(found.through[1]), ways.iter().map(through).max());
        }
    }
}
