"""What a program that measures round trips has stored of them, in one form for all programs. Times are ns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

__all__ = ["LARGEST_SEQUENCE", "Exchange", "ForeignError", "Measurement", "Series"]

LARGEST_SEQUENCE: Final = 10_000_000
"""Greatest number of a message; far more would be a damaged file, or take all memory."""


class ForeignError(Exception):
    """A file cannot be used as a measurement; the text says why and what to do."""


class Exchange(Struct, frozen=True):
    """A numbered message and its answer. None: not recorded, or it did not arrive.

    `sent` and `received` are by one clock, `reached` and `answered` by the other end's.
    """

    sequence: int
    sent: int | None
    received: int | None = None
    reached: int | None = None
    answered: int | None = None


class Series(Struct, frozen=True):
    """The exchanges of one sender, as the program names it. `payload` in bytes, `step_ns` of its times."""

    name: str
    exchanges: Sequence[Exchange]
    payload: int
    step_ns: float


class Measurement(Struct, frozen=True):
    """A file or folder: its program, its series, and remarks on what it lacks. `agree_ns`: how far the clocks of both
    ends may differ, where it states that."""

    program: str
    series: Sequence[Series]
    remarks: Sequence[tuple[str, str]]
    agree_ns: float | None = None
