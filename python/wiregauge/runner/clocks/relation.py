"""The offset of an end system's clock from the reference's, from the output of its clock programs.

ptp4l measures an offset by two messages, one each way. Its error is half the difference of their delays,
at most their mean, which is the path delay it prints. Changes between offsets are observed, and count as observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from msgspec import Struct

from wiregauge.runner.clocks.state import ClockState

__all__ = ["PtpRelation", "begun_with", "bound_ns"]

_LAST: Final = 5
"""The number of observations whose median is the offset at the begin."""
_MOST_APART: Final = 6
"""Greatest gap between observations, in multiples of the usual one."""


class PtpRelation(Struct, frozen=True):
    """The clock minus the reference's, ns, and its uncertainty when observed, ns."""

    offset_ns: float
    uncertainty_ns: float


def begun_with(states: Sequence[ClockState]) -> PtpRelation | None:
    """The relation from the last observations of one program, in time order; None where there are too few."""
    seen = _seen(states)[-_LAST:]
    if len(seen) < _LAST:
        return None
    offset = median(one for _, one, _ in seen)
    spread = max(abs(one - offset) for _, one, _ in seen)
    return PtpRelation(offset, spread + max(delay for _, _, delay in seen))


def bound_ns(states: Sequence[ClockState], offset_ns: float, since_ns: int, until_ns: int) -> float | None:
    """The clock's greatest distance from `offset_ns` between two instants of CLOCK_REALTIME, ns; None where unknown.

    Beyond the last observation the clock is assumed to move at its greatest observed rate. After a long gap in the
    observations it is unknown: a clock that has lost its server runs free.
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
