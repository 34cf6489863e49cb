"""Measures that follow from counts and distributions: the loss ratio, ranges, jitters, the effective bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from wiregauge.measures.definitions import Definition
from wiregauge.measures.definitions.definition import ARRIVED, MAPS, SENT
from wiregauge.measures.flow_measures.base import FlowMeasure
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, single
from wiregauge.measures.metrics.summary import Summary

__all__ = ["EFFECTIVE_BANDWIDTH", "JITTER", "LOSS", "VARIATION"]


_LOSS = Definition(
    "loss",
    "Loss ratio",
    "lost / sent",
    "share",
    "RFC 7680, 2; 95 % bounds after Clopper and Pearson",
    better="lower",
    every_message=True,
    of=SENT,
    losses="counted",
    links="more",
    after="unknown",
)
_VARIATION = (
    Definition(
        "range",
        "Range of the latency",
        "latency.max - latency.min",
        "ns",
        "RFC 5481, 4.2, with the maximum in place of a quantile",
        "Grows with the number of messages; compare only runs of equal length.",
        better="lower",
        rests_on="latency",
        of=ARRIVED,
        least=2,
        losses="missing",
        links="more",
        after="lateness",
    ),
    Definition(
        "pdv",
        "Delay variation (PDV)",
        "latency.p99.9 - latency.min",
        "ns",
        "RFC 5481, 4.2; RFC 8219, 7.3.1",
        "Printed only if n supports p99.9; the range max - min is always available.",
        better="lower",
        rests_on="latency",
        of=ARRIVED,
        losses="missing",
        links="more",
    ),
)
_JITTER = (
    Definition(
        "period_jitter",
        "Transmit period jitter",
        "sd(period)",
        "ns",
        f"{MAPS}: variance of the time between transmissions, here as its standard deviation",
        better="lower",
        rests_on="period",
        after="pdv",
    ),
    Definition(
        "receive_period_jitter",
        "Receive period jitter",
        "sd(receive_period)",
        "ns",
        f"{MAPS}: variance of the time between receptions, here as its standard deviation",
        "The jitter observed by an application that expects periodic messages. Its interval, as that of the "
        "transmit period jitter, is the interval of the standard deviation.",
        better="lower",
        of=ARRIVED,
        least=2,
        links="more",
    ),
)
_EFFECTIVE_BANDWIDTH = Definition(
    "effective_bandwidth",
    "Effective bandwidth (MAPS)",
    "8 * payload / latency.mean",
    "bit/s",
    f"{MAPS} (payload size over transmission latency)",
    "Not a throughput: the rate of a sender that waits for each message to arrive. Its "
    "interval is that of the mean latency, ends swapped.",
    kind="single",
    better="higher",
    rests_on="latency",
    of=ARRIVED,
    losses="missing",
    links="less",
    after="goodput",
)


class _Loss(FlowMeasure[None]):
    """The loss ratio."""

    name = "loss"
    none = None
    definitions = (_LOSS,)

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        sent, unknown, loss = flow.counts["sent"], flow.counts["unknown"], flow.loss
        worst = (flow.counts["lost"] + unknown) / sent if unknown and sent else None
        bounds = (loss.low, loss.high) if sent else None
        yield replace(single(self.name, "", loss.ratio, sent, bounds, "nothing was sent"), other=worst)


class _Variation(FlowMeasure[None]):
    """The delay variation p99.9 - min, and the range max - min."""

    name = "pdv"
    none = None
    definitions = _VARIATION

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
    definitions = _JITTER

    def quantities(self, flow: FlowResult) -> Iterator[Quantity]:
        for name, of in (("period_jitter", "period"), ("receive_period_jitter", "receive_period")):
            spread = flow.summaries.get(of) or Summary(of, 0, {}, 0)
            few = f"{spread.n} values are too few"
            yield single(name, "", spread.sd, spread.n, spread.sd_interval, few)


class _EffectiveBandwidth(FlowMeasure[None]):
    """The payload over the mean latency."""

    name = "effective_bandwidth"
    none = None
    definitions = (_EFFECTIVE_BANDWIDTH,)

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
