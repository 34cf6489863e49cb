"""Where the passages of a flow through switches took how long, in a window of time."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import Recorded

__all__ = ["HopShare", "hop_shares"]

_PS_PER_S = 1e12
_PS_PER_NS = 1e3


class HopShare(Struct, frozen=True):
    """Passages through one output port of a switch; times in ns."""

    node: str
    port: int
    returning: bool
    """Whether they are of the way back of round trips."""
    n: int
    mean: float
    greatest: float


def hop_shares(
    directory: Recorded, run: RunPlan, flow: FlowPlan, begin: float | None, end: float | None
) -> list[HopShare]:
    """The passages of a flow that left a switch from `begin` to before `end` (s; None: no bound), by output port.

    In the order in which the first of them left. Raises RunDirectoryError for a file that cannot be read.
    """
    path = directory.passages(run.index)
    if path is None:
        return []
    mine = pl.col("flow") == flow.id
    if begin is not None:
        mine &= pl.col("left") >= round(begin * _PS_PER_S)
    if end is not None:
        mine &= pl.col("left") < round(end * _PS_PER_S)
    stay = pl.col("left") - pl.col("came")
    query = (
        pl.scan_parquet(path, glob=False)
        .filter(mine)
        .group_by("node", "port", "returning")
        .agg(n=pl.len(), mean=stay.mean(), greatest=stay.max(), first=pl.col("left").min())
        .sort("first", "node", "port")
    )
    names = directory.plan.network.names
    return [
        HopShare(
            names[row["node"]],
            row["port"],
            row["returning"],
            row["n"],
            row["mean"] / _PS_PER_NS,
            row["greatest"] / _PS_PER_NS,
        )
        for row in directory.collected(run.index, query).iter_rows(named=True)
    ]
