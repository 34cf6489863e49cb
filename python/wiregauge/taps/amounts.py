"""Rates and times as the test language writes them, for options of the command line."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from wiregauge.taps.importing import CaptureError

__all__ = ["nanoseconds", "rate_bps"]

_RATES: Final = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_TIMES: Final = {
    "ps": Decimal("0.001"),
    "ns": Decimal(1),
    "us": Decimal(10**3),
    "ms": Decimal(10**6),
    "s": Decimal(10**9),
}


def rate_bps(text: str) -> int:
    """A rate in bit/s. Raises CaptureError for anything else, and for 0."""
    number, unit = _parts(text)
    if number is None or unit not in _RATES or not number * _RATES[unit] >= 1:
        raise CaptureError(
            f'"{text}" is no rate; write a number and bit/s, kbit/s, Mbit/s or Gbit/s, as 1Gbit/s'
        )
    return int(number * _RATES[unit])


def nanoseconds(text: str) -> float:
    """A time in ns. Raises CaptureError for anything else."""
    number, unit = _parts(text)
    if number is None or unit not in _TIMES:
        raise CaptureError(f'"{text}" is no time; write a number and ps, ns, us, ms or s, as 50ns')
    return float(number * _TIMES[unit])


def _parts(text: str) -> tuple[Decimal | None, str]:
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?)\s*([a-zA-Z/]+)", text.strip())
    return (Decimal(found[1]), found[2]) if found else (None, "")
