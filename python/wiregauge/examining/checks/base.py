"""The types of checks: small functions that judge facts."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable

from msgspec import Struct

from wiregauge.examining.facts import Look, NotKnownError

__all__ = ["Check", "Severity", "Verdict", "cpus_of", "degrades", "fine", "prevents"]

_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


class Severity(enum.StrEnum):
    """The severity of a finding, the worst first."""

    PREVENTS = "prevents"
    DEGRADES = "degrades"
    UNKNOWN = "unknown"
    FINE = "fine"


class Verdict(Struct, frozen=True):
    """The result of a check: its severity, the observation, and a command that cures it."""

    severity: Severity
    seen: str
    cure: str = ""
    fixable: bool = True
    """Whether the check's fix, if it has one, can help here."""


def fine(seen: str) -> Verdict:
    """The verdict that nothing impairs a measurement."""
    return Verdict(Severity.FINE, seen)


def degrades(seen: str, cure: str, *, fixable: bool = True) -> Verdict:
    """The verdict that figures are worse than they could be."""
    return Verdict(Severity.DEGRADES, seen, cure, fixable)


def prevents(seen: str, cure: str) -> Verdict:
    """The verdict that there are no figures, or wrong ones."""
    return Verdict(Severity.PREVENTS, seen, cure)


class Check(Struct, frozen=True):
    """A check. `judge` may raise NotKnownError: then the finding is unknown, with that reason."""

    name: str
    about: str
    """The heading it is listed under."""
    effect: str
    """Its effect on a measurement where it fails, as a sentence without its full stop."""
    judge: Callable[[Look], Verdict]
    of_interface: bool = False
    fix: str = ""
    """The agent's fix that cures it; empty: none does."""


def cpus_of(text: str) -> set[int]:
    """The processors in a list such as `0-2,5`. Raises NotKnownError for an invalid list."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        range_of = _RANGE.fullmatch(part)
        if range_of is None:
            raise NotKnownError(f'"{text}" is no list of processors')
        first = int(range_of[1])
        found |= set(range(first, int(range_of[2] or first) + 1))
    return found
