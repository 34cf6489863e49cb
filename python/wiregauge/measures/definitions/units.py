"""Numbers as text for the eye. The value keeps its meaning: sign, unit, and no more digits than it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))


def _scaled(value: float, scales: tuple[tuple[float, str], ...], digits: int) -> str:
    size, unit = next((s for s in scales if abs(value) >= s[0] * 0.9995), scales[-1])
    return f"{significant(value / size, digits)} {unit}"


def significant(value: float, digits: int = 4) -> str:
    """`value` with at least `digits` significant digits, never in scientific notation between 0.001 and a million."""
    magnitude = abs(value)
    whole = len(str(int(magnitude))) if magnitude >= 1 else 0
    if magnitude >= 1:
        return f"{value:.{max(digits - whole, 0)}f}"
    return f"{value:.{digits - 1}g}" if magnitude else "0"


def duration(ns: float | None, digits: int = 4) -> str:
    """A time given in ns, in the unit that fits; "-" for None, "lost" for infinity."""
    if ns is None:
        return "-"
    return "lost" if isinf(ns) else _scaled(ns, _TIMES, digits)


def rate(bps: float | None, digits: int = 4) -> str:
    """A bit rate in the unit that fits; "-" for None."""
    return "-" if bps is None else _scaled(bps, _RATES, digits)


def share(value: float | None, digits: int = 3) -> str:
    """A share of one as per cent, below a millionth as a power of ten; "-" for None."""
    if value is None:
        return "-"
    if value == 0 or value >= 1e-6:
        return f"{float(f'{100 * value:.{digits}g}'):.7f}".rstrip("0").rstrip(".") + " %"
    return f"{value:.1e}"


def count_of(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def interval_text(low: float, high: float) -> str:
    """Two times in ns as "a to b", or one when they print alike."""
    first, last = duration(low, 3), duration(high, 3)
    return first if first == last else f"{first} to {last}"


def in_unit(value: float, unit: str) -> str:
    """A figure in the unit of its definition (`ns`, `bit/s`, `bit`, `share`, `1/s`, `messages`, `events`)."""
    if unit == "ns":
        return duration(value)
    if unit == "bit/s":
        return rate(value)
    if unit == "share":
        # The last nine that differs shows the distance from 1.
        return share(value) if value <= 0.99 or value == 1 else f"{value * 100:.10g} %"
    if unit == "bit":
        return f"{significant(value, 6)} bit"
    if unit == "1/s":
        return f"{significant(value, 4)} /s"
    return str(int(value)) if value == int(value) else significant(value, 4)


BEYOND = "beyond the tap"
"""The name of the far end of a flow that a single tap saw, in runs made from captures."""


def untapped(names: Sequence[str]) -> str:
    """The places without a tap: end systems of a test, or the far side of a single tap."""
    return "no second tap" if list(names) == [BEYOND] else f"no tap at {', '.join(names)}"


_LEAST_P = 1e-300
"""Lesser chances come out of the arithmetic as 0 or nearly so."""


def p_text(p: float) -> str:
    """A p-value as it is printed: never 0, which no finite series can show."""
    return f"p < {_LEAST_P:.0e}" if p < _LEAST_P else f"p = {p:.2g}"
