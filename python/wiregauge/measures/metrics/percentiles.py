"""Percentiles of values that are at hand: each with its interval, and none that n does not support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.measures.definitions import QUANTILES
from wiregauge.stats.memory import memory

__all__ = ["Percentile", "needed_for", "percentiles", "unsupported"]

Floats = NDArray[np.float64]


class Percentile(Struct, frozen=True):
    """A percentile with its order-statistic interval; `value` is None where n does not support it."""

    q: float
    value: float | None
    low: float | None
    high: float | None
    needed: int
    worth: float | None = None
    """Effective number of values behind the interval of a single run; None for repeats."""
    interval_needs: int | None = None
    """Number of values that a single run too short for any interval would need."""


def needed_for(q: float) -> int:
    """Number of values that a percentile needs: below the median as many as its mirror above it."""
    return stats.samples_needed(max(q, 1 - q))


def unsupported(quantiles: Mapping[str, float]) -> dict[str, Percentile]:
    """Percentiles of nothing."""
    return {name: Percentile(q, None, None, None, needed_for(q)) for name, q in quantiles.items()}


def percentiles(
    runs: Sequence[Floats], ascending: Floats, quantiles: Mapping[str, float] = QUANTILES
) -> dict[str, Percentile]:
    """Every percentile with its interval; None inside where n does not support it.

    `runs` in measured order, `ascending` all of them sorted.
    """
    n = len(ascending)
    each = [np.sort(values) for values in runs] if len(runs) > 1 else []
    whole = memory(runs[0]) if len(runs) == 1 else None
    found = {}
    for name, q in quantiles.items():
        needed = needed_for(q)
        if n < needed:
            found[name] = Percentile(q, None, None, None, needed)
            continue
        interval = (
            stats.repeated_quantile_interval(each, ascending, q)
            if each
            else stats.quantile_interval(runs[0], ascending, q, whole)
        )
        found[name] = Percentile(
            q,
            stats.quantile(ascending, q),
            interval.low,
            interval.high,
            needed,
            interval.worth,
            interval.needed if not each and interval.low is None and interval.high is None else None,
        )
    return found
