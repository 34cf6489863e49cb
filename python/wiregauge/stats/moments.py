"""Mean, spread, and their intervals for autocorrelated values."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.memory import Memory, memory

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
NORMAL = 1.959963984540054
"""The factor of a two-sided normal interval at 95 %."""


def student_t(degrees: float, level: float = CONFIDENCE) -> float:
    """The factor of a two-sided Student interval at `level`."""
    return float(special.stdtrit(degrees, 1 - (1 - level) / 2))


def standard_deviation(values: Floats) -> float | None:
    """Sample standard deviation (divisor n - 1); None below two values."""
    return float(np.std(values, ddof=1)) if len(values) >= 2 else None


def deviation_interval(values: Floats) -> tuple[float, float] | None:
    """95 % interval of the standard deviation of a series in measured order; None below two values.

    Student's interval of the mean squared deviation, with the effective n of the squared deviations, on its
    logarithm, which keeps it positive and makes up for its skewness. No normal distribution is assumed.
    """
    spread = standard_deviation(values)
    if spread is None:
        return None
    if spread == 0:
        return 0.0, 0.0
    squares = (values - values.mean()) ** 2
    estimate = mean_estimate(squares)
    if estimate is None or estimate.half_width is None or estimate.mean == 0:
        return None
    return around_deviation(spread, estimate.half_width / estimate.mean)


def around_deviation(spread: float, relative: float) -> tuple[float, float]:
    """Interval of a standard deviation from the relative half-width of the mean squared deviation."""
    factor = exp(min(relative / 2, 50.0))
    return spread / factor, spread * factor


def mad(values: Floats) -> float | None:
    """Median absolute deviation from the median, unscaled; None for an empty sample."""
    return float(np.median(np.abs(values - np.median(values)))) if len(values) else None


def mad_of_ascending(ascending: Floats) -> float | None:
    """`mad` of values already in ascending order, by bisection instead of another sort.

    The k values nearest to the median are neighbours in the ascending sample.
    """
    n = len(ascending)
    if n == 0:
        return None
    middle = float(ascending[(n - 1) // 2] + ascending[n // 2]) / 2

    def nearest(k: int) -> float:
        """The k-th smallest distance from the median, k from 1."""
        low, high = 0, n - k
        while low < high:
            start = (low + high) // 2
            if middle - ascending[start] > ascending[start + k] - middle:
                low = start + 1
            else:
                high = start
        return float(max(middle - ascending[low], ascending[low + k - 1] - middle))

    return (nearest((n + 1) // 2) + nearest(n // 2 + 1)) / 2


class MeanEstimate(Struct, frozen=True):
    """A mean with the half-width of its 95 % interval from sampling alone, in the unit of the values."""

    mean: float
    half_width: float | None
    n_effective: float
    needed: int = 2
    """Values that such a series needs for an interval."""


def mean_estimate(values: Floats) -> MeanEstimate | None:
    """The mean of a series in measured order, and its 95 % interval given the series' `memory`.

    None for an empty series; no half-width for a single value, nor where the memory does not end within the series.
    """
    n = len(values)
    if n == 0:
        return None
    return estimated(float(values.mean()), standard_deviation(values), memory(values))


def half_width(spread: float, known: Memory) -> float:
    """The 95 % half-width of a mean from the standard deviation of its values and their memory."""
    return NORMAL * spread * sqrt(known.safe_time / known.n)


def estimated(mean: float, spread: float | None, known: Memory) -> MeanEstimate:
    """The estimate of a mean from the standard deviation of its values and their memory."""
    n = known.n
    half = half_width(spread, known) if spread is not None and known.known else None
    worth = max(2.0, known.worth) if n >= 2 else float(n)
    return MeanEstimate(mean, half, worth, max(known.needed, 2))
