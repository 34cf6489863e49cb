"""Two runs side by side: the page that `wiregauge compare --out` writes, made for the viewer and written nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from wiregauge.measures.comparing import Threshold, ThresholdError, read_threshold
from wiregauge.serve.index import Index, Listed
from wiregauge.serve.rendering import page
from wiregauge.serve.reports import framed
from wiregauge.serve.work import Answer, Work

__all__ = ["compare_page", "compared_page", "made_comparison"]

MOST_OFFERED: Final = 500
"""Runs that are offered for a side, those of the other side's test first."""


def made_comparison(base: Path, new: Path, thresholds: tuple[Threshold, ...]) -> str:
    """The page of a comparison; both sides are judged, and nothing is stored.

    Raises RunDirectoryError, MatchError for runs that have nothing in common.
    """
    from wiregauge import report
    from wiregauge.measures import comparing, evaluate
    from wiregauge.measures.metrics.recorded import open_recorded

    judged = {place: evaluate(open_recorded(place)) for place in dict.fromkeys((base, new))}
    return report.rendered_compare(comparing.compare(judged[base], judged[new], thresholds=thresholds))


def compare_page(request: Request, index: Index, work: Work) -> Response:
    """The choice of two runs, and their comparison in a frame when it is made."""
    sides = [_side(index, request.query_params.get(name, "")) for name in ("base", "new")]
    answer = _answer(request, sides, work)
    chosen = next((side for side in sides if side is not None), None)
    readable = [one for one in index.listed if one.readable]
    if chosen is not None:
        readable.sort(key=lambda one: one.test != chosen.test)
    return page(
        request,
        "compare.html.j2",
        sides=list(zip(("base", "new"), sides, strict=True)),
        offered=readable[:MOST_OFFERED],
        thresholds=request.query_params.get("threshold", ""),
        asked=answer is not None,
        ready=answer is not None and answer.done.is_set(),
        error=answer.error if answer is not None else "",
        query=request.url.query,
    )


def compared_page(request: Request, index: Index, work: Work) -> Response:
    """The comparison itself, for the frame."""
    if request.headers.get("sec-fetch-dest", "iframe") != "iframe":
        return RedirectResponse(f"{request.url.path.removesuffix('/page')}?{request.url.query}")
    sides = [_side(index, request.query_params.get(name, "")) for name in ("base", "new")]
    answer = _answer(request, sides, work)
    if answer is None:
        raise HTTPException(404, "A comparison needs two runs.")
    answer.done.wait()
    if answer.error:
        raise HTTPException(409, answer.error)
    return framed(answer.text)


def _side(index: Index, key: str) -> Listed | None:
    if not key:
        return None
    found = index.get(key)
    if found is None or not found.readable:
        raise HTTPException(
            404, "There is no such run below the folders of this server now, or it cannot be read."
        )
    return found


def _answer(request: Request, sides: list[Listed | None], work: Work) -> Answer | None:
    """The answer of the work on two sides, which begins with the first question; None without both."""
    base, new = sides
    if base is None or new is None:
        return None
    try:
        words = request.query_params.get("threshold", "").split()
        thresholds = tuple(read_threshold(word) for word in words)
    except ThresholdError as error:
        raise HTTPException(400, f"threshold {error}") from None
    name = ("compare", *((one.path, one.stamp) for one in (base, new)), *words)
    return work.of(name, made_comparison, base.path, new.path, thresholds)
