"""Whether the ways in which clocks were compared contradict one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.validity.evidence import Evidence, check
from wiregauge.records.reported import ClockOffset

__all__ = ["agreeing"]


def agreeing(run: Evidence) -> Iterator[Check]:
    """Checks offsets from exchanges against PTP's bounds: where both hold, they differ by no more than both
    uncertainties."""
    bounds = _by_ptp(run.entry.clock_offsets)
    compared = [clock for clock in run.clocks if clock.node in bounds and clock.reference in bounds]
    if not compared:
        return
    told, apart = [], []
    for clock in compared:
        bound = bounds[clock.node] + bounds[clock.reference]
        excess = float(np.max(np.abs(clock.offset) - clock.half_width)) - bound
        furthest = float(np.max(np.abs(clock.offset)))
        told.append(f"{clock.node}: {duration(furthest)} by exchanges, within {duration(bound)} by PTP")
        if excess > 0:
            apart.append(f"{clock.node} by {duration(excess)} more than the two allow")
    yield check(
        "clock-methods",
        "Exchanges and PTP agree on the clocks",
        "offsets by exchanges within what PTP bounds",
        "; ".join(told),
        Grade.DEGRADED if apart else Grade.OK,
        f"exchanges and PTP contradict each other about {', '.join(apart)}: one of them is disturbed",
    )


def _by_ptp(offsets: Mapping[str, ClockOffset] | None) -> dict[str, float]:
    return {
        name: one.uncertainty_ns
        for name, one in (offsets or {}).items()
        if one.method == "ptp" and one.uncertainty_ns is not None
    }
