"""A schedule as gate control lists, one for each egress port (IEEE Std 802.1Q-2022, 8.6.8.4).

The gate of time-triggered frames is open in their windows, that of all others outside of them, and none in the guard
band before each opening, in which a frame in transmission can end. Windows that touch are one opening. An exporter for
another format needs only `gate_lists`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import Struct

from wiregauge import _native
from wiregauge.plan import Attachment, Campaign, EndSystem, HostModel, Network, Node, as_json
from wiregauge.plan.tsn import GateEntry, GateSchedule, HostTsn, TrafficClass
from wiregauge.scheduling.problem import Problem, ProblemError, common_period
from wiregauge.scheduling.searching import Opens

__all__ = ["Entry", "GateList", "gate_lists", "taprio"]

PRIORITY = 7
"""Default priority of time-triggered frames."""
ALL = 0xFF
MOST_OPENINGS = 65_536
"""Most openings in a cycle of a port, as in the plan."""


class Entry(Struct, frozen=True):
    """The gates that are open (bit p for priority p), and the interval, ns."""

    mask: int
    interval: int


class GateList(Struct, frozen=True):
    """The gate control list of a port; it starts at local time zero and repeats."""

    port: Attachment
    name: str
    cycle: int
    """The cycle time, ns."""
    entries: tuple[Entry, ...]
    guard: int
    """Length of each guard band, ns; shorter where the time between two openings is less."""

    @property
    def openings(self) -> int:
        """The number of openings of the time-triggered gate in a cycle."""
        gates = [bool(entry.mask >> PRIORITY & 1) for entry in self.entries]
        return sum(now and not gates[at - 1] for at, now in enumerate(gates))


def gate_lists(
    problem: Problem, opens: Opens, *, priority: int = PRIORITY, guard_ns: int | None = None
) -> Sequence[GateList]:
    """The gate control list of every port, in the order of their names. Times are rounded so that no window is cut.

    `guard_ns` is the length of guard bands; the default is the time of the longest other frame at the port. 0 is
    for gates that start no frame which they would cut off (length-aware scheduling).
    """
    lists = []
    for port, entries in problem.at_port().items():
        cycle = common_period([demand.period for demand, _ in entries])
        count = sum(cycle // demand.period for demand, _ in entries)
        if count > MOST_OPENINGS:
            raise ProblemError(
                f"windows open {count} times in a cycle of {problem.names[port]}, more than {MOST_OPENINGS}; "
                "choose periods that divide one another"
            )
        taken = sorted(
            (
                (begin * problem.grid_ps) // 1000,
                -(-((begin + demand.windows[at].length) * problem.grid_ps) // 1000),
            )
            for demand, at in entries
            for begin in range(opens[demand.flow][at] % demand.period, cycle, demand.period)
        )
        whole = cycle * problem.grid_ps // 1000
        longest = -(-problem.longest[port] * problem.grid_ps // 1000)
        guard = longest if guard_ns is None else guard_ns
        made = _entries(_joined(taken), whole, guard, 1 << priority)
        lists.append(GateList(port, problem.names[port], whole, made, guard))
    return sorted(lists, key=lambda one: one.port)


def _joined(taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in taken:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def _entries(windows: Sequence[tuple[int, int]], cycle: int, guard: int, scheduled: int) -> tuple[Entry, ...]:
    others = ALL & ~scheduled
    entries: list[Entry] = []

    def add(mask: int, interval: int) -> None:
        if interval > 0:
            if entries and entries[-1].mask == mask:
                entries[-1] = Entry(mask, entries[-1].interval + interval)
            else:
                entries.append(Entry(mask, interval))

    at = 0
    for begin, end in windows:
        gap = begin - at
        add(others, gap - min(guard, gap))
        add(0, min(guard, gap))
        add(scheduled, end - begin)
        at = end
    # The guard band of the first opening may begin in the previous cycle.
    left = max(guard - windows[0][0], 0) if windows else 0
    gap = cycle - at
    add(others, gap - min(left, gap))
    add(0, min(left, gap))
    return tuple(entries)


def taprio(campaign: Campaign, one: GateList, interface: str, *, priority: int = PRIORITY) -> Sequence[str]:
    """Commands that configure the gate control list of a port at an interface, from the writer of host TSN settings."""
    classes = (
        TrafficClass(priorities=tuple(p for p in range(8) if p != priority), queues=1),
        TrafficClass(priorities=(priority,), queues=1),
    )
    entries = tuple(
        GateEntry(
            open=tuple(
                number
                for number, kind in enumerate(classes)
                if all(entry.mask >> p & 1 for p in kind.priorities)
            ),
            length=entry.interval * 1000,
        )
        for entry in one.entries
    )
    tsn = HostTsn(classes=classes, schedule=GateSchedule(base_time=0, entries=entries))
    nodes = list(campaign.network.nodes)
    old = nodes[one.port.node]
    kind = old.kind if isinstance(old.kind, EndSystem) else EndSystem(_any_host(campaign))
    nodes[one.port.node] = Node(old.name, kind, old.mac, old.ipv4, tsn=tsn)
    network = Network(tuple(nodes), campaign.network.links)
    told = _native.tsn_commands(as_json(network), as_json(campaign.runs[0]), one.port.node, interface)
    applied: list[str] = json.loads(told)["apply"]
    return applied


def _any_host(campaign: Campaign) -> HostModel | None:
    """Any host model: a switch with Linux ports is configured like a host, whatever its costs."""
    return next(node.kind.host for node in campaign.network.nodes if isinstance(node.kind, EndSystem))
