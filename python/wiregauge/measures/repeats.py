"""Repeats of each point taken together: counts add, series join, intervals see the spread between the runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wiregauge import stats
from wiregauge.measures.definitions import SERIES
from wiregauge.measures.metrics.credits import CreditMet
from wiregauge.measures.metrics.hops import pool_hops
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.results import FlowResult, PointResult, RunResult, Series
from wiregauge.measures.metrics.service import pool_services
from wiregauge.measures.metrics.summarise import loss, summarise, with_loss
from wiregauge.measures.metrics.uncompared import without_clocks
from wiregauge.measures.one_flow import effective_bandwidth
from wiregauge.measures.pair_repeats import pool_pairs
from wiregauge.measures.sketched import pool_sampled, pool_sketches, summarise_repeats, with_loss_repeats


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
    pooled = _pool(flows)
    uncompared = next((flow for flow in flows if flow.uncompared), None)
    if uncompared is None:
        return pooled
    # Where the clocks of one run were not compared, nothing between them is known of all.
    bare = without_clocks(pooled, 0.0)
    return replace(bare, uncompared=uncompared.uncompared, clock_offset=uncompared.clock_offset)


def _pool(flows: Sequence[FlowResult]) -> FlowResult:
    counts = _added([flow.counts for flow in flows])
    summaries = {}
    for name in SERIES:
        members = [flow for flow in flows if name in flow.summaries]
        if not members:
            continue
        excluded = _added([flow.summaries[name].excluded for flow in members])
        clock_ns = max(flow.summaries[name].clock for flow in members)
        timestamp_ns = max(flow.summaries[name].timestamp for flow in members)
        if any(flow.sampled for flow in members):
            summaries[name] = summarise_repeats(
                name, members, excluded, clock_ns=clock_ns, timestamp_ns=timestamp_ns
            )
        else:
            values = [flow.series[name].value for flow in members]
            summaries[name] = summarise(
                name,
                values,
                excluded,
                clock_ns=clock_ns,
                timestamp_ns=timestamp_ns,
                quantiles=members[0].plan.quantiles,
            )
    series = {
        name: Series(
            np.concatenate([flow.series[name].t for flow in flows if name in flow.series]),
            np.concatenate([flow.series[name].value for flow in flows if name in flow.series]),
        )
        for name in summaries
    }
    rates = [flow.goodput for flow in flows if flow.goodput is not None]
    plan = flows[0].plan
    return FlowResult(
        plan=plan,
        counts=counts,
        outcomes=_added([flow.outcomes for flow in flows]),
        planned=sum(flow.planned for flow in flows),
        warm_up=sum(flow.warm_up for flow in flows),
        last_seen=_added([flow.last_seen for flow in flows]),
        drop_reasons=_added([flow.drop_reasons for flow in flows]),
        missing_send_records=sum(flow.missing_send_records for flow in flows),
        loss=loss(
            counts["lost"],
            counts["sent"],
            stats.repeated_share_worth(
                [flow.counts["lost"] for flow in flows], [flow.counts["sent"] for flow in flows]
            ),
            counts["unknown"],
            stats.repeated_share_worth(
                [flow.counts["lost"] + flow.counts["unknown"] for flow in flows],
                [flow.counts["sent"] for flow in flows],
            ),
        ),
        summaries=summaries,
        series=series,
        with_loss=_pooled_with_loss(flows, plan.main),
        goodput=float(np.mean(rates)) if rates else None,
        effective_bandwidth=effective_bandwidth(summaries["latency"].mean, plan.payload),
        reorder_extent=max(flow.reorder_extent for flow in flows),
        hops=pool_hops([flow.hops for flow in flows]),
        elimination=_added([flow.elimination for flow in flows]),
        policing=_added([flow.policing for flow in flows]),
        gates=_known_in_all([flow.gates for flow in flows]),
        credit=_extremes([flow.credit for flow in flows]),
        redundant_discarded=sum(flow.redundant_discarded for flow in flows),
        unseen=flows[0].unseen,
        lost_copies=_added([flow.lost_copies for flow in flows]),
        late_sends=sum(flow.late_sends for flow in flows),
        settling=sum(flow.settling for flow in flows),
        service=pool_services([flow.service for flow in flows if flow.service is not None]),
        pairs=pool_pairs([flow.pairs for flow in flows], summaries),
        unsent_in_silences=all(flow.unsent_in_silences for flow in flows),
        clock_varies=max(flow.clock_varies for flow in flows),
        clock_wanders=max(flow.clock_wanders for flow in flows),
        repeats=len(flows),
        sampled=pool_sampled(flows),
        sketches=pool_sketches(flows, summaries),
    )


def _extremes(met: Sequence[CreditMet | None]) -> CreditMet | None:
    known = [one for one in met if one is not None]
    if not known or len(known) < len(met):
        return None
    return CreditMet(
        max(one.most for one in known),
        min(one.least for one in known),
        known[0].queues,
        min(one.used for one in known),
    )


def _known_in_all(maps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The sums of what every one that counts anything has counted."""
    counting = [counts for counts in maps if counts]
    return {key: count for key, count in _added(maps).items() if all(key in counts for counts in counting)}


def _added(maps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in maps:
        for key, count in counts.items():
            total[key] = total.get(key, 0) + count
    return total


def _pooled_with_loss(flows: Sequence[FlowResult], main: str) -> dict[str, Percentile]:
    if any(flow.sampled for flow in flows):
        return with_loss_repeats(flows, main)
    runs, lost = [], []
    for flow in flows:
        values = flow.series[main].value
        runs.append(np.concatenate([values, np.zeros(flow.counts["lost"])]))
        lost.append(np.arange(len(runs[-1])) >= len(values))
    return with_loss(runs, lost, flows[0].plan.quantiles)
