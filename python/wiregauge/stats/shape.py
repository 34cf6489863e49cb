"""The shape of a sample, small enough to draw: density, histogram, box, tail, envelope.

All of them are deterministic and bounded in size, whatever the size of the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats.quantiles import largest_supported, quantile

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DensityShape:
    """A kernel density estimate on a grid.

    `y` integrates to `n / (n + outside)`: per unit of `x`, or per decade when `log`. `outside` counts the values that
    the grid does not show: beyond its range, or not positive on a logarithmic axis. `constant` is the value that all
    shown values have in common, None where they differ: it has no density, and is to be drawn as a line at its place.
    """

    x: Floats
    y: Floats
    log: bool
    n: int
    outside: int
    constant: float | None = None


def density(
    values: Floats, *, log: bool = False, span: tuple[float, float] | None = None, points: int = 400
) -> DensityShape:
    """Gaussian kernel density with Silverman's bandwidth, binned linearly and convolved by FFT.

    `span` fixes the range in the unit of the values; without it the grid covers the data and its margins. The
    bandwidth is that of the values in view, and the work is bounded by `values` and `points`, whatever the values are.
    """
    total = len(values)
    shown = values[values > 0] if log else values
    placed: Floats = np.log10(shown) if log else shown.astype(np.float64)
    if len(placed) == 0:
        empty = np.empty(0)
        return DensityShape(empty, empty, log, 0, total)
    low, high, width = _view(placed, span, points, log=log)
    step = (high - low) / (points - 1)
    # A kernel narrower than the grid would be sampled away; one as wide as the picture says no more than a wider one.
    width = min(max(width, step), (high - low) / 4)
    margin = int(np.ceil(4 * width / step))
    size = points + 2 * margin
    position = (placed - low) / step + margin
    inside = (position >= 0) & (position <= size - 1)
    left = np.floor(position[inside]).astype(np.int64)
    part = position[inside] - left
    weights = np.bincount(left, 1 - part, size + 1) + np.bincount(left + 1, part, size + 1)
    offsets = np.arange(-margin, margin + 1) * step / width
    kernel = np.exp(-0.5 * offsets**2)
    kernel /= kernel.sum()
    length = 1 << int(size + len(kernel)).bit_length()
    smooth = np.fft.irfft(np.fft.rfft(weights, length) * np.fft.rfft(kernel, length), length)
    y = np.maximum(smooth[2 * margin : 2 * margin + points], 0.0) / (total * step)
    grid: Floats = low + step * np.arange(points, dtype=np.float64)
    x: Floats = np.power(10.0, grid) if log else grid
    view = (placed >= low) & (placed <= high)
    within = int(np.count_nonzero(view))
    seen = shown[view]
    same = float(seen[0]) if within and float(seen.min()) == float(seen.max()) else None
    return DensityShape(x, y, log, within, total - within, same)


def _view(
    placed: Floats, span: tuple[float, float] | None, points: int, *, log: bool
) -> tuple[float, float, float]:
    """The range of the grid and the bandwidth, which are never so close that the grid has no steps."""
    if span is None:
        low, high = float(placed.min()), float(placed.max())
        # The margins must hold the kernel as it will be drawn, and none is drawn narrower than the grid.
        width = max(_bandwidth(placed), (high - low) / (points - 7))
        return low - 3 * width, high + 3 * width, width
    low, high = (float(np.log10(s)) if log else float(s) for s in span)
    seen = placed[(placed >= low) & (placed <= high)]
    # What lies outside may be farther away than the picture is wide: it says nothing of the values in it.
    width = _bandwidth(seen if len(seen) else placed)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return low - 3 * width, high + 3 * width, width
    return low, high, width


def _bandwidth(placed: Floats) -> float:
    ascending = np.sort(placed)
    spread = float(ascending.std())
    quartiles = (quantile(ascending, 0.75) - quantile(ascending, 0.25)) / 1.349
    scale = min((s for s in (spread, quartiles) if s > 0), default=0.0)
    smallest = max(float(np.abs(ascending[[0, -1]]).max()), 1.0) * 1e-9
    return max(0.9 * scale / math.pow(len(ascending), 0.2), smallest)


@dataclass(frozen=True, slots=True)
class HistogramShape:
    """Counts between edges; `below` and `above` fall outside them, so that all counts add to n."""

    edges: Floats
    counts: Integers
    below: int
    above: int


def histogram(values: Floats, edges: Floats) -> HistogramShape:
    """Counts of values in [edge, next edge); the last bin includes its upper edge."""
    counts, _ = np.histogram(values, edges)
    below = int(np.count_nonzero(values < edges[0]))
    above = int(np.count_nonzero(values > edges[-1]))
    return HistogramShape(np.asarray(edges, dtype=np.float64), counts.astype(np.int64), below, above)


@dataclass(frozen=True, slots=True)
class BoxShape:
    """Quartiles, whiskers at p1 and p99 (not Tukey's 1.5 IQR: ours say which share lies outside), extremes.

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


def box(values: Floats, most_outliers: int = 60) -> BoxShape | None:
    """The box of a sample; None when it is empty."""
    if len(values) == 0:
        return None
    ascending = np.sort(values)
    low, high = quantile(ascending, 0.01), quantile(ascending, 0.99)
    beyond = ascending[(ascending < low) | (ascending > high)]
    shown = beyond
    if len(beyond) > most_outliers:
        shown = beyond[np.unique(np.linspace(0, len(beyond) - 1, most_outliers).round().astype(int))]
    return BoxShape(
        n=len(ascending),
        low_whisker=low,
        q1=quantile(ascending, 0.25),
        median=quantile(ascending, 0.5),
        q3=quantile(ascending, 0.75),
        high_whisker=high,
        outliers=shown,
        outside=len(beyond),
    )


@dataclass(frozen=True, slots=True)
class EcdfShape:
    """The empirical distribution: `share` of the values lies at or below `value`; a step at each."""

    value: Floats
    share: Floats


def ecdf(ascending: Floats, points: int = 300) -> EcdfShape:
    """The empirical distribution of values in ascending order, thinned evenly by rank; least and greatest are in it."""
    n = len(ascending)
    ranks = np.unique(np.linspace(1, n, min(points, n)).round().astype(int)) if n else np.empty(0, dtype=int)
    return EcdfShape(ascending[ranks - 1], ranks / max(n, 1))


@dataclass(frozen=True, slots=True)
class TailShape:
    """Values against how rare they are: at `one_in` = 1000 one value in a thousand is at least `value`.

    `supported_to` is the rarity up to which the sample can be trusted (`samples_needed`); the rest of the curve is
    what happened, not what to expect.
    """

    one_in: Floats
    value: Floats
    supported_to: float


def tail(ascending: Floats, points: int = 240) -> TailShape:
    """Upper tail of values in ascending order, on a logarithmic grid of rarity; the k-th of n is at n / (n - k + 1)."""
    n = len(ascending)
    if n == 0:
        return TailShape(np.empty(0), np.empty(0), 0.0)
    from_top = np.unique(np.geomspace(1, n, min(points, n)).round().astype(int))[::-1]
    return TailShape(n / from_top, ascending[n - from_top], 1 / (1 - largest_supported(n)))


@dataclass(frozen=True, slots=True)
class EnvelopeShape:
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
