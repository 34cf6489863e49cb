"""Where the programs that keep the clock of an end system run, as the keeper of clocks sees it.

Whoever has the connection to an agent implements it; tests put a script in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from wiregauge.plan import Ptp

__all__ = ["Answers", "ClockError", "ClockHost", "Line"]


class ClockError(Exception):
    """The clocks cannot be kept as the test wants; the text says whose fault it is and the cure."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a program has printed."""

    text: str
    realtime_less_monotonic_ns: int
    """The testmaster's clock less CLOCK_MONOTONIC of the host, which programs print."""
    gone: bool = False
    """The program is gone although nobody stopped it, as the text says."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What programs and the kernel answer; empty where they were not asked or have nothing to say."""

    pmc: str = ""
    chrony: str = ""
    tai_s: int = 0
    """TAI less UTC as the kernel was told; 0: nobody told it."""
    leap: int = 0
    """A leap second that the kernel is to insert (1) or leave out (-1) at the end of the day."""


class ClockHost(Protocol):
    """The host of one end system."""

    def start(self, ptp: Ptp, *, server: bool) -> None:
        """Starts linuxptp. Raises ClockError where a program is missing, not allowed, or does not start."""

    def lines(self) -> Iterator[Line]:
        """What the programs print from their start on, until they are stopped or nobody can be asked any more."""

    def ask(self, *, ptp: bool, chrony: bool) -> Answers:
        """What pmc, chronyc and the kernel say now. Raises ClockError where that is not allowed or nobody answers."""

    def stop(self) -> None:
        """Ends the programs. Never raises."""
