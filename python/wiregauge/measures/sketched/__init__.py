"""Figures of flows too large to be held in memory: counts from all messages, distributions from sketches.

Judging such a flow begins like any other, with the sample that is held, and what the sample cannot say of the whole is
then put in its place: every count, and every figure of a measure that tracking keeps a sketch of. What remains of the
sample is what needs single messages: series, runs of losses, latency between points that have no measure of their own.
"""

from wiregauge.measures.sketched.exact import exact
from wiregauge.measures.sketched.full_flow import Whole, read_wholes
from wiregauge.measures.sketched.repeats import (
    percentile_of,
    pool_sampled,
    pool_sketches,
    summarise_repeats,
    with_loss_repeats,
)

__all__ = [
    "Whole",
    "exact",
    "percentile_of",
    "pool_sampled",
    "pool_sketches",
    "read_wholes",
    "summarise_repeats",
    "with_loss_repeats",
]
