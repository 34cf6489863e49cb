"""One-way latency between every pair of points of a leg: not only the pairs that have a name.

A point is a column of the message table. Points of two legs are not paired: what lies between them is the round trip
and its turnaround, which have names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.plan import FlowPlan
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

if TYPE_CHECKING:
    from wiregauge.measures.results import Summary

__all__ = ["NAMES", "PairLatency", "known_pair", "pair_latencies", "side_by_side"]

OUTWARD = ("intended", "tx_app", "tx_drv", "tx_wire", "rx_wire", "rx_drv", "rx_app")
RETURN = ("back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app")
_SENDING = frozenset({"intended", "tx_app", "tx_drv", "tx_wire", "back_rx_drv", "back_rx_app"})
"""Points at the flow's sender; the others are at its destination."""
_THREADS = 2
_WORTH_A_THREAD = 50_000
T = TypeVar("T")
R = TypeVar("R")
NAMES = {
    ("tx_app", "rx_app"): "latency",
    ("tx_drv", "rx_drv"): "driver_latency",
    ("intended", "rx_app"): "service_latency",
    ("intended", "tx_app"): "send_error",
    ("back_tx_app", "back_rx_app"): "return_latency",
}
"""Pairs that are a measure of their own."""


@dataclass(frozen=True, slots=True)
class PairLatency:
    """Time from one point to another, ns. `half_width` is of the mean, 95 %, clock and stamp error included.

    `missing` counts messages that one of the two points did not see. Percentiles are (value, low, high), None where n
    does not support them.
    """

    start: str
    end: str
    n: int
    missing: int
    minimum: float
    mean: float
    half_width: float | None
    p50: tuple[float, float | None, float | None] | None
    p99: tuple[float, float | None, float | None] | None
    maximum: float
    bound: float
    """The part of `half_width` that no averaging reduces: clocks and stamps."""
    values: Sketch | None = field(default=None, repr=False, compare=False)
    """What repeats are pooled from, of a pair that no measure tells of."""


def pair_latencies(
    rows: pl.DataFrame,
    flow: FlowPlan,
    shift_ns: float,
    clock_ns: float,
    stamp_ns: float,
    summaries: Mapping[str, Summary] | None = None,
    at_ns: Mapping[str, float] | None = None,
    *,
    keep: bool = False,
) -> tuple[PairLatency, ...]:
    """Every pair that any message has, in the order of the way, from rows in the order of sequence.

    `shift_ns` is the clock of the destination less that of the source, `clock_ns` its uncertainty. What `summaries`
    already tell of the same messages is taken from there. `at_ns` is by how much times at a point are wrong beyond
    that, as those of a clock that had to be placed. With `keep` the values of the others stay, for pooling.
    """
    named, own = summaries or {}, at_ns or {}

    def one(pair: tuple[str, str]) -> PairLatency | None:
        start, end = pair
        crossing = (start in _SENDING) != (end in _SENDING)
        sign = 0.0 if not crossing else 1.0 if start in _SENDING else -1.0
        bound = stamp_ns + (clock_ns if crossing else 0.0) + own.get(start, 0.0) + own.get(end, 0.0)
        took = rows[end] - rows[start]
        known = named.get(NAMES.get(pair, ""))
        if known is not None and known.n == rows.height - took.null_count():
            return known_pair(start, end, took.null_count(), known, bound)
        return _pair(start, end, took, sign * shift_ns, bound, keep=keep)

    pairs = list(_pairs(rows, flow))
    return tuple(found for found in side_by_side(one, pairs, rows.height) if found is not None)


def side_by_side(work: Callable[[T], R], items: Sequence[T], size: int) -> list[R]:
    """`work` of every item, in their order; on two threads where `size` values each are worth the change of thread.

    Sorting, which is most of the work, lets go of the interpreter.
    """
    if size < _WORTH_A_THREAD:
        return [work(item) for item in items]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, items))


def _pairs(rows: pl.DataFrame, flow: FlowPlan) -> Iterator[tuple[str, str]]:
    for points in (OUTWARD, RETURN) if flow.relayed else (OUTWARD,):
        seen = [name for name in points if rows[name].null_count() < rows.height]
        yield from combinations(seen, 2)


def _pair(
    start: str, end: str, took: pl.Series, shift: float, bound: float, *, keep: bool = False
) -> PairLatency | None:
    values = took.drop_nulls().cast(pl.Float64).to_numpy() / 1000 - shift
    if not len(values):
        return None
    if took.min() == took.max():
        same = float(values[0])
        constant = (same, same, same)
        p50, p99 = (constant if stats.supported(len(values), q) else None for q in (0.5, 0.99))
        half = bound if len(values) > 1 else None
        kept = sketches.coarse_sketch_of(values) if keep else None
        return PairLatency(
            start, end, len(values), took.null_count(), same, same, half, p50, p99, same, bound, values=kept
        )
    ascending = np.sort(values)
    estimate = stats.mean_estimate(values)
    half = estimate.half_width if estimate is not None else None
    return PairLatency(
        start,
        end,
        len(values),
        took.null_count(),
        float(ascending[0]),
        float(values.mean()),
        half + bound if half is not None else None,
        _percentile(values, ascending, 0.5),
        _percentile(values, ascending, 0.99),
        float(ascending[-1]),
        bound,
        values=sketches.coarse_sketch_of(ascending) if keep else None,
    )


def known_pair(start: str, end: str, missing: int, summary: Summary, bound: float) -> PairLatency | None:
    """The pair whose latency `summary` tells; None without values."""
    if summary.minimum is None or summary.mean is None or summary.maximum is None:
        return None
    p50, p99 = (
        (p.value, p.low, p.high) if p.value is not None else None
        for p in (summary.percentiles["p50"], summary.percentiles["p99"])
    )
    half = summary.uncertainty.sampling + bound if summary.uncertainty is not None else None
    return PairLatency(
        start, end, summary.n, missing, summary.minimum, summary.mean, half, p50, p99, summary.maximum, bound
    )


def _percentile(
    values: NDArray[np.float64], ascending: NDArray[np.float64], q: float
) -> tuple[float, float | None, float | None] | None:
    if not stats.supported(len(ascending), q):
        return None
    found = stats.quantile_interval(values, ascending, q)
    return stats.quantile(ascending, q), found.low, found.high
