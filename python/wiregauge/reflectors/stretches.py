"""Each hour and each day of a session without an end, stored as they end, with the exchanges of the hours.

Exchanges are written minute by minute, and those of an hour put together when it ends: nothing more than a minute is in
memory, and a session that is killed has lost no more.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.files.typed_json import Count, Grade, Verdict, json_schema
from wiregauge.reflectors.exchange import Collected, SessionError
from wiregauge.reflectors.measured import Counts, Measured
from wiregauge.reflectors.session import EXCHANGES, rows_of, stored
from wiregauge.watching.stretches import Stretches, Times, utc

__all__ = ["PARTS", "Hours", "Parts", "SessionSummary", "schema_path", "session_summary_schema"]

PARTS: Final = "exchanges"
"""Folder of the exchanges of the hour under way."""
_MINUTE_NS: Final = 60_000_000_000


class SessionSummary(Struct, frozen=True):
    """A line of the journal."""

    schema: Literal[1]
    what: Literal["hour", "day", "not-measured"]
    begin: str
    """UTC, as in RFC 3339."""
    end: str
    boot: str
    """What Linux calls this start of the host (`boot_id`); empty: unknown."""
    directory: str | None
    """The session of the stretch, below the folder; None: not stored."""
    counts: Counts | None
    """None: nothing was measured."""
    validity: Grade
    reasons: list[str]
    verdict: Verdict
    failed: Count
    """Limits that were broken over the stretch as a whole."""
    undecided: Count


class Parts:
    """Exchanges of the hour under way, a file for each minute."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / PARTS
        self._rows: list[pl.DataFrame] = []
        self._minute = -1
        self._files: list[Path] = []

    def add(self, begin_ns: int, collected: Collected) -> Iterator[str]:
        """Adds a second; yields why a minute cannot be written."""
        minute = begin_ns // _MINUTE_NS
        if minute != self._minute:
            yield from self.write()
            self._minute = minute
        self._rows.append(rows_of(collected))

    def write(self) -> Iterator[str]:
        """Writes what there is of the minute under way; yields why it cannot be."""
        if not self._rows:
            return
        rows, self._rows = pl.concat(self._rows), []
        name = utc(self._minute * _MINUTE_NS / 1e9).replace(":", "")
        path, number = self._folder / f"{name}.parquet", 2
        try:
            self._folder.mkdir(exist_ok=True)
            while path.exists():
                path, number = self._folder / f"{name}-{number}.parquet", number + 1
            rows.write_parquet(path)
            self._files.append(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            yield f"{path}: cannot be written ({error}); the exchanges of that minute are lost"

    def put_together(self, into: Path) -> None:
        """The exchanges since the last call as one file, in the place of their parts. Raises OSError, PolarsError."""
        files, self._files = self._files, []
        if not files:
            return
        pl.scan_parquet(files, glob=False).sink_parquet(into)
        for path in files:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


class Hours(Stretches[Measured]):
    """The stretches of a session under way, and their folder."""

    what = "the session"
    done = "measured"

    def __init__(self, folder: Path, lag_s: float = 0.0) -> None:
        """`lag_s`: how long after its begin a second is closed."""
        self._at: float | None = None
        self._lag_s = lag_s
        super().__init__(folder, self._now, self._steadily)
        self.parts = Parts(folder)

    def at(self, begin_s: float | None) -> None:
        """Sets the time to the begin of a second that is closed only now, s since 1970; None: to what it is."""
        self._at = begin_s

    def _now(self) -> float:
        return time.time() if self._at is None else self._at

    def _steadily(self) -> float:
        return time.monotonic() - (0.0 if self._at is None else self._lag_s)

    def failure(self, text: str) -> SessionError:
        """The error of sessions."""
        return SessionError(text, is_input=True)

    def doubted(self, stretch: Measured, reasons: list[str]) -> Measured:
        """DEGRADED, unless it is worse, with these reasons, too."""
        validity: Grade = "INVALID" if stretch.validity == "INVALID" else "DEGRADED"
        return replace(stretch, validity=validity, reasons=[*stretch.reasons, *reasons])

    def store(self, stretch: Measured, place: Path) -> None:
        """Stores the session, of an hour with its exchanges. Raises SessionError."""
        stored(stretch, None, place)
        if not place.name.endswith("-day"):
            # The minute under way ends with its hour.
            for problem in self.parts.write():
                raise SessionError(problem)
            try:
                self.parts.put_together(place / EXCHANGES)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise SessionError(f"{place}: its exchanges cannot be put together: {error}") from error

    def line(self, stretch: Measured, kind: str, times: Times, place: str | None) -> SessionSummary:
        """Counts and limits of a stretch."""
        results: Sequence[str] = [limit.result for limit in stretch.limits]
        return SessionSummary(
            1,
            "day" if kind == "day" else "hour",
            times.begin,
            times.end,
            times.boot,
            place,
            stretch.counts,
            stretch.validity,
            stretch.reasons,
            stretch.verdict,
            results.count("fail"),
            results.count("undecided"),
        )

    def gap(self, times: Times, reason: str) -> SessionSummary:
        """Time in which nothing was measured."""
        return SessionSummary(
            1,
            "not-measured",
            times.begin,
            times.end,
            times.boot,
            None,
            None,
            "DEGRADED",
            [reason],
            "NONE",
            0,
            0,
        )


def schema_path() -> Path:
    """The JSON Schema of a line of the journal, shipped with the package."""
    return Path(__file__).with_name("summary.schema.json")


def session_summary_schema() -> dict[str, Any]:
    """The schema of a line of `summaries.jsonl` of a session."""
    return json_schema(
        SessionSummary,
        "a stretch of a session with a reflector, or time without one",
        closed=True,
        **{"$id": "urn:wiregauge:session-summary:1", "description": "null: not there."},
    )
