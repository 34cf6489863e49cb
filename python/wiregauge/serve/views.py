"""A view of messages against time: which run, flows, measures and window an address names, and its exact columns.

Every view is an address: `run`, `f` (flows, by `flow_key`), `m` (measures), `t` (`begin,end`, s), `y` (`log`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.extremes import CourseShape
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.report.zoom import COLUMN_HEADS, MOST_DRAWN, flow_key, shown_in, slowest
from wiregauge.serve.opened import Opened

__all__ = [
    "MOST_COLUMNS",
    "View",
    "columns_json",
    "shapes_of",
    "view_of",
]

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

    return slowest(run.flows, greatest)


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
        "note": shown_in(view.run, measure, shapes.values()),
        "flows": {name: _columns(shape) for name, shape in shapes.items()},
    }


def _columns(shape: CourseShape) -> Mapping[str, Any]:
    return {
        name: [None if math.isnan(value) else value for value in getattr(shape, name).tolist()]
        for name in COLUMN_HEADS
    }
