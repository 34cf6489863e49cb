"""A distribution as counts of buckets, for more values than can be stored.

Count, extremes, mean and spread are exact; a quantile is known to within its bucket. Sketches of the same quantity
merge: counts of equal buckets add and moments combine exactly (Chan, Golub and LeVeque, The American Statistician 37,
1983), so a percentile of repeats is that of all values and never an average of percentiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp, floor, isfinite, log, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.stats.intervals import (
    deviation_interval_of,
    repeated_half_share,
    scaled_ranks,
)
from wiregauge.stats.moments import student_t
from wiregauge.stats.quantiles import exact, rank

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

HALF = 512
"""Values in half a section whose mean is compared with that of the other half."""
COARSE = 4096
"""The number of buckets in `coarse_sketch_of`, with equally many values each."""
TAIL = 1024
"""The number of values at either end with a bucket each: rare percentiles need them."""
RESEMBLING = 0.3
"""Correlation of the halves of sections above which the memory outlasts them."""


class Sketch(Struct, frozen=True, eq=False):
    """`count` values from `low` to `high`, both inclusive, per bucket, ascending; all in the unit of the values."""

    low: Floats
    high: Floats
    count: Integers
    n: int
    minimum: float
    maximum: float
    mean: float
    squared_deviations: float

    def moved(self, by: float) -> Sketch:
        """The sketch of the values minus `by`."""
        return replace(
            self,
            low=self.low - by,
            high=self.high - by,
            minimum=self.minimum - by,
            maximum=self.maximum - by,
            mean=self.mean - by,
        )

    def deviation(self) -> float | None:
        """Sample standard deviation (divisor n - 1); None below two values."""
        return sqrt(self.squared_deviations / (self.n - 1)) if self.n >= 2 else None

    def middles(self) -> Floats:
        """The middle of each bucket, within the extremes."""
        return np.clip((self.low + self.high) / 2, self.minimum, self.maximum)

    def weighted(self) -> tuple[Floats, Integers]:
        """The distribution as values and their counts: middles of buckets, and the extremes exactly."""
        if self.n < 2:
            return np.array([self.minimum])[: self.n], np.ones(self.n, dtype=np.int64)
        count = self.count.copy()
        count[0] -= 1
        count[-1] -= 1
        values = np.concatenate([[self.minimum], self.middles(), [self.maximum]])
        often = np.concatenate([[1], count, [1]])
        return values[often > 0], often[often > 0]

    def quantile(self, q: float | Fraction) -> float:
        """The nearest-rank quantile, to within half its bucket; the extremes are exact."""
        return self.ranked(rank(self.n, q))

    def ranked(self, place: int) -> float:
        """The value at this rank, from 1: the middle of its bucket; the first and the last are exact."""
        if place <= 1:
            return self.minimum
        if place >= self.n:
            return self.maximum
        bucket = self._bucket(place)
        middle = (float(self.low[bucket]) + float(self.high[bucket])) / 2
        return min(max(middle, self.minimum), self.maximum)

    def around(self, low: int | None, high: int | None) -> tuple[float | None, float | None]:
        """Values at two ranks, widened outwards by their buckets; None where the rank is None."""
        bottom = None if low is None else max(float(self.low[self._bucket(low)]), self.minimum)
        top = None if high is None else min(float(self.high[self._bucket(high)]), self.maximum)
        return bottom, top

    def up_to(self, value: float) -> int:
        """The number of values at or below `value`, to within its bucket."""
        return int(self.count[self.middles() <= value].sum())

    def below_zero(self) -> int:
        """The number of negative values, to within the bucket of zero."""
        return int(self.count[self.middles() < 0].sum())

    def _bucket(self, place: int) -> int:
        reached = np.cumsum(self.count)
        return min(int(np.searchsorted(reached, place)), len(self.count) - 1)


def sketch_of(values: Floats) -> Sketch:
    """A lossless sketch of values: a bucket for every distinct one. `values` must not be empty."""
    distinct, count = np.unique(values, return_counts=True)
    mean = float(values.mean())
    return Sketch(
        distinct,
        distinct,
        count.astype(np.int64),
        len(values),
        float(distinct[0]),
        float(distinct[-1]),
        mean,
        float(np.sum((values - mean) ** 2)),
    )


def coarse_sketch_of(ascending: Floats) -> Sketch:
    """Values in ascending order as a sketch of `COARSE` buckets of as many values each, and of `TAIL` single values.

    The `TAIL` least and greatest values are exact, and all where there are no more than `COARSE`; between them a rank
    is off by no more than half a bucket: 1 in 8192 of the values. `ascending` must not be empty.
    """
    n = len(ascending)
    edges = np.linspace(0, n, min(n, COARSE) + 1).round().astype(np.int64)
    if n > COARSE:
        edges = np.union1d(edges, np.concatenate([np.arange(TAIL), n - np.arange(TAIL)]))
    mean = float(ascending.mean())
    return Sketch(
        ascending[edges[:-1]],
        ascending[edges[1:] - 1],
        np.diff(edges),
        n,
        float(ascending[0]),
        float(ascending[-1]),
        mean,
        float(np.sum((ascending - mean) ** 2)),
    )


def merged(sketches: Sequence[Sketch]) -> Sketch:
    """The sketch of all values of `sketches`, at least one."""
    if len(sketches) == 1:
        return sketches[0]
    low = np.concatenate([sketch.low for sketch in sketches])
    high = np.concatenate([sketch.high for sketch in sketches])
    count = np.concatenate([sketch.count for sketch in sketches])
    order = np.lexsort((low, low + high))
    low, high, count = low[order], high[order], count[order]
    first = np.concatenate([[True], (low[1:] != low[:-1]) | (high[1:] != high[:-1])])
    n = sum(sketch.n for sketch in sketches)
    mean = sum(sketch.mean * (sketch.n / n) for sketch in sketches)
    return Sketch(
        low[first],
        high[first],
        np.add.reduceat(count, np.flatnonzero(first)),
        n,
        min(sketch.minimum for sketch in sketches),
        max(sketch.maximum for sketch in sketches),
        mean,
        sum(sketch.squared_deviations + sketch.n * (sketch.mean - mean) ** 2 for sketch in sketches),
    )


def scaled_interval(sketch: Sketch, q: float | Fraction, worth: float) -> tuple[float | None, float | None]:
    """95 % interval of quantile `q` of values of effective size `worth`, widened by its buckets."""
    return sketch.around(*scaled_ranks(sketch.n, q, worth))


def repeated_ranks(
    sketches: Sequence[Sketch], pooled: Sketch, q: float | Fraction, beyond: Sequence[int], at: float
) -> tuple[int | None, int | None]:
    """Ranks between which quantile `q` of repeats lies with 95 %, as `repeated_quantile_interval` has them.

    `beyond` counts the values of each run beyond its sketch; `at` is the quantile itself.
    """
    sizes = np.array([sketch.n + more for sketch, more in zip(sketches, beyond, strict=True)])
    n = pooled.n + sum(beyond)
    found = [sketch.up_to(at) for sketch in sketches]
    half = repeated_half_share(np.array(found) / sizes if isfinite(at) else np.ones(len(sizes)), sizes)
    low, high = floor((float(exact(q)) - half) * n), ceil((float(exact(q)) + half) * n)
    return low if low >= 1 else None, max(high, 1) if high <= n else None


def repeated_deviation(sketches: Sequence[Sketch]) -> tuple[float, float] | None:
    """As `repeated_deviation_interval`, from the sketches of repeats."""
    kept = [sketch for sketch in sketches if sketch.n >= 2]
    return deviation_interval_of(
        np.array([sketch.n for sketch in kept], dtype=np.float64),
        np.array([sketch.mean for sketch in kept]),
        np.array([sketch.squared_deviations / (sketch.n - 1) for sketch in kept]),
    )


def mean_half_width(deviation: float, worth: float) -> float:
    """Half-width of the 95 % Student interval of a mean of values of effective size `worth`."""
    return student_t(max(worth, 2.0) - 1) * deviation / sqrt(max(worth, 2.0))


def narrowed(interval: tuple[float, float], spread: float, whole: float, gain: float) -> tuple[float, float]:
    """The interval of a standard deviation, `whole`, from that of a sample's, `spread`, of 1/`gain` its information.

    It covers the difference of the two: rare values that the sample missed are rare in the whole, too.
    """
    if not spread or not whole:
        return min(spread, whole), max(spread, whole)
    factor = exp(max(log(interval[1] / spread) / sqrt(gain), abs(log(whole / spread))))
    return whole / factor, whole * factor


Halves = tuple[Integers, Integers, Integers]
"""Begin, middle and end of complete sections."""


def halves_of(stretch: Integers) -> Halves:
    """The halves of the complete sections of a series; `stretch` is the section of each value."""
    starts = (
        np.flatnonzero(np.concatenate([[True], stretch[1:] != stretch[:-1]])) if len(stretch) else stretch
    )
    sizes = np.diff(np.append(starts, len(stretch)))
    begins, lengths = starts[sizes >= HALF], sizes[sizes >= HALF]
    return begins, begins + lengths // 2, begins + lengths


def outlasts(values: Floats | Flags, halves: Halves) -> bool:
    """Whether the correlation of values, or of flags, outlasts the sections of the series they come from.

    The means of a section's halves correlate if the memory is as long as they are, however small its part in a single
    value: averaging removes the rest. Too few complete sections count as yes, since the sample's own effective size is
    then the safe one.
    """
    begins, middles, ends = halves
    if len(begins) < 4:
        return True
    # What lies between a section and the next is summed, too, and left out; the last section may end the series.
    edges = np.column_stack([begins, middles, ends]).ravel()
    edges = edges[:-1] if edges[-1] == len(values) else edges
    if values.dtype == np.bool_:
        sums = np.add.reduceat(values, edges, dtype=np.int64)
    else:
        sums = np.add.reduceat(values - values.mean(), edges)
    first, second = sums[::3] / (middles - begins), sums[1::3] / (ends - middles)
    if first.std() == 0 or second.std() == 0:
        return False
    return bool(np.corrcoef(first, second)[0, 1] > max(RESEMBLING, 2 / sqrt(len(begins))))
