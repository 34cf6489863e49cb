"""Latency between every two points of a leg: of a flow, of one too large to be held, and of repeats together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.definitions import Definition
from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import (
    NAMES,
    OUTWARD,
    RETURN,
    Correction,
    PairLatency,
    crosses,
    known_pair,
    pair_latencies,
)
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.measures.sketched.quantiles import percentile, repeated
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = ["PAIRS", "pool_pairs"]

Pairs = tuple[PairLatency, ...]


_DEFINITION = Definition(
    "pair_latency",
    "Latency between two points",
    "end - start, for every pair of points of a leg",
    "ns",
    "RFC 7679, 3.4, at the points of the run directory; RFC 2330, 10.2 (wire time and host time)",
    "Points: intended, application, driver and wire at the sender, wire, driver and application at the "
    "receiver; of a relayed flow also those of the return leg. Pairs across two clocks carry the clock "
    "offset's uncertainty.",
    kind="pairs",
    better="lower",
    signed=True,
    losses="missing",
    links="more",
    after="receive_period_jitter",
)


class _Pairs(FlowMeasure[Pairs]):
    """Latency of the pairs of points, in the order of the way."""

    name = "pair_latency"
    none: Pairs = ()
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> Pairs | Pending[Pairs]:
        paired, repeated = reading.run.paired, reading.run.campaign.repeats > 1
        if paired is not None and reading.flow.id not in paired:
            return self.none
        return pair_latencies(
            reading.part, reading.flow, reading.correction, reading.summaries, keep=repeated
        )

    def of_all_messages(self, sample: Pairs, flow: FlowResult, reading: FlowReading, whole: Whole) -> Pairs:
        return pairs_of_all(sample, reading.flow, whole, flow.summaries, reading.correction)

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Pairs:
        return pool_pairs([flow[self] for flow in flows], summaries)

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> Pairs:
        return flow[self] if compared else tuple(one for one in flow[self] if not crosses(one.start, one.end))

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        for pair in flow[self]:
            between, half = f"{pair.start}-{pair.end}", pair.half_width
            around = (pair.mean - half, pair.mean + half) if half is not None else None
            yield single(self.name, f"{between}.min", pair.minimum, pair.n)
            yield single(self.name, f"{between}.mean", pair.mean, pair.n, around)
            for word, found in pair.percentiles.items():
                few = (
                    f"{word} needs {found.needed} values, there are {pair.n}"
                    if pair.n < found.needed
                    else "it is of several runs, whose values were not kept"
                )
                ends = (found.low, found.high)
                yield single(self.name, f"{between}.{word}", found.value, pair.n, ends, few)
            yield single(self.name, f"{between}.max", pair.maximum, pair.n)


PAIRS = _Pairs()


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
            found.append(_pair_of(*pair, sent - one.n, one, bound, flow.pair_quantiles, sampled.get(pair)))
    return tuple(pair for pair in found if pair is not None)


def _pair_of(
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
        {name: _of_sketch(name, q, sketch, sample) for name, q in quantiles.items()},
        sketch.maximum,
        bound,
        values=sketch,
    )


def _of_sketch(name: str, q: float, sketch: Sketch, sample: PairLatency | None) -> Percentile:
    """A percentile of a sketch, with an interval if the sample gives the effective number of its values."""
    own = sample.percentiles[name].worth if sample is not None else None
    worth = own if own is not None else sample.n_effective if sample is not None else None
    found = percentile(sketch, q, min(worth, float(sketch.n)) if worth is not None else 1.0)
    return found if worth is not None else replace(found, low=None, high=None, worth=None)


def pool_pairs(
    runs: Sequence[Sequence[PairLatency]], summaries: Mapping[str, Summary]
) -> tuple[PairLatency, ...]:
    """Pairs of all repeats; those in the `summaries` of the repeats are taken from there.

    Percentiles of the others are those of all values, from the sketch of each run.
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
