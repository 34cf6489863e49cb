"""The addresses of the server, and what each answers."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from wiregauge.files import cure_for, printable
from wiregauge.records import RunDirectoryError
from wiregauge.records.lock import is_locked
from wiregauge.report.zoom import flow_key
from wiregauge.serve.access import Access
from wiregauge.serve.comparisons import compare_page, compared_page
from wiregauge.serve.distributions import distribution
from wiregauge.serve.index import Index, Listed
from wiregauge.serve.live import live_now, live_page, stop
from wiregauge.serve.messages import columns, message, messages_page, picture
from wiregauge.serve.notes import back, form_of, notes_of, write_note
from wiregauge.serve.opened import Opened, Shelf
from wiregauge.serve.rendering import STATIC, page, static_file
from wiregauge.serve.reports import BOUNDS, REPORT, TREND, Document, Making
from wiregauge.serve.runs import runs_page
from wiregauge.serve.tests import LONGEST_FORM, Tests, language
from wiregauge.serve.work import Work

__all__ = ["Server"]

Shown = Callable[[Request, Listed, Opened], Response]
Changed = Callable[[Request, Mapping[str, str]], Response]


class Server:
    """The pages of the runs below some folders; `control`, which needs a token, lets them change."""

    def __init__(
        self, folders: list[Path], *, port: int, token: str | None = None, control: bool = False
    ) -> None:
        if control and token is None:
            raise ValueError("whoever may change something needs a token")
        self._control = control
        self.index = Index(folders)
        self.shelf = Shelf()
        self.work = Work()
        self.tests = Tests(self.index)
        routes = [
            Route("/", self._runs),
            Route("/changes", self._changes),
            Route("/static/{name}", _static),
            Route("/tests", self.tests.list_page),
            Route("/tests/language", language),
            Route("/test/{key}", self._test),
            Route("/test/{key}", self._changed(self.tests.store, "store tests"), methods=["POST"]),
            Route("/test/{key}/check", self._check_test, methods=["POST"]),
            Route("/test/{key}/run", self._changed(self.tests.start, "run tests"), methods=["POST"]),
            Route("/started/{number:int}", self.tests.started_page),
            Route("/compare", self._compare),
            Route("/compare/page", self._compared),
            Route("/run/{key}", self._of_run(self._run)),
            Route("/run/{key}/live", self._live),
            Route("/run/{key}/stop", self._stop, methods=["POST"]),
            Route("/run/{key}/zoom", self._of_run(self._messages)),
            Route("/run/{key}/columns", self._of_run(columns)),
            Route("/run/{key}/distribution", self._of_run(distribution)),
            Route("/run/{key}/message", self._of_run(message)),
            Route("/run/{key}/picture.{kind}", self._of_run(picture)),
            Route("/run/{key}/notes", self._write_note, methods=["POST"]),
            *(route for document in (REPORT, BOUNDS, TREND) for route in self._framed(document)),
        ]
        app = Starlette(
            routes=routes,
            lifespan=self._watching,
            exception_handlers={HTTPException: _refusal, RunDirectoryError: _unreadable, OSError: _failed},
        )
        self.app: ASGIApp = Access(app, port=port, token=token)

    @contextlib.asynccontextmanager
    async def _watching(self, _app: Starlette) -> AsyncIterator[None]:
        watching = threading.Thread(target=self.index.watch, name="index", daemon=True)
        watching.start()
        try:
            yield
        finally:
            self.index.close()
            self.work.close()

    def _runs(self, request: Request) -> Response:
        return runs_page(request, self.index)

    def _changes(self, _request: Request) -> Response:
        return JSONResponse({"version": self.index.version, "complete": self.index.complete})

    def _compare(self, request: Request) -> Response:
        return compare_page(request, self.index, self.work)

    def _compared(self, request: Request) -> Response:
        return compared_page(request, self.index, self.work)

    def _listed(self, request: Request) -> Listed:
        listed = self.index.get(request.path_params["key"])
        if listed is None:
            raise HTTPException(404, "There is no such run below the folders of this server now.")
        return listed

    def _of_run(self, shown: Shown) -> Callable[[Request], Response]:
        """An address below that of a run that can be read; for any other run a page says why it cannot."""

        def answer(request: Request) -> Response:
            listed = self._listed(request)
            if listed.state == "running":
                return live_page(request, listed, control=self._control)
            if not listed.readable:
                return page(request, "unreadable.html.j2", listed=listed)
            return shown(request, listed, self.shelf.open(listed.path))

        return answer

    def _run(self, request: Request, listed: Listed, opened: Opened) -> Response:
        keys = {(flow.id, flow.receiver): flow_key(flow) for run in opened.runs for flow in run.flows}
        notes, trouble = notes_of(opened)
        if opened.measures and not listed.validity:
            # It was judged since the last look.
            self.index.look()
            listed = self._listed(request)
        return page(
            request,
            "run.html.j2",
            listed=listed,
            opened=opened,
            keys=keys,
            notes=notes,
            notes_trouble=trouble,
            is_judged=is_locked(listed.path),
            control=self._control,
        )

    def _live(self, request: Request) -> Response:
        return live_now(self._listed(request))

    async def _stop(self, request: Request) -> Response:
        listed = self._listed(request)
        self._check_control("stop it")
        return await run_in_threadpool(stop, request, listed, await form_of(request))

    def _test(self, request: Request) -> Response:
        return self.tests.test_page(request, control=self._control)

    async def _check_test(self, request: Request) -> Response:
        return await run_in_threadpool(self.tests.check, request, await form_of(request, LONGEST_FORM))

    def _changed(self, change: Changed, what: str) -> Callable[[Request], Awaitable[Response]]:
        """An address that changes something, where the server may be controlled."""

        async def answer(request: Request) -> Response:
            self._check_control(what)
            return await run_in_threadpool(change, request, await form_of(request, LONGEST_FORM))

        return answer

    def _check_control(self, what: str) -> None:
        if not self._control:
            raise HTTPException(403, f"This server only shows; start it with --control to {what}.")

    def _messages(self, request: Request, listed: Listed, opened: Opened) -> Response:
        return messages_page(request, listed, opened, control=self._control)

    async def _write_note(self, request: Request) -> Response:
        listed = self._listed(request)
        self._check_control("write notes")
        form = await form_of(request)
        opened = await run_in_threadpool(self.shelf.open, listed.path)
        await run_in_threadpool(write_note, form, listed, opened)
        await run_in_threadpool(self.index.look)
        return back(request, listed, form)

    def _framed(self, document: Document) -> Iterator[Route]:
        """The addresses of a page about a run, and of what its frame shows."""

        making = Making(self.index, self.work)

        def around(request: Request, listed: Listed, opened: Opened) -> Response:
            return document.page(request, listed, opened, making)

        def inside(request: Request, listed: Listed, opened: Opened) -> Response:
            return document.content(request, listed, opened, making)

        place = f"/run/{{key}}/{document.name}"
        yield Route(place, self._of_run(around))
        yield Route(f"{place}/page", self._of_run(inside))


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404, "There is no such file.")
    return Response(static_file(name), media_type=STATIC[name][2])


def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sentence(request, error.status_code, error.detail)


def _unreadable(request: Request, error: Exception) -> Response:
    return _sentence(request, 409, str(error))


def _failed(request: Request, error: Exception) -> Response:
    """A file of the server's own could not be written: pictures and what programs say need temporary ones."""
    assert isinstance(error, OSError)
    place = printable(str(error.filename)) if error.filename else f"A file in {tempfile.gettempdir()}"
    return _sentence(request, 507, f"{place} cannot be written ({error.strerror}); {cure_for(error)}.")


def _sentence(request: Request, status: int, text: str) -> Response:
    """An error for a reader, or for a script of a page."""
    if "text/html" in request.headers.get("accept", ""):
        return page(request, "refusal.html.j2", status, text=text)
    return JSONResponse({"error": text}, status)
