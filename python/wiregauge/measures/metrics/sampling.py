"""Sampling of the messages of a run too large to be held in memory.

A flow is sampled in whole stretches of consecutive numbers, one of every k, chosen by a fixed random sequence: events
as regular as the stretches would otherwise be in all of them or in none. Inside a stretch all that rests on neighbours
(periods, variation, correlation) stays what it is, and differences across the seam between two stretches are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

__all__ = [
    "FIGURES",
    "OF_SUMMARY",
    "ROWS",
    "STRETCH",
    "Sampled",
    "chosen",
    "every",
    "fair",
    "is_sampled",
    "mixed",
    "seams",
    "stretches",
]

ROWS = 600_000
"""Number of messages of a run directory, counted per receiver, that are held; larger ones are sampled to about this."""
STRETCH = 1024
"""Consecutive numbers in a stretch."""
FIGURES = (
    "percentiles_with_loss_intervals",
    "goodput_interval",
    "effective_bandwidth_interval",
    "pairs.uncertainty",
    "pairs.intervals",
    "hops.uncertainty",
    "load.offered_interval",
    "deadline.tardiness_uncertainty_ns",
)
"""Figures of a sampled flow in `show --json` that rest on the sample, besides its summaries: extents of intervals."""
OF_SUMMARY = (
    "mad",
    "n_effective",
    "uncertainty",
    "intervals",
    "percentiles_n_effective",
    "sd_interval",
    "stationarity",
    "settling",
)
"""Fields of a summary that rest on the sample."""
FEWEST = 8
"""Stretches of a flow that are looked at, however many flows share the rows."""


class Sampled(Struct, frozen=True):
    """The sampling of a flow that was too large to be held in memory: one in `one_in` stretches, `rows` of `of`
    messages."""

    one_in: int
    rows: int
    of: int


def fair(counts: Iterable[int], rows: int) -> int | None:
    """The largest number per flow for which all together have `rows` at most; None where none must be cut.

    Room that small flows leave is shared evenly among the others.
    """
    ascending = sorted(counts)
    left = rows
    for place, count in enumerate(ascending):
        share = left // (len(ascending) - place)
        if count > share:
            return share
        left -= count
    return None


def every(counts: Mapping[int, int], rows: int) -> dict[int, int]:
    """Sampling factors of sampled flows: one in how many stretches; `counts` are rows by flow, of which `rows` may
    be held."""
    share = fair(counts.values(), rows)
    if share is None:
        return {}
    most = max(share, FEWEST * STRETCH)
    return {flow: k for flow, count in counts.items() if (k := ceil(count / most)) > 1}


def chosen(one_in: Mapping[int, int]) -> pl.Expr:
    """Whether a row is in the sample, by its `flow` and `sequence`."""
    stretch = pl.col("sequence").cast(pl.Int64) // STRETCH
    # The first stretch is always chosen: it has the beginning of the flow.
    group = {step: stretch // step for step in set(one_in.values())}
    chance = {step: mixed(number) * (number > 0).cast(pl.Int64) % step for step, number in group.items()}
    steps = sorted(group)
    flows = {step: [flow for flow, k in one_in.items() if k == step] for step in steps}
    # Step by step and not looked up by flow: a look-up has the engine hold every row.
    return pl.all_horizontal(
        (stretch % step == chance[step]) | ~pl.col("flow").is_in(flows[step]) for step in steps
    )


def mixed(number: pl.Expr) -> pl.Expr:
    """Below 2^32, and as good as random, but the same every time: by it nothing is chosen that comes regularly."""
    found = number.cast(pl.Int64) % 2**31
    for factor, shift in ((0x7FEB352D, 2**16), (0x846CA68B, 2**15)):
        found = found * factor % 2**32
        found ^= found // shift
    return found % 2**31


def stretches(one_in: Mapping[int, int]) -> pl.Expr:
    """The stretch a row is of, a different number for each; 0 for all rows of a flow that is held whole."""
    own = pl.col("life") * 2**32 // STRETCH + pl.col("sequence") // STRETCH + 1
    return pl.when(pl.col("flow").is_in(list(one_in))).then(own).otherwise(0).alias("stretch")


def seams(stretch: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each row after the first, whether a seam lies before it."""
    return np.asarray(stretch[1:] != stretch[:-1], dtype=np.bool_)


def is_sampled(rows: pl.DataFrame) -> bool:
    """Whether the rows are stretches of a sample."""
    return "stretch" in rows.columns and rows.height > 0 and bool(rows["stretch"][0])
