"""One figure with everything that has to stand beside it: unit, n, interval, and why it is missing where it is.

The same figures as in `show --json`, one by one: exports and notebooks hand them on and compute nothing anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from math import inf, isinf

from wiregauge.measures.definitions import COUNTS, DEFINITIONS, QUANTILES, SERIES, SINGLES
from wiregauge.measures.definitions.definition import ARRIVED, SEEN, SENT, least_values
from wiregauge.measures.definitions.units import count_of, duration, rate, share
from wiregauge.measures.metrics.results import FlowResult
from wiregauge.measures.metrics.service import Service
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.uncompared import is_between_clocks

__all__ = [
    "FIGURES",
    "STATISTICS",
    "NoFigureError",
    "Quantity",
    "figure_of",
    "flow_quantities",
    "of_summary",
    "quantity",
]

STATISTICS = ("min", "mean", "sd", "mad", *QUANTILES, "max")
"""The figures that every summary has, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of one measure.

    `value` is in `unit` (`ns`, `messages`, `bit/s`, `share`, `1/s`, `events`), None where it is not determined;
    `reason` then says why.
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
    stands_for: float | None = None
    """Of a figure without a value what a limit may take for it: 0 where nothing happened, infinite among the lost."""

    other: float | None = None
    """The figure if all messages were lost (or late) of which nobody can tell; None where that does not matter."""

    among: int | None = None
    """How many could have shown it, in the words of `Definition.of`, where that is not `n`."""
    silent: str = ""
    """Why it may be better than the truth, where what would worsen it could not be counted."""

    @property
    def name(self) -> str:
        """As a limit names it: `latency.p99`, `lost`."""
        return f"{self.measure}.{self.statistic}" if self.statistic else self.measure

    @property
    def counted_of(self) -> int:
        """How many could have shown it: a figure of none of them says nothing."""
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


def flow_quantities(flow: FlowResult) -> Iterator[Quantity]:
    """Every figure of a flow: all statistics of its series, then what is one figure per flow."""
    for name in SERIES:
        summary = flow.summaries.get(name)
        if summary is not None:
            yield from (_told(flow, of_summary(summary, statistic)) for statistic in statistics(summary))
    yield from _singles(flow)


def percentile_names(summary: Summary) -> tuple[str, ...]:
    """The percentiles of a summary in ascending order: those always told, and those that a limit names."""
    return tuple(summary.percentiles) or tuple(QUANTILES)


def statistics(summary: Summary) -> tuple[str, ...]:
    """Every figure of a summary, in the order in which they are written."""
    return ("min", "mean", "sd", "mad", *percentile_names(summary), "max")


class NoFigureError(KeyError):
    """A measure has no figure of this name."""


def quantity(flow: FlowResult, name: str) -> Quantity:
    """The figure of a flow with the name a limit would give it; NoFigureError for one that no measure has.

    A measure of several figures without a distribution gives its first by its name alone: `loss_period` the longest.
    """
    measure, _, statistic = name.partition(".")
    if measure not in DEFINITIONS:
        raise NoFigureError(name)
    if measure in SERIES:
        summary = flow.summaries.get(measure) or Summary(measure, 0, {}, 0)
        if statistic not in statistics(summary) and statistic not in flow.plan.asked:
            raise NoFigureError(name)
        return _told(flow, _arrived(of_summary(summary, statistic), flow))
    found = [figure for figure in _singles(flow) if figure.measure == measure]
    named = [figure for figure in found if statistic in ("", figure.statistic)]
    if named:
        return named[0]
    if found:
        raise NoFigureError(name)
    return Quantity(
        measure,
        statistic,
        None,
        DEFINITIONS[measure].unit,
        0,
        None,
        None,
        f"flow {flow.plan.name} has no such measure",
    )


def _told(flow: FlowResult, figure: Quantity) -> Quantity:
    """The figure, and that it is none where the clocks it is between were never compared."""
    if not flow.uncompared or not is_between_clocks(flow.plan, figure.measure):
        return figure
    return replace(
        figure, value=None, low=None, high=None, stands_for=None, other=None, reason=flow.uncompared
    )


def _singles(flow: FlowResult) -> Iterator[Quantity]:
    """What is one figure per flow, or a few; a measure that the flow cannot have yields nothing."""
    return (_told(flow, _by_what_was_seen(flow, figure)) for figure in _each_single(flow))


def _counters(flow: FlowResult) -> Iterator[Quantity]:
    sent, unknown = flow.counts["sent"], flow.counts["unknown"]
    for name in COUNTS:
        count = float(flow.lost if name == "lost" else flow.counts[name])
        either = flow.counts[name] + unknown if unknown and name not in ("sent", "unknown") else None
        if either is not None and name == "delivered":
            either = min(either, sent - flow.lost)
        yield replace(_single(name, "", count, _among(flow, name)), other=either)


def _by_what_was_seen(flow: FlowResult, figure: Quantity) -> Quantity:
    """Of all messages sent, with the reason why some of these may not have been seen."""
    of = DEFINITIONS[figure.measure]
    return (
        replace(figure, silent=flow.holes)
        if flow.holes and of.of == SENT and figure.measure != "sent"
        else figure
    )


def _each_single(flow: FlowResult) -> Iterator[Quantity]:
    sent, loss = flow.counts["sent"], flow.loss
    latency = flow.spread
    unknown = flow.counts["unknown"]
    yield from _counters(flow)
    bounds = (loss.low, loss.high) if sent else None
    worst = (flow.counts["lost"] + unknown) / sent if unknown and sent else None
    yield replace(_single("loss", "", loss.ratio, sent, bounds, "nothing was sent"), other=worst)
    top = latency.percentiles.get("p99.9")
    yield _single(
        "pdv",
        "",
        latency.pdv(),
        latency.n,
        (_less(top.low, latency.minimum), _less(top.high, latency.minimum)) if top else None,
        f"p99.9 needs {top.needed} values, there are {latency.n}" if top else "no message has a value",
    )
    yield _single("range", "", latency.span(), latency.n, None, "no message has a value")
    for statistic, percentile in flow.with_loss.items():
        among = percentile.value is not None and isinf(percentile.value)
        yield _single(
            "latency_with_loss",
            statistic,
            None if among else percentile.value,
            sent,
            (percentile.low, _finite(percentile.high)),
            f"{statistic} falls among the lost messages"
            if among
            else f"{statistic} needs {percentile.needed} messages, {sent} were sent",
            inf if among else None,
        )
    for name, of in (("period_jitter", "period"), ("receive_period_jitter", "receive_period")):
        spread = flow.summaries.get(of) or Summary(of, 0, {}, 0)
        few = f"{spread.n} values are too few"
        yield _arrived(_single(name, "", spread.sd, spread.n, spread.sd_interval, few), flow)
    for pair in flow.pairs:
        between = f"{pair.start}-{pair.end}"
        half = pair.half_width
        around = (pair.mean - half, pair.mean + half) if half is not None else None
        yield _single("pair_latency", f"{between}.min", pair.minimum, pair.n)
        yield _single("pair_latency", f"{between}.mean", pair.mean, pair.n, around)
        for word, found in pair.percentiles.items():
            few = (
                f"{word} needs {found.needed} values, there are {pair.n}"
                if pair.n < found.needed
                else "it is of several runs, whose values were not kept"
            )
            yield _single(
                "pair_latency", f"{between}.{word}", found.value, pair.n, (found.low, found.high), few
            )
        yield _single("pair_latency", f"{between}.max", pair.maximum, pair.n)
    came = flow.elimination.get("passed", 0) + flow.elimination.get("discarded", 0)
    for statistic, count in flow.elimination.items():
        yield replace(_single("elimination", statistic, count, came), silent=_uncounted(flow, statistic))
    for statistic, count in flow.policing.items():
        yield _single("policing", statistic, count, flow.policing["matching"])
    for statistic in DEFINITIONS["gates"].statistics:
        if statistic in flow.gates:
            passed = flow.gates["released" if statistic == "released_late" else "passages"]
            yield _single("gates", statistic, flow.gates[statistic], passed)
    if flow.credit is not None:
        credit, idle = flow.credit, flow.credit.queues - flow.credit.used
        why = f"no frame went by {idle} of {credit.queues} shaped queues of its way" if idle else ""
        for statistic, bits in (("max", credit.most), ("min", credit.least)):
            yield replace(_single("credit", statistic, bits, credit.queues), silent=why)
    service = flow.service
    goodput = service.goodput if service else None
    yield _single(
        "goodput",
        "",
        flow.goodput,
        flow.counts["delivered"],
        (goodput.low, goodput.high) if goodput else None,
        "fewer than two messages were sent" if sent < 2 else "fewer than two messages arrived",
    )
    yield from (figure_of(flow, name) for name in SINGLES)
    if service is not None:
        yield from _served(service, sent)


def _among(flow: FlowResult, name: str) -> int:
    """How many messages could have shown a counter."""
    counts = flow.counts
    traced = counts["sent"] - counts["unknown"] - flow.outcomes.get("lost", 0)
    return {SENT: counts["sent"], ARRIVED: counts["delivered"], SEEN: traced}.get(
        DEFINITIONS[name].of, max(flow.planned, counts["sent"])
    )


def _arrived(figure: Quantity, flow: FlowResult) -> Quantity:
    """A figure of periods between arrivals with these: an open silence is a period, and no arrival."""
    periods = flow.summaries.get("receive_period")
    if figure.measure not in ("receive_period", "receive_period_jitter") or periods is None:
        return figure
    return replace(figure, among=flow.counts["sent"] - periods.excluded.get("lost", 0))


def _uncounted(flow: FlowResult, statistic: str) -> str:
    """Numbers that elimination may have lost and not counted: it misses one once a later frame comes."""
    gone = flow.counts["lost"] - flow.elimination.get("lost", 0)
    if statistic != "lost" or gone <= 0:
        return ""
    return f"{count_of(gone, 'message')} more of the flow lost, and elimination counts a number once a later one comes"


def _effective_bandwidth(flow: FlowResult) -> Quantity:
    """With the interval of the mean latency; open above where that reaches zero."""
    latency, payload = flow.summaries["latency"], flow.plan.payload
    low = high = None
    if latency.uncertainty is not None and latency.mean is not None and payload:
        low, high = latency.mean - latency.uncertainty.total, latency.mean + latency.uncertainty.total
        low, high = 8e9 * payload / high, 8e9 * payload / low if low > 0 else None
    value, none = flow.effective_bandwidth, "nothing arrived"
    return _single("effective_bandwidth", "", value, latency.n, (low, high), none)


FIGURES: dict[str, Callable[[FlowResult], Quantity]] = {"effective_bandwidth": _effective_bandwidth}
"""Of each measure that is a single figure of a flow its statistic."""


def figure_of(flow: FlowResult, name: str) -> Quantity:
    """The figure of a measure that is a single one."""
    return FIGURES[name](flow)


def _served(service: Service, sent: int) -> Iterator[Quantity]:
    losses, order, up = service.losses, service.reordering, service.availability
    longest = _single("loss_period", "longest", losses.longest, sent)
    yield replace(longest, other=None if losses.longest_at_most is None else float(losses.longest_at_most))
    yield _single("loss_period", "count", losses.periods, sent)
    yield _single(
        "loss_distance", "min", losses.least_distance, sent, None, "fewer than two messages were lost", inf
    )
    ratio = _single(
        "availability", "", up.ratio, up.down.n, (1 - up.down.high, 1 - up.down.low), "nothing was sent"
    )
    yield replace(ratio, other=None if up.down.most is None else 1 - up.down.most / up.down.n)
    none, came = "no message was reordered", order.share.n
    yield _single("reorder_extent", "max", order.extent_max, came)
    mean = _single("reorder_extent", "mean", order.extent_mean, order.share.count, None, none, 0.0)
    yield replace(mean, among=came)
    yield _single("reorder_late_time", "max", order.late_time_max_ns, came, None, none, 0.0)
    for n, count in order.n_reordered.items():
        yield _single("n_reordering", str(n), count, order.share.n)
    if service.deadline is not None:
        missed = service.deadline.missed
        share = _single(
            "deadline_missed", "", missed.ratio, missed.n, (missed.low, missed.high), "nothing was sent"
        )
        yield replace(share, other=None if missed.most is None else missed.most / missed.n)
        none = "no message was late"
        tardy, half = service.deadline.tardiness_mean_ns, service.deadline.tardiness_half_width_ns
        around = (tardy - half, tardy + half) if tardy is not None and half is not None else None
        late, most = service.deadline.late, service.deadline.tardiness_max_ns
        for figure in (
            _single("tardiness", "mean", tardy, late, around, none, 0.0),
            _single("tardiness", "max", most, late, None, none, 0.0),
        ):
            yield replace(figure, among=came)
    for one in service.conformity:
        outside = one.outside
        bounds = (outside.low, outside.high)
        yield _single(f"{one.of}_violations", "", outside.ratio, outside.n, bounds, "no frame was seen")
    if service.rates is not None:
        offered = service.rates.offered_per_s
        yield _single("intended_load", "", service.rates.intended_per_s, sent)
        yield _single("offered_load", "", offered.value, sent, (offered.low, offered.high))


def _single(
    measure: str,
    statistic: str,
    value: float | None,
    n: int,
    interval: tuple[float | None, float | None] | None = None,
    reason: str = "",
    stands_for: float | None = None,
) -> Quantity:
    """`reason` is why it is not determined, should it not be; then it has no interval either."""
    unit = DEFINITIONS[measure].unit
    if value is None:
        return Quantity(measure, statistic, None, unit, n, None, None, reason, stands_for)
    low, high = interval or (None, None)
    return Quantity(measure, statistic, float(value), unit, n, low, high)


def _finite(edge: float | None) -> float | None:
    return None if edge is None or isinf(edge) else edge


def _less(edge: float | None, by: float | None) -> float | None:
    return edge - by if edge is not None and by is not None else None


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
