"""Counts integers in buckets as they arrive: a sketch of more values than can be stored.

The buckets are those of the log processor's own sketches (`crates/record/src/tracking/sketch.rs`), no wider than a
thousandth of their values, so that both give the same distribution.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats.sketch import Sketch

Integers = NDArray[np.int64]

_BITS = 10
"""log2 of the buckets per octave."""
_ONE = 1023 << _BITS
"""Leading bits of 1.0 as a double: exponent and the first `_BITS` of its fraction."""
_PART = 20
"""Low bits of a value that are summed separately, so that no sum overflows."""


class Buckets:
    """Counts by bucket; count, extremes and sums are exact."""

    def __init__(self) -> None:
        self.n = 0
        self._low, self._high = inf, -inf
        self._sum = 0
        self._origin = 0
        self._squares = 0.0
        self._first = 0
        self._counts: Integers = np.zeros(0, dtype=np.int64)

    def add(self, values: Integers) -> None:
        """Counts values."""
        if not len(values):
            return
        if not self.n:
            self._origin = int(values[0])
        self.n += len(values)
        low, high = int(values.min()), int(values.max())
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._sum += (int((values >> _PART).sum()) << _PART) + int((values & ((1 << _PART) - 1)).sum())
        distances = (values - self._origin).astype(np.float64)
        self._squares += float(np.dot(distances, distances))
        numbers = _number(values) if low >= 0 else np.where(values < 0, ~_number(~values), _number(values))
        first = int(numbers.min())
        self._merge(first, np.bincount(numbers - first))

    def sketch(self, unit: float = 1.0) -> Sketch | None:
        """The sketch of the counted values, in units of `unit`; None without values."""
        if not self.n:
            return None
        held = np.flatnonzero(self._counts)
        numbers = held + self._first
        low, high = _bounds(np.where(numbers < 0, ~numbers, numbers))
        low, high = np.where(numbers < 0, ~high, low), np.where(numbers < 0, ~low, high)
        beyond = self._sum - self.n * self._origin
        return Sketch(
            low / unit,
            high / unit,
            self._counts[held],
            self.n,
            self._low / unit,
            self._high / unit,
            self._sum / self.n / unit,
            max(self._squares - beyond * (beyond / self.n), 0.0) / unit**2,
        )

    def _merge(self, first: int, counts: NDArray[np.intp]) -> None:
        begin = min(first, self._first) if len(self._counts) else first
        end = max(first + len(counts), self._first + len(self._counts))
        if begin < self._first or end > self._first + len(self._counts) or not len(self._counts):
            wider = np.zeros(end - begin, dtype=np.int64)
            wider[self._first - begin : self._first - begin + len(self._counts)] = self._counts
            self._first, self._counts = begin, wider
        self._counts[first - begin : first - begin + len(counts)] += counts


def _number(magnitude: Integers) -> Integers:
    """Bucket numbers of non-negative values (meaningless for others): bucket 0, then octave by octave."""
    leading: Integers = magnitude.astype(np.float64).view(np.int64) >> (52 - _BITS)
    return np.maximum(leading - (_ONE - 1), 0)


def _bounds(numbers: Integers) -> tuple[Integers, Integers]:
    """Lowest and highest value of buckets by their number, inclusive."""
    return _edge(numbers), np.maximum(_edge(numbers + 1) - 1, 0)


def _edge(numbers: Integers) -> Integers:
    octave, part = np.divmod(np.maximum(numbers - 1, 0), 1 << _BITS)
    part += 1 << _BITS
    wide = part << np.maximum(octave - _BITS, 0)
    narrow = -((-part << np.minimum(octave, _BITS)) >> _BITS)
    return np.where(numbers <= 0, 0, np.where(octave >= _BITS, wide, narrow))
