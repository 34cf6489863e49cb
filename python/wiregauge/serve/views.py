"""A view of messages against time: which run, flows, measures and window an address names, and its exact columns.

Every view is an address: `run`, `f` (flows, by `flow_key`), `m` (measures), `t` (`begin,end`, s), `y` (`log`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from wiregauge.figures.model import Style
from wiregauge.figures.palette import variety
from wiregauge.figures.traces import courses_note
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.extremes import CourseShape, measures_of
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.serve.opened import Opened, flow_key

__all__ = [
    "MOST_COLUMNS",
    "MOST_DRAWN",
    "View",
    "columns_json",
    "described",
    "shapes_of",
    "shown_in",
    "styles_of",
    "view_of",
]

MOST_DRAWN: Final = 12
"""Flows in one view: colours distinguish no more."""
USUAL_DRAWN: Final = 4
MOST_COLUMNS: Final = 4000


class View(Struct, frozen=True):
    """A view; `begin` and `end` are None for the whole run."""

    run: RunPlan
    flows: tuple[FlowPlan, ...]
    measures: tuple[str, ...]
    begin: float | None
    end: float | None
    log: bool


def view_of(opened: Opened, asked: QueryParams) -> View:
    """The view that an address names. Raises HTTPException with a sentence for one that the run does not have."""
    runs = opened.runs
    if not runs:
        raise HTTPException(404, "No run of this campaign was begun.")
    run = runs[0]
    if text := asked.get("run", ""):
        found = opened.run(int(text)) if text.isdecimal() else None
        if found is None:
            raise HTTPException(404, f"This directory has no run {text}; it has {len(runs)}.")
        run = found
    known = {flow_key(flow): flow for flow in run.flows}
    names = [name for name in asked.get("f", "").split(",") if name]
    for name in names:
        if name not in known:
            raise HTTPException(404, f"Run {run.index} has no flow {name}.")
    flows = [known[name] for name in names] or _worst(opened, run)
    measures = tuple(dict.fromkeys(name for name in asked.get("m", "").split(",") if name))
    for name in measures:
        if name not in DEFINITIONS:
            raise HTTPException(404, f"{name} is no measure.")
    begin, end = _window(asked.get("t", ""))
    usual = dict.fromkeys(flow.main for flow in flows)
    return View(run, tuple(flows[:MOST_DRAWN]), measures or tuple(usual), begin, end, asked.get("y") == "log")


def _window(text: str) -> tuple[float | None, float | None]:
    if not text:
        return None, None
    try:
        begin, end = map(float, text.split(","))
    except ValueError:
        begin = end = math.nan
    if not (math.isfinite(begin) and math.isfinite(end) and begin < end and max(-begin, end) < 1e9):
        raise HTTPException(400, f"t={text}: write begin,end in seconds, as in t=0.5,1.25")
    return begin, end


def _worst(opened: Opened, run: RunPlan) -> list[FlowPlan]:
    """The flows whose slowest message took longest, as far as the stored judgement says."""

    def greatest(flow: FlowPlan) -> float:
        judged = opened.judged_flow(run.index, flow).get(f"{flow.main}_ns")
        found = judged.get("max") if isinstance(judged, dict) else None
        return float(found) if isinstance(found, int | float) else -math.inf

    chosen = {id(flow) for flow in sorted(run.flows, key=lambda flow: -greatest(flow))[:USUAL_DRAWN]}
    return [flow for flow in run.flows if id(flow) in chosen]


def shapes_of(opened: Opened, view: View, measure: str, most: int) -> dict[str, CourseShape]:
    """The window of a view in at most `most` columns, by flow; flows without the measure are left out."""
    found: dict[str, CourseShape] = {}
    with opened.reading:
        for flow in view.flows:
            course = opened.courses(view.run).of(flow, measure)
            if course is not None:
                found[flow_key(flow)] = course.columns(most, view.begin, view.end)
    return found


def columns_json(opened: Opened, view: View, measure: str, most: int) -> Mapping[str, Any]:
    """A measure of the window for the page: each flow's columns, instants in s, values in ns."""
    shapes = shapes_of(opened, view, measure, most)
    return {
        "measure": measure,
        "note": shown_in(view, measure, shapes.values()),
        "flows": {name: _columns(shape) for name, shape in shapes.items()},
    }


def shown_in(view: View, measure: str, shapes: Iterable[CourseShape]) -> str:
    """A sentence for below a picture: how many values of which flows it shows, and how."""
    what = "passages through switches" if measure == "residence" else "messages"
    drawn = [shape for shape in shapes if len(shape.n)]
    if not drawn:
        return f"There are no {what} of these flows in the window."
    note, of_all = courses_note(drawn, what), len(view.run.flows)
    return note if len(drawn) == of_all else f"{note} Drawn: {len(drawn)} of the run's {of_all} flows."


def _columns(shape: CourseShape) -> Mapping[str, Any]:
    names = ("begin", "end", "least", "greatest", "least_at", "greatest_at")
    counts = ("messages", "lost", "unknown", "n")
    return {
        **{
            name: [None if math.isnan(value) else value for value in getattr(shape, name).tolist()]
            for name in names
        },
        **{name: getattr(shape, name).tolist() for name in counts},
    }


def styles_of(run: RunPlan) -> dict[str, Style]:
    """The style of each flow of a run, by `flow_key`: the same whichever of them are drawn."""
    seen: dict[str, int] = {}
    found = {}
    for flow in run.flows:
        place = seen.setdefault(flow.protocol, 0)
        seen[flow.protocol] += 1
        found[flow_key(flow)] = variety(flow.protocol, place, len(run.flows))
    return found


def described(run: RunPlan) -> Mapping[str, Any]:
    """A run as the page of messages needs it: its flows, their measures and colours, and its span, s."""
    styles = styles_of(run)
    return {
        "run": run.index,
        "span": [run.warm_up_ns / 1e9, (run.warm_up_ns + run.duration_ns) / 1e9],
        "flows": [
            {
                "key": flow_key(flow),
                "label": f"{flow.id}: {flow.source} → {flow.destination}"
                + (" and back" if flow.relayed else ""),
                "colour": styles[flow_key(flow)].colour,
                "measures": measures_of(flow),
            }
            for flow in run.flows
        ],
        "measures": [
            {"name": name, "title": one.title, "definition": one.formula}
            for name, one in DEFINITIONS.items()
            if any(name in measures_of(flow) for flow in run.flows)
        ],
    }
