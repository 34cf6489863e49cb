"""The uncertainty of the mean of an autocorrelated series, and its effective number of independent values.

The variance of a mean of n values is the spectrum of the series at frequency zero over n, and at zero no series has an
ordinate. The ordinates next to zero show its course: flat (independent values), flat below a knee (a memory
that ends within the series), or rising without end (long-range dependence). All such shapes are compared with the
lowest ordinates by Whittle's likelihood, and none is chosen: each gives a variance of the mean, each is weighted by its
likelihood, and the interval is that of the mixture. So a poorly known memory (few values, few bursts, a spectrum that
still rises at its lowest ordinate) widens the interval accordingly.

Where few events make up a series, its variance is less certain than its ordinates suggest. The fourth moment of sums
over blocks as long as the memory shows by how much, and reduces the degrees of freedom (Satterthwaite, Biometrics
Bulletin 2, 1946); their third moment widens the interval of a mean whose events lie on one side (Johnson, Journal of
the American Statistical Association 73, 1978).

Roads not taken. One autocorrelation time, taken as the truth, covered 85 to 92 % with five to ten bursts and 37 to
75 % under long-range dependence. Few batches, or self-normalisation, give needlessly long intervals where nothing is
wrong. A block bootstrap needs this memory for the length of its blocks, and a thousand passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.mixture import half_widths

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POINTS = 1024
"""Sums over equal blocks from which the spectrum is computed: the ordinates next to zero need no more."""
SHORTEST = 4
"""The shortest series, in values, whose dependence is estimated."""
_NORMAL = 1.959963984540054
_CAP = 64.0
"""The most ordinates that a group counts for: those far from zero must not outweigh those next to it."""
# Exponents and floors of shapes with a knee; of those without.
_EXPONENTS = (0.15, 0.3, 0.5, 1.0)
_FLOORS = (0.0, 1e-4, 4e-4, 1.5e-3, 5e-3, 0.02, 0.06, 0.18, 0.4, 0.7)
_LONG = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
_LONG_FLOORS = (0.0, 0.1, 0.3, 0.6)
_ENDING, _LONGEST = 0.2, 0.15
"""Prior weights of shapes with a knee and, at the full number of points, without one; the rest is flat."""
_UNENDING = 0.95
"""Weight of shapes as steep as a trend above which no interval is given."""
_DOUBT = 0.25
"""Weight of shapes that rise without end above which only they count."""
_LOWEST = 5.0
"""Degrees of freedom where all depends on the lowest ordinates."""
_NEGLIGIBLE = 1e-4
"""Weight relative to the likeliest shape below which shapes are left out."""
_NOTHING = 1e-24
"""Share of the variance of the values below which sums over blocks differ by rounding alone."""
_EXACT = 0.7
"""Share of the correction for few events that is left with exact bounds of a count: they are already too wide."""
_BATCHES = 4
"""Parts of a series whose means show what its spectrum does not, where it is mostly a few bursts."""
_BURSTS = 12
"""The number of greatest bursts that the tail is estimated from (Hill, Annals of Statistics 3, 1975)."""
_FEARED, _HEAVY = 0.33, 0.5
"""Tail index (mean logarithm of the greatest bursts over the next) above which the tail may be heavy, so that means get
the interval of batches; and above which it is taken as heavy for percentiles, for which that costs more.
"""
_ONE_BURST = 0.12
"""Share of all deviation in one burst above which the bursts are too few to estimate their tail, taken as heavy."""
_LASTING = 4.0
"""Values per independent value above which there are bursts."""
_AT_ONCE = 64
"""Series that are compared with all shapes together: more would not fit into a cache."""


class Memory(Struct, frozen=True):
    """The memory of a series of `n` values in measured order."""

    n: int
    time: float
    """Values per independent value: the mean over all shapes; at least 1."""
    safe_time: float
    """`time`, raised until a normal interval is as long as the mixture's, to include the uncertainty of the memory."""
    needed: int
    """Values that a series with this memory needs for intervals."""
    rises: bool = False
    """Whether the spectrum rises to its lowest ordinate."""
    heavy: bool = False
    """Whether bursts are heavy-tailed."""

    @property
    def lasting(self) -> bool:
        """Whether the memory may have no end."""
        return self.rises or self.heavy

    @property
    def known(self) -> bool:
        """Whether the series is long enough to estimate its memory."""
        return self.n >= self.needed

    @property
    def worth(self) -> float:
        """Effective number of independent values for the mean."""
        return self.n / self.time

    @property
    def safe_worth(self) -> float:
        """Effective number of independent values whose interval includes the uncertainty of the memory; at least 1."""
        return max(1.0, self.n / self.safe_time)


def memory(values: Floats) -> Memory:
    """Estimates the memory of a series in measured order."""
    return _too_short(len(values)) if len(values) < SHORTEST else _known(*_told(values), skewed=True)


def _told(values: Floats) -> tuple[int, float, bytes]:
    """The data that the memory depends on: length, variance, and sums over blocks."""
    n = len(values)
    edges, sizes = _blocks(n)
    sums = np.add.reduceat(values, edges) - float(values.mean()) * sizes
    return n, float(np.var(values)), sums.tobytes()


def memories(rows: Floats) -> list[Memory]:
    """`memory` of each row of a table: series of one length, each in measured order."""
    n = rows.shape[1]
    if n < SHORTEST:
        return [_too_short(n)] * len(rows)
    edges, sizes = _blocks(n)
    sums = rows if len(edges) == n else np.add.reduceat(rows, edges, axis=1)
    return _judged(n, np.var(rows, axis=1), sums - rows.mean(axis=1)[:, None] * sizes, skewed=True)


def flag_memory(flags: Flags) -> Memory:
    """`memory` of a series of flags."""
    n = len(flags)
    return Memory(n, 1.0, 1.0, 1) if n < SHORTEST else _known(*_told_of_flags(flags))


def _told_of_flags(flags: Flags) -> tuple[int, float, bytes]:
    """As `_told`, for flags."""
    n = len(flags)
    share = np.count_nonzero(flags) / n
    edges, sizes = _blocks(n)
    sums = np.add.reduceat(flags, edges, dtype=np.int64) - share * sizes
    return n, share * (1 - share), sums.tobytes()


def flag_memories(rows: Flags) -> list[Memory]:
    """`flag_memory` of each row of a table."""
    n = rows.shape[1]
    if n < SHORTEST:
        return [Memory(n, 1.0, 1.0, 1)] * len(rows)
    share = np.count_nonzero(rows, axis=1) / n
    edges, sizes = _blocks(n)
    sums = np.add.reduceat(rows, edges, axis=1, dtype=np.int64) - share[:, None] * sizes
    return _judged(n, share * (1 - share), sums, skewed=False)


def flags_worth(flags: Flags) -> float:
    """Effective number of independent observations for the share of flags; between 1 and n."""
    n = len(flags)
    # If all are alike nothing is known of their clustering: each counts.
    if not flags.any() or flags.all():
        return float(n)
    return min(flag_memory(flags).safe_worth, float(n))


def _too_short(n: int) -> Memory:
    return Memory(n, 1.0, (float(special.stdtrit(n - 1, 0.975)) / _NORMAL) ** 2 if n > 1 else 1.0, 1)


def _points(n: int) -> int:
    """The number of blocks for n values; few different numbers, since each has a table of its own."""
    if n >= POINTS:
        return POINTS
    return n if n <= 64 else int(64 * 1.1 ** int(np.log(n / 64) / np.log(1.1) + 1e-9))


@lru_cache(maxsize=64)
def _blocks(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start and size of each block of n values."""
    points = _points(n)
    edges = np.arange(points, dtype=np.int64) * n // points
    return edges, np.diff(edges, append=n)


_Key = tuple[int, float, bytes, bool]
_NOTHING_AHEAD: Final[Mapping[_Key, Memory]] = MappingProxyType({})
_ahead: ContextVar[Mapping[_Key, Memory]] = ContextVar("ahead", default=_NOTHING_AHEAD)
"""Results of `asked_ahead`, for its own thread and innermost block."""


@contextmanager
def asked_ahead(series: Iterable[Floats | Flags]) -> Iterator[None]:
    """Computes `memory` and `flag_memory` of these series in advance, for use within the block.

    Series of one length are computed together, at a tenth of the cost of one after the other.
    """
    groups: dict[tuple[int, bool], dict[tuple[float, bytes], None]] = {}
    for one in series:
        if len(one) < SHORTEST:
            continue
        skewed = one.dtype != np.bool_
        n, variance, told = _told(one.astype(np.float64)) if skewed else _told_of_flags(one.astype(np.bool_))
        groups.setdefault((n, skewed), {})[variance, told] = None
    known: dict[_Key, Memory] = {}
    for (n, skewed), keys in groups.items():
        variances = np.array([variance for variance, _ in keys])
        sums = np.stack([np.frombuffer(told, dtype=np.float64) for _, told in keys])
        found = _judged(n, variances, sums, skewed=skewed)
        known.update(((n, *key, skewed), memory) for key, memory in zip(keys, found, strict=True))
    token = _ahead.set(known)
    try:
        yield
    finally:
        _ahead.reset(token)


def _known(n: int, variance: float, sums: bytes, *, skewed: bool = False) -> Memory:
    ahead = _ahead.get().get((n, variance, sums, skewed))
    return _alone(n, variance, sums, skewed=skewed) if ahead is None else ahead


@lru_cache(maxsize=512)
def _alone(n: int, variance: float, sums: bytes, *, skewed: bool) -> Memory:
    """`_judged` with a cache: half of the series of a flow are equal.

    Times that differ by a constant exceed their percentiles together, and a percentile with few values beyond it needs
    the memory of the values again.
    """
    return _judged(n, np.array([variance]), np.frombuffer(sums)[None, :], skewed=skewed)[0]


def _judged(n: int, variance: Floats, sums: Floats, *, skewed: bool) -> list[Memory]:
    """The memory of series of n values from the variance of each and its centred sums over blocks, a row each."""
    power = special.cosine_transform(sums)[:, 1:] ** 2 * (sums.shape[1] / n)
    # The sums are all equal if values repeat within every block, as in a strict cycle: there is no memory.
    telling = (variance > 0) & (power.max(axis=1) > _NOTHING * variance)
    found = [Memory(n, 1.0, 1.0, 1)] * len(sums)
    asked = np.flatnonzero(telling)
    if not len(asked):
        return found
    known, each = _courses(sums.shape[1]), []
    for begin in range(0, len(asked), _AT_ONCE):
        some = asked[begin : begin + _AT_ONCE]
        each.append(_weighed(variance[some], power[some], known))
    mean, half, unending, endless = (np.concatenate(column) for column in zip(*each, strict=True))
    uneven, skew = _events(sums[asked], np.minimum(n / mean, sums.shape[1]))
    held = np.where(endless, _LOWEST, known.held)
    degrees = 1 / (1 / held + (1.0 if skewed else _EXACT) * uneven / 2)
    factor = special.stdtrit(np.maximum(degrees, 1.0), 0.975)
    if skewed:
        factor = factor + np.abs(skew) * (1 + 2 * factor**2) / 6
    tails = _tails(sums[asked], mean)
    of_batches = np.where(
        tails > (_FEARED if skewed else _HEAVY), _of_batches(n, variance[asked], sums[asked]), 0.0
    )
    safe = np.maximum((half / _NORMAL * factor / _NORMAL) ** 2, of_batches)
    for row, time, longest, lasts, rises, heavy in zip(
        asked.tolist(),
        np.maximum(mean, 1.0).tolist(),
        np.maximum(safe, 1.0).tolist(),
        unending.tolist(),
        endless.tolist(),
        (tails > _HEAVY).tolist(),
        strict=True,
    ):
        found[row] = (
            Memory(n, time, float(n), 2 * n, rises=True, heavy=heavy)
            if lasts
            else Memory(n, time, longest, 1, rises=rises, heavy=heavy)
        )
    return found


def _weighed(
    variance: Floats, power: Floats, known: _Courses
) -> tuple[Floats, Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Averages over all shapes for each row: values per independent value, half-width of the mixture, whether the
    memory is as long as the series, and whether all depends on the lowest ordinates.
    """
    grouped = np.add.reduceat(power, known.starts, axis=1) * known.part
    # A product for each row: with one for all, the order of additions would depend on the other rows.
    scale = np.matmul(known.inverse, grouped[:, :, None])[:, :, 0]
    scale /= known.held
    share = np.log(scale)
    share *= known.held
    share += known.logs
    share *= -0.5
    share += known.prior
    share -= share.max(axis=1)[:, None]
    np.exp(share, out=share)
    # The likeliest has weight 1.
    share *= share > _NEGLIGIBLE
    share /= share.sum(axis=1)[:, None]
    scale *= known.at_zero
    scale /= variance[:, None]
    times = scale
    mean = (share * times).sum(axis=1)
    unending = share[:, known.unending].sum(axis=1) > _UNENDING
    endless = share[:, known.endless].sum(axis=1) > _DOUBT
    if endless.any():
        # The lowest ordinates decide; they are few and dependent (Robinson, Annals of Statistics 23).
        share[np.ix_(endless, ~known.endless)] = 0.0
        share[endless] /= share[endless].sum(axis=1)[:, None]
    return mean, half_widths(np.sqrt(times), share), unending, endless


def _events(sums: Floats, worth: Floats) -> tuple[Floats, Floats]:
    """Excess variance of squared sums as long as the memory over normal ones; and their skewness."""
    uneven, skew = np.zeros(len(sums)), np.zeros(len(sums))
    numbers = np.minimum(np.maximum(worth / 3, 6), sums.shape[1]).astype(np.int64)
    for number in np.unique(numbers[numbers >= 4]).tolist():
        rows = np.flatnonzero(numbers == number)
        edges = np.arange(number) * sums.shape[1] // number
        each = np.add.reduceat(sums[rows], edges, axis=1)
        squares = each**2
        total = squares.sum(axis=1)
        some = total > 0
        rows, each, squares, total = rows[some], each[some], squares[some], total[some]
        uneven[rows] = np.maximum((squares * squares).sum(axis=1) / total**2 - 3 / number, 0.0)
        skew[rows] = (squares * each).sum(axis=1) / total**1.5
    return uneven, skew


def _of_batches(n: int, variance: Floats, sums: Floats) -> Floats:
    """Values per independent one by the means of `_BATCHES` parts.

    Where burst lengths have infinite variance, the spectrum rises below every ordinate, and a series without a long
    burst does not show it. Intervals from few part means, with Student's factor, cover there, too (Logan, Mallows, Rice
    and Shepp, Annals of Probability 1, 1973), and are needlessly long otherwise. The level is 96 %: some series are one
    burst, and look like any other.
    """
    edges = np.arange(_BATCHES) * sums.shape[1] // _BATCHES
    if sums.shape[1] < _BATCHES:
        return np.zeros(len(sums))
    squares = (np.add.reduceat(sums, edges, axis=1) ** 2).sum(axis=1)
    factor = special.stdtrit(_BATCHES - 1, 0.98) / _NORMAL
    return np.asarray(factor**2 * _BATCHES / (_BATCHES - 1) * squares / n / variance)


def _tails(sums: Floats, time: Floats) -> Floats:
    """Tail index of the sums between two crossings of the mean, by row; 0 without bursts."""
    found = np.zeros(len(sums))
    if sums.shape[1] < POINTS // 2:
        return found  # few values have few bursts, of which one is always great
    for row in np.flatnonzero(time > _LASTING).tolist():
        found[row] = _tail(sums[row])
    return found


def _tail(sums: Floats) -> float:
    crossings = np.flatnonzero(np.diff(sums > 0)) + 1
    bursts = np.abs(np.add.reduceat(sums, np.concatenate([[0], crossings])))
    if bursts.max() > _ONE_BURST * bursts.sum():
        return float(np.inf)
    if len(bursts) < 8 * _BURSTS:
        return 0.0
    greatest = np.partition(bursts, -_BURSTS - 1)[-_BURSTS - 1 :]
    least = float(greatest.min())
    return float(np.log(greatest / least).sum()) / _BURSTS if least > 0 else 0.0


class _Courses(Struct, frozen=True):
    """Possible shapes of a spectrum, at the middle of each group of ordinates.

    `part` is the counted share of a group, `held` the total of counted ordinates; `logs` the sum of logarithms and
    `inverse` the inverse of each shape; `at_zero` its factor of the variance of a mean, `prior` its logarithmic prior
    weight; `unending`: the memory is as long as the series; `endless`: the shape rises without end.
    """

    starts: NDArray[np.int64]
    part: Floats
    held: float
    logs: Floats
    inverse: Floats
    at_zero: Floats
    prior: Floats
    unending: NDArray[np.bool_]
    endless: NDArray[np.bool_]


@lru_cache(maxsize=128)
def _courses(points: int) -> _Courses:
    edges = [1]
    while edges[-1] < points:
        edges.append(min(points, max(edges[-1] + 1, ceil(edges[-1] * 1.25))))
    bounds = np.array(edges)
    sizes = np.diff(bounds).astype(np.float64)
    part = np.minimum(_CAP / sizes, 1.0)
    middle = (bounds[:-1] + bounds[1:] - 1) / 2
    # On this scale the spectrum of a first-order autoregression has the shape below, to its end.
    at = 2 * points / np.pi * np.sin(np.pi * middle / 2 / points)
    knees = 0.5 * 1.6 ** np.arange(0, max(np.log(2 * points) / np.log(1.6), 1))
    # The mean of n values sees the spectrum through Fejer's kernel, two ordinates wide.
    y = np.geomspace(1e-9, 20, 1500)
    y, width = np.sqrt(y[1:] * y[:-1]), np.diff(y)
    kernel = np.sinc(y) ** 2 * width
    kernel /= kernel.sum()

    def ending(x: Floats) -> Floats:
        base = 1 + (x[None, :] / knees[:, None]) ** 2
        return np.asarray(base[None] ** -np.array(_EXPONENTS)[:, None, None])

    def unending(x: Floats) -> Floats:
        return np.asarray(x[None, :] ** (-2 * np.array(_LONG)[:, None]))

    def lifted(courses: Floats, floors: tuple[float, ...]) -> Floats:
        above = np.array(floors).reshape(-1, *[1] * courses.ndim)
        return (above + (1 - above) * courses[None]).reshape(-1, courses.shape[-1])

    table = np.vstack(
        [np.ones((1, len(at))), lifted(ending(at), _FLOORS), lifted(unending(at), _LONG_FLOORS)]
    )
    zero = [
        np.ones(1),
        lifted((ending(2 * y) @ kernel)[..., None], _FLOORS)[:, 0],
        lifted((unending(2 * y) @ kernel)[..., None], _LONG_FLOORS)[:, 0],
    ]
    # A short series cannot separate an endless memory from a long one: the prior is lowered for it.
    endless = _LONGEST * (points / POINTS) ** 2
    beforehand = (1 - _ENDING - endless, _ENDING, endless)
    prior = np.concatenate(
        [np.full(len(of), share / len(of)) for of, share in zip(zero, beforehand, strict=True)]
    )
    strong = np.tile(np.array(_LONG) >= 0.45, len(_LONG_FLOORS))
    slow = np.broadcast_to(
        (knees[None, :] < 1) & (np.array(_EXPONENTS)[:, None] >= 0.5),
        (len(_FLOORS), len(_EXPONENTS), len(knees)),
    )
    return _Courses(
        bounds[:-1] - 1,
        part,
        float(part @ sizes),
        np.log(table) @ (part * sizes),
        1 / table,
        np.concatenate(zero),
        np.log(prior),
        np.concatenate([[False], slow.ravel(), strong]),
        np.concatenate([[False], np.zeros(slow.size, dtype=np.bool_), np.ones(len(strong), dtype=np.bool_)]),
    )
