"""Figures of one measure of one flow: its density, percentiles, values against time, box and histogram."""

from __future__ import annotations

import numpy as np

from wiregauge.figures.model import Axis, Bars, Figure, Line, Panel, Scatter, Trace
from wiregauge.figures.palette import variety
from wiregauge.figures.traces import US, beyond_note, box_of, courses_note, rarities, tail_lines
from wiregauge.results.shapes import BoxShape, CourseShape, DensityShape, HistogramShape, TailShape

Shape = DensityShape | TailShape | CourseShape | BoxShape | HistogramShape


def draw_shape(shape: Shape, measure: str, title: str, label: str, protocol: str) -> Figure:
    """The figure for the type of a shape. Times are drawn in µs; `label` names the flow and point."""
    style = variety(protocol, 0)
    axis = f"{title.lower()} (µs)"
    notes: list[str] = []
    match shape:
        case DensityShape():
            scale = 1.0 if shape.log else US
            x = Axis(axis, log=shape.log)
            y = Axis("density (1/decade)" if shape.log else "density (1/µs)")
            traces: list[Trace] = [Line(label, shape.x / US, shape.y * scale, style, filled=True)]
            if shape.constant is not None:
                traces = [Line(label, np.full(2, shape.constant / US), np.array([0.0, 1.0]), style)]
                y = Axis(y.title, ticks=[(0.0, "0")])
                notes.append("All values are equal, which is no density.")
            if shape.outside:
                notes.append(f"{shape.outside} values are not positive and not drawn.")
        case TailShape():
            traces = tail_lines(shape, label, style)
            most = float(shape.one_in[-1])
            x = Axis("percentile", log=True, ticks=rarities(most), span=(1.0, most * 1.1))
            y = Axis(axis)
            if float(shape.supported_to) < most:
                notes.append("Beyond the full line n is too small to know the percentile.")
        case CourseShape():
            t, value = shape.marks()
            traces = [Scatter(label, t, value / US, style, 3, 0.7)]
            x, y = Axis("time in the run (s)"), Axis(axis)
            notes.append(courses_note([shape], "values"))
        case BoxShape():
            traces = [box_of(shape, label, 0.0, 0.5, style)]
            x, y = Axis("", ticks=[(0.0, label)], span=(-0.6, 0.6)), Axis(axis)
            notes.append("Whiskers at p1 and p99; " + beyond_note(shape.outside, len(shape.outliers)))
        case HistogramShape():
            edges = shape.edges / US
            width = float(edges[1] - edges[0])
            middle = (edges[1:] + edges[:-1]) / 2
            traces = [
                Bars(label, middle, shape.counts.astype(np.float64), np.zeros(len(middle)), width, style)
            ]
            x, y = Axis(axis), Axis("values")
    return Figure(
        f"{measure}-{type(shape).__name__}",
        f"{title}: {label}",
        "",
        [Panel(label, x, y, traces)],
        notes=notes,
        measures=[measure],
        panel_height=360,
    )
