"""Searches a series of any length for recurring modes, the most prominent first, until none is left.

A series too long to be searched value by value is divided into groups of equally many neighbours. Their maxima are
searched for rare and high bands, their medians for wide and low ones: two series of a hundred thousand values, whatever
the length of the whole. A finding is fitted to all values near its bands and removed from all values, and the search
restarts with groups of the rest. So a mode of one value in five seconds does not hide one of ten values in an hour,
and the test of `modes` remains valid: groups of values without recurrence do not recur.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.stats.folding import LEAST_CYCLES, Box, Floats, Levelled, levelled, scale_of, within, zoom
from wiregauge.stats.fundamentals import fundamental, shortened
from wiregauge.stats.modes import (
    FALSE_MODE,
    Bounded,
    Mode,
    Recurrence,
    best_folds,
    fit,
    holds,
    log_chance,
)

MOST_MODES = 8
LEAST_VALUES = 64
LONG = 1 << 18
"""Values above which a series is searched in groups."""
GROUPS = 1 << 17
KINDS = 2
"""The number of group series, each searched with its part of the false alarms: maxima and medians."""
BESIDE = 0.9
"""Share of the period around a band in which all values are fitted; wider bands are fitted by groups."""
SAME_PERIOD = 1e-3
"""Relative difference below which two periods count as the same."""
_MULTIPLES = (1, 2, 3, 5, 7)
_BATCH = 1 << 20
_ON_GRID = 12
_LOOKED_AT = 1 << 20

Flags = NDArray[np.bool_]


def find_modes(
    t: Floats, values: Floats, *, false_alarm: float = FALSE_MODE, most: int = MOST_MODES
) -> Recurrence:
    """The recurring modes of a series, sampled in any rhythm and given in any order; NaN is left out.

    `false_alarm` bounds the probability of any mode in a series without recurrence. Periods from four sample
    spacings (or 4 / 2^19 of the span) to a quarter of the span are searched, durations up to a third of the period;
    for more than `LONG` values those of at least four groups, a `GROUPS`th of the span each.
    """
    known = np.isfinite(t) & np.isfinite(values)
    apart = known.copy()
    place = np.flatnonzero(known)
    n = len(place)
    span = float(np.ptp(t[known])) if n else 0.0
    if n < LEAST_VALUES or span <= 0 or float(np.ptp(values[known])) == 0:
        return Recurrence((), n, 0.0, 0.0, false_alarm, apart)
    search = _in_groups if n > LONG else _value_by_value
    if n == len(t) and bool((t[1:] >= t[:-1]).all()):
        # The usual case of a run: long series are not copied.
        found, banded, spacing = search(t, values, false_alarm, most)
        apart &= ~banded
    else:
        order = place[np.argsort(t[known], kind="stable")]
        found, banded, spacing = search(t[order], values[order], false_alarm, most)
        apart[order[banded]] = False
    grid = resolution(values[known])
    if grid:
        found = [replace(mode, height=_widened(mode.height, grid)) for mode in found]
    found.sort(key=lambda mode: -mode.height.value)
    shortest = max(4 * spacing, 4 * span / (1 << 19))
    return Recurrence(tuple(found), n, shortest, span / LEAST_CYCLES, false_alarm, apart)


def resolution(values: Floats) -> float:
    """The step of the grid that values lie on, as those of a coarse clock do; 0 without a grid.

    A grid needs at least `_ON_GRID` distinct values whose distances are all multiples of the least of them.
    """
    some = np.unique(values[:: max(len(values) // _LOOKED_AT, 1)])
    if len(some) < _ON_GRID or len(some) > _LOOKED_AT // 10:
        return 0.0
    steps = np.diff(some)
    least = float(steps.min())
    return least if bool((np.abs(steps / least - np.round(steps / least)) < 1e-6).all()) else 0.0


def _widened(bounded: Bounded, grid: float) -> Bounded:
    """The interval widened by half a grid step: medians on a grid are off by that much, which no averaging removes."""
    return Bounded(bounded.value, bounded.low - grid, bounded.high + grid)


def _value_by_value(
    t: Floats, values: Floats, false_alarm: float, most: int
) -> tuple[list[Mode], Flags, float]:
    """The modes, flags of the values in their bands, and the spacing of the searched series."""
    origin = float(t[0])
    whole = levelled(t, values)
    kept = np.ones(len(t), dtype=np.bool_)
    banded = np.zeros(len(t), dtype=np.bool_)
    left = whole
    found: list[Mode] = []
    log_alpha = log(false_alarm)
    # The few values left between many bands recur as they do.
    enough = max(LEAST_VALUES, len(t) // 4)
    while len(found) < most:
        before = len(found)
        pending = list(dict.fromkeys(one for box in best_folds(left) for one in _looked_at(left, box)))
        while pending and len(found) < most:
            judged = sorted(((log_chance(left, box), box) for box in pending), key=lambda pair: pair[0])
            log_p, box = judged[0]
            pending = [b for lp, b in judged[1:] if lp < log_alpha + 5]
            if log_p >= log_alpha:
                break
            log_p, box = fundamental(left, box, [mode.period.value for mode in found])
            mode, mask = _fitted_at_multiples(left, box, log_p, origin)
            taken = np.flatnonzero(kept)[mask]
            kept[taken] = False
            left = whole.without(kept)
            if mode is not None and not any(_beside(mode, other, 1.5) for other in found):
                found.append(mode)
                banded[taken] = True
            if len(left.t) < enough:
                break
        if len(found) == before or len(left.t) < enough:
            break
    return found, banded, whole.spacing


def _looked_at(series: Levelled, box: Box) -> tuple[Box, Box]:
    """The refined box, and the same at the shortest equivalent period: the better one if bands are alike."""
    sharp = zoom(series, box)
    return sharp, shortened(series, sharp)


def _fitted_at_multiples(
    series: Levelled, box: Box, log_p: float, origin: float
) -> tuple[Mode | None, Flags]:
    """The mode of a box, and its values; if it is not seen at its period, at the least multiple where it is.

    A band that beats with the sampling is seen in only some of its cycles, but in all cycles of the beat.
    """
    first: Flags | None = None
    for times in _MULTIPLES:
        at = box if times == 1 else zoom(series, replace(box, period=box.period * times))
        if at.period >= series.span / LEAST_CYCLES:
            break
        mode, mask = fit(series, at, log_p, origin)
        if mode is not None and holds(mode):
            return mode, mask
        first = mask if first is None else first
    return None, fit(series, box, log_p, origin)[1] if first is None else first


def _in_groups(t: Floats, values: Floats, false_alarm: float, most: int) -> tuple[list[Mode], Flags, float]:
    """As `_value_by_value`, for many values."""
    kept = np.ones(len(t), dtype=np.bool_)
    banded = np.zeros(len(t), dtype=np.bool_)
    spacing = float(t[-1] - t[0]) / (len(t) - 1)
    short = _too_short_for_groups(t, values, false_alarm, most)
    found: list[Mode] = []
    refused: list[float] = []
    for _ in range(3 * most):
        best = _best(t, values, kept, false_alarm, refused)
        if best is None or len(found) == most:
            break
        mode = _fitted(t, values, kept, spacing, *best)
        # With groups of `size` neighbours a short period appears as a common multiple of both.
        size = ceil(len(t) / GROUPS)
        if mode is None or any(_is_multiple(mode.period.value, one.period.value, size) for one in short):
            refused.append(best[3].period)
            continue
        mask = mode.inside(t, 3 * mode.jitter + 0.05 * mode.duration.value + spacing) & kept
        kept &= ~mask
        banded |= mask
        beside = next((place for place, other in enumerate(found) if _beside(mode, other)), None)
        if beside is None:
            found.append(mode)
        elif mode.height.value > found[beside].height.value:
            found[beside] = mode
        if not mask.any() or np.count_nonzero(kept) < len(t) // 4:
            break
    return [*short, *found][:most], banded, (t[-1] - t[0]) / GROUPS


def _too_short_for_groups(t: Floats, values: Floats, false_alarm: float, most: int) -> list[Mode]:
    """Modes with periods shorter than four groups, from the first values one by one, confirmed by the last."""
    longest = 4 * float(t[-1] - t[0]) / GROUPS
    first, _, _ = _value_by_value(t[:GROUPS], values[:GROUPS], false_alarm, most)
    first = [mode for mode in first if mode.period.value < longest]
    if not first:
        return []
    last, _, _ = _value_by_value(t[-GROUPS:], values[-GROUPS:], false_alarm, most)
    return [
        mode
        for mode in first
        if any(abs(mode.period.value / other.period.value - 1) < SAME_PERIOD for other in last)
    ]


def _is_multiple(period: float, short: float, most: int) -> bool:
    ratio = period / short
    return round(ratio) <= most and abs(ratio - round(ratio)) < SAME_PERIOD * ratio


def _beside(mode: Mode, other: Mode, least: float = 1.0) -> bool:
    """Whether one mode is what the fit of the other left at the edges of its bands, at its period or a multiple.

    `least` is the least ratio of their periods: two bands of one period may well lie side by side.
    """
    ratio = max(mode.period.value, other.period.value) / min(mode.period.value, other.period.value)
    shorter = min(mode.period.value, other.period.value)
    apart = (mode.start - other.start + shorter / 2) % shorter - shorter / 2
    return (
        least < ratio + 1e-3 < 4.5
        and abs(ratio - round(ratio)) < 1e-3
        and abs(apart) < 2 * max(mode.duration.value, other.duration.value)
    )


def _best(
    t: Floats, values: Floats, kept: Flags, false_alarm: float, refused: list[float]
) -> tuple[Levelled, float, float, Box, float] | None:
    """The most prominent recurrence in groups of the values in `kept`: series, start, threshold, box, p-value."""
    best: tuple[Levelled, float, float, Box, float] | None = None
    at, highest, middle = grouped(t, values, kept)
    # Values below the usual maximum of a group belong to no rare band, however often they occur.
    for of_groups, above in ((highest, float(np.median(highest))), (middle, -np.inf)):
        if float(np.ptp(of_groups)) == 0:
            continue
        series = levelled(at, of_groups)
        for sharp in dict.fromkeys(one for box in best_folds(series) for one in _looked_at(series, box)):
            log_p = log_chance(series, sharp) + log(KINDS)
            if log_p >= log(false_alarm) or (best is not None and log_p >= best[4]):
                continue
            log_p, settled = fundamental(series, sharp)
            if not any(abs(settled.period / period - 1) < 1e-3 for period in refused):
                best = series, float(at[0]), above, settled, log_p + log(KINDS)
    return best


def grouped(t: Floats, values: Floats, kept: Flags) -> tuple[Floats, Floats, Floats]:
    """Mean time, maximum and median of groups of equally many neighbours among the values in `kept`."""
    size = max(ceil(int(np.count_nonzero(kept)) / GROUPS), 1)
    left = np.flatnonzero(kept)
    place = left[: len(left) - len(left) % size].reshape(-1, size)
    rows = max(_BATCH // size, 1)
    parts = [
        (t[some].mean(axis=1), held.max(axis=1), np.median(held, axis=1))
        for begin in range(0, len(place), rows)
        for some in [place[begin : begin + rows]]
        for held in [values[some]]
    ]
    at, highest, middle = (np.concatenate(column) for column in zip(*parts, strict=True))
    return at, highest, middle


def _fitted(  # noqa: PLR0913 - the state of one search, which nothing else shares
    t: Floats,
    values: Floats,
    kept: Flags,
    spacing: float,
    series: Levelled,
    at: float,
    above: float,
    box: Box,
    log_p: float,
) -> Mode | None:
    """The mode fitted to all values near its bands, or to groups; None where neither confirms it."""
    origin = float(t[0])
    start = box.start + at - origin
    reach = max(box.duration, series.spacing) + 2 * spacing
    zone = box.duration + 2 * reach
    coarse, _ = fit(series, box, log_p, at)
    if zone < BESIDE * box.period:
        index, _ = within(t, origin + start - reach, box.period, zone)
        index = index[kept[index]]
        rise = values[index] - float(np.median(values[index]))
        scale = scale_of(rise)
        close = Levelled(
            t[index] - origin,
            rise,
            np.where(values[index] > above, np.arcsinh(rise / scale), 0.0),
            scale,
            float(t[-1]) - origin,
            spacing,
            (),
        )
        wanted = Box(box.period, start % box.period, box.duration)
        if box.duration <= 2 * series.spacing:
            # Groups do not show how short the band is: use the place in the cycle with the highest values.
            phase = (close.t - start + reach) % box.period
            cell = (phase / spacing).astype(np.int64)
            heights = np.bincount(cell, close.y) / np.maximum(np.bincount(cell), 1)
            peak = start - reach + int(np.argmax(heights)) * spacing
            wanted = Box(box.period, peak % box.period, spacing)
        fine, _ = fit(close, zoom(close, wanted), log_p, origin)
        # A fine fit much lower than that of the groups is something else next to the band.
        if (
            fine is not None
            and holds(fine)
            and (coarse is None or fine.height.value > coarse.height.value / 2)
        ):
            return fine
    return coarse if coarse is not None and holds(coarse) else None
