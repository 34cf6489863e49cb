"""The test's limits against the measures of one run. A measure that could not be determined does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wiregauge.measures.definitions import COUNTS, SERIES
from wiregauge.measures.plan import LimitPlan
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
        if flow.plan.id == limit.flow
        or (limit.flow is None and (name not in _OF_SOME or name in flow.summaries))
    ]
    if not chosen:
        return [_result(limit, limit.flow, None, "the run has no messages of such a flow")]
    return [_result(limit, flow.plan.id, *observe(limit.measure, flow)) for flow in chosen]


def observe(measure: str, flow: FlowResult) -> tuple[float | None, str]:
    """The value a limit names, or None and why it could not be determined."""
    name, _, statistic = measure.partition(".")
    if not statistic:
        if name in COUNTS:
            return float(flow.counts[name]), ""
        if name == "loss":
            return flow.loss.ratio, "" if flow.loss.ratio is not None else "nothing was sent"
        if name == "throughput":
            return flow.goodput, "" if flow.goodput is not None else "fewer than two messages arrived"
    if name in SERIES and name in flow.summaries:
        summary = flow.summaries[name]
        value = summary.value(statistic)
        if value is not None and summary.settling is not None:
            # The worst case counts, also where a rule calls it warm-up: no rule may help a run to pass.
            value = {"min": min, "max": max}.get(statistic, _first)(
                value, summary.settling[statistic == "max"]
            )
        if value is not None:
            return value, ""
        percentile = summary.percentiles.get(statistic)
        if percentile is not None:
            return None, f"{statistic} needs {percentile.needed} values, there are {summary.n}"
        return None, f"{summary.n} values are too few for {statistic}"
    return None, f"flow {flow.plan.id} has no measure {measure}"


def _first(value: float, _: float) -> float:
    return value


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
