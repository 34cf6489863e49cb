"""Two-sample tests of a share, a quantile and a mean, and the change that they can detect.

An interval of one side's quantile is open where that side alone has no value extreme enough, even if the other side is
far away. A test needs neither quantile: under the null hypothesis the two samples are one, so the split of the
messages beyond the pooled quantile between the sides is random (the median test of Mood, 1950, and
Westenberg, 1948, at any quantile). That number is hypergeometric, whatever the distribution of the values.

Neighbouring messages are correlated: counts are divided by the messages per independent event, rounded against a
finding. Repeats that differ by more than their messages explain are compared by their spread (Welch, Biometrika 34,
1947).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import ceil, exp, floor, inf, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.intervals import weighted_variance
from wiregauge.stats.memory import flag_memory
from wiregauge.stats.quantiles import exact, quantile, rank
from wiregauge.stats.shift import Flags, Floats, Sample, combined_worth, differ

POWER = 0.8
"""Power: the probability with which a change of the stated size is found, as usual in planning studies."""

_EXACT = 2500.0
"""Variance of a hypergeometric count above which the normal distribution, corrected for continuity, is used."""


class Chance(Struct, frozen=True):
    """One-sided p-values: of a change upwards, and of one downwards, at least as great as observed."""

    up: float
    down: float

    @property
    def both(self) -> float:
        """The two-sided p-value."""
        return min(1.0, 2 * min(self.up, self.down))


NOTHING = Chance(1.0, 1.0)


class Events(Struct, frozen=True):
    """The number of events in `n` messages, in clusters of `clustered` messages.

    `spread` is the variance of the share from its scatter between repeats, with `degrees` degrees of freedom; 0 where
    repeats differ by no more than their messages explain.
    """

    count: int
    n: int
    clustered: float = 1.0
    spread: float = 0.0
    degrees: float = inf


def events(runs: Sequence[Flags]) -> Events:
    """The events in flags, a series per repeat, each in measured order."""
    filled = [flags for flags in runs if len(flags)]
    sizes = np.array([len(flags) for flags in filled], dtype=np.float64)
    counts = np.array([int(np.count_nonzero(flags)) for flags in filled], dtype=np.float64)
    n, count = int(sizes.sum()), int(counts.sum())
    if count in (0, n):
        return Events(count, n)
    worths = [flag_memory(flags).worth for flags in filled]
    clustered = max(1.0, n / combined_worth(filled, worths))
    p = count / n
    if len(filled) > 1 and differ(counts / sizes, p * (1 - p) / np.array(worths)):
        spread = weighted_variance(counts / sizes, sizes / n)
        return Events(count, n, clustered, spread, len(filled) - 1.0)
    return Events(count, n, clustered)


class ShareTest(Struct, frozen=True):
    """Test whether an event has a greater or a smaller share of the messages (Fisher's exact test, conditional)."""

    base: Events
    new: Events

    @property
    def clustered(self) -> float:
        """Messages per event; a side without events takes the other side's clustering."""
        return max(self.base.clustered, self.new.clustered)

    @property
    def chance(self) -> Chance:
        """The p-values of shares this different when both are equal."""
        base, new = self.base, self.new
        if not base.n or not new.n:
            return NOTHING
        up, down = _excess(base, new, self.clustered), _excess(new, base, self.clustered)
        if base.spread or new.spread:
            parts = [(side.spread or self._within(side), side.degrees) for side in (base, new)]
            apart = _welch(new.count / new.n - base.count / base.n, parts)
            up, down = max(up, apart), max(down, 1 - apart)
        return Chance(up, down)

    def _within(self, side: Events) -> float:
        p = (self.base.count + self.new.count) / (self.base.n + self.new.n)
        return p * (1 - p) * self.clustered / side.n

    def reach(self, alpha: float) -> float | None:
        """The change of the share that is found with `POWER` at the two-sided level `alpha`; None where none would be.

        Upwards and downwards, the greater of the two; a share that is too small to be seen falling has upwards only.
        A change that only the loss of every message would show is out of reach. So is any change with too few clustered
        events (`too_few`): their clustering is then unknown, and the next may hit any number.
        """
        base, new, many = self.base, self.new, self.clustered
        if not base.n or not new.n or base.spread or new.spread or self.too_few(alpha):
            return None
        n, m = (max(1, round(side.n / many)) for side in (base, new))
        found = []
        for count in (base.count, base.n - base.count):
            need = _fewest_beside(min(ceil(count / many), n), n, m, alpha / 2)
            if need is not None:
                far = need / m
                share = far + _POWER_FACTOR * sqrt(far * (1 - far) / m)
                found += [share - count / base.n] * (share < 1)
        return max(found, default=None)

    def too_few(self, alpha: float) -> bool:
        """Whether one side has more messages hit than chance explains one by one, but in too few events to prove a
        difference: one outage, say, where the other side had none.
        """
        base, new, many = self.base, self.new, self.clustered
        if many < _ONE_BY_ONE:
            return False
        one_by_one = ShareTest(Events(base.count, base.n), Events(new.count, new.n))
        if one_by_one.chance.both > _STRIKING:
            return False
        n, m = (max(1, round(side.n / many)) for side in (base, new))
        events = min(floor((base.count + new.count) / many), n + m)
        least = min(_at_least(min(events, side), n + m, events, side) for side in (n, m))
        return 2 * least > alpha


_POWER_FACTOR = float(special.ndtri(POWER))
_ONE_BY_ONE = 1.5
"""Messages per event up to which each message counts as an event."""
_STRIKING = 0.05
"""p-value, with each message an event of its own, up to which different shares are not ignored."""


def _excess(less: Events, more: Events, clustered: float) -> float:
    """Probability of at least as many events on the side `more`, when both sides have one share."""
    sizes = [max(1, round(side.n / clustered)) for side in (less, more)]
    few, many = min(ceil(less.count / clustered), sizes[0]), floor(more.count / clustered)
    return _at_least(many, sizes[0] + sizes[1], few + many, sizes[1])


def least_chance(n: int, m: int) -> float:
    """The least two-sided p-value possible for `n` and `m` values: that of complete separation.

    No test of so few values finds anything at a lower level, however far apart they are.
    """
    return min(1.0, 2 * exp(-float(_log_choose(n + m, np.float64(m)))))


def _welch(gap: float, parts: Sequence[tuple[float, float]]) -> float:
    """One-sided p-value of a gap at least so great, from variance and degrees of freedom of either estimate."""
    variance, degrees = _joined(parts)
    if variance == 0:
        return 0.0 if gap > 0 else 1.0
    t = gap / sqrt(variance)
    return float(special.ndtr(-t)) if degrees == inf else float(special.stdtr(degrees, -t))


def _joined(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Variance of a difference and its degrees of freedom (Welch and Satterthwaite)."""
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / degrees for part, degrees in parts)
    return variance, variance**2 / below if below > 0 else inf


def _moments(population: int, hits: int, draws: int) -> tuple[float, float]:
    mean = draws * hits / population
    rest = (population - hits) * (population - draws) / max(population - 1, 1) / population
    return mean, mean * rest


@lru_cache(maxsize=4096)
def _tails(population: int, hits: int, draws: int) -> tuple[int, Floats]:
    """The least count considered, and from there on the probabilities of at least so many (hypergeometric)."""
    mean, variance = _moments(population, hits, draws)
    reach = 12 * sqrt(variance) + 60
    first = max(0, hits + draws - population, floor(mean - reach))
    last = min(hits, draws, ceil(mean + reach))
    k = np.arange(first, last + 1, dtype=np.float64)
    log = (
        _log_choose(hits, k)
        + _log_choose(population - hits, draws - k)
        - _log_choose(population, np.float64(draws))
    )
    return first, np.cumsum(np.exp(log)[::-1])[::-1]


def _log_choose(n: int, k: Floats | np.float64) -> Floats:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _at_least(k: int, population: int, hits: int, draws: int) -> float:
    """Probability that of `hits` in a population at least `k` are among `draws` of it."""
    if k <= max(0, hits + draws - population):
        return 1.0
    mean, variance = _moments(population, hits, draws)
    if variance > _EXACT:
        return float(special.ndtr(-(k - 0.5 - mean) / sqrt(variance)))
    first, tails = _tails(population, hits, draws)
    if k < first:
        return 1.0
    return min(1.0, float(tails[k - first])) if k - first < len(tails) else 0.0


def _fewest(population: int, hits: int, draws: int, tail: float) -> int | None:
    """The least count among `draws` that is reached with probability at most `tail`; None where there is none."""
    most = min(hits, draws)
    mean, variance = _moments(population, hits, draws)
    if variance > _EXACT:
        k = ceil(mean + 0.5 - float(special.ndtri(tail)) * sqrt(variance))
        return k if k <= most else None
    first, tails = _tails(population, hits, draws)
    place = int(np.searchsorted(-tails, -tail))
    return first + place if place < len(tails) and first + place <= most else None


def _fewest_beside(k: int, n: int, m: int, tail: float) -> int | None:
    """The fewest events in `m` messages that differ from `k` in `n` at `tail`; None where not even `m` do."""
    low, high = 0, m
    if _at_least(m, n + m, k + m, m) > tail:
        return None
    while low < high:
        middle = (low + high) // 2
        if _at_least(middle, n + m, k + middle, m) <= tail:
            high = middle
        else:
            low = middle + 1
    return low


class Pair:
    """Two samples of one measure, and a bound of systematic error that a change must exceed (same unit)."""

    def __init__(self, base: Sample, new: Sample, instrument: float = 0.0) -> None:
        self.base, self.new, self.instrument = base, new, instrument
        self._merged: dict[float, Floats] = {}

    def mean(self) -> MeanTest:
        """The test whether the mean moved."""
        return MeanTest(self)

    def quantile(self, q: float) -> QuantileTest:
        """The test whether the quantile `q` moved."""
        return QuantileTest(self, q)

    def tail(self) -> TailTest:
        """The test whether more messages lie beyond all, or nearly all, of the other side."""
        return TailTest(self)

    def remembering(self, quantiles: Iterable[float], *, tail: bool = False) -> Iterator[Flags]:
        """The flag series whose memory is needed by tests of these quantiles and of the tail."""
        for _, *both in self.tail().cuts if tail else ():
            for flags in both:
                yield from flags
        for q in quantiles:
            for by in {self.instrument, -self.instrument}:
                _, _, *both = self.split(q, by)
                for flags in both:
                    yield from flags

    def split(self, q: float, by: float) -> tuple[float, bool, list[Flags], list[Flags]]:
        """A cut at the quantile `q` of both, the new one minus `by`; whether it counts as beyond itself; and flags of
        the values beyond it on either side, by repeat."""
        merged = self.merged(by)
        n = len(merged)
        cut = float(merged[rank(n, q) - 1])
        above = n - int(np.searchsorted(merged, cut, side="right"))
        reaching = n - int(np.searchsorted(merged, cut, side="left"))
        wanted = float((1 - exact(q)) * n)
        within = abs(reaching - wanted) < abs(above - wanted)

        def beyond(values: Floats, less: float) -> NDArray[np.bool_]:
            shifted = values - less if less else values
            return np.asarray(shifted >= cut if within else shifted > cut)

        return (
            cut,
            within,
            [beyond(values, 0.0) for values in self.base.runs],
            [beyond(values, by) for values in self.new.runs],
        )

    def merged(self, by: float) -> Floats:
        """Both samples in ascending order, the new one minus `by`."""
        if by not in self._merged:
            both = np.concatenate([self.base.ascending, self.new.ascending - by])
            both.sort(kind="stable")
            self._merged[by] = both
        return self._merged[by]


class MeanTest(Struct, frozen=True):
    """Welch's test of two means, each with the variance and degrees of freedom from its memory."""

    pair: Pair

    @property
    def chance(self) -> Chance:
        """The p-values of means this different when both are equal and the instrument has its greatest error.

        Never below the probability of drawing just these values for one side out of both: few values prove little,
        however alike they are.
        """
        base, new = self.pair.base, self.pair.new
        if base.n < 2 or new.n < 2:
            return NOTHING
        gap = float(new.pooled.mean() - base.pooled.mean())
        parts = [base.error_of_mean, new.error_of_mean]
        least = least_chance(base.n, new.n) / 2
        up, down = (_welch(sign * gap - self.pair.instrument, parts) for sign in (1, -1))
        return Chance(max(up, least), max(down, least))

    def reach(self, alpha: float) -> float | None:
        """The shift that is found with `POWER` at the two-sided level `alpha`; None where none would be."""
        base, new = self.pair.base, self.pair.new
        if base.n < 2 or new.n < 2 or least_chance(base.n, new.n) > alpha:
            return None
        variance, degrees = _joined([base.error_of_mean, new.error_of_mean])
        return _found_factor(alpha, degrees) * sqrt(variance) + self.pair.instrument


def _found_factor(alpha: float, degrees: float) -> float:
    """The difference in standard errors that is found with `POWER`.

    The standard error is an estimate, both for the stated reach and in the later test; each scatters by
    1 / sqrt(2 degrees) of itself.
    """
    if degrees == inf:
        return float(special.ndtri(1 - alpha / 2)) + _POWER_FACTOR
    least = float(special.stdtrit(degrees, 1 - alpha / 2))
    found = least + _POWER_FACTOR
    for _ in range(30):
        found = least + _POWER_FACTOR * sqrt(1 + (found**2 + least**2) / (2 * degrees))
    return found


class QuantileTest:
    """Test whether more messages than chance explains lie beyond the pooled quantile of both samples.

    Values tied at that quantile count as beyond it or not, whichever brings the share beyond closer to the quantile.
    """

    def __init__(self, pair: Pair, q: float) -> None:
        self.pair, self.q = pair, q
        self._shift = quantile(pair.new.ascending, q) - quantile(pair.base.ascending, q)
        self._up = self._at(pair.instrument)
        self._down = self._up if pair.instrument == 0 else self._at(-pair.instrument)

    def _at(self, by: float) -> tuple[float, bool, ShareTest]:
        """The cut, whether it counts as beyond itself, and the test of the messages beyond it."""
        cut, within, base, new = self.pair.split(self.q, by)
        return cut, within, ShareTest(events(base), events(new))

    @property
    def beyond(self) -> tuple[float, bool, ShareTest]:
        """The deciding split: the cut, whether values at it count as beyond, and the test of the messages beyond it."""
        return self._up if self._shift >= 0 else self._down

    @property
    def chance(self) -> Chance:
        """The p-values of such an uneven split; at least 0.5 in a direction in which the quantile did not move."""
        up, down = self._up[2].chance.up, self._down[2].chance.down
        bound = self.pair.instrument
        return Chance(
            up if self._shift > bound else max(up, 0.5), down if self._shift < -bound else max(down, 0.5)
        )

    def reach(self, alpha: float) -> float | None:
        """The shift that is found with `POWER` at the two-sided level `alpha`; None where none would be, however great.

        The inverted test is an interval of a common shift between two order statistics, one of either side: its
        half-width at the level, plus that at the level of `POWER`. The greater of upwards and downwards.
        """
        found = []
        for test, sign in ((self._up[2], 1), (self._down[2], -1)):
            halves = [self._half(test, sign, tail) for tail in (alpha / 2, 1 - POWER)]
            if halves[0] is None or halves[1] is None:
                return None
            found.append(halves[0] + halves[1] + self.pair.instrument)
        return max(found)

    def _half(self, test: ShareTest, sign: int, tail: float) -> float | None:
        """Excess of the estimated shift over the true one, in the direction of `sign`, of probability `tail`."""
        pair, many = self.pair, test.clustered
        sides = (pair.base, pair.new) if sign > 0 else (pair.new, pair.base)
        sizes = [max(1, round(side.n / many)) for side in sides]
        share = float(1 - exact(self.q))
        # Both sides are rounded, and together they are what their share is of.
        hits = min(round(share * (sides[0].n + sides[1].n) / many), sum(sizes))
        need = _fewest(sum(sizes), hits, sizes[1], tail)
        if need is None:
            return None
        least = _from_above(sides[1].ascending, need * many)
        at = least - _from_above(sides[0].ascending, (hits - need) * many + 1)
        half = max(0.0, sign * self._shift - at)
        spread = [side.spread_of_quantile(self.q) for side in (pair.base, pair.new)]
        parts = [part for part in spread if part is not None]
        if parts:
            variance, degrees = _joined(parts)
            half = max(half, float(special.stdtrit(degrees, 1 - tail)) * sqrt(variance))
        return half


_TOPS = (10, 30)
"""Numbers of greatest messages of both sides together that a tail test compares, besides those beyond a whole side."""


class TailTest:
    """Test whether one side has more messages than chance explains beyond all, or nearly all, of the other.

    A few messages in thousands move neither a mean nor a supported percentile. The number beyond the greatest value of
    the other side has a known distribution (Rosenbaum, Ann. Math. Statist. 25, 1954); so that one outlier there hides
    none, the greatest `_TOPS` of both sides together are tested as well. Each is Fisher's exact test, and the least
    p-value is multiplied by their number (Bonferroni).
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    @cached_property
    def cuts(self) -> tuple[tuple[float, list[Flags], list[Flags]], ...]:
        """Cut values, and flags of the messages beyond them on either side; upwards first, then as many downwards."""
        pair, found = self.pair, []
        for by, greatest in (
            (pair.instrument, pair.base.ascending[-1]),
            (-pair.instrument, pair.new.ascending[-1] + pair.instrument),
        ):
            merged = pair.merged(by)
            tops = [merged[-top - 1] for top in _TOPS if 4 * top <= len(merged)]
            found += [
                (
                    float(cut),
                    [values > cut for values in pair.base.runs],
                    [values - by > cut for values in pair.new.runs],
                )
                for cut in (greatest, *tops)
            ]
        return tuple(found)

    @cached_property
    def _tests(self) -> list[tuple[float, ShareTest]]:
        return [(cut, ShareTest(events(base), events(new))) for cut, base, new in self.cuts]

    @property
    def _asked(self) -> int:
        """The number of cuts in one direction."""
        return len(self.cuts) // 2

    @property
    def chance(self) -> Chance:
        """The p-values of so many messages of one side beyond the other."""
        up = min(test.chance.up for _, test in self._tests[: self._asked])
        down = min(test.chance.down for _, test in self._tests[self._asked :])
        return Chance(min(1.0, up * self._asked), min(1.0, down * self._asked))

    @property
    def beyond(self) -> tuple[float, bool, ShareTest]:
        """The deciding split: the cut with the least p-value, and the test of the messages beyond it."""
        asked = self._asked
        chances = [
            test.chance.up if place < asked else test.chance.down
            for place, (_, test) in enumerate(self._tests)
        ]
        cut, test = self._tests[int(np.argmin(chances))]
        return cut, False, test

    def reach(self, alpha: float) -> float | None:
        """The share of messages beyond all of the other side that is found with `POWER`; None where none would be."""
        found = []
        for test, sides in (
            (self._tests[0][1], (self.pair.base, self.pair.new)),
            (self._tests[self._asked][1], (self.pair.new, self.pair.base)),
        ):
            n, m = (max(1, round(side.n / test.clustered)) for side in sides)
            need = _fewest_beside(0, n, m, alpha / 2 / self._asked)
            if need is None:
                return None
            far = need / m
            found.append(far + _POWER_FACTOR * sqrt(far * (1 - far) / m))
        return max(found) if max(found) < 1 else None


def _from_above(ascending: Floats, place: float) -> float:
    """The order statistic at `place`, counted from the greatest value as 1."""
    k = min(max(round(place), 1), len(ascending))
    return float(ascending[len(ascending) - k])
