"""A schedule as gate control lists, one for each egress port (IEEE Std 802.1Q-2022, 8.6.8.4).

The gate of a time-triggered frame's priority is open in its window, those of all others outside of windows, and none in
the guard band before each opening, in which a frame in transmission can end. Windows of one priority that touch are one
opening. An exporter for another format needs only `gate_lists`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from wiregauge import _native
from wiregauge.plan import Attachment, Campaign, EndSystem, HostModel, Network, Node, as_json
from wiregauge.plan.tsn import GateEntry, GateSchedule, HostTsn, TrafficClass
from wiregauge.scheduling.problem import Problem, ProblemError, common_period
from wiregauge.scheduling.searching import Opens

__all__ = ["Entry", "GateList", "gate_lists", "taprio"]

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
    scheduled: int
    """The gates of time-triggered frames, as in a mask."""

    @property
    def openings(self) -> int:
        """The number of openings of time-triggered gates in a cycle."""
        gates = [entry.mask & self.scheduled for entry in self.entries]
        return sum(now not in (0, gates[at - 1]) for at, now in enumerate(gates))


def gate_lists(
    problem: Problem, opens: Opens, priorities: Mapping[int, int], *, guard_ns: int | None = None
) -> Sequence[GateList]:
    """The gate control list of every port, in the order of their names. Times are rounded so that no window is cut.

    `priorities` are those of the flows, such that no two share a queue that must not: `isolation.priorities_of`.

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
                priorities[demand.flow],
            )
            for demand, at in entries
            for begin in range(opens[demand.flow][at] % demand.period, cycle, demand.period)
        )
        whole = cycle * problem.grid_ps // 1000
        longest = -(-problem.longest[port] * problem.grid_ps // 1000)
        guard = longest if guard_ns is None else guard_ns
        scheduled = _mask(priorities[demand.flow] for demand, _ in entries)
        made = _entries(taken, whole, guard, scheduled)
        lists.append(GateList(port, problem.names[port], whole, made, guard, scheduled))
    return sorted(lists, key=lambda one: one.port)


def _mask(priorities: Iterable[int]) -> int:
    return sum(1 << priority for priority in set(priorities))


def _entries(
    windows: Sequence[tuple[int, int, int]], cycle: int, guard: int, scheduled: int
) -> tuple[Entry, ...]:
    """The entries of a cycle; windows have begin, end and priority."""
    others = ALL & ~scheduled
    entries: list[Entry] = []

    def add(mask: int, interval: int) -> None:
        if interval > 0:
            if entries and entries[-1].mask == mask:
                entries[-1] = Entry(mask, entries[-1].interval + interval)
            else:
                entries.append(Entry(mask, interval))

    at = 0
    for begin, end, priority in windows:
        gap = max(begin - at, 0)
        add(others, gap - min(guard, gap))
        add(0, min(guard, gap))
        # Windows that were rounded may overlap by a nanosecond.
        add(1 << priority, end - max(begin, at))
        at = max(end, at)
    # The guard band of the first opening may begin in the previous cycle.
    left = max(guard - windows[0][0], 0) if windows else 0
    gap = cycle - at
    add(others, gap - min(left, gap))
    add(0, min(left, gap))
    return tuple(entries)


def taprio(campaign: Campaign, one: GateList, interface: str) -> Sequence[str]:
    """Commands that configure the gate control list of a port at an interface, from the writer of host TSN settings."""
    own = [priority for priority in range(8) if one.scheduled >> priority & 1]
    classes = (
        TrafficClass(priorities=tuple(p for p in range(8) if p not in own), queues=1),
        *(TrafficClass(priorities=(priority,), queues=1) for priority in own),
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
