"""Open silences: time without arrivals though messages were due, before a flow that begins late or after one that
dies."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.flow_plan import FlowPlan

__all__ = ["DUE", "open_silences", "tells_unsent", "unsent"]

Flags = NDArray[np.bool_]

DUE = pl.coalesce("intended", "tx_app", "tx_drv")
"""Due time of a message by its sender's clock; where no plan gives it, the time at which it left."""


def open_silences(part: Part, came: Flags, flow: FlowPlan) -> tuple[int, int]:
    """Time for which sends were due before the first that arrived, and after the last; ps by the sender's schedule.

    Both are on the sender's clock alone, so that clock offsets do not matter. Where nothing came, the whole schedule is
    one silence, the latter. A send that was due and never made is silent like one that was lost.
    """
    due = part.column("due", DUE)
    times, came = (due.values, came) if due.known is None else (due.values[due.known], came[due.known])
    if not len(times):
        return 0, 0
    before, after = _unsent_of(part, flow)
    if came.all() and not before and not after:
        return 0, 0
    first, last = int(times.min()) - before, int(times.max()) + after
    if not came.any():
        return 0, last - first
    return int(times[came].min()) - first, last - int(times[came].max())


def _unsent_of(part: Part, flow: FlowPlan) -> tuple[int, int]:
    if not tells_unsent(part, flow):
        return 0, 0
    numbers = part.column("sequence").values
    return unsent(flow, int(numbers.min()), int(numbers.max()))


def tells_unsent(part: Part, flow: FlowPlan) -> bool:
    """Whether the plan gives the due times of sends that were not made: not for a restarted sender."""
    return flow.is_periodic and not (part.rows.has("life") and bool(part.column("life").values.any()))


def unsent(flow: FlowPlan, first: int, last: int) -> tuple[int, int]:
    """Time for which sends were due and not made: before the `first` number that was sent, and after the `last`; ps.

    0 where the plan does not give the due times; `limits` then leaves open what rests on it.
    """
    if not flow.is_periodic or flow.period_ns is None or not 0 <= first <= last < flow.count:
        return 0, 0
    period = round(1000 * flow.period_ns)
    return first * period, (flow.count - 1 - last) * period
