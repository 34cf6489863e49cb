"""Pages of the program about a run: its report, which is the file of its directory if that is of its present state;
the bounds of its test with the run beside them; the trend of all runs of its test.

What is made for the viewer is written nowhere.

A report runs scripts, and a directory may be anybody's. So it is shown in a frame of its own origin, which may load
nothing, send nothing and reach no page of the server; the policy of the page around it keeps the frame on this server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from wiregauge.files import read_regular
from wiregauge.records import RunDirectoryError
from wiregauge.records.integrity import sealed_digest
from wiregauge.serve.index import Index, Listed
from wiregauge.serve.opened import Opened
from wiregauge.serve.rendering import page
from wiregauge.serve.work import Answer, Work

__all__ = [
    "BOUNDS",
    "FRAME_POLICY",
    "REPORT",
    "Document",
    "framed",
    "made_bounds",
    "made_report",
    "stored_report",
]

FRAME_POLICY: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEAD: Final = 1000
"""Bytes at the beginning of a report in which the digest of its manifest stands."""


def stored_report(path: Path, digest: str) -> bytes | None:
    """The report in a run directory; None where it is missing, damaged, or of another state of the directory."""
    from wiregauge.report.write import REPORT

    try:
        data = read_regular(path / REPORT)
        sealed = sealed_digest(data, path / REPORT)
    except (OSError, RunDirectoryError):
        return None
    return data if sealed is not None and digest.encode() in data[:_HEAD] else None


def made_report(path: Path) -> str:
    """The text of a run's report, judged anew; nothing is stored. Raises RunDirectoryError."""
    from wiregauge import report
    from wiregauge.measures import evaluate
    from wiregauge.measures.metrics.recorded import open_recorded

    return report.rendered(evaluate(open_recorded(path)))


def made_bounds(path: Path) -> str:
    """The text of the page of bounds of a run's test, with the run beside them; nothing is stored.

    Raises TestError, NoAnswerError, NotComparableError, RunDirectoryError.
    """
    from wiregauge import report
    from wiregauge.bounds.against import lay_every
    from wiregauge.measures import evaluate
    from wiregauge.measures.metrics.recorded import open_recorded
    from wiregauge.records import RunDirectory

    found = report.networks_bounded(RunDirectory.open(path), path)
    laid = lay_every(found, path, judgement=evaluate(open_recorded(path)))
    return report.rendered_bounds(report.BoundsShown(found, laid))


def made_trend(*paths: Path) -> str:
    """The text of the page that `wiregauge trend --out` writes; nothing is stored.

    Raises MatchError for fewer than two runs, or runs that have nothing in common, and RunDirectoryError.
    """
    from wiregauge import report
    from wiregauge.measures import comparing, evaluate
    from wiregauge.measures.metrics.recorded import open_recorded

    if len(paths) < 2:
        raise comparing.MatchError(
            "below the folders of this server there is no other run of this test that can be read; run it again"
        )
    return report.rendered_trend(comparing.trend([evaluate(open_recorded(path)) for path in paths]))


def of_one_test(index: Index, listed: Listed) -> list[Listed]:
    """A run and all others of its test that can be read, the newest first."""
    found = [
        one for one in index.listed if (one.readable and one.test == listed.test) or one.key == listed.key
    ]
    return sorted(found, key=lambda one: one.started, reverse=True)


class Document(Struct, frozen=True):
    """A page about a run that stands in a frame, and is made by a process of its own unless it is stored."""

    name: str
    """The part of its address."""
    title: str
    made: Callable[..., str]
    """From the paths of its runs."""
    waiting: str
    """What is said while it is made."""
    stored: Callable[[Path, str], bytes | None] = lambda _path, _digest: None
    runs: Callable[[Index, Listed], list[Listed]] = lambda _index, listed: [listed]

    def page(self, request: Request, listed: Listed, opened: Opened, made: Making) -> Response:
        """The page around the frame."""
        ready, error = True, ""
        if self.stored(opened.path, opened.digest) is None:
            answer = self._answer(listed, opened, made)
            ready, error = answer.done.is_set(), answer.error
        left_out = max(len(self.runs(made.index, listed)) - MOST_RUNS, 0)
        return page(
            request,
            "document.html.j2",
            listed=listed,
            document=self,
            ready=ready,
            error=error,
            left_out=left_out,
        )

    def content(self, request: Request, listed: Listed, opened: Opened, made: Making) -> Response:
        """What the frame shows."""
        # Opened by itself it would leave the frame that keeps it on this server.
        if request.headers.get("sec-fetch-dest", "iframe") != "iframe":
            return RedirectResponse(str(request.url.path).removesuffix("/page"))
        stored = self.stored(opened.path, opened.digest)
        if stored is not None:
            return framed(stored)
        answer = self._answer(listed, opened, made)
        answer.done.wait()
        if answer.error:
            raise HTTPException(409, answer.error)
        return framed(answer.text)

    def _answer(self, listed: Listed, opened: Opened, made: Making) -> Answer:
        runs = self.runs(made.index, listed)[:MOST_RUNS]
        states = [(one.path, opened.digest if one.key == listed.key else one.stamp) for one in runs]
        return made.work.of((self.name, *states), self.made, *(one.path for one in runs))


class Making(Struct, frozen=True):
    """What documents are made with."""

    index: Index
    work: Work


MOST_RUNS: Final = 20
"""Runs of a trend: each is judged anew."""
REPORT: Final = Document(
    "report",
    "Report",
    made_report,
    "The run directory has no report of its present state: it is judged and drawn now, which takes a while for large "
    "runs.",
    stored_report,
)
BOUNDS: Final = Document(
    "bounds",
    "Bounds",
    made_bounds,
    "The worst cases of its test are computed now, and the run is laid beside them.",
)
TREND: Final = Document(
    "trend",
    "Trend",
    made_trend,
    "All runs of this test are judged now, and each is held against those before it.",
    runs=of_one_test,
)


def framed(content: bytes | str) -> Response:
    """A page of the program, to be shown in a frame."""
    return HTMLResponse(content, headers={"content-security-policy": FRAME_POLICY})
