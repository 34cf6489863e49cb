"""How many independent values a series is worth when neighbouring values resemble each other.

Latencies come in clusters: a busy core or a full queue delays several messages in a row. The variance of a mean (or of
a share) of n such values is `tau` times that of independent ones, so the series is worth n / tau of them. `tau` is the
integrated autocorrelation time, by Geyer's initial monotone sequence (Statistical Science 7, 1992, 3.3).

An estimated `tau` is short of the true one, and itself uncertain; both matter where the series is worth less than some
hundred values (`memory`). Subtracting the mean of the series lowers each autocovariance by the variance of that mean,
and so a sum over `span` = 2 M + 1 of them by `span / n` of the sum (Percival, The American Statistician 47, 1993). And
such a sum is an estimate of the spectrum at frequency zero with `n / span` degrees of freedom (Priestley, Spectral
Analysis and Time Series, 1981, 6.2: the truncated periodogram, whose variance is doubled at zero). With few of
these the sum is often cut too early; then the memory is at least what the correlation of neighbours alone tells.

A block bootstrap would do as well and costs a thousand passes over the series; for a percentile it also needs a block
length, which is this same `tau` in another dress. One pass and one rule for means, percentiles and shares is why the
effective n was chosen. What it cannot do is see a dependence longer than the series: see `steady`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, fsum, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LAGS = 64
"""Lags looked at before the series is coarsened by `COARSER`; the cost stays linear in n however long the memory."""
COARSER = 8
SHORTEST = 4
"""Shorter series say nothing of their own dependence."""
BLOCK = 8192
"""Values whose products NumPy's linear algebra adds up on the thread that asks: it calls others from 10 001 on."""
KNOWN_DEGREES = 15
"""Degrees of freedom from which the sum of autocorrelations alone tells the memory of a series."""
_BY_CHANCE = 1.28
"""Standard errors that a correlation of independent values exceeds in one of ten series."""
FEWEST_DEGREES = 2.0
"""Degrees of freedom below which the memory of a series is not known: it spans more than half of the series."""


@dataclass(frozen=True, slots=True)
class Memory:
    """How long a series of `n` values remembers, and how well that is known."""

    n: int
    time: float
    """Integrated autocorrelation time, in values, freed from what the unknown mean takes off; at least 1."""
    degrees: float
    """Degrees of freedom of the variance of the mean that it gives."""
    needed: int
    """Values that a series of this memory needs before it says how well its figures are known."""

    @property
    def known(self) -> bool:
        """Whether the series is long enough for its memory to be judged from it."""
        return self.n >= self.needed

    @property
    def worth(self) -> float:
        """Independent values that the series is worth."""
        return self.n / self.time


def memory(values: Floats) -> Memory:
    """The memory of a series in measured order."""
    variance = float(np.var(values)) if len(values) >= SHORTEST else 0.0
    return _memory(len(values), *(_time(values - values.mean(), variance) if variance > 0 else (1.0, 1)))


def flag_memory(flags: Flags) -> Memory:
    """`memory` of a series of yes and no."""
    return _memory(len(flags), *_flag_time(flags))


def _memory(n: int, time: float, span: int) -> Memory:
    if span <= 3:  # not even two neighbours resemble each other beyond the one next to them
        return Memory(n, max(time, 1.0), max(n - 1.0, 1.0), 1)
    free = 1 - min(span / n, 0.5)
    return Memory(n, max(time / free, 1.0), max(n / span, 1.0), ceil(FEWEST_DEGREES * span))


def memory_of_mean(values: Floats) -> Memory:
    """`memory`, and where that rests on few degrees of freedom at least as long as neighbours tell (`decay_time`).

    The sum over a short series is often cut too early: of AR(1) 0.8 in 45 values the mean was covered in 90 % of the
    cases without this, in 92 % with it. For series of yes and no it makes nothing better: they have `flag_memory`.
    """
    known = memory(values)
    span = known.needed / FEWEST_DEGREES if known.needed > 1 else 3.0
    if known.n >= KNOWN_DEGREES * span:
        return known
    return replace(known, time=max(known.time, decay_time(values)))


def decay_time(values: Floats) -> float:
    """The autocorrelation time of a memory that decays from value to value as it does from one to the next.

    (1 + phi) / (1 - phi), phi the correlation of neighbours freed from its bias (Marriott and Pope, Biometrika 41,
    1954). 1 where that is no more than chance gives to one series in ten whose values are independent.
    """
    n = len(values)
    centred = values - values.mean() if n > SHORTEST else values[:0]
    own = inner(centred, centred)
    if own == 0:
        return 1.0
    phi = min((n * inner(centred[:-1], centred[1:]) / own + 1) / (n - 3), 1 - 2 / n)
    return (1 + phi) / (1 - phi) if phi > _BY_CHANCE / sqrt(n) else 1.0


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
    return _time(values - values.mean(), variance)[0] if variance > 0 else 1.0


def _time(centred: Floats, variance: float) -> tuple[float, int]:
    """The time, and how many values the sum behind it spans: twice its last lag, and one.

    `variance` is that of a single value of the original series, for which the time is asked.
    """
    factor = 1
    while True:
        n = len(centred)
        scale = inner(centred, centred) / n
        if scale <= 0:
            # Every stretch has the same mean: the dependence is of the kind that makes the mean better known.
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
    machine, and where series are judged side by side all these threads wait for one another, ten times as long.
    """
    starts = range(0, len(a), BLOCK)
    return fsum(float(np.dot(a[at : at + BLOCK], b[at : at + BLOCK])) for at in starts)


def initial_sequence(correlations: Iterator[float]) -> tuple[float, int, bool]:
    """1 + 2 (rho(1) + ...) by the initial monotone sequence; its last lag; whether it ended before they did."""
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


def flag_time(flags: Flags) -> float:
    """`correlation_time` of a series of yes and no, for which counting coincidences is enough; at least 1."""
    return _flag_time(flags)[0]


def _flag_time(flags: Flags) -> tuple[float, int]:
    """The time, and how many values the sum behind it spans."""
    n, hits = len(flags), int(np.count_nonzero(flags))
    if n < SHORTEST or hits in (0, n):
        return 1.0, 1
    share = hits / n
    variance = share * (1 - share)

    def lags() -> Iterator[float]:
        for k in range(1, min(LAGS, n - 1)):
            head, tail = flags[:-k], flags[k:]
            both = int(np.count_nonzero(head & tail))
            single = hits - int(np.count_nonzero(flags[-k:])) + hits - int(np.count_nonzero(flags[:k]))
            yield (both - share * single + (n - k) * share * share) / n / variance

    total, last, ended = initial_sequence(lags())
    if ended or n < LAGS * COARSER:
        return max(1.0, total), 2 * last + 1
    return _time(flags.astype(np.float64) - share, variance)


def flags_worth(flags: Flags) -> float:
    """Independent observations that a series of yes and no is worth for its share; never above n, never below 1."""
    return max(1.0, len(flags) / flag_time(flags)) if len(flags) else 0.0
