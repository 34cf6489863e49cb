"""How far the system clock of an end system is from the reference's, by what the programs that keep it said.

ptp4l measures an offset by two messages, one each way. Its error is how much longer than their mean one of them took;
as neither takes less than nothing, it is at most their mean, which is the path delay it prints. What changes from one
offset to the next is seen, and counts as it was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from wiregauge.clocks.state import ClockState

__all__ = ["PtpRelation", "begun_with", "bound_ns"]

_LAST: Final = 5
"""Observations that a start goes by: the middle of them."""
_MOST_APART: Final = 6
"""How many times their usual distance observations may be apart."""


@dataclass(frozen=True, slots=True)
class PtpRelation:
    """The clock less the reference's, ns, and by how much that may be wrong when it was seen."""

    offset_ns: float
    uncertainty_ns: float


def begun_with(states: Sequence[ClockState]) -> PtpRelation | None:
    """By the last observations of one program, in the order of time; None where there are too few."""
    seen = _seen(states)[-_LAST:]
    if len(seen) < _LAST:
        return None
    offset = median(one for _, one, _ in seen)
    spread = max(abs(one - offset) for _, one, _ in seen)
    return PtpRelation(offset, spread + max(delay for _, _, delay in seen))


def bound_ns(states: Sequence[ClockState], offset_ns: float, since_ns: int, until_ns: int) -> float | None:
    """Most that the clock was from `offset_ns` between two instants of CLOCK_REALTIME; None where nobody saw.

    Beyond the last observation the clock goes on as fast as it was ever seen to move from one to the next. Where
    observations stay away for long, nobody saw: a clock that has lost its server goes its own way.
    """
    seen = _seen(states)
    before = [number for number, (at, _, _) in enumerate(seen) if at <= since_ns]
    if not before:
        return None
    seen = seen[max(before[-1] - _LAST + 1, 0) :]
    if not any(at > since_ns for at, _, _ in seen):
        return None
    steps = [
        abs(after[1] - one[1]) / (after[0] - one[0]) for one, after in pairwise(seen) if after[0] > one[0]
    ]
    apart = [after[0] - one[0] for one, after in pairwise(seen)]
    if max(*apart, until_ns - seen[-1][0]) > _MOST_APART * median(apart):
        return None
    unseen = max(until_ns - seen[-1][0], 0) * max(steps, default=0.0)
    worst = max(abs(one - offset_ns) for _, one, _ in seen)
    return worst + unseen + max(delay for _, _, delay in seen)


def _seen(states: Sequence[ClockState]) -> list[tuple[int, float, float]]:
    return [
        (state.realtime_ns, state.offset_ns, abs(state.delay_ns))
        for state in states
        if state.offset_ns is not None and state.delay_ns is not None
    ]
