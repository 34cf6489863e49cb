"""Losses of a flow in runs (RFC 3357)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import SENT
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Losses, losses_of
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["LOSSES"]

_DEFINITIONS = (
    Definition(
        "loss_period",
        "Loss period",
        "lost messages without a delivered one between them, in the order of sequence",
        "messages",
        "RFC 3357, 5.4.2; numbers and lengths 6.2 and 6.3, clear lengths between 6.4",
        "A control loop suffers more from one long period than from many single losses at the same ratio.",
        better="lower",
        statistics=("longest", "count"),
        of=SENT,
        links="more",
        after="loss",
    ),
    Definition(
        "loss_distance",
        "Loss distance",
        "sequence[lost k] - sequence[lost k-1]",
        "messages",
        "RFC 3357, 5.4.1",
        "Between successive losses; 1 within a loss period. The first loss has none.",
        better="higher",
        statistics=("min",),
        of=SENT,
        least=2,
        links="less",
    ),
)


class _Losses(Served[Losses]):
    """Loss periods and loss distances."""

    name = "losses"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Losses:
        return losses_of(reading.gone, reading.part.column("sequence").values, reading.unknown)

    def of_all(self, sample: Losses, reading: FlowReading, whole: Whole) -> Losses:
        return whole.fates.losses

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        losses, sent = flow[self], flow.counts["sent"]
        if losses is None:
            return
        longest, most = single("loss_period", "longest", losses.longest, sent), losses.longest_at_most
        yield replace(longest, other=None if most is None else float(most))
        yield single("loss_period", "count", losses.periods, sent)
        few = "fewer than two messages were lost"
        yield single("loss_distance", "min", losses.least_distance, sent, None, few, inf)


LOSSES = _Losses()
