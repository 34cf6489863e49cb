"""Conversion of a column of times to an array, without passes that the column does not need."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["ascending", "present"]


def present(column: pl.Series) -> pl.Series:
    """The column without missing values; the same object where none is missing, as is usual."""
    return column.drop_nulls() if column.null_count() else column


def ascending(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The times sorted; they nearly always are already."""
    return times if bool((times[1:] >= times[:-1]).all()) else np.sort(times)
