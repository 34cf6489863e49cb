"""The list of runs: searched, filtered, sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from wiregauge.serve.index import Index, Listed
from wiregauge.serve.rendering import page

__all__ = ["chosen", "runs_page"]

PER_PAGE: Final = 100


def chosen(listed: Sequence[Listed], words: str, state: str = "") -> list[Listed]:
    """The runs with every word of a search, in that state, or with that validity or verdict."""
    asked = words.lower().split()
    return [
        one
        for one in listed
        if all(word in one.words for word in asked)
        and (not state or state in (one.state, one.validity, one.verdict))
    ]


def runs_page(request: Request, index: Index) -> Response:
    """All runs, or those that were searched for."""
    listed = index.listed
    words, state = request.query_params.get("q", ""), request.query_params.get("state", "")
    found = chosen(listed, words, state)
    try:
        first = max(int(request.query_params.get("from", "0")), 0)
    except ValueError:
        first = 0
    kinds = {kind for one in listed for kind in (one.state, one.validity, one.verdict) if kind}
    return page(
        request,
        "runs.html.j2",
        found=found[first : first + PER_PAGE],
        first=first,
        per_page=PER_PAGE,
        count=len(found),
        total=len(listed),
        words=words,
        state=state,
        states=sorted(kinds, key=str.lower),
        folders=index.folders,
        complete=index.complete,
        version=index.version,
    )
