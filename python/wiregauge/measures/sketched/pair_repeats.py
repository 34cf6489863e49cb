"""Repeats of the latency between pairs of points, taken together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wiregauge import stats
from wiregauge.measures.metrics.pairs import NAMES, PairLatency, known_pair
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.quantiles import repeated
from wiregauge.stats import sketch as sketches


def pool_pairs(
    runs: Sequence[Sequence[PairLatency]], summaries: Mapping[str, Summary]
) -> tuple[PairLatency, ...]:
    """Pairs of all repeats; what the `summaries` of the repeats already tell is taken from there.

    Percentiles of the others are those of all values, from what each run kept of them.
    """
    groups: dict[tuple[str, str], list[PairLatency]] = {}
    for pairs in runs:
        for pair in pairs:
            groups.setdefault((pair.start, pair.end), []).append(pair)
    return tuple(_pooled(members, summaries.get(NAMES.get(pair, ""))) for pair, members in groups.items())


def _pooled(members: Sequence[PairLatency], summary: Summary | None) -> PairLatency:
    n = sum(pair.n for pair in members)
    if summary is not None and summary.n == n:
        missing, bound = sum(pair.missing for pair in members), max(pair.bound for pair in members)
        known = known_pair(members[0].start, members[0].end, missing, summary, members[0].percentiles, bound)
        if known is not None:
            return known
    weights = np.array([pair.n / n for pair in members])
    half = stats.repeated_mean_half_width(np.array([pair.mean for pair in members]), weights)
    bound = max(pair.bound for pair in members)
    return PairLatency(
        members[0].start,
        members[0].end,
        n,
        sum(pair.missing for pair in members),
        min(pair.minimum for pair in members),
        float(np.dot(weights, [pair.mean for pair in members])),
        half + bound if half is not None else None,
        {name: _pooled_percentile(members, name) for name in members[0].percentiles},
        max(pair.maximum for pair in members),
        bound,
    )


def _pooled_percentile(members: Sequence[PairLatency], name: str) -> Percentile:
    own = members[0].percentiles[name]
    each = [pair.values for pair in members if pair.values is not None]
    if len(each) < len(members):
        return Percentile(own.q, None, None, None, own.needed)
    return own if len(each) == 1 else repeated(each, sketches.merged(each), own.q, 0)
