"""Data of the figures, computed here so that figures compute nothing: densities, boxes, tails, time courses.

Every message is in each of them: single values where they are held, sketches of all where they are too many, and over
time the stored extremes of the run.

Repeats of a point are pooled, except in the view against time, where each run has its own clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wiregauge.measures.distribution import Distribution, distribution
from wiregauge.measures.extremes import CourseShape, courses
from wiregauge.measures.metrics.flow_plan import Size
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.stats import BoxShape, DensityShape, HistogramShape, TailShape

__all__ = [
    "BoxShape",
    "CourseShape",
    "DensityShape",
    "HistogramShape",
    "Key",
    "Shapes",
    "TailShape",
    "key_of",
    "shapes",
]

Floats = NDArray[np.float64]

MARKS_AGAINST_TIME = 24_000
"""Marks in all views against time together; beyond it each column keeps its extremes only."""
MOST_FLOWS = 12
"""Number of flows that are drawn: colours and dashes cannot tell more lines in one panel apart."""
MOST_RUNS = 24
"""Number of runs that are drawn against time."""


@dataclass(frozen=True, slots=True)
class Key:
    """The series that a shape belongs to. `rest` is the point without protocol and payload, as the sweep writes it."""

    flow: int
    label: str
    protocol: str
    relayed: bool
    size: Size
    rest: str
    run: int


@dataclass(frozen=True, slots=True)
class Shapes:
    """Data of all figures, in ns (time axes in s), by the series they belong to.

    `main_box` and `against_time` hold the round trip of relayed flows and the one-way latency of others.
    """

    latency: Mapping[Key, DensityShape]
    main_box: Mapping[Key, BoxShape]
    period: Mapping[Key, DensityShape]
    period_box: Mapping[Key, BoxShape]
    send_error: Mapping[Key, DensityShape]
    tail: Mapping[Key, TailShape]
    rtt_tail: Mapping[Key, TailShape]
    against_time: Mapping[Key, CourseShape]
    results: Mapping[Key, FlowResult]
    """Results of every flow, drawn or not."""
    chosen: Mapping[Key, FlowResult]
    """Results of the flows that are drawn: those whose slowest message took longest."""
    left_out: int = 0
    """Flows (at each receiver) that are not drawn."""


def key_of(flow: FlowResult, point: Mapping[str, str], run: int) -> Key:
    """The key of a flow at a point; `run` is the first run of a pooled point."""
    plan = flow.plan
    rest = ", ".join(
        f"{name} {value}" for name, value in point.items() if name not in ("payload", "protocol")
    )
    kind = "relay" if plan.relayed else "one-way"
    return Key(
        flow=plan.id,
        label=f"{plan.protocol} · flow {plan.name} ({kind})",
        protocol=plan.protocol,
        relayed=plan.relayed,
        size=plan.size,
        rest=rest,
        run=run,
    )


def shapes(judgement: Judgement) -> Shapes:
    """The shapes of a judgement; series without values have none."""
    results = {
        key_of(flow, point.point, point.runs[0]): flow for point in judgement.points for flow in point.flows
    }
    flows = _longest(results)
    drawn = set(flows[:MOST_FLOWS])
    chosen = {key: flow for key, flow in results.items() if _flow(key, flow) in drawn}
    values = {
        name: {key: held for key, flow in chosen.items() if (held := distribution(flow, name)) is not None}
        for name in ("latency", "period", "send_error", "rtt")
    }
    latency_span = _span(list(values["latency"].values()))
    error_span = _span(list(values["send_error"].values()))
    return Shapes(
        latency=_densities(values["latency"], latency_span, log=True),
        main_box={
            key: shape
            for key, flow in chosen.items()
            if (v := values[flow.plan.main].get(key)) is not None and (shape := v.box()) is not None
        },
        period={key: _period_density(held) for key, held in values["period"].items()},
        period_box={key: shape for key, v in values["period"].items() if (shape := v.box()) is not None},
        send_error=_densities(values["send_error"], error_span, log=True),
        tail={key: v.tail() for key, v in values["latency"].items()},
        rtt_tail={key: v.tail() for key, v in values["rtt"].items()},
        against_time=_against_time(judgement, drawn),
        results=results,
        chosen=chosen,
        left_out=max(len(flows) - MOST_FLOWS, 0),
    )


def _against_time(judgement: Judgement, drawn: set[tuple[int, int]]) -> dict[Key, CourseShape]:
    """The main measure of the flows that are drawn, in every run that is."""
    each_run = [
        (run, flows)
        for run in judgement.runs[:MOST_RUNS]
        if (
            flows := [
                flow
                for flow in run.flows
                if (flow.plan.id, flow.plan.receiver) in drawn and flow.summaries[flow.plan.main].n
            ]
        )
    ]
    columns = max(200, MARKS_AGAINST_TIME // max(sum(len(flows) for _, flows in each_run), 1)) // 2
    found = {}
    for run, flows in each_run:
        of_run = courses(judgement, run.plan, flows)
        for flow in flows:
            course = of_run.of(flow.plan, flow.plan.main)
            if course is not None:
                found[key_of(flow, run.plan.point, run.plan.index)] = course.columns(columns)
    return found


def _flow(key: Key, flow: FlowResult) -> tuple[int, int]:
    return key.flow, flow.plan.receiver


def _longest(results: Mapping[Key, FlowResult]) -> list[tuple[int, int]]:
    """Flows at their receivers, the one with the longest latency first; those without one last."""
    greatest: dict[tuple[int, int], float] = {}
    for key, flow in results.items():
        found = flow.summaries["latency"].maximum
        longest = greatest.get(_flow(key, flow), -np.inf)
        greatest[_flow(key, flow)] = max(longest, found if found is not None else -np.inf)
    return sorted(greatest, key=lambda flow: -greatest[flow])


def _span(series: Sequence[Distribution]) -> tuple[float, float] | None:
    """The range that all panels of a figure share: from the least to the greatest positive value, with a margin."""
    positive = [one.values[one.values > 0] for one in series]
    positive = [v for v in positive if len(v)]
    if not positive:
        return None
    return min(float(v.min()) for v in positive) / 1.15, max(float(v.max()) for v in positive) * 1.15


def _densities(
    values: Mapping[Key, Distribution], span: tuple[float, float] | None, *, log: bool
) -> dict[Key, DensityShape]:
    return {key: held.density(log=log, span=span) for key, held in values.items()}


def _period_density(periods: Distribution) -> DensityShape:
    """Density of the central 98 %: a few late sends would squeeze the rest into one line; the box plot shows them."""
    low, high = periods.quantiles(0.01, 0.99)
    margin = max((high - low) * 0.15, abs(high) * 1e-6, 1.0)
    return periods.density(span=(low - margin, high + margin))
