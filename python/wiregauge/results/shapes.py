"""Data of the figures, computed here so that figures compute nothing: densities, boxes, tails, time courses.

Every message is in each of them: single values where they are held, sketches of all where they are too many, and over
time the stored extremes of the run.

Repeats of a point are pooled, except in the view against time, where each run has its own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.measures.distribution import Distribution, distribution
from wiregauge.measures.extremes import CourseShape, courses
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan, Size
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, Series
from wiregauge.stats import ECDF_POINTS, BoxShape, DensityShape, EcdfShape, HistogramShape, TailShape

__all__ = [
    "ECDF_POINTS",
    "BoxShape",
    "CourseShape",
    "DensityShape",
    "EcdfShape",
    "HistogramShape",
    "Key",
    "Member",
    "NotHeldError",
    "Selection",
    "Shapes",
    "Side",
    "TailShape",
    "full_label",
    "key_of",
    "shapes",
    "shapes_of",
    "short_labels",
]

Floats = NDArray[np.float64]

MARKS_AGAINST_TIME = 24_000
"""Marks in all views against time together; beyond it each column keeps its extremes only."""
MOST_FLOWS = 12
"""Number of flows that are drawn: colours and dashes cannot tell more lines in one panel apart."""
MOST_RUNS = 24
"""Number of runs that are drawn against time."""


class NotHeldError(ValueError):
    """The values that a figure needs are not held; the text says why and what shows them, in one sentence."""


class Key(Struct, frozen=True):
    """The series that a shape belongs to.

    `rest` is the point without protocol and payload, as the sweep writes it; `side` the name of its run directory,
    where a figure has several.
    """

    flow: int
    name: str
    label: str
    protocol: str
    relayed: bool
    size: Size
    rest: str
    run: int
    side: str = ""

    @property
    def main(self) -> str:
        """The measure that its flow is there for, as `FlowPlan.main`."""
        return "rtt" if self.relayed else "latency"


class Side(Struct, frozen=True):
    """A run directory in a figure; `name` tells it from the others and is empty for the only one."""

    judgement: Judgement
    name: str = ""


class Selection(Struct, frozen=True):
    """The part of run directories that a figure shows; the default is all of them.

    `flows` are numbers, or `"10 to sensor"` for one receiver of a multicast flow; `at` are values of axes of the
    sweep; `begin_s` and `end_s` limit the sending times, s since the epoch of each run, the end exclusive.
    """

    flows: tuple[str, ...] = ()
    at: Mapping[str, str] = field(default_factory=dict)
    begin_s: float | None = None
    end_s: float | None = None

    def has_flow(self, flow: FlowPlan) -> bool:
        """Whether a flow is selected."""
        return not self.flows or any(flow.is_called(name) for name in self.flows)

    def has_point(self, point: Mapping[str, str]) -> bool:
        """Whether a point of the sweep is selected."""
        return all(point.get(axis) == value for axis, value in self.at.items())


class Member(Struct, frozen=True):
    """A flow of one run, whose course over time is drawn."""

    key: Key
    judgement: Judgement
    run: RunPlan
    flow: FlowResult


class Shapes:
    """Data of all figures of some flows, in ns (time axes in s), by the series they belong to.

    Where a method takes a measure, None is the main one of each flow: the round trip of relayed flows, and the one-way
    latency of others. A series without values has no shape.
    """

    def __init__(
        self,
        results: Mapping[Key, FlowResult],
        chosen: Mapping[Key, FlowResult],
        members: Sequence[Member],
        *,
        left_out: int = 0,
        selection: Selection | None = None,
        marks: int = MARKS_AGAINST_TIME,
    ) -> None:
        self.results = results
        """Results of every flow, drawn or not."""
        self.chosen = chosen
        """Results of the flows that are drawn: those whose slowest message took longest."""
        self.left_out = left_out
        """Flows (at each receiver) that are not drawn."""
        self._members, self._marks = members, marks
        self._selection = selection or Selection()
        self._values: dict[str | None, dict[Key, Distribution]] = {}

    def run_titles(self) -> dict[tuple[str, int], str]:
        """What tells the runs that are drawn against time apart, by run directory and index; empty for the only one."""
        runs = {(one.key.side, one.run.index): one for one in self._members}
        titles = {}
        for (side, index), one in runs.items():
            point = ", ".join(one.run.point.values())
            repeat = f"repeat {one.run.repeat}" if one.judgement.plan.repeats > 1 else ""
            of_side = sum(other == side for other, _ in runs)
            parts = [side, point or (f"run {index}" if of_side > 1 and not repeat else ""), repeat]
            titles[side, index] = ", ".join(filter(None, parts))
        return titles

    def values(self, measure: str | None) -> Mapping[Key, Distribution]:
        """The distribution of each drawn flow, of the messages sent in the chosen part of time.

        Raises NotHeldError for a part of a run whose single values are not held.
        """
        if measure not in self._values:
            self._values[measure] = {
                key: held
                for key, flow in self.chosen.items()
                if (held := self._distribution(flow, measure or key.main)) is not None
            }
        return self._values[measure]

    def _distribution(self, flow: FlowResult, measure: str) -> Distribution | None:
        begin, end = self._selection.begin_s, self._selection.end_s
        if begin is None and end is None:
            return distribution(flow, measure)
        if flow.sampled is not None:
            raise NotHeldError(
                f"flow {flow.plan.name} is too large to hold its single values, so the distribution of a part of its "
                "time is not known; draw it over time, or leave the part of time out"
            )
        series = flow.series.get(measure)
        if series is None:
            return None
        values = _within(series, begin, end)
        return Distribution(values) if len(values) else None

    def densities(self, measure: str | None) -> dict[Key, DensityShape]:
        """Densities over one range: logarithmic where values span more than a decade and few are not positive."""
        held = self.values(measure)
        log = _spans_a_decade(held.values())
        span = _span(held.values()) if log else None
        return {key: one.density(log=log, span=span) for key, one in held.items()}

    def central_densities(self, measure: str | None) -> dict[Key, DensityShape]:
        """Densities of the central 98 %: a few late sends would squeeze the rest into one line; a box has them all."""
        return {key: _central(one) for key, one in self.values(measure).items()}

    def boxes(self, measure: str | None) -> dict[Key, BoxShape]:
        """Quartiles, whiskers and outliers."""
        return {key: box for key, one in self.values(measure).items() if (box := one.box()) is not None}

    def tails(self, measure: str | None) -> dict[Key, TailShape]:
        """Values against their rarity."""
        return {key: one.tail() for key, one in self.values(measure).items()}

    def ecdfs(self, measure: str | None) -> dict[Key, EcdfShape]:
        """Empirical distribution functions."""
        return {key: one.ecdf() for key, one in self.values(measure).items()}

    def histograms(self, measure: str | None, bins: int) -> dict[Key, HistogramShape]:
        """Counts in `bins` equal classes from the least to the greatest of all values."""
        held = self.values(measure)
        if not held:
            return {}
        low = min(float(one.values.min()) for one in held.values())
        high = max(float(one.values.max()) for one in held.values())
        edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
        return {key: one.histogram(edges) for key, one in held.items()}

    def courses(self, measure: str | None) -> dict[Key, CourseShape]:
        """The measure of the drawn flows over time, in every run that is drawn."""
        measured = [
            one
            for one in self._members
            if (summary := one.flow.summaries.get(measure or one.key.main)) is not None and summary.n
        ]
        columns = max(200, self._marks // max(len(measured), 1)) // 2
        begin, end = self._selection.begin_s, self._selection.end_s
        found = {}
        for (judgement, run), members in _by_run(measured):
            of_run = courses(judgement, run, [one.flow for one in members])
            for one in members:
                course = of_run.of(one.flow.plan, measure or one.key.main)
                if course is None:
                    continue
                shape = course.columns(columns, begin, end)
                if shape.values:
                    found[one.key] = shape
        return found


def _by_run(members: Sequence[Member]) -> Iterator[tuple[tuple[Judgement, RunPlan], list[Member]]]:
    groups: dict[tuple[int, int], list[Member]] = {}
    for one in members:
        groups.setdefault((id(one.judgement), one.run.index), []).append(one)
    for group in groups.values():
        yield (group[0].judgement, group[0].run), group


def full_label(flow: FlowPlan, side: str) -> str:
    """A series by flow, protocol and kind."""
    kind = "relay" if flow.relayed else "one-way"
    label = f"{flow.protocol} · flow {flow.name} ({kind})"
    return f"{side}: {label}" if side else label


def short_labels(flows: Iterable[tuple[FlowPlan, str]]) -> Callable[[FlowPlan, str], str]:
    """What tells these flows (each with the name of its run directory) apart, and no more."""
    among = list(flows)
    names, protocols, sides = (
        (len(set(values)) for values in zip(*((f.name, f.protocol, side) for f, side in among), strict=True))
        if among
        else (0, 0, 0)
    )

    def label(flow: FlowPlan, side: str) -> str:
        parts = [side] if sides > 1 else []
        parts += [flow.protocol] if protocols > 1 else []
        parts += [f"flow {flow.name}"] if names > 1 or not parts else []
        return ", ".join(parts)

    return label


def key_of(
    flow: FlowResult,
    point: Mapping[str, str],
    run: int,
    side: str = "",
    label: Callable[[FlowPlan, str], str] = full_label,
) -> Key:
    """The key of a flow at a point; `run` is the first run of a pooled point."""
    plan = flow.plan
    rest = ", ".join(
        f"{name} {value}" for name, value in point.items() if name not in ("payload", "protocol")
    )
    return Key(
        flow=plan.id,
        name=plan.name,
        label=label(plan, side),
        protocol=plan.protocol,
        relayed=plan.relayed,
        size=plan.size,
        rest=rest,
        run=run,
        side=side,
    )


def shapes(judgement: Judgement) -> Shapes:
    """The shapes of a judgement, for its report."""
    return shapes_of([Side(judgement)])


def shapes_of(sides: Sequence[Side], selection: Selection | None = None, *, short: bool = False) -> Shapes:
    """The shapes of a part of one or several judgements; labels are `short` where little room is for them."""
    part = selection or Selection()
    found = [
        (side.name, point, flow)
        for side in sides
        for point in side.judgement.points
        if part.has_point(point.point)
        for flow in point.flows
        if part.has_flow(flow.plan)
    ]
    label = short_labels((flow.plan, side) for side, _, flow in found) if short else full_label
    results = {key_of(flow, point.point, point.runs[0], side, label): flow for side, point, flow in found}
    flows = _longest(results)
    drawn = set(flows[:MOST_FLOWS])
    members = [
        Member(key_of(flow, run.plan.point, run.plan.index, side.name, label), side.judgement, run.plan, flow)
        for side in sides
        for run in [run for run in side.judgement.runs if part.has_point(run.plan.point)][:MOST_RUNS]
        for flow in run.flows
        if part.has_flow(flow.plan) and (flow.plan.id, flow.plan.receiver) in drawn
    ]
    return Shapes(
        results,
        {key: flow for key, flow in results.items() if _flow(key, flow) in drawn},
        members,
        left_out=max(len(flows) - MOST_FLOWS, 0),
        selection=part,
    )


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


def _within(series: Series, begin: float | None, end: float | None) -> Floats:
    """The values of messages sent in a part of time."""
    low, high = -np.inf if begin is None else begin, np.inf if end is None else end
    return np.asarray(series.value[(series.t >= low) & (series.t < high)])


def _spans_a_decade(series: Iterable[Distribution]) -> bool:
    """Whether values are best told apart on a logarithmic axis; 1 % of each series may be missing on it."""
    ends = [(one.quantiles(0.01)[0], float(one.values.max())) for one in series]
    low, high = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=0.0)
    return low > 0 and high > 10 * low


def _span(series: Iterable[Distribution]) -> tuple[float, float] | None:
    """The range that all panels of a figure share: from the least to the greatest positive value, with a margin."""
    positive = [one.values[one.values > 0] for one in series]
    positive = [v for v in positive if len(v)]
    if not positive:
        return None
    return min(float(v.min()) for v in positive) / 1.15, max(float(v.max()) for v in positive) * 1.15


def _central(values: Distribution) -> DensityShape:
    low, high = values.quantiles(0.01, 0.99)
    margin = max((high - low) * 0.15, abs(high) * 1e-6, 1.0)
    return values.density(span=(low - margin, high + margin))
