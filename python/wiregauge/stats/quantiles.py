"""Percentiles, their intervals, and the sample sizes they need.

A percentile here is always a measured value: the nearest-rank order statistic, never an interpolation between
two of them. With 2000 messages an interpolated p99.9 would be a value that no message had.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, log, log1p, sqrt
from typing import NewType

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special

Floats = NDArray[np.float64]
Rank = NewType("Rank", int)
"""Position in the ascending sample, counted from 1."""

CONFIDENCE = 0.95


@lru_cache(maxsize=1024, typed=True)
def exact(q: float | Fraction) -> Fraction:
    """The fraction meant by `q`: a float stands for the decimal it prints as, so 0.07 is 7/100.

    Binary 0.07 times 100 is a little more than 7 and would take the eighth value for the seventh.
    """
    fraction = q if isinstance(q, Fraction) else Fraction(repr(float(q)))
    if not 0 <= fraction <= 1:
        raise ValueError(f"a quantile lies between 0 and 1, not at {q}")
    return fraction


@lru_cache(maxsize=1024, typed=True)
def upper(q: float | Fraction) -> bool:
    """Whether `q` is the median or above it."""
    return exact(q) >= Fraction(1, 2)


def rank(n: int, q: float | Fraction) -> Rank:
    """Nearest rank of quantile `q` among `n` values: the least k with k/n >= q, and 1 for q = 0."""
    if n < 1:
        raise ValueError("an empty sample has no quantiles")
    fraction = exact(q)
    return Rank(max(1, -(-fraction.numerator * n // fraction.denominator)))


def quantile(ascending: Floats, q: float | Fraction) -> float:
    """The nearest-rank quantile `q` of values already in ascending order."""
    return float(ascending[rank(len(ascending), q) - 1])


def median(values: Floats) -> float:
    """The nearest-rank median of values in any order: a measured value, like every quantile."""
    return quantile(np.sort(values), Fraction(1, 2))


@lru_cache(maxsize=1024)
def samples_needed(q: float | Fraction) -> int:
    """Values needed before quantile `q` may be printed: n >= ln 0.05 / ln q.

    With fewer, even the largest value lies below the true quantile with more than 5 % probability, and the
    printed percentile would be the maximum under another name. p99 299, p99.9 2995, p99.99 29956.
    """
    fraction = exact(q)
    if fraction == 0:
        return 1
    if fraction == 1:
        raise ValueError("no sample is large enough to know the quantile 1; print the maximum of n")
    # log1p keeps the digits of 1 - q that log would lose close to 1.
    return max(1, ceil(log(1 - CONFIDENCE) / log1p(-float(1 - fraction))))


def supported(n: int, q: float | Fraction) -> bool:
    """Whether `n` values are enough to print quantile `q` (see `samples_needed`)."""
    return n >= samples_needed(q)


@lru_cache(maxsize=1024)
def fewest_for_interval(q: float | Fraction) -> int:
    """Independent values needed before quantile `q` has an interval closed on one side: n = 6 for the median.

    From there on the least (or the greatest) value lies beyond the quantile with a probability of at most half of 5 %.
    """
    share = max(exact(q), 1 - exact(q))
    return max(1, ceil(log((1 - CONFIDENCE) / 2) / log1p(-float(share)))) if share < 1 else 1


def largest_supported(n: int) -> float:
    """The largest quantile that `n` values support, 0.05 ** (1/n); 0 for an empty sample."""
    return float((1 - CONFIDENCE) ** (1 / n)) if n > 0 else 0.0


class RankInterval(Struct, frozen=True):
    """Two order statistics that enclose a quantile with at least the asked confidence.

    `low` or `high` is None where the sample has no value extreme enough: the interval is open on that side.
    """

    low: Rank | None
    high: Rank | None
    coverage: float


@lru_cache(maxsize=8192)
def quantile_ranks(n: int, q: float | Fraction, level: float = CONFIDENCE) -> RankInterval:
    """Distribution-free interval of quantile `q` from `n` independent values (binomial order statistics).

    The number of values at or below the true quantile is binomial (n, q); the interval keeps the fewest of its
    values, starting from equal tails, whose probability together is at least `level`. Ties only widen the coverage.
    The coverage moves in steps, coarse ones for few values: 97.9 % for the median of ten. Interpolation (Hutson,
    Journal of Applied Statistics 26, 1999) would take 1 to 2 % off that, and as much off series with undetected
    clustering and off repeated values, whose coverage would then be below 95 %.
    """
    p = float(exact(q))
    mean, spread = n * p, sqrt(max(n * p * (1 - p), 0.0))
    first = max(0, int(mean - 9 * spread) - 9)
    last = min(n, int(mean + 9 * spread) + 9)
    values = np.arange(first, last + 1)
    below = np.asarray(special.bdtr(values.astype(float), n, p))
    mass = np.diff(below, prepend=0.0 if first == 0 else special.bdtr(first - 1.0, n, p))
    low = int(np.searchsorted(below, (1 - level) / 2))
    high = min(int(np.searchsorted(below, 1 - (1 - level) / 2)), len(values) - 1)
    coverage = float(mass[low : high + 1].sum())
    while low < high:
        edge = low if mass[low] < mass[high] else high
        if coverage - mass[edge] < level:
            break
        coverage -= float(mass[edge])
        low, high = (low + 1, high) if edge == low else (low, high - 1)
    low_rank, high_rank = int(values[low]), int(values[high]) + 1
    return RankInterval(
        low=Rank(low_rank) if low_rank >= 1 else None,
        high=Rank(high_rank) if high_rank <= n else None,
        coverage=coverage,
    )
