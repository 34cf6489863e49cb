"""Pairs of equal numbers in two long lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wiregauge import _native


def first_places(among: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each of `wanted` the place of the first number of `among` that equals it; -1 where there is none."""
    return np.frombuffer(_native.first_places(among, wanted), dtype=np.int64)
