"""Latency between every two points of a leg: of a flow, of one too large to be held, and of repeats together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import PairLatency, crosses, pair_latencies
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.pair_repeats import pool_pairs
from wiregauge.measures.sketched.pairs import pairs_of_all

__all__ = ["PAIRS"]

Pairs = tuple[PairLatency, ...]


class _Pairs(FlowMeasure[Pairs]):
    """The pairs in the order of the way."""

    name = "pair_latency"
    none: Pairs = ()

    def found(self, reading: FlowReading) -> Pairs | Pending[Pairs]:
        paired, repeated = reading.run.paired, reading.run.campaign.repeats > 1
        if paired is not None and reading.flow.id not in paired:
            return self.none
        return pair_latencies(
            reading.part, reading.flow, reading.correction, reading.summaries, keep=repeated
        )

    def of_all(self, sample: Pairs, flow: FlowResult, reading: FlowReading) -> Pairs:
        if reading.whole is None:
            return sample
        return pairs_of_all(sample, reading.flow, reading.whole, flow.summaries, reading.correction)

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
