"""Straight-line regression with intervals of slope and intercept."""

from __future__ import annotations

from math import sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats.dependence import correlation_time
from wiregauge.stats.moments import CONFIDENCE, student_t

Floats = NDArray[np.float64]


class Coefficient(Struct, frozen=True):
    """Slope or intercept. `sampling` is the half-width of its 95 % Student interval from the scatter of the points,
    None for two points; `bound` is its greatest error from errors of the points within their stated bounds.
    """

    value: float
    sampling: float | None
    bound: float

    @property
    def half_width(self) -> float | None:
        """Sampling and bound together; bounds do not average out, so they add."""
        return None if self.sampling is None else self.sampling + self.bound


class LineFit(Struct, frozen=True):
    """y = intercept + slope x by ordinary least squares; `residuals` in the order of the points."""

    slope: Coefficient
    intercept: Coefficient
    residuals: Floats
    n: int
    independent: float
    """Independent residuals: n, or fewer where dependence was allowed for."""


def line_fit(x: Floats, y: Floats, bounds: Floats | None = None, *, in_order: bool = False) -> LineFit:
    """Least squares through at least two points of different x; ValueError where there are not.

    `bounds` are the greatest errors of y, whatever the cause. Both figures are linear in y, slope = sum(c_i y_i), so
    such errors move them by at most sum(|c_i| bound_i). With `in_order` the points are a series in
    time whose neighbours may resemble each other: the interval is widened by the square root of the correlation
    time of the residuals, and its degrees of freedom are those of the independent ones.
    """
    n = len(x)
    if n < 2 or len(y) != n or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a line needs at least two points")
    centre = float(x.mean())
    away = x - centre
    spread = float(away @ away)
    if spread == 0:
        raise ValueError("all points have the same x")
    # Centred: far from zero (times since 1970) the plain sums would lose the significant digits.
    level = float(y.mean())
    slope = float(away @ (y - level)) / spread
    residuals = y - level - slope * away
    memory = correlation_time(residuals) if in_order else 1.0
    independent = max(n / memory, 2.0)
    half: tuple[float, float] | None = None
    if n > 2:
        scatter = sqrt(float(residuals @ residuals) / (n - 2))
        factor = student_t(max(independent - 2, 1.0), CONFIDENCE) * scatter * sqrt(memory)
        half = factor / sqrt(spread), factor * sqrt(1 / n + centre**2 / spread)
    of_slope = away / spread
    of_intercept = 1 / n - centre * of_slope
    most = bounds if bounds is not None else np.zeros(n)
    return LineFit(
        Coefficient(slope, half[0] if half else None, float(np.abs(of_slope) @ most)),
        Coefficient(level - slope * centre, half[1] if half else None, float(np.abs(of_intercept) @ most)),
        residuals,
        n,
        independent if in_order else float(n),
    )
