"""Tests for stationarity and for a sufficient warm-up.

A percentile of a drifting run describes that run only, and a different beginning suggests that the warm-up is too
short. Both are found by rule, with a stated rate of false alarms, never by eye; both are reported next to figures and
remove nothing from them.

All tests use *scores*, the values' ranks among 256 quantiles of their own series: heavy tails then weigh no more
than other values. Neighbouring values are correlated, so the tests use means of blocks ten correlation times long,
which are nearly independent. The correlation time is taken within eighths of the series, each about its own
mean, so that a drift does not look like memory. A memory as long as the series itself is indistinguishable from
a drift: it is reported as one, or, where fewer than ten blocks remain, as not testable.
"""

from __future__ import annotations

from math import erfc, exp, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.dependence import correlation_time

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Probability of calling a stationary series drifting."""
FALSE_WARM_UP = 0.001
"""Probability of calling the beginning of a stationary series different."""

FEWEST_BLOCKS, MOST_BLOCKS = 10, 64
BLOCK_TIMES = 10
"""The length of a block in correlation times."""
EIGHTHS = 8
FEWEST = 100
"""The fewest values for a test."""
BATCH = 5
"""Values per batch of MSER-5."""
_LEVELS = 256
_SAMPLE = 16_384
_TAIL = 0.9


class Steadiness(Struct, frozen=True):
    """The results of the tests for a series of `n` values in measured order.

    `p` is the p-value of stationarity, None where it cannot be tested; `kind` names what changes most, the level or
    the upper tail. The first `settled_after` values differ from the rest, 0 for none.
    """

    n: int
    p: float | None
    kind: str
    correlation_time: float
    settled_after: int

    def drifts(self, among: int = 1) -> bool:
        """Whether the series is called non-stationary, at `FALSE_ALARMS` for all of `among` series together."""
        return self.p is not None and self.p * among < FALSE_ALARMS


def steadiness(values: Floats, among: int = 1) -> Steadiness:
    """Tests a series in measured order. `among` series are tested together and share the rate of false alarms.

    Stationarity: Mann-Kendall (trend) and Pettitt (one change) on block means of the scores, and of the share above
    p90; the least of the four p-values, times four. Where the beginning differs from the rest (`_beginning`) and what
    remains beyond the cut of MSER-5 is steady, `settled_after` is that cut; `p` stays that of the whole series.
    """
    n = len(values)
    if n < FEWEST:
        return Steadiness(n, None, "level", 1.0, 0)
    scores = _scores(values)
    tau = _local_time(scores)
    p, kind = _unsteady(scores, tau)
    if _beginning(scores, tau) * among < FALSE_WARM_UP:
        cut = mser5(scores)
        rest, _ = _unsteady(scores[cut:], tau)
        if rest is not None and rest * among >= FALSE_ALARMS:
            return Steadiness(n, p, kind, tau, cut)
    return Steadiness(n, p, kind, tau, 0)


def _scores(values: Floats) -> Floats:
    # Any increasing function of the values would do as a score, so a sample gives its steps.
    sample = np.sort(values[:: max(1, len(values) // _SAMPLE)])
    at = np.linspace(0, len(sample) - 1, min(_LEVELS, len(sample))).astype(np.int64)
    return np.searchsorted(np.unique(sample[at]), values).astype(np.float64)


def _local_time(scores: Floats) -> float:
    size = len(scores) // EIGHTHS
    eighths = scores[: size * EIGHTHS].reshape(EIGHTHS, size)
    return correlation_time((eighths - eighths.mean(axis=1, keepdims=True)).ravel())


def _unsteady(scores: Floats, tau: float) -> tuple[float | None, str]:
    """The combined p-value of both tests on level and tail, and which of the two changes most."""
    n = len(scores)
    blocks = min(MOST_BLOCKS, int(n / (BLOCK_TIMES * tau)))
    if blocks < FEWEST_BLOCKS:
        return None, "level"
    edges = np.linspace(0, n, blocks + 1).astype(np.int64)
    sizes = np.diff(edges)
    high = scores > np.partition(scores, int(_TAIL * (n - 1)))[int(_TAIL * (n - 1))]
    found = {
        kind: min(mann_kendall(means), pettitt(means))
        for kind, series in (("level", scores), ("tail", high.astype(np.float64)))
        for means in [np.add.reduceat(series, edges[:-1]) / sizes]
    }
    kind = min(found, key=lambda name: found[name])
    return min(1.0, 4 * found[kind]), kind


def mann_kendall(values: Floats) -> float:
    """Two-sided p-value of no trend in independent values (Mann 1945, Kendall 1975; normal, ties counted)."""
    n = len(values)
    total = float(np.sum(np.triu(np.sign(values[None, :] - values[:, None]), 1)))
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0 or total == 0:
        return 1.0
    return erfc((abs(total) - 1) / sqrt(2 * variance))


def pettitt(values: Floats) -> float:
    """p-value of no change in level in independent values (Pettitt, Applied Statistics 28, 1979; his approximation)."""
    n = len(values)
    signs = np.sign(values[None, :] - values[:, None])
    # U(t) counts, over all pairs across t, how often the later value is greater.
    across = np.cumsum(np.sum(signs, axis=1))
    largest = float(np.max(np.abs(across)))
    return min(1.0, 2 * exp(-6 * largest**2 / (n**3 + n**2)))


def _beginning(scores: Floats, tau: float) -> float:
    """p-value of the beginning being like the rest: the least over heads of 5, 10, 20 ..., times their number.

    A head is as short as the normal approximation of its mean allows: the more skewed the scores (nearly all of
    them alike), the longer.
    """
    n = len(scores)
    size = n // EIGHTHS
    eighths = scores[: size * EIGHTHS].reshape(EIGHTHS, size)
    variance = float(eighths.var(axis=1).mean())
    if variance == 0:
        return 1.0
    about = eighths - eighths.mean(axis=1, keepdims=True)
    skewness = float(np.mean(about * about * about)) / variance**1.5
    shortest = BATCH * max(1.0, 30 / BATCH * skewness**2)
    heads = []
    length = BATCH
    while length <= n // 4:
        if length >= shortest:
            heads.append(length)
        length *= 2
    if not heads:
        return 1.0
    # The correlation time is an estimate, too: reduced degrees of freedom allow for its error.
    degrees = max(2.0, n / tau / 4)
    total = np.cumsum(scores)
    best = 1.0
    for head in heads:
        difference = float(total[head - 1] / head - (total[-1] - total[head - 1]) / (n - head))
        spread = sqrt(variance * tau * (1 / head + 1 / (n - head)))
        best = min(best, 2 * float(special.stdtr(degrees, -abs(difference) / spread)))
    return min(1.0, best * len(heads))


def mser5(values: Floats) -> int:
    """Values at the beginning that MSER-5 would leave out (White, Simulation 69, 1997): a multiple of 5, at most half.

    The cut with the least standard error of the mean of the remaining batches of five. If that is at half the series,
    no steady part is found, and nothing is cut: 0.
    """
    count = len(values) // BATCH
    if count < 4:
        return 0
    batches = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    batches = batches - batches.mean()
    backwards = batches[::-1]
    left = np.arange(1, count + 1)
    squares = np.cumsum(backwards**2) - np.cumsum(backwards) ** 2 / left
    error = (squares / left.astype(np.float64) ** 2)[::-1]
    half = count // 2
    cut = int(np.argmin(error[: half + 1]))
    return 0 if cut == half else cut * BATCH
