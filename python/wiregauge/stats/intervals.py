"""Intervals of percentiles and shares for dependent values and for several runs.

One scheme for all: estimate the variance of the share of values at or below the percentile, turn it into an interval
of that share, and read the interval of the percentile off the ascending sample (Woodruff, J. Am. Stat. Assoc. 47,
1952). No distribution of the values is assumed anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.memory import Memory, flag_memory, memory
from wiregauge.stats.moments import student_t
from wiregauge.stats.quantiles import exact, fewest_for_interval, quantile, quantile_ranks, supported, upper

Floats = NDArray[np.float64]

_FEARED = 4
"""If the memory may have no end, a percentile needs this many times the usual independent values for its far end: the
greatest of the clusters that decide it may not have been met.
"""


class QuantileInterval(Struct, frozen=True):
    """95 % interval of a quantile, open (None) where the sample has no value extreme enough.

    `worth` is the effective number of independent values; None for repeats, whose spread is used directly. `needed` is
    the number of values that such a series needs for any interval.
    """

    low: float | None
    high: float | None
    worth: float | None
    needed: int = 1


def quantile_interval(
    values: Floats, ascending: Floats, q: float | Fraction, whole: Memory | None = None
) -> QuantileInterval:
    """95 % interval of quantile `q` from one series; `values` in measured order, `ascending` the same sorted.

    The binomial order statistics (`quantile_ranks`) of a sample of the effective size, scaled to the ranks of the
    series. The effective size is that for the quantile: the indicator series "above it" may cluster more or less than
    the values. The interval is open above a percentile that the effective n does not support. There is none where the
    series is too short for its own memory, or the effective size too small. `whole` is the memory of the values, where
    the caller has it.
    """
    at = quantile(ascending, q)
    known = flag_memory(values > at if upper(q) else values < at)
    return interval_of(ascending, q, of_quantile(ascending, q, known, whole or memory(values)))


def is_clustered(known: Memory, q: float | Fraction) -> bool:
    """Whether too few clusters lie beyond a quantile to know their clustering: that of all values is then used."""
    return not supported(floor(known.safe_worth), q)


def of_quantile(ascending: Floats, q: float | Fraction, clusters: Memory, whole: Memory) -> Memory:
    """The memory for quantile `q`, from that of the indicator "beyond it" (`clusters`) and of all values (`whole`).

    The noise of an indicator series hides a memory that few values beyond carry. The share of its variance that is
    explained by the values, the squared correlation, has their memory.
    """
    rises, heavy = clusters.rises or whole.rises, clusters.heavy or whole.heavy
    if is_clustered(clusters, q):
        return replace(min(clusters, whole, key=lambda one: one.safe_worth), rises=rises, heavy=heavy)
    if whole.heavy and not whole.rises:
        time = _shared(ascending, q) * whole.safe_time
    elif 0.25 < exact(q) < 0.75:
        # Near the median the indicator shows the memory as well as the values do.
        time = 0.0
    else:
        time = _shared(ascending, q) * whole.time * clusters.safe_time / clusters.time
    return replace(clusters, safe_time=max(time, clusters.safe_time), rises=rises, heavy=heavy)


def _shared(ascending: Floats, q: float | Fraction) -> float:
    """The squared correlation of the values and the indicator "beyond quantile `q`"."""
    n, at = len(ascending), quantile(ascending, q)
    if upper(q):
        beyond = ascending[np.searchsorted(ascending, at, side="right") :]
    else:
        beyond = ascending[: np.searchsorted(ascending, at)]
    k, variance = len(beyond), float(np.var(ascending))
    if not 0 < k < n or variance == 0:
        return 0.0
    return min(1.0, k / (n - k) * (float(beyond.mean()) - float(ascending.mean())) ** 2 / variance)


def interval_of(ascending: Floats, q: float | Fraction, known: Memory) -> QuantileInterval:
    """The interval of quantile `q`, given the memory of the indicator "beyond it"."""
    n = len(ascending)
    worth = known.safe_worth
    needed = max(known.needed, ceil(fewest_for_interval(q) * n / worth))
    if not known.known:
        return QuantileInterval(None, None, worth, needed)
    low, high = scaled_ranks(n, q, worth)
    if known.lasting and not supported(floor(worth / _FEARED), q):
        low, high = (low, None) if upper(q) else (None, high)
    return QuantileInterval(
        float(ascending[low - 1]) if low is not None else None,
        float(ascending[high - 1]) if high is not None else None,
        worth,
        needed,
    )


def scaled_ranks(n: int, q: float | Fraction, worth: float) -> tuple[int | None, int | None]:
    """Ranks among `n` values, of effective size `worth`, between which quantile `q` lies with 95 %.

    None where the interval is open.
    """
    return _scaled_ranks(n, q, max(1, min(n, floor(worth))))


@lru_cache(maxsize=8192)
def _scaled_ranks(n: int, q: float | Fraction, whole: int) -> tuple[int | None, int | None]:
    ranks = quantile_ranks(whole, q)
    scale = (n + 1) / (whole + 1)
    low = max(floor(ranks.low * scale), 1) if ranks.low is not None else None
    high = min(ceil(ranks.high * scale), n) if ranks.high is not None else None
    if not supported(whole, q):
        low, high = (low, None) if upper(q) else (None, high)
    return low, high


def repeated_quantile_interval(
    runs: Sequence[Floats], pooled: Floats, q: float | Fraction
) -> QuantileInterval:
    """95 % interval of quantile `q` of repeated runs taken together; `runs` and `pooled` ascending, two runs at least.

    Each run gives its own share of values at or below the pooled quantile. The spread of these shares includes both
    the variation between runs and the sampling within them; the interval is Student's with one degree of
    freedom less than there are runs.
    """
    n = len(pooled)
    at = quantile(pooled, q)
    shares = np.array([np.searchsorted(run, at, side="right") / len(run) for run in runs])
    half = repeated_half_share(shares, np.array([len(run) for run in runs]))
    low, high = floor((float(exact(q)) - half) * n), ceil((float(exact(q)) + half) * n)
    return QuantileInterval(
        float(pooled[low - 1]) if low >= 1 else None,
        float(pooled[max(high, 1) - 1]) if high <= n else None,
        None,
    )


def repeated_half_share(shares: Floats, sizes: NDArray[np.int64]) -> float:
    """Half-width of the 95 % Student interval of the common share of repeats, from the share and size of each."""
    weights = sizes / sizes.sum()
    # A share moves in steps of 1/n, so two runs may agree by chance although their spread is not zero.
    steps = float(np.sum((weights / sizes) ** 2 / (1 - weights))) / 12
    return student_t(len(sizes) - 1) * sqrt(weighted_variance(shares, weights) + steps)


def weighted_variance(values: Floats, weights: Floats) -> float:
    """Estimated variance of the mean of independent `values` with `weights` that sum to 1; two values at least.

    Each squared deviation is corrected for the weight of its own value in the mean (the HC2 form): with equal weights
    this is the usual variance over n.
    """
    mean = float(np.dot(weights, values))
    return float(np.sum((weights * (values - mean)) ** 2 / (1 - weights)))


def repeated_mean_half_width(means: Floats, weights: Floats) -> float | None:
    """Half-width of the 95 % Student interval of the weighted mean of repeated runs; None below two runs.

    Runs differ by more than sampling (placement, temperature, neighbours), which only repeats show. The spread of the
    runs' means includes both parts, so the parts within runs are not added again.
    """
    if len(means) < 2:
        return None
    return student_t(len(means) - 1) * sqrt(weighted_variance(means, weights))


def repeated_deviation_interval(runs: Sequence[Floats]) -> tuple[float, float] | None:
    """95 % interval of the standard deviation over a population of runs; two runs of two values at least.

    The variance is the sum of that between runs' means and that within runs. The interval of the first is that of a
    variance of normal run effects, with one degree of freedom less than there are runs; of the second, Student's from
    the spread of the runs' own variances. They are joined by the modified large-sample rule (Graybill and Wang, J. Am.
    Stat. Assoc. 75, 1980). With few runs far apart the upper end is far away.
    """
    kept = [run for run in runs if len(run) >= 2]
    return deviation_interval_of(
        np.array([len(run) for run in kept], dtype=np.float64),
        np.array([float(run.mean()) for run in kept]),
        np.array([float(np.var(run, ddof=1)) for run in kept]),
    )


def deviation_interval_of(size: Floats, means: Floats, own: Floats) -> tuple[float, float] | None:
    """`repeated_deviation_interval` from the size, mean and variance of each run; None below two runs."""
    count = len(size)
    if count < 2:
        return None
    weights = size / size.sum()
    between, within = float(np.var(means, ddof=1)), float(np.dot(weights, own * (1 - 1 / size)))
    half = student_t(count - 1) * sqrt(weighted_variance(own, weights))
    tails = special.chdtri(count - 1, [0.025, 0.975])
    down = between * (1 - (count - 1) / float(tails[0]))
    up = between * ((count - 1) / float(tails[1]) - 1)
    total = between + within
    low = max(total - sqrt(down**2 + min(half, within) ** 2), 0.0)
    return sqrt(low), sqrt(total + sqrt(up**2 + half**2))


def repeated_share_worth(counts: Sequence[int], sizes: Sequence[int]) -> float:
    """The effective number of independent observations of repeats for their common share (Korn and Graubard, 1998).

    share (1 - share) over the variance between runs, lowered by the square of Student's factor for so few runs; never
    above the sum of `sizes`. That sum where the share is 0 or 1, since the runs then show no spread.
    """
    total, n = sum(counts), sum(sizes)
    filled = [(count, size) for count, size in zip(counts, sizes, strict=True) if size]
    if total in (0, n) or len(filled) < 2:
        return float(n)
    share = total / n
    shares = np.array([count / size for count, size in filled])
    weights = np.array([size / n for _, size in filled])
    variance = weighted_variance(shares, weights)
    if variance == 0:
        return float(n)
    shrink = (student_t(n - 1) / student_t(len(filled) - 1)) ** 2
    return float(max(1.0, min(n, share * (1 - share) / variance * shrink)))
