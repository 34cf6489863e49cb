"""When gates and windows of an output port are open, for the timeline: what the plan says, by the node's own clock."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.plan import EndSystem, Switch
from wiregauge.plan.tsn import CyclicQueuing, GateEntry, GateSchedule, PortSchedule, settings_of

__all__ = ["MOST_OPENINGS", "Opening", "gate_states", "lists_of", "port_openings"]

MOST_OPENINGS = 400
"""Changes of gates, and openings of windows, that are drawn of a port; where there are more none is."""

NS = 1000
"""Picoseconds."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What of a port is open from `start` to `end`, ns."""

    lane: int
    start: float
    end: float
    classes: tuple[int, ...] = ()
    """Traffic classes whose gates are open."""
    flow: int | None = None
    """The time-triggered flow whose window it is; None: gates."""


def gate_states(
    lists: Sequence[PortSchedule], begin: int, end: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """From when to when, ps of the local time, which classes' gates are open (IEEE Std 802.1Q-2022, 8.6.9.1).

    The first list holds from the beginning, whole cycles before its base time included; each further one from its base
    time. Of the cycles before a change the one that would begin within the cycle time extension does not: the gates
    stay as the last entry has them.
    """
    bases = [one.base_time for one in lists]
    at = begin
    while at < end:
        number = max(bisect.bisect_right(bases, at) - 1, 0)
        one = lists[number]
        change = bases[number + 1] if number + 1 < len(lists) else None
        cycle_begins = at - (at - one.base_time) % one.cycle
        last_begins = None
        if change is not None:
            last_begins = (
                one.base_time + (change - one.cycle_extension - one.base_time - 1) // one.cycle * one.cycle
            )
            if number:
                last_begins = max(last_begins, one.base_time)
            cycle_begins = min(cycle_begins, last_begins)
        entry_begins = cycle_begins
        for place, entry in enumerate(one.entries):
            until = entry_begins + entry.length
            if place == len(one.entries) - 1 and cycle_begins == last_begins and change is not None:
                until = change
            if change is not None:
                until = min(until, change)
            if until > at:
                yield at, min(until, end), entry.open
                at = until
                if at >= end or at == change:
                    break
            entry_begins += entry.length


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


def lists_of(campaign: CampaignPlan, at: tuple[int, int]) -> Sequence[PortSchedule]:
    """The gate control lists of a port, by node and number; none: its gates are open."""
    node = campaign.network.nodes[at[0]]
    if isinstance(node.kind, Switch):
        tsn = settings_of(node.kind.tsn, at[1])
        if tsn is None:
            return ()
        return tsn.schedules if tsn.cyclic is None else (_turns(tsn.cyclic, len(tsn.classes)),)
    if isinstance(node.kind, EndSystem) and node.tsn is not None and node.tsn.schedule is not None:
        return (_of_host(node.tsn.schedule),)
    return ()


def _turns(cyclic: CyclicQueuing, classes: int) -> PortSchedule:
    first, second = cyclic.classes
    entries = tuple(
        GateEntry(open=tuple(number for number in range(classes) if number != shut), length=cyclic.cycle)
        for shut in (first, second)
    )
    return PortSchedule(base_time=cyclic.base_time, entries=entries)


def _of_host(schedule: GateSchedule) -> PortSchedule:
    return PortSchedule(base_time=schedule.base_time, entries=schedule.entries)
