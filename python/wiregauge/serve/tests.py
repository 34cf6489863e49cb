"""Test files below the folders: listed, checked while they are typed, stored, and started on a bench."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from markupsafe import escape
from msgspec import Struct, field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from wiregauge.config import TestError, load_bytes
from wiregauge.config.schema import NAMESPACE, declarations, value_types
from wiregauge.files import (
    ForeignFileError,
    open_regular,
    printable,
    printable_lines,
    read_regular,
    write_whole,
)
from wiregauge.serve.drawing import drawing_of
from wiregauge.serve.index import Index, folders_below, key_of
from wiregauge.serve.rendering import page

__all__ = ["LONGEST_FORM", "Tests", "language"]

LONGEST: Final = 1 << 20
"""Bytes of a test that is edited in a page."""
LONGEST_FORM: Final = 4 * LONGEST
"""Of a form with one, in which most characters of XML take three bytes."""
MOST_LISTED: Final = 1000
_HEAD: Final = 4096
_LAST_WORDS: Final = 4000


class TestFile(Struct, frozen=True):
    """A test file."""

    key: str
    path: Path
    name: str


class _Started(Struct):
    """A run that was started from a page."""

    place: Path
    ended: threading.Event = field(default_factory=threading.Event)
    said: str = ""
    """What it printed, once it has ended."""

    def follow(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        """Waits for the end of its process."""
        with said:
            process.wait()
            said.seek(0)
            self.said = printable_lines(said.read(_LAST_WORDS).decode("utf-8", "replace"))
        self.ended.set()


class Tests:
    """The test files below the folders of an index, and the runs that were started from them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._by_key: dict[str, TestFile] = {}
        self._started: list[_Started] = []
        self._checking = threading.Lock()
        self._writing = threading.Lock()

    def list_page(self, request: Request) -> Response:
        """All test files."""
        found = self._look()
        return page(
            request, "tests.html.j2", found=found[:MOST_LISTED], count=len(found), folders=self._index.folders
        )

    def test_page(self, request: Request, *, control: bool) -> Response:
        """A file in an editor."""
        file = self._file(request.path_params["key"])
        data = _content(file)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise HTTPException(409, f"{file.path}: is not UTF-8; edit it in another program") from None
        return page(
            request,
            "test.html.j2",
            file=file,
            # As it is: made printable, it would be stored so.
            text=escape(text.replace("\r\n", "\n")),
            seen=_digest(data),
            benches=list(_benches()),
            control=control,
            **self._checked(text, file),
        )

    def check(self, request: Request, form: Mapping[str, str]) -> Response:
        """What `check` says of a text that is, or would be, a file; nothing is written."""
        file = self._file(request.path_params["key"])
        return page(request, "checked.html.j2", **self._checked(form.get("text", ""), file))

    def store(self, request: Request, form: Mapping[str, str]) -> Response:
        """Stores a text in its file, if that is as it was when it was opened; or in a new one beside it."""
        file = self._file(request.path_params["key"])
        text, name = form.get("text", "").replace("\r\n", "\n"), form.get("name", "").strip()
        with self._writing:
            old = _content(file)
            data = (text.replace("\n", "\r\n") if b"\r\n" in old else text).encode()
            if len(data) > LONGEST:
                raise HTTPException(413, f"A test may have {LONGEST} bytes here.")
            if name and name != file.path.name:
                return self._store_new(request, file, name, data)
            if _digest(old) != form.get("seen"):
                raise HTTPException(
                    409,
                    "The file was changed by somebody else since it was opened here: store under another name.",
                )
            try:
                write_whole(file.path, data)
            except OSError as error:
                raise HTTPException(409, f"{file.path}: cannot be written: {error.strerror}") from None
        return RedirectResponse(_place(request, file.key), 303)

    def _store_new(self, request: Request, file: TestFile, name: str, data: bytes) -> Response:
        path = file.path.with_name(Path(name).name)
        if path.name != name or name.startswith(".") or path.suffix != ".xml":
            raise HTTPException(400, f"{printable(name)}: write a name that ends in .xml, without a folder")
        try:
            write_whole(path, data, replacing=None)
        except ForeignFileError:
            raise HTTPException(409, f"There is a {name} already; choose another name.") from None
        except OSError as error:
            raise HTTPException(409, f"{path}: cannot be written: {error.strerror}") from None
        self._look()
        return RedirectResponse(_place(request, key_of(path)), 303)

    def start(self, request: Request, form: Mapping[str, str]) -> Response:
        """Starts the test as it is in its file on a bench, into a new run directory beside it."""
        file, bench = self._file(request.path_params["key"]), form.get("bench", "")
        if bench not in _benches():
            raise HTTPException(400, f"There is no bench {printable(bench)}.")
        if _digest(_content(file)) != form.get("seen"):
            raise HTTPException(409, "The file is not as this page has it; store it, or open it again.")
        with self._writing:
            taken = {one.place for one in self._started}
            names = (f"{file.path.stem}-run{f'-{k}' if k > 1 else ''}" for k in range(1, 100_000))
            places = (file.path.with_name(name) for name in names)
            place = next(one for one in places if one not in taken and not os.path.lexists(one))
            said = tempfile.TemporaryFile()  # noqa: SIM115 - its follower closes it
            command = [
                sys.executable,
                "-m",
                "wiregauge",
                "run",
                str(file.path),
                "--bench",
                bench,
                "--out",
                str(place),
            ]
            # It goes on when the server ends.
            process = subprocess.Popen(
                [*command, "-q"], stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
            started = _Started(place)
            self._started.append(started)
            threading.Thread(target=started.follow, args=(process, said), name="started", daemon=True).start()
            number = len(self._started) - 1
        root = request.scope.get("root_path", "")
        return RedirectResponse(f"{root}/started/{number}", 303)

    def started_page(self, request: Request) -> Response:
        """Leads to the run as soon as there is one; says why there is none."""
        number = int(request.path_params["number"])
        if number >= len(self._started):
            raise HTTPException(404, "Nothing of that number was started.")
        started = self._started[number]
        has_ended = started.ended.is_set()
        if has_ended:
            self._index.look()
        key = key_of(started.place)
        if self._index.get(key) is not None:
            root = request.scope.get("root_path", "")
            return RedirectResponse(f"{root}/run/{key}", 303)
        return page(request, "started.html.j2", place=started.place, has_ended=has_ended, said=started.said)

    def _checked(self, text: str, file: TestFile) -> dict[str, Any]:
        # One at a time: a test may be a sweep of thousands of runs.
        with self._checking:
            try:
                campaign = load_bytes(text.encode(), file.path).campaign
            except TestError as error:
                return {"faults": error.diagnostics, "total": error.total, "campaign": None, "drawing": None}
        return {"faults": (), "total": 0, "campaign": campaign, "drawing": drawing_of(campaign.network)}

    def _look(self) -> Sequence[TestFile]:
        found = [
            TestFile(key_of(path), path, printable(str(path.relative_to(folder))))
            for folder in self._index.folders
            for path in _tests_below(folder)
        ]
        self._by_key = {file.key: file for file in found}
        return found

    def _file(self, key: str) -> TestFile:
        file = self._by_key.get(key) or {one.key: one for one in self._look()}.get(key)
        if file is None or not _is_test(file.path):
            raise HTTPException(404, "There is no such test below the folders of this server now.")
        return file


def _tests_below(folder: Path) -> Iterator[Path]:
    for place in folders_below(folder):
        try:
            names = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".xml"))
        except OSError:
            continue
        yield from (place / name for name in names if not name.startswith(".") and _is_test(place / name))


def _is_test(path: Path) -> bool:
    """Whether it is a file, no link to one, that begins like a test."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with open_regular(path) as file:
            return NAMESPACE.encode() in file.read(_HEAD)
    except OSError:
        return False


def _content(file: TestFile) -> bytes:
    try:
        return read_regular(file.path, LONGEST)
    except OSError as error:
        raise HTTPException(409, f"{file.path}: cannot be read: {error.strerror}") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _place(request: Request, key: str) -> str:
    return f"{request.scope.get('root_path', '')}/test/{key}"


def _benches() -> Mapping[str, str]:
    """The benches that a test may name, with what they are."""
    return value_types()[declarations()["test"].attributes["bench"].type].choices


def language(_request: Request) -> Response:
    """Elements, what each holds, its attributes and their choices: what an editor completes."""
    types = value_types()
    return JSONResponse(
        {
            name: {
                "says": one.documentation,
                "holds": list(one.children),
                "attributes": {
                    attribute.name: {
                        "says": attribute.documentation,
                        "required": attribute.required,
                        "choices": list(types[attribute.type].choices) if attribute.type in types else [],
                    }
                    for attribute in one.attributes.values()
                },
            }
            for name, one in declarations().items()
        }
    )
