"""One second of a watch as a line of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wiregauge.files.typed_json import Count, Verdict, json_schema
from wiregauge.streams import PromiseResult
from wiregauge.watching.alarms import Alarm
from wiregauge.watching.watch import Second

__all__ = ["alarm_now", "line_of", "schema_path", "watch_schema"]


class StreamNow(Struct, frozen=True):
    """A stream in the last second."""

    name: str
    frames: Count
    octets: Count
    min_ps: int | None
    """Shortest time between two frames that ended in it; None: none did."""
    max_ps: int | None
    missing: Count | None
    """Numbers that turned out to be missing; None: it has none."""


class AlarmNow(Struct, frozen=True):
    """A promise that broke in the last second, or is kept again."""

    what: Literal["broken", "kept-again"]
    begin_s: float
    promise: PromiseResult


class Line(Struct, frozen=True):
    """A second; what has no other time is of all seconds so far."""

    schema: Literal[1]
    at_s: float
    """End of the second, s after the begin."""
    frames: Count
    frames_in_second: Count
    dropped: Count
    """Frames that the kernel dropped, as this program was too slow."""
    beyond: Count
    """Messages of streams beyond the greatest number that is followed."""
    validity: Literal["VALID", "DEGRADED"]
    reasons: list[str]
    verdict: Verdict
    """By all so far, as at the end."""
    broken: Count
    """Promises that are broken at the moment."""
    alarms: list[AlarmNow]
    streams: list[StreamNow]


def alarm_now(alarm: Alarm) -> AlarmNow:
    """An alarm as a line has it."""
    return AlarmNow("broken" if alarm.end_s is None else "kept-again", alarm.begin_s, alarm.promise)


def line_of(second: Second, frames_before: int, alarms: list[Alarm], broken: int) -> str:
    """The line of a second."""
    seen = second.so_far
    line = Line(
        schema=1,
        at_s=seen.duration_ps / 1e12,
        frames=seen.frames,
        frames_in_second=seen.frames - frames_before,
        dropped=sum(tap.dropped or 0 for tap in seen.taps),
        beyond=seen.beyond,
        validity=seen.validity,
        reasons=seen.reasons,
        verdict=seen.verdict,
        broken=broken,
        alarms=list(map(alarm_now, alarms)),
        streams=[
            StreamNow(
                stream.name,
                stream.frames,
                stream.octets,
                stream.period.min,
                stream.period.max,
                stream.sequence.missing if stream.sequence is not None else None,
            )
            for stream in second.last.streams
        ],
    )
    return json.dumps(msgspec.to_builtins(line))


def schema_path() -> Path:
    """The JSON Schema of a line, shipped with the package."""
    return Path(__file__).with_name("watch.schema.json")


def watch_schema() -> dict[str, Any]:
    """The schema of a line that `watch --json` prints each second."""
    return json_schema(
        Line,
        "one second of a watch",
        closed=True,
        **{"$id": "urn:wiregauge:watch:1", "description": "null: not there."},
    )
