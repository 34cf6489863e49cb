//! A distribution in bounded memory: values are counted in buckets no wider than a thousandth of the value.

use std::collections::BTreeMap;

/// log2 of the buckets per octave.
const BITS: u32 = 10;
/// Buckets per octave; below this many picoseconds every value has its own bucket.
const BUCKETS: usize = 1 << BITS;

/// Value counts, as in HdrHistogram with 3 significant digits; number, extremes and sums are exact.
///
/// Two sketches of the same measure [merge](Self::merge) into the sketch of all their values, in any order.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    n: u64,
    min: i64,
    max: i64,
    /// Sum of the squares of the distances from `origin`, the first value taken.
    squares: u128,
    sum: i128,
    origin: i64,
    positive: Counts,
    negative: Counts,
}

/// Number of values counted one by one before pages are used: a run of many flows has many sketches of few values.
const FEW: u64 = 1 << 10;

/// Counts by bucket number.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Number and count of buckets, ascending, while there are no pages.
    few: Vec<(u16, u16)>,
    /// Number of values in `few`.
    taken: u64,
    pages: Option<Box<Pages>>,
}

/// Counts from the lowest page with any values to the highest.
#[derive(Clone, Debug, Default)]
struct Pages {
    /// Number of the first bucket.
    from: usize,
    /// Low halves of the counts, to halve the memory touched.
    counts: Vec<u32>,
    /// Overflow of the counts, by bucket number.
    high: BTreeMap<usize, u64>,
}

/// One bucket: `count` values from `low` to `high`, both inclusive, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value it takes, ps.
    pub low: i64,
    /// Highest value it takes, ps.
    pub high: i64,
    /// Number of values in it.
    pub count: u64,
}

impl Sketch {
    /// Takes one value, ps.
    pub fn add(&mut self, ps: i64) {
        self.add_all(&[ps]);
    }

    /// Takes values, ps.
    pub fn add_all(&mut self, values: &[i64]) {
        let Some(&first) = values.first() else { return };
        if self.n == 0 {
            (self.min, self.max, self.origin) = (first, first, first);
        }
        self.n += values.len() as u64;
        let (mut min, mut max) = (self.min, self.max);
        let mut sum = 0i128;
        let mut squares = 0u128;
        for &ps in values {
            min = min.min(ps);
            max = max.max(ps);
            sum += i128::from(ps);
            let size = u128::from(ps.abs_diff(self.origin));
            squares = squares.wrapping_add(size * size);
        }
        (self.min, self.max) = (min, max);
        self.sum += sum;
        self.squares = self.squares.wrapping_add(squares);
        for &ps in values {
            // -1 is the first of the negative values: there is one zero.
            if ps >= 0 {
                self.positive.count(ps.unsigned_abs());
            } else {
                self.negative.count((!ps).cast_unsigned());
            }
        }
    }

    /// Takes all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = other.clone();
            return;
        }
        // The squares of `other` about our origin: (d + s)^2 summed over its distances d, shifted by s.
        let shift = i128::from(other.origin) - i128::from(self.origin);
        let n = i128::from(other.n);
        let twice = shift.saturating_mul(2).saturating_mul(other.distances());
        let moved = i128::try_from(other.squares).unwrap_or(i128::MAX).saturating_add(twice);
        let moved = moved.saturating_add(n.saturating_mul(shift).saturating_mul(shift));
        self.squares = self.squares.saturating_add(moved.unsigned_abs());
        self.sum += other.sum;
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (ours, theirs) in [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)] {
            for (number, count) in theirs.numbered() {
                ours.add(number, count);
            }
        }
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.n
    }
    /// Lowest value, ps; `None` without values.
    pub fn min(&self) -> Option<i64> {
        (self.n > 0).then_some(self.min)
    }
    /// Highest value, ps; `None` without values.
    pub fn max(&self) -> Option<i64> {
        (self.n > 0).then_some(self.max)
    }
    /// Sum of all values, ps, exact.
    pub fn sum(&self) -> i128 {
        self.sum
    }
    /// Sum of the squared distances from the mean, ps²; from exact sums, rounded once.
    pub fn squared_deviations(&self) -> f64 {
        if self.n == 0 {
            return 0.0;
        }
        let distances = self.distances() as f64;
        (self.squares as f64 - distances * (distances / self.n as f64)).max(0.0)
    }

    /// Sum of the distances from `origin`.
    fn distances(&self) -> i128 {
        self.sum - i128::from(self.n) * i128::from(self.origin)
    }

    /// The non-empty buckets, by ascending value.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let below = self.negative.numbered().rev().map(|(number, count)| {
            let (low, high) = bounds(number);
            Bucket { low: -high - 1, high: -low - 1, count }
        });
        let above = self.positive.numbered().map(|(number, count)| {
            let (low, high) = bounds(number);
            Bucket { low, high, count }
        });
        below.chain(above)
    }

    /// The bucket of the value with this rank, counted from 1 in ascending order; `None` beyond the values.
    pub fn rank(&self, rank: u64) -> Option<Bucket> {
        let mut before = 0;
        self.buckets().find(|bucket| {
            before += bucket.count;
            before >= rank.max(1)
        })
    }
}

impl Counts {
    #[inline]
    fn count(&mut self, magnitude: u64) {
        let number = number(magnitude);
        match self.pages.as_mut().and_then(|pages| pages.counts.get_mut(number.wrapping_sub(pages.from))) {
            Some(count) if *count < u32::MAX => *count += 1,
            _ => self.add(number, 1),
        }
    }

    /// Adds to the count of a bucket.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "buckets are fewer than 2^16, and their counts here at most `FEW`"
    )]
    fn add(&mut self, number: usize, by: u64) {
        if self.pages.is_none() {
            self.taken += by;
            if self.taken <= FEW {
                let key = number as u16;
                match self.few.binary_search_by_key(&key, |(number, _)| *number) {
                    Ok(at) => self.few[at].1 += by as u16,
                    Err(at) => self.few.insert(at, (key, by as u16)),
                }
                return;
            }
        }
        let pages = self.pages.get_or_insert_default();
        for (number, count) in std::mem::take(&mut self.few) {
            pages.add(number.into(), count.into());
        }
        pages.add(number, by);
    }

    /// The non-empty buckets with their numbers.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let few = self.few.iter().map(|&(number, count)| (number.into(), count.into()));
        few.chain(self.pages.iter().flat_map(|pages| pages.numbered()))
    }
}

impl Pages {
    /// Adds to the count of a bucket, making room for its page.
    #[expect(clippy::cast_possible_truncation, reason = "the rest is in `high`")]
    fn add(&mut self, number: usize, by: u64) {
        let page = number / BUCKETS * BUCKETS;
        if self.counts.is_empty() {
            self.from = page;
        }
        if page < self.from {
            let more = self.from - page;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.from = page;
        }
        let needed = page + BUCKETS - self.from;
        if self.counts.len() < needed {
            self.counts.resize(needed, 0);
        }
        let count = &mut self.counts[number - self.from];
        let sum = u64::from(*count) + by;
        *count = sum as u32;
        if sum > u64::from(u32::MAX) {
            *self.high.entry(number).or_default() += sum >> 32;
        }
    }

    /// The non-empty buckets with their numbers.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate().map(|(place, &low)| {
            let number = self.from + place;
            let high = if self.high.is_empty() { None } else { self.high.get(&number) };
            (number, u64::from(low) + (high.copied().unwrap_or_default() << 32))
        });
        counts.filter(|(_, count)| *count > 0)
    }
}

/// Bucket number of a magnitude: the exact ones first, then octave by octave.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a bucket's number has less than 32 bits")]
fn number(magnitude: u64) -> usize {
    let shift = (u64::BITS - magnitude.leading_zeros()).saturating_sub(BITS + 1);
    // From the second octave on the leading bit of the shifted magnitude supplies the missing page.
    (shift as usize * BUCKETS) + (magnitude >> shift) as usize
}

#[expect(clippy::cast_possible_wrap, reason = "a bucket's number has less than 32 bits")]
fn bounds(number: usize) -> (i64, i64) {
    match number / BUCKETS {
        0 => (number as i64, number as i64),
        page => {
            let shift = page - 1;
            let low = ((BUCKETS | (number % BUCKETS)) as i64) << shift;
            (low, low + ((1 << shift) - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_join_without_gap_and_are_a_thousandth_wide() {
        let highest = number(i64::MAX.unsigned_abs());
        assert!(highest <= usize::from(u16::MAX));
        assert_eq!(bounds(highest).1, i64::MAX);
        for bucket in 0..=highest {
            let (low, high) = bounds(bucket);
            assert_eq!(number(low.unsigned_abs()), bucket);
            assert_eq!(number(high.unsigned_abs()), bucket);
            assert!(i128::from(high - low) * 1_000 <= i128::from(low), "{low}..{high}");
            assert!(bucket == highest || bounds(bucket + 1).0 == high + 1);
        }
    }

    fn of(values: &[i64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.add(value));
        sketch
    }

    #[test]
    fn counts_beyond_32_bits_are_kept() {
        let mut sketch = of(&[7]);
        for _ in 0..33 {
            let half = sketch.clone();
            sketch.merge(&half);
        }
        assert_eq!(sketch.buckets().collect::<Vec<_>>(), [Bucket { low: 7, high: 7, count: 1 << 33 }]);
        sketch.add(7);
        assert_eq!((sketch.n(), sketch.rank(1 << 33).map(|b| b.count)), ((1 << 33) + 1, Some((1 << 33) + 1)));
    }

    proptest! {
        #[test]
        fn ranks_and_moments_are_those_of_the_values(
            values in prop::collection::vec(prop_oneof![any::<i64>(), -5_000i64..5_000, 0i64..100_000_000], 1..200),
            // For few values, and for many.
            times in 1_usize..15,
        ) {
            let mut values = values.repeat(times);
            let sketch = of(&values);
            values.sort_unstable();
            prop_assert_eq!(sketch.n(), values.len() as u64);
            prop_assert_eq!((sketch.min(), sketch.max()), (values.first().copied(), values.last().copied()));
            prop_assert_eq!(sketch.sum(), values.iter().map(|&v| i128::from(v)).sum::<i128>());
            for (rank, &value) in (1..).zip(&values).step_by(times) {
                let bucket = sketch.rank(rank).unwrap();
                prop_assert!(bucket.low <= value && value <= bucket.high);
            }
            prop_assert_eq!(sketch.rank(values.len() as u64 + 1), None);
        }

        #[test]
        fn merging_is_as_if_all_values_had_been_taken_at_once(
            parts in prop::collection::vec(prop::collection::vec(-1_000_000i64..1_000_000_000, 0..40), 0..5),
            times in prop_oneof![Just(1_usize), 1_usize..60],
        ) {
            let parts: Vec<Vec<i64>> = parts.iter().map(|part| part.repeat(times)).collect();
            let mut merged = Sketch::default();
            parts.iter().rev().for_each(|part| merged.merge(&of(part)));
            let at_once = of(&parts.concat());
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), at_once.buckets().collect::<Vec<_>>());
            prop_assert_eq!((merged.n(), merged.min(), merged.max()), (at_once.n(), at_once.min(), at_once.max()));
            prop_assert_eq!(merged.sum(), at_once.sum());
            let (a, b) = (merged.squared_deviations(), at_once.squared_deviations());
            prop_assert!((a - b).abs() <= 1e-6 * a.max(1.0), "{a} {b}");
        }
    }
}
