"""Steps in a short history of figures with uncertainties: one value per run, tens of runs."""

from __future__ import annotations

from math import sqrt

import numpy as np

from wiregauge.stats import special
from wiregauge.stats.moments import Floats, student_t
from wiregauge.stats.shift import Estimate, differ, normal_factor

FALSE_ALARM = 0.05
_Z95 = 1.959963984540054


def change_points(
    values: Floats, half_widths: Floats, *, false_alarm: float = FALSE_ALARM, resolution: float = 0.0
) -> list[int]:
    """Positions k where the level of `values` steps between k - 1 and k, ascending; by binary segmentation.

    A stretch is split where the two-sample t of its halves is greatest, if that t has less than `false_alarm` chance
    under no step after Bonferroni over the places to split, and if the halves' means lie more than `resolution`
    apart. The variance is the greatest of the scatter within the halves, of that between successive runs
    of the whole history (a robust one, which steps do not raise), and of the values' own uncertainty (95 %
    half-widths): differences within the uncertainty are no step, however regular they are.
    """
    if len(values) != len(half_widths):
        raise ValueError("every value needs its half-width")
    # sd of successive differences from their median, over the square root of two: 1.4826 / 1.4142.
    scatter = 1.0484 * float(np.median(np.abs(np.diff(values)))) if len(values) > 2 else 0.0
    found: list[int] = []
    waiting: list[tuple[int, int]] = [(0, len(values))]
    while waiting:
        start, end = waiting.pop()
        place = _split(values[start:end], half_widths[start:end] / _Z95, scatter, false_alarm, resolution)
        if place is not None:
            found.append(start + place)
            waiting += [(start, start + place), (start + place, end)]
    return sorted(found)


def _split(
    values: Floats, errors: Floats, scatter: float, false_alarm: float, resolution: float
) -> int | None:
    n = len(values)
    if n < 3:
        return None
    known = float(np.mean(errors**2))
    chances = [_chance(values[:k], values[k:], known, scatter, resolution) for k in range(1, n)]
    best = int(np.argmin(chances))
    return best + 1 if chances[best] * (n - 1) < false_alarm else None


def _chance(before: Floats, after: Floats, known: float, scatter: float, resolution: float) -> float:
    """Two-sided probability of such a difference of means without a step; 1 where it is below `resolution`."""
    gap = abs(float(after.mean() - before.mean()))
    if gap <= resolution:
        return 1.0
    n = len(before) + len(after)
    rest = float(((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()) / (n - 2)
    seen = max(rest, scatter**2)
    variance = max(seen, known)
    if variance == 0:
        return 0.0
    t = gap / sqrt(variance * (1 / len(before) + 1 / len(after)))
    # If the runs' own uncertainty is greater, it comes from many messages and needs no Student's tail.
    return float(2 * special.ndtr(-t)) if known >= seen else float(2 * special.stdtr(n - 2, -t))


def reference(values: Floats, half_widths: Floats, level: float) -> Estimate:
    """The reference for the next run: the median of previous ones, with an interval at `level`.

    If the runs differ by no more than their own 95 % half-widths explain, the interval is the median of theirs. If they
    differ by more (a chi-squared test at 5 %), it is the prediction interval of a further run, Student's with k - 1
    degrees of freedom: with few scattered runs the normal range is unknown, and the interval wide.
    """
    if len(values) == 0:
        raise ValueError("a reference needs at least one run")
    centre = float(np.median(values))
    half = float(np.median(half_widths)) * normal_factor(level) / _Z95
    k = len(values)
    if k >= 2 and differ(values, (half_widths / _Z95) ** 2):
        half = max(half, student_t(k - 1, level) * float(np.std(values, ddof=1)) * sqrt(1 + 1 / k))
    return Estimate(centre, centre - half, centre + half)
