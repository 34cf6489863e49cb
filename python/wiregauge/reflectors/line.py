"""One second of a session without an end, as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wiregauge.files.typed_json import Count, Grade, Verdict, json_schema
from wiregauge.reflectors.measured import Counts, LimitHeld, Measured, Series
from wiregauge.watching.alarms import Raised

__all__ = ["AlarmNow", "alarm_now", "line_of", "line_schema", "schema_path"]


class AlarmNow(Struct, frozen=True):
    """A limit that a second broke, or is kept again."""

    what: Literal["broken", "kept-again"]
    begin_s: float
    limit: LimitHeld


class Line(Struct, frozen=True):
    """A second whose packets have had their time for an answer; `so_far` is of all seconds."""

    schema: Literal[1]
    at_s: float
    """End of the second, s after the begin of the first."""
    begin: str
    """Of the second, UTC."""
    counts: Counts
    """Of the packets sent in the second."""
    series: dict[str, Series]
    so_far: Counts
    open: Count
    """Packets whose time for an answer is not over; in no other count."""
    validity: Grade
    """By all so far, as at the end; so are `reasons` and `verdict`."""
    reasons: list[str]
    verdict: Verdict
    broken: Count
    """Limits that are broken at the moment."""
    alarms: list[AlarmNow]


def alarm_now(alarm: Raised[LimitHeld]) -> AlarmNow:
    """An alarm as a line has it."""
    return AlarmNow("broken" if alarm.end_s is None else "kept-again", alarm.begin_s, alarm.promise)


def line_of(
    times: tuple[float, str],
    second: Measured,
    so_far: Measured,
    still_open: int,
    alarms: tuple[Sequence[Raised[LimitHeld]], int],
) -> str:
    """The line of a second, which ends at and began at `times`; `alarms` are those of it, and how many are active."""
    line = Line(
        schema=1,
        at_s=times[0],
        begin=times[1],
        counts=second.counts,
        series=second.series,
        so_far=so_far.counts,
        open=still_open,
        validity=so_far.validity,
        reasons=so_far.reasons,
        verdict=so_far.verdict,
        broken=alarms[1],
        alarms=list(map(alarm_now, alarms[0])),
    )
    return json.dumps(msgspec.to_builtins(line))


def schema_path() -> Path:
    """The JSON Schema of a line, shipped with the package."""
    return Path(__file__).with_name("line.schema.json")


def line_schema() -> dict[str, Any]:
    """The schema of a line that `probe --forever --json` prints each second."""
    return json_schema(
        Line,
        "one second of a session with a reflector",
        closed=True,
        **{
            "$id": "urn:wiregauge:session-second:1",
            "description": "null: not stated, or not supported by n.",
        },
    )
