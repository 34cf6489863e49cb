"""The difference of two samples: shifts of quantiles, means and shares, each with an interval.

The shift function of Doksum (Annals of Statistics 2, 1974) is `Q_new(q) - Q_base(q)`. Each quantile gets its own
distribution-free interval from order statistics; two of them become the interval of their difference by MOVER (Zou and
Donner, Statistics in Medicine 27, 2008), which keeps their asymmetry: with `(l, u)` around either estimate

    low  = d - sqrt((new - l_new)^2 + (u_base - base)^2)
    high = d + sqrt((u_new - new)^2 + (base - l_base)^2)

The same rule on Wilson intervals is Newcombe's interval of a difference of proportions (Statistics in Medicine 17,
1998, method 10), which also holds for zero counts.

Neighbouring messages are correlated, so n is replaced by the effective n: for a quantile that of the indicator
"beyond it", whose mean the binomial order statistics describe. A block bootstrap, the road not taken, needs a block
length, a seed and a cost of n per resample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import floor, log, log1p, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.memory import flag_memory, flags_worth, memory
from wiregauge.stats.moments import around_deviation, standard_deviation, student_t
from wiregauge.stats.quantiles import exact, quantile, supported

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HETEROGENEITY = 0.05
"""Repeats count as different when their spread has less than this probability by chance."""


class Estimate(Struct, frozen=True):
    """A value with its interval; an end is None where the sample has no value extreme enough."""

    value: float
    low: float | None
    high: float | None


def difference(base: Estimate, new: Estimate) -> Estimate:
    """`new - base` of two independent estimates, by MOVER; open where an end it needs is open."""
    shift = new.value - base.value
    down = _square(new.value, new.low), _square(base.value, base.high)
    up = _square(new.value, new.high), _square(base.value, base.low)
    return Estimate(
        shift,
        shift - sqrt(down[0] + down[1]) if down[0] is not None and down[1] is not None else None,
        shift + sqrt(up[0] + up[1]) if up[0] is not None and up[1] is not None else None,
    )


def _square(value: float, end: float | None) -> float | None:
    return None if end is None else (value - end) ** 2


class Sample:
    """One measure of one flow: a series per repeat, each in measured order. Empty repeats are left out.

    The repeats are pooled. Where they differ among each other by more than their messages explain (a chi-squared test
    at 5 %), the spread between them widens the interval: Student's with repeats - 1 degrees of freedom. Intervals in
    a report take that spread always (`repeated_quantile_interval`); at the level that many figures need together,
    two or three repeats would then never show anything, however well they agree.
    """

    def __init__(self, runs: Sequence[Floats]) -> None:
        self.runs = [values for values in runs if len(values)]
        if not self.runs:
            raise ValueError("an empty sample cannot be compared")
        self._worth: dict[float, list[float]] = {}

    @cached_property
    def pooled(self) -> Floats:
        """All values of all repeats, one repeat after the other."""
        return np.concatenate(self.runs) if len(self.runs) > 1 else self.runs[0]

    @cached_property
    def ascending(self) -> Floats:
        """All values of all repeats in ascending order."""
        return np.sort(self.pooled)

    @property
    def n(self) -> int:
        """The number of values in all repeats."""
        return len(self.pooled)

    def remembering(self, quantiles: Iterable[float]) -> Iterator[Floats | Flags]:
        """The series whose memory the mean, standard deviation and these quantiles need."""
        yield from self.runs
        if self.n > 1:
            yield from self._squares.runs
        for q in quantiles:
            yield from self._beyond(q)

    def _beyond(self, q: float) -> list[Flags]:
        """Flags of the values beyond a quantile, by repeat."""
        at = quantile(self.ascending, q)
        return [values > at if q >= 0.5 else values < at for values in self.runs]

    def supports(self, q: float) -> bool:
        """Whether n is large enough to print the quantile, at the lower end as at the upper."""
        return supported(self.n, max(q, 1 - q))

    def worth(self, q: float) -> float:
        """The effective number of independent values for quantile `q`, at most n."""
        return combined_worth(self.runs, self._worths(q))

    def quantile(self, q: float, level: float) -> Estimate:
        """The nearest-rank quantile and its order-statistic interval at `level` from the effective number of values."""
        value = quantile(self.ascending, q)
        low, high = self._between_ranks(q, level)
        spread = self.spread_of_quantile(q)
        if spread is not None:
            half = student_t(spread[1], level) * sqrt(spread[0])
            low = None if low is None else min(low, value - half)
            high = None if high is None else max(high, value + half)
        return Estimate(value, low, high)

    def mean(self, level: float) -> Estimate:
        """The mean and its Student interval at `level` from the effective number of values; open for one value."""
        value = float(self.pooled.mean())
        if self.n < 2:
            return Estimate(value, None, None)
        variances, degrees = self._of_means
        shares = np.array([len(values) / self.n for values in self.runs])
        half = student_t(degrees, level) * sqrt(float(np.dot(shares**2, variances)))
        means = np.array([values.mean() for values in self.runs])
        if len(means) > 1 and differ(means, variances):
            half = max(half, _student_half(means, level))
        return Estimate(value, value - half, value + half)

    @property
    def error_of_mean(self) -> tuple[float, float]:
        """Variance of the mean and its degrees of freedom: of the repeats where they differ, else of the values."""
        variances, degrees = self._of_means
        shares = np.array([len(values) / self.n for values in self.runs])
        means = np.array([values.mean() for values in self.runs])
        within = float(np.dot(shares**2, variances))
        if len(means) > 1 and differ(means, variances):
            between = float(np.var(means, ddof=1)) / len(means)
            if between > within:
                return between, len(means) - 1.0
        return within, degrees

    def spread_of_quantile(self, q: float) -> tuple[float, float] | None:
        """Variance of the quantile and its degrees of freedom from repeats that differ; None where they do not."""
        if len(self.runs) < 2:
            return None
        at, p = quantile(self.ascending, q), float(exact(q))
        below = np.array([float(np.mean(values <= at)) for values in self.runs])
        if not differ(below, np.array([p * (1 - p) / m for m in self._worths(q)])):
            return None
        each = np.array([quantile(np.sort(values), q) for values in self.runs])
        return float(np.var(each, ddof=1)) / len(each), len(each) - 1.0

    @cached_property
    def _of_means(self) -> tuple[Floats, float]:
        """Variance of each repeat's mean, and the degrees of freedom they have together."""
        memories = [memory(values) for values in self.runs]
        spread = float(np.var(self.pooled, ddof=1))
        variances = [
            float(np.var(values, ddof=1)) / known.worth if len(values) > 1 else spread
            for values, known in zip(self.runs, memories, strict=True)
        ]
        return np.array(variances), max(sum(known.safe_worth - 1 for known in memories), 1.0)

    @cached_property
    def _squares(self) -> Sample:
        """Squared deviations from the common mean."""
        mean = float(self.pooled.mean())
        return Sample([(values - mean) ** 2 for values in self.runs])

    def deviation(self, level: float) -> Estimate:
        """The standard deviation of all values and its interval, from that of their mean squared deviation.

        On the logarithm, as `deviation_interval`; open for one value. A heavy tail makes it too narrow: the few
        greatest values that dominate a standard deviation may be missing.
        """
        spread = standard_deviation(self.pooled)
        if spread is None:
            return Estimate(0.0, None, None)
        if spread == 0:
            return Estimate(0.0, 0.0, 0.0)
        square = self._squares.mean(level)
        if square.high is None:
            return Estimate(spread, None, None)
        return Estimate(spread, *around_deviation(spread, (square.high - square.value) / square.value))

    def _worths(self, q: float) -> list[float]:
        if q not in self._worth:
            self._worth[q] = [flag_memory(flags).safe_worth for flags in self._beyond(q)]
        return self._worth[q]

    def _between_ranks(self, q: float, level: float) -> tuple[float | None, float | None]:
        """The order statistics of all n values at the ranks of those of `worth` independent ones."""
        m = self.worth(q)
        low, high = (_binomial_rank(m, q, tail) for tail in ((1 - level) / 2, 1 - (1 - level) / 2))
        return self._at(low, m), self._at(high, m)

    def _at(self, rank: float, m: float) -> float | None:
        """Order statistic `rank` of `m` values, read from all n: a fractional rank lies between its neighbours."""
        if not 1 <= rank <= m:
            return None
        place = (rank - 0.5) * self.n / m - 0.5
        left = min(max(floor(place), 0), self.n - 1)
        right = min(left + 1, self.n - 1)
        part = min(max(place - left, 0.0), 1.0)
        return float(self.ascending[left] * (1 - part) + self.ascending[right] * part)


def _binomial_rank(m: float, q: float, tail: float) -> float:
    """The rank, a real number, that a binomial count (m, q) stays below with probability `tail`.

    Between integer ranks the order statistics are interpolated (Hutson, Journal of Applied Statistics 26, 1999), or
    their coarse steps would make intervals at the tails much too wide. 0 where a count of zero is likelier than `tail`:
    the interval is open below.
    """
    if m * log1p(-float(exact(q))) > log(tail):
        return 0.0
    return float(special.bdtrik(tail, m, float(exact(q)))) + 1


def _student_half(values: Floats, level: float) -> float:
    return student_t(len(values) - 1, level) * float(np.std(values, ddof=1)) / sqrt(len(values))


def differ(values: Floats, variances: Floats) -> bool:
    """Whether repeats differ by more than their own variances explain (Cochran's Q against chi-squared)."""
    known = variances > 0
    if not known.all():
        return bool(np.ptp(values) > 0)
    weights = 1 / variances
    centre = float((weights * values).sum() / weights.sum())
    return bool((weights * (values - centre) ** 2).sum() > special.chdtri(len(values) - 1, HETEROGENEITY))


def combined_worth(runs: Sequence[NDArray[np.generic]], worths: Sequence[float]) -> float:
    """The effective number of pooled repeats: the variance of a pooled mean is the weighted sum of theirs."""
    n = sum(len(values) for values in runs)
    return 1 / sum((len(values) / n) ** 2 / m for values, m in zip(runs, worths, strict=True))


def clustering(runs: Sequence[Flags]) -> float:
    """Messages per independent event in flags: n over the effective n, 1 where events do not cluster."""
    filled = [flags for flags in runs if len(flags)]
    if not filled:
        return 1.0
    worth = combined_worth(filled, [flags_worth(flags) for flags in filled])
    return max(1.0, sum(len(flags) for flags in filled) / worth)


def share(count: int, n: int, level: float, clustered: float = 1.0) -> Estimate:
    """The share `count / n` with its Wilson interval at `level`, for events in clusters of `clustered`."""
    if not 0 <= count <= n or n == 0:
        raise ValueError(f"{count} of {n} is not a share")
    p, worth = count / n, n / clustered
    z2 = normal_factor(level) ** 2
    centre = (p + z2 / (2 * worth)) / (1 + z2 / worth)
    half = sqrt(z2 * (p * (1 - p) + z2 / (4 * worth)) / worth) / (1 + z2 / worth)
    return Estimate(
        p, max(0.0, centre - half) if count else 0.0, min(1.0, centre + half) if count < n else 1.0
    )


def simultaneous(level: float, figures: int) -> float:
    """The level of each of `figures` intervals such that all hold together with at least `level` (Bonferroni)."""
    return 1 - (1 - level) / max(figures, 1)


def normal_factor(level: float) -> float:
    """The factor of a two-sided normal interval at `level`: 1.96 for 95 %."""
    return float(special.ndtri(1 - (1 - level) / 2))
