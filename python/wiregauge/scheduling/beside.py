"""Schedules of several methods for one instance of tsnkit, each replayed by the same rules and compared.

A schedule is what tsnkit writes: openings of gates (`-GCL.csv`), releases (`-OFFSET.csv`), queues (`-QUEUE.csv`) and
routes (`-ROUTE.csv`). It is replayed as IEEE 802.1Q, 8.6.8.4 has it: a queue is first in, first out; its first frame
leaves when its gate is open long enough for all of it and the line is free. Nothing of what a method states about its
own schedule is believed.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from wiregauge.measures.definitions.units import count_of
from wiregauge.scheduling.isolation import apart, queued
from wiregauge.scheduling.problem import Problem, ProblemError
from wiregauge.scheduling.searching import Opens
from wiregauge.scheduling.tsnkit import Instance, Links, Stream, pair, ports_of, table, whole

__all__ = ["Plan", "Replayed", "plan_of_files", "plan_of_opens", "replay", "tables_of"]

_MOST_FRAMES: Final = 2_000_000
"""Greatest number of frames and hops of a replay."""


class Plan(Struct, frozen=True):
    """A schedule of an instance, times in ns."""

    routes: Mapping[int, Sequence[Links]]
    releases: Mapping[tuple[int, int], int]
    """Within the period, by stream and number of the frame: that of several frames in turn."""
    queues: Mapping[tuple[int, Links], int]
    gates: Mapping[Links, Sequence[tuple[int, int, int]]]
    """Opening, closing and queue of each entry of a link, within the cycle."""
    cycle: int

    @property
    def openings(self) -> int:
        """Entries of all gate control lists; neighbours of one queue are one."""
        return sum(len(_merged(entries, self.cycle)) for entries in self.gates.values())


class Replayed(Struct, frozen=True):
    """How a schedule works. Latencies are from release to the last bit at the listener, ns."""

    frames: int
    stuck: tuple[int, ...]
    """Streams with a frame that never came through its gates."""
    late: tuple[int, ...]
    """Streams with a frame beyond their deadline."""
    worst: int
    mean: float
    jitter: int
    """Greatest difference of the latencies of one stream."""
    waiting: int
    """Time that all frames wait in switches."""

    @property
    def holds(self) -> bool:
        """Whether every frame arrives in time."""
        return not self.stuck and not self.late


def plan_of_opens(instance: Instance, problem: Problem, opens: Opens) -> Plan:
    """Our own schedule, with a queue for each stream. Raises ProblemError where a link has too few queues."""
    cycle = math.lcm(*(stream.period for stream in instance.streams))
    queues = _queues(instance, problem, opens)
    gates: dict[Links, list[tuple[int, int, int]]] = defaultdict(list)
    for stream in instance.streams:
        for at, ends in zip(opens[stream.number], stream.path, strict=True):
            begin = at % stream.period
            for turn in range(cycle // stream.period):
                opening = begin + turn * stream.period
                closing = opening + instance.takes(stream, ends)
                gates[ends].append((opening, closing, queues[stream.number, ends]))
    return Plan(
        {stream.number: stream.path for stream in instance.streams},
        {(stream.number, 0): opens[stream.number][0] for stream in instance.streams},
        queues,
        {ends: sorted(entries) for ends, entries in gates.items()},
        cycle,
    )


def _queues(instance: Instance, problem: Problem, opens: Opens) -> dict[tuple[int, Links], int]:
    """A queue for each stream at each link."""
    at_ports = apart(problem, opens)
    found: dict[tuple[int, Links], int] = {}
    for ends, port in ports_of(instance).items():
        count = instance.links[ends].queues
        chosen, left = queued(at_ports.get(port, {}), range(count))
        if left is not None:
            raise ProblemError(
                f"link {ends} has {count_of(count, 'queue')}, too few for streams that would leave in one another's "
                f"windows, stream {left} among them; have fewer of them wait (--minimise latency, other deadlines)"
            )
        found |= {(stream, ends): queue for stream, queue in chosen.items()}
    return found


def tables_of(plan: Plan) -> dict[str, str]:
    """The schedule as the tables of tsnkit, by the ends of their names."""

    def lines(head: str, rows: Iterator[str]) -> str:
        return "\n".join([head, *rows, ""])

    return {
        "-GCL.csv": lines(
            "link,queue,start,end,cycle",
            (
                f'"({a}, {b})",{queue},{begin},{end},{plan.cycle}'
                for (a, b), entries in sorted(plan.gates.items())
                for begin, end, queue in entries
            ),
        ),
        "-OFFSET.csv": lines(
            "stream,frame,offset",
            (f"{stream},{frame},{at}" for (stream, frame), at in sorted(plan.releases.items())),
        ),
        "-QUEUE.csv": lines(
            "stream,frame,link,queue",
            (f'{stream},0,"({a}, {b})",{queue}' for (stream, (a, b)), queue in sorted(plan.queues.items())),
        ),
        "-ROUTE.csv": lines(
            "stream,link",
            (f'{stream},"({a}, {b})"' for stream, way in sorted(plan.routes.items()) for a, b in way),
        ),
    }


def plan_of_files(instance: Instance, prefix: str) -> Plan:
    """The schedule in the four tables whose names begin with `prefix`. Raises ProblemError."""
    known = {stream.number: stream for stream in instance.streams}
    ways: dict[int, list[Links]] = defaultdict(list)
    for path, line, row in _rows(prefix, "ROUTE", ("stream", "link")):
        ends = _link(instance, path, line, row["link"])
        ways[_stream(known, path, line, row)].append(ends)
    routes = {number: _in_order(prefix, known[number], way) for number, way in ways.items()}
    if missing := sorted(known.keys() - routes.keys()):
        raise ProblemError(f"{prefix}-ROUTE.csv: has no route of stream {missing[0]}")
    releases = {}
    for path, line, row in _rows(prefix, "OFFSET", ("stream", "frame", "offset")):
        frame = whole(path, line, row, "frame")
        releases[_stream(known, path, line, row), frame] = whole(path, line, row, "offset")
    queues = {}
    for path, line, row in _rows(prefix, "QUEUE", ("stream", "link", "queue")):
        ends = _link(instance, path, line, row["link"])
        queues[_stream(known, path, line, row), ends] = whole(path, line, row, "queue")
    gates: dict[Links, list[tuple[int, int, int]]] = defaultdict(list)
    cycles = set()
    for path, line, row in _rows(prefix, "GCL", ("link", "queue", "start", "end", "cycle")):
        begin, end = whole(path, line, row, "start"), whole(path, line, row, "end")
        cycles.add(whole(path, line, row, "cycle", 1))
        gates[_link(instance, path, line, row["link"])].append((begin, end, whole(path, line, row, "queue")))
    if len(cycles) != 1:
        raise ProblemError(f"{prefix}-GCL.csv: has {len(cycles)} different cycles; one is needed")
    for number, way in routes.items():
        if (number, 0) not in releases:
            raise ProblemError(f"{prefix}-OFFSET.csv: has no release of stream {number}, frame 0")
        for ends in way:
            queues.setdefault((number, ends), 0)
    return Plan(routes, releases, queues, {ends: sorted(own) for ends, own in gates.items()}, cycles.pop())


def replay(instance: Instance, plan: Plan) -> Replayed:
    """Sends every frame of two cycles through the gates; the second cycle is judged."""
    cycle = math.lcm(plan.cycle, *(stream.period for stream in instance.streams))
    known = {stream.number: stream for stream in instance.streams}
    size = sum(2 * cycle // s.period * len(plan.routes[s.number]) for s in instance.streams)
    if size > _MOST_FRAMES:
        raise ProblemError(f"{instance.name}: two cycles of {cycle} ns have more than {_MOST_FRAMES} hops")
    lines = {ends: _Line(plan, ends) for way in plan.routes.values() for ends in way}
    events: list[tuple[int, int, int, int, int]] = []
    for stream in instance.streams:
        for turn in range(2 * cycle // stream.period):
            frames = sum(1 for number, _ in plan.releases if number == stream.number)
            first = plan.releases[stream.number, 0]
            at = turn * stream.period + plan.releases.get((stream.number, turn % frames), first)
            events.append((at, stream.number, turn, 0, at))
    heapq.heapify(events)
    latencies: dict[int, list[int]] = defaultdict(list)
    expected: dict[int, int] = defaultdict(int)
    waiting = 0
    while events:
        now, number, turn, hop, released = heapq.heappop(events)
        stream, ends = known[number], plan.routes[number][hop]
        is_judged = turn >= cycle // stream.period
        expected[number] += is_judged and hop == 0
        took = instance.takes(stream, ends)
        begin = lines[ends].start(now, took, plan.queues[number, ends])
        if begin is None:
            continue
        waiting += (begin - now) * (is_judged and hop > 0)
        link = instance.links[ends]
        if hop + 1 < len(plan.routes[number]):
            heapq.heappush(events, (begin + took + link.after, number, turn, hop + 1, released))
        elif is_judged:
            latencies[number].append(begin + took + link.propagation - released)
    every = [one for own in latencies.values() for one in own]
    return Replayed(
        sum(expected.values()),
        tuple(sorted(n for n, count in expected.items() if len(latencies[n]) < count)),
        tuple(sorted(n for n, own in latencies.items() if any(one > known[n].deadline for one in own))),
        max(every, default=0),
        sum(every) / len(every) if every else 0.0,
        max((max(own) - min(own) for own in latencies.values() if own), default=0),
        waiting,
    )


class _Line:
    """A link whose frames come in the order of time: each leaves when line, queue and gate let it."""

    def __init__(self, plan: Plan, ends: Links) -> None:
        self._cycle = plan.cycle
        self._free = 0
        self._gates: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for begin, end, queue in _merged(plan.gates.get(ends, ()), plan.cycle):
            self._gates[queue].append((begin, end))
        self._last: dict[int, int] = {}
        self._taken: deque[tuple[int, int]] = deque()

    def start(self, now: int, took: int, queue: int) -> int | None:
        """When a frame leaves that came at `now`; None: its gate is never open long enough."""
        own = self._gates.get(queue, [])
        if not any(end - begin >= took for begin, end in own):
            return None
        # First in, first out in its queue; frames of other queues may leave in between.
        at = max(now, self._last.get(queue, 0))
        while True:
            at = self._open(own, at, took)
            clash = next((end for begin, end in self._taken if begin < at + took and at < end), None)
            if clash is None:
                break
            at = clash
        self._last[queue] = at + took
        self._taken.append((at, at + took))
        while self._taken and self._taken[0][1] <= now:
            self._taken.popleft()
        return at

    def _open(self, gates: Sequence[tuple[int, int]], at: int, took: int) -> int:
        """The first time from `at` at which a gate stays open for `took`."""
        base = at - at % self._cycle
        for turn in (-self._cycle, 0, self._cycle, 2 * self._cycle):
            for begin, end in gates:
                opening, closing = base + turn + begin, base + turn + end
                if closing - max(opening, at) >= took:
                    return max(opening, at)
        raise AssertionError("some gate is long enough")


def _merged(entries: Sequence[tuple[int, int, int]], cycle: int) -> list[tuple[int, int, int]]:
    """Entries with neighbours of one queue as one; one that is always open begins at 0 and lasts two cycles."""
    by_queue: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for begin, end, queue in sorted(entries):
        own = by_queue[queue]
        if own and begin <= own[-1][1]:
            own[-1] = own[-1][0], max(own[-1][1], end)
        else:
            own.append((begin, end))
    for own in by_queue.values():
        if len(own) > 1 and own[-1][1] >= cycle and own[0][0] == own[-1][1] - cycle:
            own[-1] = own[-1][0], cycle + own[0][1]
            del own[0]
    return sorted((begin, end, queue) for queue, own in by_queue.items() for begin, end in own)


def _rows(prefix: str, kind: str, columns: Sequence[str]) -> Iterator[tuple[Path, int, dict[str, str]]]:
    path = Path(f"{prefix}-{kind}.csv")
    return ((path, line, row) for line, row in table(path, columns))


def _link(instance: Instance, path: Path, line: int, text: str) -> Links:
    ends = pair(path, line, text)
    if ends not in instance.links:
        raise ProblemError(f"{path}, line {line}: there is no link {ends} in the topology")
    return ends


def _stream(known: Mapping[int, Stream], path: Path, line: int, row: Mapping[str, str]) -> int:
    number = whole(path, line, row, "stream")
    if number not in known:
        raise ProblemError(f"{path}, line {line}: there is no stream {number} in the instance")
    return number


def _in_order(prefix: str, stream: Stream, way: Sequence[Links]) -> tuple[Links, ...]:
    """The links of a route from talker to listener."""
    following = {ends[0]: ends for ends in way}
    at = stream.path[0][0]
    found: list[Links] = []
    while at in following and len(found) < len(way):
        found.append(following[at])
        at = following[at][1]
    if at != stream.path[-1][1] or len(found) != len(way):
        raise ProblemError(
            f"{prefix}-ROUTE.csv: the links of stream {stream.number} are no path from node {stream.path[0][0]} to "
            f"node {stream.path[-1][1]}"
        )
    return tuple(found)
