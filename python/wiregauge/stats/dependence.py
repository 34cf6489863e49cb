"""How many independent values a series is worth when neighbouring values resemble each other.

Latencies come in clusters: a busy core or a full queue delays several messages in a row. The variance of a mean (or of
a share) of n such values is `tau` times that of independent ones, so the series is worth n / tau of them. `tau` is the
integrated autocorrelation time, by Geyer's initial monotone sequence (Statistical Science 7, 1992, 3.3).

A block bootstrap would do as well and costs a thousand passes over the series; for a percentile it also needs a block
length, which is this same `tau` in another dress. One pass and one rule for means, percentiles and shares is why the
effective n was chosen. What it cannot do is see a dependence longer than the series: see `steady`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LAGS = 64
"""Lags looked at before the series is coarsened by `COARSER`; the cost stays linear in n however long the memory."""
COARSER = 8
SHORTEST = 4
"""Shorter series say nothing of their own dependence."""


def effective_n(values: Floats) -> float:
    """How many independent values the series, in the order it was measured, is worth for its mean.

    Never above n: a negative correlation is not taken as extra knowledge. Never below 2.
    """
    n = len(values)
    return max(2.0, n / correlation_time(values)) if n >= SHORTEST else float(n)


def correlation_time(values: Floats) -> float:
    """Integrated autocorrelation time of a series in measured order, in values; at least 1.

    tau = 1 + 2 (rho(1) + rho(2) + ...), the sum cut where the sum of two neighbouring autocorrelations turns negative
    and kept from rising. A series whose memory outlasts `LAGS` values is first averaged over `COARSER` neighbours,
    which leaves the variance of its mean as it is.
    """
    if len(values) < SHORTEST:
        return 1.0
    variance = float(np.var(values))
    return _time(values - values.mean(), variance) if variance > 0 else 1.0


def _time(centred: Floats, variance: float) -> float:
    """`variance` is that of a single value of the original series, for which the time is asked."""
    factor = 1
    while True:
        n = len(centred)
        scale = float(np.dot(centred, centred)) / n
        if scale <= 0:
            # Every stretch has the same mean: the dependence is of the kind that makes the mean better known.
            return 1.0
        lags = (float(np.dot(centred[:-k], centred[k:])) / n / scale for k in range(1, min(LAGS, n - 1)))
        total, ended = initial_sequence(lags)
        if ended or n < LAGS * COARSER:
            return max(1.0, factor * scale / variance * total)
        whole = n - n % COARSER
        centred = centred[:whole].reshape(-1, COARSER).mean(axis=1)
        centred = centred - centred.mean()
        factor *= COARSER


def initial_sequence(correlations: Iterator[float]) -> tuple[float, bool]:
    """1 + 2 (rho(1) + rho(2) + ...) by the initial monotone sequence; and whether it ended before they did."""
    total, least = -1.0, float("inf")
    even = 1.0
    for odd in correlations:
        pair = even + odd
        if pair <= 0:
            return max(total, 0.0) if total > -1 else 1.0, True
        least = min(least, pair)
        total += 2 * least
        following = next(correlations, None)
        if following is None:
            return total, False
        even = following
    return max(total, 1.0), False


def flag_time(flags: Flags) -> float:
    """`correlation_time` of a series of yes and no, for which counting coincidences is enough; at least 1."""
    n, hits = len(flags), int(np.count_nonzero(flags))
    if n < SHORTEST or hits in (0, n):
        return 1.0
    share = hits / n
    variance = share * (1 - share)

    def lags() -> Iterator[float]:
        for k in range(1, min(LAGS, n - 1)):
            head, tail = flags[:-k], flags[k:]
            both = int(np.count_nonzero(head & tail))
            single = hits - int(np.count_nonzero(flags[-k:])) + hits - int(np.count_nonzero(flags[:k]))
            yield (both - share * single + (n - k) * share * share) / n / variance

    total, ended = initial_sequence(lags())
    if ended or n < LAGS * COARSER:
        return max(1.0, total)
    return _time(flags.astype(np.float64) - share, variance)


def flags_worth(flags: Flags) -> float:
    """Independent observations that a series of yes and no is worth for its share; never above n, never below 1."""
    return max(1.0, len(flags) / flag_time(flags)) if len(flags) else 0.0
