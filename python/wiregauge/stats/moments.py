"""Mean, spread, and how well a mean is known when neighbouring values resemble each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
CONFIDENCE = 0.95


def student_t(degrees: float, level: float = CONFIDENCE) -> float:
    """The factor of a two-sided Student interval at `level`."""
    return float(special.stdtrit(degrees, 1 - (1 - level) / 2))


def standard_deviation(values: Floats) -> float | None:
    """Sample standard deviation (divisor n - 1); None below two values."""
    return float(np.std(values, ddof=1)) if len(values) >= 2 else None


def mad(values: Floats) -> float | None:
    """Median absolute deviation from the median, unscaled; None for an empty sample."""
    return float(np.median(np.abs(values - np.median(values)))) if len(values) else None


def effective_n(values: Floats) -> float:
    """How many independent values the series, in the order it was measured, is worth for its mean.

    n / tau with the integrated autocorrelation time tau by Geyer's initial monotone positive sequence
    (Statistical Science 7, 1992, 3.3). Never above n: a negative correlation is not taken as extra knowledge.
    Latencies come in clusters (a busy core delays several messages in a row), so n alone would promise too much.
    """
    n = len(values)
    if n < 4:
        return float(n)
    centred = values - values.mean()
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum), size)[:n]
    if covariance[0] <= 0:
        return float(n)
    correlation = covariance / covariance[0]
    pairs = correlation[0 : n - n % 2 : 2] + correlation[1 : n - n % 2 : 2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    tau = max(1.0, 2 * float(pairs.sum()) - 1)
    return max(2.0, n / tau)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean with the half-width of its 95 % interval from sampling alone, in the unit of the values."""

    mean: float
    half_width: float | None
    n_effective: float


def mean_estimate(values: Floats) -> MeanEstimate | None:
    """The mean of a series in measured order, and its 95 % Student interval with the effective n.

    None for an empty series; no half-width for a single value.
    """
    if len(values) == 0:
        return None
    worth = effective_n(values)
    spread = standard_deviation(values)
    half = student_t(worth - 1) * spread / sqrt(worth) if spread is not None else None
    return MeanEstimate(float(values.mean()), half, worth)


def between_run_half_width(means: Floats) -> float | None:
    """Half-width of the 95 % Student interval of the mean of repeated runs; None below two runs.

    Repeats may differ by more than their messages tell (placement, temperature, neighbours): this is the part
    of the uncertainty that only repeating shows.
    """
    if len(means) < 2:
        return None
    return student_t(len(means) - 1) * float(np.std(means, ddof=1)) / sqrt(len(means))
