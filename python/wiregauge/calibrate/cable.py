"""Traversal time over cable length: the constant overhead of the instrument, and a check of the slope.

t(l) = k + s l by ordinary least squares. The intercept k is everything that is not cable (transmitter, receiver, the
timestamps' position in the frame) and can be subtracted from later measurements with the same; the slope s must be
plausible for copper or fibre, or the points are wrong. After "Delay Overhead Estimation" of the
high-precision test bed for switches (section III-B).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from wiregauge import stats
from wiregauge.calibrate.errors import CalibrationError
from wiregauge.files import SMALL, read_text

LIGHT_NS_PER_M: Final = 1 / 0.299792458
"""Time of light in vacuum per metre, ns (SI: c = 299 792 458 m/s)."""
PLAUSIBLE: Final = (0.59, 0.80)
"""Propagation speeds of network cables as fractions of c: from the slowest allowed by ISO/IEC 11801 (570 ns per 100 m,
0.585, rounded) to foamed coaxial cable (0.8); twisted pair has 0.6 to 0.75, fibre 0.67 to 0.69.
"""
_MOST_POINTS: Final = 10_000
_LARGEST: Final = 1e30
"""Limit above which a figure results from a division by nearly zero."""
_COLUMNS: Final = {
    "length_m": "length of the cable, m",
    "time_ns": "traversal time, ns",
    "uncertainty_ns": "the most the time may be off",
    "min_ns": "least of the frames",
    "max_ns": "greatest of the frames",
    "n": "frames",
}


class Point(Struct, frozen=True):
    """A measured length. `time_ns` is a mean; `uncertainty_ns` bounds its error from any cause."""

    length_m: float
    time_ns: float
    uncertainty_ns: float | None = None
    min_ns: float | None = None
    max_ns: float | None = None
    n: int | None = None


def cable_results(points: Sequence[Point]) -> dict[str, Any]:
    """The line through at least two lengths. Raises CalibrationError where there are fewer."""
    if len({point.length_m for point in points}) < 2:
        raise CalibrationError(
            "a line needs cables of at least two lengths, better five; the points have "
            f"{len({point.length_m for point in points})}"
        )
    x = np.array([point.length_m for point in points])
    y = np.array([point.time_ns for point in points])
    known = [point.uncertainty_ns for point in points if point.uncertainty_ns is not None]
    bounds = np.array([point.uncertainty_ns or 0.0 for point in points]) if known else None
    try:
        fit = stats.line_fit(x, y, bounds)
    except ValueError as error:  # lengths that differ by less than their squares can hold
        raise CalibrationError(f"no line fits these points: {error}") from None
    slope, constant = fit.slope, fit.intercept
    figures = (slope.value, slope.half_width or 0.0, constant.value, constant.half_width or 0.0)
    if not all(abs(figure) < _LARGEST for figure in figures):
        raise CalibrationError("no line fits these points: their lengths are all but equal")
    fraction = _fraction(slope.value)
    half = slope.half_width
    ends = None if half is None else (_fraction(slope.value + half), _fraction(slope.value - half))
    return {
        "constant_overhead": {
            "value_ns": constant.value,
            "half_width_ns": constant.half_width,
            "sampling_ns": constant.sampling,
            "bound_ns": constant.bound,
        },
        "per_metre": {
            "value_ns": slope.value,
            "half_width_ns": slope.half_width,
            "sampling_ns": slope.sampling,
            "bound_ns": slope.bound,
        },
        "fraction_of_c": {
            "value": fraction,
            "low": ends[0] if ends else None,
            "high": ends[1] if ends else None,
        },
        "residual_max_ns": float(np.abs(fit.residuals).max()),
        "n": fit.n,
        "plausible": _plausible(fraction, ends),
        "points": [
            {
                "length_m": point.length_m,
                "time_ns": point.time_ns,
                "uncertainty_ns": point.uncertainty_ns,
                "min_ns": point.min_ns,
                "max_ns": point.max_ns,
                "n": point.n,
                "residual_ns": float(residual),
            }
            for point, residual in zip(points, fit.residuals, strict=True)
        ],
    }


def _fraction(slope: float) -> float | None:
    return LIGHT_NS_PER_M / slope if slope > 1 / _LARGEST else None


def _plausible(fraction: float | None, ends: tuple[float | None, float | None] | None) -> dict[str, Any]:
    """Whether some speed within the interval is plausible for cables."""
    low, high = PLAUSIBLE
    span = f"{low:g} to {high:g} c"
    if fraction is None:
        return {"holds": False, "text": "a longer cable takes no longer: these points are not from a cable"}
    least = ends[0] if ends and ends[0] is not None else fraction
    # A slope whose interval includes zero allows any speed.
    most = (ends[1] if ends[1] is not None else math.inf) if ends else fraction
    if low <= fraction <= high:
        return {"holds": True, "text": f"{fraction:.3f} c lies within {span}, as of cables"}
    if least <= high and most >= low:
        return {
            "holds": True,
            "text": f"{fraction:.3f} c is outside {span}, but its interval reaches into it: "
            "more lengths or frames would tell",
        }
    return {
        "holds": False,
        "text": f"{fraction:.3f} c is outside {span}: no cable has this speed; check lengths and times",
    }


def read_points(path: Path) -> list[Point]:
    """Reads the points of a CSV file with a header: `length_m`, `time_ns`, and optionally `uncertainty_ns`, `min_ns`,
    `max_ns`, `n`. Raises CalibrationError with file and line.
    """
    try:
        text = read_text(path, SMALL, "utf-8-sig")
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CalibrationError(f"{path}: is not UTF-8 text") from None
    try:
        return _points(text, str(path))
    except csv.Error as error:
        raise CalibrationError(f"{path}: is no CSV file ({error})") from None


def _points(text: str, name: str) -> list[Point]:
    rows = csv.reader(io.StringIO(text))
    head = [word.strip() for word in next(rows, [])]
    missing = [word for word in ("length_m", "time_ns") if word not in head]
    unknown = [word for word in head if word not in _COLUMNS]
    if missing or unknown or len(set(head)) != len(head):
        wrong = (
            f'column "{unknown[0]}" is unknown'
            if unknown
            else f"column {missing[0]} is missing"
            if missing
            else ""
        )
        raise CalibrationError(
            f"{name}:1: {wrong or 'a column is there twice'}; the head line names length_m, time_ns and, where known, "
            "uncertainty_ns, min_ns, max_ns, n"
        )
    found: list[Point] = []
    for row in rows:
        where = f"{name}:{rows.line_num}"
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            raise CalibrationError(f"{where}: has {len(row)} cells, the head line {len(head)}")
        if len(found) == _MOST_POINTS:
            raise CalibrationError(
                f"{where}: more than {_MOST_POINTS} points; average the frames of a length"
            )
        found.append(_point(dict(zip(head, row, strict=True)), where))
    return found


def _point(cells: dict[str, str], where: str) -> Point:
    numbers: dict[str, float | None] = {}
    for column, text in cells.items():
        try:
            value = float(text) if text.strip() else None
        except ValueError:
            raise CalibrationError(f'{where}: {column} "{text.strip()[:40]}" is no number') from None
        if value is None and column in ("length_m", "time_ns"):
            raise CalibrationError(f"{where}: {column} is empty; leave the line out")
        if value is not None and not abs(value) < 1e15:
            raise CalibrationError(f"{where}: {column} {text.strip()[:40]} is not finite or beyond 1e15")
        if value is not None and value < 0 and column != "time_ns":
            raise CalibrationError(f"{where}: {column} {text.strip()[:40]} is negative")
        numbers[column] = value
    count = numbers.get("n")
    return Point(
        length_m=numbers["length_m"] or 0.0,
        time_ns=numbers["time_ns"] or 0.0,
        uncertainty_ns=numbers.get("uncertainty_ns"),
        min_ns=numbers.get("min_ns"),
        max_ns=numbers.get("max_ns"),
        n=None if count is None else int(count),
    )
