"""Messages against time inside a report: every message of runs small enough, packed, for the view of `zoom.js`.

All numbers are in one deflated block. A series has its instants, one byte of fate for each element, and for each
measure the values and one byte that is 1 where there is one. Integers (ps) are differences of 64 bits, stored byte
by byte of all of them, which deflates to two or three bytes for each. `embedded.js` reads it.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.figures.traces import COURSES_WORDS
from wiregauge.measures import DEFINITIONS, Judgement
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.explaining import Explanation
from wiregauge.measures.extremes import Courses, Values, measures_of
from wiregauge.measures.extremes.building import RESIDENCE
from wiregauge.measures.large import is_large
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.judgement import RunResult
from wiregauge.measures.metrics.percentiles import needed_for
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.records import read_notes
from wiregauge.report.zoom import (
    COLUMN_HEADS,
    NOTE_WORDS,
    PICTURE_COLUMNS,
    WINDOW_CURVE,
    WINDOW_WORDS,
    described,
    flow_key,
    notes_on,
    slowest,
    story_content,
)

__all__ = ["MOST_MESSAGES", "Embedded", "embedded"]

MOST_MESSAGES: Final = 50_000
"""Messages of all runs together up to which a report contains each of them."""
_MEASURES: Final = ("rtt", "latency", "send_error")
"""Measures that a report contains, of each flow those that it has."""

Render = Callable[[str, Mapping[str, Any]], str]


class Embedded(Struct, frozen=True):
    """The packed messages of a report; `why_not` is a sentence where it contains none."""

    about: str = ""
    values: str = ""
    runs: tuple[tuple[int, str], ...] = ()
    """Index and description of each run."""
    many_flows: int = 0
    """Flows of the run with the most."""
    measures: tuple[str, ...] = ()
    """Titles of the measures."""
    why_not: str = ""
    see_server: bool = False
    """Whether the server shows what this does not."""


def packed(data: bytes) -> str:
    """Deflated, as text."""
    return b64encode(zlib.compress(data, 9)).decode("ascii")


def embedded(judgement: Judgement, explanation: Explanation, render: Render) -> Embedded:
    """The messages of a judged run directory; `render` makes the text of a template.

    Raises RunDirectoryError for a file that cannot be read.
    """
    recorded = open_recorded(judgement.directory)
    results = [result for result in judgement.runs if result.plan.index in recorded.runs]
    count = sum(recorded.rows(result.plan.index) for result in results)
    if not count:
        return Embedded(why_not="No message was recorded, so there is nothing to draw.")
    if count > MOST_MESSAGES or is_large(judgement):
        return Embedded(
            why_not=f"The {count} messages are too many for this file, which contains up to {MOST_MESSAGES}.",
            see_server=True,
        )
    stories = _stories(recorded, explanation, render)
    notes = read_notes(judgement.directory)
    courses = [Courses(recorded, result.plan, result.plan.flows) for result in results]
    with_passages = sum(one.passages for one in courses) <= MOST_MESSAGES
    abouts, series = [], []
    for result, of_run in zip(results, courses, strict=True):
        own = list(_series(of_run, result.plan, with_passages=with_passages))
        series += own
        abouts.append(
            {
                **_described(result, {name for one in own for name in one.measures}),
                "notes": notes_on(notes, result.plan),
                "stories": stories.get(result.plan.index, []),
            }
        )
    about = {
        "name": judgement.plan.name,
        "runs": abouts,
        "series": [[one.run, one.flow, one.count, one.measures] for one in series],
        "words": {**COURSES_WORDS, **NOTE_WORDS},
        "heads": COLUMN_HEADS,
        "columns": PICTURE_COLUMNS,
        "window": {
            "words": WINDOW_WORDS,
            "percentiles": [_percentile(name) for name in QUANTILES],
            **WINDOW_CURVE,
        },
    }
    used = {name for one in series for name in one.measures}
    return Embedded(
        packed(json.dumps(about, separators=(",", ":"), allow_nan=False).encode()),
        packed(b"".join(one.numbers for one in series)),
        tuple((run.plan.index, _named(judgement, run.plan)) for run in results),
        max(len(run.plan.flows) for run in results),
        tuple(one.title for name, one in DEFINITIONS.items() if name in used),
    )


def _percentile(name: str) -> tuple[str, int, int, int]:
    """Its name, its share as numerator and denominator, and how many values it needs."""
    share = Fraction(str(QUANTILES[name]))
    return name, share.numerator, share.denominator, needed_for(QUANTILES[name])


def _described(result: RunResult, measures: Collection[str]) -> Mapping[str, Any]:
    """A run with these measures, and what is drawn of it at first."""
    summaries = {(flow.plan.id, flow.plan.receiver): flow.summaries for flow in result.flows}

    def greatest(flow: FlowPlan) -> float:
        summary = summaries.get((flow.id, flow.receiver), {}).get(flow.main)
        return -np.inf if summary is None or summary.maximum is None else summary.maximum

    shown = slowest(result.plan.flows, greatest)
    return {
        **described(result.plan, measures),
        "shown": [flow_key(flow) for flow in shown],
        "drawn": list(dict.fromkeys(flow.main for flow in shown)),
    }


def _named(judgement: Judgement, run: RunPlan) -> str:
    point = "".join(f", {name} {value}" for name, value in run.point.items())
    return f"{run.index}{point}" + (f", repeat {run.repeat}" if judgement.plan.repeats > 1 else "")


class _Series(Struct, frozen=True):
    run: int
    flow: str
    count: int
    measures: list[str]
    numbers: bytes


def _series(courses: Courses, run: RunPlan, *, with_passages: bool) -> Iterator[_Series]:
    """Each series of a run: of messages, and of passages."""
    parts = [courses.every(_MEASURES), courses.every_residence() if with_passages else {}]
    for flow in run.flows:
        for part in parts:
            values = part.get((flow.id, flow.receiver))
            if values is None:
                continue
            names = [
                name for name in (*_MEASURES, RESIDENCE) if name in values.of and name in measures_of(flow)
            ]
            if names:
                yield _Series(run.index, flow_key(flow), len(values), names, _numbers(values, names))


def _numbers(values: Values, names: list[str]) -> bytes:
    count = len(values)
    parts = [_differences(values.at), (values.lost + 2 * values.unknown).astype(np.uint8).tobytes()]
    for name in names:
        value, known = values.of[name]
        has = np.ones(count, dtype=np.bool_) if known is None else known
        parts += [_differences(np.where(has, value, 0)), has.astype(np.uint8).tobytes()]
    return b"".join(parts)


def _differences(column: NDArray[np.int64]) -> bytes:
    steps = np.diff(column, prepend=np.int64(0)).astype("<i8")
    return steps.view(np.uint8).reshape(-1, 8).T.tobytes()


def _stories(
    recorded: Recorded, explanation: Explanation, render: Render
) -> Mapping[int, list[Mapping[str, object]]]:
    """The stories that the explanation tells, by run."""
    found: dict[int, list[Mapping[str, object]]] = {}
    for one in explanation.flows:
        content = story_content(recorded.plan.network.names, one.flow)
        for message in one.worst:
            fate = {"sequence": message.sequence, "sent_at": message.sent_at, "outcome": ""}
            text = render("story.html.j2", {**content, "fate": fate, "m": message})
            found.setdefault(one.run.index, []).append(
                {"flow": flow_key(one.flow), "at": message.sent_at, "text": text}
            )
    return found
