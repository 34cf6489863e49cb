"""Finds a schedule by placing one flow after another, and moving others where none fits.

A flow whose windows all open as soon as its frame is ready has one unknown, its dispatch, and every other window is a
forbidden arc for it: windows of flows i and j at a port clash exactly where their distance modulo the greatest common
divisor of both periods is too short, so no hyperperiod is unrolled and periods need not be harmonic (Serafini and
Ukovich, SIAM J. Discrete Math. 2(4), 1989: periodic event scheduling). Where no dispatch is free, windows may wait in
switches; where that does not help, the flow takes the cheapest place and the flows in its way are placed again, at a
cost that grows each time they are moved (iterative forward search: Müller, Rudová and Barták, PATAT 2004).

The search proves nothing: a schedule that it does not find may exist, which `proving` decides.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.plan import Attachment
from wiregauge.scheduling.problem import Demand, Problem

__all__ = ["Objective", "Opens", "openings", "search", "total_wait"]

Opens = dict[int, tuple[int, ...]]
"""Openings of each flow's windows, from the beginning of the period of its dispatch."""
Objective = Literal["latency", "windows"]
"""The objective that is minimised: waiting in switches, or gate openings."""
_Integers = NDArray[np.int64]
_NEVER = -1
_SAMPLES = 48
"""The most places tried for a flow that has no free one."""
_WAITING_TRIES = 96
"""The most dispatches tried with waiting."""


class _Arcs(Struct):
    """Forbidden times of a window: (time - low) modulo `modulus` strictly between 0 and `width`."""

    low: list[int] = field(default_factory=list)
    width: list[int] = field(default_factory=list)
    modulus: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    """The flow whose window forbids the time; 0 where it cannot be moved."""

    def add(self, low: int, width: int, modulus: int, owner: int) -> None:
        self.low.append(low)
        self.width.append(width)
        self.modulus.append(modulus)
        self.owner.append(owner)

    def arrays(self) -> tuple[_Integers, _Integers, _Integers, _Integers]:
        return (
            np.array(self.low, dtype=np.int64),
            np.array(self.width, dtype=np.int64),
            np.array(self.modulus, dtype=np.int64),
            np.array(self.owner, dtype=np.int64),
        )


class _Table:
    """The windows that are placed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.opens: Opens = {}
        self._ports: dict[Attachment, dict[tuple[int, int], tuple[int, int, int]]] = {
            port: {} for port in problem.names
        }
        for demand in problem.demands:
            if demand.fixed is not None:
                self.put(demand, demand.fixed)

    def put(self, demand: Demand, opens: Sequence[int]) -> None:
        self.opens[demand.flow] = tuple(opens)
        for at, window in enumerate(demand.windows):
            entry = (opens[at] % demand.period, window.length, demand.period)
            self._ports[window.port][demand.flow, at] = entry

    def take(self, demand: Demand) -> None:
        del self.opens[demand.flow]
        for at, window in enumerate(demand.windows):
            del self._ports[window.port][demand.flow, at]

    def arcs_at(self, demand: Demand, at: int, shift: int, arcs: _Arcs, free: frozenset[int]) -> None:
        """Adds the times forbidden for a flow by others at its window `at`, which opens `shift` after that time."""
        window, period = demand.windows[at], demand.period
        for (flow, _), (opens, length, other) in self._ports[window.port].items():
            if flow == demand.flow:
                continue
            modulus = math.gcd(period, other)
            owner = flow if flow in free else 0
            # From the end of the other window back to where this one would end as the other opens.
            arcs.add(opens - window.length - shift, window.length + length, modulus, owner)
        # Windows lie within their period.
        arcs.add(period - window.length - shift, window.length, period, 0)


def _earliest(start: int, last: int, arrays: tuple[_Integers, _Integers, _Integers, _Integers]) -> int:
    """The first time from `start` to `last` in no arc; `_NEVER` without one."""
    low, width, modulus, _ = arrays
    if (width > modulus).any():
        return _NEVER
    at = start
    while at <= last:
        inside = (at - low) % modulus
        covers = (inside > 0) & (inside < width)
        if not covers.any():
            return at
        at += int((width[covers] - inside[covers]).max())
    return _NEVER


def _covering(at: int, arrays: tuple[_Integers, _Integers, _Integers, _Integers]) -> NDArray[np.bool_]:
    """The arcs that contain a time. One as long as its modulus leaves the instant at its ends free, a longer none."""
    low, width, modulus, _ = arrays
    inside = (at - low) % modulus
    covers: NDArray[np.bool_] = ((inside > 0) & (inside < width)) | (width > modulus)
    return covers


class _Search:
    def __init__(self, problem: Problem, seed: int, until: float, objective: Objective) -> None:
        self.problem = problem
        self.table = _Table(problem)
        self.random = random.Random(seed)
        self.until = until
        self.objective = objective
        self.demands = {demand.flow: demand for demand in problem.free}
        self.free = frozenset(self.demands)
        self.weights = dict.fromkeys(self.demands, 1)
        self.slack = {flow: demand.slack(problem.precision) for flow, demand in self.demands.items()}

    def impossible(self, demand: Demand) -> bool:
        """Whether two windows of a port can never coexist, or a flow not even alone."""
        slack = self.slack[demand.flow]
        return slack is not None and slack < 0

    def place(self, demand: Demand) -> bool:
        opens = self.at_once(demand)
        if opens is None:
            opens = self.waiting(demand)
        if opens is None:
            return False
        self.table.put(demand, opens)
        return True

    def arcs(
        self, demand: Demand, shifts: Sequence[int]
    ) -> tuple[_Integers, _Integers, _Integers, _Integers]:
        arcs = _Arcs()
        for at, shift in enumerate(shifts):
            self.table.arcs_at(demand, at, shift, arcs, self.free)
        self._late(demand, arcs, 0)
        return arcs.arrays()

    def _late(self, demand: Demand, arcs: _Arcs, waited: int) -> None:
        """Adds arcs of dispatches at which messages would miss their deadline."""
        slack = self.slack[demand.flow]
        if slack is None or demand.release is None:
            return
        step, ready = demand.release.step, demand.release.phase + demand.release.cost
        if slack - waited < step - 1:
            arcs.add(ready + slack - waited, step - (slack - waited), step, 0)

    def at_once(self, demand: Demand) -> tuple[int, ...] | None:
        """Openings for the first dispatch, from when messages are made, at which no window waits; None without one."""
        shifts = demand.at_once()
        arrays = self.arcs(demand, shifts)
        ready = 0
        if demand.release is not None:
            ready = (demand.release.phase + demand.release.cost) % demand.period
        period = demand.period
        root = max(demand.windows[at].length for at in demand.roots)
        best = None
        for start, last in ((ready, period - root), (0, min(ready - 1, period - root))):
            at = _earliest(start, last, arrays)
            if at != _NEVER:
                best = at
                break
        if best is None:
            return None
        if self.objective == "windows":
            best = self._touching(best, arrays, period - root)
        return tuple(best + shift for shift in shifts)

    def _touching(
        self, first: int, arrays: tuple[_Integers, _Integers, _Integers, _Integers], last: int
    ) -> int:
        """The free dispatch, next to another window, at which most windows touch."""
        low, width, modulus, _ = arrays
        best, most = first, -1.0
        for at in _candidates(arrays, last, 400):
            if _covering(at, arrays).any():
                continue
            inside = (at - low) % modulus
            touching = float((((inside == 0) | (inside == width % modulus)) / modulus)[modulus > 0].sum())
            if touching > most:
                best, most = at, touching
        return best

    def waiting(self, demand: Demand) -> tuple[int, ...] | None:
        """Openings with the least waiting, of the first dispatches that are free at the sender; None without one."""
        if len(demand.windows) == 1:
            return None
        by_window = []
        for at in range(len(demand.windows)):
            arcs = _Arcs()
            self.table.arcs_at(demand, at, 0, arcs, self.free)
            by_window.append(arcs)
        roots = _Arcs()
        for at in demand.roots:
            self.table.arcs_at(demand, at, 0, roots, self.free)
        self._late(demand, roots, 0)
        at_sender, at_each = roots.arrays(), [arcs.arrays() for arcs in by_window]
        last = demand.period - max(demand.windows[at].length for at in demand.roots)
        ends = self._ends_of_arcs(by_window, demand, last)
        best, least = None, None
        for start in ends[:_WAITING_TRIES]:
            dispatch = _earliest(start, last, at_sender)
            if dispatch == _NEVER:
                continue
            opens = self._follow(demand, dispatch, at_each)
            if opens is None:
                continue
            waits = demand.network_latency(opens)
            if least is None or waits < least:
                best, least = opens, waits
        return best

    def _ends_of_arcs(self, by_window: Sequence[_Arcs], demand: Demand, last: int) -> list[int]:
        """Dispatches at which some window of the flow could directly follow another one."""
        found = {0}
        for shift, arcs in zip(demand.at_once(), by_window, strict=True):
            for low, width, modulus in zip(arcs.low, arcs.width, arcs.modulus, strict=True):
                for turn in range(min(max(demand.period // modulus, 1), 8)):
                    found.add((low + width - shift + turn * modulus) % demand.period)
        inside = sorted(at for at in found if at <= last)
        if len(inside) > _WAITING_TRIES:
            inside = sorted(self.random.sample(inside, _WAITING_TRIES))
        return inside

    def _follow(
        self,
        demand: Demand,
        dispatch: int,
        at_each: Sequence[tuple[_Integers, _Integers, _Integers, _Integers]],
    ) -> tuple[int, ...] | None:
        opens: list[int] = []
        for at, window in enumerate(demand.windows):
            if window.parent < 0:
                opens.append(dispatch)
                continue
            ready = opens[window.parent] + window.distance
            last = ready + demand.longest_wait(at, self.problem.precision)
            first = _earliest(ready, last, at_each[at])
            if first == _NEVER:
                return None
            opens.append(first)
        slack = self.slack[demand.flow]
        if slack is not None:
            assert demand.deadline is not None
            worst = demand.worst_network_latency(opens, self.problem.precision) + demand.receive_cost
            if worst + demand.wait(dispatch) > demand.deadline:
                return None
        return tuple(opens)

    def push_in(self, demand: Demand) -> list[int] | None:
        """Places a flow without waiting where it costs least; returns the flows it displaces, or None if nowhere."""
        shifts = demand.at_once()
        arrays = self.arcs(demand, shifts)
        owner = arrays[3]
        last = demand.period - max(demand.windows[at].length for at in demand.roots)
        candidates = _candidates(arrays, last, 4 * _SAMPLES)
        if len(candidates) > _SAMPLES:
            candidates = self.random.sample(candidates, _SAMPLES)
        best: tuple[float, int, set[int]] | None = None
        for at in candidates:
            owners = set(owner[_covering(at, arrays)].tolist())
            if 0 in owners:
                continue
            cost = sum(self.weights[flow] for flow in owners) + self.random.random() / 2
            if best is None or cost < best[0]:
                best = cost, at, owners
        if best is None:
            return None
        _, at, owners = best
        for flow in owners:
            self.weights[flow] += 1
            self.table.take(self.demands[flow])
        self.table.put(demand, tuple(at + shift for shift in shifts))
        return sorted(owners)

    def run(self, order: Sequence[Demand], steps: int) -> bool:
        """Places all flows; False when time or steps run out."""
        queue = list(order)
        count = 0
        while queue:
            count += 1
            if count > steps or time.monotonic() > self.until:
                return False
            demand = queue.pop(0)
            if self.place(demand):
                continue
            moved = self.push_in(demand)
            if moved is None:
                # No movable flow would help here; another order may.
                if not self._make_room(demand, queue):
                    return False
                continue
            queue[:0] = [self.demands[flow] for flow in moved]
        return True

    def _make_room(self, demand: Demand, queue: list[Demand]) -> bool:
        """Removes some of the flows that share a port with a flow."""
        ports = {window.port for window in demand.windows}
        beside = [
            one
            for one in self.demands.values()
            if one.flow in self.table.opens and any(window.port in ports for window in one.windows)
        ]
        if not beside:
            return False
        for one in self.random.sample(beside, max(1, len(beside) // 3)):
            self.table.take(one)
            queue.append(one)
        queue.insert(0, demand)
        return True

    def improve(self) -> None:
        """Places every flow again where that improves the objective."""
        for demand in self.demands.values():
            if time.monotonic() > self.until:
                return
            before = self.table.opens[demand.flow]
            total = self._value(demand)
            self.table.take(demand)
            if not self.place(demand):
                self.table.put(demand, before)
            elif self._value(demand) > total:
                self.table.take(demand)
                self.table.put(demand, before)

    def _value(self, demand: Demand) -> tuple[int, int]:
        opens = self.table.opens[demand.flow]
        if self.objective == "windows":
            return openings(self.problem, self.table.opens), 0
        return demand.network_latency(opens), demand.wait(opens[0])


def _candidates(arrays: tuple[_Integers, _Integers, _Integers, _Integers], last: int, most: int) -> list[int]:
    """The times at the ends of arcs, up to `last`."""
    low, width, modulus, _ = arrays
    found: set[int] = {0}
    for ends in (low + width, low):
        for end, turn in zip(ends.tolist(), modulus.tolist(), strict=True):
            first = end % turn
            times = range(first, last + 1, turn)
            found.update(times if len(times) <= 16 else times[:: max(len(times) // 16, 1)])
    inside = sorted(at for at in found if at <= last)
    return inside if len(inside) <= most else inside[:: -(-len(inside) // most)]


def search(
    problem: Problem, *, seed: int, seconds: float, objective: Objective = "latency", rounds: int = 1_000_000
) -> Opens | None:
    """Openings of every flow, or None where none were found in the time, s."""
    until = time.monotonic() + seconds
    free = problem.free
    for number in range(rounds):
        one = _Search(problem, seed * 1_000 + number, until, objective)
        if any(one.impossible(demand) for demand in free):
            return None
        if one.run(_order(free, number, one.random), steps=60 + 40 * len(free) * (1 + number)):
            for _ in range(2):
                one.improve()
            return one.table.opens
        if time.monotonic() > until:
            return None
    return None


def _order(free: Iterable[Demand], number: int, chance: random.Random) -> list[Demand]:
    """The most constrained first: tight deadlines, short periods, long windows, long paths; later rounds shuffle."""

    def key(demand: Demand) -> tuple[float, float]:
        share = sum(window.length for window in demand.windows) / demand.period
        limit = demand.period if demand.deadline is None else min(demand.deadline, demand.period)
        return limit * (1 + number * 0.5 * chance.random()), -share

    return sorted(free, key=key)


def total_wait(problem: Problem, opens: Opens) -> int:
    """The total time that frames of all flows wait in switches."""
    return sum(
        demand.network_latency(opens[demand.flow]) - demand.network_latency(demand.at_once())
        for demand in problem.free
    )


def openings(problem: Problem, opens: Opens) -> int:
    """The number of openings of time-triggered gates in a cycle, over all ports; windows that touch count
    as one.
    """
    total = 0
    for port, entries in problem.at_port().items():
        del port
        placed = [
            (opens[d.flow][at] % d.period, d.windows[at].length, d.period)
            for d, at in entries
            if d.flow in opens
        ]
        cycle = math.lcm(*(period for _, _, period in placed)) if placed else 1
        total += sum(cycle // period for _, _, period in placed)
        for i, (ai, wi, pi) in enumerate(placed):
            for j, (aj, _, pj) in enumerate(placed):
                if (aj - ai - wi) % math.gcd(pi, pj) == 0 and (i != j or wi < pi):
                    total -= cycle // math.lcm(pi, pj)
    return total
