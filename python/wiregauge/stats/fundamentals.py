"""The fundamental period of a band: the smallest that explains the series as well as any.

Folding finds a band of period T at 2 T, 3 T and 2/3 T as well. The first criterion is the least p-value. It is not
enough, as a longer period has more places for a band, so that each of its cycles weighs more. The second is the
content: at m times the period the band's places there (its turns) are equally high, or the pattern is longer; at a
fraction of it they are equally high, or the period is not shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge.stats.folding import LEAST_CYCLES, Box, Floats, Levelled, zoom
from wiregauge.stats.medians import median_of
from wiregauge.stats.modes import as_wide_as_spacing, log_chance, log_chance_of

_PRIMES = (2, 3, 5, 7, 11, 13)
_ALIKE = 0.1
"""Turns are alike if their heights differ by at most this share of the greatest, or by chance."""
_SURE = 4.0
"""Standard errors of a significant difference, among some hundred comparisons."""


def fundamental(series: Levelled, box: Box, known: Sequence[float] = ()) -> tuple[float, Box]:
    """The logarithm of the p-value of the recurrence, and the box at the band's fundamental period.

    `known`: periods of bands removed from the series.
    """
    log_p, box = _likeliest(series, box)
    box = as_wide_as_spacing(series, box)
    settled = shortened(series, _lengthened(series, box, known))
    if settled is box:
        return log_p, box
    # Recurrence at a period implies recurrence at its multiples, so a proof at one of them is enough.
    return min(log_p, log_chance(series, settled)), settled


def _likeliest(series: Levelled, box: Box) -> tuple[float, Box]:
    """The box, or repeatedly the one at a multiple or fraction of its period with a lower p-value."""
    for _ in range(6):
        best = (log_chance_of(series, box), box)
        for factor in (0.5, 1 / 3, 0.25, 0.2, 2.0, 3.0):
            period = box.period * factor
            if not 2 * box.duration < period < series.span / LEAST_CYCLES:
                continue
            for turn in range(max(round(factor), 1)):
                same = Box(period, (box.start + turn * box.period) % period, box.duration, box.score)
                for other in (same, zoom(series, same)):
                    found = log_chance_of(series, other)
                    if found < best[0] - 1:
                        best = (found, other)
        if best[1] is box:
            break
        box = best[1]
    return log_chance(series, box), box


def _lengthened(series: Levelled, box: Box, known: Sequence[float]) -> Box:
    """The box, or its highest turn at the least multiple of its period whose turns are not alike.

    Neither are turns that were removed with a band of that multiple.
    """
    taken = {
        times
        for period in known
        for times in _PRIMES
        if (left := (times * box.period + period / 2) % period - period / 2)
        and abs(left) * series.span < box.duration * times * box.period
    }
    for times in _PRIMES:
        longer = replace(box, period=box.period * times)
        if longer.period >= series.span / LEAST_CYCLES:
            break
        level, error = _turns(series, longer, times)
        seen = np.isfinite(level)
        if not seen.any() or (times not in taken and not seen.all()):
            continue
        most, least = float(np.nanmax(level)), float(np.nanmin(level))
        if not seen.all() or (least < most / 2 and most - least > _SURE * error):
            turn = int(np.nanargmax(level))
            return zoom(series, replace(longer, start=(box.start + turn * box.period) % longer.period))
    return box


def shortened(series: Levelled, box: Box) -> Box:
    """The box at the smallest fraction of its period whose turns are all alike."""
    for parts in _PRIMES:
        shorter = replace(box, period=box.period / parts)
        while shorter.period >= 1.5 * max(box.duration, series.spacing):
            level, error = _turns(series, box, parts)
            if not float(np.ptp(level)) <= max(_ALIKE * abs(float(level.max())), _SURE * error):
                break
            if not level.min() > level.max() / 2:
                break
            box = replace(shorter, start=box.start % shorter.period)
            shorter = replace(box, period=box.period / parts)
    return box


def _turns(series: Levelled, box: Box, parts: int) -> tuple[Floats, float]:
    """Heights of a box's window and of the corresponding ones in the other parts of the period, above the rest.

    Medians over all cycles, and the greatest standard error of a difference of two; NaN for too few cycles with values.
    """
    box = as_wide_as_spacing(series, box)
    wide = box.duration
    t, sums, held = series.summed(wide)
    cycles = max(int((series.span - box.period) / box.period), 0)
    begin = box.start + np.arange(cycles + 1) * box.period
    starts = begin[:-1, None] + np.arange(parts)[None, :] * (box.period / parts)
    first, last = np.searchsorted(t, starts), np.searchsorted(t, starts + wide)
    number, total = held[last] - held[first], sums[last] - sums[first]
    edge = np.searchsorted(t, begin)
    between = np.diff(held[edge]) - number.sum(axis=1)
    rest = (np.diff(sums[edge]) - total.sum(axis=1))[between > 0] / between[between > 0]
    floor = series.scale * float(np.sinh(median_of(rest))) if len(rest) else 0.0
    level, error = np.full(parts, np.nan), 0.0
    for turn in range(parts):
        some = number[:, turn] > 0
        rise = series.scale * np.sinh(total[some, turn] / number[some, turn]) - floor
        if len(rise) >= LEAST_CYCLES - 1:
            level[turn] = median_of(rise)
            # The standard error of a median of normal values is a quarter greater than that of their mean.
            spread = 1.2533 * 1.4826 * median_of(np.abs(rise - level[turn]))
            error = max(error, spread * float(np.sqrt(2 / len(rise))))
    return level, error
