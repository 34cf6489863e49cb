"""Which flows may share a queue, whose gate opens for each: frames wait in it in the order in which they came.

Two flows of a port share a queue only if neither of their frames can leave in a window of the other (frame isolation;
Craciunas, Serna Oliver, Chmelik and Steiner, RTNS 2016): no frame is in the queue before its own window while the gate
is open for the other, however early clocks let it come. That frames come in the order of their windows is not enough:
where one is missing, and be it the first of all, the next takes its window, and each one behind it that of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from itertools import permutations

from wiregauge.plan import Attachment, Campaign
from wiregauge.scheduling.problem import Demand, Problem, ProblemError
from wiregauge.scheduling.searching import Opens

__all__ = ["apart", "of_others", "priorities_of", "queued"]

Around = dict[int, set[int]]
"""By flow: the flows with which it may share no queue."""


def apart(problem: Problem, opens: Opens) -> Mapping[Attachment, Around]:
    """By port, the flows that leave there, each with those whose queue it may not share there."""
    found: dict[Attachment, Around] = {}
    for port, entries in problem.at_port().items():
        around: Around = {demand.flow: set() for demand, _ in entries}
        for one, other in permutations(entries, 2):
            if _takes_the_window(problem, opens, one, other):
                around[one[0].flow].add(other[0].flow)
                around[other[0].flow].add(one[0].flow)
        found[port] = around
    return found


def queued(around: Mapping[int, Set[int]], usable: Sequence[int]) -> tuple[Mapping[int, int], int | None]:
    """A queue for each flow, the first usable ones before others, and None; or the flow for which there is none.

    The flow with the fewest choices left is next (DSATUR: Brélaz, CACM 22(4), 1979).
    """
    chosen: dict[int, int] = {}
    while len(chosen) < len(around):
        left = {
            flow: [queue for queue in usable if queue not in {chosen.get(other) for other in others}]
            for flow, others in around.items()
            if flow not in chosen
        }
        flow = min(left, key=lambda one: (len(left[one]), -len(around[one]), one))
        if not left[flow]:
            return chosen, flow
        chosen[flow] = left[flow][0]
    return chosen, None


def priorities_of(
    problem: Problem, opens: Opens, *, first: int = 7, taken: Set[int] = frozenset()
) -> Mapping[int, int]:
    """Priorities by flow: `first`, and where flows may share no queue others from the highest down, except those that
    other traffic has. Raises ProblemError.
    """
    usable = [p for p in (first, *(p for p in range(7, 0, -1) if p != first)) if p not in taken]
    at_ports = apart(problem, opens)
    around: Around = {demand.flow: set() for demand in problem.demands}
    for here in at_ports.values():
        for flow, others in here.items():
            around[flow] |= others
    chosen, left = queued(around, usable)
    if left is None:
        return chosen
    ports = [problem.names[port] for port, here in at_ports.items() if here.get(left)]
    raise ProblemError(
        f"flow {left} could change places at {(ports or sorted(problem.names.values()))[0]} with flows "
        f"{', '.join(map(str, sorted(around[left])[:12]))} that wait there, and {len(usable)} priorities are free for "
        "scheduled frames; have fewer of them wait (--minimise latency, other deadlines), or give other traffic fewer "
        "priorities"
    )


def of_others(campaign: Campaign, problem: Problem) -> frozenset[int]:
    """The priorities of the flows that are not scheduled."""
    scheduled = {demand.flow for demand in problem.demands}
    return frozenset(
        flow.vlan.priority
        for run in campaign.runs
        for flow in run.flows
        if flow.vlan is not None and flow.id not in scheduled
    )


def _takes_the_window(
    problem: Problem, opens: Opens, one: tuple[Demand, int], other: tuple[Demand, int]
) -> bool:
    """Whether a frame of the second flow, in one queue, could leave in a window of the first."""
    (a, i), (b, j) = one, other
    behind = (opens[b.flow][j] - opens[a.flow][i]) % math.gcd(a.period, b.period)
    wait = _longest_wait(problem, b, opens[b.flow], j)
    if a.windows[i].parent < 0:
        # A host sends its frames in the order in which it makes them.
        return behind <= wait
    return behind < wait + a.windows[i].length


def _longest_wait(problem: Problem, demand: Demand, at: Sequence[int], place: int) -> int:
    """The longest that a frame waits for its window, by the port's clock."""
    window, release = demand.windows[place], demand.release
    if window.parent < 0:
        return 0 if release is None else release.cost
    early = problem.precision
    if demand.windows[window.parent].parent < 0 and release is not None:
        early += release.varies
    return at[place] - at[window.parent] - window.earliest + early
