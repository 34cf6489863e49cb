"""Searches for possible recurrence in a series: spectra with summed harmonics, and folding at prominent periods.

This is only the search. It needs no significance level, because `modes` tests its findings and corrects for every
place that could have been searched. The steps are those of pulsar searching (Ransom, Eikenberry and Middleditch,
Astronomical Journal 124, 2002: whitened spectrum, incoherent sum of harmonics, folding) and of box least squares
(Kovacs, Zucker and Mazeh, Astronomy and Astrophysics 391, 2002: the window whose mean stands out most).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge import _native
from wiregauge.stats.medians import median_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_BINS = 1 << 19
LEAST_CYCLES = 4
"""The least number of cycles of a period in the series."""
_HARMONICS = (1, 2, 4, 8, 16)
"""Harmonics that are summed: powers of two, so that ordinates are found by shifting."""
_RARE = (0.1, 0.01, 1e-3, 1e-4)
"""Shares of the greatest values that are treated as events, so that noise does not hide rare bands."""
_PHASES = 128
_EQUAL = 1e-12
"""Relative difference below which sums differ only by rounding."""
_FEW = 2_000
"""The most events whose distances are computed one by one."""


class Levelled(Struct, frozen=True):
    """A detrended series: times from 0, ascending, and values `y`, compressed so that no outlier dominates.

    `y` = asinh(rise / scale): proportional for small rises, logarithmic for large ones, in the same order. `coarse`
    has the series in ever wider bins: time of the bin's middle, sum of `y`, number of values.
    """

    t: Floats
    rise: Floats
    y: Floats
    scale: float
    span: float
    spacing: float
    coarse: tuple[tuple[float, Floats, Floats, Floats], ...]
    memo: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    """Running sums by number of bins, computed on demand."""
    judged: dict[tuple[float, float, float], float] = field(default_factory=dict)
    """Results of `modes` for boxes, by period, start and duration: the search meets many of them again."""

    def without(self, keep: NDArray[np.bool_]) -> Levelled:
        """The series with only the values in `keep`; its span stays."""
        t, y = self.t[keep], self.y[keep]
        return Levelled(
            t, self.rise[keep], y, self.scale, self.span, self.spacing, _coarse(t, y, self.span, self.spacing)
        )

    def summed(self, width: float) -> tuple[Floats, Floats, Floats]:
        """As `at`, with running sums of `y` and of counts, each from 0."""
        t, y, count = self.at(width)
        if len(t) not in self.memo:
            self.memo[len(t)] = (
                np.concatenate([[0.0], np.cumsum(y)]),
                np.concatenate([[0.0], np.cumsum(count)]),
            )
        return t, *self.memo[len(t)]

    def at(self, width: float) -> tuple[Floats, Floats, Floats]:
        """Times, sums and counts in the widest bins of which sixteen fit into `width`; else single values."""
        for size, t, total, count in reversed(self.coarse):
            if size * 16 <= width:
                return t, total, count
        return self.t, self.y, np.ones(len(self.t))


def levelled(t: Floats, values: Floats) -> Levelled:
    """Detrends a series by a line through the medians of sixteen sections, and finds its scale."""
    order = np.argsort(t, kind="stable")
    at, value = t[order] - t[order[0]], values[order]
    rise = value - _course(at, value)
    rise -= median_of(rise)
    span = float(at[-1])
    gaps = np.diff(at)
    gaps = gaps[gaps > 0]
    spacing = median_of(gaps) if len(gaps) else span
    scale = scale_of(rise)
    y = np.arcsinh(rise / scale)
    return Levelled(at, rise, y, scale, span, spacing, _coarse(at, y, span, spacing))


def scale_of(rise: Floats) -> float:
    """Spread of the middle of the values; of a wider middle where that is 0, and 1 for constant values."""
    for low, high, per in (
        (25, 75, 1.349),
        (15.9, 84.1, 2.0),
        (5, 95, 3.29),
        (1, 99, 4.65),
        (0.1, 99.9, 6.18),
    ):
        bottom, top = np.percentile(rise, (low, high))
        if top > bottom:
            return float(top - bottom) / per
    return float(np.ptp(rise)) or 1.0


def _course(t: Floats, values: Floats) -> Floats:
    pieces = 16
    if len(values) < 16 * pieces:
        return np.full(len(values), median_of(values))
    size = len(values) // pieces
    middles = np.median(t[: size * pieces].reshape(pieces, size), axis=1)
    levels = np.median(values[: size * pieces].reshape(pieces, size), axis=1)
    # The ends continue straight, or a drift would bend there.
    for near, far, place in ((0, 1, 0.0), (-1, -2, float(t[-1]))):
        between = middles[near] - middles[far]
        slope = (levels[near] - levels[far]) / between if between else 0.0
        level = levels[near] + slope * (place - middles[near])
        middles = np.insert(middles, 0 if near == 0 else len(middles), place)
        levels = np.insert(levels, 0 if near == 0 else len(levels), level)
    return np.interp(t, middles, levels)


def _coarse(
    t: Floats, y: Floats, span: float, spacing: float
) -> tuple[tuple[float, Floats, Floats, Floats], ...]:
    found: list[tuple[float, Floats, Floats, Floats]] = []
    if not len(t):
        return ()
    size = 2 * spacing
    while span / size > 256:
        place = np.minimum(((t + spacing / 2) / size).astype(np.int64), int(span / size))
        # Only bins with values: between bursts there may be any number of empty ones.
        begins = np.append(True, np.diff(place) > 0)
        bin_of = np.cumsum(begins) - 1
        count = np.bincount(bin_of).astype(np.float64)
        total = np.bincount(bin_of, y).astype(np.float64)
        middles: Floats = (place[begins] + 0.5).astype(np.float64) * size
        found.append((size, middles, total, count))
        size *= 4
    return tuple(found)


class Candidate(Struct, frozen=True):
    """A prominent frequency (1/s, within about `error`) of `weights`, which are in bins of equal width."""

    score: float
    frequency: float
    error: float
    weights: Floats
    bin_width: float


def candidates(series: Levelled, most: int) -> list[Candidate]:
    """The most prominent frequencies, best first, at most `most`, after one that can never be prominent.

    The line of alternating values is the last of the spectrum and so no peak: twice their period replaces it.
    """
    slots = int(series.span / series.spacing) + 1
    # Bins of whole spacings with values in their middle avoid beats; whole bins fit into all coarser ones.
    width = series.spacing * -(-slots // MOST_BINS)
    used = int(series.span / width + 0.5) + 1
    whole = 64 if used < 1 << 14 else 1 << 12
    number = -(-used // whole) * whole
    if len(series.t) < 64:
        return []
    place = np.minimum((series.t / width + 0.5).astype(np.int64), used - 1)
    total = np.bincount(place, series.y, number).astype(np.float64)
    count = np.bincount(place, minlength=number).astype(np.float64)
    top = np.full(number, -np.inf)
    begins = np.flatnonzero(np.append(True, place[1:] != place[:-1])) if len(place) else np.zeros(0, np.int64)
    top[place[begins]] = np.maximum.reduceat(series.y, begins)
    found: list[Candidate] = []
    dense = _weights(total, count, top)[0]
    chosen = [Candidate(0.0, 1 / (4 * width), 1 / series.span, dense, width)] if dense.any() else []
    while number >= 64:
        for weights in _weights(total, count, top):
            found += _outstanding(weights, width)
            found += _common_gaps(weights, width)
        if number % 4:
            break
        total, count = (a.reshape(-1, 4).sum(axis=1) for a in (total, count))
        top = top.reshape(-1, 4).max(axis=1)
        number //= 4
        width *= 4
    found.sort(key=lambda candidate: -candidate.score)
    for candidate in found:
        near = [c for c in chosen if abs(c.frequency - candidate.frequency) < 1 / series.span]
        if len(near) < 2:
            chosen.append(candidate)
        if len(chosen) > most:
            break
    return chosen


def _weights(total: Floats, count: Floats, top: Floats) -> list[Floats]:
    """The bins' means in units of their own noise, and indicators of the bins with the greatest values."""
    some = count > 0
    dense = np.where(some, total / np.sqrt(np.maximum(count, 1)), 0.0)
    dense = np.where(some, np.clip(dense - median_of(dense[some]), -4, 8), 0.0)
    made = [dense]
    sizes: set[int] = set()
    for share in _RARE:
        above = top > np.quantile(top[some], 1 - share)
        size = int(above.sum())
        if 5 <= size <= len(top) // 4 and size not in sizes:
            sizes.add(size)
            made.append(above.astype(np.float64))
    return made


def _outstanding(weights: Floats, width: float) -> list[Candidate]:
    span = width * len(weights)
    centred = weights - weights.mean()
    power = np.abs(np.fft.rfft(centred)) ** 2
    power = power / np.maximum(_floor(power), 1e-300)
    power[:LEAST_CYCLES] = 0.0
    found = []
    for harmonics in _HARMONICS:
        first, last = LEAST_CYCLES * harmonics, len(power) - 1
        if last - first < 8:
            break
        at, summed = _native.harmonic_peaks(power, first, last, harmonics.bit_length() - 1)
        ordinates, heights = np.frombuffer(at, dtype=np.int64), np.frombuffer(summed)
        if not len(heights):
            continue
        best = np.argpartition(heights, -min(4, len(heights)))[-4:]
        # In a comb of lines all multiples of the true frequency are equally strong: take the lowest. Lines
        # between two ordinates lose up to 60 % of their power, hence the second, lower threshold.
        greatest = heights[best].max()
        lowest = {int(np.argmax(heights >= share * greatest)) for share in (0.7, 0.4)}
        for peak in dict.fromkeys([*sorted(lowest), *best.tolist()]):
            x = float(heights[peak])
            # Chernoff's bound of the tail of a sum of unit exponentials makes different sums comparable.
            score = x - harmonics - harmonics * np.log(x / harmonics) if x > harmonics else 0.0
            score *= 2.0 if peak in lowest else 1.0
            if score > 8:
                frequency = float(ordinates[peak]) / harmonics / span
                found.append(Candidate(float(score), frequency, 1 / harmonics / span, weights, width))
    return found


def _common_gaps(weights: Floats, width: float) -> list[Candidate]:
    """The most common distance of few events, up to the fourth next: clear where combs of lines crowd a spectrum."""
    events = np.flatnonzero(weights)
    # Adjacent raised bins are one event.
    events = events[np.append(True, np.diff(events) > 1)] if len(events) else events
    if not LEAST_CYCLES <= len(events) <= _FEW or len(np.unique(weights)) > 2:
        return []
    gaps = np.concatenate([events[lag:] - events[:-lag] for lag in range(1, 5)]).astype(np.float64)
    gaps = gaps[gaps >= 4]
    if not len(gaps):
        return []
    place = np.round(np.log(gaps) * 50).astype(np.int64)
    counts = np.bincount(place)
    common = int(np.argmax(counts))
    if counts[common] < LEAST_CYCLES - 1:
        return []
    period = median_of(gaps[place == common]) * width
    span = width * len(weights)
    error = max(width / period**2, 1 / max(_HARMONICS) / span)
    return [Candidate(4.0 * float(counts[common]), 1 / period, error, weights, width)]


def _floor(power: Floats) -> Floats:
    """The level of the spectrum without its lines: medians of blocks that grow with frequency."""
    edges = [LEAST_CYCLES]
    while edges[-1] < len(power):
        edges.append(edges[-1] + max(24, edges[-1] // 4))
    edges[-1] = len(power)
    if len(edges) > 2 and edges[-1] - edges[-2] < 24:
        del edges[-2]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    levels = [median / np.log(2) for median in _native.section_medians(power, edges)]
    least = float(power.mean()) * 1e-6
    course: Floats = np.maximum(np.interp(np.arange(len(power)), middles, levels), least)
    return course


class Box(Struct, frozen=True):
    """A recurring window: from `start` for `duration` in every `period`, s from the start of the series."""

    period: float
    start: float
    duration: float
    score: float = 0.0


def fold(candidate: Candidate) -> Box:
    """The most prominent window after folding the candidate's bins at and near its frequency."""
    frequency, width = candidate.frequency, candidate.bin_width
    phases = int(np.clip(1 / frequency / width, 4, _PHASES))
    rows = 16
    folded = np.frombuffer(_native.fold(candidate.weights, width, frequency, rows, phases)).reshape(rows, -1)
    folded = folded - folded.mean()
    span = width * len(candidate.weights)
    most = 1.5 * candidate.error * span
    drifts = np.arange(-most, most + 1e-12, 1 / phases)
    shift = np.round(drifts[:, None] * ((np.arange(rows) + 0.5) / rows) * phases).astype(np.int64)
    profiles = np.frombuffer(_native.superpose(folded, phases, shift)).reshape(-1, phases)
    ring = np.concatenate([np.zeros((len(drifts), 1)), np.cumsum(np.tile(profiles, 2), axis=1)], axis=1)
    best = (-np.inf, 0, 0, 1)
    for size in _sizes(phases):
        sums = (ring[:, size : size + phases] - ring[:, :phases]) / np.sqrt(size * (1 - size / phases))
        at = int(np.argmax(sums))
        if sums.flat[at] > best[0]:
            best = (float(sums.flat[at]), at // phases, at % phases, size)
    _, drift, place, size = best
    period = 1 / (frequency + drifts[drift] / span)
    return Box(period, place / phases * period, size / phases * period, candidate.score)


def _sizes(phases: int) -> list[int]:
    sizes = sorted({round(1.4142**k) for k in range(16)})
    return [size for size in sizes if size <= phases // 3] or [1]


def zoom(series: Levelled, box: Box) -> Box:
    """Refines a box with the values around it alone, in ever finer bins down to the spacing of the values."""
    cells, rows = 96, 32
    reach = max(2 * box.duration, 3 * box.period / _PHASES)
    for _ in range(4):
        zone = min(box.duration + 2 * reach, 0.95 * box.period)
        begin = box.start + box.duration / 2 - zone / 2
        t, y, count = series.at(box.duration)
        index, cycle = within(t, begin, box.period, zone)
        if len(index) < 8:
            return box
        after = t[index] - begin - cycle * box.period
        row = np.minimum((t[index] / series.span * rows).astype(np.int64), rows - 1)
        size = max(zone / cells, series.spacing / 4)
        number = int(zone / size)
        cell = row * number + np.clip((after / size).astype(np.int64), 0, number - 1)
        total = np.bincount(cell, y[index], rows * number).astype(np.float64).reshape(rows, number)
        counts = np.bincount(cell, count[index], rows * number).astype(np.float64).reshape(rows, number)
        level = median_of(y[index] / count[index])
        total = total - level * counts
        steps = int(np.clip(2 * reach / size, 2, 64))
        drifts = np.arange(-steps, steps + 1) * (2 * reach / steps)
        shift = np.round(drifts[:, None] * ((np.arange(rows) + 0.5) / rows - 0.5) / size).astype(np.int64)
        sums, held = laid_over(total, shift), laid_over(counts, shift)
        best = (-np.inf, 0, 0, 1)
        ahead = np.concatenate([np.zeros((len(drifts), 1)), np.cumsum(sums, axis=1)], axis=1)
        among = np.concatenate([np.zeros((len(drifts), 1)), np.cumsum(held, axis=1)], axis=1)
        for wide in sorted({round(1.25**k) for k in range(30)}):
            if wide > number // 2:
                break
            n = np.maximum(among[:, wide:] - among[:, :-wide], 1.0)
            score = (ahead[:, wide:] - ahead[:, :-wide]) / np.sqrt(n)
            top = float(score.max())
            if top > best[0]:
                best = (top, *_middle(score >= top - _EQUAL * abs(top)), wide)
        _, drift, place, wide = best
        cycles = series.span / box.period
        # A row at fraction f of the span is drift * (f - 1/2) late: correct period and start.
        period = box.period + drifts[drift] / cycles
        start = begin + place * size - drifts[drift] / 2
        box = Box(period, start % period, wide * size, box.score)
        if size <= series.spacing / 2 or wide >= number // 6:
            break
        reach = max(1.5 * box.duration, 3 * size)
    return box


def _middle(best: NDArray[np.bool_]) -> tuple[int, int]:
    """The middle of equally good places: with sparse values a window could drift until it meets the next ones."""
    rows = np.flatnonzero(best.any(axis=1))
    row = int(rows[len(rows) // 2])
    columns = np.flatnonzero(best[row])
    return row, int(columns[len(columns) // 2])


def laid_over(rows: Floats, shift: Integers) -> Floats:
    """For each row of `shift` the sum of all `rows`, each moved left by its own number and 0 beyond its ends."""
    number = rows.shape[1]
    most = min(int(np.abs(shift).max()), number)
    wide = np.pad(rows, ((0, 0), (most, most)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, number, axis=1)
    begins = np.clip(shift, -most, most) + most
    added = np.zeros((len(shift), number))
    for row, begin in zip(windows, begins.T, strict=True):
        added += row[begin]
    return added


def within(t: Floats, begin: float, period: float, length: float) -> tuple[Integers, Integers]:
    """Indices of the times in [begin + j period, + length) for all integers j, and the j of each."""
    first = int(np.floor((t[0] - begin) / period))
    last = int(np.ceil((t[-1] - begin) / period))
    starts = begin + np.arange(first, last + 1) * period
    low, high = np.searchsorted(t, starts), np.searchsorted(t, starts + length)
    sizes = high - low
    offset = np.repeat(low - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    index = offset + np.arange(int(sizes.sum()))
    return index.astype(np.int64), np.repeat(np.arange(first, last + 1), sizes).astype(np.int64)
