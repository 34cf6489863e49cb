"""States of the devices of AS6802 clusters over a simulated run, and the distance of their clocks."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.records.clockstates import SYNC_STATES

__all__ = ["MOST_STATES", "PrecisionShape", "StateSpan", "SyncView", "sync_view"]

Floats = NDArray[np.float64]

MOST_STATES = 600
"""States of a device that are drawn, the first."""
MARKS = 800
"""Stretches of time precision is reduced to; of each its greatest value is drawn."""
SECOND = 1e12
"""Picoseconds."""


class StateSpan(Struct, frozen=True):
    """A device was in a state from `start` to `end`, s of true time."""

    node: str
    state: str
    start: float
    end: float


class PrecisionShape(Struct, frozen=True):
    """The greatest difference of the clocks of synchronised devices, ns, by the integration cycle's time, s."""

    master: str
    t: Floats
    precision: Floats


class SyncView(Struct, frozen=True):
    """Devices in the order of the plan, with their states, and the times at which they detected a wrong clique."""

    nodes: tuple[str, ...] = ()
    states: tuple[StateSpan, ...] = ()
    cliques: tuple[tuple[str, float], ...] = ()
    precision: tuple[PrecisionShape, ...] = ()
    left_out: int = 0


def sync_view(directory: Recorded, plan: RunPlan) -> SyncView:
    """The view of a run; empty where nothing synchronises by AS6802.

    Raises RunDirectoryError for a damaged file.
    """
    path = directory.truth(plan.index)
    if path is None:
        return SyncView()
    wanted = pl.col("kind").cast(pl.String).is_in(["sync-state", "sync-clique", "sync-precision"])
    truth = read_columns(path, ("time", "kind", "value", "node"), wanted)
    if not truth.height:
        return SyncView()
    truth = truth.with_columns(pl.col("kind").cast(pl.String)).sort("time", maintain_order=True)
    end = max(plan.warm_up_ns + plan.duration_ns, float(truth["time"][-1]) / 1e3) / 1e9
    nodes, spans, left_out = [], [], 0
    changes = truth.filter(pl.col("kind") == "sync-state")
    for (node,), part in sorted(changes.partition_by("node", as_dict=True).items()):
        name = _name(directory.plan, int(node))
        nodes.append(name)
        left_out += max(part.height - MOST_STATES, 0)
        times = [*(part["time"].cast(pl.Float64) / SECOND), end]
        spans += [
            StateSpan(name, SYNC_STATES[code], start, stop)
            for code, start, stop in zip(part["value"][:MOST_STATES], times, times[1:], strict=False)
            if 0 <= code < len(SYNC_STATES)
        ]
    found = truth.filter(pl.col("kind") == "sync-clique").head(MOST_STATES)
    measured = truth.filter(pl.col("kind") == "sync-precision")
    return SyncView(
        tuple(nodes),
        tuple(spans),
        tuple(
            (_name(directory.plan, node), time / SECOND)
            for node, time in found.select("node", "time").iter_rows()
        ),
        tuple(
            _precision(_name(directory.plan, int(node)), part)
            for (node,), part in sorted(measured.partition_by("node", as_dict=True).items())
        ),
        left_out,
    )


def _precision(master: str, part: pl.DataFrame) -> PrecisionShape:
    t = part["time"].cast(pl.Float64).to_numpy() / SECOND
    value = part["value"].cast(pl.Float64).to_numpy() / 1e3
    if len(t) > 2 * MARKS:
        stretch = np.minimum(((t - t[0]) / (t[-1] - t[0]) * MARKS).astype(np.int64), MARKS - 1)
        begins = np.flatnonzero(np.append(True, stretch[1:] != stretch[:-1]))
        value, t = np.maximum.reduceat(value, begins), t[begins]
    return PrecisionShape(master, t, value)


def _name(plan: CampaignPlan, node: int) -> str:
    return plan.network.nodes[node].name if 0 <= node < len(plan.network.nodes) else f"node {node}"
