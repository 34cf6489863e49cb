"""Reads parts of a certificate, none of which is trusted."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Final, NoReturn

__all__ = [
    "ZERO",
    "Curve",
    "Node",
    "RefutedError",
    "Service",
    "UnreadableError",
    "brief",
    "buckets_of",
    "index",
    "maybe",
    "number",
    "parts",
    "pieces_of",
    "refuted",
    "said",
    "text",
    "unreadable",
    "written",
]

MOST_DIGITS: Final = 50_000
_FRACTION: Final = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?")
ZERO: Final = Fraction(0)

Curve = list[tuple[Fraction, Fraction]]
"""Buckets: burst and rate."""
Service = list[tuple[Fraction, Fraction]]
"""Pieces: rate and latency."""
Node = tuple[str, int]
"""A class of a server."""


class UnreadableError(Exception):
    """The file is no certificate, or no test."""


class RefutedError(Exception):
    """A step does not hold: which one, with both values."""


def unreadable(what: str) -> NoReturn:
    raise UnreadableError(what)


def number(value: Any, what: str, least: Fraction | None = ZERO) -> Fraction:
    """A fraction as text."""
    found = _FRACTION.fullmatch(value) if isinstance(value, str) and len(value) <= MOST_DIGITS else None
    if found is None:
        unreadable(f"{what} is no fraction in digits: {str(value)[:40]!r}")
    top, bottom = int(found[1]), int(found[2] or "1")
    if bottom == 0:
        unreadable(f"{what} has the denominator zero")
    result = Fraction(top, bottom)
    if least is not None and result < least:
        unreadable(f"{what} is {brief(result)}, less than {least}")
    return result


def maybe(value: Any, what: str) -> Fraction | None:
    """A fraction as text, or null."""
    return None if value is None else number(value, what)


def index(value: Any, count: int, what: str) -> int:
    """An index below a count."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
        unreadable(f"{what} is no index below {count}: {str(value)[:40]!r}")
    return value


def text(value: Any, what: str) -> str:
    """A text without control characters."""
    if not isinstance(value, str):
        unreadable(f"{what} is no text: {str(value)[:40]!r}")
    return value if value.isprintable() else ascii(value)


def parts(value: Any, what: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        unreadable(f"{what} is no list: {str(value)[:40]!r}")
    return value


def brief(value: Fraction | None) -> str:
    """A value for a reader, with few digits."""
    return "unbounded" if value is None else f"{float(value):.12g}"


def timed(value: Fraction, unit: str) -> str:
    """A time for a reader: seconds in µs, another unit as it is."""
    return f"{float(value * 10**6):.6g} µs" if unit == "s" else f"{brief(value)} {unit}"


def buckets_of(value: Any, what: str) -> Curve:
    """The buckets of an arrival curve."""
    found = [
        (number(one["burst"], f"burst of {what}"), number(one["rate"], f"rate of {what}"))
        for one in parts(value, what)
    ]
    return found or unreadable(f"{what} has no bucket")


def pieces_of(value: Any, what: str) -> Service:
    """The pieces of a service curve."""
    found = [
        (number(one["rate"], f"rate of {what}"), number(one["latency"], f"latency of {what}"))
        for one in parts(value, what)
    ]
    if not found or any(rate == 0 for rate, _ in found):
        unreadable(f"{what} has no piece with a rate above zero")
    return found


def refuted(what: str, stated: Fraction | None, found: Fraction | None) -> NoReturn:
    """Raises `RefutedError`: what is stated is less than what follows."""
    raise RefutedError(f"{what}: {brief(stated)} is stated, and {brief(found)} follows")


def said(node: Node) -> str:
    """A class of a server, for a reader."""
    return f"{text(node[0], 'name of a server')!r} class {node[1]}"


def written(lines: Curve | None) -> str:
    """A curve, for a reader."""
    return ", ".join(f"({brief(one)}, {brief(other)})" for one, other in (lines or [])[:4]) or "nothing"
