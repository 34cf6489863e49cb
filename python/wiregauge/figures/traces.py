"""Traces that several figures share; times in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from wiregauge.figures.model import Box, Line, Style, Trace
from wiregauge.results.shapes import BoxShape, CourseShape, TailShape

US = 1e3


def tail_lines(shape: TailShape, label: str, style: Style, *, legend: bool = True) -> list[Trace]:
    """A distribution against rarity; thin dots where n does not support the percentile, in the legend or not."""
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
    """Ticks of a rarity axis up to one in `most`, each ten times rarer than the last."""
    each = ((10.0**k, f"{100 - 100 / 10.0**k:.{max(k - 2, 0)}f} %") for k in range(decades))
    return [tick for tick in each if tick[0] <= most * 1.5]


COURSES_WORDS: Final[Mapping[str, str]] = {
    "each": "All {total} {what} are in the picture: each is a mark.",
    "columns": (
        "All {total} {what} are in the picture: of each of {columns} columns of time (at most {most} {what}) the least "
        "and the greatest are drawn, exactly and where they were."
    ),
    "gone": " Not in it, as they have no value: {gone}.",
    "lost": "{n} lost message{s}",
    "unknown": "{n} message{s} of unknown fate",
    "and": " and ",
}
"""The words of `courses_note`, which pages that draw by themselves fill in likewise."""


def courses_note(shapes: Sequence[CourseShape], what: str) -> str:
    """A note for a plot against time: it shows all values, in columns; values that do not exist have no mark."""
    total = sum(shape.values for shape in shapes)
    most = max(shape.most for shape in shapes)
    said = COURSES_WORDS["each" if most <= 2 else "columns"].format(
        total=total, what=what, most=most, columns=sum(len(shape.n) for shape in shapes)
    )
    counts = {name: sum(int(getattr(shape, name).sum()) for shape in shapes) for name in ("lost", "unknown")}
    gone = COURSES_WORDS["and"].join(
        COURSES_WORDS[name].format(n=n, s="" if n == 1 else "s") for name, n in counts.items() if n
    )
    return said + (COURSES_WORDS["gone"].format(gone=gone) if gone else "")


def beyond_note(outside: int, drawn: int) -> str:
    """A note on the values beyond the whiskers that a box shows."""
    if drawn >= outside:
        return f"all {outside} values beyond them are drawn." if outside else "nothing lies beyond them."
    return f"of the {outside} values beyond them {drawn} are drawn, evenly by rank, with the least and the greatest."
