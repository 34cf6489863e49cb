"""The cost of handing a frame over: a fixed time and a time per byte, and the wake-up time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.plan.quantity import time_text

Times = NDArray[np.int64]

SHARES = (
    0,
    1,
    2,
    5,
    10,
    20,
    30,
    40,
    50,
    60,
    70,
    80,
    85,
    90,
    93,
    95,
    96,
    97,
    98,
    98.5,
    99,
    99.3,
    99.5,
    99.7,
    99.9,
    100,
)
"""Shares, %, for which a distribution is stored."""


class Parameter(Struct, frozen=True):
    """A time of the model, ps, with the half-width of its 95 % interval (None: unknown), from `n` messages."""

    value: int
    half: float | None
    n: int


class Cost(Struct, frozen=True):
    """A fixed cost and one per byte; `left` is the median of the absolute residuals, ps."""

    fixed: Parameter
    per_byte: Parameter | None
    """The cost per byte; None with frames of one length only, where the fixed part includes it."""
    left: float

    def of(self, lengths: Times) -> Times:
        """The cost of frames of these lengths, ps."""
        slope = self.per_byte.value if self.per_byte is not None else 0
        whole: Times = self.fixed.value + slope * lengths
        return whole


def cost(lengths: Times, spent: Times, at: float = 0.5) -> Cost:
    """The line through the medians (or the quantile `at`) of the times `spent`, ps, on frames of each of `lengths`.

    Occasional disturbances of a host do not move a median. At least one value is needed.
    """
    sizes = np.unique(lengths)
    per_size = [spent[lengths == size] for size in sizes]
    counts = np.array([len(group) for group in per_size])
    known = counts >= max(2, counts.max() // 50)
    sizes = sizes[known] if known.any() else sizes
    per_size = [group for group, use in zip(per_size, known, strict=True) if use or not known.any()]
    levels = np.array([np.quantile(group, at, method="inverted_cdf") for group in per_size])
    halves = np.array([_half(group) for group in per_size])
    if len(sizes) < 2:
        return _rest(
            Cost(Parameter(round(levels[0]), float(halves[0]), len(spent)), None, 0.0), lengths, spent
        )
    line = stats.line_fit(sizes.astype(np.float64), levels, halves)
    slope = max(round(line.slope.value), 0)
    fixed = round(float(np.median(levels - slope * sizes)))
    found = Cost(
        Parameter(max(fixed, 0), line.intercept.half_width, len(spent)),
        Parameter(slope, line.slope.half_width, len(spent)),
        0.0,
    )
    return _rest(found, lengths, spent)


def _half(group: Times) -> float:
    """Half-width of the median's interval for one length, from order statistics (David and Nagaraja 2003, 7.1)."""
    ascending = np.sort(group)
    n = len(ascending)
    reach = int(np.ceil(0.98 * np.sqrt(n)))
    low, high = max(n // 2 - reach, 0), min(n // 2 + reach, n - 1)
    return float(ascending[high] - ascending[low]) / 2


def _rest(found: Cost, lengths: Times, spent: Times) -> Cost:
    left = float(np.median(np.abs(spent - found.of(lengths))))
    return Cost(found.fixed, found.per_byte, left)


def quantiles(times: Times) -> tuple[tuple[float, int], ...]:
    """Shares (%) and times (ps) of a distribution, ascending from 0 to 100 %; one entry where all are equal.

    A share is left out where fewer than two values lie above it: the maximum represents them.
    """
    ascending = np.maximum(np.sort(times), 0)
    n = len(ascending)
    if not n:
        return ((0.0, 0),)
    if ascending[0] == ascending[-1]:
        return ((0.0, int(ascending[0])),)
    kept = [share for share in SHARES if share in (0, 100) or n * (1 - share / 100) >= 2]
    return tuple((float(share), _at(ascending, share)) for share in kept)


def _at(ascending: Times, share: float) -> int:
    return int(np.quantile(ascending, share / 100))


def shares_text(points: Sequence[tuple[float, int]]) -> str:
    """The distribution as an attribute of the test language."""
    if len(points) == 1:
        return time_text(points[0][1])
    return " ".join(f"{share:g}%:{time_text(time)}" for share, time in points)
