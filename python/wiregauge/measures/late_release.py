"""Ranges of judged figures with the lateness of a played network taken out.

A frame that leaves late is an effect of the instrument and not of the network that the test describes. So a limit is
decided only where the figure decides it either way: as it was measured, and with the lateness of every frame taken out.
Lateness increases a latency; intervals between arrivals it may lengthen or shorten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import polars as pl
from msgspec import Struct

from wiregauge.measures.flow_measures.base import FlowReading
from wiregauge.measures.instrument import LATE_RELEASE, Range, by_clocks, with_late_release
from wiregauge.measures.judge_flows import judge_flows
from wiregauge.measures.limits import observe
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.flow_plan import FlowPlan, LimitPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.live_network import NetworkResult
from wiregauge.measures.metrics.on_time import on_time
from wiregauge.measures.metrics.releases import Errors
from wiregauge.measures.metrics.shards import flow_parts

__all__ = ["LateRelease"]

Rows = tuple[Part, Part]
Read = Callable[[FlowPlan, Rows], FlowReading]


class LateRelease(Struct, frozen=True):
    """The lateness of a played network in a run with limits."""

    limits: Sequence[LimitPlan]
    errors: Errors
    """Lateness of single frames; empty where not all of them are stored."""
    network: NetworkResult | None
    """Report of the network; None: it left none."""
    names: Sequence[str]
    """Node names by index."""

    def figures(
        self, results: Sequence[FlowResult], table: pl.DataFrame, read: Read
    ) -> dict[tuple[int, int], dict[str, Range]]:
        """For each flow and receiver, the range of each figure without lateness, by name (`FlowResult.in_time`).

        `results` rest on the messages in `table`; `read` reads them from rows.
        """
        asked = {(one.plan.id, one.plan.receiver): self._asked(one.plan) for one in results}
        known = [one for one in results if asked[one.plan.id, one.plan.receiver]]
        plans = []
        found: dict[tuple[int, int], dict[str, Range]] = {}
        for one in known:
            if one.sampled is None and self.errors.rows is not None:
                plans.append(one.plan)
            else:
                key = one.plan.id, one.plan.receiver
                found[key] = self._by_most(one, asked[key])
        for part in flow_parts(plans, on_time(table, plans, self.errors, self.names)) if plans else ():
            for early in judge_flows([read(flow, rows) for flow, rows in part]):
                key = early.plan.id, early.plan.receiver
                found[key] = _ranges(early, asked[key])
        return found

    def _asked(self, flow: FlowPlan) -> list[str]:
        """Measures with limits on the flow in which lateness may be."""
        names = (limit.measure for limit in self.limits if limit.flow in (None, flow.id))
        return sorted({name for name in names if name.partition(".")[0] in LATE_RELEASE})

    def _by_most(self, flow: FlowResult, names: Sequence[str]) -> dict[str, Range]:
        figures = (observe(name, flow) for name in names)
        most = self._most_ns(flow.plan)
        ranges = ((figure.name, with_late_release(figure, flow, most)) for figure in figures)
        return {name: one for name, one in ranges if one is not None}

    def _most_ns(self, flow: FlowPlan) -> float:
        """The most that a message of a flow may have been late at one host, ns; infinite where unknown."""
        if self.network is None:
            return inf
        hosts = (flow.destination, *([flow.source] if flow.relayed else []))
        late = [one.max_ns for one in self.network.releases if one.end_system in hosts and one.frames]
        known = [inf if one is None else one for one in late]
        # Both are rounded down to whole nanoseconds.
        return max(known, default=0.0) + self.network.most_moved_ns + 2


def _ranges(flow: FlowResult, names: Sequence[str]) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for name in names:
        figure = observe(name, flow)
        value = figure.value if figure.value is not None else figure.stands_for
        if value is not None:
            found[figure.name] = by_clocks(figure, flow, exact=False) or (value, value)
    return found
