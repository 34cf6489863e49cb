"""Checks whether a flow's messages took at least as long as the links on their way: no frame passes a line sooner.

A bench whose links have no rate of their own (a pair of virtual interfaces) delivers sooner than any network of these
links could, and nothing waits on it behind other frames as it would there. Measured times are then too short by an
unknown amount.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import isfinite
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.judgement import FlowResult, LineTime

__all__ = ["ROUNDED_NS", "line_time", "on_the_same_links"]

ROUNDED_NS: Final = 1.0
_WAYS: Final = {"latency": 1, "return_latency": 1, "rtt": 2}
"""Number of times that each measure passes the links between the two ends: answers are as long as requests."""


class _Took(Struct, frozen=True):
    measure: str
    least_ns: float
    unsure_ns: float
    links_ns: float

    @property
    def short_ns(self) -> float:
        return self.links_ns - self.least_ns - self.unsure_ns - ROUNDED_NS


def line_time(flow: FlowResult, wrong_clocks: Container[str] = ()) -> LineTime | None:
    """The fastest message of a flow against the time that links alone take; None where that cannot be determined.

    Of several ways the shortest counts. `wrong_clocks`: nodes by whose clocks no time can be held against a link.
    """
    ends = (flow.plan.source, flow.plan.destination)
    if not flow.plan.least_ns or any(name in wrong_clocks for name in ends):
        return None
    took = [found for name, ways in _WAYS.items() if (found := _took(flow, name, ways)) is not None]
    if not took:
        return None
    worst = max(took, key=lambda one: one.short_ns)
    text = (
        f"{_WORDS[worst.measure]}{duration(worst.least_ns)} where links alone take {duration(worst.links_ns)}"
    )
    return LineTime(too_fast=worst.short_ns > 0, text=text)


def on_the_same_links(flows: Sequence[FlowResult]) -> list[FlowResult]:
    """The flows, with too fast links reported for all flows that leave by them: host times may hide it in others."""
    fast = [
        (flow, flow.line_time) for flow in flows if flow.line_time is not None and flow.line_time.too_fast
    ]
    if not fast:
        return list(flows)

    def told(flow: FlowResult) -> FlowResult:
        if flow.line_time is not None and flow.line_time.too_fast:
            return flow
        for other, found in fast:
            if not set(flow.plan.leaves).isdisjoint(other.plan.leaves):
                name = other.plan.name
                return replace(
                    flow, line_time=replace(found, text=f"flow {name}: {found.text}", shown_by=name)
                )
        return flow

    return [told(flow) for flow in flows]


_WORDS: Final = {"latency": "", "return_latency": "the way back ", "rtt": "a round trip "}


def _took(flow: FlowResult, measure: str, ways: int) -> _Took | None:
    summary = flow.summaries.get(measure)
    if summary is None or summary.minimum is None:
        return None
    unsure = summary.clock + summary.timestamp
    return _Took(measure, summary.minimum, unsure, ways * flow.plan.least_ns) if isfinite(unsure) else None
