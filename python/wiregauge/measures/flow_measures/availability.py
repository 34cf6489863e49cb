"""Availability of a flow's service, counted in messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import SENT
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Availability, availability_of
from wiregauge.measures.metrics.uncompared import is_between_clocks
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["AVAILABILITY"]

_DEFINITIONS = (
    Definition(
        "availability",
        "Availability",
        "1 - messages at which the service was down / sent",
        "share",
        "3GPP TS 22.261, 3.1 (communication service availability, survival time), counted in messages",
        "A message fails when it is lost or late. The service survives one failed message and is down from "
        "the second in a row until the next good one: a survival time of one period. It is 0 if no message "
        "was good.",
        better="higher",
        judges_lateness=True,
        of=SENT,
        links="less",
        least=2,
        after="loss_distance",
    ),
)


class _Availability(Served[Availability]):
    """The share of messages at which the service was up."""

    name = "availability"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Availability:
        return availability_of(reading.gone | reading.part.flags("late"), reading.unknown)

    def of_all(self, sample: Availability, reading: FlowReading, whole: Whole) -> Availability:
        return whole.fates.availability

    def without_clocks(
        self, flow: FlowResult, apart: Collection[str], *, compared: bool
    ) -> Availability | None:
        if compared or flow[self] is None or not is_between_clocks(flow.plan, self.name):
            return flow[self]
        # Which messages were late is not known.
        return availability_of(np.empty(0, dtype=np.bool_))

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        up = flow[self]
        if up is not None:
            ratio = single(self.name, "", up.ratio, up.n, (up.low, up.high), "nothing was sent")
            yield replace(ratio, other=None if up.down.most is None else 1 - up.down.most / up.n)


AVAILABILITY = _Availability()
