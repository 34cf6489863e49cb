"""The rule for the warm-up: whether the one that the test states was long enough, and what of the rest still settles.

Asked of the measure a flow is there for (its round trip, else its one-way latency). What still settles is left out of
all measures of time of that flow alike, so that parts of a split stay the parts of one whole. It stays in every
count: a message lost while the network settles is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.plan import FlowPlan
from wiregauge.measures.results import Stationarity

__all__ = ["Settled", "settle", "stationarity"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Settled:
    """The rows of the measured part, in the order of sequence: those that still settle, and the others."""

    settling: pl.DataFrame
    rows: pl.DataFrame
    whole: stats.Steadiness | None
    """What the tests said, where nothing was cut: then it need not be asked again."""


def settle(measured: pl.DataFrame, flow: FlowPlan, among: int) -> Settled:
    """Splits the rows of the measured part of a flow at one receiver; `among` flows are judged by the rule together."""
    end = "back_rx_app" if flow.relayed else "rx_app"
    took = (measured[end] - measured["tx_app"]).cast(pl.Float64)
    present = took.is_not_null()
    found = stats.steadiness(took.drop_nulls().to_numpy(), among)
    if not found.settled_after:
        return Settled(measured.head(0), measured, found)
    # The rule counts values; the cut is before the row of the first value that stays.
    row = int(present.arg_true()[found.settled_after])
    return Settled(measured.head(row), measured.slice(row), None)


def stationarity(values: Floats, among: int, known: stats.Steadiness | None = None) -> Stationarity | None:
    """What the tests say (or have said, `known`) of a series in measured order; None where it is too short to ask."""
    found = known or stats.steadiness(values, among)
    if found.p is None and len(values) < stats.FEWEST:
        return None
    half = len(values) // 2
    return Stationarity(
        steady=None if found.p is None else not found.drifts(among),
        p=found.p,
        changes=found.kind,
        correlation_time=found.correlation_time,
        halves=(float(np.median(values[:half])), float(np.median(values[half:]))),
    )
