"""Traces of shapes that several figures draw; times in µs."""

from __future__ import annotations

import numpy as np

from wiregauge.figures.model import Box, Line, Style, Trace
from wiregauge.measures.shapes import BoxShape, TailShape

US = 1e3


def tail_lines(shape: TailShape, label: str, style: Style, *, legend: bool = True) -> list[Trace]:
    """A distribution against rarity; thin dots where n is too small for the percentile, in the legend or not."""
    solid = shape.one_in <= shape.supported_to
    join = int(np.flatnonzero(solid)[-1]) if solid.any() else 0
    faint = Style(style.colour, "dot", style.marker, 1.0)
    known, beyond = slice(0, join + 1), slice(join, None)
    rest = f"{label}: beyond n"
    return [
        Line(label, shape.one_in[known], shape.value[known] / US, style),
        Line(rest, shape.one_in[beyond], shape.value[beyond] / US, faint, legend=legend),
    ]


def box_of(shape: BoxShape, name: str, x: float, width: float, style: Style) -> Box:
    """A box with its whiskers and outliers."""
    return Box(
        name,
        x,
        width,
        shape.low_whisker / US,
        shape.q1 / US,
        shape.median / US,
        shape.q3 / US,
        shape.high_whisker / US,
        shape.outliers / US,
        style,
    )


def rarities(most: float, decades: int = 8) -> list[tuple[float, str]]:
    """Ticks of an axis of rarity up to one in `most`: each ten times rarer than the one before."""
    each = ((10.0**k, f"{100 - 100 / 10.0**k:.{max(k - 2, 0)}f} %") for k in range(decades))
    return [tick for tick in each if tick[0] <= most * 1.5]
