"""Figures of many series at once: those of one length are one table, and a call of NumPy does for all of them.

What judges a flow asks for the figures of its series and goes on when it has them: `Asking` is a generator that yields
what it asks. `together` runs those of many flows side by side and answers them all at once; `alone` runs one. The
answers are the same. A run of thousands of flows has tens of thousands of series with few values each, and asked one by
one most of the time goes into the asking; long series cost what their values cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.percentiles import Percentile, needed_for, percentiles
from wiregauge.measures.metrics.threads import THREADS, side_by_side
from wiregauge.stats import MeanEstimate, many
from wiregauge.stats.memory import Memory
from wiregauge.stats.quantiles import rank

__all__ = ["Asked", "Asking", "Figures", "alone", "asked_for", "together"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
T = TypeVar("T")

Key = tuple[str | int, bytes]
"""What series that remember the same have in common."""

MOST = 1024
"""Values of a series that is looked at together with others."""
TABLE = 1 << 17
"""Values of a table: of more rows there are several."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A series in measured order, one value at least, and what is asked of it beside its mean."""

    values: Floats
    quantiles: Mapping[str, float] = field(default_factory=dict)
    spread: bool = False
    """Also how far the values spread."""
    step: float = 1e-3
    """Of the grid that differences of values lie on: a picosecond, in the unit of the values."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was asked of a series."""

    n: int
    negative: int
    minimum: float
    maximum: float
    estimate: MeanEstimate
    percentiles: Mapping[str, Percentile]
    sd: float | None
    mad: float | None
    sd_interval: tuple[float, float] | None


Asking = Generator[Sequence[Asked], Sequence[Figures], T]
"""What yields the series it asks for, is sent their figures, and returns what it makes of them."""


def alone(asking: Asking[T]) -> T:
    """What one makes of its answers."""
    return together([asking])[0]


def together(askings: Sequence[Asking[T]]) -> list[T]:
    """What each makes of its answers, in their order."""
    known: dict[Key, Memory] = {}
    done: dict[int, T] = {}
    answers: dict[int, Sequence[Figures] | None] = dict.fromkeys(range(len(askings)))
    while answers:
        asked: dict[int, Sequence[Asked]] = {}
        for place, answer in answers.items():
            try:
                asked[place] = next(askings[place]) if answer is None else askings[place].send(answer)
            except StopIteration as end:
                done[place] = end.value
        figures = iter(_answers([one for some in asked.values() for one in some], known))
        answers = {place: [next(figures) for _ in some] for place, some in asked.items()}
    return [done[place] for place in range(len(askings))]


def asked_for(making: Sequence[Callable[[], Asked]], size: int) -> Asking[list[Figures]]:
    """The figures of series that are made when they are needed: of long ones few are there at a time."""
    step = max(len(making), 1) if size <= MOST else THREADS
    found: list[Figures] = []
    for begin in range(0, len(making), step):
        found += yield [make() for make in making[begin : begin + step]]
    return found


def _answers(asked: Sequence[Asked], known: dict[Key, Memory]) -> list[Figures]:
    found: dict[int, Figures] = {}
    tables: dict[tuple[int, tuple[str, ...], bool], list[int]] = defaultdict(list)
    long = [place for place, one in enumerate(asked) if len(one.values) > MOST]
    size = max((len(asked[place].values) for place in long), default=0)
    found.update(zip(long, side_by_side(_of_one, [asked[place] for place in long], size), strict=True))
    for place, one in enumerate(asked):
        if place not in found:
            tables[len(one.values), tuple(one.quantiles), one.spread].append(place)
    for (n, _, _), places in tables.items():
        size = max(TABLE // n, 1)
        for begin in range(0, len(places), size):
            some = places[begin : begin + size]
            found.update(zip(some, _of_many([asked[place] for place in some], known), strict=True))
    return [found[place] for place in range(len(asked))]


def _of_one(one: Asked) -> Figures:
    """Of a long series."""
    ascending = np.sort(one.values)
    estimate = stats.mean_estimate(one.values)
    if estimate is None:
        raise ValueError("a series without values has no figures")
    return Figures(
        len(ascending),
        int(np.searchsorted(ascending, 0.0)),
        float(ascending[0]),
        float(ascending[-1]),
        estimate,
        percentiles([one.values], ascending, one.quantiles),
        *(
            (
                stats.standard_deviation(one.values),
                stats.mad_of_ascending(ascending),
                stats.deviation_interval(one.values),
            )
            if one.spread
            else (None, None, None)
        ),
    )


def _of_many(asked: Sequence[Asked], known: dict[Key, Memory]) -> Iterator[Figures]:
    """Of series of one length, of which the same is asked."""
    rows = np.stack([one.values for one in asked])
    n = rows.shape[1]
    ascending = np.sort(rows, axis=1)
    alike = _Alike(rows, np.array([one.step for one in asked]), known)
    memories = alike.memories(rows, "values")
    estimates = many.mean_estimates(rows, memories)
    told = _percentiles(rows, ascending, asked[0].quantiles, memories, alike)
    if asked[0].spread:
        spread = zip(
            many.standard_deviations(rows),
            many.mads_of_ascending(ascending),
            many.deviation_intervals(rows, lambda squares, some: alike.memories(squares, "squares", some)),
            strict=True,
        )
    else:
        spread = zip(*[[None] * len(asked)] * 3, strict=True)
    columns = zip(
        np.count_nonzero(rows < 0.0, axis=1).tolist(),
        ascending[:, 0].tolist(),
        ascending[:, -1].tolist(),
        estimates,
        told,
        spread,
        strict=True,
    )
    for negative, least, most, estimate, percentiles_, (deviation, mad, interval) in columns:
        yield Figures(n, negative, least, most, estimate, percentiles_, deviation, mad, interval)


class _Alike:
    """Which rows differ by a constant, or by their unit: they remember the same, and one of them is asked."""

    def __init__(self, rows: Floats, steps: Floats, known: dict[Key, Memory]) -> None:
        steps_from_first = np.rint((rows - rows[:, :1]) / steps[:, None]).astype(np.int64)
        self._keys = [row.tobytes() for row in steps_from_first]
        self._known = known

    def memories(self, rows: Floats | Flags, of: str, some: NDArray[np.int64] | None = None) -> list[Memory]:
        """The memory of each row; what they are made `of` the rows at hand, all or `some`, is part of the name."""
        if rows.dtype == np.bool_:
            # Few values fall into few patterns of yes and no, whatever they are themselves.
            named: list[Key] = [
                (rows.shape[1], row.tobytes()) for row in np.packbits(rows.astype(np.bool_), axis=1)
            ]
        else:
            keys = self._keys if some is None else [self._keys[row] for row in some.tolist()]
            named = [(of, key) for key in keys]
        first: dict[Key, int] = {}
        for row, key in enumerate(named):
            if key not in self._known:
                first.setdefault(key, row)
        if first:
            found = many.memories_of(rows[list(first.values())])
            self._known.update(zip(first, found, strict=True))
        return [self._known[key] for key in named]


@lru_cache(maxsize=64)
def _unsupported(quantiles: tuple[tuple[str, float], ...]) -> dict[str, Percentile]:
    return {name: Percentile(q, None, None, None, needed_for(q)) for name, q in quantiles}


def _percentiles(
    rows: Floats, ascending: Floats, quantiles: Mapping[str, float], memories: Sequence[Memory], alike: _Alike
) -> list[Mapping[str, Percentile]]:
    """The percentiles of each row, as `percentiles` has them of a single run."""
    n = rows.shape[1]
    # What n does not support is the same for all.
    without = _unsupported(tuple(quantiles.items()))
    told = {name: one for name, one in without.items() if n >= one.needed}
    if not told:
        return [without] * len(rows)
    found = [dict(without) for _ in rows]
    for name, one in told.items():
        at = ascending[:, rank(n, one.q) - 1]
        beyond = many.beyond(rows, at, one.q)
        intervals = many.quantile_intervals(ascending, one.q, alike.memories(beyond, name), memories)
        for of_row, value, interval in zip(found, at.tolist(), intervals, strict=True):
            of_row[name] = Percentile(
                one.q,
                value,
                interval.low,
                interval.high,
                one.needed,
                interval.worth,
                interval.needed if interval.low is None and interval.high is None else None,
            )
    return list(found)
