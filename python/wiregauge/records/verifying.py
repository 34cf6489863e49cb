"""Compares every file of a run directory with its manifest: damaged, missing, foreign or unfinished files."""

from __future__ import annotations

import gzip
import os
import re
import time
import zlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import polars as pl
from msgspec import Struct

from wiregauge.files import TEMPORARY, open_regular, read_regular
from wiregauge.records.directory import RunDirectory
from wiregauge.records.errors import DamagedError, RunDirectoryError
from wiregauge.records.integrity import fault, sealed_digest
from wiregauge.records.live import LIVE, STOP
from wiregauge.records.lock import LOCK
from wiregauge.records.notes import NOTES, read_notes

__all__ = ["Finding", "State", "Verification", "schema_path", "verify"]

SCHEMA: Final = 1
_DATA: Final = (
    "records",
    "messages",
    "passages",
    "sketches",
    "extremes",
    "truth",
    "crossings",
    "clocks",
    "noise",
    "captures",
)
_MADE_BY_READING: Final = ("measures.json", "report.html")


class State(StrEnum):
    """The state of a file; that of the directory is the worst of its files."""

    WHOLE = "whole"
    OTHER = "other"
    """A file that no command reads: somebody put it there."""
    STALE = "stale"
    """Made from another state of the directory."""
    UNVERIFIED = "unverified"
    UNFINISHED = "unfinished"
    FOREIGN = "foreign"
    """A file where the run's files are that the manifest does not list."""
    MISSING = "missing"
    DAMAGED = "damaged"


class Finding(Struct, frozen=True):
    """A file that is not simply whole, by its path in the directory."""

    file: str
    state: State
    detail: str


class Verification(Struct, frozen=True):
    """The result of a verification. `digest` is that of the manifest; None where it has none or is damaged."""

    root: Path
    digest: str | None
    files: int
    """Number of files that were compared with their hashes."""
    size: int
    """Size of these files, bytes."""
    seconds: float
    """Duration of the comparison, s."""
    findings: tuple[Finding, ...]

    @property
    def state(self) -> State:
        """The state of the directory: `WHOLE` also where the only findings are files that no command reads."""
        order = list(State)
        gravest = max((finding.state for finding in self.findings), key=order.index, default=State.WHOLE)
        return State.WHOLE if gravest is State.OTHER else gravest

    def as_json(self) -> dict[str, Any]:
        """The form of docs/reference/verify.md."""
        return {
            "schema": SCHEMA,
            "directory": str(self.root),
            "state": self.state.value,
            "digest": self.digest,
            "checked": {"files": self.files, "bytes": self.size, "seconds": round(self.seconds, 6)},
            "findings": [
                {"file": one.file, "state": one.state.value, "detail": one.detail} for one in self.findings
            ],
        }


def schema_path() -> Path:
    """The JSON Schema of `Verification.as_json`, shipped with the package."""
    return Path(__file__).with_name("verify.schema.json")


def verify(root: Path) -> Verification:
    """Compares every file of a run directory with its hash. Raises RunDirectoryError for other directories."""
    begin = time.perf_counter()
    try:
        directory = RunDirectory.open(root)
    except DamagedError as error:
        file, _, told = str(error).removeprefix(f"{root}{os.sep}").partition(": ")
        found = (Finding(file, State.DAMAGED, told),)
        return Verification(root, None, 0, 0, time.perf_counter() - begin, found)
    listed: dict[str, Any] = directory.manifest.get("files", {})
    findings = [*_campaign(directory), *_listed(directory, listed), *_unlisted(directory, listed)]
    missing = {finding.file for finding in findings if finding.state is State.MISSING}
    return Verification(
        root,
        directory.manifest.get("digest"),
        len(listed) - len(missing),
        sum(entry["bytes"] for name, entry in listed.items() if name not in missing),
        time.perf_counter() - begin,
        tuple(findings),
    )


def _campaign(directory: RunDirectory) -> Iterator[Finding]:
    """The state of the directory as a whole."""
    if not directory.inventory.verified:
        detail = "was written by a version that kept no hashes, so damage cannot be detected"
        yield Finding("manifest.json", State.UNVERIFIED, detail)
    if directory.manifest["state"] == "running":
        going = directory.is_being_written()
        yield Finding(
            "manifest.json",
            State.UNFINISHED,
            "the campaign is still running; wait for it to end"
            if going
            else f"its testmaster was killed; `wiregauge show {directory.root}` makes it readable",
        )


def _listed(directory: RunDirectory, listed: dict[str, Any]) -> Iterator[Finding]:
    for name, entry in listed.items():
        path = directory.root / name
        wrong = fault(path, entry)
        if wrong is not None:
            yield Finding(name, State.DAMAGED if path.exists() else State.MISSING, wrong + _holds(path, name))
        for source, digest in entry["from"].items():
            if source in listed and listed[source]["sha256"] != digest:
                yield Finding(name, State.STALE, f"was made from another {source} than the one listed")


def _unlisted(directory: RunDirectory, listed: dict[str, Any]) -> Iterator[Finding]:
    """Findings on files that the manifest does not list, by kind."""
    verified = directory.inventory.verified
    for folder, _, names in sorted(os.walk(directory.root)):
        for name in sorted(names):
            path = Path(folder) / name
            place = directory.name_of(path)
            top = Path(place).parts[0]
            if place in listed or place in ("manifest.json", LOCK, ".reserve"):
                continue
            if name.startswith(TEMPORARY) or (name.startswith(".") and name.endswith(".partial")):
                yield Finding(place, State.UNFINISHED, "its writer was killed; it may be removed")
            elif place in (LIVE, STOP):
                yield Finding(place, State.UNFINISHED, "the campaign goes on, or its testmaster was killed")
            elif top == "spool":
                yield Finding(place, State.UNFINISHED, "was recorded, but not stored yet")
            elif place in _MADE_BY_READING:
                yield from _made_by_reading(directory, path)
            elif place == NOTES:
                yield from _notes(directory.root)
            elif _LINES.fullmatch(place):
                yield from _lines(directory, path, place)
            elif not verified:
                continue
            elif top in _DATA or place == "tracking.json":
                unfinished = directory.manifest["state"] == "running" or top in ("extremes", "tracking.json")
                told = "is not on the list of the manifest" + _holds(path, place)
                yield Finding(place, State.UNFINISHED if unfinished else State.FOREIGN, told)
            else:
                yield Finding(
                    place, State.OTHER, "is none of the files of a run directory; no command reads it"
                )


def _made_by_reading(directory: RunDirectory, path: Path) -> Iterator[Finding]:
    """Findings on a file that each reading command writes anew, by its own digest and that of its manifest."""
    command = "report" if path.name == "report.html" else "show"
    anew = f"`wiregauge {command} {directory.root}` makes it again"
    try:
        data = read_regular(path)
        digest = sealed_digest(data, path)
    except OSError as error:
        yield Finding(path.name, State.DAMAGED, f"cannot be read: {error.strerror}")
        return
    except DamagedError:
        yield Finding(path.name, State.DAMAGED, f"its digest is not that of its content; {anew}")
        return
    if digest is None:
        yield Finding(path.name, State.UNVERIFIED, f"carries no digest; {anew}")
        return
    made_from = directory.manifest.get("digest")
    if made_from is not None and str(made_from).encode() not in data[:_HEAD]:
        yield Finding(path.name, State.STALE, f"was made from another state of the directory; {anew}")


def _notes(root: Path) -> Iterator[Finding]:
    """Findings on the file of notes, by its own digest."""
    try:
        read_notes(root)
    except RunDirectoryError as error:
        yield Finding(NOTES, State.DAMAGED, str(error).partition(": ")[2])


def _lines(directory: RunDirectory, path: Path, place: str) -> Iterator[Finding]:
    """Findings on a file of all figures of a large run, which each reading command writes anew; gzip has its own
    checksum."""
    try:
        with open_regular(path) as packed, gzip.open(packed) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        anew = f"`wiregauge show {directory.root}` makes it again"
        yield Finding(place, State.DAMAGED, f"cannot be unpacked ({error}); {anew}")


_LINES: Final = re.compile(r"flows/run-[0-9]{4,}\.jsonl\.gz")
_HEAD: Final = 1000
"""Number of leading bytes that hold the digest of the manifest from which a page or measures.json was made."""


def _holds(path: Path, name: str) -> str:
    """A note for a Parquet file whose own metadata name another table or run; empty where they do not."""
    if path.suffix != ".parquet" or not path.is_file():
        return ""
    try:
        said = pl.read_parquet_metadata(path)
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        return "; it is no readable Parquet file"
    kind, run = said.get("wiregauge.kind"), said.get("wiregauge.run")
    if kind is None or run is None or name == f"{kind}/run-{run:0>4}.parquet":
        return ""
    return f"; it holds the {kind} of run {run}"
