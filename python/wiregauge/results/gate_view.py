"""Intervals in which gates and windows of an output port are open, for the timeline: by plan and the node's own
clock."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec import Struct

from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.measures.metrics.gate_lists import gate_states, lists_of

__all__ = ["MOST_OPENINGS", "Opening", "port_openings"]

MOST_OPENINGS = 400
"""Changes of gates, and openings of windows, that are drawn of a port; where there are more none is."""

NS = 1000
"""Picoseconds."""


class Opening(Struct, frozen=True):
    """An interval in which gates of a port are open, from `start` to `end`, ns."""

    lane: int
    start: float
    end: float
    classes: tuple[int, ...] = ()
    """Traffic classes whose gates are open."""
    flow: int | None = None
    """The time-triggered flow whose window it is; None: gates."""


def port_openings(
    campaign: CampaignPlan, plan: RunPlan, lane: int, at: tuple[int, int], span: tuple[float, float]
) -> tuple[Opening, ...] | None:
    """Gate states and windows of a port within `span`, ns of its node's clock; None: more than are drawn."""
    begin, end = (int(bound * NS) for bound in span)
    found = [
        Opening(lane, start / NS, stop / NS, classes)
        for start, stop, classes in itertools.islice(_gates(campaign, at, begin, end), MOST_OPENINGS + 1)
    ]
    for flow in {flow.id: flow for flow in plan.flows if flow.schedule}.values():
        assert flow.schedule is not None
        period = int(flow.schedule.period_ns * NS)
        for window in flow.schedule.windows:
            if (window.at.node, window.at.port) != at:
                continue
            first = begin - (begin - window.offset) % period
            if (end - first) // period > MOST_OPENINGS:
                return None
            found += [
                Opening(lane, opens / NS, (opens + window.length) / NS, flow=flow.id)
                for opens in range(first, end, period)
                if opens + window.length > begin
            ]
    return None if len(found) > MOST_OPENINGS else tuple(found)


def _gates(
    campaign: CampaignPlan, at: tuple[int, int], begin: int, end: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    lists = lists_of(campaign, at)
    return gate_states(lists, begin, end) if lists else iter(())
