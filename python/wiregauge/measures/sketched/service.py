"""The service of a flow too big to be held: counts, rates and fates of all its messages, the rest of its sample."""

from __future__ import annotations

from dataclasses import replace

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.service import OVERHEAD_BYTES, Conformity, Rate, Rates, Service, order_of
from wiregauge.measures.metrics.tally import Tally
from wiregauge.measures.sketched.census import PS
from wiregauge.measures.sketched.full_flow import Whole

__all__ = ["service_of_all"]


def service_of_all(sample: Service, flow: FlowPlan, whole: Whole, frames: Conformity | None) -> Service:
    """Everything of all messages, but for how far intervals of rates and of tardiness reach.

    `frames` is what its frames on the wire say of its virtual link, where they were recorded.
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
