//! A distribution in bounded memory: every value counted in a bucket no wider than a thousandth of it.

/// log2 of the buckets per octave.
const BITS: u32 = 10;
/// Buckets per octave; below this many picoseconds every value has a bucket of its own.
const BUCKETS: usize = 1 << BITS;
/// Octaves of a non-negative `i64` above the exact part, and the exact part.
const PAGES: usize = (63 - BITS as usize) + 1;

/// Counts by value, as HdrHistogram keeps them with 3 significant digits; number, extremes and sums are exact.
///
/// Two sketches of the same measure [merge](Self::merge) into the sketch of all their values, in any order.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    n: u64,
    min: i64,
    max: i64,
    /// Sum of the squares of the distances from `origin`, the first value taken.
    squares: u128,
    distances: i128,
    origin: i64,
    positive: Pages,
    negative: Pages,
}

type Pages = Vec<Option<Box<[u64; BUCKETS]>>>;

/// One bucket: `count` values from `low` to `high`, both inclusive, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value it takes, ps.
    pub low: i64,
    /// Highest value it takes, ps.
    pub high: i64,
    /// Values in it.
    pub count: u64,
}

impl Sketch {
    /// Takes one value, ps.
    #[inline]
    pub fn add(&mut self, ps: i64) {
        if self.n == 0 {
            (self.min, self.max, self.origin) = (ps, ps, ps);
        }
        self.n += 1;
        self.min = self.min.min(ps);
        self.max = self.max.max(ps);
        let distance = i128::from(ps) - i128::from(self.origin);
        self.distances += distance;
        self.squares = self.squares.saturating_add(distance.unsigned_abs().saturating_pow(2));
        let (pages, magnitude) =
            if ps >= 0 { (&mut self.positive, ps.unsigned_abs()) } else { (&mut self.negative, ps.unsigned_abs() - 1) };
        let (page, bucket) = index(magnitude);
        match pages.get_mut(page) {
            Some(Some(counts)) => counts[bucket] += 1,
            _ => add_page(pages, page)[bucket] += 1,
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
        let twice = shift.saturating_mul(2).saturating_mul(other.distances);
        let moved = i128::try_from(other.squares).unwrap_or(i128::MAX).saturating_add(twice);
        let moved = moved.saturating_add(n.saturating_mul(shift).saturating_mul(shift));
        self.squares = self.squares.saturating_add(moved.unsigned_abs());
        self.distances += other.distances + n * shift;
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (ours, theirs) in
            [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)]
        {
            for (page, counts) in theirs.iter().enumerate() {
                let Some(counts) = counts else { continue };
                let sums = match ours.get_mut(page) {
                    Some(Some(sums)) => sums,
                    _ => add_page(ours, page),
                };
                sums.iter_mut().zip(counts.iter()).for_each(|(sum, count)| *sum += count);
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
        self.distances + i128::from(self.n) * i128::from(self.origin)
    }
    /// Sum of the squared distances from the mean, ps²; from exact sums, rounded once.
    pub fn squared_deviations(&self) -> f64 {
        if self.n == 0 {
            return 0.0;
        }
        let mean_distance = self.distances as f64 / self.n as f64;
        (self.squares as f64 - mean_distance * self.distances as f64).max(0.0)
    }

    /// Buckets that are not empty, by ascending value.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let below = numbered(&self.negative).rev().map(|(page, bucket, count)| {
            let (low, high) = bounds(page, bucket);
            Bucket { low: -high - 1, high: -low - 1, count }
        });
        let above = numbered(&self.positive).map(|(page, bucket, count)| {
            let (low, high) = bounds(page, bucket);
            Bucket { low, high, count }
        });
        below.chain(above)
    }

    /// The bucket in which the value of `rank` lies, counted from 1 in ascending order; `None` beyond the values.
    pub fn rank(&self, rank: u64) -> Option<Bucket> {
        let mut before = 0;
        self.buckets().find(|bucket| {
            before += bucket.count;
            before >= rank.max(1)
        })
    }
}

#[inline]
fn index(magnitude: u64) -> (usize, usize) {
    let shift = (u64::BITS - magnitude.leading_zeros()).saturating_sub(BITS + 1);
    let is_exact = magnitude < BUCKETS as u64;
    let page = if is_exact { 0 } else { shift as usize + 1 };
    (page, (magnitude >> shift) as usize & (BUCKETS - 1))
}

fn bounds(page: usize, bucket: usize) -> (i64, i64) {
    match page {
        0 => (bucket as i64, bucket as i64),
        _ => {
            let shift = page - 1;
            let low = ((BUCKETS | bucket) as i64) << shift;
            (low, low + ((1 << shift) - 1))
        }
    }
}

fn numbered(pages: &Pages) -> impl DoubleEndedIterator<Item = (usize, usize, u64)> {
    let pages = pages.iter().enumerate().filter_map(|(page, counts)| Some((page, counts.as_ref()?)));
    pages.flat_map(|(page, counts)| {
        let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(move |(bucket, &count)| (page, bucket, count))
    })
}

#[cold]
fn add_page(pages: &mut Pages, page: usize) -> &mut [u64; BUCKETS] {
    if pages.is_empty() {
        pages.resize_with(PAGES, || None);
    }
    pages[page].get_or_insert_with(|| Box::new([0; BUCKETS]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_join_without_gap_and_are_a_thousandth_wide() {
        for page in 0..PAGES {
            for bucket in [0, 1, BUCKETS / 2, BUCKETS - 1] {
                let (low, high) = bounds(page, bucket);
                assert_eq!(index(low.unsigned_abs()), (page, bucket));
                assert_eq!(index(high.unsigned_abs()), (page, bucket));
                assert!(i128::from(high - low) * 1_000 <= i128::from(low.max(0)), "{low}..{high}");
                if high < i64::MAX && bucket + 1 < BUCKETS {
                    assert_eq!(bounds(page, bucket + 1).0, high + 1);
                }
            }
        }
        assert_eq!(bounds(PAGES - 1, BUCKETS - 1).1, i64::MAX);
    }

    fn of(values: &[i64]) -> Sketch {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.add(value));
        sketch
    }

    proptest! {
        #[test]
        fn ranks_and_moments_are_those_of_the_values(
            mut values in prop::collection::vec(prop_oneof![any::<i64>(), -5_000i64..5_000, 0i64..100_000_000], 1..200)
        ) {
            let sketch = of(&values);
            values.sort_unstable();
            prop_assert_eq!(sketch.n(), values.len() as u64);
            prop_assert_eq!((sketch.min(), sketch.max()), (values.first().copied(), values.last().copied()));
            prop_assert_eq!(sketch.sum(), values.iter().map(|&v| i128::from(v)).sum::<i128>());
            for (rank, &value) in (1..).zip(&values) {
                let bucket = sketch.rank(rank).unwrap();
                prop_assert!(bucket.low <= value && value <= bucket.high);
            }
            prop_assert_eq!(sketch.rank(values.len() as u64 + 1), None);
        }

        #[test]
        fn merging_is_as_if_all_values_had_been_taken_at_once(
            parts in prop::collection::vec(prop::collection::vec(-1_000_000i64..1_000_000_000, 0..40), 0..5)
        ) {
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
