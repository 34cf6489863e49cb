"""A figure with its unit, n, interval, and the reason where it is missing."""

from __future__ import annotations

from html import escape

from msgspec import Struct

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.definition import least_values
from wiregauge.measures.definitions.units import duration, rate, share
from wiregauge.measures.metrics.summary import Summary

__all__ = ["Quantity", "of_summary", "single"]


class Quantity(Struct, frozen=True):
    """One figure of one measure.

    `value` is in `unit` (`ns`, `messages`, `bit/s`, `share`, `1/s`, `events`), None where it is not determined;
    `reason` then gives the cause. `low` and `high` bound the 95 % interval, None where it is open or the figure has
    none (a count or an extreme is what happened). `n` values (or messages) are behind it.
    """

    measure: str
    statistic: str
    value: float | None
    unit: str
    n: int
    low: float | None = None
    high: float | None = None
    reason: str = ""
    stands_for: float | None = None
    """The value that a limit may take for a figure without one: 0 where nothing happened, infinite among the lost."""

    other: float | None = None
    """The figure if all messages of unknown outcome were lost (or late); None where that does not matter."""

    among: int | None = None
    """Number of events that could have shown it, in the words of `Definition.of`, where that is not `n`."""
    silent: str = ""
    """The reason why it may be better than the truth, where adverse events could not be counted."""

    @property
    def name(self) -> str:
        """The figure's name in limits: `latency.p99`, `lost`."""
        return f"{self.measure}.{self.statistic}" if self.statistic else self.measure

    @property
    def counted_of(self) -> int:
        """Number of events that could have shown it; with 0 the figure has no meaning."""
        return self.n if self.among is None else self.among

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

    @property
    def shown(self) -> str:
        """The value for the eye, in the unit that fits."""
        return "-" if self.value is None else self._text(self.value)

    @property
    def shown_interval(self) -> str:
        """The interval for the eye; empty where there is none."""
        low, high = (None if edge is None else self._text(edge) for edge in (self.low, self.high))
        if low is not None and high is not None:
            return f"{low} to {high}"
        if low is not None:
            return f"at least {low}"
        return f"at most {high}" if high is not None else ""

    def _beside(self) -> str:
        bounds = f"95 %: {self.shown_interval}, " if self.interval else ""
        return f" ({bounds}n = {self.n})"

    def _text(self, value: float) -> str:
        if self.unit == "ns":
            return duration(value)
        if self.unit == "bit/s":
            return rate(value)
        if self.unit == "share":
            return share(value)
        return f"{value:g}" if self.unit in ("messages", "events") else f"{value:g} {self.unit}"


def single(
    measure: str,
    statistic: str,
    value: float | None,
    n: int,
    interval: tuple[float | None, float | None] | None = None,
    reason: str = "",
    stands_for: float | None = None,
) -> Quantity:
    """One figure of a measure; `reason` is why it is not determined, should it not be, and it has no interval."""
    unit = DEFINITIONS[measure].unit
    if value is None:
        return Quantity(measure, statistic, None, unit, n, None, None, reason, stands_for)
    low, high = interval or (None, None)
    return Quantity(measure, statistic, float(value), unit, n, low, high)


def of_summary(summary: Summary, statistic: str) -> Quantity:
    """One of `STATISTICS` of a summary with its interval."""
    measure, n, unit = summary.measure, summary.n, DEFINITIONS[summary.measure].unit
    value = summary.value(statistic) if n >= least_values(statistic) else None
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
