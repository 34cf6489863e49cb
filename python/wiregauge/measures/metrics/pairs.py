"""One-way latency between every pair of points of a leg, named or not.

A point is a column of the message table. Points of two legs are not paired: between them are the round trip and its
turnaround, which have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.measures.metrics.arrays import Column, Part
from wiregauge.measures.metrics.batching import Pending, SeriesRequest, SeriesStatistics
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.percentiles import Percentile, unsupported
from wiregauge.measures.metrics.summary import Summary
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = [
    "NAMES",
    "Correction",
    "PairLatency",
    "crosses",
    "distribution_of",
    "known_pair",
    "pair_latencies",
]

OUTWARD = ("intended", "tx_app", "tx_drv", "tx_wire", "rx_wire", "rx_drv", "rx_app")
RETURN = ("back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app")
_SENDING = frozenset({"intended", "tx_app", "tx_drv", "tx_wire", "back_rx_drv", "back_rx_app"})
"""Points at the flow's sender; all others are at its destination."""
NAMES = {
    ("tx_app", "rx_app"): "latency",
    ("tx_drv", "rx_drv"): "driver_latency",
    ("intended", "rx_app"): "service_latency",
    ("intended", "tx_app"): "send_error",
    ("back_tx_app", "back_rx_app"): "return_latency",
}
"""Pairs that are a measure of their own."""


def crosses(start: str, end: str) -> bool:
    """Whether two points are at different ends of the flow."""
    return (start in _SENDING) != (end in _SENDING)


def distribution_of(start: str, end: str) -> str:
    """The name of the distribution between two points: their measure, or the pair as a limit names it."""
    return NAMES.get((start, end), f"pair_latency.{start}-{end}")


class PairLatency(Struct, frozen=True):
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
    """The percentiles always printed for a pair, and those that limits name."""
    maximum: float
    bound: float
    """The part of `half_width` that no averaging reduces: clocks and timestamps."""
    values: Sketch | None = None
    """Sketch from which repeats are pooled, for a pair that is no measure."""
    n_effective: float | None = None
    """Effective number of values behind the mean of a single run, for such a pair."""


class Correction(Struct, frozen=True):
    """The correction of times between two points, and the error that remains, ns.

    `shift` is the clock of the destination less that of the source, `clock` its uncertainty; `at` is by how much times
    at a point are wrong beyond that, as those of a clock that had to be placed.
    """

    shift: float
    clock: float
    timestamp: float
    at: Mapping[str, float] = field(default_factory=dict)

    def of(self, start: str, end: str) -> tuple[float, float]:
        """The value to subtract from a time between two points, and the bound of its error, ns."""
        crossing = crosses(start, end)
        sign = 0.0 if not crossing else 1.0 if start in _SENDING else -1.0
        bound = self.timestamp + (self.clock if crossing else 0.0)
        return sign * self.shift, bound + self.at.get(start, 0.0) + self.at.get(end, 0.0)


def pair_latencies(
    part: Part,
    flow: FlowPlan,
    correction: Correction,
    summaries: Mapping[str, Summary] | None = None,
    *,
    keep: bool = False,
) -> Pending[tuple[PairLatency, ...]]:
    """Every pair that any message has, in the order of the way, from rows in the order of sequence.

    Figures in `summaries` of the same messages are taken from there. With `keep` the values of the others are kept, so
    that repeats can be pooled.
    """
    named = summaries or {}
    found: list[PairLatency | _Unknown | None] = []
    for start, end in _pairs(part, flow):
        shift, bound = correction.of(start, end)
        took = part.column(f"{start} to {end}", pl.col(end) - pl.col(start))
        known = named.get(NAMES.get((start, end), ""))
        if known is not None and known.n == part.height - took.missing:
            found.append(known_pair(start, end, took.missing, known, flow.pair_quantiles, bound))
            continue
        one = _Unknown(start, end, took, shift, bound, flow.pair_quantiles, keep)
        found.append(one if one.varies else one.constant())

    def told(statistics: Sequence[SeriesStatistics]) -> tuple[PairLatency, ...]:
        answers = iter(statistics)
        each = (one.told(next(answers)) if isinstance(one, _Unknown) else one for one in found)
        return tuple(one for one in each if one is not None)

    return Pending([one.request() for one in found if isinstance(one, _Unknown)], told)


def _pairs(part: Part, flow: FlowPlan) -> Iterator[tuple[str, str]]:
    for points in (OUTWARD, RETURN) if flow.relayed else (OUTWARD,):
        seen = [name for name in points if part.column(name).missing < part.height]
        yield from combinations(seen, 2)


class _Unknown(Struct, frozen=True):
    """A pair that is no measure."""

    start: str
    end: str
    took: Column
    shift: float
    bound: float
    quantiles: Mapping[str, float]
    keep: bool

    @property
    def varies(self) -> bool:
        """Whether not all messages took the same time."""
        took = self.took.present()
        return bool(len(took)) and bool(took.min() != took.max())

    def request(self) -> SeriesRequest:
        """The values, made when their turn comes."""
        return SeriesRequest(
            lambda: self.took.present() / 1000 - self.shift, self.quantiles, most=len(self.took.values)
        )

    def constant(self) -> PairLatency | None:
        """The figures if all messages took the same time; None without messages."""
        n = len(self.took.present())
        if not n:
            return None
        same = float(self.took.present()[0] / 1000 - self.shift)
        found = dict(unsupported(self.quantiles))
        for name, one in found.items():
            if n >= one.needed:
                found[name] = replace(one, value=same, low=same, high=same)
        return self._pair(n, same, same, same, 0.0 if n > 1 else None, found, None)

    def told(self, figures: SeriesStatistics) -> PairLatency:
        """The pair with these statistics of its values."""
        estimate = figures.estimate
        return self._pair(
            figures.n,
            figures.minimum,
            estimate.mean,
            figures.maximum,
            estimate.half_width,
            figures.percentiles,
            estimate.n_effective,
        )

    def _pair(
        self,
        n: int,
        least: float,
        mean: float,
        most: float,
        half: float | None,
        found: Mapping[str, Percentile],
        worth: float | None,
    ) -> PairLatency:
        kept = None
        if self.keep:
            kept = sketches.coarse_sketch_of(np.sort(self.took.present() / 1000 - self.shift))
        half = half + self.bound if half is not None else None
        return PairLatency(
            self.start, self.end, n, self.took.missing, least, mean, half, found, most, self.bound,
            values=kept, n_effective=worth,
        )  # fmt: skip


def known_pair(
    start: str, end: str, missing: int, summary: Summary, names: Iterable[str], bound: float
) -> PairLatency | None:
    """The pair whose latency is in `summary`, with the percentiles of these names; None without values."""
    if summary.minimum is None or summary.mean is None or summary.maximum is None:
        return None
    found = {name: summary.percentiles[name] for name in names}
    half = summary.uncertainty.sampling + bound if summary.uncertainty is not None else None
    return PairLatency(
        start, end, summary.n, missing, summary.minimum, summary.mean, half, found, summary.maximum, bound
    )
