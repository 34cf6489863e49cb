"""Checks that the gates of a test carry its periodic flows, independently of how they were found.

Frames of all scheduled flows are followed through the network, event by event, over two common periods of senders and
gates; the second is judged, as the first may begin with empty queues. No other traffic is sent: if its gates are open
together with those of a scheduled frame, that is a fault of its own. No code of the search, of the gate writer or of
the simulator is used.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.plan import Attachment, Campaign, Flow, Run, Send, Switch
from wiregauge.plan.ethernet import GAP, PREAMBLE
from wiregauge.plan.tsn import GateSchedule, HostTsn, PortSchedule, PortTsn
from wiregauge.scheduling.checking import Fault
from wiregauge.scheduling.host_times import receiving
from wiregauge.scheduling.host_times import sending as sending_times
from wiregauge.scheduling.problem import ProblemError, port_name
from wiregauge.scheduling.rooms import Room, Rooms

__all__ = ["GatesJudged", "has_gates", "judge_gates"]

_MOST_STEPS = 400_000
_MOST_OF_A_KIND = 50

Beside = Callable[[Run, Collection[int]], Mapping[str, float | None]]
"""Greatest backlog, bits, by port of all flows but some in a run; None where it has no bound."""


class GatesJudged(Struct, frozen=True):
    """The result for the gates of all runs; times in ps."""

    faults: Sequence[Fault]
    periods: Mapping[int, int]
    """Period of each scheduled flow."""
    precision: int
    latencies: Mapping[int, tuple[int, int]]
    """Least and greatest latency of each flow, from the first bit sent to the last bit at the last receiver."""


def has_gates(campaign: Campaign) -> bool:
    """Whether a node of the test has a gate control list."""
    return any(
        any(tsn.schedules for tsn in node.kind.tsn)
        if isinstance(node.kind, Switch)
        else node.tsn is not None and node.tsn.schedule is not None
        for node in campaign.network.nodes
    )


def judge_gates(campaign: Campaign, precision_ps: int = 0, beside: Beside | None = None) -> GatesJudged:
    """Judges the gates of every run; clocks of two nodes are `precision_ps` apart at most. Raises ProblemError.

    `beside`: the backlog of other traffic at ports; without it buffers are checked for scheduled frames alone.
    """
    faults: dict[tuple[str, tuple[int, ...], str | None], Fault] = {}
    periods: dict[int, int] = {}
    latencies: dict[int, tuple[int, int]] = {}
    for run in campaign.runs:
        judge = _Judge(campaign, run, precision_ps, beside)
        judge.walk()
        for fault in judge.faults:
            faults.setdefault((fault.kind, fault.flows, fault.port), fault)
        periods |= judge.periods
        for flow, (least, most) in judge.latencies.items():
            before = latencies.get(flow, (least, most))
            latencies[flow] = min(before[0], least), max(before[1], most)
    kept: list[Fault] = []
    ordered = sorted(faults.values(), key=lambda one: one.kind)
    for _, several in itertools.groupby(ordered, key=lambda one: one.kind):
        kept += list(several)[:_MOST_OF_A_KIND]
    return GatesJudged(kept, periods, precision_ps, latencies)


class _Gate:
    """The openings of a class's gate."""

    def __init__(self, openings: Sequence[tuple[int, int]], cycle: int, base: int, guard: int | None) -> None:
        # Two openings that join across the end of the cycle are one.
        joined: list[tuple[int, int]] = []
        for begin, end in openings:
            if joined and joined[-1][1] == begin:
                joined[-1] = joined[-1][0], end
            else:
                joined.append((begin, end))
        self.always = joined == [(0, cycle)]
        if len(joined) > 1 and joined[0][0] == 0 and joined[-1][1] == cycle:
            first = joined.pop(0)
            joined[-1] = joined[-1][0], first[1] + cycle
        self._openings, self._cycle, self._base, self._guard = joined, cycle, base, guard
        self._begins = [begin for begin, _ in joined]

    def openings_from(self, at: int) -> Iterator[tuple[int, int]]:
        """The opening at an instant or the next one, and all after it."""
        if not self._openings:
            return
        turns, within = divmod(at - self._base, self._cycle)
        place = bisect_right(self._begins, within) - 1
        if place < 0:
            turns, place = turns - 1, len(self._openings) - 1
        for number in itertools.count(turns * len(self._openings) + place):
            turn, one = divmod(number, len(self._openings))
            begin, end = self._openings[one]
            shift = self._base + turn * self._cycle
            if end + shift > at:
                yield begin + shift, end + shift

    def starts(self, at: int, sending: int) -> tuple[int, tuple[int, int]] | None:
        """The first start from `at` on of a frame that takes `sending`, and the opening it uses; None without one."""
        for begin, end in itertools.islice(self.openings_from(at), 2 * len(self._openings) + 2):
            start = max(at, begin)
            if start + sending <= end if self._guard is None else start <= end - self._guard:
                return start, (begin, end)
        return None

    def is_open(self, at: int) -> bool:
        begin, end = next(self.openings_from(at), (at + 1, at + 1))
        return begin <= at < end


class _Line(Struct):
    """A port: its gates by class, its queues, and the instant until which it is busy."""

    at: Attachment
    name: str
    rate: int
    gates: Sequence[_Gate | None]
    """The gate of each class; None: always open."""
    class_of: Mapping[int, int]
    cycle: int
    queues: dict[int, deque[_Frame]] = field(default_factory=dict)
    busy: int = -(1 << 62)
    wakes: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    """Classes used by traffic without a schedule."""


class _Frame(Struct):
    flow: Flow
    number: int
    length: int
    made: int
    judged: bool
    left: int = 0
    """The instant of the first bit out of the sender."""
    varies: int = 0
    """How much later the frame may be ready, as hosts need more time for some messages than for others."""


class _Judge:
    def __init__(self, campaign: Campaign, run: Run, precision: int, beside: Beside | None) -> None:
        self._campaign, self._run, self._precision, self._beside = campaign, run, precision, beside
        self.faults: list[Fault] = []
        self.periods: dict[int, int] = {}
        self.latencies: dict[int, tuple[int, int]] = {}
        self._lines: dict[Attachment, _Line] = {}
        self._rooms = Rooms(campaign.network)
        links = {end: link for link in campaign.network.links for end in link.ends}
        for end, link in links.items():
            self._lines[end] = _line(campaign, end, run.link_rate_bps or link.rate_bps)
        self._delays = {end: link.delay for end, link in links.items()}
        self._scheduled = [flow for flow in run.flows if self._is_scheduled(flow)]
        self._ways = {flow.id: self._way(flow) for flow in self._scheduled}

    def _is_scheduled(self, flow: Flow) -> bool:
        """Whether the flow's frames have a priority and pass a port with gates."""
        if flow.vlan is None or flow.vlan.priority == 0 or flow.frer is not None:
            return False
        hops = (Attachment(hop.from_, hop.from_port) for route in flow.routes for hop in route.hops)
        return any(self._gate(self._lines[at], flow) is not None for at in hops)

    def _gate(self, line: _Line, flow: Flow) -> _Gate | None:
        gate = line.gates[self._class(line, flow)] if line.gates else None
        return None if gate is None or gate.always else gate

    @staticmethod
    def _class(line: _Line, flow: Flow) -> int:
        return line.class_of.get(flow.vlan.priority if flow.vlan else 0, 0)

    def _way(self, flow: Flow) -> dict[Attachment, list[tuple[Attachment | None, int, int]]]:
        """The ports that follow each port (None: a receiver), with times from the last bit out to readiness there."""
        way: dict[Attachment, list[tuple[Attachment | None, int, int]]] = {}
        for route in flow.routes:
            for at, hop in enumerate(route.hops):
                port = Attachment(hop.from_, hop.from_port)
                delay = self._delays[port]
                after: tuple[Attachment | None, int, int] = (None, delay, hop.to)
                if at + 1 < len(route.hops):
                    then = route.hops[at + 1]
                    into = self._campaign.network.nodes[hop.to].kind
                    if not isinstance(into, Switch):
                        raise ProblemError(f"flow {flow.id} passes a hub, whose delays nobody can schedule")
                    if into.forwarding_mode != "store-and-forward" or into.drawn_delay is not None:
                        raise ProblemError(
                            f'"{self._campaign.network.names[hop.to]}" is no store-and-forward switch of constant '
                            "delay; "
                            "play its gates, and look at the measure gates"
                        )
                    port_after = Attachment(then.from_, then.from_port)
                    mixed = self._lines[port].rate != self._lines[port_after].rate
                    ready = delay + into.processing_delay + (into.mixed_rate_delay if mixed else 0)
                    after = (port_after, ready, hop.to)
                if after not in way.setdefault(port, []):
                    way[port].append(after)
        return way

    def walk(self) -> None:
        """Follows all frames through the network."""
        senders = {}
        for flow in self._scheduled:
            send = self._run.send_of.get(flow.id)
            if send is None or not _plain(send):
                text = f"flow {flow.id} is not sent with a constant period, so no gate is right for it"
                self.faults.append(Fault("plan", (flow.id,), None, text))
                continue
            senders[flow.id] = send
            self.periods[flow.id] = send.period
        if not senders:
            return
        ports = {port for flow in self._scheduled for port in self._ways[flow.id]}
        self._note_others(ports, set(senders))
        self._leave_room(ports, set(senders))
        common = math.lcm(*(send.period for send in senders.values()), *(self._lines[p].cycle for p in ports))
        steps = sum(
            2 * (common // senders[flow.id].period) * len(self._ways[flow.id])
            for flow in self._scheduled
            if flow.id in senders
        )
        if steps > _MOST_STEPS:
            raise ProblemError(
                f"senders and gates begin together again after {common / 1e9:g} ms, {steps} frames at ports; choose "
                "periods and cycles that divide one another"
            )
        self._walk(senders, common)

    def _walk(self, senders: Mapping[int, Send], common: int) -> None:
        events: list[tuple[int, int, Attachment, _Frame | None]] = []
        order = itertools.count()
        for flow in self._scheduled:
            if flow.id not in senders:
                continue
            send = senders[flow.id]
            times = sending_times(self._campaign.network, flow.from_, flow.protocol, send.payload)
            phase = (self._run.warm_up + send.offset) % send.period
            first = next(iter(self._ways[flow.id]))
            for number, made in enumerate(range(phase, 2 * common, send.period)):
                message = _Frame(
                    flow, number, flow.frame_length(send.payload), made, made >= common, varies=times.varies
                )
                events.append((made + times.least, next(order), first, message))
        heapq.heapify(events)
        ready: dict[tuple[int, int, Attachment], int] = {}
        end = 4 * common
        while events and events[0][0] <= end:
            now, _, at, frame = heapq.heappop(events)
            line = self._lines[at]
            full = None
            if frame is None:
                line.wakes.discard(now)
            else:
                ready[frame.flow.id, frame.number, at] = now
                full = self._take_in(line, frame)
            if now < line.busy:
                self._wake(line, line.busy, events, order)
            else:
                self._select(line, now, events, order, ready)
            if full is not None and frame is not None and frame.judged:
                self._judge_room(line, frame, full)
        for line in self._lines.values():
            for queue in line.queues.values():
                for frame in itertools.islice((one for one in queue if one.judged), 1):
                    text = f"flow {frame.flow.id} at {line.name}: more frames come than its gate lets out"
                    self.faults.append(Fault("missing", (frame.flow.id,), line.name, text))

    def _take_in(self, line: _Line, frame: _Frame) -> tuple[Room, bool] | None:
        """Queues a frame; returns the buffer without room for it, if any, and whether other frames are queued there."""
        number = self._class(line, frame.flow)
        waits = any(line.queues.values())
        rooms = self._rooms.of(line.at, line.name, number)
        full = next((room for room in rooms if not room.takes(frame.length)), None)
        for room in rooms:
            room.put(frame.length)
        line.queues.setdefault(number, deque()).append(frame)
        return None if full is None else (full, waits)

    def _judge_room(self, line: _Line, frame: _Frame, full: tuple[Room, bool]) -> None:
        room, waits = full
        queue = line.queues[self._class(line, frame.flow)]
        # A frame that finds the line free and its queue empty needs no buffer.
        if waits or (queue and queue[-1] is frame):
            text = (
                f"flow {frame.flow.id} at {line.name}: a frame of {frame.length} B finds no room in {room.name} "
                f"of {room.text}, in which others wait"
                if waits
                else f"flow {frame.flow.id} at {line.name}: {room.name} of {room.text} has no room for a frame of "
                f"{frame.length} B, which has to wait there"
            )
            self.faults.append(Fault("buffer", (frame.flow.id,), line.name, text))

    def _select(
        self,
        line: _Line,
        now: int,
        events: list[tuple[int, int, Attachment, _Frame | None]],
        order: Iterator[int],
        ready: Mapping[tuple[int, int, Attachment], int],
    ) -> None:
        """Starts the frame of the highest class that may start now, or adds an event at the next opening."""
        soonest = None
        for number in sorted((one for one, queue in line.queues.items() if queue), reverse=True):
            frame = line.queues[number][0]
            sending = _time(PREAMBLE + frame.length, line.rate)
            gate = line.gates[number] if line.gates else None
            found = (now, (now, now)) if gate is None else gate.starts(now, sending)
            if found is None:
                continue
            if found[0] > now:
                soonest = found[0] if soonest is None else min(soonest, found[0])
                continue
            line.queues[number].popleft()
            for room in self._rooms.of(line.at, line.name, number):
                room.take(frame.length)
            line.busy = now + _time(PREAMBLE + frame.length + GAP, line.rate)
            if frame.judged:
                self._judge(line, frame, (ready[frame.flow.id, frame.number, line.at], now), sending)
            # The frame had to wait, so its start varies by that much less.
            frame.varies = max(0, frame.varies - (now - ready[frame.flow.id, frame.number, line.at]))
            self._pass_on(line, frame, now, sending, events, order)
            if any(line.queues.values()):
                self._wake(line, line.busy, events, order)
            return
        if soonest is not None:
            self._wake(line, soonest, events, order)

    @staticmethod
    def _wake(
        line: _Line,
        at: int,
        events: list[tuple[int, int, Attachment, _Frame | None]],
        order: Iterator[int],
    ) -> None:
        if at not in line.wakes:
            line.wakes.add(at)
            heapq.heappush(events, (at, next(order), line.at, None))

    def _pass_on(
        self,
        line: _Line,
        frame: _Frame,
        now: int,
        sending: int,
        events: list[tuple[int, int, Attachment, _Frame | None]],
        order: Iterator[int],
    ) -> None:
        way = self._ways[frame.flow.id]
        left = now if line.at == next(iter(way)) else frame.left
        for after, time, receiver in way[line.at]:
            if after is not None:
                copy = replace(frame, left=left)
                heapq.heappush(events, (now + sending + time, next(order), after, copy))
            elif frame.judged:
                latency = now + sending + time - left
                least, most = self.latencies.get(frame.flow.id, (latency, latency))
                self.latencies[frame.flow.id] = min(least, latency), max(most, latency)
                payload = self._run.send_of[frame.flow.id].payload
                until = receiving(self._campaign.network, receiver, frame.flow.protocol, payload)
                self._judge_age(frame, now + sending + time + until + frame.varies - frame.made)

    def _judge_age(self, frame: _Frame, age: int) -> None:
        deadline = frame.flow.deadline
        if deadline is not None and age > deadline:
            text = (
                f"messages of flow {frame.flow.id} are up to {age / 1000:.15g} ns old on arrival; the deadline is "
                f"{deadline / 1000:.15g} ns"
            )
            self.faults.append(Fault("deadline", (frame.flow.id,), None, text))

    def _judge(self, line: _Line, frame: _Frame, times: tuple[int, int], sending: int) -> None:
        if (gate := self._gate(line, frame.flow)) is not None:
            self._judge_opening(line, frame, gate, times, sending)
        self._judge_others(line, frame, times[1])

    def _judge_opening(
        self, line: _Line, frame: _Frame, gate: _Gate, times: tuple[int, int], sending: int
    ) -> None:
        came, started = times
        flow, whose = frame.flow.id, f"flow {frame.flow.id} at {line.name}"
        own = next(gate.openings_from(came))
        used = next(gate.openings_from(started))
        if used != own:
            late = came + sending - own[1]
            why = (
                f"it is ready {late / 1000:.15g} ns too late for the rest of it"
                if came >= own[0] and late > 0
                else "others are before it in the queue or on the line, or it is too short"
            )
            waits = (started - came) / 1000
            text = f"{whose}: a frame misses the opening of its gate ({why}), and waits {waits:.15g} ns"
            self.faults.append(Fault("order", (flow,), line.name, text))
        elif frame.varies and (
            next(gate.openings_from(came + frame.varies)) != own
            or max(came + frame.varies, own[0]) + sending > own[1]
        ):
            varies = frame.varies / 1000
            text = (
                f"{whose}: its host may be {varies:.15g} ns later with some messages, which miss its opening"
            )
            self.faults.append(Fault("length", (flow,), line.name, text))
        elif self._precision and line.at != next(iter(self._ways[flow])):
            latest = came + self._precision
            soon, last = next(gate.openings_from(came - self._precision)), next(gate.openings_from(latest))
            if soon != last or max(latest, last[0]) + sending > last[1]:
                apart = self._precision / 1000
                text = f"{whose}: with clocks {apart:.15g} ns apart a frame may miss the opening of its gate"
                self.faults.append(Fault("length", (flow,), line.name, text))

    def _judge_others(self, line: _Line, frame: _Frame, started: int) -> None:
        """Adds a fault if gates of unscheduled traffic are open during the frame."""
        flow, whose = frame.flow.id, f"flow {frame.flow.id} at {line.name}"
        own = self._class(line, frame.flow)
        for number in line.others:
            other = line.gates[number] if line.gates else None
            if not line.gates:
                why = "traffic without a schedule leaves there as well, and no gate keeps it out of the way"
            elif number == own:
                why = "traffic without a schedule is in its class, and may be in the way"
            elif other is None or other.is_open(started):
                why = f"the gate of class {number} is open beside its own, so others may be in the way"
            else:
                continue
            self.faults.append(Fault("overlap", (flow,), line.name, f"{whose}: {why}"))

    def _note_others(self, ports: set[Attachment], scheduled: set[int]) -> None:
        """Records the classes that other traffic uses at ports."""
        run = self._run
        loads = [inject.route for inject in run.injects] + [log.route for log in run.remote_logs]
        uses = [(0, hop) for route in loads for hop in route.hops]
        for flow in run.flows:
            priority = flow.vlan.priority if flow.vlan else 0
            self._refuse_critical(flow, ports)
            if flow.id not in scheduled:
                uses += [(priority, hop) for route in flow.routes for hop in route.hops]
        leave = [(priority, Attachment(hop.from_, hop.from_port)) for priority, hop in uses]
        for at in ports:
            kind = self._campaign.network.nodes[at.node].kind
            own = kind.own_frames if isinstance(kind, Switch) else ()
            leave += [(frames.priority, at) for frames in own if not frames.ports or at.port in frames.ports]
        for priority, at in leave:
            if at in ports:
                line = self._lines[at]
                line.others.add(line.class_of.get(priority, 0))

    def _refuse_critical(self, flow: Flow, ports: set[Attachment]) -> None:
        """Refuses virtual links and windows: they precede a port's classes, and what they leave is unknown here."""
        if flow.virtual_link is None and flow.schedule is None:
            return
        for at in (Attachment(hop.from_, hop.from_port) for route in flow.routes for hop in route.hops):
            if at in ports and self._lines[at].gates:
                raise ProblemError(
                    f"flow {flow.id} has protocol {flow.protocol} and takes {self._lines[at].name}, whose gates do not "
                    "hold it; play it, and look at the measure gates"
                )

    def _leave_room(self, ports: set[Attachment], scheduled: set[int]) -> None:
        """Reserves the share of ports' buffers that other traffic may use."""
        crossed = [self._lines[at] for at in sorted(ports) if self._lines[at].others]
        if self._beside is None or not crossed:
            return
        waits = self._beside(self._run, scheduled)
        for line in crossed:
            if not self._rooms.lend(line.at, line.name, line.others, waits.get(line.name)):
                flows = tuple(flow for flow in sorted(scheduled) if line.at in self._ways[flow])
                is_switch = isinstance(self._campaign.network.nodes[line.at.node].kind, Switch)
                cure = "give each class a queue-buffer" if is_switch else "let another host send it"
                text = (
                    f"traffic without a schedule may fill the buffer of {line.name}, as nothing bounds what of it "
                    f"waits there, and scheduled frames are lost then; {cure}"
                )
                self.faults.append(Fault("buffer", flows, line.name, text))


def _plain(send: Send) -> bool:
    periodic = send.pattern is None or send.pattern.type == "periodic"
    return periodic and send.activity is None and send.replay is None and send.rate_limit_bps is None


def _time(octets: int, rate: int) -> int:
    return -(-octets * 8 * 10**12 // rate)


def _line(campaign: Campaign, at: Attachment, rate: int) -> _Line:
    node = campaign.network.nodes[at.node]
    name = port_name(campaign, at)
    tsn: PortTsn | HostTsn | None = node.tsn
    if isinstance(node.kind, Switch):
        named = [one for one in node.kind.tsn if at.port in one.ports]
        tsn = next(iter(named or [one for one in node.kind.tsn if not one.ports]), None)
    if tsn is None or not tsn.classes:
        strict = isinstance(node.kind, Switch) and node.kind.strict_priority
        return _Line(at, name, rate, (), {priority: priority for priority in range(8)} if strict else {}, 1)
    if isinstance(tsn, PortTsn):
        if tsn.cyclic is not None or len(tsn.schedules) > 1:
            raise ProblemError(
                f"{name} has no single gate control list; play it, and look at the measure gates"
            )
        guard = tsn.guard_band
        schedule: PortSchedule | GateSchedule | None = next(iter(tsn.schedules), None)
        class_of = {p: number for number, one in enumerate(tsn.classes) for p in one.priorities}
    else:
        schedule, guard = tsn.schedule, None
        class_of = {p: number for number, one in enumerate(tsn.classes) for p in one.priorities}
    if schedule is None:
        return _Line(at, name, rate, tuple(None for _ in tsn.classes), class_of, 1)
    cycle = sum(entry.length for entry in schedule.entries)
    gates = []
    for number in range(len(tsn.classes)):
        openings, when = [], 0
        for entry in schedule.entries:
            if number in entry.open:
                openings.append((when, when + entry.length))
            when += entry.length
        gates.append(_Gate(openings, cycle, schedule.base_time, guard))
    return _Line(at, name, rate, tuple(gates), class_of, cycle)
