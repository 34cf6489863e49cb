"""For how long nothing came though it was due: before a flow that begins late, and after one that dies."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.metrics.arrays import Part

__all__ = ["DUE", "open_silences"]

Flags = NDArray[np.bool_]

DUE = pl.coalesce("intended", "tx_app", "tx_drv")
"""When a message was due to be sent, by its sender's clock; or left it, where no plan says."""


def open_silences(part: Part, came: Flags) -> tuple[int, int]:
    """How long sends were due before the first that came, and after the last; ps by the sender's schedule.

    Both are of the sender's clock alone, so that it does not matter how far apart the clocks are. Where nothing came,
    the whole schedule is one silence, the latter.
    """
    if came.all():
        return 0, 0
    due = part.column("due", DUE)
    times, came = (due.values, came) if due.known is None else (due.values[due.known], came[due.known])
    if not len(times):
        return 0, 0
    first, last = int(times.min()), int(times.max())
    if not came.any():
        return 0, last - first
    return int(times[came].min()) - first, last - int(times[came].max())
