//! Credit over time in bounded memory: its extremes, every corner around the greatest, and selected corners of the
//! whole run.
//!
//! A credit is piecewise linear, so its corners describe it and its extremes are at corners. For the whole run the
//! first, the greatest, the least and the last corner of each stretch of time are stored; stretches double when there
//! are more than [`MOST_STRETCHES`]. Road not taken: every corner as a record, which would cost shaped frames as much
//! as their own records.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wg_frame::time::RunTime;

/// A credit, in 10^-12 bits.
pub type Credit = i128;

/// Greatest number of stretches of time with corners.
const MOST_STRETCHES: i64 = 128;
/// Number of corners stored one by one before and after the greatest.
const NEAR: usize = 40;
/// Initial length of a stretch, ps.
const SHORTEST_STRETCH: i64 = 1_000_000;

/// The credit at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditPoint {
    /// The instant.
    pub at: RunTime,
    /// The credit, in 10^-12 bits.
    pub credit: Credit,
}

/// Selected corners of a stretch of time.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    number: i64,
    first: CreditPoint,
    greatest: CreditPoint,
    least: CreditPoint,
    last: CreditPoint,
}

impl Stretch {
    const fn of(number: i64, point: CreditPoint) -> Self {
        Self { number, first: point, greatest: point, least: point, last: point }
    }

    fn take(&mut self, later: &Self) {
        if later.greatest.credit > self.greatest.credit {
            self.greatest = later.greatest;
        }
        if later.least.credit < self.least.credit {
            self.least = later.least;
        }
        self.last = later.last;
    }
}

/// A credit over time.
#[derive(Clone, Debug)]
pub struct CreditCourse {
    greatest: CreditPoint,
    least: CreditPoint,
    /// The latest corners.
    recent: VecDeque<CreditPoint>,
    near: Vec<CreditPoint>,
    /// Number of corners after the greatest still to be stored.
    wanted: usize,
    stretches: Vec<Stretch>,
    length: i64,
}

impl CreditCourse {
    /// A course that begins at `at` with a credit of zero.
    pub(super) fn new(at: RunTime) -> Self {
        let point = CreditPoint { at, credit: 0 };
        let mut course = Self {
            greatest: point,
            least: point,
            recent: VecDeque::new(),
            near: Vec::new(),
            wanted: 0,
            stretches: Vec::new(),
            length: SHORTEST_STRETCH,
        };
        course.push(at, 0);
        course
    }

    /// The greatest credit and its first instant.
    pub const fn greatest(&self) -> CreditPoint {
        self.greatest
    }

    /// The least credit and its first instant.
    pub const fn least(&self) -> CreditPoint {
        self.least
    }

    /// The corners around the greatest credit, without omissions.
    pub fn near(&self) -> &[CreditPoint] {
        &self.near
    }

    /// Selected corners of the whole run in order of time, the greatest and the least among them.
    pub fn corners(&self) -> Vec<CreditPoint> {
        let mut corners = Vec::with_capacity(4 * self.stretches.len());
        for Stretch { first, greatest, least, last, .. } in &self.stretches {
            let mut of_stretch = [*first, *greatest, *least, *last];
            // Of one instant: it was the first before it was any other, and the last after.
            of_stretch[1..3].sort_by_key(|point| point.at);
            corners.extend(of_stretch);
        }
        corners.dedup();
        corners
    }

    /// Adds the next corner.
    pub(super) fn push(&mut self, at: RunTime, credit: Credit) {
        let point = CreditPoint { at, credit };
        if self.recent.back() == Some(&point) {
            return;
        }
        if self.recent.len() > NEAR {
            self.recent.pop_front();
        }
        self.recent.push_back(point);
        if credit < self.least.credit {
            self.least = point;
        }
        if credit > self.greatest.credit || self.near.is_empty() {
            self.greatest = point;
            self.near.clear();
            self.near.extend(&self.recent);
            self.wanted = NEAR;
        } else if self.wanted > 0 {
            self.wanted -= 1;
            self.near.push(point);
        }
        self.place(point);
    }

    fn place(&mut self, point: CreditPoint) {
        let at = point.at.as_picos();
        let first = self.stretches.first().map_or(at, |stretch| stretch.first.at.as_picos());
        while at.div_euclid(self.length) - first.div_euclid(self.length) >= MOST_STRETCHES {
            self.length *= 2;
            let mut joined: Vec<Stretch> = Vec::new();
            for stretch in &self.stretches {
                let number = stretch.first.at.as_picos().div_euclid(self.length);
                match joined.last_mut().filter(|last| last.number == number) {
                    Some(last) => last.take(stretch),
                    None => joined.push(Stretch { number, ..*stretch }),
                }
            }
            self.stretches = joined;
        }
        let new = Stretch::of(at.div_euclid(self.length), point);
        match self.stretches.last_mut().filter(|last| last.number == new.number) {
            Some(last) => last.take(&new),
            None => self.stretches.push(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against all corners: the extremes are theirs, what is near is theirs without a gap, and of the rest only
        /// some are left out.
        #[test]
        fn what_is_kept_is_of_the_course_and_bounded(
            steps in proptest::collection::vec((0_i64..50_000_000, -1_000_i64..1_000), 1..2_000),
        ) {
            let mut course = CreditCourse::new(RunTime::ZERO);
            let (mut at, mut all) = (0, alloc::vec![CreditPoint { at: RunTime::ZERO, credit: 0 }]);
            for (step, credit) in steps {
                at += step;
                let point = CreditPoint { at: RunTime::from_picos(at), credit: Credit::from(credit) };
                if all.last() != Some(&point) {
                    all.push(point);
                }
                course.push(point.at, point.credit);
            }
            let least = all.iter().map(|point| point.credit).min().unwrap();
            let greatest = all.iter().map(|point| point.credit).max().unwrap();
            prop_assert_eq!((course.greatest().credit, course.least().credit), (greatest, least));
            let place = all.iter().position(|point| point.credit == greatest).unwrap();
            let near = &all[place.saturating_sub(NEAR)..all.len().min(place + NEAR + 1)];
            prop_assert_eq!(course.near(), near);
            let corners = course.corners();
            prop_assert!(i64::try_from(corners.len()).unwrap() <= 4 * MOST_STRETCHES);
            prop_assert!(corners.is_sorted_by_key(|point| point.at));
            let known: BTreeSet<(i64, Credit)> = all.iter().map(|point| (point.at.as_picos(), point.credit)).collect();
            prop_assert!(corners.iter().all(|point| known.contains(&(point.at.as_picos(), point.credit))));
            prop_assert!(corners.iter().any(|point| point.credit == greatest));
            prop_assert_eq!(corners.last(), all.last());
            if all.len() <= 2 {
                prop_assert_eq!(corners, all);
            }
        }
    }
}
