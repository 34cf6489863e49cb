"""What goes on without an end, in stretches: each hour and each day by itself, and what lay between two starts.

A stretch ends where an hour or a day of UTC does. A line of `summaries.jsonl` in its folder says where it is stored,
and how it went. What is begun again in the same folder goes on there, and first states the time between: nothing
bridges it.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from wiregauge.files import read_text

__all__ = ["PERIODS", "Stretches", "Times", "utc"]

T = TypeVar("T")

PERIODS: Final[Mapping[str, int]] = {"hour": 3600, "day": 86_400}
"""Stretches by their names, s."""
JOURNAL: Final = "summaries.jsonl"
_ALIGNED_S: Final = 2.0
"""How far from its full hour or day a stretch may begin or end and still be whole: a second is looked at at once."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Times(Struct, frozen=True):
    """Begin and end, UTC as in RFC 3339, and what Linux calls this start of the host; empty: unknown."""

    begin: str
    end: str
    boot: str


class _Before(Struct, frozen=True):
    """What is read of an earlier line."""

    end: str
    boot: str


class Stretches(ABC, Generic[T]):
    """The stretches under way, and their folder. A kind of them says what one is, how it is stored, and its line."""

    what: str
    """What goes on, as a sentence has it."""
    done: str
    """What was done in a stretch that is not whole."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes the folder, or goes on in one. Raises the error of `failure` for a folder of something else."""
        self.periods = tuple(PERIODS.items())
        self._folder, self._clock, self._steady = folder, clock, steady
        self._begins: list[tuple[float, float]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._last = _last(folder / JOURNAL)
            if self._last is None and any(folder.iterdir()):
                raise self.failure(
                    f"{folder}: has files and no {JOURNAL}; name a new folder, or one of {self.what}"
                )
        except OSError as error:
            raise self.failure(f"{folder}: cannot be written: {error.strerror}") from error

    @abstractmethod
    def failure(self, text: str) -> Exception:
        """The error that a folder cannot be used, or a stretch not be stored."""

    @abstractmethod
    def doubted(self, stretch: T, reasons: list[str]) -> T:
        """A stretch with further reasons to rely less on it."""

    @abstractmethod
    def store(self, stretch: T, place: Path) -> None:
        """Stores a stretch in a new directory. Raises the error of `failure`."""

    @abstractmethod
    def line(self, stretch: T, kind: str, times: Times, place: str | None) -> Struct:
        """The line of a stretch, stored at `place` below the folder; None: not stored."""

    @abstractmethod
    def gap(self, times: Times, reason: str) -> Struct:
        """The line of a time of which there is nothing."""

    def begin(self) -> Iterator[str]:
        """Begins the stretches; yields what is missing since an earlier start in the folder."""
        now = self._clock()
        self._begins = [(now, self._steady())] * len(self.periods)
        before = self._last
        if before is None:
            return
        boot = _boot()
        anew = ", and the host was started anew" if boot and before.boot and boot != before.boot else ""
        reason = f"no summary was stored from {before.end} to {utc(now)}: {self.what} did not run, or was killed{anew}"
        yield reason
        yield from self._enter(self.gap(Times(before.end, utc(now), boot), reason), utc(now))

    def look(self, turn: Callable[[int], T]) -> Iterator[str]:
        """Stores the stretches that have ended; yields why one cannot be. `turn` ends a stretch by its number."""
        now, steady = self._clock(), self._steady()
        for number, (_, length) in enumerate(self.periods):
            if now // length != self._begins[number][0] // length:
                yield from self._store(number, turn(number), (now, steady))

    def end(self, turn: Callable[[int], T]) -> Iterator[str]:
        """Stores what there is of the stretches under way."""
        now, steady = self._clock(), self._steady()
        for number in range(len(self.periods)):
            yield from self._store(number, turn(number), (now, steady))

    def _store(self, number: int, stretch: T, at: tuple[float, float]) -> Iterator[str]:
        """Stores a stretch that ended at an instant by both clocks: storing the one before may have taken a while."""
        kind, length = self.periods[number]
        now, steady = at
        (begin, since), self._begins[number] = self._begins[number], at
        reasons = list(_cuts((kind, self.done), length, (begin, now), steady - since))
        if reasons:
            stretch = self.doubted(stretch, reasons)
        name = f"{datetime.fromtimestamp(begin, UTC):%Y-%m-%dT%H%M%SZ}-{kind}"
        place: str | None = self._free(name)
        try:
            self.store(stretch, self._folder / (place or name))
        except type(self.failure("")) as error:
            place = None
            yield str(error)
        times = Times(utc(begin), utc(now), _boot())
        yield from self._enter(self.line(stretch, kind, times, place), times.end)

    def _free(self, name: str) -> str:
        """A name that is not taken: a clock that is set back has an hour twice."""
        found, number = name, 2
        while (self._folder / found).exists():
            found, number = f"{name}-{number}", number + 1
        return found

    def _enter(self, line: Struct, end: str) -> Iterator[str]:
        path = self._folder / JOURNAL
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(msgspec.to_builtins(line)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            yield f"{path}: cannot be written: {error.strerror}; the summary until {end} is lost"


def _cuts(names: tuple[str, str], length: int, times: tuple[float, float], lasted: float) -> Iterator[str]:
    """The reasons why a stretch is not a whole hour or day, which it `lasted` by a clock that nobody sets."""
    begin, end = times
    kind, done = names
    if begin % length > _ALIGNED_S:
        yield f"the {kind} was {done} from {utc(begin)} on only"
    if end % length > _ALIGNED_S and end // length == begin // length:
        yield f"the {kind} was {done} until {utc(end)} only"
    if lasted > length + _ALIGNED_S:
        yield f"the {kind} ended late, after {lasted:.0f} s: this program was held up"
    if abs(end - begin - lasted) > _ALIGNED_S:
        yield f"the clock was set meanwhile, by {end - begin - lasted:.0f} s"


def _last(path: Path) -> _Before | None:
    """The last line of a journal; one that was cut off when it was written is none."""
    if not path.exists():
        return None
    for line in reversed(read_text(path, errors="replace").splitlines()):
        try:
            return msgspec.json.decode(line, type=_Before)
        except msgspec.DecodeError:
            continue
    return None


def _boot() -> str:
    try:
        return read_text(_BOOT).strip()
    except OSError:
        return ""


def utc(seconds: float) -> str:
    """An instant, s since 1970, as RFC 3339 writes it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
