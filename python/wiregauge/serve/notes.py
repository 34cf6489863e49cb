"""Notes and tags of a run, written from its pages where the server may be controlled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from wiregauge.records import Notes, RunDirectoryError, change_notes, read_notes
from wiregauge.report.zoom import flow_key
from wiregauge.serve.index import Listed
from wiregauge.serve.opened import Opened

__all__ = ["back", "form_of", "notes_of", "write_note"]

LONGEST_FORM: Final = 64 << 10
"""Bytes of a form that is sent."""


async def form_of(request: Request, most: int = LONGEST_FORM) -> Mapping[str, str]:
    """The fields of a form of at most `most` bytes. Raises HTTPException for one that is too long or none."""
    sent = b""
    async for part in request.stream():
        sent += part
        if len(sent) > most:
            raise HTTPException(413, f"at most {most} bytes can be sent")
    try:
        return dict(parse_qsl(sent.decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise HTTPException(400, "what was sent is no form") from None


def notes_of(opened: Opened) -> tuple[Notes, str]:
    """The notes of a run, and why there are none to show; the sentence is empty where they could be read."""
    try:
        return read_notes(opened.path), ""
    except RunDirectoryError as error:
        return Notes(), str(error)


def write_note(form: Mapping[str, str], listed: Listed, opened: Opened) -> None:
    """Adds or removes a note, or replaces the tags, as a form says. Raises HTTPException with a sentence."""
    try:
        change_notes(listed.path, _change(form, opened))
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


def _change(form: Mapping[str, str], opened: Opened) -> Callable[[Notes], Notes]:
    if form.get("do") == "tags":
        return lambda notes: notes.tagged(form.get("tags", ""))
    if form.get("do") == "remove":
        return lambda notes: notes.without(int(form.get("place", "")), form.get("written", ""))
    if form.get("do") != "add":
        raise ValueError("there is nothing to do")
    run = opened.run(int(form["run"])) if form.get("run") else None
    flow = (
        next((one for one in run.flows if flow_key(one) == form.get("flow")), None)
        if run is not None
        else None
    )
    if form.get("flow") and flow is None:
        raise ValueError(f"there is no flow {form['flow']}")
    at = float(form["at"]) if form.get("at") else None
    if at is not None and not (math.isfinite(at) and run is not None):
        raise ValueError("an instant is a number of seconds of a run")
    return lambda notes: notes.added(
        form.get("text", ""),
        run=run.index if run is not None else None,
        flow=flow.id if flow is not None else None,
        to=flow.destination if flow is not None and flow.multicast else None,
        at_s=at,
    )


def back(request: Request, listed: Listed, form: Mapping[str, str]) -> Response:
    """Leads back to the page that sent a form: that of messages with its view, or that of the run."""
    root = request.scope.get("root_path", "")
    view = form.get("view", "")
    place = f"/zoom{view}" if view.startswith("?") else ""
    return RedirectResponse(f"{root}/run/{listed.key}{place}#notes", 303)
