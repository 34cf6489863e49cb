//! Curves of network calculus, and bounds from pairs of them.
//!
//! An arrival curve is a minimum of leaky buckets: concave and piecewise linear. A service curve is a maximum of
//! rate-latency curves: convex and piecewise linear. Deviations between the two are then linear programmes of one
//! variable, and each is computed from its dual: every pair of lines gives a valid bound and the best pair gives the
//! deviation itself. That is why rounding, which may choose another pair, can widen a bound but not undercut it.

use core::cmp::Ordering;

use crate::number::Number;

/// A leaky bucket `burst + rate · t`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket<N> {
    /// Burst: data at once, in bits.
    pub burst: N,
    /// Rate, in bits per second.
    pub rate: N,
}

/// A minimum of leaky buckets, those of higher rate first; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival<N> {
    buckets: Vec<Bucket<N>>,
}

/// A rate-latency curve `rate · max(0, t − latency)`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLatency<N> {
    /// Rate in bits per second, above zero.
    pub rate: N,
    /// Latency in seconds.
    pub latency: N,
}

/// A maximum of rate-latency curves; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Service<N> {
    pieces: Vec<RateLatency<N>>,
}

/// One line `at + slope · t` of a concave function that is the minimum of several.
struct Line<N> {
    at: N,
    slope: N,
}

impl<N: Number> Bucket<N> {
    /// The time from which another bucket of lower rate is below this one.
    fn crossing(&self, other: &Self) -> N {
        other.burst.minus(&self.burst).over(&self.rate.minus(&other.rate))
    }
}

impl<N: Number> Arrival<N> {
    /// The minimum of `buckets`.
    ///
    /// # Panics
    /// If `buckets` is empty.
    pub fn new(mut buckets: Vec<Bucket<N>>) -> Self {
        assert!(!buckets.is_empty(), "bug: an arrival curve without a bucket");
        if buckets.len() > 1 {
            // Sorted by value: of equal rates the least burst comes last and stays.
            buckets.sort_by(|a, b| b.rate.compare(&a.rate).then_with(|| b.burst.compare(&a.burst)));
            buckets = lower_hull(buckets);
        }
        Self { buckets }
    }

    /// One leaky bucket.
    pub fn bucket(burst: N, rate: N) -> Self {
        Self { buckets: vec![Bucket { burst, rate }] }
    }

    /// The curve of no traffic.
    pub fn none() -> Self {
        Self::bucket(N::zero(), N::zero())
    }

    /// Its buckets, those of higher rate first.
    pub fn buckets(&self) -> &[Bucket<N>] {
        &self.buckets
    }

    /// Greatest burst, in bits.
    pub fn burst(&self) -> &N {
        &self.first().burst
    }

    fn first(&self) -> &Bucket<N> {
        &self.buckets[0]
    }

    /// The bucket with the least rate: the long-term rate and its burst.
    pub fn sustained(&self) -> &Bucket<N> {
        &self.buckets[self.buckets.len() - 1]
    }

    /// The sum of both curves.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self::sum(&[self, other])
    }

    /// The sum of all curves: bucket by bucket, in the order in which the curves bend.
    #[must_use]
    pub fn sum(curves: &[&Self]) -> Self {
        let mut total = Bucket { burst: N::zero(), rate: N::zero() };
        let mut bends: Vec<(N, usize, usize)> = Vec::new();
        for (index, curve) in curves.iter().enumerate() {
            total.burst = total.burst.plus(&curve.first().burst);
            total.rate = total.rate.plus(&curve.first().rate);
            for (position, pair) in curve.buckets.windows(2).enumerate() {
                bends.push((pair[0].crossing(&pair[1]), index, position));
            }
        }
        bends.sort_by(|a, b| a.0.compare(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut buckets = vec![total];
        // Index of the current bucket of each curve. Bends at inexact instants may come in a wrong order; each curve
        // still passes its own in order, and any sum of one bucket of each bounds the sum.
        let mut at = vec![0; curves.len()];
        for (_, index, _) in bends {
            let curve = curves[index];
            let (old, new) = (&curve.buckets[at[index]], &curve.buckets[at[index] + 1]);
            at[index] += 1;
            let last = &buckets[buckets.len() - 1];
            let burst = last.burst.plus(&new.burst.minus(&old.burst));
            let rate = last.rate.plus(&new.rate.minus(&old.rate));
            buckets.push(Bucket { burst, rate });
        }
        if buckets.len() > 1 {
            // Several bends at one instant leave buckets that touch the minimum in one point only.
            buckets = lower_hull(buckets);
        }
        Self { buckets }
    }

    /// The minimum of both: traffic within this curve that also passes a constraint of `other`.
    #[must_use]
    pub fn limited(&self, other: &Self) -> Self {
        Self::new(self.buckets.iter().chain(&other.buckets).cloned().collect())
    }

    /// The curve times a factor.
    #[must_use]
    pub fn times(&self, factor: &N) -> Self {
        let more = |bucket: &Bucket<N>| Bucket {
            burst: bucket.burst.times(factor),
            rate: bucket.rate.times(factor),
        };
        Self { buckets: self.buckets.iter().map(more).collect() }
    }

    /// Departures if every bit is delayed by between zero and `delay`: the curve, earlier by that much.
    #[must_use]
    pub fn delayed(&self, delay: &N) -> Self {
        let later = |bucket: &Bucket<N>| Bucket {
            burst: bucket.burst.plus(&bucket.rate.times(delay)),
            rate: bucket.rate.clone(),
        };
        Self { buckets: self.buckets.iter().map(later).collect() }
    }

    /// Departures of a server that guarantees `service`, by min-plus deconvolution. `None` if it may not keep up.
    pub fn served(&self, service: &Service<N>) -> Option<Self> {
        // The deconvolution of a minimum is at most the minimum of the deconvolutions, and for one bucket it is that
        // bucket with its backlog as burst.
        let mut buckets = Vec::new();
        for bucket in &self.buckets {
            let alone = Self::bucket(bucket.burst.clone(), bucket.rate.clone());
            if let Some(backlog) = alone.backlog(service) {
                buckets.push(Bucket { burst: backlog, rate: bucket.rate.clone() });
            }
        }
        (!buckets.is_empty()).then(|| Self::new(buckets))
    }

    /// Greatest horizontal deviation from `service`: the delay with FIFO service. `None`: unbounded.
    pub fn delay(&self, service: &Service<N>) -> Option<N> {
        if self.is_none() {
            return Some(N::zero());
        }
        let lines = service.pieces.iter().flat_map(|piece| {
            self.buckets.iter().map(move |bucket| Line {
                at: piece.latency.plus(&bucket.burst.over(&piece.rate)),
                slope: bucket.rate.minus(&piece.rate).over(&piece.rate),
            })
        });
        highest(lines).map(|delay| delay.greater(&N::zero()))
    }

    /// Greatest vertical deviation from `service`. `None`: unbounded.
    pub fn backlog(&self, service: &Service<N>) -> Option<N> {
        if self.is_none() {
            return Some(N::zero());
        }
        let idle =
            self.buckets.iter().map(|bucket| Line { at: bucket.burst.clone(), slope: bucket.rate.clone() });
        let lines = service.pieces.iter().flat_map(|piece| {
            self.buckets.iter().map(move |bucket| Line {
                at: bucket.burst.plus(&piece.rate.times(&piece.latency)),
                slope: bucket.rate.minus(&piece.rate),
            })
        });
        highest(idle.chain(lines)).map(|backlog| backlog.greater(&N::zero()))
    }

    /// Greatest length of a busy period with `service`: the delay in any work-conserving order. `None`: it may never
    /// end.
    pub fn busy_period(&self, service: &Service<N>) -> Option<N> {
        if self.is_none() {
            return Some(N::zero());
        }
        let mut least: Option<N> = None;
        for piece in &service.pieces {
            for bucket in &self.buckets {
                let spare = piece.rate.minus(&bucket.rate);
                if spare.is_positive() {
                    let end = bucket.burst.plus(&piece.rate.times(&piece.latency)).over(&spare);
                    least = Some(least.map_or_else(|| end.clone(), |least| least.lesser(&end)));
                }
            }
        }
        least
    }

    /// Whether it is the curve of no traffic.
    pub fn is_none(&self) -> bool {
        let last = self.sustained();
        last.burst.is_not_positive() && last.rate.is_not_positive()
    }
}

impl<N: Number> Service<N> {
    /// The maximum of `pieces`.
    ///
    /// # Panics
    /// If `pieces` is empty.
    pub fn new(pieces: Vec<RateLatency<N>>) -> Self {
        assert!(!pieces.is_empty(), "bug: a service curve without a piece");
        Self { pieces }
    }

    /// One rate-latency curve.
    pub fn rate_latency(rate: N, latency: N) -> Self {
        Self { pieces: vec![RateLatency { rate, latency }] }
    }

    /// Its pieces.
    pub fn pieces(&self) -> &[RateLatency<N>] {
        &self.pieces
    }

    /// Long-term rate.
    pub fn rate(&self) -> &N {
        let mut highest = &self.pieces[0].rate;
        for piece in &self.pieces[1..] {
            if piece.rate.compare(highest) == Ordering::Greater {
                highest = &piece.rate;
            }
        }
        highest
    }

    /// This server and another behind it as one, by min-plus convolution.
    ///
    /// Conjugates of convex functions add up; every rate of either function gives one line of the convolution.
    #[must_use]
    pub fn then(&self, other: &Self) -> Self {
        if let ([a], [b]) = (&self.pieces[..], &other.pieces[..]) {
            return Self::rate_latency(a.rate.lesser(&b.rate), a.latency.plus(&b.latency));
        }
        let mut pieces = Vec::new();
        for piece in self.pieces.iter().chain(&other.pieces) {
            if let (Some(one), Some(another)) = (self.conjugate(&piece.rate), other.conjugate(&piece.rate)) {
                let latency = one.plus(&another).over(&piece.rate);
                pieces.push(RateLatency { rate: piece.rate.clone(), latency });
            }
        }
        if pieces.is_empty() {
            // Only if rounding hides which rate is the lesser.
            let pairs = self.pieces.iter().flat_map(|a| {
                other.pieces.iter().map(move |b| RateLatency {
                    rate: a.rate.lesser(&b.rate),
                    latency: a.latency.plus(&b.latency),
                })
            });
            pieces = pairs.collect();
        }
        Self::new(pieces)
    }

    /// The maximum of `rate · t − service(t)`. `None`: unbounded.
    fn conjugate(&self, rate: &N) -> Option<N> {
        let lines = self
            .pieces
            .iter()
            .map(|piece| Line { at: piece.rate.times(&piece.latency), slope: rate.minus(&piece.rate) });
        highest(lines.chain([Line { at: N::zero(), slope: rate.clone() }]))
    }

    /// Left-over services under FIFO multiplexing with `cross`: `(R − r, T + b/R)` for each piece and bucket.
    ///
    /// Each holds by itself (Le Boudec and Thiran, proposition 6.4.1, with its own θ); their maximum need not.
    pub fn left_overs_fifo(&self, cross: &Arrival<N>) -> Vec<RateLatency<N>> {
        self.left_overs(cross, |piece, bucket, _| piece.latency.plus(&bucket.burst.over(&piece.rate)))
    }

    /// Left-over of a strict service curve under arbitrary multiplexing with `cross`: the maximum of `(R − r, (R·T + b)
    /// / (R − r))` over pieces and buckets. `None`: nothing.
    pub fn left_over_arbitrary(&self, cross: &Arrival<N>) -> Option<Self> {
        let pieces = self.left_overs(cross, |piece, bucket, spare| {
            piece.rate.times(&piece.latency).plus(&bucket.burst).over(spare)
        });
        (!pieces.is_empty()).then(|| Self::new(pieces))
    }

    fn left_overs(
        &self,
        cross: &Arrival<N>,
        latency: impl Fn(&RateLatency<N>, &Bucket<N>, &N) -> N,
    ) -> Vec<RateLatency<N>> {
        let mut pieces = Vec::new();
        for piece in &self.pieces {
            for bucket in &cross.buckets {
                let spare = piece.rate.minus(&bucket.rate);
                if spare.is_positive() {
                    pieces.push(RateLatency { latency: latency(piece, bucket, &spare), rate: spare });
                }
            }
        }
        pieces
    }
}

/// The buckets that are minimal anywhere, from buckets sorted by falling rate.
fn lower_hull<N: Number>(sorted: Vec<Bucket<N>>) -> Vec<Bucket<N>> {
    let mut kept: Vec<Bucket<N>> = Vec::with_capacity(sorted.len());
    for bucket in sorted {
        while let Some(last) = kept.last() {
            let useless = last.burst.compare(&bucket.burst) != Ordering::Less
                || kept.len() > 1
                    && last.crossing(&bucket).compare(&kept[kept.len() - 2].crossing(last))
                        != Ordering::Greater;
            if !useless {
                break;
            }
            kept.pop();
        }
        kept.push(bucket);
    }
    kept
}

/// The supremum over `t ≥ 0` of the minimum of lines, by the dual: a falling line alone, or the height at which a
/// rising and a falling one cross. `None`: no line falls.
fn highest<N: Number>(lines: impl Iterator<Item = Line<N>>) -> Option<N> {
    let mut least: Option<N> = None;
    let mut keep =
        |height: N| least = Some(least.as_ref().map_or_else(|| height.clone(), |old| old.lesser(&height)));
    let (mut rising, mut falling): (Vec<Line<N>>, Vec<Line<N>>) = (Vec::new(), Vec::new());
    for line in lines {
        if line.slope.is_not_positive() {
            falling.push(line);
        } else if line.slope.is_positive() {
            rising.push(line);
        }
    }
    for fall in &falling {
        keep(fall.at.clone());
        for rise in &rising {
            let slopes = rise.slope.minus(&fall.slope);
            if slopes.is_positive() {
                // (at_r · −slope_f + at_f · slope_r) / (slope_r − slope_f)
                let height =
                    fall.at.plus(&rise.at.minus(&fall.at).times(&N::zero().minus(&fall.slope)).over(&slopes));
                keep(height);
            }
        }
    }
    least
}

#[cfg(test)]
mod tests;
