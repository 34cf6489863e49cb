"""Times, rates and shares given outside a test, read by the parser of the test language only.

Values are exact or refused: a number needs a unit, and must be a whole number of picoseconds or bit/s.
"""

from __future__ import annotations

from typing import Literal

from wiregauge import _native

__all__ = [
    "Kind",
    "QuantityError",
    "canonical",
    "rate_bps",
    "share",
    "size_b",
    "storage",
    "time_ns",
    "time_ps",
]

Kind = Literal["time", "size", "rate", "share", "storage"]
_BASES: dict[Kind, str] = {"time": "ps", "size": "B", "rate": "bit/s", "share": "ppb"}


class QuantityError(ValueError):
    """The text is no such quantity; the message begins with it and says what to write."""


def _read(kind: Kind, text: str) -> int:
    try:
        return _native.read_quantity(kind, text)
    except _native.NativeError as error:
        raise QuantityError(str(error)) from None


def time_ps(text: str) -> int:
    """A time, `50ns`, in ps. Raises QuantityError."""
    return _read("time", text)


def time_ns(text: str) -> float:
    """A time, `50ns`, in ns. Raises QuantityError."""
    return time_ps(text) / 1000


def rate_bps(text: str) -> int:
    """The rate of a line, `1Gbit/s`, in bit/s. Raises QuantityError, also for 0."""
    rate = _read("rate", text)
    if rate == 0:
        raise QuantityError(f'"{text}" is no rate of a line; write one above 0, for example 1Gbit/s')
    return rate


def share(text: str) -> float:
    """A share, `0.1%`, as a number; more than 1 is one, too. Raises QuantityError."""
    return _read("share", text) / 10**9


def size_b(text: str) -> int:
    """A size of a frame, `64B`, in bytes. Raises QuantityError."""
    return _read("size", text)


def storage(text: str) -> int:
    """Room on a disk, `10GB`, in bytes. Raises QuantityError."""
    return _read("storage", text)


def canonical(text: str) -> str:
    """A value of an axis in a normal form, so that `1000us` and `1ms` are equal; other texts are unchanged."""
    for kind, base in _BASES.items():
        try:
            return f"{_read(kind, text.strip())}{base}"
        except QuantityError:
            continue
    return text.strip()


def time_text(picos: int) -> str:
    """A time in the test language, in the largest unit that fits: 2500123 ps are 2500.123ns."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6)):
        if picos and picos % size == 0:
            return f"{picos // size}{unit}"
    whole, rest = divmod(picos, 1000)
    return f"{whole}.{rest:03}".rstrip("0") + "ns" if rest else f"{whole}ns"


def rate_text(bps: int) -> str:
    """A rate in the test language: 2500000000 bit/s are 2.5Gbit/s."""
    for unit, size in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 1000)):
        if bps % (size // 10) == 0 and bps >= size:
            return f"{bps / size:g}{unit}"
    return f"{bps}bit/s"
