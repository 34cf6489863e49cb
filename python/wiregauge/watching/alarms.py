"""Alarms of what is held against each second: one where it breaks, and one where it is kept again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from wiregauge.streams import Observed, PromiseResult

__all__ = ["Alarm", "Alarms", "PromiseAlarms"]

_MOST: Final = 1000
"""Broken promises that are listed; others are counted only. Each may be active: a watch holds all anyway."""


class Held(Protocol):
    """What was held against a second."""

    @property
    def result(self) -> str:
        """`pass`, `fail`, or neither."""


H = TypeVar("H", bound=Held)
K = TypeVar("K", bound=Hashable)


class Raised(Struct, Generic[H], frozen=True):
    """What was broken in some second: since when, until when, and the figure with which it began."""

    promise: H
    begin_s: float
    end_s: float | None = None


Alarm: TypeAlias = Raised[PromiseResult]


class Alarms(Generic[H, K]):
    """Follows results by their keys: from the first second that fails to the first one that passes again."""

    def __init__(self, key: Callable[[H], K]) -> None:
        self.raised = 0
        self._key = key
        self._active: dict[K, Raised[H]] = {}

    @property
    def active(self) -> int:
        """Number of those that are broken at the moment."""
        return len(self._active)

    def keys(self) -> list[K]:
        """The keys of those that are broken at the moment."""
        return list(self._active)

    def hold(self, results: Iterable[H], at_s: float) -> Iterator[Raised[H]]:
        """The alarms that began or ended in a second."""
        for result in results:
            key = self._key(result)
            known = self._active.get(key)
            if result.result == "fail" and known is None:
                self.raised += 1
                self._active[key] = Raised(result, at_s)
                yield self._active[key]
            elif result.result == "pass" and known is not None:
                del self._active[key]
                yield Raised(known.promise, known.begin_s, at_s)


class PromiseAlarms(Alarms[PromiseResult, tuple[str, str, str]]):
    """Holds the promises of a contract against each second by itself."""

    def __init__(self) -> None:
        super().__init__(lambda promise: (promise.stream, promise.measure, promise.bound))

    def broken(self) -> list[tuple[str, str, str]]:
        """Stream, measure and bound of the promises that are broken at the moment, at most `_MOST` of them."""
        return sorted(self.keys())[:_MOST]

    def look(self, last: Observed, at_s: float) -> Iterator[Alarm]:
        """The alarms that began or ended in the last second."""
        return self.hold(last.promises, at_s)
