"""Figures of one measure of one flow: its density, percentiles, values against time, box and histogram."""

from __future__ import annotations

import numpy as np

from wiregauge.figures.model import Axis, Bars, Box, Figure, Line, Panel, Scatter, Style, Trace
from wiregauge.figures.palette import variety
from wiregauge.measures.shapes import BoxShape, DensityShape, EnvelopeShape, HistogramShape, TailShape

US = 1e3
_RARITY = tuple((10.0**k, f"{100 - 100 / 10.0**k:.{max(k - 2, 0)}f} %") for k in range(8))
Shape = DensityShape | TailShape | EnvelopeShape | BoxShape | HistogramShape


def draw_shape(shape: Shape, measure: str, title: str, label: str, protocol: str) -> Figure:
    """The figure that suits the shape. Times are drawn in µs; `label` says of which flow and point they are."""
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
            traces = _tail(shape, label, style)
            most = float(shape.one_in[-1])
            x = Axis(
                "percentile",
                log=True,
                ticks=[t for t in _RARITY if t[0] <= most * 1.5],
                span=(1.0, most * 1.1),
            )
            y = Axis(axis)
            notes.append("Beyond the full line n is too small to know the percentile.")
        case EnvelopeShape():
            traces = [Scatter(label, shape.t, shape.value / US, style, 3, 0.7)]
            x, y = Axis("time in the run (s)"), Axis(axis)
            if shape.per_mark > 1:
                notes.append(f"The least and the greatest of every {shape.per_mark} values are drawn.")
        case BoxShape():
            traces = [
                Box(
                    label,
                    0.0,
                    0.5,
                    shape.low_whisker / US,
                    shape.q1 / US,
                    shape.median / US,
                    shape.q3 / US,
                    shape.high_whisker / US,
                    shape.outliers / US,
                    style,
                )
            ]
            x, y = Axis("", ticks=[(0.0, label)], span=(-0.6, 0.6)), Axis(axis)
            notes.append(
                "Whiskers at p1 and p99; of the values beyond at most 60 are drawn, extremes among them."
            )
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


def _tail(shape: TailShape, label: str, style: Style) -> list[Trace]:
    solid = shape.one_in <= shape.supported_to
    join = int(np.flatnonzero(solid)[-1]) if solid.any() else 0
    faint = Style(style.colour, "dot", style.marker, 1.0)
    known, beyond = slice(0, join + 1), slice(join, None)
    return [
        Line(label, shape.one_in[known], shape.value[known] / US, style),
        Line(f"{label}: beyond n", shape.one_in[beyond], shape.value[beyond] / US, faint),
    ]
