"""A figure of ours with its interval, and arithmetic on several.

Errors of clocks and timestamps do not average out, so intervals are added edge by edge: a figure computed from several
has an interval that is never too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.measures.metrics.quantity import Quantity

__all__ = [
    "Measured",
    "difference",
    "greatest",
    "known",
    "least",
    "left_out",
    "of_quantity",
    "ratio",
    "scaled",
    "total",
]


class Measured(Struct, frozen=True):
    """One number in `unit` (`ns`, `share`, `bit/s`, `1/s`, `messages`, or empty for a ratio) with its 95 % interval.

    `value` is None where there is none; `reason` then says why. `skipped`: bench or size leave it out on purpose, so
    it is not undecided.
    """

    value: float | None
    unit: str
    n: int = 0
    low: float | None = None
    high: float | None = None
    source: str = ""
    """The figure and the run it comes from."""
    reason: str = ""
    skipped: bool = False


def of_quantity(found: Quantity, source: str) -> Measured:
    """A figure of a run."""
    return Measured(found.value, found.unit, found.n, found.low, found.high, source, found.reason)


def known(value: float, unit: str, source: str) -> Measured:
    """A number that follows from the test without a measurement, such as the time of a header on the wire."""
    return Measured(value, unit, 0, value, value, source)


def left_out(reason: str, unit: str = "") -> Measured:
    """A cell that this bench or this size leaves out."""
    return Measured(None, unit, reason=reason, skipped=True)


def total(*parts: Measured) -> Measured:
    """The sum of figures of one unit."""
    return _joined(parts, " + ", parts[0].unit, lambda *values: sum(values), _sum_ends)


def difference(one: Measured, other: Measured) -> Measured:
    """`one` minus `other`."""
    return _joined((one, other), " - ", one.unit, lambda a, b: a - b, _difference_ends)


def ratio(one: Measured, other: Measured) -> Measured:
    """`one` divided by `other`, whose interval must be positive."""
    if other.value is not None and other.value <= 0:
        return replace(
            other, value=None, unit="", low=None, high=None, reason=f"{other.source} is not positive"
        )
    return _joined((one, other), " / ", "", lambda a, b: a / b, _ratio_ends)


def scaled(one: Measured, factor: float) -> Measured:
    """A figure times a positive number."""
    low, high = (None if end is None else end * factor for end in (one.low, one.high))
    value = None if one.value is None else one.value * factor
    return replace(one, value=value, low=low, high=high, source=f"{factor:g} * {one.source}")


def least(*parts: Measured) -> Measured:
    """The least of figures of one unit, such as the first of many receivers."""
    return _extreme(min, "least", parts)


def greatest(*parts: Measured) -> Measured:
    """The greatest of figures of one unit."""
    return _extreme(max, "greatest", parts)


def _extreme(of: Callable[[Iterable[float]], float], word: str, parts: tuple[Measured, ...]) -> Measured:
    found = _joined(parts, ", ", parts[0].unit, lambda *values: of(values), partial(_extreme_ends, of))
    if found.value is None or len(parts) == 1:
        return found
    return replace(found, source=f"{word} of {len(parts)}: {parts[0].source} to {parts[-1].source}")


Ends = tuple[float | None, float | None]


def _joined(
    parts: tuple[Measured, ...],
    sign: str,
    unit: str,
    value: Callable[..., float],
    ends: Callable[[tuple[Measured, ...]], Ends],
) -> Measured:
    missing = next((part for part in parts if part.value is None), None)
    if missing is not None:
        return replace(missing, unit=unit)
    source = sign.join(f"({part.source})" if " " in part.source else part.source for part in parts)
    low, high = ends(parts)
    counts = [part.n for part in parts if part.n]
    return Measured(value(*(part.value for part in parts)), unit, min(counts, default=0), low, high, source)


def _sum_ends(parts: tuple[Measured, ...]) -> Ends:
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    low = None if None in lows else sum(end for end in lows if end is not None)
    high = None if None in highs else sum(end for end in highs if end is not None)
    return low, high


def _extreme_ends(of: Callable[[Iterable[float]], float], parts: tuple[Measured, ...]) -> Ends:
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    return (of(lows) if len(lows) == len(parts) else None), (of(highs) if len(highs) == len(parts) else None)


def _difference_ends(parts: tuple[Measured, ...]) -> Ends:
    one, other = parts
    low = None if one.low is None or other.high is None else one.low - other.high
    high = None if one.high is None or other.low is None else one.high - other.low
    return low, high


def _ratio_ends(parts: tuple[Measured, ...]) -> Ends:
    one, other = parts
    low = None if one.low is None or not other.high else one.low / other.high
    high = None if one.high is None or other.low is None or other.low <= 0 else one.high / other.low
    return low, high
