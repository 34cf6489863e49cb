"""The page of messages against time: its columns, its pictures as files, and the stories of single messages."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from wiregauge.figures.model import Axis, Figure, Panel, Scatter
from wiregauge.figures.traces import US
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.explaining import Stories, Subject
from wiregauge.measures.extremes import CourseShape
from wiregauge.report.zoom import (
    COLUMN_HEADS,
    PICTURE_COLUMNS,
    described,
    flow_key,
    notes_on,
    shown_in,
    story_content,
    styles_of,
)
from wiregauge.serve.index import Listed
from wiregauge.serve.notes import notes_of
from wiregauge.serve.opened import Opened
from wiregauge.serve.rendering import page
from wiregauge.serve.views import MOST_COLUMNS, View, columns_json, shapes_of, view_of

__all__ = ["columns", "message", "messages_page", "picture"]

_MEDIA: Final = {"svg": "image/svg+xml", "png": "image/png", "csv": "text/csv; charset=utf-8"}


def messages_page(request: Request, listed: Listed, opened: Opened, *, control: bool) -> Response:
    """The page; a script of it asks for the columns of the window."""
    view = view_of(opened, request.query_params)
    notes, _ = notes_of(opened)
    about = {
        **described(view.run),
        "shown": [flow_key(flow) for flow in view.flows],
        "drawn": list(view.measures),
        "notes": notes_on(notes, view.run),
    }
    root = request.scope.get("root_path", "")
    return page(
        request,
        "messages.html.j2",
        listed=listed,
        runs=opened.runs,
        repeats=opened.recorded.plan.repeats,
        view=view,
        control=control,
        base=f"{root}/run/{listed.key}",
        about=Markup(json.dumps(about).replace("<", "\\u003c")),
    )


def columns(request: Request, _listed: Listed, opened: Opened) -> Response:
    """The columns of one measure as JSON."""
    view = view_of(opened, request.query_params)
    found = columns_json(opened, view, view.measures[0], _columns(request))
    # After the first picture: files are compared one at a time, and its store is small.
    opened.check_tables()
    return Response(msgspec.json.encode(found), media_type="application/json")


def _columns(request: Request) -> int:
    text = request.query_params.get("columns", str(PICTURE_COLUMNS))
    if not text.isdecimal() or not 1 <= int(text) <= MOST_COLUMNS:
        raise HTTPException(400, f"columns={text}: write a number from 1 to {MOST_COLUMNS}")
    return int(text)


def picture(request: Request, listed: Listed, opened: Opened) -> Response:
    """A view as a file: SVG or PNG of what is drawn, CSV of its columns."""
    kind = request.path_params["kind"]
    if kind not in _MEDIA:
        raise HTTPException(404, f"There are pictures as {', '.join(_MEDIA)}.")
    view = view_of(opened, request.query_params)
    drawn = {name: shapes_of(opened, view, name, PICTURE_COLUMNS) for name in view.measures}
    content = _table(view, drawn).encode() if kind == "csv" else _drawn(_figure(opened, view, drawn), kind)
    name = f"{listed.key}-{'-'.join(view.measures)}.{kind}"
    return Response(
        content,
        media_type=_MEDIA[kind],
        headers={"content-disposition": "attachment; filename=" + f'"{name}"'},
    )


def _table(view: View, drawn: dict[str, dict[str, CourseShape]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "flow", "measure", *COLUMN_HEADS.values()])
    for measure, shapes in drawn.items():
        for key, shape in shapes.items():
            for row in zip(*(getattr(shape, name).tolist() for name in COLUMN_HEADS), strict=True):
                writer.writerow(
                    [view.run.index, key, measure, *("" if math.isnan(cell) else cell for cell in row)]
                )
    return text.getvalue()


def _figure(opened: Opened, view: View, drawn: dict[str, dict[str, CourseShape]]) -> Figure:
    styles = styles_of(view.run)
    panels, notes = [], []
    for measure, shapes in drawn.items():
        traces = []
        for flow in view.flows:
            shape = shapes.get(flow_key(flow))
            if shape is None or not len(shape.n):
                continue
            t, value = shape.marks()
            traces.append(Scatter(f"flow {flow.name}", t, value / US, styles[flow_key(flow)], 3, 0.7))
        title = DEFINITIONS[measure].title
        window = (view.begin, view.end) if view.begin is not None and view.end is not None else None
        panels.append(
            Panel(title, Axis("time in the run (s)", span=window), Axis("µs", log=view.log), traces)
        )
        notes.append(f"{title}: {shown_in(view.run, measure, shapes.values())}")
    name = opened.recorded.plan.name
    return Figure("messages", f"{name}, run {view.run.index}", "", panels, share_y=False, notes=notes)


def _drawn(figure: Figure, kind: str) -> bytes:
    from wiregauge.figures import printed

    with TemporaryDirectory(prefix="wiregauge-") as folder:
        (path,) = printed.save(figure, Path(folder), {kind})
        return path.read_bytes()


def message(request: Request, listed: Listed, opened: Opened) -> Response:
    """The story of the message at an instant (`at`, s) of the course of a measure (`by`) of a flow (`of`)."""
    asked = request.query_params
    view = view_of(opened, asked)
    flow = next((one for one in view.run.flows if flow_key(one) == asked.get("of")), None)
    measure = asked.get("by") or ""
    if flow is None or measure not in DEFINITIONS:
        raise HTTPException(404, f"Run {view.run.index} has no such flow or measure.")
    try:
        at = float(asked.get("at", ""))
    except ValueError:
        at = math.nan
    if not abs(at) < 1e9:
        raise HTTPException(400, "at: write an instant in seconds")
    judged = opened.judged_flow(view.run.index, flow)
    main = judged.get(f"{flow.main}_ns")
    median = main.get("p50") if isinstance(main, dict) else None
    if median is None:
        raise HTTPException(
            409, "This state of the run was not judged; its report judges it, then there are stories."
        )
    subject = Subject(flow, int(judged.get("sent") or flow.count), float(median))
    return page(
        request,
        "message.html.j2",
        listed=listed,
        story=Stories(opened.recorded, view.run).at(subject, measure, at),
        **story_content(opened.recorded.plan.network.names, flow),
    )
