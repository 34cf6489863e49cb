"""Which messages of a run too big to be held whole are looked at one by one.

A flow is sampled in whole stretches of consecutive numbers, evenly over its length: inside a stretch all that rests on
neighbours (periods, variation, runs of losses, correlation) stays what it is, and what would reach across the seam
between two stretches is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["ROWS", "STRETCH", "Sampled", "chosen", "every", "is_sampled", "seams", "stretches"]

ROWS = 2_000_000
"""Messages of a run, counted per receiver, that are judged whole; of more a sample of about so many is held."""
STRETCH = 1024
"""Consecutive numbers in a stretch."""
FEWEST = 8
"""Stretches of a flow that are looked at, however many flows share the rows."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """How a flow was judged that was too big to be held whole: one in `one_in` stretches, `rows` of `of` messages."""

    one_in: int
    rows: int
    of: int
    settling: int = 0
    """Messages at its beginning that by the rule still settle. Sketches hold them, so they are in every figure."""


def every(counts: Mapping[int, int], rows: int) -> dict[int, int]:
    """By flow that is sampled, one in how many stretches; `counts` are rows by flow, of which `rows` may be held.

    Small flows are held whole, and what they leave is shared evenly among the others.
    """
    if sum(counts.values()) <= rows:
        return {}
    left = rows
    ascending = sorted(counts.items(), key=lambda entry: entry[1])
    for place, (_, count) in enumerate(ascending):
        share = left // (len(ascending) - place)
        if count > share:
            fair = max(share, FEWEST * STRETCH)
            return {flow: k for flow, count in ascending[place:] if (k := ceil(count / fair)) > 1}
        left -= count
    return {}


def chosen(one_in: Mapping[int, int]) -> pl.Expr:
    """Whether a row is in the sample, by its `flow` and `sequence`."""
    step = pl.col("flow").cast(pl.Int64).replace_strict(dict(one_in), default=1, return_dtype=pl.Int64)
    return (pl.col("sequence").cast(pl.Int64) // STRETCH) % step == 0


def stretches(one_in: Mapping[int, int]) -> pl.Expr:
    """The stretch a row is of, a different number for each; 0 for all rows of a flow that is held whole."""
    own = pl.col("life") * 2**32 // STRETCH + pl.col("sequence") // STRETCH + 1
    return pl.when(pl.col("flow").is_in(list(one_in))).then(own).otherwise(0).alias("stretch")


def seams(stretch: NDArray[np.int64]) -> NDArray[np.bool_]:
    """By row after the first: whether a seam lies before it."""
    return np.asarray(stretch[1:] != stretch[:-1], dtype=np.bool_)


def is_sampled(rows: pl.DataFrame) -> bool:
    """Whether the rows are of stretches with others missing between them."""
    return "stretch" in rows.columns and rows.height > 0 and bool(rows["stretch"][0])
