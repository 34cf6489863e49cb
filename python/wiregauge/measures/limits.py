"""The test's limits against the measures of one run. A measure that could not be determined does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiregauge.measures.definitions import SERIES
from wiregauge.measures.plan import LimitPlan
from wiregauge.measures.quantities import flow_quantities, quantity
from wiregauge.measures.results import FlowResult, LimitResult

_OF_SOME = frozenset(
    {
        "lateness",
        "rtt",
        "return_latency",
        "turnaround",
        "residence",
        "skew",
        "bag_spacing",
        "bag_jitter",
        "window_error",
        "deadline_missed",
        "tardiness",
        "bag_conformity",
        "skew_conformity",
        "window_conformity",
    }
)
"""Measures that not every flow has."""


def judge_limits(
    limits: Sequence[LimitPlan], flows: Sequence[FlowResult], unplanned: Mapping[str, int]
) -> tuple[LimitResult, ...]:
    """One result per limit and flow it applies to; a limit on the run as a whole has flow None."""
    return tuple(result for limit in limits for result in _judge(limit, flows, unplanned))


def _judge(limit: LimitPlan, flows: Sequence[FlowResult], unplanned: Mapping[str, int]) -> list[LimitResult]:
    if limit.measure == "unplanned":
        stray = sum(count for kind, count in unplanned.items() if kind != "foreign")
        return [_result(limit, None, float(stray), "")]
    # A limit on the round trip of every flow means every flow that has one; likewise what only critical traffic has.
    name = limit.measure.partition(".")[0]
    chosen = [
        flow
        for flow in flows
        if flow.plan.id == limit.flow or (limit.flow is None and _has(flow, name, limit.measure))
    ]
    if not chosen:
        return [_result(limit, limit.flow, None, "the run has no messages of such a flow")]
    return [_result(limit, flow.plan.id, *observe(limit.measure, flow)) for flow in chosen]


def _has(flow: FlowResult, name: str, measure: str) -> bool:
    """Whether a limit on every flow means this one."""
    if name == "pair_latency" and ".back_" in measure:
        return flow.plan.relayed
    if name not in _OF_SOME:
        return True
    return name in flow.summaries or any(figure.measure == name for figure in flow_quantities(flow))


def observe(measure: str, flow: FlowResult) -> tuple[float | None, str]:
    """The value a limit names, or None and why it could not be determined."""
    name = measure.partition(".")[0]
    absent = f"flow {flow.plan.id} has no measure {measure}"
    if name in SERIES and name not in flow.summaries:
        return None, absent
    try:
        figure = quantity(flow, measure)
    except KeyError:
        return None, absent
    return (None, figure.reason) if figure.value is None else (figure.value, "")


def _result(limit: LimitPlan, flow: int | None, observed: float | None, reason: str) -> LimitResult:
    if observed is None:
        holds = False
    elif limit.bound == "at-most":
        holds = observed <= limit.value
    else:
        holds = observed >= limit.value
    return LimitResult(
        flow=flow,
        measure=limit.measure,
        bound=limit.bound,
        value=limit.value,
        written=limit.written,
        line=limit.line,
        observed=observed,
        holds=holds,
        reason=reason,
    )
