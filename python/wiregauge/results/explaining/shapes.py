"""Data of an explanation's figures, computed here so that figures compute nothing. Bounded, however long the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from wiregauge import stats
from wiregauge.measures.explaining.explanation import Explanation, FlowExplained, Step
from wiregauge.measures.extremes import Courses, CourseShape
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.judgement import Floats, Judgement
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.stats import EnvelopeShape, Mode

MARKS = 3_000
"""Number of marks of a series; beyond it, minimum and maximum of equal intervals are drawn."""
FOLDED_MARKS = 1_500
MOST_BANDS = 250
"""Bands of a mode that are shaded."""
MOST_FOLDED = 3
MOST_LANES = 10


class BandShape(Struct, frozen=True):
    """Bands of a mode: begin of each (s), their length, and their total number."""

    start: Floats
    duration: float
    total: int


class FoldedShape(Struct, frozen=True):
    """A series folded with the period of a mode: time from the start of the cycle, s, and values, ns.

    The band lies from `begin` to `end`, in the middle of the cycle.
    """

    points: EnvelopeShape
    period: float
    begin: float
    end: float


class LadderShape(Struct, frozen=True):
    """The consecutive steps of a message, ns from its sending; `texts` have details of each."""

    name: str
    kinds: tuple[str, ...]
    start: Floats
    took: Floats
    texts: tuple[str, ...]


class ExplainedShape(Struct, frozen=True):
    """The data of all figures of one flow."""

    found: FlowExplained
    series: CourseShape
    low: float
    high: float
    bands: tuple[BandShape, ...]
    folded: tuple[FoldedShape, ...]
    ladders: tuple[LadderShape, ...]


def explained_shapes(judgement: Judgement, explanation: Explanation) -> list[ExplainedShape]:
    """The shapes of every flow of an explanation of a judged run directory.

    Raises RunDirectoryError for a damaged file of the run directory.
    """
    directory = open_recorded(judgement.directory)
    of_runs: dict[int, tuple[RunPlan, list[FlowPlan]]] = {}
    for found in explanation.flows:
        of_runs.setdefault(found.run.index, (found.run, []))[1].append(found.flow)
    courses = {index: Courses(directory, run, flows) for index, (run, flows) in of_runs.items()}
    shapes = []
    for found in explanation.flows:
        course = courses[found.run.index].of(found.flow, found.series[0].measure)
        assert course is not None  # what is explained has values
        shapes.append(_shape(found, course.columns(MARKS // 2)))
    return shapes


def _shape(found: FlowExplained, series: CourseShape) -> ExplainedShape:
    main = found.series[0]
    t, value = main.series.t, main.series.value
    modes = main.recurrence.modes
    return ExplainedShape(
        found,
        series,
        float(np.nanmin(series.least)),
        float(np.nanmax(series.greatest)),
        tuple(_bands(mode, float(t[0]), float(t[-1])) for mode in modes),
        tuple(_folded(mode, t, value) for mode in modes[:MOST_FOLDED]),
        _ladders(found),
    )


def _bands(mode: Mode, begin: float, end: float) -> BandShape:
    first = (
        mode.start
        + np.ceil((begin - mode.start - mode.duration.value) / mode.period.value) * mode.period.value
    )
    total = max(int((end - first) / mode.period.value) + 1, 0)
    starts = first + np.arange(min(total, MOST_BANDS)) * mode.period.value
    return BandShape(starts, mode.duration.value, total)


def _folded(mode: Mode, t: Floats, value: Floats) -> FoldedShape:
    period, width = mode.period.value, mode.duration.value
    lead = (period - width) / 2
    phase = (t - mode.start + lead) % period
    order = np.argsort(phase, kind="stable")
    return FoldedShape(stats.envelope(phase[order], value[order], FOLDED_MARKS), period, lead, lead + width)


def _ladders(found: FlowExplained) -> tuple[LadderShape, ...]:
    shown = [message for message in found.worst[:MOST_LANES] if message.steps]
    if not shown:
        return ()
    made = [
        _ladder(f"{message.sequence}", message.steps, [step.took for step in message.steps])
        for message in shown
    ]
    first = shown[0].steps
    if all(step.usual is not None for step in first):
        made.append(_ladder("usual", first, [step.usual or 0.0 for step in first]))
    return tuple(made)


def _ladder(name: str, steps: Sequence[Step], took: Sequence[float]) -> LadderShape:
    # A step that clocks make negative has no bar.
    lengths = np.maximum(np.array(took), 0.0)
    texts = tuple(f"{step.title}: {length / 1e3:.3f} µs" for step, length in zip(steps, took, strict=True))
    return LadderShape(
        name,
        tuple(step.kind for step in steps),
        np.concatenate([[0.0], np.cumsum(lengths)[:-1]]),
        lengths,
        texts,
    )
