"""Checks of the basis of figures: no deviating beginning, stationarity, effective number of values."""

from __future__ import annotations

from collections.abc import Iterator

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.measures.metrics.judgement import Check, FlowResult, Grade
from wiregauge.measures.metrics.summary import Stationarity, Summary
from wiregauge.measures.validity.evidence import Evidence, check, few, percent
from wiregauge.stats import FALSE_ALARMS, FALSE_WARM_UP

__all__ = ["steadiness"]

WORTH_NOTED = 0.1


def steadiness(run: Evidence) -> Iterator[Check]:
    """Checks that figures rest on: no deviating beginning, stationarity, effective number of values."""
    tested = [(flow, s) for flow in run.flows if (s := _stationarity(flow)) is not None]
    short = "" if tested else "too few messages to test"
    named = few(
        _beginning(flow, main)
        for flow in run.flows
        if (main := _main(flow)) is not None and main.settling is not None
    )
    yield check(
        "warm-up",
        "Warm-up long enough",
        f"noted: first values that differ from the rest (MSER-5; false alarms {percent(FALSE_WARM_UP)})",
        named or "the beginning does not differ from the rest",
        Grade.NOTE if named else Grade.OK,
        f"a change near the start, which is in every figure: {named}; "
        "where it belongs to the warm-up, lengthen the warm-up",
        nothing=short,
    )
    moving = [(flow, s) for flow, s in tested if s.steady is False]
    unknown = [flow.plan.name for flow, s in tested if s.steady is None]
    found = few(
        f"flow {flow.plan.name} (median {duration(s.median_first_half, 3)} in the first half, "
        f"{duration(s.median_second_half, 3)} in the second{', its tail changes' if s.changes == 'tail' else ''})"
        for flow, s in moving
    )
    untested = f"too correlated to test: {few(f'flow {name}' for name in unknown)}" if unknown else ""
    yield check(
        "stationary",
        "Stationary",
        f"noted: latency or round trip that drifts or changes (false alarms {percent(FALSE_ALARMS)})",
        "; ".join(text for text in (found and f"not: {found}", untested) if text)
        or f"{len(tested)} of {len(run.flows)} flows",
        Grade.NOTE if moving or unknown else Grade.OK,
        "the figures describe this run only, not a run of another length: "
        + "; ".join(text for text in (found and f"not stationary: {found}", untested) if text),
        nothing=short,
    )
    worth = [
        (flow.plan.name, main.n_effective, main.n)
        for flow in run.flows
        if (main := _main(flow)) is not None and main.n_effective is not None
    ]
    poor = few(f"flow {name} {own:.0f} of {n}" for name, own, n in worth if own < WORTH_NOTED * n)
    yield check(
        "independence",
        "Values independent",
        f"noted: an effective n below {percent(WORTH_NOTED)} of n",
        poor or f"effective n at least {percent(WORTH_NOTED)} of n",
        Grade.NOTE if poor else Grade.OK,
        f"neighbouring values are correlated, so intervals are wide: effective n {poor}",
        nothing="" if worth else "too few messages to test",
    )


def _beginning(flow: FlowResult, main: Summary) -> str:
    early = main.settling
    if early is None:
        return ""
    values = f"{count_of(early.n, 'value')}{' of the sample' if flow.sampled is not None else ''}"
    told = [
        f"{name} would be {duration(value)}"
        for name in ("p50", "p99")
        if (value := getattr(early.without, name)) is not None
    ]
    without = "; with them left out " + " and ".join(told) if told else ""
    around = f"{duration(early.minimum)} to {duration(early.maximum)}"
    return f"flow {flow.plan.name}: the first {values} differ ({around}){without}"


def _main(flow: FlowResult) -> Summary | None:
    return flow.summaries.get(flow.plan.main)


def _stationarity(flow: FlowResult) -> Stationarity | None:
    main = _main(flow)
    return main.stationarity if main is not None else None
