"""Data of the credit view: corners of each credit over the run and all around its greatest, as truth has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.metrics.flow_plan import RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.records.modelled import CreditReport

__all__ = ["MOST_CREDITS", "CreditShape", "credit_shapes"]

Floats = NDArray[np.float64]

MOST_CREDITS = 6
"""Shaped queues that are drawn, those with the greatest credits first."""
_NANO = 1e9
"""Units of truth per bit."""


class CreditShape(Struct, frozen=True):
    """The credit of a shaped queue, bits, linear between its corners."""

    credit: CreditReport
    t: Floats
    """Corners over the run, s: of each stretch of time the first, the greatest, the least and the last."""
    bits: Floats
    near_t: Floats
    """Times of all corners around the greatest credit, ns from it."""
    near_bits: Floats


def credit_shapes(
    directory: Recorded, plan: RunPlan, shaped: Sequence[CreditReport]
) -> tuple[CreditShape, ...]:
    """The queues of a run with the greatest credits. Raises RunDirectoryError for a damaged file."""
    path = directory.truth(plan.index)
    if path is None or not shaped:
        return ()
    columns = ("time", "node", "port", "sequence", "value")
    told = read_columns(path, columns, pl.col("kind").cast(pl.String) == "credit")
    told = told.select(pl.col(*columns).cast(pl.Int64)).sort("time", maintain_order=True)
    numbers = {node.name: at for at, node in enumerate(directory.plan.network.nodes)}
    shapes = []
    for one in sorted(shaped, key=lambda one: -one.max_bit)[:MOST_CREDITS]:
        own = told.filter(
            (pl.col("node") == numbers.get(one.node, -1))
            & (pl.col("port") == one.port)
            & (pl.col("sequence") == one.traffic_class)
        )
        # One that no frame came to has nothing to draw.
        if own["value"].n_unique() < 2:
            continue
        near = own.filter(pl.col("time").is_between(one.whole_from_ps, one.whole_to_ps))
        shapes.append(
            CreditShape(
                one,
                own["time"].cast(pl.Float64).to_numpy() / 1e12,
                own["value"].cast(pl.Float64).to_numpy() / _NANO,
                near["time"].cast(pl.Float64).to_numpy() / 1e3 - one.max_at_ns,
                near["value"].cast(pl.Float64).to_numpy() / _NANO,
            )
        )
    return tuple(shapes)
