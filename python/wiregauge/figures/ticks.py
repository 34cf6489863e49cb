"""Ticks of a logarithmic axis (1, 2, 5 per decade, thinned to fit) and the extent of what a panel draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10

import numpy as np

from wiregauge.figures.model import Band, Bars, Box, Floats, Line, Panel, Rule, Scatter, Spans, Trace


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


def extent(panels: Sequence[Panel], axis: str, *, positive: bool) -> tuple[float, float] | None:
    """Least and greatest coordinate drawn in the panels; None when nothing is. Only positive ones where asked."""
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

    A vertical axis begins at 0 where nothing is below it, except for boxes, whose spread is small against their place.
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
    """Round values in [low, high] with their texts; at most about `most`."""
    decades = range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = [m * 10.0**k for k in decades for m in steps if low <= m * 10.0**k <= high]
        if len(values) <= most:
            break
    thin = -(-len(values) // most) if values else 1
    return [(v, f"{v:.12g}" if 1e-4 <= v < 1e7 else f"{v:.0e}") for v in values[::thin]]
