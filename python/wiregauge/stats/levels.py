"""Lasting changes of the level or the spread of a long series.

The counterpart within a run of `trend.change_points`, which takes a value per run with known uncertainty: here are
many values, heavy tails, and autocorrelation. The values are cut into equal blocks; the
blocks' medians (for the level) and median absolute deviations (for the spread) are replaced by their ranks, so
that no outlier and no distribution matters. A change is judged by the self-normalised CUSUM of Shao and Zhang
(Journal of the American Statistical Association 105, 2010), whose normaliser absorbs the autocorrelation,
on seeded intervals (Kovacs et al., Biometrika 110, 2023), so that a change that is later undone is found
too. The null distribution of the greatest statistic over all intervals was made by simulation, once per number
of blocks, so the false alarm rate holds for the whole search; its upper end is a table (`changes.npz`, made by
tools/null_of_changes.py, held by a test), as it takes seconds and never changes.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from itertools import groupby, pairwise
from math import log, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats.dependence import effective_n, inner
from wiregauge.stats.moments import Floats
from wiregauge.stats.ranks import average_ranks
from wiregauge.stats.steady import mann_kendall

FALSE_CHANGE = 0.01
"""Probability of any change in a stationary series, level and spread together."""
LEAST_BLOCK = 8
BLOCKS = (16, 32, 64, 128, 256)
"""Numbers of blocks that a series is cut into: the greatest that its length allows."""
_LEAST = 16
"""Blocks in the shortest interval that is tested."""
_SIMULATED = 4000
TABLED = 400
"""The number of greatest simulated maxima that are stored: a p-value above a tenth is never a finding."""


class Change(Struct, frozen=True):
    """From `before` to `after` at time `at` (95 % interval `low` to `high`); `kind` is "level" or "spread".

    Level: medians of the segments on either side. Spread: their median absolute deviations.
    """

    kind: str
    at: float
    low: float
    high: float
    before: float
    after: float
    p_value: float


class Course(Struct, frozen=True):
    """The changes of a series in order; or, where a straight line describes it better, its slope per unit of time.

    `tested` is False where the series is too short for a test.
    """

    changes: tuple[Change, ...]
    slope: float | None
    n: int
    blocks: int
    false_alarm: float
    tested: bool


def level_changes(t: Floats, values: Floats, *, false_alarm: float = FALSE_CHANGE) -> Course:
    """Changes of level and of spread of a series in the order of its times; NaN is left out.

    `false_alarm` is shared by level, spread and drift. A block holds eight values and three autocorrelation times at
    least; a series of fewer than 16 such blocks is not tested.
    """
    known = np.isfinite(t) & np.isfinite(values)
    order = np.flatnonzero(known)[np.argsort(t[known], kind="stable")]
    at, value = t[order], values[order]
    n = len(value)
    # A block must be longer than the memory, or blocks are as correlated as values.
    least = max(LEAST_BLOCK, 3 * _memory(value))
    fitting = [number for number in BLOCKS if n >= number * least]
    if not fitting:
        return Course((), None, n, 0, false_alarm, False)
    blocks = fitting[-1]
    size = n // blocks
    block = value[: blocks * size].reshape(blocks, size)
    medians = np.median(block, axis=1)
    middles = np.median(at[: blocks * size].reshape(blocks, size), axis=1)
    slope, places = _levels(middles, medians, false_alarm / 3)
    line = value - slope * (at - at[0]) if slope is not None else value
    found = _changes("level", at, line, places, size)
    # A change of level within a block would look like a wider spread.
    flat = _without(line, [change_at for change_at, _ in _located(at, line, places, size)])
    deviation = np.median(np.abs(flat[: blocks * size].reshape(blocks, size)), axis=1)
    spread = _segment(deviation, false_alarm / 3)
    found += _changes("spread", at, np.abs(flat), spread, size)
    found.sort(key=lambda change: change.at)
    return Course(tuple(found), slope, n, blocks, false_alarm, True)


def _memory(values: Floats) -> float:
    """Autocorrelation time in values: n over the effective n of ranks, the median of eight sections.

    Within sections and about their own lines, because a change of level or a drift would look like memory.
    """
    parts = [
        part
        for part in np.array_split(values[: 8 * (1 << 15)] if len(values) > 1 << 18 else values, 8)
        if len(part) > 8
    ]
    return (
        float(np.median([len(part) / effective_n(_ranks_about_line(part)) for part in parts]))
        if parts
        else 1.0
    )


def _ranks_about_line(values: Floats) -> Floats:
    ranks = average_ranks(values)
    at: Floats = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    rest: Floats = ranks - ranks.mean() - at * inner(at, ranks) / inner(at, at)
    return np.round(rest, 9)


def _levels(t: Floats, medians: Floats, false_alarm: float) -> tuple[float | None, list[tuple[int, float]]]:
    """Changes of the blocks' medians; or, where a line explains more, its slope and the changes beside it."""
    places = _segment(medians, false_alarm)
    if np.ptp(medians) == 0 or mann_kendall(medians) >= false_alarm:
        return None, places
    slope, intercept = _line(t, medians)
    edges = [0, *(place for place, _ in places), len(medians)]
    steps = np.concatenate([medians[a:b] - np.median(medians[a:b]) for a, b in pairwise(edges)])
    line = medians - intercept - slope * t
    n = len(medians)

    # Schwarz's criterion for Laplace errors: the cost of the parameters, and the size of the residuals.
    def cost(rest: Floats, parameters: int) -> float:
        return n * log(max(float(np.abs(rest).mean()), 1e-300)) + parameters * log(n) / 2

    if cost(line, 2) >= cost(steps, 2 * len(places) + 1):
        return None, places
    return slope, _segment(line, false_alarm)


def _line(t: Floats, values: Floats) -> tuple[float, float]:
    """Slope and intercept by the median of the slopes between all pairs (Theil 1950, Sen 1968); `t` ascending."""
    one, other = np.triu_indices(len(t), 1)
    slope = float(np.median((values[other] - values[one]) / (t[other] - t[one])))
    return slope, float(np.median(values) - slope * np.median(t))


def _segment(values: Floats, false_alarm: float) -> list[tuple[int, float]]:
    """The blocks at which a new segment begins, with p-values; the narrowest significant interval first."""
    if np.ptp(values) == 0:
        return []
    ranks = average_ranks(values)
    scales, null = _null(len(values))
    found: list[tuple[int, float]] = []
    judged = []
    for (length, scale), spans in zip(scales.items(), _by_length(len(values)), strict=True):
        begins = np.array([begin for begin, _ in spans])
        splits, statistic = _statistic(ranks[begins[:, None] + np.arange(length)])
        judged += [
            (float(value) / scale, int(begin), int(begin) + length, int(begin + split))
            for begin, split, value in zip(begins, splits, statistic, strict=True)
        ]
    for ratio, begin, end, place in sorted(judged, key=lambda entry: (entry[2] - entry[1], -entry[0])):
        p = (1 + float((null >= ratio).sum())) / (1 + _SIMULATED)
        # The narrowest significant interval has only one change (Baranowski, Chen and Fryzlewicz, 2019).
        if p < false_alarm and not any(begin < other < end for other, _ in found):
            found.append((place, p))
    return sorted(found)


def _statistic(ranks: NDArray[np.float64]) -> tuple[NDArray[np.int64], Floats]:
    """Greatest self-normalised CUSUM of each row and where the second part begins.

    T(k) = D(k)^2 / V(k) with D(k) the CUSUM at k over the square root of n, and V(k) the sum of squared CUSUMs within
    both parts over n^2.
    """
    rows, n = ranks.shape
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    s = np.concatenate([np.zeros((rows, 1)), np.cumsum(centred, axis=1)], axis=1)
    i = np.arange(n + 1, dtype=np.float64)
    squares, products, sums = np.cumsum(s**2, axis=1), np.cumsum(s * i, axis=1), np.cumsum(s, axis=1)
    k = np.arange(4, n - 3)
    at, before = slice(4, n - 3), slice(3, n - 4)
    length = k.astype(np.float64)
    end = s[:, at]
    # Sum over i <= k of (s_i - i / k s_k)^2, and its mirror image after k.
    first = squares[:, at] - 2 * end / length * products[:, at] + (end / length) ** 2 * np.cumsum(i**2)[at]
    rest = n - length
    j2 = rest * (rest + 1) * (2 * rest + 1) / 6
    tail_squares = squares[:, -1:] - squares[:, before]
    tail_products = n * (sums[:, -1:] - sums[:, before]) - (products[:, -1:] - products[:, before])
    second = tail_squares - 2 * end / rest * tail_products + (end / rest) ** 2 * j2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(end != 0, end**2 * n / np.maximum(first + second, 1e-9 * end**2), 0.0)
    best = np.argmax(ratio, axis=1)
    return (k[best]).astype(np.int64), ratio[np.arange(rows), best]


@lru_cache(maxsize=len(BLOCKS))
def _null(blocks: int) -> tuple[dict[int, float], Floats]:
    """The usual size of the statistic by length of the interval, and the greatest ratios to it under no change."""
    with (
        resources.files("wiregauge.stats").joinpath("changes.npz").open("rb") as file,
        np.load(file) as table,
    ):
        lengths, scales, greatest = (table[f"{name}-{blocks}"] for name in ("lengths", "scales", "greatest"))
    return dict(zip(lengths.tolist(), scales.tolist(), strict=True)), greatest


def simulated(blocks: int) -> tuple[dict[int, float], Floats]:
    """Computes the table for a number of blocks: scales by length, and the `TABLED` greatest ratios, descending."""
    rng = np.random.default_rng(blocks)
    ranks = np.argsort(rng.random((_SIMULATED, blocks)), axis=1).astype(np.float64)
    usual: dict[int, float] = {}
    greatest = np.zeros(_SIMULATED)
    for begin, end in _seeded(blocks):
        _, statistic = _statistic(ranks[:, begin:end])
        # One scale per length: a high quantile, so that short intervals, with heavier tails, do not dominate.
        scale = usual.setdefault(end - begin, float(np.quantile(statistic, 0.99)))
        greatest = np.maximum(greatest, statistic / scale)
    return usual, np.sort(greatest)[: -TABLED - 1 : -1]


def _by_length(blocks: int) -> list[list[tuple[int, int]]]:
    """The seeded intervals grouped by length, in the order in which the lengths first occur."""
    spans = _seeded(blocks)
    order = {length: place for place, length in enumerate(dict.fromkeys(end - begin for begin, end in spans))}
    ordered = sorted(spans, key=lambda span: order[span[1] - span[0]])
    return [list(group) for _, group in groupby(ordered, key=lambda span: span[1] - span[0])]


def _seeded(n: int) -> list[tuple[int, int]]:
    """Intervals of lengths n, n / sqrt 2, n / 2, ... that overlap by half."""
    found = []
    length = float(n)
    while length >= _LEAST:
        number = 2 * int(np.ceil(n / length)) - 1
        step = (n - length) / max(number - 1, 1)
        found += [(int(k * step), min(int(np.ceil(k * step + length)), n)) for k in range(number)]
        length /= sqrt(2)
    return list(dict.fromkeys(found))


def _without(values: Floats, places: list[int]) -> Floats:
    """The values minus the median of their segment."""
    edges = [0, *places, len(values)]
    return np.concatenate([values[a:b] - np.median(values[a:b]) for a, b in pairwise(edges) if b > a])


def _located(
    t: Floats, values: Floats, places: list[tuple[int, float]], size: int
) -> list[tuple[int, tuple[float, float]]]:
    """Index at which the values change, and the interval of its time, by signs about the half-way value."""
    found = []
    n = len(values)
    edges = [0, *(place * size for place, _ in places), n]
    for number, (place, _) in enumerate(places):
        coarse = place * size
        begin, end = edges[number], edges[number + 2]
        near = min(4 * size, coarse - begin, end - coarse)
        before, after = np.median(values[begin:coarse]), np.median(values[coarse:end])
        low, high = coarse - near, coarse + near
        above = (values[low:high] > (before + after) / 2).astype(np.float64)
        above = above if after > before else 1 - above
        sums = np.concatenate([[0.0], np.cumsum(above - 0.5)])
        index = low + int(np.argmin(sums))
        first, second = above[: index - low], above[index - low :]
        rise = (second.mean() if len(second) else 1.0) - (first.mean() if len(first) else 0.0)
        rest = np.concatenate([part - part.mean() for part in (first, second) if len(part)])
        worth = effective_n(rest) if len(rest) else 1.0
        variance = float(rest.var()) * len(rest) / worth
        # Bai (Review of Economics and Statistics 79, 1997): 95 % of the estimates lie within 11 variance / rise^2.
        reach = int(11 * variance / rise**2) + 1 if rise > 0 else near
        left, right = max(index - min(reach, 2 * near), 0), min(index + min(reach, 2 * near), n - 1)
        index = min(max(index, 1), n - 1)
        found.append((index, (float(t[left]), float(t[right]))))
    return found


def _changes(
    kind: str, t: Floats, values: Floats, places: list[tuple[int, float]], size: int
) -> list[Change]:
    located = _located(t, values, places, size)
    edges = [0, *(index for index, _ in located), len(values)]
    found = []
    for number, ((index, (low, high)), (_, p)) in enumerate(zip(located, places, strict=True)):
        before, after = values[edges[number] : index], values[index : edges[number + 2]]
        if len(before) and len(after):
            found.append(
                Change(kind, float(t[index]), low, high, float(np.median(before)), float(np.median(after)), p)
            )
    return found
