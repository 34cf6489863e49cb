"""Distributions of a flow too big to be held whose timestamps had to be corrected one by one.

The sketches of tracking have uncorrected timestamps, so every measure is counted anew from all messages.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.series import differences, on_the_wire
from wiregauge.measures.sketched.outcomes import of_receiver
from wiregauge.stats.buckets import Buckets
from wiregauge.stats.sketch import Sketch

__all__ = ["Recount"]

PS = 1000.0
_STEPS = {"period": "tx_app", "ipdv": "latency"}
"""Measures that are the difference of something to the message before."""


class Recount:
    """`take` the messages of the measured part in the order of their numbers, then ask for the `sketches`."""

    def __init__(self, flow: FlowPlan) -> None:
        self._flow = flow
        self._values = {name: took for name, (took, _, _) in differences(flow, 0.0).items()} | on_the_wire(
            flow
        )
        self._found = {name: Buckets() for name in (*self._values, *_STEPS)}
        self._last: pl.DataFrame | None = None

    def take(self, rows: pl.DataFrame) -> None:
        """Adds messages that follow all those added before."""
        life = pl.col("life") if "life" in rows.columns else pl.lit(0)
        table = rows.select("sequence", "tx_app", life=life, **self._values)
        for name in self._values:
            self._found[name].add(table[name].drop_nulls().cast(pl.Int64).to_numpy())
        steps = table.select("sequence", "life", "tx_app", "latency")
        joined = steps if self._last is None else pl.concat([self._last, steps])
        follows = (pl.col("sequence").diff() == 1) & (pl.col("life").diff() == 0)
        for name, column in _STEPS.items():
            step = joined.select(pl.when(follows).then(pl.col(column).diff())).to_series().drop_nulls()
            self._found[name].add(step.cast(pl.Int64).to_numpy())
        self._last = steps.tail(1)

    def sketches(self, rows: pl.LazyFrame) -> Mapping[str, Sketch]:
        """Sketches by measure, ns; `rows` are the whole message table, for measures that need the order of time."""
        found = dict(self._found)
        found["receive_period"] = self._spaced(rows, "rx_app")
        if self._flow.bag_ns is not None:
            bag = round(self._flow.bag_ns * PS)
            found["bag_spacing"] = self._spaced(rows, "tx_wire")
            found["bag_jitter"] = self._spaced(rows, "tx_wire", bag)
        return {name: one for name, kept in found.items() if (one := kept.sketch(PS)) is not None}

    def _spaced(self, rows: pl.LazyFrame, column: str, short_of: int | None = None) -> Buckets:
        """Sketch of intervals between successive values of a column, or of how far they fall short of `short_of`,
        ps."""
        own = of_receiver(rows, self._flow).select(pl.col(column).drop_nulls().sort())
        apart = np.diff(own.collect(engine="streaming")[column].to_numpy())
        spaced = Buckets()
        spaced.add(apart if short_of is None else np.maximum(short_of - apart, 0))
        return spaced
