"""Data of a comparison's figures, computed here so that figures compute nothing."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.measures.comparing.comparison import Comparison, FlowComparison, MeasureShift, PointComparison
from wiregauge.measures.distribution import distribution
from wiregauge.stats import DensityShape, EcdfShape, Estimate

__all__ = ["DensityShape", "EcdfShape", "Estimate", "PairShape", "main_measure", "pair_shapes"]

Floats = NDArray[np.float64]

WIDE = 8.0
"""Ratio of the greatest to the least shown value from which an axis is logarithmic."""


class PairShape(Struct, frozen=True):
    """Both sides of one flow's main measure, ns: densities over one range, empirical distributions, and the shift.

    `log` and `far` say whether the central and the whole range call for a logarithmic axis.
    """

    title: str
    measure: MeasureShift
    flow: FlowComparison
    log: bool
    far: bool
    density: tuple[DensityShape, DensityShape]
    ecdf: tuple[EcdfShape, EcdfShape]


def main_measure(flow: FlowComparison) -> MeasureShift | None:
    """The round trip of a pair that has one, else the one-way latency; None where nothing arrived on a side."""
    return flow.measures.get("rtt") or flow.measures.get("latency")


def pair_shapes(comparison: Comparison) -> list[PairShape]:
    """A shape for every compared flow that has values on both sides, in the order of the comparison."""
    found = []
    for point in comparison.points:
        for flow in point.flows:
            measure = main_measure(flow)
            if measure is not None:
                found.append(_shape(_title(point, flow), flow, measure))
    return found


def _title(point: PointComparison, flow: FlowComparison) -> str:
    one, other = flow.base.plan.protocol, flow.new.plan.protocol
    parts = [f"flow {flow.label} {one if one == other else f'{one} → {other}'}"]
    return " · ".join([*parts, *([", ".join(point.axes.values())] if point.axes else [])])


def _shape(title: str, flow: FlowComparison, measure: MeasureShift) -> PairShape:
    held = [distribution(side, measure.measure) for side in (flow.base, flow.new)]
    sides = [side for side in held if side is not None]
    # The outermost values on either end would squeeze the rest into a line; the empirical distribution has them.
    ends = [side.quantiles(0.005, 0.995) for side in sides]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    log = low > 0 and high / low > WIDE
    margin = 1.1 if log else 0.06 * (high - low) or max(abs(high) * 1e-3, 1.0)
    span = (low / margin, high * margin) if log else (low - margin, high + margin)
    least = min(float(side.values.min()) for side in sides)
    most = max(float(side.values.max()) for side in sides)
    far = least > 0 and most / least > WIDE
    first, second = (side.density(log=log, span=span) for side in sides)
    return PairShape(title, measure, flow, log, far, (first, second), (sides[0].ecdf(), sides[1].ecdf()))
