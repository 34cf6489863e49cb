"""Flows between clocks that nobody compared: what is between their two clocks is not determined, whatever it seems.

A constant offset is in no difference of two such times, so that what varies, comes in order or is lost stays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from wiregauge.measures.definitions import DEFINITIONS, Definition
from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.pairs import crosses, distribution_of
from wiregauge.measures.metrics.results import FlowResult, Series
from wiregauge.measures.metrics.service import Service, availability_of
from wiregauge.measures.metrics.summary import Summary

__all__ = ["UNCOMPARED", "is_between_clocks", "told_offset", "without_clocks"]

UNCOMPARED = "clocks not compared"
"""Why messages have no one-way time that nevertheless have both timestamps."""
Between = tuple[float | None, float | None]
"""At least and at most, ns; None: nothing is known on that side."""
_LATE = frozenset({"late", "tardiness", "deadline_missed", "availability"})
"""What rests on whether messages were late."""


def is_between_clocks(flow: FlowPlan, measure: str) -> bool:
    """Whether a figure of this measure has the offset of the two ends' clocks in it."""
    if measure in _LATE:
        return flow.deadline_ns is not None and not flow.relayed
    if measure == "latency_with_loss":
        return not flow.relayed
    definition = DEFINITIONS.get(measure)
    return definition is not None and (measure == "effective_bandwidth" or bool(_crossings(definition, flow)))


def _crossings(definition: Definition, flow: FlowPlan) -> int:
    return definition.between_clocks(relayed=flow.relayed)


def _estimate(flow: FlowResult, moved_ns: float) -> Between:
    """What the receiver's clock shows less the sender's, at least and at most, if nothing came before it was sent.

    `moved_ns` was taken out of that before the times were recorded.
    """
    out, back = flow.summaries.get("latency"), flow.summaries.get("return_latency")
    most = out.minimum + moved_ns if out is not None and out.minimum is not None else None
    least = moved_ns - back.minimum if back is not None and back.minimum is not None else None
    return least, most


def without_clocks(
    flow: FlowResult, moved_ns: float, apart: Collection[str] = (), *, compared: bool = False
) -> FlowResult:
    """The flow without any figure that has an unknown offset of clocks in it: that between its two ends, unless those
    were `compared`, and that between the ports of switches that are `apart`.

    `moved_ns` was taken out of the offset of the receiver's clock before the times were recorded.
    """
    rest = replace(flow, hops=tuple(hop for hop in flow.hops if hop.switch not in apart))
    if compared:
        return _without(rest, {"residence"})
    plan = flow.plan
    gone = {name for name in flow.summaries if is_between_clocks(plan, name)}
    if apart:
        gone.add("residence")
    if "skew" in flow.summaries:
        # Two ports of the receiver, whose clocks are no nearer to one another than to the sender's.
        gone.add("skew")
    offset = _estimate(flow, moved_ns)
    rest = replace(_without(rest, gone), uncompared=_reason(plan, offset), clock_offset=offset)
    late = is_between_clocks(plan, "late")
    between = {distribution_of(pair.start, pair.end) for pair in flow.pairs if crosses(pair.start, pair.end)}
    return replace(
        rest,
        with_loss=flow.with_loss
        if plan.relayed
        else {name: replace(one, value=None, low=None, high=None) for name, one in flow.with_loss.items()},
        effective_bandwidth=None,
        pairs=tuple(pair for pair in flow.pairs if not crosses(pair.start, pair.end)),
        sketches={name: one for name, one in rest.sketches.items() if name not in between},
        marks={key: one for key, one in rest.marks.items() if key[0] not in between},
        settling=flow.settling if plan.relayed else 0,
        service=_not_late(flow.service) if flow.service is not None and late else flow.service,
    )


def _without(flow: FlowResult, gone: Collection[str]) -> FlowResult:
    """The flow with distributions that have no values, and say so."""
    empty = Series(np.empty(0), np.empty(0))
    return replace(
        flow,
        summaries={
            name: Summary(name, 0, {**one.excluded, UNCOMPARED: one.n}, 0) if name in gone and one.n else one
            for name, one in flow.summaries.items()
        },
        series={name: empty if name in gone else one for name, one in flow.series.items()},
        sketches={name: one for name, one in flow.sketches.items() if name not in gone},
        marks={key: one for key, one in flow.marks.items() if key[0] not in gone},
    )


def _not_late(service: Service) -> Service:
    """Which messages missed their deadline is not known."""
    return replace(service, deadline=None, availability=availability_of(np.empty(0, dtype=np.bool_)))


def _reason(plan: FlowPlan, offset: Between) -> str:
    text = f"nobody compared the clocks of {plan.source} and {plan.destination}"
    told = told_offset(plan, offset)
    return f"{text} ({told})" if told else text


def told_offset(plan: FlowPlan, offset: Between) -> str:
    """What is known of the offset, in words; empty where nothing is."""
    least, most = offset
    if most is None and least is None:
        return ""
    if least is not None and most is not None:
        reach = f"{_whole(least)} to {_whole(most)} more"
    else:
        reach = f"at most {_whole(most)} more" if most is not None else f"at least {_whole(least)} more"
    return f"{plan.destination} shows {reach} than {plan.source} if nothing came before it was sent"


def _whole(ns: float | None) -> str:
    """To a nanosecond in a second: clocks may be many seconds apart."""
    number, _, unit = duration(ns, 10).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
