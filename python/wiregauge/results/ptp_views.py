"""Data of the PTP clock view: distance of each clock from its grandmaster, computed from the truth of every clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.recorded import Recorded

__all__ = ["MARKS", "PtpShape", "ptp_shapes"]

Floats = NDArray[np.float64]

MARKS = 1_000
"""Stretches of time an offset is reduced to, each to its greatest."""


class PtpShape(Struct, frozen=True):
    """Distance of a clock from its grandmaster, ns: the greatest of each interval of true time, s."""

    node: str
    t: Floats
    distance: Floats
    changes: tuple[tuple[float, str], ...]
    """Times at which it took another clock for its grandmaster, s, with that clock, from the first other one on."""


def ptp_shapes(directory: Recorded, plan: RunPlan) -> tuple[PtpShape, ...]:
    """Every clock of the domains of a run. Raises RunDirectoryError for a damaged file."""
    path = directory.truth(plan.index)
    told = (
        _truth(path, "ptp-grandmaster").rename({"value": "grandmaster"})
        if path is not None
        else pl.DataFrame()
    )
    if path is None or told.is_empty():
        return ()
    shown = _truth(path, "clock-offset").unique(["time", "node"], keep="last", maintain_order=True)
    own = shown.join_asof(told, on="time", by="node", strategy="backward", check_sortedness=False)
    beside = own.filter((pl.col("grandmaster") >= 0) & (pl.col("grandmaster") != pl.col("node"))).join(
        shown.rename({"node": "grandmaster", "value": "reference"}), on=["time", "grandmaster"]
    )
    length = max((plan.warm_up_ns + plan.duration_ns) * 1_000 / MARKS, 1.0)
    worst = (
        beside.with_columns(
            distance=(pl.col("value") - pl.col("reference")).abs() / 1e3,
            stretch=(pl.col("time") / length).floor(),
        )
        .group_by("node", "stretch", maintain_order=True)
        .agg(pl.col("time").first(), pl.col("distance").max())
    )
    found = []
    for clock in sorted(told["node"].unique()):
        mine = _broken(worst.filter(pl.col("node") == clock).sort("time"))
        changes = told.filter(pl.col("node") == clock)
        found.append(
            PtpShape(
                _name(directory.plan, clock),
                mine["time"].cast(pl.Float64).to_numpy() / 1e12,
                mine["distance"].cast(pl.Float64).to_numpy(),
                tuple(
                    (time / 1e12, _name(directory.plan, grandmaster) if grandmaster >= 0 else "none")
                    for time, grandmaster in changes.select("time", "grandmaster").rows()[1:]
                ),
            )
        )
    return tuple(found)


def _broken(own: pl.DataFrame) -> pl.DataFrame:
    """The rows with a NaN in every gap, so that no line is drawn through it."""
    after_gap = own.filter(pl.col("stretch").diff() > 1)
    gaps = after_gap.with_columns(time=pl.col("time") - 1, distance=pl.lit(np.nan))
    return pl.concat([own, gaps.select(own.columns)]).sort("time")


def _truth(path: Path, kind: str) -> pl.DataFrame:
    columns = ("time", "node", "value")
    return (
        read_columns(path, columns, pl.col("kind").cast(pl.String) == kind)
        .select(pl.col(*columns).cast(pl.Int64))
        .sort("time", maintain_order=True)
    )


def _name(plan: CampaignPlan, node: int) -> str:
    return plan.network.nodes[node].name if 0 <= node < len(plan.network.nodes) else f"node {node}"
