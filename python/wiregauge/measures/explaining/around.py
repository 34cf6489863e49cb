"""The surroundings of a message: clocks, simulator events that affected it, host reports.

A reader of host noise is a function in `READERS`: it gets the run directory, the run and the nodes concerned and yields
events, with a time where it knows one. A new series of host noise is one more function there, and nothing else changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct, field

from wiregauge import stats
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.explaining.explanation import Clock, Event
from wiregauge.measures.metrics.clocks import RunClocks
from wiregauge.measures.metrics.flow_plan import LATE_WORDS, FlowPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.judgement import Floats
from wiregauge.measures.metrics.recorded import Recorded
from wiregauge.measures.validity.host_noise import ReportedRun, noise_events
from wiregauge.records.counters import known, sum_known

MOST_EVENTS = 200_000
"""Deeds of the truth file that are read; clocks are read apart."""
LOOK_BACK_NS = 10e6
"""Time before a message was sent, ns, within which events count as near it; at least as long as the message took."""
SHOWN = 6
_CLOCKS = ("clock-offset", "clock-stepped")
_OF_FRAMES = (
    "link-lost",
    "bit-error",
    "corrupted",
    "duplicated",
    "delayed",
    "preempted",
    "relay-fault",
    "collision",
)


class Surroundings(Struct, frozen=True):
    """Events of a run in the order of time, and the clocks of its nodes."""

    names: tuple[str, ...]
    deeds: pl.DataFrame
    reported: tuple[Event, ...]
    clocks: Mapping[str, tuple[Floats, Floats]]
    estimated: RunClocks
    simulated: bool
    planted: Mapping[str, str] = field(default_factory=dict)
    """The fault of the test that causes each kind of simulator event, with its line."""

    def clock(self, flow: FlowPlan, at_ns: float) -> Clock | None:
        """Clock of the destination against that of the source at a time (ns of the run)."""
        if self.simulated and not self.estimated.moved(flow):
            ends = [self.clocks.get(name) for name in (flow.source, flow.destination)]
            if not any(ends):
                return None
            grid = np.unique(np.concatenate([end[0] for end in ends if end is not None]))
            source, destination = (_shown(end, np.append(grid, at_ns)) for end in ends)
            between = destination - source
            return Clock(
                float(between[-1]), stats.median(np.asarray(between[:-1], dtype=np.float64)), 0.0, "truth"
            )
        known = self.estimated.offsets
        if flow.source not in known or flow.destination not in known:
            return None
        (here, sure), (there, also) = known[flow.source], known[flow.destination]
        if self.estimated.moved(flow):
            # Taken out of the message's time already.
            return Clock(0.0, 0.0, sure + also, "exchange")
        return Clock(there - here, there - here, sure + also, "manifest")

    def near(self, flow: FlowPlan, sequence: int, sent_ns: float, took_ns: float) -> tuple[Event, ...]:
        """Events at the message itself, at nodes on its route from just before until its arrival, and on hosts."""
        begin, end = (sent_ns - max(LOOK_BACK_NS, took_ns)) * 1e3, (sent_ns + took_ns) * 1e3
        own = (
            (pl.col("flow") == flow.id) & (pl.col("sequence") == sequence) & pl.col("kind").is_in(_OF_FRAMES)
        )
        nodes = sorted({node for way in flow.ways for node in way})
        around = (
            pl.col("time").is_between(begin, end)
            & pl.col("node").is_in(nodes)
            & ~pl.col("kind").is_in(_OF_FRAMES)
        )
        deeds = self.deeds.filter(~pl.col("warm_up") & own | around)
        found = [
            Event(time / 1e12, self._name(node), _told(kind, value) + self.planted.get(kind, ""), "truth")
            for time, kind, value, node in deeds.select("time", "kind", "value", "node")
            .head(SHOWN)
            .iter_rows()
        ]
        ends = {flow.source, flow.destination}
        near = [
            event
            for event in self.reported
            if event.node in ends
            and (event.at is None or (begin <= event.at * 1e12 and _since(event) * 1e12 <= end))
        ]
        more = max(deeds.height - SHOWN, 0) + max(len(near) - SHOWN, 0)
        rest = Event(None, flow.source, f"{count_of(more, 'further event')} meanwhile, not listed", "truth")
        return (*found, *near[:SHOWN], *([rest] if more else ()))

    def _name(self, node: int) -> str:
        return self.names[node] if 0 <= node < len(self.names) else f"node {node}"


def _since(event: Event) -> float:
    at = event.at or 0.0
    return event.since if event.since is not None else at


def _shown(clock: tuple[Floats, Floats] | None, at: Floats) -> Floats:
    """Clock reading minus true time: the last recorded value; 0 without any."""
    if clock is None or not len(clock[0]):
        return np.zeros(len(at))
    return clock[1][np.clip(np.searchsorted(clock[0], at, side="right") - 1, 0, len(clock[0]) - 1)]


def _told(kind: str, value: int) -> str:
    if kind == "delayed":
        return f"the link held the frame back by {duration(value / 1e3)}"
    if kind == "clock-stepped":
        return f"its clock was set by {'+' if value > 0 else '-'}{duration(abs(value) / 1e3)}"
    words = {
        "cut": "a link was cut",
        "restored": "a link was restored",
        "down": "the switch went down",
        "up": "the switch came back",
        "babble-began": "it began to babble",
        "babble-ended": "it ended to babble",
        "babbled": "it sent a frame past its regulators",
        "duplicated": "the link delivered the frame twice",
        "corrupted": "the link altered the frame's payload",
        "preempted": "the frame was aborted for a time-triggered one",
        "collision": "frames collided",
        "relay-fault": "a fault was planted in the relay",
        "link-lost": "the link lost a copy of the frame",
        "bit-error": "the link inverted a bit of the frame",
    }
    return words.get(kind, kind)


_FAULTS = {
    "cut": "cut",
    "down": "restart",
    "babble-began": "babble",
    "babbled": "babble",
    "duplicated": "duplicate",
    "corrupted": "corrupt",
    "delayed": "delay",
    "link-lost": "loss",
    "bit-error": "bit-errors",
    "relay-fault": "fault",
}
"""Deeds that happen because the test plants them, and the element that does."""


def _planted(test: Path) -> dict[str, str]:
    """For each kind of simulator event, the test element that plants it, with its lines."""
    if not test.is_file():
        return {}
    lines = test.read_text(encoding="utf-8", errors="replace").splitlines()
    found = {}
    for kind, tag in _FAULTS.items():
        own = [number for number, line in enumerate(lines, 1) if re.search(rf"<{tag}[\s/>]", line)]
        if own:
            several = "line" if len(own) == 1 else "lines"
            named = ", ".join(map(str, own[:SHOWN])) + (", …" if len(own) > SHOWN else "")
            found[kind] = f", as <{tag}> of the test plants it ({several} {named})"
    return found


def surroundings(directory: Recorded, run: ReportedRun, estimated: RunClocks) -> Surroundings:
    """The surroundings of a run's messages, read besides its records. `estimated` are the estimates of its clocks."""
    names = directory.plan.network.names
    path = directory.truth(run.plan.index)
    empty = {"time": pl.Int64, "kind": pl.String, "value": pl.Int64, "flow": pl.UInt16}
    deeds = pl.DataFrame(schema=empty | {"sequence": pl.UInt32, "node": pl.UInt16, "warm_up": pl.Boolean})
    clocks: dict[str, tuple[Floats, Floats]] = {}
    if path is not None:
        kind = pl.col("kind").cast(pl.String)
        deeds = read_columns(path, tuple(deeds.columns), kind != "clock-offset", most=MOST_EVENTS)
        deeds = deeds.with_columns(kind)
        shown = read_columns(path, ("time", "kind", "value", "node"), kind == "clock-offset").sort("time")
        for (node,), part in shown.partition_by("node", as_dict=True).items():
            at = part["time"].cast(pl.Float64).to_numpy() / 1e3
            clocks[names[int(node)]] = (at, part["value"].cast(pl.Float64).to_numpy() / 1e3)
    reported = tuple(event for reader in READERS for event in reader(directory, run))
    return Surroundings(
        names, deeds, reported, clocks, estimated, path is not None, _planted(directory.path / "test.xml")
    )


def _from_agents(directory: Recorded, run: ReportedRun) -> Iterator[Event]:
    """Events from agents' counters over a whole run; they have no time, for agents do not report it."""
    del directory
    for name, agent in run.agents.items():
        points, steal, steps = agent.access_points, known(agent.steal_ns), known(agent.clock_steps)
        late = sum_known(task.late for task in agent.tasks)
        largest = duration(abs(known(agent.largest_clock_step_ns)))
        told = [
            (steal, f"the hypervisor took {duration(steal)} of processor time"),
            (known(agent.involuntary_switches), "its servicing threads were preempted {n} times"),
            (steps, f"its clock was stepped {count_of(steps, 'time')}, by up to {largest}"),
            (known(agent.records_dropped), "{n} records lost in a full ring"),
            (late, f"{count_of(late, 'send')} late by more than {LATE_WORDS}"),
            (
                sum_known(point.socket_drops for point in points),
                "{n} frames dropped by the kernel for want of socket buffer",
            ),
            (
                sum_known(point.inbox_drops for point in points),
                "{n} frames dropped because a task's queue was full",
            ),
            (sum_known(point.send_errors for point in points), "{n} frames the kernel refused to send"),
        ]
        for count, text in told:
            if count:
                yield Event(None, name, text.replace("{n}", str(count)), "agent")


def _from_noise(directory: Recorded, run: ReportedRun) -> Iterator[Event]:
    """Events from the hosts' own counters, each between two samples."""
    for event in noise_events(directory, run):
        yield Event(event.at, event.node, event.text, "noise", event.since)


def _from_clocks(directory: Recorded, run: ReportedRun) -> Iterator[Event]:
    """State changes that clock synchronisation programs reported."""
    path = directory.clocks(run.plan.index)
    if path is None:
        return
    columns = ("time", "node", "source", "state")
    table = read_columns(path, columns, pl.col("offset_ns").is_null(), most=MOST_EVENTS).sort("time")
    for time, node, source, state in table.select(columns).iter_rows():
        yield Event(time / 1e12, node, f"{source} went to {state}", source)


READERS: list[Callable[[Recorded, ReportedRun], Iterator[Event]]] = [
    _from_agents,
    _from_noise,
    _from_clocks,
]
"""Readers of host events; each yields them in the order of time."""
