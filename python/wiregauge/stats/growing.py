"""A distribution that grows without an end, in bounded memory: buckets, exact moments, and how far parts agree.

Values come in parts, such as those of a second each. A bucket is 1/2048 of its values wide, or one unit for small ones.
The 95 % intervals take parts as independent, and there are none where neighbouring parts resemble each other.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats.sketch import RESEMBLING, Sketch

__all__ = ["Growing"]

Floats = NDArray[np.float64]

_STEPS = 2048
"""Buckets in each doubling."""
_LEAST_PARTS = 20
"""Parts from which an effective size is told."""


class Growing:
    """The values so far."""

    def __init__(self) -> None:
        self.n = 0
        self._counts: dict[int, int] = {}
        self._minimum = self._maximum = self._mean = self._squares = 0.0
        self._parts = 0
        # Sums over parts, of n, of sums from the origin, of their squares and products, of products of neighbours.
        self._origin = 0.0
        self._sums = np.zeros(5)
        self._before: float | None = None

    def add(self, values: Floats) -> None:
        """Adds the values of a part."""
        if not len(values):
            return
        if not self.n:
            self._minimum = self._maximum = float(values[0])
            self._origin = float(values.mean())
        keys, counts = np.unique(_bucket(values), return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._counts[key] = self._counts.get(key, 0) + count
        self._minimum = min(self._minimum, float(values.min()))
        self._maximum = max(self._maximum, float(values.max()))
        # Chan, Golub and LeVeque: moments of parts combine exactly.
        n, mean = len(values), float(values.mean())
        total, apart = self.n + n, mean - self._mean
        self._squares += float(((values - mean) ** 2).sum()) + apart**2 * self.n * n / total
        self._mean += apart * n / total
        self.n = total
        self._note_part(float(n), n * (mean - self._origin))

    def _note_part(self, n: float, total: float) -> None:
        self._parts += 1
        self._sums += (n * n, n * total, total * total, 0.0, 0.0)
        if self._before is not None:
            self._sums[3] += self._before * total
            self._sums[4] += 1
        self._before = total

    def sketch(self) -> Sketch | None:
        """The distribution; None without a value."""
        if not self.n:
            return None
        keys = np.array(sorted(self._counts), dtype=np.int64)
        low, high = _edges(keys)
        counts = np.array([self._counts[key] for key in keys.tolist()], dtype=np.int64)
        return Sketch(
            low, high, counts, self.n, self._minimum, self._maximum, self._mean, max(self._squares, 0.0)
        )

    def worth(self) -> float | None:
        """How many independent values tell as much of the mean; None where parts are too few, or not independent."""
        if self._parts < _LEAST_PARTS or self.n < 2:
            return None
        spread = self._squares / (self.n - 1)
        if spread == 0:
            return float(self.n)
        # Deviations of the sums of parts from what their sizes and the mean let expect (ratio estimate).
        ratio = self._mean - self._origin
        of_n, of_both, of_sums, of_neighbours, pairs = self._sums.tolist()
        deviations = of_sums - 2 * ratio * of_both + ratio * ratio * of_n
        size = self.n / self._parts
        neighbours = of_neighbours / max(pairs, 1) - (ratio * size) ** 2
        if deviations <= 0:
            return float(self.n)
        if neighbours / (deviations / self._parts) > max(RESEMBLING, 2 / sqrt(self._parts)):
            return None
        variance = deviations / (self._parts - 1) / self._parts / size**2
        return min(float(self.n), spread / variance)


def _bucket(values: Floats) -> NDArray[np.int64]:
    """The bucket of each value: its integer part, of large ones the upper bits; those of negative ones are mirrored."""
    whole = np.floor(np.abs(values)).astype(np.int64)
    doublings = np.maximum(np.floor(np.log2(np.maximum(whole, 1))).astype(np.int64) - 11, 0)
    keys = doublings * _STEPS + (whole >> doublings)
    mirrored: NDArray[np.int64] = np.where(values < 0, -keys - 1, keys)
    return mirrored


def _edges(keys: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The least and the greatest integer of each bucket."""
    mirrored = np.where(keys < 0, -keys - 1, keys)
    doublings = np.maximum(mirrored // _STEPS - 1, 0)
    low = (mirrored - doublings * _STEPS) << doublings
    high = low + (1 << doublings) - 1
    return (
        np.where(keys < 0, -high, low).astype(np.float64),
        np.where(keys < 0, -low, high).astype(np.float64),
    )
