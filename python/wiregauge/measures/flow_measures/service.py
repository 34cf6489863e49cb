"""Service that a flow's receiver got: losses in runs, order, deadlines, availability, contracts, rates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.service import (
    OVERHEAD_BYTES,
    Conformity,
    Rate,
    Rates,
    Service,
    availability_of,
    order_of,
    pool_services,
    serve,
)
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.tally import Tally
from wiregauge.measures.metrics.uncompared import is_between_clocks
from wiregauge.measures.sketched.census import PS
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["GOODPUT", "SERVICE"]


class _Service(FlowMeasure[Service | None]):
    """The service of a flow; None where an end of the flow has no tap."""

    name = "service"
    none: Service | None = None

    def computed(self, reading: FlowReading) -> Service | Pending[Service] | None:
        if reading.blind:
            return None
        return serve(reading.part, reading.flow, reading.gone, reading.unknown, reading.frames)

    def of_all_messages(
        self, sample: Service | None, flow: FlowResult, reading: FlowReading
    ) -> Service | None:
        if sample is None or reading.whole is None:
            return sample
        return service_of_all(sample, reading.flow, reading.whole, reading.frames)

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Service | None:
        each = [one for flow in flows if (one := flow[self]) is not None]
        return pool_services(each) if each else None

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> Service | None:
        service = flow[self]
        if compared or service is None or not is_between_clocks(flow.plan, "late"):
            return service
        # Missed deadlines are not known.
        return replace(service, deadline=None, availability=availability_of(np.empty(0, dtype=np.bool_)))

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        service = flow[self]
        return iter(()) if service is None else _served(service, flow.counts["sent"])


SERVICE = _Service()


class _Goodput(FlowMeasure[None]):
    """The goodput, from the service of the flow."""

    name = "goodput"
    none = None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        service, few = flow[SERVICE], "were sent" if flow.counts["sent"] < 2 else "arrived"
        found = service.goodput if service is not None else None
        yield single(
            self.name,
            "",
            found.value if found is not None else None,
            flow.counts["delivered"],
            (found.low, found.high) if found is not None else None,
            f"fewer than two messages {few}",
        )


GOODPUT = _Goodput()


def _served(service: Service, sent: int) -> Iterator[Quantity]:
    losses, order, up = service.losses, service.reordering, service.availability
    longest = single("loss_period", "longest", losses.longest, sent)
    yield replace(longest, other=None if losses.longest_at_most is None else float(losses.longest_at_most))
    yield single("loss_period", "count", losses.periods, sent)
    yield single(
        "loss_distance", "min", losses.least_distance, sent, None, "fewer than two messages were lost", inf
    )
    ratio = single(
        "availability", "", up.ratio, up.down.n, (1 - up.down.high, 1 - up.down.low), "nothing was sent"
    )
    yield replace(ratio, other=None if up.down.most is None else 1 - up.down.most / up.down.n)
    none, came = "no message was reordered", order.share.n
    yield single("reorder_extent", "max", order.extent_max, came)
    mean = single("reorder_extent", "mean", order.extent_mean, order.share.count, None, none, 0.0)
    yield replace(mean, among=came)
    yield single("reorder_late_time", "max", order.late_time_max_ns, came, None, none, 0.0)
    for n, count in order.n_reordered.items():
        yield single("n_reordering", str(n), count, order.share.n)
    if service.deadline is not None:
        missed = service.deadline.missed
        share = single(
            "deadline_missed", "", missed.ratio, missed.n, (missed.low, missed.high), "nothing was sent"
        )
        yield replace(share, other=None if missed.most is None else missed.most / missed.n)
        none = "no message was late"
        tardy, half = service.deadline.tardiness_mean_ns, service.deadline.tardiness_half_width_ns
        around = (tardy - half, tardy + half) if tardy is not None and half is not None else None
        late, most = service.deadline.late, service.deadline.tardiness_max_ns
        for figure in (
            single("tardiness", "mean", tardy, late, around, none, 0.0),
            single("tardiness", "max", most, late, None, none, 0.0),
        ):
            yield replace(figure, among=came)
    for one in service.conformity:
        outside = one.outside
        bounds = (outside.low, outside.high)
        yield single(f"{one.of}_violations", "", outside.ratio, outside.n, bounds, "no frame was seen")
    if service.rates is not None:
        offered = service.rates.offered_per_s
        yield single("intended_load", "", service.rates.intended_per_s, sent)
        yield single("offered_load", "", offered.value, sent, (offered.low, offered.high))


# -- of flows too large to be held ---------------------------------------------------------------------------


def service_of_all(sample: Service, flow: FlowPlan, whole: Whole, frames: Conformity | None) -> Service:
    """The service from all messages, except the intervals of rates and of tardiness.

    `frames` is the conformity of its frames on the wire, where they were recorded.
    """
    counted = whole.tally
    extent = counted.figures.get("mean extent")
    order = order_of(whole.fates.reordered, counted.count("reorder_extent"), extent, whole.census.arrivals)
    deadline = sample.deadline
    if deadline is not None:
        mean, most = counted.figures.get("tardy on average"), counted.time("tardiest")
        deadline = replace(
            deadline,
            missed=whole.fates.missed,
            late=counted.count("late arrived"),
            tardiness_mean_ns=mean / PS - deadline.deadline_ns if mean is not None else None,
            tardiness_max_ns=most / PS - deadline.deadline_ns if most is not None else None,
        )
    payload = flow.payload
    return replace(
        sample,
        losses=whole.fates.losses,
        availability=whole.fates.availability,
        reordering=order,
        conformity=tuple(
            frames if frames is not None and one.of == frames.of else one for one in whole.conformity
        ),
        deadline=deadline,
        rates=_rates(sample.rates, counted) if sample.rates is not None else None,
        goodput=_goodput(sample.goodput, counted, 8.0 * payload, flow) if payload is not None else None,
    )


def _rates(sample: Rates, counted: Tally) -> Rates:
    numbers = counted.count("number last") - counted.count("number first")
    planned = counted.count("intended last") - counted.count("intended first")
    length = counted.figures.get("length")
    return replace(
        sample,
        intended_per_s=numbers / planned * 1e12 if planned > 0 else sample.intended_per_s,
        offered_per_s=_rate(sample.offered_per_s, counted, "offered", 1.0) or sample.offered_per_s,
        bits_per_frame=8 * (length + OVERHEAD_BYTES) if length is not None else None,
    )


def _goodput(sample: Rate | None, counted: Tally, each: float, flow: FlowPlan) -> Rate | None:
    if counted.count("arrivals") < 2:
        return Rate(0.0, None, None) if counted.count("sent") > 1 else None
    return _rate(sample, counted, "arrivals", each, sum(counted.silences("arrivals", flow)))


def _rate(sample: Rate | None, counted: Tally, of: str, each: float, silent: int = 0) -> Rate | None:
    """The rate of all events; its interval is as wide, relative to it, as that of the sample: it is not wider.

    `silent` is for how long, ps, none came though they were due, before the first and after the last.
    """
    count, first, last = counted.count(of), counted.time(f"{of} first"), counted.time(f"{of} last")
    if count < 2 or first is None or last is None or last <= first:
        return sample
    value = each * 1e12 * (count - 1) / (last - first + silent)
    if sample is None or not sample.value:
        return Rate(value, None, None)
    scale = value / sample.value
    return Rate(
        value,
        sample.low * scale if sample.low is not None else None,
        sample.high * scale if sample.high is not None else None,
    )
