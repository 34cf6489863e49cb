"""One figure with everything that has to stand beside it: unit, n, interval, and why it is missing where it is.

The same figures as in `show --json`, one by one: exports and notebooks hand them on and compute nothing anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from wiregauge.measures.definitions import COUNTS, DEFINITIONS, QUANTILES, SERIES
from wiregauge.measures.limits import observe
from wiregauge.measures.results import FlowResult, Summary
from wiregauge.measures.units import duration, rate, share

__all__ = ["STATISTICS", "Quantity", "flow_quantities", "of_summary", "quantity"]

STATISTICS = ("min", "mean", "sd", "mad", *QUANTILES, "max")
"""Every figure of a summary, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of one measure.

    `value` is in `unit` (`ns`, `messages`, `bit/s`, `share`), None where it is not determined; `reason` then says why.
    `low` and `high` bound the 95 % interval, None where it is open or the figure has none (a count or an extreme is
    what happened). `n` values (or messages) are behind it.
    """

    measure: str
    statistic: str
    value: float | None
    unit: str
    n: int
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        """As a limit names it: `latency.p99`, `lost`."""
        return f"{self.measure}.{self.statistic}" if self.statistic else self.measure

    @property
    def interval(self) -> tuple[float | None, float | None] | None:
        """The 95 % interval in `unit`; None where the figure has none, None inside where it is open."""
        return None if self.low is None and self.high is None else (self.low, self.high)

    def __float__(self) -> float:
        """The value; raises ValueError where it is not determined."""
        if self.value is None:
            raise ValueError(f"{self.name} is not determined: {self.reason or 'nothing was measured'}")
        return self.value

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: not determined ({self.reason or 'nothing was measured'})"
        return f"{self.name} = {self._text(self.value)}{self._beside()}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        title = DEFINITIONS[self.measure].title if self.measure in DEFINITIONS else self.measure
        if self.value is None:
            return f"{escape(title)}: <i>not determined</i> ({escape(self.reason or 'nothing was measured')})"
        what = f"{escape(title)}, {escape(self.statistic)}" if self.statistic else escape(title)
        return f"{what}: <b>{escape(self._text(self.value))}</b>{escape(self._beside())}"

    def _beside(self) -> str:
        low, high = (None if edge is None else self._text(edge) for edge in (self.low, self.high))
        if low is None and high is None:
            bounds = ""
        elif low is not None and high is not None:
            bounds = f"95 %: {low} to {high}, "
        else:
            bounds = f"95 %: at least {low}, " if low is not None else f"95 %: at most {high}, "
        return f" ({bounds}n = {self.n})"

    def _text(self, value: float) -> str:
        if self.unit == "ns":
            return duration(value)
        if self.unit == "bit/s":
            return rate(value)
        if self.unit == "share":
            return share(value)
        return f"{value:g}" if self.unit == "messages" else f"{value:g} {self.unit}"


def flow_quantities(flow: FlowResult) -> Iterator[Quantity]:
    """Every figure of a flow: all statistics of its series, then what is one figure per flow."""
    for name in SERIES:
        summary = flow.summaries.get(name)
        if summary is not None:
            yield from (of_summary(summary, statistic) for statistic in STATISTICS)
    for name in DEFINITIONS:
        if name not in SERIES and name != "unplanned":
            yield quantity(flow, name)


def quantity(flow: FlowResult, name: str) -> Quantity:
    """The figure of a flow with the name a limit would give it; KeyError for a name that no definition has."""
    measure, _, statistic = name.partition(".")
    unit = DEFINITIONS[measure].unit
    if measure in SERIES:
        summary = flow.summaries.get(measure) or Summary(measure, 0, {}, 0)
        if statistic not in STATISTICS:
            raise KeyError(name)
        return of_summary(summary, statistic)
    if statistic:
        raise KeyError(name)
    sent = flow.counts["sent"]
    if measure in COUNTS:
        return Quantity(measure, "", float(flow.counts[measure]), unit, sent)
    if measure == "loss":
        reason = "" if sent else "nothing was sent"
        low, high = (flow.loss.low, flow.loss.high) if sent else (None, None)
        return Quantity(measure, "", flow.loss.ratio, unit, sent, low, high, reason)
    latency = flow.summaries["latency"]
    if measure == "pdv":
        p999 = latency.percentiles.get("p99.9")
        known = p999 is not None and p999.value is not None and latency.minimum is not None
        low, high = (
            (edge - latency.minimum if edge is not None else None for edge in (p999.low, p999.high))
            if known and p999 is not None and latency.minimum is not None
            else (None, None)
        )
        needs = p999.needed if p999 is not None else None
        reason = "" if known else f"p99.9 needs {needs} values, there are {latency.n}" if needs else ""
        return Quantity(measure, "", latency.pdv(), unit, latency.n, low, high, reason)
    if measure == "period_jitter":
        summary = flow.summaries.get("period") or Summary("period", 0, {}, 0)
        low, high = summary.sd_interval or (None, None)
        reason = "" if summary.sd is not None else f"{summary.n} values are too few"
        return Quantity(measure, "", summary.sd, unit, summary.n, low, high, reason)
    if measure == "effective_bandwidth":
        value = flow.effective_bandwidth
        u = latency.uncertainty.total if latency.uncertainty else None
        low = high = None
        if value is not None and u is not None and latency.mean is not None:
            # payload / mean: the ends of the mean's interval, the other way round; a mean that may be 0 is open.
            low = value * latency.mean / (latency.mean + u)
            high = value * latency.mean / (latency.mean - u) if latency.mean > u else None
        return Quantity(
            measure, "", value, unit, latency.n, low, high, "" if value is not None else "nothing arrived"
        )
    value, reason = observe(name, flow)
    return Quantity(measure, "", value, unit, flow.counts["delivered"], None, None, reason)


def of_summary(summary: Summary, statistic: str) -> Quantity:
    """One of `STATISTICS` of a summary with its interval."""
    measure, n, unit = summary.measure, summary.n, DEFINITIONS[summary.measure].unit
    value = summary.value(statistic)
    low = high = None
    if value is None:
        percentile = summary.percentiles.get(statistic)
        if n == 0:
            reason = "no message has a value"
        elif percentile is not None:
            reason = f"{statistic} needs {percentile.needed} values, there are {n}"
        else:
            reason = f"{n} values are too few for {statistic}"
        return Quantity(measure, statistic, None, unit, n, None, None, reason)
    if statistic == "mean" and summary.uncertainty is not None:
        low, high = value - summary.uncertainty.total, value + summary.uncertainty.total
    elif statistic == "sd" and summary.sd_interval is not None:
        low, high = summary.sd_interval
    elif statistic in summary.percentiles:
        percentile = summary.percentiles[statistic]
        low, high = percentile.low, percentile.high
    return Quantity(measure, statistic, value, unit, n, low, high)
