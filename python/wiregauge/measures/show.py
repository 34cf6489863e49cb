"""The judgement for programs: the stable JSON of `wiregauge show --json` and of `measures.json`.

Numbers keep their full precision; a figure that could not be determined is null; infinity (a percentile that falls
among the lost) is the string "lost", because JSON has no infinity.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from wiregauge.measures.definitions import DEFINITIONS, SERIES, SINGLES
from wiregauge.measures.metrics.quantities import figure_of
from wiregauge.measures.metrics.results import FlowResult, Judgement
from wiregauge.measures.schemas import filled
from wiregauge.measures.shown import (
    CitationShown,
    CorrectedShown,
    FlowMetShown,
    FlowRestShown,
    FlowShown,
    PooledShown,
    RunShown,
    ServedShown,
    ServiceShown,
    Shown,
    summary_shown,
)
from wiregauge.measures.validity.calibration import Citation, citations, corrections, run_load


def schema_path() -> Path:
    """The JSON Schema of `show_json`, shipped with the package."""
    return Path(__file__).with_name("show.schema.json")


def show_json(judgement: Judgement) -> Shown:
    """The judgement as JSON objects, in the form docs/reference/show.md documents."""
    return _shown(judgement, list)


def show_chunks(
    judgement: Judgement, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[str]:
    """The text of `show_json` in parts, with keys before and after its own: of many flows one is made at a time."""
    return json_chunks({**before, **_shown(judgement, iter), **after})


def _shown(judgement: Judgement, listed: Callable[[Iterable[FlowShown]], object]) -> Shown:
    cited = citations(judgement.manifest) or ()
    loads = {run.plan.index: run_load(run.plan) for run in judgement.runs}
    points = []
    for point in judgement.points:
        load = max((loads[index] for index in point.runs), default=0)
        points.append(filled(PooledShown, point, flows=listed(_flows(point.flows, load, cited))))
    runs = [
        filled(RunShown, run, flows=listed(_flows(run.flows, loads[run.plan.index], cited)))
        for run in judgement.runs
    ]
    return filled(
        Shown,
        judgement,
        calibrations=[filled(CitationShown, citation) for citation in cited],
        runs=runs,
        points=points,
    )


def _flows(flows: Sequence[FlowResult], load_percent: int, cited: Sequence[Citation]) -> Iterator[FlowShown]:
    return (_flow(flow, load_percent, cited) for flow in flows)


def json_text(value: object, depth: int = 4) -> str:
    """JSON with a line for every part down to `depth`, which is a flow; what is deeper stands in one line.

    The encoder of the standard library is fast only where it need not indent, and a campaign of many flows is large.
    """
    return "".join(json_chunks(value, depth))


def json_chunks(value: object, depth: int = 4) -> Iterator[str]:
    """`json_text` in parts; what an iterator gives is written as a list."""
    if depth and isinstance(value, dict) and value:
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


def _flow(flow: FlowResult, load_percent: int, cited: Sequence[Citation]) -> FlowShown:
    sampled = flow.sampled is not None
    found = {name: flow.summaries.get(name) for name in SERIES}
    series = {
        f"{name}_ns": summary_shown(summary, sampled=sampled) if summary is not None else None
        for name, summary in found.items()
    }
    singles = {name: figure_of(flow, name) for name in SINGLES}
    intervals = {f"{name}_interval": figure.interval for name, figure in singles.items()}
    corrected = [filled(CorrectedShown, one) for one in corrections(flow, load_percent, cited)]
    return cast(
        FlowShown,
        {
            **filled(FlowShown, flow),
            **flow.counts,
            **filled(FlowMetShown, flow),
            **series,
            **filled(FlowRestShown, flow, corrected=corrected),
            **{DEFINITIONS[name].key: figure.value for name, figure in singles.items()},
            **filled(ServedShown, flow),
            **{name: list(ends) if ends is not None else None for name, ends in intervals.items()},
            **filled(ServiceShown, flow),
        },
    )
