"""Runs of very many flows: choice of the flows that are shown in full.

Nobody reads 65 000 flows one by one, and no browser shows them. Where a run has more than `MANY` flows, tables and the
page show those that lost most, took longest, or failed a limit, in full; every flow has one line with its main figures
(`measures.json`, the page), and all its figures in `flows/run-….jsonl.gz`. Verdict, validity, limits and the headline
are of all flows, always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.flow_measures import CONFORMITY
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, RunResult

__all__ = ["MANY", "are_many", "is_large", "large_run", "narrowed", "only", "worst_flows"]

MANY = 2_000
"""Number of flows of a run, counted per receiver, up to which all are shown in full."""
MOST_OF_EACH = 20
"""Number of flows that are shown in full for each reason."""

Flow = tuple[int, str]
"""Number of a flow and name of its receiver."""


def are_many(flows: Sequence[object]) -> bool:
    """Whether these flows of a run are too many to show all in full."""
    return len(flows) > MANY


def large_run(run: RunResult) -> bool:
    """Whether a run has too many flows to show all in full."""
    return are_many(run.flows)


def is_large(judgement: Judgement) -> bool:
    """Whether any of its runs has."""
    return any(large_run(run) for run in judgement.runs)


def _of(flow: FlowResult) -> Flow:
    return flow.plan.id, flow.plan.destination


def _greatest(measure: str) -> Callable[[FlowResult], float]:
    def found(flow: FlowResult) -> float:
        summary = flow.summaries.get(measure)
        return abs(summary.maximum) if summary is not None and summary.maximum is not None else 0.0

    return found


_REASONS: dict[str, Callable[[FlowResult], float]] = {
    "most messages lost": lambda flow: flow.counts["lost"],
    "greatest share lost": lambda flow: flow.loss.ratio or 0.0,
    "most unknown": lambda flow: flow.counts["unknown"],
    "most late": lambda flow: flow.counts["late"],
    "most reordered": lambda flow: flow.counts["reordered"],
    "most duplicated": lambda flow: flow.counts["duplicated"],
    "most misdirected": lambda flow: flow.counts["misdirected"],
    "most corrupted": lambda flow: flow.counts["corrupted"],
    "longest latency": _greatest("latency"),
    "longest round trip": _greatest("rtt"),
    "greatest delay variation": _greatest("delay_variation"),
    "latest sends": _greatest("send_error"),
    "longest residence": _greatest("residence"),
    "greatest BAG jitter": _greatest("bag_jitter"),
    "greatest skew": _greatest("skew"),
    "greatest window error": _greatest("window_error"),
    "most outside their contract": lambda flow: sum(one.outside.count for one in flow[CONFORMITY] or ()),
    "most messages": lambda flow: flow.counts["sent"],
}
"""Reasons to show a flow in full, with the figure by which flows are ranked; flows with 0 are not chosen.

Any event of a message appears in a flow that is shown in full, and a percentile that any flow supports is supported by
such a flow: a statement of tables on "no flow" is true of all.
"""


def worst_flows(flows: Sequence[FlowResult], most: int) -> dict[Flow, str]:
    """The conspicuous flows at their receivers, at most `most` for each reason, with the first reason of each."""
    found: dict[Flow, str] = {}
    for reason, size in _REASONS.items():
        sized = [(size(flow), flow) for flow in flows]
        bad = sorted((one for one in sized if one[0] > 0), key=lambda one: -one[0])[:most]
        for _, flow in bad:
            found.setdefault(_of(flow), reason)
    return found


def _failed(runs: Iterable[RunResult], most: int) -> dict[Flow, str]:
    """Flows with a limit that failed or is undecided, at most `most`, the gravest first."""
    bad = [
        (limit.result != "fail", limit.margin if limit.margin is not None else 0.0, limit)
        for run in runs
        for limit in run.limits
        if limit.result != "pass" and limit.flow is not None and limit.to is not None
    ]
    bad.sort(key=lambda one: one[:2])
    return {
        (limit.flow, limit.to): f"limit {limit.result}"
        for _, _, limit in bad[:most]
        if limit.flow is not None and limit.to is not None
    }


def only(judgement: Judgement, flows: Iterable[int]) -> Judgement:
    """The judgement with only the flows of these numbers. Nothing else changes."""
    chosen = set(flows)
    return _kept(judgement, lambda some: tuple(flow for flow in some if flow.plan.id in chosen))


def _kept(judgement: Judgement, kept: Callable[[Sequence[FlowResult]], tuple[FlowResult, ...]]) -> Judgement:
    return replace(
        judgement,
        runs=tuple(replace(run, flows=kept(run.flows)) for run in judgement.runs),
        points=tuple(replace(point, flows=kept(point.flows)) for point in judgement.points),
    )


def narrowed(
    judgement: Judgement, many: int | None = None, most: int = MOST_OF_EACH
) -> tuple[Judgement, str]:
    """The part of a judgement to show in full, and a sentence on the choice of flows.

    The whole judgement and "" where no run has more than `many` flows (default `MANY`). For each reason `most` flows
    are chosen.
    """
    many = MANY if many is None else many
    if all(len(run.flows) <= many for run in judgement.runs):
        return judgement, ""
    chosen = _failed(judgement.runs, most)
    for point in judgement.points:
        for flow, reason in worst_flows(point.flows, most).items():
            chosen.setdefault(flow, reason)
    among = len({_of(flow) for point in judgement.points for flow in point.flows})
    told = (
        f"{len(chosen)} of {count_of(among, 'flow')}: those with a limit that did not hold, and the {most} with most "
        "losses, the longest latency, the greatest delay variation and of each other measure"
    )
    rank = {flow: place for place, flow in enumerate(chosen)}

    def worst_first(some: Sequence[FlowResult]) -> tuple[FlowResult, ...]:
        return tuple(sorted((flow for flow in some if _of(flow) in rank), key=lambda flow: rank[_of(flow)]))

    return _kept(judgement, worst_first), told
