"""Arrival curves and service curves, and what follows from a pair of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from .reading import ZERO, Curve, Service

__all__ = [
    "backlog",
    "busy",
    "highest",
    "hull",
    "is_nothing",
    "later",
    "left_over",
    "longest_delay",
    "one_after_another",
    "total",
]


def hull(lines: Iterable[tuple[Fraction, Fraction]]) -> Curve:
    """The lines `at + slope t` that are the least somewhere in t >= 0, the steepest first."""
    kept: Curve = []
    for at, slope in sorted(lines, key=lambda line: (-line[1], -line[0])):
        while kept and (kept[-1][0] >= at or (len(kept) > 1 and _is_above(kept, (at, slope)))):
            kept.pop()
        kept.append((at, slope))
    return kept


def _crossing(steep: tuple[Fraction, Fraction], flat: tuple[Fraction, Fraction]) -> Fraction:
    return (flat[0] - steep[0]) / (steep[1] - flat[1])


def _is_above(kept: Curve, line: tuple[Fraction, Fraction]) -> bool:
    """Whether the last line is nowhere below both its neighbours."""
    return _crossing(kept[-1], line) <= _crossing(kept[-2], kept[-1])


def highest(lines: Iterable[tuple[Fraction, Fraction]]) -> Fraction | None:
    """The supremum over t >= 0 of the least of lines; None: no line falls."""
    steep = None
    for at, slope in hull(lines):
        if slope <= 0:
            return at if steep is None else at + slope * _crossing(steep, (at, slope))
        steep = (at, slope)
    return None


def total(curves: Sequence[Curve]) -> Curve:
    """The sum of arrival curves."""
    straight = [curve[0] for curve in curves if len(curve) == 1]
    burst = sum((bucket[0] for bucket in straight), ZERO)
    rate = sum((bucket[1] for bucket in straight), ZERO)
    bent = [curve for curve in (hull(curve) for curve in curves if len(curve) > 1) if curve]
    bends = []
    for curve in bent:
        burst, rate = burst + curve[0][0], rate + curve[0][1]
        bends += [(_crossing(old, new), old, new) for old, new in pairwise(curve)]
    found = [(burst, rate)]
    for _, old, new in sorted(bends, key=lambda bend: bend[0]):
        burst, rate = burst + new[0] - old[0], rate + new[1] - old[1]
        found.append((burst, rate))
    return hull(found) if len(found) > 1 else found


def later(curve: Curve, shift: Fraction) -> Curve:
    """What leaves, if every bit is delayed by at most `shift`."""
    return [(burst + rate * shift, rate) for burst, rate in curve] if shift else curve


def is_nothing(curve: Curve) -> bool:
    return any(burst == 0 and rate == 0 for burst, rate in curve)


def longest_delay(curve: Curve, service: Service) -> Fraction | None:
    """The horizontal deviation; None: unbounded."""
    if is_nothing(curve):
        return ZERO
    return highest(
        (latency + burst / rate, sent / rate - 1) for rate, latency in service for burst, sent in curve
    )


def backlog(curve: Curve, service: Service) -> Fraction | None:
    """The vertical deviation; None: unbounded."""
    waits = ((burst + rate * latency, sent - rate) for rate, latency in service for burst, sent in curve)
    return ZERO if is_nothing(curve) else highest([*waits, *curve])


def busy(curve: Curve, service: Service) -> Fraction | None:
    """The longest busy period; None: unbounded."""
    if is_nothing(curve):
        return ZERO
    ends = [
        (burst + rate * latency) / (rate - sent)
        for rate, latency in service
        for burst, sent in curve
        if rate > sent
    ]
    return min(ends, default=None)


def left_over(service: Service, cross: Curve, *, fifo: bool) -> Service:
    """Pieces of service left by cross traffic: in FIFO order each holds by itself, else their maximum."""
    return [
        (rate - sent, latency + burst / rate if fifo else (rate * latency + burst) / (rate - sent))
        for rate, latency in service
        for burst, sent in cross
        if rate > sent
    ]


def one_after_another(first: Service, second: Service) -> Service:
    """The min-plus convolution, by conjugates: one piece for each rate that both serve."""

    def conjugate(service: Service, at: Fraction) -> Fraction | None:
        return highest([*((rate * latency, at - rate) for rate, latency in service), (ZERO, at)])

    found = []
    for rate in {rate for rate, _ in (*first, *second)}:
        one, other = conjugate(first, rate), conjugate(second, rate)
        if one is not None and other is not None:
            found.append((rate, (one + other) / rate))
    return found
