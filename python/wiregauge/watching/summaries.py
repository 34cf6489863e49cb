"""Summaries of a watch that goes on: each hour and each day by itself, stored as they end, and what was not watched.

The streams of a stretch are those of a watch of exactly that time, judged by the same code, in a directory as `import`
makes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.files.typed_json import Count, Verdict, json_schema
from wiregauge.streams import Observed, StreamsError, written
from wiregauge.watching.stretches import Stretches, Times

__all__ = ["Summaries", "Summary", "schema_path", "summary_schema"]


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


class Summaries(Stretches[Observed]):
    """The stretches of a watch under way, and their folder."""

    what = "the watch"
    done = "watched"

    def failure(self, text: str) -> StreamsError:
        """The error of streams."""
        return StreamsError(text)

    def doubted(self, stretch: Observed, reasons: list[str]) -> Observed:
        """DEGRADED, with these reasons, too."""
        return replace(stretch, validity="DEGRADED", reasons=[*stretch.reasons, *reasons])

    def store(self, stretch: Observed, place: Path) -> None:
        """Stores the streams. Raises StreamsError."""
        written(stretch, place)

    def line(self, stretch: Observed, kind: str, times: Times, place: str | None) -> Summary:
        """Frames, streams and promises of a stretch."""
        results = [promise.result for promise in stretch.promises]
        return Summary(
            1,
            "day" if kind == "day" else "hour",
            times.begin,
            times.end,
            times.boot,
            place,
            stretch.frames,
            sum(tap.dropped or 0 for tap in stretch.taps),
            len(stretch.streams),
            stretch.validity,
            stretch.reasons,
            stretch.verdict,
            results.count("fail"),
            results.count("undecided"),
        )

    def gap(self, times: Times, reason: str) -> Summary:
        """Time that was not watched."""
        return Summary(
            1,
            "not-watched",
            times.begin,
            times.end,
            times.boot,
            None,
            0,
            0,
            0,
            "DEGRADED",
            [reason],
            "NONE",
            0,
            0,
        )


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
