"""Percentiles of the latency over all messages sent, a lost one counting as infinitely late."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf, isinf

import numpy as np
import polars as pl
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import QUANTILES, SENT
from wiregauge.measures.flow_measures.base import NOTHING, FlowMeasure, FlowReading
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.percentiles import Percentile, needed_for
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summarise import with_loss
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.sketched.exact import gain_of
from wiregauge.measures.sketched.full_flow import Whole
from wiregauge.measures.sketched.quantiles import ends, ranked
from wiregauge.measures.sketched.repeats import with_loss_repeats
from wiregauge.stats.sketch import Sketch

__all__ = ["WITH_LOSS"]

Percentiles = Mapping[str, Percentile]


_DEFINITION = Definition(
    "latency_with_loss",
    "Latency with loss",
    "quantile of latency (of a relayed flow: rtt) over all sent messages, a lost one counting as infinite",
    "ns",
    "RFC 7679, 3.6 (undefined delay)",
    "Not determined if a percentile falls among the lost.",
    better="lower",
    statistics=tuple(QUANTILES),
    every_message=True,
    rests_on="latency",
    of=SENT,
    losses="counted",
    links="more",
    after="range",
)


class _WithLoss(FlowMeasure[Percentiles]):
    """The percentiles by name, of the round trip where messages return; infinite where one falls among the lost."""

    name = "latency_with_loss"
    none: Percentiles = NOTHING
    definitions = (_DEFINITION,)

    def computed(self, reading: FlowReading) -> Percentiles:
        if reading.gone.any():
            return _of_messages(reading)
        flow = reading.flow
        return reading.summaries[flow.main].percentiles or with_loss([], [], flow.quantiles)

    def of_all_messages(
        self, sample: Percentiles, flow: FlowResult, reading: FlowReading, whole: Whole
    ) -> Percentiles:
        main, lost = flow.plan.main, flow.counts["lost"]
        if main not in flow.sketches or not lost:
            return flow.summaries[main].percentiles or sample
        sketch = flow.sketches[main]
        gain = gain_of(reading.extracted[main], sketch.n)
        return _of_sketch(sketch, lost, sample, flow.summaries[main], gain, flow.plan.quantiles)

    def pooled(self, flows: Sequence[FlowResult], summaries: Mapping[str, Summary]) -> Percentiles:
        main = flows[0].plan.main
        if any(flow.sampled for flow in flows):
            return with_loss_repeats(flows, main)
        runs, lost = [], []
        for flow in flows:
            values = flow.series[main].value
            runs.append(np.concatenate([values, np.zeros(flow.counts["lost"])]))
            lost.append(np.arange(len(runs[-1])) >= len(values))
        return with_loss(runs, lost, flows[0].plan.quantiles)

    def without_clocks(self, flow: FlowResult, apart: Collection[str], *, compared: bool) -> Percentiles:
        if compared or flow.plan.relayed:
            return flow[self]
        return {name: replace(one, value=None, low=None, high=None) for name, one in flow[self].items()}

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        sent = flow.counts["sent"]
        for statistic, percentile in flow[self].items():
            among = percentile.value is not None and isinf(percentile.value)
            yield single(
                self.name,
                statistic,
                None if among else percentile.value,
                sent,
                (percentile.low, _finite(percentile.high)),
                f"{statistic} falls among the lost messages"
                if among
                else f"{statistic} needs {percentile.needed} messages, {sent} were sent",
                inf if among else None,
            )


WITH_LOSS = _WithLoss()


def _finite(edge: float | None) -> float | None:
    return None if edge is None or isinf(edge) else edge


def _of_messages(reading: FlowReading) -> dict[str, Percentile]:
    """Percentiles over lost and timestamped messages; those that arrived without a timestamp are left out."""
    part, gone = reading.part, reading.gone
    end, shift = ("back_rx_app", 0.0) if reading.flow.relayed else ("rx_app", reading.between.outward_ns)
    column = part.column(f"tx_app to {end}", pl.col(end) - pl.col("tx_app"))
    took = column.values / 1000 - shift
    known = gone | column.known if column.known is not None else np.ones_like(gone)
    return with_loss([np.where(gone, 0.0, took)[known]], [gone[known]], reading.flow.quantiles)


def _of_sketch(
    sketch: Sketch,
    lost: int,
    sample: Mapping[str, Percentile],
    main: Summary,
    gain: float,
    quantiles: Mapping[str, float],
) -> dict[str, Percentile]:
    """Percentiles over all sent messages, a lost one counting as infinitely late."""
    n = sketch.n + lost
    found = {}
    for name, q in quantiles.items():
        needed = needed_for(q)
        if n < needed:
            found[name] = Percentile(q, None, None, None, needed)
            continue
        own = sample[name].worth if name in sample else None
        worth = min((own if own is not None else main.n_effective or 1.0) * (gain if own else 1.0), float(n))
        low, high = stats.scaled_ranks(n, q, worth)
        found[name] = Percentile(
            q,
            ranked(sketch, stats.rank(n, q)),
            *ends(sketch, low, high),
            needed,
            worth,
        )
    return found
