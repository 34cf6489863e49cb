"""Flows between uncompared clocks: values between the two clocks are not determined, whatever they seem.

A constant offset cancels in the difference of two such times, so variation, order and losses remain.
"""

from __future__ import annotations

from wiregauge.measures.definitions import DEFINITIONS, Definition
from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.flow_plan import FlowPlan

__all__ = ["UNCOMPARED", "is_between_clocks", "reason_of", "told_offset"]

UNCOMPARED = "clocks not compared"
"""The reason that messages with both timestamps have no one-way time."""
Between = tuple[float | None, float | None]
"""Least and greatest offset, ns; None: unknown on that side."""


def is_between_clocks(flow: FlowPlan, measure: str) -> bool:
    """Whether a figure of this measure has the offset of the two ends' clocks in it."""
    if measure == "latency_with_loss":
        return not flow.relayed
    definition = DEFINITIONS.get(measure)
    if definition is not None and definition.judges_lateness:
        return flow.deadline_ns is not None and not flow.relayed
    return definition is not None and (measure == "effective_bandwidth" or bool(_crossings(definition, flow)))


def _crossings(definition: Definition, flow: FlowPlan) -> int:
    return definition.between_clocks(relayed=flow.relayed)


def reason_of(plan: FlowPlan, offset: Between) -> str:
    """The reason why nothing between these clocks is determined, with the known range of their offset."""
    text = f"nobody compared the clocks of {plan.source} and {plan.destination}"
    told = told_offset(plan, offset)
    return f"{text} ({told})" if told else text


def told_offset(plan: FlowPlan, offset: Between) -> str:
    """The known range of the offset, in words; empty where nothing is known."""
    least, most = offset
    if most is None and least is None:
        return ""
    if least is not None and most is not None:
        reach = f"{_whole(least)} to {_whole(most)} more"
    else:
        reach = f"at most {_whole(most)} more" if most is not None else f"at least {_whole(least)} more"
    return f"{plan.destination} shows {reach} than {plan.source} if nothing came before it was sent"


def _whole(ns: float | None) -> str:
    """A duration to the nanosecond within a second: clocks may be many seconds apart."""
    number, _, unit = duration(ns, 10).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
