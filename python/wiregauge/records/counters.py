"""Counters and times of reports, where what nobody reported is None."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

__all__ = ["Counter", "Reported", "in_ns", "known", "sum_known"]

Counter = int | None
"""A counter; None: not reported."""


def sum_known(counts: Iterable[Counter]) -> int:
    """The sum of the counters that were reported; 0 where none was."""
    return sum(count for count in counts if count is not None)


def known(counter: Counter) -> int:
    """A counter, or 0 where it was not reported; callers state separately that it is unknown."""
    return counter or 0


def in_ns(picoseconds: int | None) -> float | None:
    """A time that was reported in picoseconds, ns."""
    return picoseconds / 1000 if picoseconds is not None else None


class Reported(msgspec.Struct, frozen=True):
    """A part of a report."""
