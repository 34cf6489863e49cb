"""Gate control lists of ports (IEEE Std 802.1Q-2022, 8.6.9.1): which a port has, and which gates they open when."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from wiregauge.measures.metrics.flow_plan import CampaignPlan
from wiregauge.plan import EndSystem, Switch
from wiregauge.plan.tsn import CyclicQueuing, GateEntry, GateSchedule, PortSchedule, settings_of

__all__ = ["gate_states", "lists_of"]


def gate_states(
    lists: Sequence[PortSchedule], begin: int, end: int
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Intervals with their open classes: start and end, ps of local time (IEEE Std 802.1Q-2022, 8.6.9.1).

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
