"""Latency between pairs of points of a flow too big to be held, of all its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.pairs import NAMES, OUTWARD, RETURN, Correction, PairLatency, known_pair
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.measures.sketched.quantiles import percentile
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = ["pairs_of_all"]


def pairs_of_all(
    sample: Sequence[PairLatency],
    flow: FlowPlan,
    whole: Whole,
    summaries: Mapping[str, Summary],
    correction: Correction,
) -> tuple[PairLatency, ...]:
    """Pairs of points in the order of the way; independent values are at least as many as in the sample."""
    sent = whole.tally.count("sent")
    sampled = {(pair.start, pair.end): pair for pair in sample}
    latencies = whole.census.latencies()
    found = []
    for pair in (
        pair
        for points in ((OUTWARD, RETURN) if flow.relayed else (OUTWARD,))
        for pair in combinations(points, 2)
    ):
        shift, bound = correction.of(*pair)
        known = summaries.get(NAMES.get(pair, ""))
        if known is not None:
            found.append(known_pair(*pair, sent - known.n, known, flow.pair_quantiles, bound))
        elif pair in latencies:
            one = latencies[pair].moved(shift)
            found.append(_pair(*pair, sent - one.n, one, bound, flow.pair_quantiles, sampled.get(pair)))
    return tuple(pair for pair in found if pair is not None)


def _pair(
    start: str,
    end: str,
    missing: int,
    sketch: Sketch,
    bound: float,
    quantiles: Mapping[str, float],
    sample: PairLatency | None,
) -> PairLatency:
    """The pair whose values `sketch` holds."""
    worth, spread = sample.n_effective if sample is not None else None, sketch.deviation()
    half = (
        sketches.mean_half_width(spread, min(worth, sketch.n))
        if worth is not None and spread is not None
        else None
    )
    return PairLatency(
        start,
        end,
        sketch.n,
        missing,
        sketch.minimum,
        sketch.mean,
        half + bound if half is not None else None,
        {name: _percentile(name, q, sketch, sample) for name, q in quantiles.items()},
        sketch.maximum,
        bound,
        values=sketch,
    )


def _percentile(name: str, q: float, sketch: Sketch, sample: PairLatency | None) -> Percentile:
    """With an interval as far as the sample says what its values are worth, else with none."""
    own = sample.percentiles[name].worth if sample is not None else None
    worth = own if own is not None else sample.n_effective if sample is not None else None
    found = percentile(sketch, q, min(worth, float(sketch.n)) if worth is not None else 1.0)
    return found if worth is not None else replace(found, low=None, high=None, worth=None)
