"""How well the mean of a series is known whose values resemble one another, and what the series is worth for that.

The variance of a mean of n values is the spectrum of the series at frequency zero over n, and at zero no series has an
ordinate. What lies beside zero says how the spectrum goes on: flat (independent values), flat below a knee (a memory
that ends within the series), or rising without end (long-range dependence). All such courses are held against the
lowest ordinates by Whittle's likelihood, and none is chosen: each gives the mean a variance, each counts as much as it
explains the ordinates, and the interval is that of the mixture. So a memory of which little is known (few values, few
bursts, a spectrum that still rises at its lowest ordinate) makes the interval as wide as that doubt.

Where few events make up a series, its variance is known less well than its ordinates tell. The fourth moment of sums
over blocks as long as the memory says by how much, and costs degrees of freedom (Satterthwaite, Biometrics Bulletin 2,
1946); their third moment widens the interval of a mean whose events lie on one side (Johnson, Journal of the American
Statistical Association 73, 1978).

Roads not taken. One autocorrelation time, put in for the truth, covered 85 to 92 % with five to ten bursts and 37 to
75 % under long-range dependence. Few batches, or self-normalisation, pay for their safety with length where nothing is
wrong. A block bootstrap needs this memory for the length of its blocks, and a thousand passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats import special
from wiregauge.stats.mixture import half_widths

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POINTS = 1024
"""Sums over equal blocks that the spectrum is taken of: the ordinates beside zero need no more."""
SHORTEST = 4
"""Shorter series say nothing of their own dependence."""
_NORMAL = 1.959963984540054
_CAP = 64.0
"""Ordinates that a group counts for at most: what lies far from zero must not outvote what lies beside it."""
# Exponents and floors of courses with a knee; of those without.
_EXPONENTS = (0.15, 0.3, 0.5, 1.0)
_FLOORS = (0.0, 1e-4, 4e-4, 1.5e-3, 5e-3, 0.02, 0.06, 0.18, 0.4, 0.7)
_LONG = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
_LONG_FLOORS = (0.0, 0.1, 0.3, 0.6)
_ENDING, _LONGEST = 0.2, 0.15
"""What courses with a knee and, at full number of points, such without count beforehand; the rest is flat."""
_UNENDING = 0.95
"""Share of courses as steep as those of a trend from which nothing is said."""
_DOUBT = 0.25
"""Share of courses that rise without end from which only they count."""
_LOWEST = 5.0
"""Degrees of freedom where all hangs on the lowest ordinates."""
_NEGLIGIBLE = 1e-4
"""Of the likeliest course: less likely ones are left out."""
_NOTHING = 1e-24
"""Share of the variance of the values up to which sums over blocks differ by rounding alone."""
_EXACT = 0.7
"""What exact bounds of a count leave to do for few events: they are wider than they have to be."""
_BATCHES = 4
"""Parts of a series whose means tell what its spectrum does not, where a few bursts make up much of it."""
_BURSTS = 12
"""Greatest bursts by which the tail of all is judged (Hill, Annals of Statistics 3, 1975)."""
_FEARED, _HEAVY = 0.33, 0.5
"""Mean logarithm of the greatest bursts over the next from which their tail may be heavy, so that a mean gets the width
of parts; and from which it is taken to be, for percentiles, which pay more for it."""
_ONE_BURST = 0.12
"""Share of all deviation in one burst from which there are too few of them to judge their tail, and it is feared."""
_LASTING = 4.0
"""Values per independent one from which there are bursts at all."""
_AT_ONCE = 64
"""Series that are held against all courses together: more would fill no processor's cache."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a series of `n` values in measured order remembers."""

    n: int
    time: float
    """Values per independent one: the mean over all courses; at least 1."""
    safe_time: float
    """That, raised until a normal interval is as long as the mixture's: what is unknown of the memory is in it."""
    needed: int
    """Values that a series of this memory needs before it says how well its figures are known."""
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
        """Whether the series is long enough for its memory to be judged from it."""
        return self.n >= self.needed

    @property
    def worth(self) -> float:
        """Independent values that the series is worth for its mean."""
        return self.n / self.time

    @property
    def safe_worth(self) -> float:
        """Independent values whose interval is as long as that of the series has to be; at least 1."""
        return max(1.0, self.n / self.safe_time)


def memory(values: Floats) -> Memory:
    """The memory of a series in measured order."""
    return _too_short(len(values)) if len(values) < SHORTEST else _known(*_told(values), skewed=True)


def _told(values: Floats) -> tuple[int, float, bytes]:
    """What the memory of a series rests on: length, variance, and sums over blocks."""
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
    """`memory` of a series of yes and no."""
    n = len(flags)
    return Memory(n, 1.0, 1.0, 1) if n < SHORTEST else _known(*_told_of_flags(flags))


def _told_of_flags(flags: Flags) -> tuple[int, float, bytes]:
    """As `_told`."""
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
    """Independent observations that a series of yes and no is worth for its share; never above n, never below 1."""
    n = len(flags)
    # Where all are alike nothing is known of how they come: each counts.
    if not flags.any() or flags.all():
        return float(n)
    return min(flag_memory(flags).safe_worth, float(n))


def _too_short(n: int) -> Memory:
    return Memory(n, 1.0, (float(special.stdtrit(n - 1, 0.975)) / _NORMAL) ** 2 if n > 1 else 1.0, 1)


def _points(n: int) -> int:
    """Blocks that n values are cut into; few different numbers, for each has a table of its own."""
    if n >= POINTS:
        return POINTS
    return n if n <= 64 else int(64 * 1.1 ** int(np.log(n / 64) / np.log(1.1) + 1e-9))


@lru_cache(maxsize=64)
def _blocks(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each block of n values begins, and how many it holds."""
    points = _points(n)
    edges = np.arange(points, dtype=np.int64) * n // points
    return edges, np.diff(edges, append=n)


_Key = tuple[int, float, bytes, bool]
_NOTHING_AHEAD: Final[Mapping[_Key, Memory]] = MappingProxyType({})
_ahead: ContextVar[Mapping[_Key, Memory]] = ContextVar("ahead", default=_NOTHING_AHEAD)
"""What a block of `asked_ahead` knows: of its own thread alone, and of the innermost block."""


@contextmanager
def asked_ahead(series: Iterable[Floats | Flags]) -> Iterator[None]:
    """Within the block `memory` and `flag_memory` of these series are known already.

    Series of one length are judged together, which costs a tenth of asking for one after the other.
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
    """`_judged`, remembered: of a flow half the series say the same.

    Times between points that lie a constant apart are above their percentiles together, and a percentile that few
    values support asks for the memory of the values again.
    """
    return _judged(n, np.array([variance]), np.frombuffer(sums)[None, :], skewed=skewed)[0]


def _judged(n: int, variance: Floats, sums: Floats, *, skewed: bool) -> list[Memory]:
    """The memory of series of n values by the variance of each and its sums over blocks less their mean, a row each."""
    power = special.cosine_transform(sums)[:, 1:] ** 2 * (sums.shape[1] / n)
    # Values that repeat within every block, as those of a strict cycle: its sums are all one, and nothing lasts.
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
    """What all courses together say of each row: values per independent one, the half-width of the mixture, whether the
    memory is as long as the series, and whether all hangs on the lowest ordinates."""
    grouped = np.add.reduceat(power, known.starts, axis=1) * known.part
    # A product for each row, and not one for all: another order of additions would depend on what is beside it.
    scale = np.matmul(known.inverse, grouped[:, :, None])[:, :, 0]
    scale /= known.held
    share = np.log(scale)
    share *= known.held
    share += known.logs
    share *= -0.5
    share += known.prior
    share -= share.max(axis=1)[:, None]
    np.exp(share, out=share)
    # The likeliest is 1.
    share *= share > _NEGLIGIBLE
    share /= share.sum(axis=1)[:, None]
    scale *= known.at_zero
    scale /= variance[:, None]
    times = scale
    mean = (share * times).sum(axis=1)
    unending = share[:, known.unending].sum(axis=1) > _UNENDING
    endless = share[:, known.endless].sum(axis=1) > _DOUBT
    if endless.any():
        # All hangs on the lowest ordinates, which are few and not independent (Robinson, Annals of Statistics 23).
        share[np.ix_(endless, ~known.endless)] = 0.0
        share[endless] /= share[endless].sum(axis=1)[:, None]
    return mean, half_widths(np.sqrt(times), share), unending, endless


def _events(sums: Floats, worth: Floats) -> tuple[Floats, Floats]:
    """How much less well the variance of sums as long as the memory is known than of normal ones; their skewness."""
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

    Where the lengths of bursts have no variance, the spectrum goes on rising below every ordinate, and a series that
    met no long burst does not show it. Means of few parts, with Student's factor for so few, hold the truth there, too
    (Logan, Mallows, Rice and Shepp, Annals of Probability 1, 1973), and where nothing is wrong they are too long. The
    level is that of 96 %: some series are one burst, and look like any other.
    """
    edges = np.arange(_BATCHES) * sums.shape[1] // _BATCHES
    if sums.shape[1] < _BATCHES:
        return np.zeros(len(sums))
    squares = (np.add.reduceat(sums, edges, axis=1) ** 2).sum(axis=1)
    factor = special.stdtrit(_BATCHES - 1, 0.98) / _NORMAL
    return np.asarray(factor**2 * _BATCHES / (_BATCHES - 1) * squares / n / variance)


def _tails(sums: Floats, time: Floats) -> Floats:
    """How heavy the tail of what lies between two crossings of the mean is, by row; 0 where there are no bursts."""
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


@dataclass(frozen=True, slots=True)
class _Courses:
    """Courses that a spectrum may take, at the middle of each group of ordinates.

    `part` is what of a group counts, `held` how many ordinates that makes; `logs` the sum of logarithms and `inverse`
    the inverse of each course; `at_zero` what it makes of the variance of a mean, `prior` the logarithm of what it
    counts beforehand; `unending`: the memory is as long as the series; `endless`: the course rises without end.
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
    # A mean of n values sees the spectrum through Fejer's kernel, whose width is that of two ordinates.
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
    # A short series cannot tell a memory without end from one that happens to last, and would drown in doubt.
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
