"""The figures of a flow one by one, the same as in `show --json`: exports and notebooks hand them on as they are."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from wiregauge.measures.definitions import COUNTS, DEFINITIONS, QUANTILES, SERIES
from wiregauge.measures.definitions.definition import ARRIVED, SEEN, SENT
from wiregauge.measures.flow_measures import FLOW_MEASURES
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.quantity import Quantity, of_summary, single
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.metrics.uncompared import is_between_clocks

__all__ = ["STATISTICS", "NoFigureError", "figure_of", "flow_quantities", "quantity"]

STATISTICS = ("min", "mean", "sd", "mad", *QUANTILES, "max")
"""The figures that every summary has, in the order in which they are written."""


def flow_quantities(flow: FlowResult) -> Iterator[Quantity]:
    """Every figure of a flow: all statistics of its series, then the single figures."""
    for name in SERIES:
        summary = flow.summaries.get(name)
        if summary is not None:
            yield from (_told(flow, of_summary(summary, statistic)) for statistic in statistics(summary))
    yield from _singles(flow)


def percentile_names(summary: Summary) -> tuple[str, ...]:
    """The percentiles of a summary in ascending order: those always printed, and those that a limit names."""
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
    """The single figures of a flow; a measure that the flow cannot have yields none."""
    return (_told(flow, _by_what_was_seen(flow, figure)) for figure in _found(flow))


def _counters(flow: FlowResult) -> Iterator[Quantity]:
    sent, unknown = flow.counts["sent"], flow.counts["unknown"]
    for name in COUNTS:
        count = float(flow.lost if name == "lost" else flow.counts[name])
        either = flow.counts[name] + unknown if unknown and name not in ("sent", "unknown") else None
        if either is not None and name == "delivered":
            either = min(either, sent - flow.lost)
        yield replace(single(name, "", count, _among(flow, name)), other=either)


def _by_what_was_seen(flow: FlowResult, figure: Quantity) -> Quantity:
    """The figure with the reason why some of the sent messages may not have been seen."""
    of = DEFINITIONS[figure.measure]
    return (
        replace(figure, silent=flow.holes)
        if flow.holes and of.of == SENT and figure.measure != "sent"
        else figure
    )


def _found(flow: FlowResult) -> Iterator[Quantity]:
    yield from _counters(flow)
    for measure in FLOW_MEASURES.values():
        for figure in measure.quantities(flow):
            yield _arrived(figure, flow)


def _among(flow: FlowResult, name: str) -> int:
    """Number of messages that could have shown a counter."""
    counts = flow.counts
    traced = counts["sent"] - counts["unknown"] - flow.outcomes.get("lost", 0)
    return {SENT: counts["sent"], ARRIVED: counts["delivered"], SEEN: traced}.get(
        DEFINITIONS[name].of, max(flow.planned, counts["sent"])
    )


def _arrived(figure: Quantity, flow: FlowResult) -> Quantity:
    """A figure of periods between arrivals with these: an open silence is a period, and no arrival."""
    if figure.measure not in ("receive_period", "receive_period_jitter"):
        return figure
    periods = flow.summaries.get("receive_period")
    if periods is None:
        return figure
    return replace(figure, among=flow.counts["sent"] - periods.excluded.get("lost", 0))


def figure_of(flow: FlowResult, name: str) -> Quantity:
    """The figure of a measure that is a single one."""
    return next(FLOW_MEASURES[name].quantities(flow))
