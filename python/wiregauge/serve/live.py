"""The page of a campaign that is under way, and the request to stop it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from wiregauge.files import printable, printable_content
from wiregauge.plan import Campaign, Run
from wiregauge.records import RunDirectory, RunDirectoryError
from wiregauge.records.live import Live, ask_to_stop, is_asked_to_stop, read_live
from wiregauge.records.lock import is_locked
from wiregauge.serve.drawing import drawing_of, traffic_of
from wiregauge.serve.index import Listed
from wiregauge.serve.rendering import page

__all__ = ["live_now", "live_page", "stop"]

STALE_S: Final = 5.0
"""Age of the last word beyond which the page says that none comes."""


def live_page(request: Request, listed: Listed, *, control: bool) -> Response:
    """The page; a script of it asks for the figures once a second."""
    campaign = RunDirectory.open(listed.path).plan
    run = _under_way(campaign, listed)
    about = {"traffic": traffic_of(campaign, run), "names": campaign.network.names}
    return page(
        request,
        "live.html.j2",
        listed=listed,
        drawing=drawing_of(campaign.network),
        control=control,
        asked=is_asked_to_stop(listed.path),
        about=Markup(json.dumps(_plain(about)).replace("<", "\\u003c")),
    )


def _under_way(campaign: Campaign, listed: Listed) -> Run:
    """The run that goes on, as far as it is known; else the first: runs of a campaign have the same network."""
    try:
        live = read_live(listed.path)
    except RunDirectoryError:
        live = None
    index = live.now.index if live is not None and live.now is not None else None
    return next((run for run in campaign.runs if run.index == index), campaign.runs[0])


def live_now(listed: Listed) -> Response:
    """What is known now, as JSON: `over`, or `live` and what is wrong with it in a sentence (`trouble`)."""
    return Response(msgspec.json.encode(_now(listed)), media_type="application/json")


def _now(listed: Listed) -> Mapping[str, Any]:
    if not listed.path.is_dir():
        raise HTTPException(404, "The run directory was removed.")
    if listed.state != "running":
        return {"over": True}
    if not is_locked(listed.path):
        # Between the end of a process and the next look at the folders.
        return {"over": False, "live": None, "trouble": "The program that ran it is gone."}
    try:
        live = read_live(listed.path)
    except RunDirectoryError as error:
        return {
            "over": False,
            "live": None,
            "trouble": f"The live figures cannot be shown: {printable(str(error))}",
        }
    if live is None:
        return {"over": False, "live": None, "trouble": "There are no live figures yet."}
    return {
        "over": False,
        "live": _plain(live),
        "trouble": _trouble(live),
        "asked": is_asked_to_stop(listed.path),
    }


def _plain(content: object) -> Any:
    """As it is in JSON, with names of the test made printable."""
    return printable_content(json.loads(msgspec.json.encode(content)))


def _trouble(live: Live) -> str:
    try:
        age = (datetime.now(UTC) - datetime.fromisoformat(live.written)).total_seconds()
    except (ValueError, TypeError):
        return "The live figures do not say when they were written."
    if age > STALE_S:
        return (
            f"The last word came {age:.0f} s ago: the program that runs it is held up, or its disk is full."
        )
    return ""


def stop(request: Request, listed: Listed, form: Mapping[str, str]) -> Response:
    """Asks the campaign to stop. Raises HTTPException for one that has ended, or is not to be asked."""
    if form.get("sure") != "yes":
        raise HTTPException(400, "The form does not say that it is meant.")
    if not is_locked(listed.path):
        raise HTTPException(409, "It is no longer running.")
    try:
        ask_to_stop(listed.path)
    except OSError as error:
        raise HTTPException(409, f"It cannot be asked: {listed.path}: {error.strerror}") from None
    root = request.scope.get("root_path", "")
    return RedirectResponse(f"{root}/run/{listed.key}", 303)
