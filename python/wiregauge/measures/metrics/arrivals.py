"""Reordering of messages: how far arrivals were overtaken, in bounded memory however many there are.

Messages come in the order of their numbers, in parts. Between two of them lies a *cut* where everything before it also
arrived before everything after it; nothing of RFC 4737 reaches across a cut. So only groups of several messages between
two cuts are examined; of the rest the latest numbers are kept, for an arrival may still overtake them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.metrics import patterns

__all__ = ["Arrivals"]

Integers = NDArray[np.int64]

REACH = 1 << 18
"""Numbers over which a message can be overtaken: tracking closes one that is half as many behind (`window_for`)."""


class Arrivals:
    """First intact copies of one flow at one receiver: `take` their numbers and times, then `finish`."""

    def __init__(self) -> None:
        self.n_reordered = {1: 0, 2: 0, 3: 0}
        """Messages that are n-reordered (RFC 4737, 5)."""
        self.n_max = 0
        self.late_time_max: int | None = None
        """Longest time a reordered message came after the earliest with a higher number (RFC 4737, 4.3)."""
        self._numbers: Integers = np.empty(0, dtype=np.int64)
        self._times: Integers = np.empty(0, dtype=np.int64)

    def take(self, numbers: Integers, times: Integers) -> None:
        """Messages with their ascending numbers, above all before, and when they came."""
        self._numbers = np.concatenate([self._numbers, numbers])
        self._times = np.concatenate([self._times, times])
        if len(self._numbers):
            self._settle(int(np.searchsorted(self._numbers, self._numbers[-1] - REACH)))

    def take_rows(self, rows: pl.DataFrame, final: str) -> None:
        """Adds delivered rows of the message table; `final` is the column of their arrival."""
        life = pl.col("life") if "life" in rows.columns else pl.lit(0)
        number = life.cast(pl.Int64) * 2**32 + pl.col("sequence").cast(pl.Int64)
        came = rows.select(final, number=number).drop_nulls(final)
        self.take(came["number"].to_numpy(), came[final].to_numpy())

    def finish(self) -> None:
        """Ends the series: no more arrivals follow."""
        self._settle(len(self._numbers))

    def _settle(self, most: int) -> None:
        """Counts the messages before the last cut among the first `most`, and forgets them."""
        if not most:
            return
        times = self._times
        latest = np.maximum.accumulate(times)
        earliest = np.minimum.accumulate(times[::-1])[::-1]
        # Messages that arrived at the same instant count as ordered by number.
        cut = np.append(latest[:-1] <= earliest[1:], most == len(times))
        cuts = np.flatnonzero(cut[:most])
        if not len(cuts):
            return
        end = int(cuts[-1]) + 1
        overtaken = ~(cut[:end] & np.concatenate([[True], cut[: end - 1]]))
        self._count(self._numbers[:end][overtaken], times[:end][overtaken])
        self._numbers, self._times = self._numbers[end:].copy(), times[end:].copy()

    def _count(self, numbers: Integers, times: Integers) -> None:
        order = np.lexsort((numbers, times))
        numbers, times = numbers[order], times[order]
        extents = patterns.reorder_extents(numbers)
        degree = patterns.n_reordering(numbers)
        for n in self.n_reordered:
            self.n_reordered[n] += int(np.count_nonzero(degree >= n))
        self.n_max = max(self.n_max, int(degree.max(initial=0)))
        late = np.flatnonzero(extents)
        if len(late):
            longest = int((times[late] - times[late - extents[late]]).max())
            self.late_time_max = max(longest, self.late_time_max or 0)
