"""Proofs by counting and by an SMT solver where the search fails, and the fewest flows that have no schedule.

Kinds of proof, the cheap ones first:

- *pairs*: two windows of one port that are together longer than the greatest common divisor of their periods overlap
  somewhere, wherever they are placed.
- *shares*: at a port, for any modulus m and flows whose pairwise common divisors all divide m, the windows have to lie
  apart modulo m, so the sum of length / gcd(period, m) is at most 1. With m the common period this is the load of the
  port.
- *demand*: windows that must open and end within an interval cannot be longer together than it. Only deadlines force
  this; for other flows windows must only lie within their period.
- *solver*: all constraints as integer differences, given to Z3 (de Moura and Bjørner, TACAS 2008). The method of
  Steiner (RTSS 2010) and of Craciunas and Serna Oliver (Real-Time Systems 52(2), 2016), but with a clash modulo the
  common divisor instead of over a hyperperiod.

A core is made minimal by deletion: without any one of its flows the rest is shown to have a schedule. Where time ran
out before that was shown, `minimal` is False.
"""

from __future__ import annotations

import importlib
import itertools
import math
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct

from wiregauge.scheduling.problem import Demand, Problem, common_period
from wiregauge.scheduling.searching import Objective, Opens, openings, search, total_wait

__all__ = ["Clash", "Outcome", "clash_of", "counted", "has_solver", "improved", "proved"]

_MOST_TURNS = 8
"""The most multiples of a common divisor that are listed one by one; more become an unknown."""
_MOST_INSTANCES = 3_000
"""The most windows in a common period for which demand is summed."""


class Clash(Struct, frozen=True):
    """Flows that have no common schedule."""

    flows: tuple[int, ...]
    reason: str
    """The reason, one sentence."""
    minimal: bool
    """Whether leaving out any one of them was shown to give a schedule."""


class Outcome(Struct, frozen=True):
    """The result of the solver."""

    opens: Opens | None = None
    clash: Clash | None = None


def has_solver() -> bool:
    """Whether Z3 is installed."""
    try:
        importlib.import_module("z3")
    except ImportError:
        return False
    return True


def counted(problem: Problem) -> Clash | None:
    """A proof by counting that no schedule exists, with the fewest flows it needs; None where there is none."""
    for test in (_alone, _pair, _shares, _demand):
        found = test(problem)
        if found is None:
            continue
        kept = found[0]
        for flow in found[0]:
            rest = [other for other in kept if other != flow]
            if rest and test(problem.only(set(rest))) is not None:
                kept = rest
        again = test(problem.only(set(kept)))
        assert again is not None
        return Clash(tuple(sorted(kept)), again[1], minimal=False)
    return None


def clash_of(problem: Problem, flows: Iterable[int], reason: str, until: float, seed: int) -> Clash:
    """The clash with the fewest flows: each is removed in turn, and put back if the others have a schedule alone."""
    kept, minimal = list(flows), True
    for flow in list(kept):
        rest = problem.only({other for other in kept if other != flow})
        if not rest.demands:
            continue
        found = counted(rest)
        if found is not None:
            kept = [other for other in kept if other in found.flows]
            reason = found.reason
            continue
        if flow not in kept:
            continue
        rest = problem.only({other for other in kept if other != flow})
        left = until - time.monotonic()
        if search(rest, seed=seed, seconds=min(max(left, 0.05), 1.0), rounds=6) is not None:
            continue
        if left <= 0 or not has_solver():
            minimal = False
            continue
        outcome = proved(rest, left)
        if outcome.clash is not None:
            kept = [other for other in kept if other in outcome.clash.flows]
            reason = outcome.clash.reason
        elif outcome.opens is None:
            minimal = False
    return Clash(tuple(sorted(kept)), _named(problem.only(set(kept)), reason), minimal)


def _named(problem: Problem, reason: str) -> str:
    found = counted(problem)
    return found.reason if found is not None else reason


def _alone(problem: Problem) -> tuple[list[int], str] | None:
    for demand in problem.demands:
        if demand.fixed is not None:
            continue
        for window in demand.windows:
            if window.length > demand.period:
                needed, period = problem.nanos(window.length), problem.nanos(demand.period)
                at = problem.names[window.port]
                return [demand.flow], (
                    f"flow {demand.flow} needs a window of {needed:g} ns at {at}, but its period is {period:g} ns"
                )
        slack = demand.slack(problem.precision)
        if slack is not None and slack < 0:
            assert demand.deadline is not None
            least = problem.nanos(demand.deadline - slack)
            return [demand.flow], (
                f"flow {demand.flow} takes at least {least:g} ns, but its deadline is "
                f"{problem.nanos(demand.deadline):g} ns"
            )
    return None


def _pair(problem: Problem) -> tuple[list[int], str] | None:
    for port, entries in problem.at_port().items():
        for (one, i), (other, j) in itertools.combinations(entries, 2):
            common = math.gcd(one.period, other.period)
            needed = one.windows[i].length + other.windows[j].length
            if needed > common:
                return [one.flow, other.flow], (
                    f"windows of flows {one.flow} and {other.flow} at {problem.names[port]} take "
                    f"{problem.nanos(needed):g} "
                    f"ns together, and their periods meet in every {problem.nanos(common):g} ns"
                )
    return None


def _shares(problem: Problem) -> tuple[list[int], str] | None:
    for port, entries in problem.at_port().items():
        periods = [demand.period for demand, _ in entries]
        moduli = {common_period(periods)}
        moduli |= {math.gcd(p, q) for p, q in itertools.combinations(sorted(set(periods)), 2)} | set(periods)
        for modulus in sorted(moduli):
            group: list[tuple[Demand, int]] = []
            # Greedily choose flows that agree pairwise on the modulus, the largest windows first.
            for demand, at in sorted(entries, key=lambda entry: -entry[0].windows[entry[1]].length):
                if all(modulus % math.gcd(demand.period, other.period) == 0 for other, _ in group):
                    group.append((demand, at))
            share = sum((_share(d.windows[at].length, d.period, modulus) for d, at in group), Fraction(0))
            if share > 1 and len(group) > 1:
                flows = [demand.flow for demand, _ in group]
                return flows, (
                    f"windows of {len(flows)} flows at {problem.names[port]} take {100 * float(share):.6g} % of "
                    f"the time "
                    f"there is for them, counted modulo {problem.nanos(modulus):g} ns"
                )
    return None


def _share(length: int, period: int, modulus: int) -> Fraction:
    """The share of the modulus that a window occupies; a window that overlaps itself modulo it is counted once."""
    turns = math.gcd(period, modulus)
    return Fraction(length, turns if length <= turns else modulus)


def _demand(problem: Problem) -> tuple[list[int], str] | None:
    """Flows whose deadlines force their windows into an interval that is too short, with the reason."""
    for port, entries in problem.at_port().items():
        spans = [(d, at, _span(d, at, problem.precision)) for d, at in entries]
        narrow = [(d, at, span) for d, at, span in spans if span is not None]
        if not narrow:
            continue
        cycle = common_period([d.period for d, _, _ in narrow])
        if sum(cycle // d.period for d, _, _ in narrow) > _MOST_INSTANCES:
            continue
        found = _crowded(narrow, cycle)
        if found is not None:
            flows, needed, there = found
            return flows, (
                f"windows of {len(flows)} flows at {problem.names[port]} have to lie within "
                f"{problem.nanos(there):g} ns of one "
                f"another for their deadlines, and take {problem.nanos(needed):g} ns"
            )
    return None


def _crowded(
    narrow: Sequence[tuple[Demand, int, tuple[int, int]]], cycle: int
) -> tuple[list[int], int, int] | None:
    """Flows with windows that must lie in one interval, their total length, and that of the interval."""
    jobs = sorted(
        (first + turn * d.period, last + turn * d.period, d.windows[at].length, d.flow)
        for d, at, (first, last) in narrow
        for turn in range(-1, cycle // d.period + 1)
    )
    for begin in sorted({job[0] for job in jobs if 0 <= job[0] < cycle}):
        taken, flows = 0, list[int]()
        for _, end, length, flow in sorted(
            (job for job in jobs if begin <= job[0] and job[1] <= begin + cycle), key=lambda job: job[1]
        ):
            taken += length
            flows.append(flow)
            if taken > end - begin:
                return list(dict.fromkeys(flows)), taken, end - begin
    return None


def _span(demand: Demand, at: int, precision: int) -> tuple[int, int] | None:
    """The interval of every period in which a window must open and end; None where it may be anywhere."""
    if demand.fixed is not None:
        begin = demand.fixed[at] % demand.period
        return begin, begin + demand.windows[at].length
    whole = demand.slack(precision)
    if whole is None or demand.release is None or demand.release.step != demand.period:
        return None
    # A path that ends before the longest one leaves its windows more time.
    at_once = demand.at_once()
    ends = [
        (
            at_once[tail.window] + tail.distance + demand.windows[tail.window].hold_up,
            _behind(demand, at, tail.window),
        )
        for tail in demand.tails
    ]
    slack = whole + max(end for end, _ in ends) - max(end for end, behind in ends if behind)
    early = demand.release.phase + demand.release.cost + at_once[at]
    return early % demand.period, early % demand.period + slack + demand.windows[at].length


def _behind(demand: Demand, at: int, last: int) -> bool:
    """Whether the path that ends with window `last` passes window `at`."""
    while last >= 0 and last != at:
        last = demand.windows[last].parent
    return last == at


class _Model:
    """The constraints of a problem in Z3."""

    def __init__(self, problem: Problem, until: float = math.inf) -> None:
        """Raises TimeoutError where adding the constraints takes beyond the instant `until`."""
        self.z3: Any = importlib.import_module("z3")
        self.problem = problem
        self.solver = self.z3.Solver()
        self.phase: dict[tuple[int, int], Any] = {}
        """The opening of each window within its period."""
        self.opens: dict[tuple[int, int], Any] = {}
        """The opening of each window after the beginning of the period of dispatch."""
        self.picked = {d.flow: self.z3.Bool(f"flow{d.flow}") for d in problem.demands}
        for demand in problem.demands:
            self._flow(demand)
        for entries in problem.at_port().values():
            for (one, i), (other, j) in itertools.combinations(entries, 2):
                if time.monotonic() > until:
                    raise TimeoutError
                self._apart(one, i, other, j)

    def _flow(self, demand: Demand) -> None:
        z3, chosen = self.z3, self.picked[demand.flow]
        rules: list[Any] = []
        for at, window in enumerate(demand.windows):
            name = f"{demand.flow}_{at}"
            phase = z3.Int(f"p{name}")
            self.phase[demand.flow, at] = phase
            if demand.fixed is not None:
                self.opens[demand.flow, at] = z3.IntVal(demand.fixed[at])
                rules.append(phase == demand.fixed[at] % demand.period)
                continue
            rules += [phase >= 0, phase <= demand.period - window.length]
            if window.parent < 0:
                self.opens[demand.flow, at] = phase
                rules.append(phase == self.phase[demand.flow, demand.roots[0]])
                continue
            opens, before = z3.Int(f"x{name}"), self.opens[demand.flow, window.parent]
            self.opens[demand.flow, at] = opens
            rules.append(opens - before >= window.distance)
            longest = demand.longest_wait(at, self.problem.precision)
            rules.append(opens - before <= window.distance + longest)
            turns = self._turns(demand, at)
            rules.append(z3.Or([opens == phase + turn * demand.period for turn in turns]))
        if demand.fixed is None:
            self._deadline(demand, rules)
        for rule in rules:
            self.solver.add(z3.Implies(chosen, rule))

    @staticmethod
    def _turns(demand: Demand, at: int) -> range:
        """The periods after its dispatch in which a window may open."""
        first = demand.at_once()[at] // demand.period
        hops, above = 0, demand.windows[at].parent
        while above >= 0:
            hops, above = hops + 1, demand.windows[above].parent
        return range(first, first + hops + 3)

    def _deadline(self, demand: Demand, rules: list[Any]) -> None:
        if demand.deadline is None:
            return
        z3, root = self.z3, self.opens[demand.flow, demand.roots[0]]
        wait: Any = z3.IntVal(demand.free_wait)
        if demand.release is not None:
            step, ready = demand.release.step, demand.release.phase + demand.release.cost
            since = z3.Int(f"w{demand.flow}")
            rules += [since >= 0, since < step]
            turns = range(-ready // step, (demand.period - ready) // step + 1)
            if len(turns) <= _MOST_TURNS:
                rules.append(z3.Or([root - ready == since + turn * step for turn in turns]))
            else:
                turn = z3.Int(f"v{demand.flow}")
                rules.append(root - ready == since + turn * step)
            wait = demand.period - step + demand.release.cost + since
        for tail in demand.tails:
            fixed = tail.distance + demand.windows[tail.window].hold_up + self.problem.precision
            rules.append(
                self.opens[demand.flow, tail.window] - root + wait + fixed + demand.receive_cost
                <= demand.deadline
            )

    def _apart(self, one: Demand, i: int, other: Demand, j: int) -> None:
        """Two windows of a port are never open together."""
        z3 = self.z3
        if one.fixed is not None and other.fixed is not None:
            return
        common = math.gcd(one.period, other.period)
        first, second = one.windows[i].length, other.windows[j].length
        between = self.phase[one.flow, i] - self.phase[other.flow, j]
        low, high = -(other.period - second), one.period - first
        # second <= between - turn * common <= common - first
        turns = range((low - (common - first)) // common, (high - second) // common + 1)
        if len(turns) <= _MOST_TURNS:
            rule = z3.Or(
                [
                    z3.And(between >= second + turn * common, between <= common - first + turn * common)
                    for turn in turns
                ]
            )
        else:
            turn = z3.Int(f"k{one.flow}_{i}_{other.flow}_{j}")
            rule = z3.And(between - turn * common >= second, between - turn * common <= common - first)
        self.solver.add(z3.Implies(z3.And(self.picked[one.flow], self.picked[other.flow]), rule))

    def wait(self) -> Any:
        """The total waiting time of frames in switches, as a term."""
        z3, waits = self.z3, []
        for demand in self.problem.free:
            least, root = demand.network_latency(demand.at_once()), self.opens[demand.flow, demand.roots[0]]
            worst = z3.Int(f"l{demand.flow}")
            for tail in demand.tails:
                self.solver.add(worst >= self.opens[demand.flow, tail.window] + tail.distance - root - least)
            waits.append(worst)
        return z3.Sum(waits)

    def openings(self) -> Any:
        """The number of gate openings in a cycle, as a term; see `searching.openings`."""
        z3, terms, constant = self.z3, [], 0
        for entries in self.problem.at_port().values():
            cycle = common_period([d.period for d, _ in entries])
            constant += sum(cycle // d.period for d, _ in entries)
            for (one, i), (other, j) in itertools.permutations(entries, 2):
                common = math.gcd(one.period, other.period)
                touch = z3.Bool(f"t{one.flow}_{i}_{other.flow}_{j}")
                turn = z3.Int(f"u{one.flow}_{i}_{other.flow}_{j}")
                between = self.phase[other.flow, j] - self.phase[one.flow, i] - one.windows[i].length
                self.solver.add(z3.Implies(touch, between == turn * common))
                terms.append((touch, cycle // math.lcm(one.period, other.period)))
        return constant - z3.Sum([z3.If(touch, weight, 0) for touch, weight in terms] or [z3.IntVal(0)])

    def check(self, seconds: float, flows: Iterable[int] | None = None) -> str:
        """The solver's result: `sat`, `unsat` or `unknown`."""
        self.solver.set("timeout", max(int(seconds * 1000), 1))
        names = self.picked if flows is None else {flow: self.picked[flow] for flow in flows}
        return str(self.solver.check(*names.values()))

    def core(self) -> set[int]:
        """The flows in the core of the last `unsat`."""
        by_name = {str(chosen): flow for flow, chosen in self.picked.items()}
        return {by_name[str(chosen)] for chosen in self.solver.unsat_core()}

    def found(self) -> Opens:
        """The openings in the model of the last `sat`."""
        model = self.solver.model()

        def value(expression: Any) -> int:
            return int(model.eval(expression, model_completion=True).as_long())

        return {
            d.flow: tuple(value(self.opens[d.flow, at]) for at in range(len(d.windows)))
            for d in self.problem.demands
        }


def proved(problem: Problem, seconds: float) -> Outcome:
    """The solver's result within a time limit, s: openings, a clash, or neither."""
    until = time.monotonic() + seconds
    try:
        model = _Model(problem, until)
    except TimeoutError:
        return Outcome()
    said = model.check(until - time.monotonic())
    if said == "sat":
        return Outcome(opens=model.found())
    if said == "unsat":
        flows = model.core()
        ports = problem.only(flows).at_port().items()
        named = sorted(problem.names[port] for port, entries in ports if len(entries) > 1)
        shown = ", ".join(named[:6]) + (", …" if len(named) > 6 else "")
        reason = f"no order of the windows of {len(flows)} flows at {shown} keeps to all of their limits"
        return Outcome(clash=Clash(tuple(sorted(flows)), reason, minimal=False))
    return Outcome()


def improved(problem: Problem, opens: Opens, objective: Objective, seconds: float) -> tuple[Opens, bool]:
    """The best openings found within a time limit, s, and whether they are proved optimal."""
    until = time.monotonic() + seconds
    try:
        model = _Model(problem, until)
    except TimeoutError:
        return opens, False
    figure = model.wait() if objective == "latency" else model.openings()
    value = total_wait if objective == "latency" else openings
    while (left := until - time.monotonic()) > 0:
        model.solver.push()
        model.solver.add(figure <= value(problem, opens) - 1)
        said = model.check(left)
        if said == "sat":
            opens = model.found()
        model.solver.pop()
        if said == "unsat":
            return opens, True
        if said != "sat":
            break
    return opens, False
