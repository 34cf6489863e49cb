"""Statistics of many series at once: those of one length form a table, which a single call of NumPy processes.

A result that needs statistics of series is `Pending`: it lists its requests and turns the answers into the result. A
`Batch` answers the requests of many flows together; each answer is the same as if the series were alone. A run of
thousands of flows has tens of thousands of short series, and one by one the overhead of the calls would dominate. Long
series cost what their values cost, and only a few are held at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.percentiles import Percentile, needed_for, percentiles
from wiregauge.measures.metrics.threads import THREADS, side_by_side
from wiregauge.stats import MeanEstimate, many
from wiregauge.stats.memory import Memory
from wiregauge.stats.quantiles import rank

__all__ = ["Batch", "Pending", "SeriesRequest", "SeriesStatistics", "with_mean"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Key = tuple[str | int, bytes]
"""The properties that series with the same autocorrelation share."""

MOST = 1024
"""Number of values up to which a series is analysed together with others."""
TABLE = 1 << 17
"""Values of a table: of more rows there are several."""


class SeriesRequest(Struct, frozen=True):
    """A series in measured order, one value at least, and the statistics requested besides its mean."""

    values: Floats | Callable[[], Floats]
    """The values, or a function that makes them when they are needed."""
    quantiles: Mapping[str, float] = field(default_factory=dict)
    spread: bool = False
    """Also how far the values spread."""
    step: float = 1e-3
    """Step of the grid that differences of values lie on: a picosecond, in the unit of the values."""
    most: int = 0
    """Most values there can be, where they are yet to be made."""

    def made(self) -> SeriesRequest:
        """The request with its values at hand."""
        return replace(self, values=self.values()) if callable(self.values) else self

    @property
    def array(self) -> Floats:
        """The values, once they are at hand."""
        assert not callable(self.values)
        return self.values


class SeriesStatistics(Struct, frozen=True):
    """The statistics of a series that a request names."""

    n: int
    negative: int
    minimum: float
    maximum: float
    estimate: MeanEstimate
    percentiles: Mapping[str, Percentile]
    sd: float | None
    mad: float | None
    sd_interval: tuple[float, float] | None


class Pending(Struct, Generic[T_co], frozen=True):
    """A result that needs the statistics of series: its requests, and a function from the answers to the result."""

    requests: Sequence[SeriesRequest]
    result: Callable[[Sequence[SeriesStatistics]], T_co]


def with_mean(
    values: NDArray[np.generic], made: Callable[[MeanEstimate | None], T], *, step: float = 1e-3
) -> Pending[T]:
    """A result that needs the estimate of the mean of a series; None of no values."""
    wanted = [SeriesRequest(values.astype(np.float64), step=step)] if len(values) else []
    return Pending(wanted, lambda found: made(found[0].estimate if found else None))


class Batch:
    """Answers the pending results of flows that are judged together; series with the same autocorrelation share it."""

    def __init__(self) -> None:
        self._known: dict[Key, Memory] = {}

    def results(self, pending: Sequence[Pending[T]]) -> list[T]:
        """The result of each, in their order."""
        answers = iter(self.statistics([request for one in pending for request in one.requests]))
        return [one.result([next(answers) for _ in one.requests]) for one in pending]

    def statistics(self, requests: Sequence[SeriesRequest]) -> list[SeriesStatistics]:
        """The statistics of each series, in their order; of long ones few are made at a time."""
        found: dict[int, SeriesStatistics] = {}
        tables: dict[tuple[int, tuple[str, ...], bool], list[tuple[int, SeriesRequest]]] = defaultdict(list)
        long = [place for place, one in enumerate(requests) if _may_be_long(one)]
        made = {place: one for place, one in enumerate(requests) if not _may_be_long(one)}
        for begin in range(0, len(long), THREADS):
            some = {place: requests[place].made() for place in long[begin : begin + THREADS]}
            made |= {place: one for place, one in some.items() if len(one.array) <= MOST}
            alone = {place: one for place, one in some.items() if len(one.array) > MOST}
            size = max((len(one.array) for one in alone.values()), default=0)
            found.update(zip(alone, side_by_side(_of_one, list(alone.values()), size), strict=True))
        for place in sorted(made):
            one = made[place].made()
            tables[len(one.array), tuple(one.quantiles), one.spread].append((place, one))
        for (n, _, _), rows in tables.items():
            size = max(TABLE // n, 1)
            for begin in range(0, len(rows), size):
                places, chosen = zip(*rows[begin : begin + size], strict=True)
                found.update(zip(places, _of_many(chosen, self._known), strict=True))
        return [found[place] for place in range(len(requests))]


def _may_be_long(one: SeriesRequest) -> bool:
    return (one.most if callable(one.values) else len(one.values)) > MOST


def _of_one(one: SeriesRequest) -> SeriesStatistics:
    """The statistics of a long series."""
    values = one.array
    ascending = np.sort(values)
    estimate = stats.mean_estimate(values)
    if estimate is None:
        raise ValueError("a series without values has no statistics")
    return SeriesStatistics(
        len(ascending),
        int(np.searchsorted(ascending, 0.0)),
        float(ascending[0]),
        float(ascending[-1]),
        estimate,
        percentiles([values], ascending, one.quantiles),
        *(
            (
                stats.standard_deviation(values),
                stats.mad_of_ascending(ascending),
                stats.deviation_interval(values),
            )
            if one.spread
            else (None, None, None)
        ),
    )


def _of_many(asked: Sequence[SeriesRequest], known: dict[Key, Memory]) -> Iterator[SeriesStatistics]:
    """The statistics of series of one length, of which the same is wanted."""
    rows = np.stack([one.array for one in asked])
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
        yield SeriesStatistics(n, negative, least, most, estimate, percentiles_, deviation, mad, interval)


class _Alike:
    """Groups of rows that differ by a constant or a unit only: they share their autocorrelation, computed once."""

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
    # All rows have the same n, and so the same unsupported percentiles.
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
