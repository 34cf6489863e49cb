"""Solves a scheduling problem: the search first, then the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from wiregauge.scheduling.problem import Problem, load_of
from wiregauge.scheduling.proving import Clash, clash_of, counted, has_solver, improved, proved
from wiregauge.scheduling.searching import Objective, Opens, openings, search, total_wait

__all__ = ["Answer", "Proof", "Solver", "solve"]

Proof = Literal["proven", "best-found"]
Solver = Callable[[Problem, float, int], "Answer"]
_RESERVE = 0.3
"""Seconds by which the solver may exceed its time."""
_TURNS = ((0.05, 0.1), (0.15, 0.25), (0.15, 0.3))
"""Shares of the time for search and solver, in each turn."""


class Answer(Struct, frozen=True):
    """A schedule, flows that clash, or neither."""

    opens: Opens | None
    clash: Clash | None
    proof: Proof
    """Whether a schedule is proved optimal."""
    seconds: float
    by: Literal["search", "solver", "counting", "nobody"]
    """The method that found it."""
    solver_missing: bool = False
    """Whether the answer might be better with the solver, which is not installed."""


def solve(
    problem: Problem, *, objective: Objective = "latency", seconds: float = 10.0, seed: int = 1
) -> Answer:
    """A schedule of all flows, as good as the time allows; or the fewest flows that have no common schedule."""
    begun = time.monotonic()
    until = begun + seconds

    def answer(opens: Opens | None, clash: Clash | None, by: str, *, proof: Proof = "best-found") -> Answer:
        took = time.monotonic() - begun
        missing = not has_solver() and (opens is None and clash is None)
        return Answer(opens, clash, proof, took, by, missing)  # type: ignore[arg-type]

    found = counted(problem)
    if found is not None:
        return answer(None, clash_of(problem, found.flows, found.reason, until, seed), "counting")
    # They take turns: what is hard for one is often easy for the other.
    for turn, (share_of_search, share_of_solver) in enumerate(_TURNS):
        left = until - time.monotonic()
        if left <= 0:
            break
        spell = left if not has_solver() else share_of_search * seconds
        opens = search(problem, seed=seed + turn, seconds=min(spell, left), objective=objective)
        if opens is not None:
            opens, best = _better(problem, opens, objective, until)
            return answer(opens, None, "search", proof="proven" if best else "best-found")
        left = until - time.monotonic() - _RESERVE
        if left <= 0 or not has_solver():
            continue
        outcome = proved(problem, min(share_of_solver * seconds, left))
        if outcome.clash is not None:
            clash = outcome.clash
            return answer(None, clash_of(problem, clash.flows, clash.reason, until, seed), "solver")
        if outcome.opens is not None:
            opens, best = _better(problem, outcome.opens, objective, until)
            return answer(opens, None, "solver", proof="proven" if best else "best-found")
    return answer(None, None, "nobody")


def _better(problem: Problem, opens: Opens, objective: Objective, until: float) -> tuple[Opens, bool]:
    """Improves a schedule in the time left; returns it and whether it is proved optimal."""
    if objective == "latency" and total_wait(problem, opens) == 0:
        return opens, True
    if objective == "windows" and openings(problem, opens) == sum(
        load_of(problem, port) < 1 for port in problem.at_port()
    ):
        return opens, True
    if not has_solver():
        return opens, False
    return improved(problem, opens, objective, 0.8 * max(until - time.monotonic() - _RESERVE, 0.0))
