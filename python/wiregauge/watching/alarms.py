"""Alarms of a watched contract: a line when a promise breaks, and one when it is kept again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.streams import Observed, PromiseResult

__all__ = ["Alarm", "PromiseAlarms"]

_MOST: Final = 1000
"""Broken promises that are listed; others are counted only. Each may be active: a watch holds all anyway."""


class Alarm(Struct, frozen=True):
    """A promise that was broken in some second: since when, until when, and the figure with which it began."""

    promise: PromiseResult
    begin_s: float
    end_s: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.promise.stream, self.promise.measure, self.promise.bound


class PromiseAlarms:
    """Holds the promises of a contract against each second by itself."""

    def __init__(self) -> None:
        self.raised = 0
        self._active: dict[tuple[str, str, str], Alarm] = {}

    @property
    def active(self) -> int:
        """Number of promises that are broken at the moment."""
        return len(self._active)

    def broken(self) -> list[tuple[str, str, str]]:
        """Stream, measure and bound of the promises that are broken at the moment, at most `_MOST` of them."""
        return sorted(self._active)[:_MOST]

    def look(self, last: Observed, at_s: float) -> Iterator[Alarm]:
        """The alarms that began or ended in the last second."""
        for promise in last.promises:
            alarm = Alarm(promise, at_s)
            known = self._active.get(alarm.key)
            if promise.result == "fail" and known is None:
                self.raised += 1
                self._active[alarm.key] = alarm
                yield alarm
            elif promise.result == "pass" and known is not None:
                del self._active[alarm.key]
                yield replace(known, end_s=at_s)
