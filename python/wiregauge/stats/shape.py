"""The shape of a sample, small enough to draw: density, histogram, box, tail, envelope.

All of them are deterministic and bounded in size, whatever the size of the sample. Values may have `counts`, as in a
distribution that is stored as buckets (`Sketch.weighted`).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats.quantiles import largest_supported, quantile, rank

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class DensityShape(Struct, frozen=True):
    """A kernel density estimate on a grid.

    `y` integrates to `n / (n + outside)`: per unit of `x`, or per decade when `log`. `outside` counts the values that
    the grid does not show: beyond its range, or not positive on a logarithmic axis. `constant` is the value that all
    shown values share, None where they differ: it has no density, and should be drawn as a line.
    """

    x: Floats
    y: Floats
    log: bool
    n: int
    outside: int
    constant: float | None = None


def density(
    values: Floats,
    *,
    log: bool = False,
    span: tuple[float, float] | None = None,
    points: int = 400,
    counts: Integers | None = None,
) -> DensityShape:
    """Gaussian kernel density with Silverman's bandwidth, binned linearly and convolved by FFT.

    `span` fixes the range in the unit of the values; without it the grid covers the data and its margins. The
    bandwidth is that of the values in view, and the work is bounded by `values` and `points`, whatever the values are.
    """
    total = len(values) if counts is None else int(counts.sum())
    drawn = values > 0 if log else np.ones(len(values), dtype=np.bool_)
    shown, often = values[drawn], None if counts is None else counts[drawn]
    placed: Floats = np.log10(shown) if log else shown.astype(np.float64)
    if len(placed) == 0:
        empty = np.empty(0)
        return DensityShape(empty, empty, log, 0, total)
    low, high, width = _view(placed, often, span, points, log=log)
    step = (high - low) / (points - 1)
    # A kernel narrower than the grid would be lost; one as wide as the picture is wide enough.
    width = min(max(width, step), (high - low) / 4)
    margin = int(np.ceil(4 * width / step))
    size = points + 2 * margin
    position = (placed - low) / step + margin
    inside = (position >= 0) & (position <= size - 1)
    left = np.floor(position[inside]).astype(np.int64)
    part = position[inside] - left
    each = 1.0 if often is None else often[inside].astype(np.float64)
    weights = np.bincount(left, (1 - part) * each, size + 1) + np.bincount(left + 1, part * each, size + 1)
    offsets = np.arange(-margin, margin + 1) * step / width
    kernel = np.exp(-0.5 * offsets**2)
    kernel /= kernel.sum()
    length = 1 << int(size + len(kernel)).bit_length()
    smooth = np.fft.irfft(np.fft.rfft(weights, length) * np.fft.rfft(kernel, length), length)
    y = np.maximum(smooth[2 * margin : 2 * margin + points], 0.0) / (total * step)
    grid: Floats = low + step * np.arange(points, dtype=np.float64)
    x: Floats = np.power(10.0, grid) if log else grid
    view = (placed >= low) & (placed <= high)
    seen = shown[view]
    within = len(seen) if often is None else int(often[view].sum())
    same = float(seen[0]) if within and float(seen.min()) == float(seen.max()) else None
    return DensityShape(x, y, log, within, total - within, same)


def _view(
    placed: Floats, often: Integers | None, span: tuple[float, float] | None, points: int, *, log: bool
) -> tuple[float, float, float]:
    """The range of the grid and the bandwidth, kept far enough apart for the grid to have steps."""
    if span is None:
        low, high = float(placed.min()), float(placed.max())
        # The margins must hold the kernel as drawn, which is never narrower than the grid.
        width = max(_bandwidth(placed, often), (high - low) / (points - 7))
        return low - 3 * width, high + 3 * width, width
    low, high = (float(np.log10(s)) if log else float(s) for s in span)
    view = (placed >= low) & (placed <= high)
    # Values farther outside than the picture's width do not matter for those in it.
    view = view if view.any() else np.ones_like(view)
    width = _bandwidth(placed[view], None if often is None else often[view])
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return low - 3 * width, high + 3 * width, width
    return low, high, width


def _bandwidth(placed: Floats, often: Integers | None) -> float:
    of = _Ranked.of(placed, often)
    ascending = of.ascending
    spread = of.deviation()
    quartiles = (of.quantile(0.75) - of.quantile(0.25)) / 1.349
    scale = min((s for s in (spread, quartiles) if s > 0), default=0.0)
    smallest = max(float(np.abs(ascending[[0, -1]]).max()), 1.0) * 1e-9
    return max(0.9 * scale / math.pow(of.n, 0.2), smallest)


class _Ranked(Struct, frozen=True):
    """Values in ascending order; `reached` has cumulative counts, where values have counts."""

    ascending: Floats
    reached: Integers | None
    n: int

    @classmethod
    def of(cls, values: Floats, counts: Integers | None) -> _Ranked:
        if counts is None:
            return cls(np.sort(values), None, len(values))
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(counts[order])
        return cls(values[order], reached, int(reached[-1]) if len(reached) else 0)

    def at(self, ranks: Integers) -> Floats:
        """The values at these ranks, from 1."""
        if self.reached is None:
            return self.ascending[ranks - 1]
        return np.asarray(self.ascending[np.searchsorted(self.reached, ranks)])

    def quantile(self, q: float) -> float:
        if self.reached is None:
            return quantile(self.ascending, q)
        return float(self.at(np.array([rank(self.n, q)]))[0])

    def deviation(self) -> float:
        if self.reached is None:
            return float(self.ascending.std())
        counts = np.diff(self.reached, prepend=0)
        mean = float(np.average(self.ascending, weights=counts))
        return math.sqrt(float(np.average((self.ascending - mean) ** 2, weights=counts)))


class HistogramShape(Struct, frozen=True):
    """Counts between edges; `below` and `above` fall outside them, so that all counts add to n."""

    edges: Floats
    counts: Integers
    below: int
    above: int


def histogram(values: Floats, edges: Floats, counts: Integers | None = None) -> HistogramShape:
    """Counts of values in [edge, next edge); the last bin includes its upper edge."""
    each = np.ones(len(values), dtype=np.int64) if counts is None else counts
    held, _ = np.histogram(values, edges, weights=None if counts is None else counts)
    below, above = int(each[values < edges[0]].sum()), int(each[values > edges[-1]].sum())
    return HistogramShape(np.asarray(edges, dtype=np.float64), held.astype(np.int64), below, above)


class BoxShape(Struct, frozen=True):
    """Quartiles, whiskers at p1 and p99 (not Tukey's 1.5 IQR: the share outside is then known), extremes.

    `outliers` holds at most `most_outliers` of the `outside` values beyond the whiskers, evenly by rank, the
    extremes always among them.
    """

    n: int
    low_whisker: float
    q1: float
    median: float
    q3: float
    high_whisker: float
    outliers: Floats
    outside: int


def box(values: Floats, most_outliers: int = 60, counts: Integers | None = None) -> BoxShape | None:
    """The box of a sample; None when it is empty."""
    if len(values) == 0:
        return None
    of = _Ranked.of(values, counts)
    low, high = of.quantile(0.01), of.quantile(0.99)
    sides = (("left", low), ("right", high))
    below, upto = (int(np.searchsorted(of.ascending, value, side)) for side, value in sides)  # type: ignore[call-overload]
    if of.reached is not None:
        below, upto = (int(of.reached[place - 1]) if place else 0 for place in (below, upto))
    outside = below + of.n - upto
    chosen = np.arange(outside)
    if outside > most_outliers:
        chosen = np.unique(np.linspace(0, outside - 1, most_outliers).round().astype(np.int64))
    ranks = np.where(chosen < below, chosen, chosen + upto - below) + 1
    return BoxShape(
        n=of.n,
        low_whisker=low,
        q1=of.quantile(0.25),
        median=of.quantile(0.5),
        q3=of.quantile(0.75),
        high_whisker=high,
        outliers=of.at(ranks),
        outside=outside,
    )


class EcdfShape(Struct, frozen=True):
    """The empirical distribution: `share` of the values lies at or below `value`; a step at each."""

    value: Floats
    share: Floats


ECDF_POINTS = 300
"""Steps of an empirical distribution that is drawn, at most."""


def ecdf(values: Floats, points: int = ECDF_POINTS, counts: Integers | None = None) -> EcdfShape:
    """The empirical distribution of values, thinned evenly by rank; least and greatest are in it."""
    of = _Ranked.of(values, counts)
    n = of.n
    ranks = np.unique(np.linspace(1, n, min(points, n)).round().astype(int)) if n else np.empty(0, dtype=int)
    return EcdfShape(of.at(ranks), ranks / max(n, 1))


class TailShape(Struct, frozen=True):
    """Values against their rarity: at `one_in` = 1000 one value in a thousand is at least `value`.

    `supported_to` is the rarity up to which the sample can be trusted (`samples_needed`); the rest of the curve
    shows what happened, not what to expect.
    """

    one_in: Floats
    value: Floats
    supported_to: float


def tail(values: Floats, points: int = 240, counts: Integers | None = None) -> TailShape:
    """Upper tail of values, on a logarithmic grid of rarity; the k-th of n is at n / (n - k + 1)."""
    of = _Ranked.of(values, counts)
    n = of.n
    if n == 0:
        return TailShape(np.empty(0), np.empty(0), 0.0)
    from_top = np.unique(np.geomspace(1, n, min(points, n)).round().astype(np.int64))[::-1]
    return TailShape(n / from_top, of.at(n - from_top + 1), 1 / (1 - largest_supported(n)))


class EnvelopeShape(Struct, frozen=True):
    """A series in time order; with `per_mark` > 1 only the least and greatest of each `per_mark` values are kept."""

    t: Floats
    value: Floats
    per_mark: int


def envelope(t: Floats, values: Floats, most: int) -> EnvelopeShape:
    """At most about `most` points of a series, its extremes always among them."""
    n = len(values)
    if n <= most:
        return EnvelopeShape(t, values, 1)
    size = -(-2 * n // max(most, 2))
    chunks = -(-n // size)
    padded = np.concatenate([values, np.full(chunks * size - n, values[-1])]).reshape(chunks, size)
    start = np.arange(chunks) * size
    picked = np.stack([start + padded.argmin(axis=1), start + padded.argmax(axis=1)], axis=1)
    picked = np.unique(np.minimum(picked.ravel(), n - 1))
    return EnvelopeShape(t[picked], values[picked], size)
