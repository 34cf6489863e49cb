"""One mode or several: the least number of peaks that a distribution can have and still lie close to the sample.

The number is a lower bound in Donoho's sense (Annals of Statistics 16, 1988): among all distributions within a band
around the empirical one, the taut string (Davies and Kovac, Annals of Statistics 29, 2001) has the fewest peaks, so
a distribution with k peaks gets more than k only if the sample left the band around it. For k = 1 this is the dip
test of Hartigan and Hartigan (Annals of Statistics 13, 1985): a string with one peak fits where the dip is below the
band's half-width. The half-width comes from the effective number of values. Density estimates with a
bandwidth chosen from the data find a mode in every group of outliers; a mixture of normal distributions needs
several of them for one skewed peak; with latencies both errors are the rule.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from wiregauge import _native
from wiregauge.stats.dependence import effective_n
from wiregauge.stats.moments import Floats
from wiregauge.stats.ranks import average_ranks

FALSE_PEAK = 0.01
"""Probability of finding a second mode in a unimodal distribution."""
CRITICAL = 0.8
"""Half-width of the band times the square root of n at which 1 % of uniform samples, the least favourable, need
two peaks.

By simulation (a test repeats it). Hartigan and Hartigan 1985, Table 1, have 0.70 for the dip, whose band is open at
its ends; the string is tied to 0 and 1 there.
"""
KNOTS = 1000
LEAST_VALUES = 20


class Peak(Struct, frozen=True):
    """A mode: the densest value, the values it extends between, and its share with a 95 % interval."""

    position: float
    low: float
    high: float
    weight: float
    weight_low: float
    weight_high: float


class Peaks(Struct, frozen=True):
    """The modes that the sample proves, ascending; empty below twenty values.

    `band` is the half-width of the band around the empirical distribution: a peak of less weight cannot be found.
    """

    peaks: tuple[Peak, ...]
    n: int
    n_effective: float
    band: float
    false_alarm: float


def peaks(values: Floats, *, resolution: float = 0.0, n_effective: float | None = None) -> Peaks:
    """The modes of a sample in measured order (NaN left out).

    `resolution` is the step of the values where it is known: a value represents all within half a step of it. Only if
    unknown (0) is it estimated from the values: queues make combs, too, without any rounding. `n_effective` replaces
    the effective n estimated from ranks.
    """
    known = values[np.isfinite(values)]
    n = len(known)
    if n < LEAST_VALUES:
        return Peaks((), n, float(n), 1.0, FALSE_PEAK)
    ascending = np.sort(known)
    if n_effective is None:
        n_effective = worth_of(known)
    worth = float(min(max(n_effective, 4.0), n))
    band = CRITICAL / np.sqrt(worth)
    if ascending[0] == ascending[-1]:
        only = Peak(float(ascending[0]), float(ascending[0]), float(ascending[0]), 1.0, 1.0, 1.0)
        return Peaks((only,), n, worth, float(band), FALSE_PEAK)
    step = max(resolution or _step(ascending), float(np.ptp(ascending)) * 1e-9)
    x, share = _empirical(ascending, step)
    edges, slopes = taut_string(x, share, float(band))
    found = []
    for begin, end, top, bottom in _humps(edges, slopes):
        inside = ascending[(ascending >= begin) & (ascending <= end)]
        if not len(inside):
            continue
        weight = len(inside) / n
        half = 1.96 * float(np.sqrt(weight * (1 - weight) / worth))
        dense = ascending[(ascending >= top - step / 2) & (ascending <= bottom + step / 2)]
        found.append(
            Peak(
                float(np.median(_densest(dense if len(dense) else inside))),
                float(inside[0]),
                float(inside[-1]),
                weight,
                max(weight - half, 0.0),
                min(weight + half, 1.0),
            )
        )
    return Peaks(tuple(found), n, worth, float(band), FALSE_PEAK)


def worth_of(values: Floats) -> float:
    """Effective number of independent values of a series, in measured order, for its distribution: that of its ranks.

    Equal values share a rank: their order in the series has no meaning.
    """
    return effective_n(average_ranks(values)) if len(values) else 0.0


def _step(ascending: Floats) -> float:
    """The grid step of the values, where most neighbours among at least eight distinct values are one step apart."""
    gaps = np.diff(np.unique(ascending))
    if len(gaps) < 8:
        return 0.0
    least = float(gaps.min())
    common = float(np.mean(np.abs(gaps - least) < 1e-6 * least))
    return least if common >= 0.5 else 0.0


def _empirical(ascending: Floats, step: float) -> tuple[Floats, Floats]:
    """The distribution of values that represent all within half a step, at knots of equal share."""
    n = len(ascending)
    picked = ascending[np.unique(np.linspace(0, n - 1, min(KNOTS, n)).round().astype(int))]
    x = np.unique(np.concatenate([picked - step / 2, picked + step / 2]))
    sums = np.concatenate([[0.0], np.cumsum(ascending)])

    def integral(at: Floats) -> Floats:
        below = np.searchsorted(ascending, at, side="right")
        area: Floats = at * below - sums[below]
        return area

    origin = ascending[0]
    ascending = ascending - origin
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    x = x - origin
    share = (integral(x + step / 2) - integral(x - step / 2)) / step / n
    share = np.maximum.accumulate(np.clip(share, 0.0, 1.0))
    share[0], share[-1] = 0.0, 1.0
    x = x + origin
    # Next to values many orders greater, neighbours coincide when they are moved: such a knot is kept once.
    apart = np.append(np.diff(x) > 0, True)
    return x[apart], np.concatenate([[0.0], share[apart][1:]])


def taut_string(x: Floats, share: Floats, band: float) -> tuple[Floats, Floats]:
    """Knots and slopes of the shortest line from (x_0, 0) to (x_n, 1) that stays within `band` of `share` at each x."""
    edges, heights = (np.frombuffer(one) for one in _native.taut_string(x, share, band))
    return edges, np.diff(heights) / np.diff(edges)


def _humps(edges: Floats, slopes: Floats) -> list[tuple[float, float, float, float]]:
    """Each local maximum of the slope: the valleys on either side, and its own begin and end."""
    if not len(slopes):
        return []
    merged: list[list[float]] = []
    for begin, end, slope in zip(edges[:-1], edges[1:], slopes, strict=True):
        if merged and abs(merged[-1][2] - slope) <= 1e-9 * max(abs(slope), abs(merged[-1][2])):
            merged[-1][1] = end
        else:
            merged.append([begin, end, slope])
    tops = [
        k
        for k, piece in enumerate(merged)
        if (k == 0 or merged[k - 1][2] < piece[2]) and (k == len(merged) - 1 or merged[k + 1][2] < piece[2])
    ]
    found = []
    begin = float(edges[0])
    for number, k in enumerate(tops):
        if number + 1 < len(tops):
            between = merged[k + 1 : tops[number + 1]]
            valley = min(between, key=lambda piece: piece[2])
            end = (valley[0] + valley[1]) / 2
        else:
            end = float(edges[-1])
        found.append((begin, end, merged[k][0], merged[k][1]))
        begin = end
    return found


def _densest(ascending: Floats) -> Floats:
    """The narrowest half of a sample, halved until few are left (half-sample mode, Bickel and Fruehwirth 2006)."""
    while len(ascending) > 16:
        half = len(ascending) // 2
        widths = ascending[half:] - ascending[: len(ascending) - half]
        start = int(np.argmin(widths))
        ascending = ascending[start : start + half + 1]
    return ascending
