"""Messages of a flow against its deadline."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import ARRIVED, SENT
from wiregauge.measures.flow_measures.base import FlowReading, Served
from wiregauge.measures.flow_measures.reordering import REORDERING
from wiregauge.measures.metrics.batching import Pending, with_mean
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import Deadline, share_of
from wiregauge.measures.metrics.uncompared import is_between_clocks
from wiregauge.measures.sketched.census import PS
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.stats import MeanEstimate

__all__ = ["DEADLINE"]

_DEFINITIONS = (
    Definition(
        "deadline_missed",
        "Deadline missed",
        "(late + lost) / sent",
        "share",
        "3GPP TS 22.261, 3.1 (reliability: delivered within the time constraint)",
        "A message that never arrives misses its deadline, too.",
        better="lower",
        needs="deadline",
        judges_lateness=True,
        rests_on="lateness",
        of=SENT,
        losses="counted",
        links="more",
        after="late",
    ),
    Definition(
        "tardiness",
        "Tardiness",
        "max(0, lateness), of the late messages",
        "ns",
        "Real-time scheduling: tardiness of a job against its deadline",
        "A lost message has none: it counts under deadline missed.",
        better="lower",
        statistics=("mean", "max"),
        needs="deadline",
        judges_lateness=True,
        rests_on="lateness",
        of=ARRIVED,
        losses="missing",
        links="more",
    ),
)


class _Deadline(Served[Deadline]):
    """Missed deadlines, and the tardiness of late messages; None of a flow without a deadline."""

    name = "deadline"
    definitions = _DEFINITIONS

    def found(self, reading: FlowReading) -> Pending[Deadline] | None:
        part, lost, deadline_ns = reading.part, reading.gone, reading.flow.deadline_ns
        if deadline_ns is None:
            return None
        late, came, sent = part.flags("late"), part.column(reading.final), part.column("tx_app")
        timed = late & ~lost
        for column in (came, sent):
            timed = timed if column.known is None else timed & column.known
        over = (came.values[timed] - sent.values[timed]) / 1000 - deadline_ns

        def made(mean: MeanEstimate | None) -> Deadline:
            return Deadline(
                deadline_ns,
                share_of(lost | late, reading.unknown),
                int(np.count_nonzero(late & ~lost)),
                float(over.mean()) if len(over) else None,
                float(over.max()) if len(over) else None,
                mean.half_width if mean is not None else None,
            )

        return with_mean(over, made)

    def of_all(self, sample: Deadline, reading: FlowReading, whole: Whole) -> Deadline:
        counted = whole.tally
        mean, most = counted.figures.get("tardy on average"), counted.time("tardiest")
        return replace(
            sample,
            missed=whole.fates.missed,
            late=counted.count("late arrived"),
            tardiness_mean_ns=mean / PS - sample.deadline_ns if mean is not None else None,
            tardiness_max_ns=most / PS - sample.deadline_ns if most is not None else None,
        )

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> Deadline | None:
        return None if not compared and is_between_clocks(flow.plan, "late") else flow[self]

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        deadline, order = flow[self], flow[REORDERING]
        if deadline is None or order is None:
            return
        missed, late, none = deadline.missed, deadline.late, "no message was late"
        bounds = (missed.low, missed.high)
        share = single("deadline_missed", "", missed.ratio, missed.n, bounds, "nothing was sent")
        yield replace(share, other=None if missed.most is None else missed.most / missed.n)
        tardy, half = deadline.tardiness_mean_ns, deadline.tardiness_half_width_ns
        around = (tardy - half, tardy + half) if tardy is not None and half is not None else None
        for figure in (
            single("tardiness", "mean", tardy, late, around, none, 0.0),
            single("tardiness", "max", deadline.tardiness_max_ns, late, None, none, 0.0),
        ):
            yield replace(figure, among=order.share.n)


DEADLINE = _Deadline()
