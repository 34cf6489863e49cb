"""Statistics of many series at once: a table with a row for each, all of one length, in measured order.

A run of thousands of flows has tens of thousands of series with a few dozen values each. One by one the overhead of
calls would dominate. Every function gives for each row the result of its namesake for that series alone, whatever the
other rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats.intervals import QuantileInterval, interval_of, of_quantile
from wiregauge.stats.memory import Memory, flag_memories, memories
from wiregauge.stats.moments import MeanEstimate, around_deviation, estimated, half_width
from wiregauge.stats.quantiles import upper

__all__ = [
    "beyond",
    "deviation_intervals",
    "mads_of_ascending",
    "mean_estimates",
    "memories_of",
    "quantile_intervals",
    "standard_deviations",
]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def memories_of(rows: Floats | NDArray[np.bool_]) -> list[Memory]:
    """The memory of each row, of values or of flags."""
    if rows.dtype == np.bool_:
        return flag_memories(rows.astype(np.bool_, copy=False))
    return memories(rows.astype(np.float64, copy=False))


def standard_deviations(rows: Floats) -> list[float] | list[None]:
    """`standard_deviation` of each row."""
    if rows.shape[1] < 2:
        return [None] * len(rows)
    found: list[float] = np.std(rows, axis=1, ddof=1).tolist()
    return found


def mean_estimates(rows: Floats, known: Sequence[Memory] | None = None) -> list[MeanEstimate]:
    """`mean_estimate` of each row, which must not be empty; `known` is the memory of the rows."""
    return [
        estimated(mean, spread, memory)
        for mean, spread, memory in zip(
            rows.mean(axis=1).tolist(), standard_deviations(rows), known or memories(rows), strict=True
        )
    ]


def deviation_intervals(
    rows: Floats, known: Callable[[Floats, Rows], Sequence[Memory]] | None = None
) -> list[tuple[float, float] | None]:
    """`deviation_interval` of each row; `known` gives the memory of squared deviations of some rows."""
    found: list[tuple[float, float] | None] = [None] * len(rows)
    if rows.shape[1] < 2:
        return found
    spreads = np.std(rows, axis=1, ddof=1)
    some = np.flatnonzero(spreads)
    for row in np.flatnonzero(spreads == 0).tolist():
        found[row] = 0.0, 0.0
    if not len(some):
        return found
    squares = (rows[some] - rows[some].mean(axis=1)[:, None]) ** 2
    columns = zip(
        some.tolist(),
        spreads[some].tolist(),
        squares.mean(axis=1).tolist(),
        np.std(squares, axis=1, ddof=1).tolist(),
        known(squares, some) if known is not None else memories(squares),
        strict=True,
    )
    for row, spread, mean, deviation, memory in columns:
        if memory.known and mean != 0:
            found[row] = around_deviation(spread, half_width(deviation, memory) / mean)
    return found


def mads_of_ascending(ascending: Floats) -> list[float]:
    """`mad_of_ascending` of each row, which must not be empty."""
    n = ascending.shape[1]
    middle = (ascending[:, (n - 1) // 2] + ascending[:, n // 2]) / 2
    apart = np.sort(np.abs(ascending - middle[:, None]), axis=1)
    found: list[float] = ((apart[:, (n + 1) // 2 - 1] + apart[:, n // 2]) / 2).tolist()
    return found


def beyond(rows: Floats, at: Floats, q: float | Fraction) -> NDArray[np.bool_]:
    """Flags of the values of each row beyond its quantile `q`, which is `at`."""
    return rows > at[:, None] if upper(q) else rows < at[:, None]


def quantile_intervals(
    ascending: Floats, q: float | Fraction, clusters: Sequence[Memory], known: Sequence[Memory]
) -> list[QuantileInterval]:
    """`quantile_interval` of each sorted row; `clusters`: the memory of indicators "beyond it", `known`: of rows."""
    return [
        interval_of(ordered, q, of_quantile(ordered, q, one, whole))
        for ordered, one, whole in zip(ascending, clusters, known, strict=True)
    ]
