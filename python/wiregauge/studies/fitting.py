"""A straight-line fit through cells, as in a paper's regression, with its confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.studies.measured import Measured
from wiregauge.studies.size import StudyError

__all__ = ["line"]


def line(points: Sequence[tuple[float, Measured]], per: str) -> tuple[Measured, Measured]:
    """Slope (unit of the cells per that of x) and intercept of a first-order least-squares line.

    The 95 % intervals are Student's from the scatter of the points around the line, and open for two points. If a point
    is missing, both have no value but the reason. Raises StudyError for points of several units, or without a line.
    """
    missing = next((found for _, found in points if found.value is None), None)
    units = {found.unit for _, found in points if found.value is not None}
    if len(units) > 1:
        raise StudyError(f"a line through cells in {' and '.join(sorted(units))}; take cells of one unit")
    unit = next(iter(units), "")
    if missing is not None:
        return replace(missing, unit=f"{unit}/{per}"), replace(missing, unit=unit)
    x = np.array([at for at, _ in points], dtype=np.float64)
    y = np.array([found.value for _, found in points], dtype=np.float64)
    try:
        fit = stats.line_fit(x, y)
    except ValueError as error:
        raise StudyError(f"a line through cells: {error}") from None
    n = min((found.n for _, found in points), default=0)
    source = f"line through {len(points)} cells from {points[0][1].source} on"
    return (
        _coefficient(fit.slope, f"{unit}/{per}", n, f"slope of the {source}"),
        _coefficient(fit.intercept, unit, n, f"intercept of the {source}"),
    )


def _coefficient(found: stats.Coefficient, unit: str, n: int, source: str) -> Measured:
    half = found.sampling
    low, high = (None, None) if half is None else (found.value - half, found.value + half)
    return Measured(found.value, unit, n, low, high, source)
