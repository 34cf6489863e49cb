"""Passages of a flow's frames through each switch.

A passage is a frame entering a switch together with its leaving by one port (a multicast frame leaves by several);
tracking pairs them, see docs/reference/run-directory.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.files.typed_json import HIDDEN, Count, Figure, Key
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.batching import Pending, SeriesRequest, SeriesStatistics
from wiregauge.measures.metrics.judgement import Series
from wiregauge.records import RunDirectoryError

__all__ = ["Hop", "Passages", "hops_of", "passages", "pool_hops", "read_columns"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_QUANTILES = {"p99": 0.99}


class Hop(Struct, frozen=True):
    """Passages of a flow's frames through a switch, by output port; residence times in ns."""

    switch: str
    port: Count
    n: Count
    minimum: Annotated[float, Key("min")]
    mean: float
    half_width: Annotated[Figure, Key("uncertainty")]
    """Half-width of the mean's 95 % interval, ns, timestamp error included; None for under two values or no spread
    of repeats."""
    p99: Figure
    maximum: Annotated[float, Key("max")]
    bound: Annotated[float, HIDDEN]
    """The part of `half_width` that no averaging reduces: the timestamps."""


class Passages(Struct, frozen=True):
    """Passages of one flow through switches, in the order of leaving: by node and output port; times in ps."""

    sequence: Integers
    node: Integers
    port: Integers
    residence: Integers
    out: Integers

    def series(self, nodes: frozenset[int] | None = None) -> Series:
        """Residence times, ns, of the passages through `nodes` (None: all)."""
        out, residence = self.out, self.residence
        if nodes is not None:
            chosen = np.isin(self.node, list(nodes))
            out, residence = out[chosen], residence[chosen]
        return Series(out / 1e12, residence / 1000)

    def stretches(self) -> Integers:
        """The stretch of numbers that each passage is of, where the flow is sampled."""
        return self.sequence // sampling.STRETCH

    def by_port(self) -> Iterator[tuple[int, int, Integers]]:
        """Node, output port, and which passages are theirs, in their order."""
        place = (self.node << 32) + self.port
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        for begin, end in _alike(ordered):
            rows = order[begin:end]
            yield int(self.node[rows[0]]), int(self.port[rows[0]]), rows

    def hops(self) -> list[tuple[int, int, Floats]]:
        """Residence times, ns, by node and output port."""
        return [(node, port, self.residence[rows] / 1000) for node, port, rows in self.by_port()]


def passages(
    path: Path | None, one_in: Mapping[int, int], flows: tuple[int, int] | None = None
) -> dict[int, Passages]:
    """The passages of the measured part in the passages table `path`, by flow; empty without one.

    For a flow in `one_in` those of one in so many stretches of its messages; with `flows` only those of these numbers,
    first to last. Raises RunDirectoryError for a file that cannot be read.
    """
    if path is None:
        return {}
    columns = ("flow", "sequence", "node", "port", "came", "left")
    only = sampling.chosen(one_in) if one_in else None
    if flows is not None:
        within = pl.col("flow").is_between(*flows)
        only = within if only is None else within & only
    table = read_columns(path, columns, only).select(
        pl.col("flow", "sequence", "node", "port").cast(pl.Int64),
        residence=(pl.col("left") - pl.col("came")).cast(pl.Int64),
        out=pl.col("left").cast(pl.Int64),
    )
    if not table["flow"].is_sorted():
        table = table[table.select(pl.arg_sort_by("flow", maintain_order=True)).to_series()]
    numbers = table["flow"].to_numpy()
    each = [table[name].to_numpy() for name in ("sequence", "node", "port", "residence", "out")]
    del table
    return {
        int(numbers[begin]): Passages(*(column[begin:end] for column in each))
        for begin, end in _alike(numbers)
    }


def _alike(ordered: Integers) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of equal numbers."""
    seams = (np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()
    yield from pairwise([0, *seams, len(ordered)] if len(ordered) else [])


def hops_of(through: Passages | None, names: Sequence[str], timestamp_ns: float) -> Pending[tuple[Hop, ...]]:
    """The passages by switch and output port; a hop has no more figures than a table shows.

    `timestamp_ns` is the error of a difference of two timestamps. Both are of the switch's own clock, which adds
    none.
    """
    own = through.hops() if through is not None else []

    def told(statistics: Sequence[SeriesStatistics]) -> tuple[Hop, ...]:
        return tuple(
            _hop(names[node] if 0 <= node < len(names) else f"node {node}", port, one, timestamp_ns)
            for (node, port, _), one in zip(own, statistics, strict=True)
        )

    return Pending([SeriesRequest(values, _QUANTILES) for _, _, values in own], told)


def _hop(switch: str, port: int, one: SeriesStatistics, timestamp_ns: float) -> Hop:
    half = one.estimate.half_width
    return Hop(
        switch,
        port,
        one.n,
        one.minimum,
        one.estimate.mean,
        half + timestamp_ns if half is not None else None,
        one.percentiles["p99"].value,
        one.maximum,
        timestamp_ns,
    )


def pool_hops(runs: Sequence[Sequence[Hop]]) -> tuple[Hop, ...]:
    """Hops of all repeats; a percentile of several runs is not the percentiles' mean, so it is left out."""
    groups: dict[tuple[str, int], list[Hop]] = defaultdict(list)
    for hops in runs:
        for hop in hops:
            groups[hop.switch, hop.port].append(hop)
    return tuple(_pooled(hops) for hops in groups.values())


def _pooled(hops: Sequence[Hop]) -> Hop:
    n = sum(hop.n for hop in hops)
    means, weights = np.array([hop.mean for hop in hops]), np.array([hop.n / n for hop in hops])
    half = stats.repeated_mean_half_width(means, weights)
    bound = max(hop.bound for hop in hops)
    return Hop(
        hops[0].switch,
        hops[0].port,
        n,
        min(hop.minimum for hop in hops),
        float(np.dot(weights, means)),
        half + bound if half is not None else None,
        hops[0].p99 if len(hops) == 1 else None,
        max(hop.maximum for hop in hops),
        bound,
    )


def read_columns(
    path: Path,
    columns: tuple[str, ...],
    only: pl.Expr | None = None,
    most: int | None = None,
    *,
    span: tuple[int, int] | None = None,
    made: Mapping[str, pl.Expr] | None = None,
) -> pl.DataFrame:
    """`columns` of a Parquet file of the run directory, vocabularies as text, at most `most` rows.

    `span`: only rows from a position on, and their number; `made` are columns computed from the stored ones. Raises
    RunDirectoryError for a file that cannot be read.
    """
    try:
        lazy = pl.scan_parquet(path, glob=False)
        lazy = lazy if span is None else lazy.slice(*span)
        words = [name for name in ("point", "reason") if name in columns]
        lazy = lazy.with_columns(pl.col(*words).cast(pl.String)) if words else lazy
        lazy = lazy if only is None else lazy.filter(only)
        lazy = (lazy if made is None else lazy.with_columns(**made)).select(columns)
        return (lazy if most is None else lazy.head(most)).collect(engine="streaming")
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        raise RunDirectoryError(
            f"{path}: is no readable Parquet file ({lines[0][:160]}); simulate or run the test again"
        ) from None
