"""One-way latency between every pair of points of a leg: not only the pairs that have a name.

A point is a column of the message table. Points of two legs are not paired: what lies between them is the round trip
and its turnaround, which have names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl

from wiregauge import stats
from wiregauge.measures.metrics.columns import present_ps
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.percentiles import Percentile, percentiles, unsupported
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

if TYPE_CHECKING:
    from wiregauge.measures.metrics.results import Summary

__all__ = [
    "NAMES",
    "Correction",
    "PairLatency",
    "distribution_of",
    "known_pair",
    "pair_latencies",
    "side_by_side",
]

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


def distribution_of(start: str, end: str) -> str:
    """What the values between two points are called: their measure, or the pair as a limit names it."""
    return NAMES.get((start, end), f"pair_latency.{start}-{end}")


@dataclass(frozen=True, slots=True)
class PairLatency:
    """Time from one point to another, ns. `half_width` is of the mean, 95 %, clock and timestamp error included.

    `missing` counts messages that one of the two points did not see.
    """

    start: str
    end: str
    n: int
    missing: int
    minimum: float
    mean: float
    half_width: float | None
    percentiles: Mapping[str, Percentile]
    """Those that are always told of a pair, and those that limits name."""
    maximum: float
    bound: float
    """The part of `half_width` that no averaging reduces: clocks and timestamps."""
    values: Sketch | None = field(default=None, repr=False, compare=False)
    """What repeats are pooled from, of a pair that no measure tells of."""
    n_effective: float | None = field(default=None, repr=False, compare=False)
    """Independent values behind the mean of a single run, of such a pair."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What is to be taken out of times between two points, and what remains unknown of them, ns.

    `shift` is the clock of the destination less that of the source, `clock` its uncertainty; `at` is by how much times
    at a point are wrong beyond that, as those of a clock that had to be placed.
    """

    shift: float
    clock: float
    timestamp: float
    at: Mapping[str, float] = field(default_factory=dict)

    def of(self, start: str, end: str) -> tuple[float, float]:
        """What to subtract from a time between two points, and the bound of its error."""
        crossing = (start in _SENDING) != (end in _SENDING)
        sign = 0.0 if not crossing else 1.0 if start in _SENDING else -1.0
        bound = self.timestamp + (self.clock if crossing else 0.0)
        return sign * self.shift, bound + self.at.get(start, 0.0) + self.at.get(end, 0.0)


def pair_latencies(
    rows: pl.DataFrame,
    flow: FlowPlan,
    correction: Correction,
    summaries: Mapping[str, Summary] | None = None,
    *,
    keep: bool = False,
) -> tuple[PairLatency, ...]:
    """Every pair that any message has, in the order of the way, from rows in the order of sequence.

    What `summaries` already tell of the same messages is taken from there. With `keep` the values of the others stay,
    for repeats to be pooled.
    """
    named = summaries or {}

    def one(pair: tuple[str, str]) -> PairLatency | None:
        start, end = pair
        shift, bound = correction.of(start, end)
        took = rows[end] - rows[start]
        known = named.get(NAMES.get(pair, ""))
        if known is not None and known.n == rows.height - took.null_count():
            return known_pair(start, end, took.null_count(), known, flow.pair_quantiles, bound)
        return _pair(start, end, took, shift, bound, flow.pair_quantiles, keep=keep)

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
    start: str,
    end: str,
    took: pl.Series,
    shift: float,
    bound: float,
    quantiles: Mapping[str, float],
    *,
    keep: bool = False,
) -> PairLatency | None:
    values = present_ps(took) / 1000 - shift
    if not len(values):
        return None
    if took.min() == took.max():
        same, n = float(values[0]), len(values)
        found = unsupported(quantiles)
        for name, one in found.items():
            if n >= one.needed:
                found[name] = replace(one, value=same, low=same, high=same)
        half = bound if n > 1 else None
        kept = sketches.coarse_sketch_of(values) if keep else None
        return PairLatency(
            start, end, n, took.null_count(), same, same, half, found, same, bound, values=kept
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
        percentiles([values], ascending, quantiles),
        float(ascending[-1]),
        bound,
        values=sketches.coarse_sketch_of(ascending) if keep else None,
        n_effective=estimate.n_effective if estimate is not None else None,
    )


def known_pair(
    start: str, end: str, missing: int, summary: Summary, names: Iterable[str], bound: float
) -> PairLatency | None:
    """The pair whose latency `summary` tells, with the percentiles of these names; None without values."""
    if summary.minimum is None or summary.mean is None or summary.maximum is None:
        return None
    found = {name: summary.percentiles[name] for name in names}
    half = summary.uncertainty.sampling + bound if summary.uncertainty is not None else None
    return PairLatency(
        start, end, summary.n, missing, summary.minimum, summary.mean, half, found, summary.maximum, bound
    )
