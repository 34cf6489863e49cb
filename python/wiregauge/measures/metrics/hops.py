"""What each switch did to the frames of a flow, passage by passage.

A passage is a frame entering a switch together with its leaving by one port (a multicast frame leaves by several);
tracking pairs them, see docs/reference/run-directory.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.results import Hop, Series
from wiregauge.records import RunDirectoryError

__all__ = ["Passages", "passages", "read_columns"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages of one flow through switches, in the order of leaving: by node and output port."""

    frame: pl.DataFrame

    def series(self, nodes: frozenset[int] | None = None) -> Series:
        """Residence times, ns, of the passages through `nodes` (None: all)."""
        chosen = self.frame if nodes is None else self.frame.filter(pl.col("node").is_in(list(nodes)))
        return Series(
            chosen["out"].cast(pl.Float64).to_numpy() / 1e12,
            chosen["residence"].cast(pl.Float64).to_numpy() / 1000,
        )

    def stretches(self) -> NDArray[np.int64]:
        """The stretch of numbers that each passage is of, where the flow is sampled."""
        return (self.frame["sequence"] // sampling.STRETCH).to_numpy()

    def hops(self) -> list[tuple[int, int, Floats]]:
        """Residence times, ns, by node and output port."""
        return [
            (int(node), int(port), part["residence"].cast(pl.Float64).to_numpy() / 1000)
            for (node, port), part in sorted(
                (key, part) for key, part in self.frame.partition_by("node", "port", as_dict=True).items()
            )
        ]


def passages(path: Path | None, one_in: Mapping[int, int]) -> dict[int, Passages]:
    """The passages of the measured part in the passages table `path`, by flow; none without one.

    Of a flow in `one_in` those of one in so many stretches of its messages.

    Raises RunDirectoryError for a file that cannot be read.
    """
    if path is None:
        return {}
    columns = ("flow", "sequence", "node", "port", "came", "left")
    table = read_columns(path, columns, sampling.chosen(one_in) if one_in else None).select(
        pl.col("flow", "sequence", "node", "port").cast(pl.Int64),
        residence=pl.col("left") - pl.col("came"),
        out="left",
    )
    return {int(flow): Passages(part) for (flow,), part in table.partition_by("flow", as_dict=True).items()}


def hops_of(through: Passages | None, names: Sequence[str], timestamp_ns: float) -> tuple[Hop, ...]:
    """The passages by switch and output port; a hop has no more figures than a table shows.

    `timestamp_ns` is the error of a difference of two timestamps. Both are of the switch's own clock, which adds
    none.
    """
    found = []
    for node, port, values in through.hops() if through is not None else ():
        ascending = np.sort(values)
        estimate = stats.mean_estimate(values)
        half = estimate.half_width if estimate is not None else None
        found.append(
            Hop(
                names[node] if 0 <= node < len(names) else f"node {node}",
                port,
                len(ascending),
                float(ascending[0]),
                float(ascending.mean()),
                stats.quantile(ascending, 0.99) if stats.supported(len(ascending), 0.99) else None,
                float(ascending[-1]),
                half + timestamp_ns if half is not None else None,
                timestamp_ns,
            )
        )
    return tuple(found)


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
        hops[0].p99 if len(hops) == 1 else None,
        max(hop.maximum for hop in hops),
        half + bound if half is not None else None,
        bound,
    )


def read_columns(
    path: Path, columns: tuple[str, ...], only: pl.Expr | None = None, most: int | None = None
) -> pl.DataFrame:
    """`columns` of a Parquet file of the run directory, vocabularies as text, at most so many rows.

    Raises RunDirectoryError for a file that cannot be read.
    """
    try:
        lazy = pl.scan_parquet(path)
        words = [name for name in ("point", "reason") if name in columns]
        lazy = lazy.with_columns(pl.col(*words).cast(pl.String)) if words else lazy
        lazy = (lazy if only is None else lazy.filter(only)).select(columns)
        return (lazy if most is None else lazy.head(most)).collect(engine="streaming")
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        raise RunDirectoryError(
            f"{path}: is no readable Parquet file ({lines[0][:160]}); simulate or run the test again"
        ) from None
