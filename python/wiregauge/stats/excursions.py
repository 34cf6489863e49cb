"""Excursions: intervals in which a series rises above its level and comes back.

A queue that fills at once and empties slowly is one: latency jumps, then falls on a straight line. The level is the
median of block means, the threshold above it comes from their median absolute deviation. A straight line is fitted from
the onset on, so that height and return do not follow the noise of single values.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]

__all__ = ["Excursion", "Excursions", "excursions"]

_BLOCK = 32
_CLEAR = 8.0
"""Deviations of block means that an excursion must exceed: 10^6 normal blocks give none by chance."""


class Excursion(Struct, frozen=True):
    """One excursion: the index of its `first` value, and its `height` above the level there in the unit of the values.

    `slope` is its change from value to value; `back_after` the number of values until the fitted line is at the level
    again, None where it does not fall or the series ends before.
    """

    first: int
    height: float
    slope: float
    back_after: float | None


class Excursions(Struct, frozen=True):
    """All excursions of a series of `n` values; least and greatest value `outside` them, None where there is none."""

    found: tuple[Excursion, ...]
    level: float
    n: int
    outside: tuple[float, float] | None


def excursions(values: Floats) -> Excursions:
    """Finds excursions of at least two blocks of 32 values above the level; values that are not finite are left out."""
    values = values[np.isfinite(values)]
    blocks = len(values) // _BLOCK
    if blocks < 4:
        return Excursions(
            (), float(np.median(values)) if len(values) else float("nan"), len(values), _ends(values)
        )
    means = values[: blocks * _BLOCK].reshape(blocks, _BLOCK).mean(axis=1)
    level = float(np.median(means))
    scale = 1.4826 * float(np.median(np.abs(means - level)))
    # The smallest step that rounding leaves, since a series without noise has no deviation.
    above = means > level + max(_CLEAR * scale, 1e-9 * max(abs(level), 1e-300))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], above, [False]]).astype(np.int8)))
    stretches = [
        (int(begin) * _BLOCK, int(end) * _BLOCK)
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
        if end - begin >= 2
    ]
    # The excursions themselves raise the median.
    outside = _outside(values, [_fitted(values, level, *one) for one in stretches], stretches)
    if outside.any():
        level = float(np.mean(values[outside]))
    found = [_fitted(values, level, *one) for one in stretches]
    return Excursions(tuple(found), level, len(values), _ends(values[outside]))


def _outside(values: Floats, found: list[Excursion], stretches: list[tuple[int, int]]) -> NDArray[np.bool_]:
    """The values in no excursion, nor in its return, nor within a block after it."""
    outside = np.ones(len(values), dtype=np.bool_)
    for one, (_, end) in zip(found, stretches, strict=True):
        back = end if one.back_after is None else one.first + int(one.back_after)
        outside[one.first : max(back, end) + _BLOCK] = False
    return outside


def _ends(values: Floats) -> tuple[float, float] | None:
    return (float(values.min()), float(values.max())) if len(values) else None


def _fitted(values: Floats, level: float, begin: int, end: int) -> Excursion:
    """The line fitted to an excursion from its onset, which is in its first block or the one before."""
    first = _onset(values, max(begin - _BLOCK, 0), min(begin + _BLOCK, end))
    y = values[first:end]
    at = np.arange(len(y), dtype=np.float64)
    slope, height = (float(value) for value in np.polyfit(at, y - level, 1))
    back = -height / slope if slope < 0 and first - height / slope < len(values) else None
    return Excursion(first, height, slope, back)


def _onset(values: Floats, begin: int, end: int) -> int:
    """The index in [begin, end) where the values step up: the cut with the least squares about two levels."""
    part = values[begin:end]
    n = len(part)
    sums = np.cumsum(part)[:-1]
    left = np.arange(1, n, dtype=np.float64)
    gain = sums**2 / left + (sums[-1] + part[-1] - sums) ** 2 / (n - left)
    return begin + 1 + int(np.argmax(gain)) if n > 1 else begin
