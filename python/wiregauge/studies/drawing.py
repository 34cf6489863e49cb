"""Figures of flows' time series in the papers' styles: over time, against rarity, as histograms, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.figures.model import Axis, Bars, Figure, Line, Panel, Scatter, Trace
from wiregauge.figures.palette import side
from wiregauge.figures.traces import US, rarities, tail_lines
from wiregauge.measures.metrics.judgement import Series
from wiregauge.studies.measured import Measured
from wiregauge.studies.results import Course

__all__ = ["against_rarity", "as_counts", "over_time", "with_extremes"]

MARKS = 6_000
"""The most points drawn for a series; beyond it only the extremes of each interval."""

Floats = NDArray[np.float64]


def over_time(
    name: str, title: str, courses: Mapping[str, Course], within: tuple[float, float] | None = None
) -> list[Figure]:
    """A panel for each series, µs, over the time of its run, s, or the part `within`; no figure without series."""
    panels = []
    marks = max(MARKS // max(len(courses), 1), 500)
    notes = []
    for k, (label, course) in enumerate(courses.items()):
        cut = _within(course.series, within)
        if cut is None:
            continue
        shape = stats.envelope(cut.t, cut.value / US, marks)
        trace = Scatter(label, shape.t, shape.value, side(k), 3, 0.7, legend=False)
        panels.append(Panel(label, Axis("time in the run (s)"), Axis("time (µs)"), [trace]))
        if shape.per_mark > 1:
            notes.append(f"{label}: the least and the greatest of every {shape.per_mark} messages are drawn.")
    return _figure(name, title, panels, min(len(panels), 2), notes)


def _within(series: Series | None, within: tuple[float, float] | None) -> Series | None:
    if series is None or within is None:
        return series
    first = float(series.t[0])
    chosen = (series.t - first >= within[0]) & (series.t - first < within[1])
    return Series(series.t[chosen], series.value[chosen]) if chosen.any() else None


def against_rarity(name: str, title: str, courses: Mapping[str, Course]) -> list[Figure]:
    """The complementary distributions in one panel: value against rarity."""
    traces: list[Trace] = []
    most = 1.0
    for k, (label, course) in enumerate(courses.items()):
        if course.series is None:
            continue
        shape = stats.tail(np.sort(course.series.value))
        most = max(most, float(shape.one_in[-1]))
        traces += tail_lines(shape, label, side(k), legend=False)
    if not traces:
        return []
    ticks = rarities(most, 8)
    x = Axis("percentile", log=True, ticks=ticks, span=(1.0, most * 1.1))
    return _figure(name, title, [Panel("", x, Axis("time (µs)", log=True), traces)], 1, [])


def as_counts(name: str, title: str, courses: Mapping[str, Course], bin_ns: float) -> list[Figure]:
    """A histogram for each series with bins of `bin_ns`; ns."""
    panels = []
    for k, (label, course) in enumerate(courses.items()):
        if course.series is None:
            continue
        values = course.series.value
        first, last = (np.floor(float(edge(values)) / bin_ns) for edge in (np.min, np.max))
        edges = (np.arange(first, last + 2) - 0.5) * bin_ns
        shape = stats.histogram(values, edges)
        at = (shape.edges[:-1] + shape.edges[1:]) / 2
        counts = shape.counts.astype(np.float64)
        bars = Bars(label, at, counts, np.zeros(len(at)), 0.9 * bin_ns, side(k), legend=False)
        panels.append(Panel(label, Axis("time (ns)"), Axis("messages"), [bars]))
    return _figure(name, title, panels, min(len(panels), 3), [])


def with_extremes(
    name: str,
    title: str,
    x: str,
    points: Sequence[tuple[float, Measured, Measured, Measured]],
    lines: Mapping[str, tuple[float, float]] | None = None,
) -> list[Figure]:
    """Means with bars from minimum to maximum, `(x, min, mean, max)` in ns; `lines` are (slope, intercept)."""
    whole = [
        (place, low.value, mean.value, high.value)
        for place, low, mean, high in points
        if low.value is not None and mean.value is not None and high.value is not None
    ]
    if not whole:
        return []
    at, bottom, middle, top = (np.array(column, dtype=np.float64) for column in zip(*whole, strict=True))
    width = 0.02 * (float(np.ptp(at)) or 1.0)
    traces: list[Trace] = [
        Bars("least to greatest", at, top - bottom, bottom, width, side(1)),
        Scatter("mean", at, middle, side(0), size=7),
    ]
    for k, (label, (slope, intercept)) in enumerate((lines or {}).items()):
        ends = np.array([min(float(at.min()), 0.0), float(at.max())])
        traces.append(Line(label, ends, slope * ends + intercept, side(2 + k)))
    return _figure(name, title, [Panel("", Axis(x), Axis("time (ns)"), traces)], 1, [])


def _figure(
    name: str, title: str, panels: Sequence[Panel], columns: int, notes: Sequence[str]
) -> list[Figure]:
    if not panels:
        return []
    return [
        Figure(
            name,
            title,
            "",
            list(panels),
            columns,
            share_x=False,
            share_y=False,
            notes=notes,
            panel_height=280,
        )
    ]
