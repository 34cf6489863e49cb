"""The judgement for programs: the stable JSON of `wiregauge show --json` and of `measures.json`.

Numbers keep their full precision; a figure that could not be determined is null; infinity (a percentile that falls
among the lost) is the string "lost", because JSON has no infinity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from wiregauge.files.typed_json import as_json, filled
from wiregauge.measures.definitions import DEFINITIONS, SERIES, SINGLES
from wiregauge.measures.large import are_many, large_run
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult, RunResult
from wiregauge.measures.quantities import figure_of
from wiregauge.measures.validity.calibration import Citation, citations, corrections, run_load
from wiregauge.results.flow_types import (
    BRIEF,
    BriefShown,
    FlowMetShown,
    FlowRestShown,
    FlowShown,
    ServedShown,
    ServiceShown,
    brief_summary,
)
from wiregauge.results.show_types import PooledShown, RunShown, Shown
from wiregauge.results.summary_types import summary_shown


def schema_path() -> Path:
    """The JSON Schema of `show_json`, shipped with the package."""
    return Path(__file__).with_name("show.schema.json")


class _Encoded(str):
    """JSON text of an object that is already encoded."""

    __slots__ = ()


def show_json(judgement: Judgement) -> Shown:
    """The judgement as JSON objects, in the form docs/reference/show.md documents."""
    return _shown(judgement, list)


def show_chunks(
    judgement: Judgement, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[str]:
    """The text of `show_json` in parts, with keys before and after its own: of many flows one is made at a time."""
    return json_chunks({**before, **_shown(judgement, iter), **after})


def details(judgement: Judgement, run: RunResult) -> Iterator[bytes]:
    """All figures of each flow of a run as JSON, a line for each."""
    cited = citations(judgement.manifest) or ()
    load, names = run_load(run.plan), _names()
    encoder = msgspec.json.Encoder()
    for flow in run.flows:
        yield encoder.encode(_flow(flow, load, cited, names)) + b"\n"


def details_file(run: int) -> str:
    """Path of these lines in the run directory."""
    return f"flows/run-{run:04}.jsonl.gz"


def _shown(judgement: Judgement, listed: Callable[[Iterable[object]], object]) -> Shown:
    cited = citations(judgement.manifest) or ()
    loads = {run.plan.index: run_load(run.plan) for run in judgement.runs}
    # A point with one run has the very flows of the run: their text is made once.
    few = not are_many([flow for run in judgement.runs for flow in run.flows])
    known: dict[int, _Encoded] | None = {} if listed is iter and few else None
    large = {run.plan.index for run in judgement.runs if large_run(run)}
    encode = msgspec.json.encode

    def flows_of(flows: Sequence[FlowResult], load: int) -> object:
        return listed(_flows(flows, load, cited, known))

    def briefly(flows: Sequence[FlowResult]) -> object:
        made = map(_brief, flows)
        return listed(made if listed is list else (_Encoded(encode(one).decode()) for one in made))

    def flows_of_point(point: PointResult) -> dict[str, object]:
        if not large.isdisjoint(point.runs):
            if len(point.runs) == 1:
                return {"flows": [], "flows_of_run": point.runs[0]}
            return {"flows": briefly(point.flows), "flows_of_run": None}
        load = max((loads[index] for index in point.runs), default=0)
        return {"flows": flows_of(point.flows, load), "flows_of_run": None}

    def flows_of_run(run: RunResult) -> dict[str, object]:
        if run.plan.index in large:
            return {"flows": briefly(run.flows), "details": details_file(run.plan.index)}
        return {"flows": flows_of(run.flows, loads[run.plan.index]), "details": None}

    runs = [
        _without_none(filled(RunShown, run, **flows_of_run(run)), "details", "network")
        for run in judgement.runs
    ]
    points = [
        _without_none(filled(PooledShown, point, **flows_of_point(point)), "flows_of_run")
        for point in judgement.points
    ]
    return filled(
        Shown,
        judgement,
        calibrations=[as_json(citation) for citation in cited],
        runs=runs,
        points=points,
    )


def _without_none(made: Any, *keys: str) -> Any:
    """The object without those of `keys` whose value is None."""
    for key in keys:
        if made[key] is None:
            del made[key]
    return made


def _flows(
    flows: Sequence[FlowResult],
    load_percent: int,
    cited: Sequence[Citation],
    known: dict[int, _Encoded] | None,
) -> Iterator[object]:
    names = _names()
    for flow in flows:
        if known is None:
            yield _flow(flow, load_percent, cited, names)
            continue
        if id(flow) not in known:
            known[id(flow)] = _Encoded(json.dumps(_flow(flow, load_percent, cited, names), allow_nan=False))
        yield known[id(flow)]


def _brief(flow: FlowResult) -> dict[str, object]:
    """A flow of a large run: its counters and its main figures."""
    summaries = {f"{name}_ns": brief_summary(flow.summaries.get(name)) for name in BRIEF}
    return {**filled(FlowShown, flow), **flow.counts, **filled(BriefShown, flow), **summaries}


def json_text(value: object, depth: int = 4) -> str:
    """JSON with a line for every part down to `depth`, which is a flow; deeper parts share its line.

    The encoder of the standard library is fast only where it need not indent, and a campaign of many flows is large.
    """
    return "".join(json_chunks(value, depth))


def json_chunks(value: object, depth: int = 4) -> Iterator[str]:
    """`json_text` in parts; an iterator is written as a list."""
    if isinstance(value, _Encoded):
        yield value
    elif depth and isinstance(value, dict) and value:
        for number, (key, part) in enumerate(value.items()):
            yield f"{',' if number else '{'}\n{json.dumps(str(key))}: "
            yield from json_chunks(part, depth - 1)
        yield "\n}"
    elif isinstance(value, Iterator) or (depth and isinstance(value, list) and value):
        empty = True
        for part in value:
            yield "[\n" if empty else ",\n"
            yield from json_chunks(part, max(depth - 1, 0))
            empty = False
        yield "[]" if empty else "\n]"
    else:
        yield json.dumps(value, allow_nan=False)


class _Names(Struct, frozen=True):
    """The measures that are defined now, with their keys: thousands of flows share them."""

    series: Mapping[str, str]
    singles: Mapping[str, str]


def _names() -> _Names:
    return _Names({name: f"{name}_ns" for name in SERIES}, {name: DEFINITIONS[name].key for name in SINGLES})


def _flow(flow: FlowResult, load_percent: int, cited: Sequence[Citation], names: _Names) -> FlowShown:
    sampled = flow.sampled is not None
    series = {
        key: summary_shown(summary, sampled=sampled)
        if (summary := flow.summaries.get(name)) is not None
        else None
        for name, key in names.series.items()
    }
    singles = {name: figure_of(flow, name) for name in names.singles}
    intervals = {f"{name}_interval": figure.interval for name, figure in singles.items()}
    corrected = [as_json(one) for one in corrections(flow, load_percent, cited)]
    return cast(
        FlowShown,
        {
            **filled(FlowShown, flow),
            **flow.counts,
            **filled(FlowMetShown, flow),
            **series,
            **filled(FlowRestShown, flow, corrected=corrected),
            **{key: singles[name].value for name, key in names.singles.items()},
            **filled(ServedShown, flow),
            **{name: list(ends) if ends is not None else None for name, ends in intervals.items()},
            **filled(ServiceShown, flow),
        },
    )
