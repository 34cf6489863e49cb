"""Recurring modes: bands that come every `period` for `duration` and lift a series by `height`.

Such modes, seen by eye in the robot paper of 2016 in 24 hours of round trips ("every 5.3 minutes for 15 s, up to
4 us"), are found, tested and measured. The search is in `folding`; the test that decides, the fit, and the
intervals are here.

The test needs no model of the noise. A period is cut into m windows of the mode's duration, the mode's own in the
middle. Without recurrence the middle window is the highest of its cycle with probability 1/m, whatever the distribution
of the values and their dependence within a cycle; so the number of cycles in which it is among the r highest
is binomial. The p-value is multiplied by the number of possible periods, starts, durations and ranks,
so that it holds for the whole search (family-wise, Bonferroni). Being in the middle, the window gains nothing from a
drift, and loses from a random walk, whose extremes lie at the ends of a cycle.
"""

from __future__ import annotations

from math import ceil, exp, log, log2

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.folding import (
    LEAST_CYCLES,
    Box,
    Floats,
    Levelled,
    candidates,
    fold,
    scale_of,
    within,
)
from wiregauge.stats.medians import median_of
from wiregauge.stats.moments import student_t

FALSE_MODE = 0.01
"""Probability of finding any mode in a series that has none."""
SEEN = 0.6
"""Share of its cycles in which a mode must be seen."""
_MOST_EDGES = 100_000
_MANY = 8
"""Values of a window above which one more or less does not matter."""
_CANDIDATES = 24
_FOLDED = 7
_SKIRT_ABOVE = 0.975
_SKIRT_SHARE = 0.05
_MOST_SKIRT = 64
_LEAST_BESIDE = 40


class Bounded(Struct, frozen=True):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


class Mode(Struct, frozen=True):
    """A band that recurs. Times in the unit of the series' times, `height` in that of its values.

    The band of cycle j lies in [start + j period, start + j period + duration]; `start` is on the series' time axis.
    It was seen in `bands` of `cycles` cycles; `highest` is the greatest rise in any of them.
    """

    period: Bounded
    duration: Bounded
    height: Bounded
    start: float
    bands: int
    cycles: int
    highest: float
    jitter: float
    p_value: float

    def inside_at(self, at: float) -> bool:
        """Whether a time lies in a band, or within the jitter of one."""
        margin = 3 * self.jitter
        return (at - self.start + margin) % self.period.value < self.duration.value + 2 * margin

    def inside(self, t: Floats, margin: float = 0.0) -> NDArray[np.bool_]:
        """Flags of the times in a band, or within `margin` of one."""
        phase = (t - self.start + margin) % self.period.value
        return phase < self.duration.value + 2 * margin


class Recurrence(Struct, frozen=True):
    """The modes found, highest first; the search limits; and flags of the values (in the order given) in no mode."""

    modes: tuple[Mode, ...]
    n: int
    shortest: float
    longest: float
    false_alarm: float
    apart: NDArray[np.bool_]


def holds(mode: Mode) -> bool:
    """Whether the least-squares fit confirms the test: a rise in at least three cycles and half of all.

    At a half or a third of a true period the test finds its bands, too, but only in a half or a third of the cycles.
    """
    return mode.height.low > 0 and mode.bands >= 3 and mode.bands > SEEN * mode.cycles


def best_folds(series: Levelled) -> list[Box]:
    boxes: list[Box] = []
    for candidate in candidates(series, _CANDIDATES):
        box = fold(candidate)
        alike = any(
            abs(box.period / other.period - 1) < box.duration / series.span
            and abs(box.start - other.start) < max(box.duration, other.duration)
            for other in boxes
        )
        if not alike:
            boxes.append(box)
        if len(boxes) == _FOLDED:
            break
    return boxes


def log_chance(series: Levelled, box: Box) -> float:
    """Logarithm of the family-wise p-value of a box, the best of three durations around it."""
    tried = []
    for stretch in (0.7, 1.0, 1.4):
        duration = box.duration * stretch
        start = box.start + (box.duration - duration) / 2
        tried.append(log_chance_of(series, Box(box.period, start, duration)))
    return min(tried)


def log_chance_of(series: Levelled, box: Box) -> float:
    place = (box.period, box.start, box.duration)
    if place not in series.judged:
        series.judged[place] = _judged(series, box)
    return series.judged[place]


def _judged(series: Levelled, box: Box) -> float:
    chance = _chances(series, box)
    if chance is None:
        return 0.0
    hit, held = chance
    cycles = len(held)
    best = 0.0
    middle = median_of(held)
    # At most a quarter: in a cycle that only rises or falls the middle window is also the middle in rank.
    for rank in sorted({1, int(middle / 64), int(middle / 16), int(middle / 4)} - {0}):
        share = float(np.mean(np.minimum(rank / held, 1.0)))
        if share < 1:
            # By Hoeffding (1956) the tail of unequal trials is bounded by that of equal ones with their mean.
            best = min(best, _log_tail(int((hit < rank).sum()), cycles, share))
    return min(0.0, best + _log_looks(series, box))


def _log_tail(hits: int, cycles: int, share: float) -> float:
    """Logarithm of the probability of at least so many hits; Chernoff's bound where a float would underflow."""
    tail = float(special.bdtrc(hits - 1, cycles, share))
    if tail > 1e-290:
        return log(tail)
    seen = hits / cycles
    missed = (1 - seen) * log((1 - seen) / (1 - share)) if seen < 1 else 0.0
    return -cycles * (seen * log(seen / share) + missed)


def _log_looks(series: Levelled, box: Box) -> float:
    """Logarithm of the number of possible boxes, weighted evenly over octaves of period and duration.

    Boxes count as different when they lie half a duration apart: in start, and in period after all cycles.
    """
    cycles = series.span / box.period
    windows = box.period / box.duration
    octaves = log2(max(series.span / (LEAST_CYCLES * 4 * series.spacing), 2))
    durations = 2 * log2(max(series.span / (3 * LEAST_CYCLES * series.spacing), 2))
    ranks = 4
    return log(4 * cycles * windows**2 * max(octaves, 1) * max(durations, 1) * ranks)


def _chances(series: Levelled, box: Box) -> tuple[NDArray[np.int64], Floats] | None:
    """For each cycle: how many other windows are at least as high as the middle one, and how many have values."""
    box = as_wide_as_spacing(series, box)
    t, sums, held = series.summed(box.duration)
    cycles = int(series.span / box.period) + 1
    half = int((box.period / box.duration - 1) / 2)
    half = min(half, max(int(_MOST_EDGES / cycles / 2), 4))
    if half < 1:
        return None
    begin = box.start - half * box.duration
    length = (2 * half + 1) * box.duration
    first = ceil((-begin - box.duration / 2) / box.period)
    last = int((series.span - begin - length + box.duration / 2) / box.period)
    if last - first + 1 < LEAST_CYCLES - 1:
        return None
    starts = begin + np.arange(first, last + 1) * box.period
    edges = starts[:, None] + np.arange(2 * half + 2)[None, :] * box.duration
    places = np.searchsorted(t, edges)
    number = np.diff(held[places], axis=1)
    total = np.diff(sums[places], axis=1)
    some = number > 0
    # Rounding of long sums must not decide between equal values.
    height = np.where(some, np.round(total / np.sqrt(np.maximum(number, 1)), 9), -np.inf)
    middle = height[:, half]
    # With skewed values a fuller window would be higher: each is compared with as many values.
    alike = some & ((number == number[:, half, None]) | (number[:, half, None] > _MANY))
    as_high = (alike & (height >= middle[:, None])).sum(axis=1) - 1
    windows = alike.sum(axis=1)
    use = some[:, half] & (windows >= 3)
    if int(use.sum()) < LEAST_CYCLES - 1:
        return None
    return as_high[use].astype(np.int64), windows[use].astype(np.float64)


def as_wide_as_spacing(series: Levelled, box: Box) -> Box:
    """The box, or one widened to the spacing if it is shorter and so empty in most cycles."""
    longer = max(series.spacing - box.duration, 0.0)
    return replace(box, start=box.start - longer / 2, duration=box.duration + longer)


def fit(series: Levelled, box: Box, log_p: float, origin: float) -> tuple[Mode | None, NDArray[np.bool_]]:
    """The mode by least squares, with intervals from the variation of its bands, and flags of its values."""
    period, duration = box.period, box.duration
    reach = min(max(1.5 * duration, 3 * series.spacing), (period - duration) / 2)
    begin = box.start - reach
    zone = duration + 2 * reach
    index, cycle = within(series.t, begin, period, zone)
    after = series.t[index] - begin - cycle * period
    rise = series.rise[index]
    core = (after >= reach) & (after < reach + duration)
    if not core.any() or core.all():
        return None, _mask(series, box, duration, 0.0)
    level = median_of(rise[~core])
    rise = rise - level
    height = median_of(rise[core])
    if height <= 0:
        return None, _mask(series, box, duration, 0.0)
    beside, _ = _levels(rise, after, cycle, reach, duration, 0.0)
    if not len(beside):
        return None, _mask(series, box, duration, 0.0)
    clear = (height / max(scale_of(beside), 1e-12 * height)) ** 2
    around = period if zone > 0.999 * period else None
    bands = _edges((rise, after, cycle), height, clear, series.spacing, around)
    if len(bands) < 3:
        return None, _mask(series, box, duration, 0.0)
    at, onset, end, low, inside, peak = (np.array(column) for column in zip(*bands, strict=True))
    middle = (onset + end) / 2
    # Bands taken for noise, or noise for bands, lie anywhere in the zone: they are left out of the fit.
    usual = median_of(middle)
    spread = 1.4826 * median_of(np.abs(middle - usual))
    true = np.abs(middle - usual) <= max(4 * spread, duration / 2, series.spacing)
    slope, slope_low, slope_high = _slope(at[true], middle[true])
    # An onset is seen only at the next value: that error is bounded, and averaging need not reduce it.
    number = float(np.ptp(at[true])) or 1.0
    grain = 1.5 * series.spacing / number if len(index) < 40 * len(bands) else 0.0
    residual = middle[true] - slope * at[true]
    jitter = 1.4826 * median_of(np.abs(residual - median_of(residual)))
    lengths = _mean((end - onset)[true], series.spacing)
    # Fitted edges follow the noise upwards, so the height is taken in the common window without its ends.
    ends = min(2 * jitter + series.spacing / 2, 0.4 * lengths.value)
    common = _levels(rise, after, cycle, median_of(residual) - lengths.value / 2, lengths.value, ends)
    shared = len(common[0]) >= 0.7 * len(np.unique(cycle)) and jitter < 0.25 * lengths.value
    heights = _mean(common[1] - common[0] if shared else (inside - low)[true], 0.0)
    onset_at = median_of(residual) - lengths.value / 2
    lengths, heights = _with_skirts(
        (rise, after - slope * cycle, cycle), onset_at, lengths, heights, series.spacing
    )
    new = period + slope
    start = begin + onset_at
    least = level + median_of(common[0] if shared else low[true]) + heights.value / 2
    bands_seen = _risen(series, Box(new, start, lengths.value), jitter, least)
    mode = Mode(
        period=Bounded(new, period + slope_low - grain, period + slope_high + grain),
        duration=Bounded(lengths.value, max(lengths.low, 0.0), lengths.high),
        height=heights,
        start=origin + start % new,
        bands=bands_seen,
        # A series begins and ends anywhere in a cycle, so it may have one band more than whole cycles.
        cycles=max(round(series.span / new), bands_seen),
        highest=float(np.max(peak[true] - low[true])),
        jitter=jitter,
        p_value=exp(log_p),
    )
    mask = _mask(series, Box(new, start, lengths.value), lengths.value, jitter)
    return mode, mask


def _with_skirts(
    folded: tuple[Floats, Floats, NDArray[np.int64]],
    onset: float,
    lengths: Bounded,
    heights: Bounded,
    spacing: float,
) -> tuple[Bounded, Bounded]:
    """The intervals of duration and height, widened where a band has skirts: raised values on either side.

    A band is fitted as a box, whose edges lie at half its height. If it rises or falls slowly, part of it is outside:
    the interval of the duration is extended to all of it, that of the height to the mean of all of it.
    `folded` are rise, time in the zone, and cycle of each value.
    """
    rise, after, cycle = folded
    end = onset + lengths.value
    beside = rise[(after < onset - lengths.value / 2) | (after >= end + lengths.value / 2)]
    if len(beside) < _LEAST_BESIDE:
        return lengths, heights
    level = median_of(beside)
    clear = max(float(np.quantile(beside, _SKIRT_ABOVE)), level + _SKIRT_SHARE * heights.value)
    before = _skirt(rise, onset - after, clear, spacing)
    behind = _skirt(rise, after - end, clear, spacing)
    if before + behind == 0:
        return lengths, heights
    chosen = (after >= onset - before) & (after < end + behind)
    _, of = np.unique(cycle[chosen], return_inverse=True)
    whole = _mean(np.bincount(of, rise[chosen]) / np.bincount(of) - level, 0.0)
    return (
        Bounded(lengths.value, lengths.low, lengths.high + before + behind),
        Bounded(heights.value, min(heights.low, whole.low), max(heights.high, whole.high)),
    )


def _skirt(rise: Floats, away: Floats, clear: float, spacing: float) -> float:
    """The distance from an edge over which the median of all cycles stays above `clear`, in steps of the spacing."""
    for step in range(_MOST_SKIRT):
        here = rise[(away > step * spacing) & (away <= (step + 1) * spacing)]
        if not len(here) or median_of(here) <= clear:
            return step * spacing
    return _MOST_SKIRT * spacing


def _levels(
    rise: Floats, after: Floats, cycle: NDArray[np.int64], onset: float, duration: float, ends: float
) -> tuple[Floats, Floats]:
    """Medians outside and inside a common window by cycle; values within `ends` of its edges are ignored."""
    inside = cycle_medians(rise, cycle, (after >= onset + ends) & (after < onset + duration - ends))
    beside = cycle_medians(rise, cycle, (after < onset - ends) | (after >= onset + duration + ends))
    _, of_beside, of_inside = np.intersect1d(beside[0], inside[0], assume_unique=True, return_indices=True)
    return beside[1][of_beside], inside[1][of_inside]


def cycle_medians(
    rise: Floats, cycle: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Floats]:
    """The cycles, ascending, with any of the chosen values, and the median of these in each."""
    r, of = rise[chosen], cycle[chosen]
    r, of = r[np.lexsort((r, of))], np.sort(of)
    cycles, begins, sizes = np.unique(of, return_index=True, return_counts=True)
    return cycles, (r[begins + (sizes - 1) // 2] + r[begins + sizes // 2]) / 2


def _edges(
    folded: tuple[Floats, Floats, NDArray[np.int64]],
    height: float,
    clear: float,
    spacing: float,
    around: float | None,
) -> list[tuple[float, float, float, float, float, float]]:
    """For each group of cycles: middle cycle, onset, end, level outside and inside, and the greatest value inside.

    Where one cycle does not show the band clearly, several are superposed. The least-squares box of a given
    height is the stretch with the greatest sum of (rise - height / 2). `folded` are rise, time in the zone, and cycle
    of each value; `around` is the period of a zone that is a whole cycle: then the first value follows the last one.
    """
    rise, after, cycle = folded
    numbers = np.unique(cycle)
    groups = int(np.clip(len(numbers) * min(clear / 25, 1.0), min(4, len(numbers)), 200))
    limits = np.searchsorted(cycle, numbers[np.linspace(0, len(numbers), groups + 1).astype(int)[1:-1]])
    found = []
    for part in np.split(np.arange(len(rise)), limits):
        if len(part) < 3:
            continue
        order = part[np.argsort(after[part], kind="stable")]
        x, r = after[order], rise[order]
        sums = np.concatenate([[0.0], np.cumsum(np.clip(r, -height, 2 * height) - height / 2)])
        least = np.minimum.accumulate(sums)
        last = int(np.argmax(sums - least))
        first = int(np.argmin(sums[: last + 1]))
        if last <= first:
            continue
        outside = np.concatenate([r[:first], r[last:]])
        if not len(outside):
            continue
        gap = spacing if groups == len(numbers) else 0.0
        gap = gap if around is None else max(around - float(x[-1] - x[0]), 0.0)
        before = (x[first - 1] + x[first]) / 2 if first > 0 else x[first] - gap / 2
        behind = (x[last - 1] + x[last]) / 2 if last < len(x) else x[-1] + gap / 2
        found.append(
            (
                float(np.mean(cycle[part])),
                float(before),
                float(behind),
                median_of(outside),
                median_of(r[first:last]),
                float(r[first:last].max()),
            )
        )
    return found


def _slope(at: Floats, middle: Floats) -> tuple[float, float, float]:
    """Delay of bands from cycle to cycle: the median of all slopes, with the wider of two intervals."""
    from scipy import stats as scipy_stats  # the import takes most of a second

    fit = scipy_stats.theilslopes(middle, at, 0.95)
    slope = float(fit[0])
    slack = _slack(at, middle - slope * at)
    return slope, min(float(fit[2]), slope - slack), max(float(fit[3]), slope + slack)


def _slack(at: Floats, residual: Floats) -> float:
    """Half-width of the 95 % interval of a slope by Student, from the residuals of a line."""
    n = len(at)
    variation = float(((at - at.mean()) ** 2).sum())
    if n < 3 or variation == 0:
        return 0.0
    spread = float(((residual - residual.mean()) ** 2).sum()) / (n - 2)
    return float(student_t(n - 2) * np.sqrt(spread / variation))


def _mean(values: Floats, grain: float) -> Bounded:
    """Mean over the bands, 20 % trimmed against outliers, with Yuen's interval and a bounded error."""
    n = len(values)
    cut = int(0.2 * n)
    ascending = np.sort(values)
    kept = ascending[cut : n - cut]
    winsorised = np.clip(ascending, kept[0], kept[-1])
    half = (
        student_t(max(len(kept) - 1, 1)) * float(np.std(winsorised, ddof=1)) / (0.6 * np.sqrt(n))
        if n > 1
        else 0.0
    )
    mean = float(kept.mean())
    return Bounded(mean, mean - half - grain, mean + half + grain)


def _risen(series: Levelled, box: Box, jitter: float, least: float) -> int:
    """The number of cycles in whose window, with jitter, half the values of a band rise above `least`."""
    margin = min(2 * jitter, (box.period - box.duration) / 4)
    wide = box.duration + 2 * margin
    index, cycle = within(series.t, box.start - margin, box.period, wide)
    if not len(index):
        return 0
    begins = np.flatnonzero(np.append(True, np.diff(cycle) > 0))
    high = np.add.reduceat((series.rise[index] > least).astype(np.float64), begins)
    number = np.diff(np.append(begins, len(index)))
    return int((high >= np.maximum(0.5 * number * box.duration / wide, 1)).sum())


def _mask(series: Levelled, box: Box, duration: float, jitter: float) -> NDArray[np.bool_]:
    """Flags of the values in the bands, with a margin for jitter and fit errors of edges."""
    # Edges lie midway between values: at half a spacing rounding would decide.
    margin = min(
        3 * jitter + 0.15 * duration + series.spacing, max((box.period - duration) / 8, 0.45 * series.spacing)
    )
    phase = (series.t - box.start + margin) % box.period
    mask: NDArray[np.bool_] = phase < duration + 2 * margin
    return mask
