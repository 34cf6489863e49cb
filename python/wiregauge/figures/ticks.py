"""Ticks of a logarithmic axis (1, 2, 5 per decade, thinned to fit) and the extent of a panel's content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10

import numpy as np

from wiregauge.figures.model import Axis, Band, Bars, Box, Floats, Line, Panel, Rule, Scatter, Spans, Trace


def _coordinates(trace: Trace, axis: str) -> Iterable[Floats]:
    match trace:
        case Line() | Scatter():
            yield trace.x if axis == "x" else trace.y
        case Band():
            yield from (trace.x,) if axis == "x" else (trace.low, trace.high)
        case Bars():
            yield trace.x if axis == "x" else trace.base + trace.height
        case Box():
            if axis == "y":
                yield np.array([trace.low, trace.high])
                yield trace.outliers
            else:
                yield np.array([trace.x])
        case Spans():
            yield from (trace.start, trace.start + trace.length) if axis == "x" else (trace.lane,)
        case Rule():
            if trace.vertical == (axis == "x"):
                yield np.array([trace.at])


def logarithmic(axis: Axis, panels: Sequence[Panel], which: str) -> bool:
    """Whether an axis that should be logarithmic can be: values up to 0 cannot be shown on one, and are drawn."""
    if not axis.log:
        return False
    least = extent(panels, which, positive=False)
    return least is not None and least[0] > 0


def extent(panels: Sequence[Panel], axis: str, *, positive: bool) -> tuple[float, float] | None:
    """Least and greatest coordinate in the panels, only of positive ones if `positive`; None when nothing is drawn."""
    low, high = float("inf"), float("-inf")
    for panel in panels:
        for trace in panel.traces:
            for values in _coordinates(trace, axis):
                shown = values[np.isfinite(values) & ((values > 0) | (not positive))]
                if len(shown):
                    low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    return (low, high) if low <= high else None


def linear_range(panels: Sequence[Panel], which: str) -> tuple[float, float] | None:
    """The range of a linear axis that all panels share, with a margin; None when nothing is drawn.

    A vertical axis begins at 0 where nothing is below it, except for boxes, whose spread is relatively small.
    """
    span = extent(panels, which, positive=False)
    if span is None:
        return None
    low, high = span
    kinds = {type(trace) for panel in panels for trace in panel.traces}
    if which == "y" and low >= 0 and Box not in kinds:
        return 0.0, high * 1.06 or 1.0
    if which == "x" and kinds & {Bars, Box}:
        return low - 0.6, high + 0.6
    pad = 0.03 * (high - low) or max(abs(high) * 0.01, 1e-9)
    return low - pad, high + pad


def log_ticks(low: float, high: float, most: int = 7) -> list[tuple[float, str]]:
    """Round values in [low, high] with their texts, at most `most` and at least two.

    Over several decades 1, 2, 5 of each, 1, 3 or 1, or of every second, third, … decade; within less than one,
    equal steps, as powers of ten would leave such an axis without a number.
    """
    decades = range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = [m * 10.0**k for k in decades for m in steps if low <= m * 10.0**k <= high]
        if len(values) <= most:
            break
    if len(values) < 4 and high / low < 30:
        values = _equal_steps(low, high, most)
    for every in range(2, len(decades) + 1):
        if len(values) <= most:
            break
        values = [10.0**k for k in decades if k % every == 0 and low <= 10.0**k <= high]
    return [(value, tick_text(value)) for value in values]


def _equal_steps(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in [low, high], as many as fit."""
    for step in (m * 10.0**k for k in range(floor(log10(high - low)) - 2, 400) for m in (1, 2, 5)):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < most:
            # An integer times or divided by a power of ten, so that the text shows no rounding.
            values = (float(f"{k * step:.12g}") for k in range(first, last + 1))
            return [value for value in values if low <= value <= high]
    return []


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tick_text(value: float) -> str:
    """The text of a tick: digits in groups of three, a power of ten for extreme values."""
    if value and not 1e-3 <= abs(value) < 1e7:
        digits, _, power = f"{value:.9e}".partition("e")
        factor = digits.rstrip("0").rstrip(".")
        raised = f"10{str(int(power)).translate(_RAISED)}"
        return raised if factor == "1" else f"{factor}·{raised}"
    return f"{value:,.12g}".replace(",", "\N{THIN SPACE}") if abs(value) >= 1e4 else f"{value:.12g}"
