"""Measured values of a run directory, repeat by repeat, for comparisons."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.comparing.thresholds import SHIFT_QUANTILES, TAIL
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN, happened
from wiregauge.stats import Estimate, Events, Sample

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_EVENTS: dict[str, pl.Expr] = {
    "lost": pl.col("outcome").is_in(LOST_OUTCOMES),
    "unknown": pl.col("outcome") == UNKNOWN,
    **happened(),
}


class Evidence:
    """Series in measured order, and flags of events of each message.

    The message tables are read only where a count is not zero.
    """

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement
        self._flows = {
            (run.plan.index, flow.plan.id, flow.plan.receiver): flow
            for run in judgement.runs
            for flow in run.flows
        }

    @cached_property
    def _recorded(self) -> Recorded:
        return open_recorded(self._judgement.directory)

    def leaves_open(self, flow: FlowResult, measure: str) -> bool:
        """Whether clock or timestamp errors make values uncertain; not for exact clocks in virtual time."""
        summary = flow.summaries[measure]
        return summary.clock > 0 or (summary.timestamp > 0 and not self._judgement.traits.virtual_time)

    def series(self, point: PointResult, flow: FlowResult, measure: str) -> list[Floats]:
        """The values of a measure, an array per repeat."""
        owns = (self._flows.get((run, flow.plan.id, flow.plan.receiver)) for run in point.runs)
        return [own.series[measure].value for own in owns if own is not None and measure in own.series]

    def events(self, point: PointResult, flow: FlowResult, counter: str) -> Events:
        """The count and clustering of an event; the tables are read only where it happened."""
        count, sent = flow.counts[counter], flow.counts["sent"]
        if count in (0, sent):
            return Events(count, sent)
        found = stats.events(self.flags(point, flow, counter))
        return replace(found, count=count, n=sent)

    def flags(self, point: PointResult, flow: FlowResult, counter: str) -> list[Flags]:
        """Whether it happened to each message, in the order of the table, an array per repeat."""
        return [self._flags(run, flow, counter) for run in point.runs]

    def _flags(self, run: int, flow: FlowResult, counter: str) -> Flags:
        directory = self._recorded
        rows = directory.scan(run)
        if rows is None:
            return np.empty(0, dtype=np.bool_)
        mine = (pl.col("flow") == flow.plan.id) & ~pl.col("warm_up")
        if flow.plan.multicast:
            mine &= pl.col("to") == flow.plan.receiver
        happened = rows.filter(mine).select(happened=_EVENTS[counter].fill_null(value=False))
        return np.asarray(directory.collected(run, happened)["happened"].to_numpy(), dtype=np.bool_)


def statistic_of(sample: Sample, statistic: str, level: float) -> Estimate:
    """A statistic of a measure by its name, as a threshold writes it, with its interval at `level`."""
    if statistic == "mean":
        return sample.mean(level)
    if statistic == TAIL:
        return Estimate(float(sample.ascending[-1]), None, None)
    return (
        sample.deviation(level) if statistic == "sd" else sample.quantile(SHIFT_QUANTILES[statistic], level)
    )


def instrument_bound(flow: FlowResult, measure: str) -> float:
    """Bound of the clock and timestamp errors of one side, ns."""
    summary = flow.summaries[measure]
    return summary.clock + summary.timestamp


def widened(estimate: Estimate, by: float) -> Estimate:
    """An interval with a bound of systematic error, which no averaging reduces, added at both ends."""
    return Estimate(
        estimate.value,
        None if estimate.low is None else estimate.low - by,
        None if estimate.high is None else estimate.high + by,
    )
