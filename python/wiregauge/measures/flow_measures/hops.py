"""Residence of a flow's frames by switch and output port."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wiregauge import stats
from wiregauge.measures.flow_measures.base import FlowMeasure, FlowReading
from wiregauge.measures.metrics.batching import Pending
from wiregauge.measures.metrics.hops import Hop, hops_of, pool_hops
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.stats.sketch import Sketch

__all__ = ["HOPS"]

Hops = tuple[Hop, ...]


class _Hops(FlowMeasure[Hops]):
    """The output ports of a flow, with few figures each; the measure `residence` has the distribution over all."""

    name = "hops"
    none: Hops = ()

    def computed(self, reading: FlowReading) -> Pending[Hops]:
        return hops_of(reading.through, reading.run.names, reading.run.timestamp_ns)

    def of_all_messages(self, sample: Hops, flow: FlowResult, reading: FlowReading, whole: Whole) -> Hops:
        return tuple(_hop(*hop, reading.run.names, sample) for hop in whole.hops) or sample

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Hops:
        return pool_hops([flow[self] for flow in flows])

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> Hops:
        return tuple(hop for hop in flow[self] if hop.switch not in apart)


HOPS = _Hops()


def _hop(node: int, port: int, one: Sketch, names: Sequence[str], sample: Sequence[Hop]) -> Hop:
    """A hop from its sketch; the mean is known at least as well as that of the sample."""
    switch = names[node] if 0 <= node < len(names) else f"node {node}"
    same = next((hop for hop in sample if (hop.switch, hop.port) == (switch, port)), None)
    return Hop(
        switch,
        port,
        one.n,
        one.minimum,
        one.mean,
        same.half_width if same is not None else None,
        one.quantile(0.99) if stats.supported(one.n, 0.99) else None,
        one.maximum,
        same.bound if same is not None else 0.0,
    )
