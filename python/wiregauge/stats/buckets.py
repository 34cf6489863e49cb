"""Counts integers in buckets as they arrive: a sketch of more values than can be stored.

The buckets are those of the log processor's own sketches, so both give the same distribution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wiregauge import _native
from wiregauge.stats.sketch import Sketch


class Buckets:
    """Counts by bucket; count, extremes and sums are exact."""

    def __init__(self) -> None:
        self._counts = _native.Counts()

    def add(self, values: NDArray[np.int64]) -> None:
        """Counts values."""
        self._counts.add(values)

    def sketch(self, unit: float = 1.0) -> Sketch | None:
        """The sketch of the counted values, in units of `unit`; None without values."""
        counted = self._counts.counted()
        if counted is None:
            return None
        n, least, greatest, total, squared_deviations, *buckets = counted
        low, high, count = (np.frombuffer(one, dtype=np.int64) for one in buckets)
        return Sketch(
            low / unit,
            high / unit,
            count,
            n,
            least / unit,
            greatest / unit,
            total / n / unit,
            squared_deviations / unit**2,
        )
