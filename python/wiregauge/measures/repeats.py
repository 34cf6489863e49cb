"""Repeats of each point taken together: counts add, series join, intervals see the spread between the runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.definitions import SERIES
from wiregauge.measures.flow_measures import FLOW_MEASURES
from wiregauge.measures.flow_measures.base import stored
from wiregauge.measures.metrics.judgement import FlowResult, Loss, PointResult, RunResult, Series
from wiregauge.measures.metrics.pooling import added, pooled
from wiregauge.measures.metrics.summarise import loss, summarise
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.repeats import pool_sampled, pool_sketches, summarise_repeats
from wiregauge.measures.without_clocks import without_clocks


def points_of(runs: Sequence[RunResult]) -> tuple[PointResult, ...]:
    groups: dict[tuple[tuple[str, str], ...], list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[tuple(sorted(run.plan.point.items()))].append(run)
    return tuple(
        PointResult(
            point=members[0].plan.point,
            runs=tuple(run.plan.index for run in members),
            flows=_pooled_flows(members),
            validity=max(run.validity for run in members),
        )
        for members in groups.values()
    )


def _pooled_flows(members: Sequence[RunResult]) -> tuple[FlowResult, ...]:
    by_flow: dict[tuple[int, str], list[FlowResult]] = defaultdict(list)
    for run in members:
        for flow in run.flows:
            by_flow[flow.plan.id, flow.plan.destination].append(flow)
    return tuple(flows[0] if len(flows) == 1 else pool(flows) for flows in by_flow.values())


def pool(flows: Sequence[FlowResult]) -> FlowResult:
    """Repeats of one flow as one: counts add, series join, the mean's uncertainty sees the spread between them."""
    together = _pool(flows)
    uncompared = next((flow for flow in flows if flow.uncompared), None)
    if uncompared is None:
        return together
    # Where the clocks of one run were not compared, the pooled figures between them are undetermined.
    bare = without_clocks(together, 0.0)
    return replace(bare, uncompared=uncompared.uncompared, clock_offset=uncompared.clock_offset)


def _pool(flows: Sequence[FlowResult]) -> FlowResult:
    summaries, series = _distributions(flows)
    return pooled(
        flows,
        loss=_loss(flows),
        summaries=summaries,
        series=series,
        figures=stored((one, one.pooled(flows, summaries)) for one in FLOW_MEASURES.values()),
        sampled=pool_sampled(flows),
        sketches=pool_sketches(flows, summaries),
    )


def _distributions(flows: Sequence[FlowResult]) -> tuple[dict[str, Summary], dict[str, Series]]:
    """Summary and series of all values by measure."""
    summaries, series = {}, {}
    for name in SERIES:
        members = [flow for flow in flows if name in flow.summaries]
        if not members:
            continue
        excluded = added([flow.summaries[name].excluded for flow in members])
        clock_ns = max(flow.summaries[name].clock for flow in members)
        timestamp_ns = max(flow.summaries[name].timestamp for flow in members)
        values = [flow.series[name].value for flow in members]
        summaries[name] = (
            summarise_repeats(name, members, excluded, clock_ns=clock_ns, timestamp_ns=timestamp_ns)
            if any(flow.sampled for flow in members)
            else summarise(
                name,
                values,
                excluded,
                clock_ns=clock_ns,
                timestamp_ns=timestamp_ns,
                quantiles=members[0].plan.quantiles,
            )
        )
        series[name] = Series(
            np.concatenate([flow.series[name].t for flow in members]), np.concatenate(values)
        )
    return summaries, series


def _loss(flows: Sequence[FlowResult]) -> Loss:
    sent = [flow.counts["sent"] for flow in flows]
    lost = [flow.counts["lost"] for flow in flows]
    unknown = [flow.counts["unknown"] for flow in flows]
    gone = [one + other for one, other in zip(lost, unknown, strict=True)]
    worth, open_worth = (stats.repeated_share_worth(some, sent) for some in (lost, gone))
    return loss(sum(lost), sum(sent), worth, sum(unknown), open_worth)
