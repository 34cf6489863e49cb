"""A figure as data: panels of traces with titled axes. Renderers draw it; nothing here knows a drawing library.

All coordinates are in the unit of the axis title. A figure as data can be compared, tested and drawn by any renderer;
so it has no callbacks and computes no statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dash = Literal["solid", "dash", "dot", "dashdot"]
Marker = Literal["circle", "square", "diamond", "triangle-up", "x", "cross"]


class Style(Struct, frozen=True):
    """Colour, dash and marker of a variety; each alone distinguishes the varieties."""

    colour: str
    dash: Dash = "solid"
    marker: Marker = "circle"
    width: float = 1.8


class Line(Struct, frozen=True):
    """Points joined in order; `filled` shades down to the axis, `steps` joins by steps, `markers` shows the points."""

    name: str
    x: Floats
    y: Floats
    style: Style
    filled: bool = False
    steps: bool = False
    markers: bool = False
    legend: bool = True


class Band(Struct, frozen=True):
    """The area between two curves over the same x."""

    name: str
    x: Floats
    low: Floats
    high: Floats
    style: Style


class Scatter(Struct, frozen=True):
    """Separate points, with optional texts above (or below) them; `hints` appear on hover only."""

    name: str
    x: Floats
    y: Floats
    style: Style
    size: float = 4
    opacity: float = 1.0
    texts: Sequence[str] = ()
    texts_below: bool = False
    hints: Sequence[str] = ()
    legend: bool = True


class Box(Struct, frozen=True):
    """A box with given quartiles and whiskers at `x`, `width` wide, with the outliers that are shown."""

    name: str
    x: float
    width: float
    low: float
    q1: float
    median: float
    q3: float
    high: float
    outliers: Floats
    style: Style
    legend: bool = True


class Bars(Struct, frozen=True):
    """Bars over `x`, each from `base` and `height` high."""

    name: str
    x: Floats
    height: Floats
    base: Floats
    width: float
    style: Style
    pattern: str = ""
    legend: bool = True


class Spans(Struct, frozen=True):
    """Horizontal bars, each from `start` and `length` long, `height` high around `lane`; `hollow` draws edges only."""

    name: str
    lane: Floats
    start: Floats
    length: Floats
    height: float
    style: Style
    texts: Sequence[str] = ()
    hollow: bool = False
    legend: bool = True


class Rule(Struct, frozen=True):
    """A vertical (or horizontal) line across the panel, with a short text at its end."""

    at: float
    text: str
    style: Style
    vertical: bool = True


Trace = Line | Band | Scatter | Box | Bars | Spans | Rule


class Axis(Struct, frozen=True):
    """`title` names quantity and unit. `ticks` replace the renderer's own; `span` fixes the range, in data units."""

    title: str
    log: bool = False
    span: tuple[float, float] | None = None
    ticks: Sequence[tuple[float, str]] = ()
    shown: bool = True


class Panel(Struct, frozen=True):
    """A set of axes with its traces."""

    title: str
    x: Axis
    y: Axis
    traces: Sequence[Trace]


def told(*parts: tuple[bool, str]) -> str:
    """The caption of those sentences whose condition holds, so that it describes only what is in the figure."""
    return " ".join(text for there, text in parts if there)


class Figure(Struct, frozen=True):
    """Panels in rows of `columns`, sharing axes where `share_x` or `share_y`, so that they compare at a glance.

    `hint` tells the reader of a page how to use it; paper needs none.
    """

    id: str
    title: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 1
    share_x: bool = True
    share_y: bool = True
    notes: Sequence[str] = ()
    measures: Sequence[str] = ()
    zoomable: bool = True
    range_slider: bool = False
    panel_height: int = field(default=230)
    margin_left: int = field(default=64)
    hint: str = ""

    @property
    def rows(self) -> int:
        """The number of rows of panels."""
        return -(-len(self.panels) // self.columns)
