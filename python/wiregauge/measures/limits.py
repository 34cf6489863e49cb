"""The test's limits against the measures of one run: pass, fail, or undecided with the reason.

The observed figure decides. It is undecided without a figure, without any event that could have worsened it, where
values that the instrument missed could turn a pass into a failure, or where the bound lies within the uncertainty of
clocks, timestamps and links without the rate of the plan. An observed failure is a failure whatever was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isinf
from typing import Literal

import numpy as np
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.definitions import DEFINITIONS, SERIES, Definition, quantile_named
from wiregauge.measures.definitions.units import count_of, in_unit, untapped
from wiregauge.measures.flow_measures import CONFORMITY, PAIRS
from wiregauge.measures.instrument import Range, by_clocks, constant_cancels, instrument_range, too_fast
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import FlowResult, LimitResult
from wiregauge.measures.metrics.pairs import distribution_of
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.series import GAP, NO_TIMESTAMP, UNPAIRED
from wiregauge.measures.quantities import NoFigureError, flow_quantities, quantity
from wiregauge.measures.run_measures import RUN_MEASURES, OfRun
from wiregauge.stats.sketch import Sketch

_UNHEARD_OF = Definition("", "", "", "ns", "")
"""Stands for a measure that only a later version has."""


def _definition(measure: str) -> Definition:
    return DEFINITIONS.get(measure, _UNHEARD_OF)


OF_SENDS = frozenset(
    {
        "send_error",
        "service_latency",
        "period",
        "period_jitter",
        "intended_load",
        "offered_load",
        "bag_spacing",
        "bag_jitter",
        "bag_violations",
    }
)
"""Measures of a sender's actions: undetermined for a send that was due and never made."""
OF_SILENCES = frozenset({"receive_period", "receive_period_jitter", "goodput"})
"""Measures of the sequence of arrivals, which include open silences."""
Result = Literal["pass", "fail", "undecided"]


def judge_limits(
    limits: Sequence[LimitPlan], flows: Sequence[FlowResult], of_run: OfRun, *, fit: bool = True
) -> tuple[LimitResult, ...]:
    """One result per limit and flow it applies to; a limit on the run as a whole has flow None.

    Limits on an INVALID run, which is not `fit` to judge, are undecided: the figures are given without pass or fail.
    """
    of_flow: dict[int, list[FlowResult]] = {}
    for flow in flows:
        of_flow.setdefault(flow.plan.id, []).append(flow)
    found = tuple(
        result
        for limit in limits
        for result in _judge(
            limit,
            flows if limit.flow is None else of_flow.get(limit.flow, ()),
            of_run,
        )
    )
    if fit:
        return found
    return tuple(replace(one, result="undecided", reason=_unfit(one.reason)) for one in found)


def _unfit(reason: str) -> str:
    return "; ".join(part for part in ("the run is INVALID", reason) if part)


def _judge(
    limit: LimitPlan,
    flows: Sequence[FlowResult],
    of_run: OfRun,
) -> list[LimitResult]:
    """`flows` are those that the limit may be on."""
    name, _, statistic = limit.measure.partition(".")
    if name in RUN_MEASURES:
        return [_result(limit, RUN_MEASURES[name].quantity(statistic, of_run, flows), None)]
    # A limit on the round trip of every flow means every flow that has one; likewise for measures of critical
    # traffic.
    chosen = [flow for flow in flows if limit.flow is not None or _has(flow, name, limit.measure)]
    if not chosen:
        return [_result(limit, _absent(limit.measure, "the run has no messages of such a flow"), None)]
    return [_result(limit, observe(limit.measure, flow), flow, exact=of_run.virtual_time) for flow in chosen]


def _has(flow: FlowResult, name: str, measure: str) -> bool:
    """Whether a limit on every flow means this one."""
    if name == "pair_latency" and ".back_" in measure:
        return flow.plan.relayed
    if not _definition(name).needs:
        return True
    return name in flow.summaries or any(figure.measure == name for figure in flow_quantities(flow))


def observe(measure: str, flow: FlowResult) -> Quantity:
    """The figure a limit names; without a value, with the reason, where it could not be determined."""
    name = measure.partition(".")[0]
    if name in SERIES and name not in flow.summaries:
        return _absent(measure, f"flow {flow.plan.name} has no measure {measure}")
    try:
        return quantity(flow, measure)
    except NoFigureError:
        return _absent(measure, f"flow {flow.plan.name} has no measure {measure}")


def _absent(measure: str, reason: str) -> Quantity:
    name, _, statistic = measure.partition(".")
    return Quantity(name, statistic, None, _definition(name).unit, 0, None, None, reason)


def _result(
    limit: LimitPlan, figure: Quantity, flow: FlowResult | None, *, exact: bool = False
) -> LimitResult:
    missing = unseen(figure, flow) if flow is not None else 0
    band = instrument_range(figure, flow, exact=exact) if flow is not None else None
    result, reason = _decided(limit, figure, flow, missing, band)
    low, high = (None if edge is None or isinf(edge) else edge for edge in (figure.low, figure.high))
    return LimitResult(
        flow=flow.plan.id if flow is not None else limit.flow,
        to=flow.plan.destination if flow is not None else None,
        subject=_subject(limit, flow),
        measure=limit.measure,
        bound=limit.bound,
        value=limit.value,
        written=limit.written,
        line=limit.line,
        unit=_definition(figure.measure).unit,
        result=result,
        reason=reason,
        observed=figure.value,
        n=figure.n,
        low=low,
        high=high,
        missing=missing,
        of=_definition(figure.measure).of,
        among=figure.counted_of,
        instrument=band,
    )


def _subject(limit: LimitPlan, flow: FlowResult | None) -> str:
    if flow is not None:
        return f"flow {flow.plan.name}"
    return f"flow {limit.flow}" if limit.flow is not None else "the run"


def _decided(
    limit: LimitPlan, figure: Quantity, flow: FlowResult | None, missing: int, band: Range | None
) -> tuple[Result, str]:
    """The result, with the reason where it is undecided or has no figure; `band` is the range that the instrument
    leaves."""
    value = figure.value if figure.value is not None else figure.stands_for
    if flow is not None and flow.unseen and _definition(figure.measure).every_message:
        return "undecided", f"not known: {untapped(flow.unseen)}"
    if value is None:
        return "undecided", figure.reason
    if flow is not None and flow.counts["unknown"] and figure.other is not None:
        if _beyond(limit, value) != _beyond(limit, figure.other):
            unknown = count_of(flow.counts["unknown"], "message")
            return "undecided", f"it is unknown whether {unknown} were lost, and this decides the limit"
        missing = max(missing - flow.counts["unknown"], 0)
    beyond: bool | None = _beyond(limit, value)
    if flow is not None and flow.sampled is not None:
        beyond = _counted_beyond(limit, figure, flow)
    why = _open(limit, figure, flow, missing, band, beyond)
    if why:
        return "undecided", why
    return "fail" if beyond else "pass", figure.reason


def _open(
    limit: LimitPlan,
    figure: Quantity,
    flow: FlowResult | None,
    missing: int,
    band: Range | None,
    beyond: bool | None,
) -> str:
    """The reason why a figure that is `beyond` the limit, or not, decides nothing; empty where it decides."""
    if beyond is None:
        return "the bound lies within what a percentile of a run too large to be held in memory leaves open"
    if band is not None and flow is not None and _beyond(limit, band[0]) != _beyond(limit, band[1]):
        return _unsure(limit, figure, flow, band)
    if beyond:
        return ""
    if silent := _silent(figure):
        return silent
    never = never_sent(figure, flow) if flow is not None else 0
    if never and flow is not None and _could_break(limit, figure, flow, missing + never):
        return (
            f"{count_of(never, 'message')} of the plan {'has' if never == 1 else 'have'} no record of being sent; "
            "what they would have added could lie beyond it"
        )
    if missing and flow is not None and _could_break(limit, figure, flow, missing):
        return (
            f"{count_of(missing, 'value')} that the instrument did not see, besides the {figure.n} it did, "
            "could lie beyond it"
        )
    return ""


def _silent(figure: Quantity) -> str:
    """The reason why a figure that keeps a limit has no basis; empty where it has one."""
    if figure.silent:
        return figure.silent
    of, among = _definition(figure.measure), figure.counted_of
    least = of.least_of(figure.statistic)
    if among >= least:
        return ""
    what = of.of or "values"
    return (
        f"there were no {what}, so nothing was seen that could have broken it"
        if not among
        else f"{among} of the {what} cannot tell, it takes {least}"
    )


def _unsure(limit: LimitPlan, figure: Quantity, flow: FlowResult, band: Range) -> str:
    """A sentence on the uncertainty that leaves a limit open, and on what would decide it."""
    if flow.line_time is not None and too_fast(figure, flow):
        what = (
            "what they and the waits on them would have added"
            if figure.unit == "ns"
            else "what would have been lost, late or altered on them"
        )
        return (
            f"links did not take the time of their rate ({flow.line_time.text}): {what} is in no figure; links as fast "
            "as this bench carries, or the simulator, would decide it"
        )
    if (late := _late_release(limit, figure, flow)) is not None:
        return late
    cure = (
        "a round trip (rtt of a relayed flow), clocks that PTP keeps, timestamps of one clock, or a longer run that "
        "compares them more often"
    )
    if not all(map(isfinite, band)):
        ends = " and ".join(dict.fromkeys((flow.plan.source, flow.plan.destination)))
        unknown = "moved against each other during the run" if constant_cancels(figure) else "are apart"
        return f"how far the clocks of {ends} {unknown} is not known; {cure} would decide it"
    low, high = (in_unit(edge, figure.unit) for edge in band)
    return f"clocks and timestamps of this flow leave {low} to {high} open; {cure} would decide it"


def _late_release(limit: LimitPlan, figure: Quantity, flow: FlowResult) -> str | None:
    """The reason why the lateness of a played network decides a limit; None where it does not."""
    in_time = flow.in_time.get(figure.name)
    value = figure.value if figure.value is not None else figure.stands_for
    if in_time is None or value is None:
        return None
    low, high = by_clocks(figure, flow, exact=False) or (value, value)
    if _beyond(limit, low) != _beyond(limit, high):
        return None
    would = "nobody knows what it would be"
    if all(map(isfinite, in_time)):
        ends = dict.fromkeys(in_unit(edge, figure.unit) for edge in in_time)
        would = f"it would be {' to '.join(ends)}"
    return (
        f"the network that was played handed messages over late (release error): in time {would}; a core of its own "
        "for the network, a host with less to do, or the simulator would decide it"
    )


def _beyond(limit: LimitPlan, value: float) -> bool:
    return value > limit.value if limit.bound == "at-most" else value < limit.value


def _counted_beyond(limit: LimitPlan, figure: Quantity, flow: FlowResult) -> bool | None:
    """Whether a figure of a flow too big to be held lies beyond the limit; None where its sketch leaves that open.

    A percentile lies in a bucket; where the bound does, too, the values up to the bound were counted.
    """
    value = figure.value if figure.value is not None else figure.stands_for
    of, _ = _distributed(figure, flow)
    if of in flow.summaries and flow.summaries[of].of_sample:
        # A sampled value beyond the bound is beyond it; one within says little of the messages not sampled.
        return True if value is not None and _beyond(limit, value) else None
    if figure.value is None or (found := _ranked(figure, flow)) is None:
        return value is not None and _beyond(limit, value)
    sketch, place, less = found
    low, high = sketch.around(place, place)
    if low is None or high is None:
        return None
    low, high = low - less, high - less
    if _beyond(limit, low) == _beyond(limit, high):
        return _beyond(limit, low)
    below, up_to = flow.marks.get((of, limit.value), (None, None))
    if below is None or up_to is None or less:
        return None
    return up_to < place if limit.bound == "at-most" else below >= place


def _ranked(figure: Quantity, flow: FlowResult) -> tuple[Sketch, int, float] | None:
    """The sketch of a percentile, its rank, and the amount subtracted; None for other figures."""
    of, statistic = _distributed(figure, flow)
    sketch, q = _sketch(of, flow), quantile_named(statistic)
    if sketch is None or q is None:
        return None
    less = sketch.minimum if figure.measure == "pdv" else 0.0
    lost = flow.counts["lost"] if figure.measure == "latency_with_loss" else 0
    place = stats.rank(sketch.n + lost, q)
    return (sketch, place, less) if place <= sketch.n else None


def _distributed(figure: Quantity, flow: FlowResult) -> tuple[str, str]:
    """The distribution that a figure is of, and its statistic."""
    if figure.measure == "pair_latency":
        between, _, statistic = figure.statistic.partition(".")
        start, _, end = between.partition("-")
        return distribution_of(start, end), statistic
    if figure.measure == "latency_with_loss":
        return flow.plan.main, figure.statistic
    return ("latency", "p99.9") if figure.measure == "pdv" else (figure.measure, figure.statistic)


def _sketch(of: str, flow: FlowResult) -> Sketch | None:
    """The distribution of this name of a flow too big to be held."""
    if of in flow.sketches:
        return flow.sketches[of]
    return next((pair.values for pair in flow[PAIRS] if distribution_of(pair.start, pair.end) == of), None)


def never_sent(figure: Quantity, flow: FlowResult) -> int:
    """Number of messages that were planned and never sent, for a figure that would have a value of each and lacks it.

    Where the plan gives their due times, the receiver's silence includes them already (`silences.unsent`).
    """
    of_sends = figure.measure in OF_SENDS or figure.statistic.startswith("intended-")
    if of_sends or (figure.measure in OF_SILENCES and not flow.unsent_in_silences):
        return max(flow.planned - flow.counts["sent"], 0)
    return 0


def unseen(figure: Quantity, flow: FlowResult) -> int:
    """Values of the measured part that are not in a figure because the instrument has no timestamp for them.

    What was lost has no latency, by definition and not for want of a timestamp.
    """
    delivered = flow.counts["delivered"] + flow.counts["unknown"]
    if figure.measure == "pair_latency":
        expected = flow.counts["sent"] if figure.statistic.startswith("intended-tx_app.") else delivered
        return max(expected - figure.n, 0)
    of = _definition(figure.measure).rests_on or figure.measure
    contract = of.removesuffix("_violations")
    if contract != of:
        found = next((one for one in flow[CONFORMITY] or () if one.of == contract), None)
        if found is not None and contract == "window":
            return max(delivered - found.outside.n, 0)
        return (found.missing if found is not None else 0) + flow.counts["unknown"]
    summary = flow.summaries.get("residence" if of == "gates" else of)
    if summary is None:
        return 0
    if summary.measure == "residence":
        return summary.excluded.get(UNPAIRED, 0) + flow.counts["unknown"]
    if of == "window_error":
        return max(delivered - summary.n, 0)
    return summary.excluded.get(GAP if of == "period" else NO_TIMESTAMP, 0) + flow.counts["unknown"]


def _could_break(limit: LimitPlan, figure: Quantity, flow: FlowResult, missing: int) -> bool:
    """Whether the limit would fail if every value that was not seen lay beyond it."""
    of, statistic = _distributed(figure, flow)
    q = quantile_named(statistic) if figure.measure not in ("latency_with_loss", "pdv") else None
    if q is None:
        return True
    # Unseen values are assumed at the end that breaks the limit.
    before = 0 if limit.bound == "at-most" else missing
    if flow.sampled is not None:
        sketch = _sketch(of, flow)
        if sketch is None:
            return True
        place = stats.rank(sketch.n + missing, q) - before
        return not 1 <= place <= sketch.n or any(
            edge is None or _beyond(limit, edge) for edge in sketch.around(place, place)
        )
    if of not in flow.series:
        return True
    ascending = np.sort(flow.series[of].value)
    place = stats.rank(len(ascending) + missing, q) - before
    return not 1 <= place <= len(ascending) or _beyond(limit, float(ascending[place - 1]))
