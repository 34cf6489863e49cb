"""Summaries of a watch that goes on: each hour and each day by itself, stored as they end, and what was not watched.

A stretch ends where an hour or a day of UTC does. Its streams are those of a watch of exactly that time, judged by the
same code, in a directory as `import` makes it; a line of `summaries.jsonl` says where, and how it went. A watch that is
begun again in the same folder goes on there, and first states the time between: nothing bridges it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.files import read_text
from wiregauge.files.typed_json import Count, Verdict, json_schema
from wiregauge.streams import Observed, StreamsError, written

__all__ = ["PERIODS", "Summaries", "Summary", "schema_path", "summary_schema"]

PERIODS: Final[Mapping[str, int]] = {"hour": 3600, "day": 86_400}
"""Stretches by their names, s."""
JOURNAL: Final = "summaries.jsonl"
_ALIGNED_S: Final = 2.0
"""How far from its full hour or day a stretch may begin or end and still be whole: a second is looked at at once."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Summary(Struct, frozen=True):
    """A line of the journal."""

    schema: Literal[1]
    what: Literal["hour", "day", "not-watched"]
    begin: str
    """UTC, as in RFC 3339."""
    end: str
    boot: str
    """What Linux calls this start of the host (`boot_id`); empty: unknown."""
    directory: str | None
    """The streams of the stretch, below the folder; None: not stored."""
    frames: Count
    dropped: Count
    """Frames that the kernel dropped."""
    streams: Count
    validity: Literal["VALID", "DEGRADED"]
    reasons: list[str]
    verdict: Verdict
    failed: Count
    """Promises that were broken over the stretch as a whole."""
    undecided: Count


class Summaries:
    """The stretches of a watch under way, and their folder."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes the folder, or goes on in one. Raises StreamsError for a folder of something else."""
        self.periods = tuple(PERIODS.items())
        self._folder, self._clock, self._steady = folder, clock, steady
        self._begins: list[tuple[float, float]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._last = _last(folder / JOURNAL)
            if self._last is None and any(folder.iterdir()):
                raise StreamsError(
                    f"{folder}: has files and no {JOURNAL}; name a new folder, or one of a watch"
                )
        except OSError as error:
            raise StreamsError(f"{folder}: cannot be written: {error.strerror}") from error

    def begin(self) -> Iterator[str]:
        """Begins the stretches; yields what was not watched since an earlier watch in the folder."""
        now = self._clock()
        self._begins = [(now, self._steady())] * len(self.periods)
        before = self._last
        if before is None:
            return
        boot = _boot()
        anew = ", and the host was started anew" if boot and before.boot and boot != before.boot else ""
        reason = f"no summary was stored from {before.end} to {_utc(now)}: the watch did not run, or was killed{anew}"
        yield reason
        yield from self._enter(_of_nothing(before.end, _utc(now), boot, reason))

    def look(self, turn: Callable[[int], Observed]) -> Iterator[str]:
        """Stores the stretches that have ended; yields why one cannot be. `turn` ends a stretch by its number."""
        now = self._clock()
        for number, (_, length) in enumerate(self.periods):
            if now // length != self._begins[number][0] // length:
                yield from self._store(number, turn(number), now)

    def end(self, turn: Callable[[int], Observed]) -> Iterator[str]:
        """Stores what there is of the stretches under way."""
        now = self._clock()
        for number in range(len(self.periods)):
            yield from self._store(number, turn(number), now)

    def _store(self, number: int, observed: Observed, now: float) -> Iterator[str]:
        kind, length = self.periods[number]
        steady = self._steady()
        (begin, since), self._begins[number] = self._begins[number], (now, steady)
        reasons = [*observed.reasons, *_cuts(kind, length, (begin, now), steady - since)]
        if reasons:
            observed = replace(observed, validity="DEGRADED", reasons=reasons)
        name = f"{datetime.fromtimestamp(begin, UTC):%Y-%m-%dT%H%M%SZ}-{kind}"
        place: str | None = self._free(name)
        try:
            written(observed, self._folder / (place or name))
        except StreamsError as error:
            place = None
            yield str(error)
        yield from self._enter(_of_stretch(observed, kind, (_utc(begin), _utc(now)), place))

    def _free(self, name: str) -> str:
        """A name that is not taken: a clock that is set back has an hour twice."""
        found, number = name, 2
        while (self._folder / found).exists():
            found, number = f"{name}-{number}", number + 1
        return found

    def _enter(self, summary: Summary) -> Iterator[str]:
        path = self._folder / JOURNAL
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(msgspec.to_builtins(summary)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            yield f"{path}: cannot be written: {error.strerror}; the summary of {summary.begin} is lost"
        self._last = summary


def _cuts(kind: str, length: int, times: tuple[float, float], lasted: float) -> Iterator[str]:
    """The reasons why a stretch is not a whole hour or day, which it `lasted` by a clock that nobody sets."""
    begin, end = times
    if begin % length > _ALIGNED_S:
        yield f"the {kind} was watched from {_utc(begin)} on only"
    if end % length > _ALIGNED_S and end // length == begin // length:
        yield f"the {kind} was watched until {_utc(end)} only"
    if lasted > length + _ALIGNED_S:
        yield f"the {kind} ended late, after {lasted:.0f} s: this program was held up"
    if abs(end - begin - lasted) > _ALIGNED_S:
        yield f"the clock was set meanwhile, by {end - begin - lasted:.0f} s"


def _of_stretch(observed: Observed, kind: str, times: tuple[str, str], place: str | None) -> Summary:
    results = [promise.result for promise in observed.promises]
    return Summary(
        1,
        "day" if kind == "day" else "hour",
        *times,
        _boot(),
        place,
        observed.frames,
        sum(tap.dropped or 0 for tap in observed.taps),
        len(observed.streams),
        observed.validity,
        observed.reasons,
        observed.verdict,
        results.count("fail"),
        results.count("undecided"),
    )


def _of_nothing(begin: str, end: str, boot: str, reason: str) -> Summary:
    return Summary(1, "not-watched", begin, end, boot, None, 0, 0, 0, "DEGRADED", [reason], "NONE", 0, 0)


def _last(path: Path) -> Summary | None:
    """The last line of a journal; one that was cut off when it was written is none."""
    if not path.exists():
        return None
    for line in reversed(read_text(path, errors="replace").splitlines()):
        try:
            return msgspec.json.decode(line, type=Summary)
        except msgspec.DecodeError:
            continue
    return None


def _boot() -> str:
    try:
        return read_text(_BOOT).strip()
    except OSError:
        return ""


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def schema_path() -> Path:
    """The JSON Schema of a line, shipped with the package."""
    return Path(__file__).with_name("summary.schema.json")


def summary_schema() -> dict[str, Any]:
    """The schema of a line of `summaries.jsonl`."""
    return json_schema(
        Summary,
        "a stretch of a watch, or time that was not watched",
        closed=True,
        **{"$id": "urn:wiregauge:summary:1", "description": "null: not there."},
    )
