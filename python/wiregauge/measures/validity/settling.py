"""Tests whether the beginning of a series differs from the rest, and whether the series is stationary.

Results stand with the figures and exclude nothing: every message of the measured part is in every figure and before
every limit. The warm-up is the one stated by the test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.metrics.summary import Rest, Settling, Stationarity

__all__ = ["character"]

Floats = NDArray[np.float64]


def character(values: Floats, among: int) -> tuple[Stationarity | None, Settling | None]:
    """The stationarity and settling of a series in measured order; None where it is too short, or nothing differs.

    `among` flows are judged by the rules together and share the rate of false alarms.
    """
    found = stats.steadiness(values, among)
    if found.p is None and len(values) < stats.FEWEST:
        return None, None
    half = len(values) // 2
    steady = Stationarity(
        steady=None if found.p is None else not found.drifts(among),
        p=found.p,
        changes=found.kind,
        correlation_time=found.correlation_time,
        median_first_half=stats.median(values[:half]),
        median_second_half=stats.median(values[half:]),
    )
    return steady, _settling(values, found.settled_after) if found.settled_after else None


def _settling(values: Floats, first: int) -> Settling:
    early, rest = values[:first], np.sort(values[first:])
    p50, p99 = (stats.quantile(rest, q) if stats.supported(len(rest), q) else None for q in (0.5, 0.99))
    return Settling(
        n=first,
        minimum=float(early.min()),
        maximum=float(early.max()),
        without=Rest(p50, p99, float(rest[-1])),
    )
