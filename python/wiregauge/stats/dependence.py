"""The autocorrelation time of a series.

By Geyer's initial monotone sequence (Statistical Science 7, 1992, 3.3), one pass over the series for each lag until
the sum ends. It sets the lengths of blocks and bands in tests for a change, a drift or a second mode. Intervals
of means and percentiles use `memory`, which also includes its own uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LAGS = 64
"""Lags computed before the series is coarsened by `COARSER`; the cost stays linear in n for any memory."""
COARSER = 8
SHORTEST = 4
"""The shortest series, in values, whose dependence is estimated."""
BLOCK = 8192
"""Values per product, summed by NumPy's linear algebra on the calling thread: from 10 001 on it uses others."""


def effective_n(values: Floats) -> float:
    """The number of independent values whose mean is as precise as that of the series, in measured order.

    Never above n: a negative correlation does not count as extra information. Never below 2.
    """
    n = len(values)
    return max(2.0, n / correlation_time(values)) if n >= SHORTEST else float(n)


def correlation_time(values: Floats) -> float:
    """Integrated autocorrelation time of a series in measured order, in values; at least 1.

    tau = 1 + 2 (rho(1) + rho(2) + ...), the sum cut where the sum of two neighbouring autocorrelations turns negative
    and made monotone. A series whose memory outlasts `LAGS` values is first averaged over `COARSER` neighbours,
    which leaves the variance of its mean as it is.
    """
    if len(values) < SHORTEST:
        return 1.0
    variance = float(np.var(values))
    return _time(values - values.mean(), variance)[0] if variance > 0 else 1.0


def _time(centred: Floats, variance: float) -> tuple[float, int]:
    """The autocorrelation time, and the span of its sum in values: twice its last lag, plus one.

    `variance` is that of a single value of the original series, which the time refers to.
    """
    factor = 1
    while True:
        n = len(centred)
        scale = inner(centred, centred) / n
        if scale <= 0:
            # All blocks have the same mean: the dependence makes the mean more precise.
            return 1.0, 1
        lags = (inner(centred[:-k], centred[k:]) / n / scale for k in range(1, min(LAGS, n - 1)))
        total, last, ended = initial_sequence(lags)
        if ended or n < LAGS * COARSER:
            return max(1.0, factor * scale / variance * total), factor * (2 * last + 1)
        whole = n - n % COARSER
        centred = centred[:whole].reshape(-1, COARSER).mean(axis=1)
        centred = centred - centred.mean()
        factor *= COARSER


def inner(a: Floats, b: Floats) -> float:
    """The sum of the products of two arrays of one length, the same on machines of any number of cores.

    `numpy.dot` divides long arrays among as many threads as there are cores. Its last digits then depend on the
    machine, and where series are judged in parallel all these threads wait for one another, ten times as long.
    """
    starts = range(0, len(a), BLOCK)
    return fsum(float(np.dot(a[at : at + BLOCK], b[at : at + BLOCK])) for at in starts)


def initial_sequence(correlations: Iterator[float]) -> tuple[float, int, bool]:
    """1 + 2 (rho(1) + ...) by the initial monotone sequence; its last lag; whether it ended before the lags did."""
    total, least, last = -1.0, float("inf"), 0
    even = 1.0
    for odd in correlations:
        pair = even + odd
        if pair <= 0:
            return max(total, 0.0) if total > -1 else 1.0, last, True
        least = min(least, pair)
        total += 2 * least
        last += 1 if last == 0 else 2
        following = next(correlations, None)
        if following is None:
            return total, last, False
        even = following
    return max(total, 1.0), last, False
