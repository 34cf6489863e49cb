"""Latencies and their bound on an axis of characters."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["AXIS", "axis"]

AXIS = "0 to its bound"
"""Heading of a column of axes."""


def axis(bound: float, marks: Iterable[tuple[float | None, str]], width: int) -> str:
    """An axis of `width` + 1 characters: `|` at the bound, and each mark's letter at its value, if it has one.

    It begins at 0 and ends at the bound, or at a value above it, so its last character is never blank.
    """
    known = [(value, letter) for value, letter in marks if value is not None]
    end = max([bound, *(value for value, _ in known)]) or 1.0
    cells = [" "] * (width + 1)
    for value, letter in ((bound, "|"), *known):
        cells[round(width * value / end)] = letter
    return "".join(cells)
