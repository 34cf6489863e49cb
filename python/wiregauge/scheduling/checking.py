"""Checks a schedule by rules that are independent of the search.

It compares windows opening by opening over the common period of their port, where that is short enough to be listed,
and modulo the common divisor of two periods where it is not; the search only ever does the latter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from wiregauge.scheduling.problem import Demand, Problem
from wiregauge.scheduling.searching import Opens

__all__ = ["Fault", "faults_of"]

Kind = Literal["overlap", "order", "buffer", "length", "period", "deadline", "acceptance", "missing", "plan"]
_MOST_OPENINGS = 65_536
_MOST_OF_A_KIND = 50


class Fault(Struct, frozen=True):
    """A rule that a schedule breaks."""

    kind: Kind
    flows: tuple[int, ...]
    port: str | None
    text: str
    """One sentence, with the limit."""


def faults_of(
    problem: Problem, opens: Opens, *, acceptance: Mapping[int, tuple[int, int]] | None = None
) -> Sequence[Fault]:
    """Every rule that a schedule breaks, at most 50 faults of a kind. `acceptance`: by flow, how long before and after
    its instant receivers accept a frame.
    """
    placed = [demand for demand in problem.demands if demand.flow in opens]
    found = [
        Fault("missing", (demand.flow,), None, f"flow {demand.flow} has no windows")
        for demand in problem.demands
        if demand.flow not in opens
    ]
    for demand in placed:
        found += _of_flow(problem, demand, opens[demand.flow])
        if acceptance is not None and demand.flow in acceptance:
            found += _accepted(problem, demand, acceptance[demand.flow])
    by_port: dict[str, list[tuple[Demand, int, int]]] = {}
    for demand in placed:
        for at, window in enumerate(demand.windows):
            entry = (demand, at, opens[demand.flow][at])
            by_port.setdefault(problem.names[window.port], []).append(entry)
    for port, entries in sorted(by_port.items()):
        found += _overlaps(problem, port, entries)
    kept: list[Fault] = []
    for _, several in itertools.groupby(sorted(found, key=lambda f: f.kind), key=lambda f: f.kind):
        kept += list(several)[:_MOST_OF_A_KIND]
    return kept


def _of_flow(problem: Problem, demand: Demand, opens: Sequence[int]) -> list[Fault]:
    found: list[Fault] = []
    flow, period = demand.flow, demand.period
    for at, window in enumerate(demand.windows):
        port, opening = problem.names[window.port], opens[at]

        def add(kind: Kind, text: str, port: str = port) -> None:
            found.append(Fault(kind, (flow,), port, f"flow {flow} at {port}: {text}"))

        needed = window.needed(problem.precision)
        if window.length < needed:
            add(
                "length",
                f"its window of {_ns(problem, window.length)} is shorter than its frame, what may hold it up "
                f"and clocks "
                f"that differ need ({_ns(problem, needed)})",
            )
        if opening < 0 or opening % period + window.length > period:
            add(
                "period",
                f"its window opens at {_ns(problem, opening % period)} for {_ns(problem, window.length)} and "
                f"ends beyond "
                f"its period of {_ns(problem, period)}",
            )
        if window.parent < 0:
            if opening != opens[demand.roots[0]]:
                add("order", "its windows at the sender open at different instants")
            if opening >= period:
                add("period", f"it is dispatched after its period of {_ns(problem, period)}")
            continue
        ready = opens[window.parent] + window.distance
        if opening < ready:
            add(
                "order",
                f"its window opens {_ns(problem, ready - opening)} before the whole frame is there and "
                f"processed by all "
                f"clocks",
            )
        elif opening - ready > demand.longest_wait(at, problem.precision):
            add("buffer", "its window opens so late that the next frame of the flow comes before")
    found += _handed_over(problem, demand, opens)
    if demand.deadline is not None:
        worst = demand.worst_network_latency(opens, problem.precision) + demand.receive_cost
        age = worst + demand.wait(opens[0])
        if age > demand.deadline:
            found.append(
                Fault(
                    "deadline",
                    (flow,),
                    None,
                    f"messages of flow {flow} are up to {_ns(problem, age)} old on arrival; the deadline is "
                    f"{_ns(problem, demand.deadline)}",
                )
            )
    return found


def _handed_over(problem: Problem, demand: Demand, opens: Sequence[int]) -> list[Fault]:
    """Faults of messages that are not all ready for the same dispatch."""
    release = demand.release
    if release is None or not release.is_split(opens[demand.roots[0]]):
        return []
    text = (
        f"flow {demand.flow}: its host takes up to {_ns(problem, release.varies)} longer for some messages than for "
        "others, so one may miss its dispatch, and the next takes its place"
    )
    return [Fault("missing", (demand.flow,), None, text)]


def _accepted(problem: Problem, demand: Demand, around: tuple[int, int]) -> list[Fault]:
    early, late = around
    held = max(demand.windows[tail.window].hold_up for tail in demand.tails)
    found = []
    for name, given, needed in (
        ("early", early, problem.precision),
        ("late", late, problem.precision + held),
    ):
        if given < needed:
            text = (
                f"receivers of flow {demand.flow} accept frames {_ns(problem, given)} {name}, but clocks and "
                f"other frames "
                f"may make them {_ns(problem, needed)} {name}"
            )
            found.append(Fault("acceptance", (demand.flow,), None, text))
    return found


def _overlaps(problem: Problem, port: str, entries: Sequence[tuple[Demand, int, int]]) -> list[Fault]:
    cycle = math.lcm(*(demand.period for demand, _, _ in entries))
    if sum(cycle // demand.period for demand, _, _ in entries) > _MOST_OPENINGS:
        return _by_pairs(problem, port, entries)
    openings = sorted(
        (begin % cycle, demand.windows[at].length, demand.flow)
        for demand, at, opening in entries
        for begin in range(opening % demand.period, cycle, demand.period)
    )
    found: dict[tuple[int, int], Fault] = {}
    if not openings:
        return []
    # One more period, so that windows across the end of the cycle are compared with its beginning.
    wrapped = [*openings, *((begin + cycle, length, flow) for begin, length, flow in openings)]
    until, whose = -1, 0
    for begin, length, flow in wrapped:
        if begin < until:
            pair = (min(whose, flow), max(whose, flow))
            found.setdefault(pair, _overlap(problem, port, pair, begin % cycle))
        if begin + length > until:
            until, whose = begin + length, flow
    return list(found.values())


def _by_pairs(problem: Problem, port: str, entries: Sequence[tuple[Demand, int, int]]) -> list[Fault]:
    found = []
    for (one, i, first), (other, j, second) in itertools.combinations(entries, 2):
        common = math.gcd(one.period, other.period)
        after = (second - first) % common
        if after < one.windows[i].length or common - after < other.windows[j].length:
            found.append(_overlap(problem, port, (one.flow, other.flow), None))
    return found


def _overlap(problem: Problem, port: str, pair: tuple[int, int], at: int | None) -> Fault:
    when = "" if at is None else f", {_ns(problem, at)} into the cycle of the port"
    flows = tuple(sorted(set(pair)))
    named = f"flows {flows[0]} and {flows[1]}" if len(flows) > 1 else f"flow {flows[0]} with itself"
    return Fault("overlap", flows, port, f"windows of {named} overlap at {port}{when}")


def _ns(problem: Problem, time: int) -> str:
    return f"{problem.nanos(time):.15g} ns"
