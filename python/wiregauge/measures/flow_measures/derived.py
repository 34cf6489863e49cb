"""Measures that follow from counts and distributions: the loss ratio, ranges, jitters, the effective bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wiregauge.measures.flow_measures.base import FlowMeasure
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summary import Summary

__all__ = ["EFFECTIVE_BANDWIDTH", "JITTER", "LOSS", "VARIATION"]


class _Loss(FlowMeasure[None]):
    """The loss ratio."""

    name = "loss"
    none = None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        sent, unknown, loss = flow.counts["sent"], flow.counts["unknown"], flow.loss
        worst = (flow.counts["lost"] + unknown) / sent if unknown and sent else None
        bounds = (loss.low, loss.high) if sent else None
        yield replace(single(self.name, "", loss.ratio, sent, bounds, "nothing was sent"), other=worst)


class _Variation(FlowMeasure[None]):
    """The delay variation p99.9 - min, and the range max - min."""

    name = "pdv"
    none = None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        latency = flow.spread
        top = latency.percentiles.get("p99.9")
        yield single(
            "pdv",
            "",
            latency.pdv(),
            latency.n,
            (_less(top.low, latency.minimum), _less(top.high, latency.minimum)) if top else None,
            f"p99.9 needs {top.needed} values, there are {latency.n}" if top else "no message has a value",
        )
        yield single("range", "", latency.span(), latency.n, None, "no message has a value")


def _less(edge: float | None, by: float | None) -> float | None:
    return edge - by if edge is not None and by is not None else None


class _Jitter(FlowMeasure[None]):
    """The standard deviations of the periods of sending and of receiving."""

    name = "period_jitter"
    none = None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        for name, of in (("period_jitter", "period"), ("receive_period_jitter", "receive_period")):
            spread = flow.summaries.get(of) or Summary(of, 0, {}, 0)
            few = f"{spread.n} values are too few"
            yield single(name, "", spread.sd, spread.n, spread.sd_interval, few)


class _EffectiveBandwidth(FlowMeasure[None]):
    """The payload over the mean latency."""

    name = "effective_bandwidth"
    none = None

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        """The figure with the interval of the mean latency, ends swapped; open above where that reaches zero."""
        latency, payload = flow.summaries["latency"], flow.plan.payload
        mean, value, low, high = latency.mean, None, None, None
        if payload is not None and mean is not None and mean > 0:
            value = 8 * payload / (mean / 1e9)
        if latency.uncertainty is not None and mean is not None and payload:
            low, high = mean - latency.uncertainty.total, mean + latency.uncertainty.total
            low, high = 8e9 * payload / high, 8e9 * payload / low if low > 0 else None
        yield single(self.name, "", value, latency.n, (low, high), "nothing arrived")


LOSS, VARIATION, JITTER = _Loss(), _Variation(), _Jitter()
EFFECTIVE_BANDWIDTH = _EffectiveBandwidth()
