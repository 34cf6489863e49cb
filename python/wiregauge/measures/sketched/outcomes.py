"""Outcomes of the messages of a flow too big to be held, in sequence.

A single outage is all it takes to make a network unfit, and a sample of stretches can miss it. So losses, outages and
the clustering of events never come from the sample: the outcome of every message is read, some bytes each, flow by
flow.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from wiregauge import stats
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.service import (
    Availability,
    Losses,
    Share,
    availability_of,
    losses_of,
    share_of,
)
from wiregauge.measures.metrics.tally import LOST_OUTCOMES, UNKNOWN

__all__ = ["Fates", "fates", "of_receiver"]


class Fates(Struct, frozen=True):
    """Exact, of all messages of the measured part."""

    losses: Losses
    availability: Availability
    missed: Share
    """Late or lost, of the sent."""
    reordered: Share
    """Reordered messages as a share of the delivered."""
    lost_worth: float
    """Effective number of messages for the share of losses."""
    open_worth: float
    """Effective number of messages for the share of those that are lost or unknown."""


def fates(rows: pl.LazyFrame, flow: FlowPlan) -> Fates:
    """The outcomes of a flow at its receiver, from the message table of a run in the order of its file."""
    table = (
        of_receiver(rows, flow)
        .select(
            pl.col("sequence").cast(pl.UInt32),
            pl.col("late", "reordered").fill_null(value=False),
            lost=pl.col("outcome").is_in(LOST_OUTCOMES),
            unknown=pl.col("outcome") == UNKNOWN,
        )
        .collect(engine="streaming")
    )
    lost, late, reordered, unknown = (
        table[name].to_numpy() for name in ("lost", "late", "reordered", "unknown")
    )
    failed = lost | late
    return Fates(
        losses=losses_of(lost, table["sequence"].cast(pl.Int64).to_numpy(), unknown),
        availability=availability_of(failed, unknown),
        missed=share_of(failed, unknown),
        reordered=share_of(reordered[~(lost | unknown)]),
        lost_worth=stats.flags_worth(lost),
        open_worth=stats.flags_worth(lost | unknown),
    )


def of_receiver(rows: pl.LazyFrame, flow: FlowPlan) -> pl.LazyFrame:
    """The rows of the measured part of a flow at its receiver."""
    mine = (pl.col("flow") == flow.id) & ~pl.col("warm_up")
    return rows.filter(mine & (pl.col("to") == flow.receiver) if flow.multicast else mine)
