"""The interface of `ClockKeeper` to the host where an end system's clock programs run.

The connection to an agent implements it; tests use a script.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from wiregauge.plan import Ptp

__all__ = ["Answers", "ClockError", "ClockHost", "Line"]


class ClockError(Exception):
    """The clocks cannot be synchronised as the test requires; the text says whose fault it is and the cure."""


class Line(Struct, frozen=True):
    """A line that a program printed."""

    text: str
    realtime_less_monotonic_ns: int
    """The testmaster's clock minus CLOCK_MONOTONIC of the host, which programs print, ns."""
    gone: bool = False
    """Whether the program ended without being stopped, as the text says."""


class Answers(Struct, frozen=True):
    """Answers of programs and the kernel; empty where not requested or unavailable."""

    pmc: str = ""
    chrony: str = ""
    tai_s: int = 0
    """TAI minus UTC as known to the kernel, s; 0: unknown."""
    leap: int = 0
    """A leap second that the kernel will insert (1) or delete (-1) at the end of the day."""


class ClockHost(Protocol):
    """The host of one end system."""

    def start(self, ptp: Ptp, *, server: bool) -> None:
        """Starts linuxptp. Raises ClockError where a program is missing, not allowed, or does not start."""

    def lines(self) -> Iterator[Line]:
        """The lines that the programs print from their start, until they are stopped or the connection is lost."""

    def ask(self, *, ptp: bool, chrony: bool) -> Answers:
        """The current answers of pmc, chronyc and the kernel. Raises ClockError where not allowed or without answer."""

    def stop(self) -> None:
        """Ends the programs. Never raises."""
