"""The runs below the given folders: found and watched, with what the list of runs shows of each.

A pass looks at folders and at the times of files only; a file is read again when it changed. So a folder of thousands
of runs is read once. Nothing is left out: what cannot be used is listed with the reason. A page may name a run by its
key alone, which is looked up here; so no address leads out of the folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.files import open_regular, printable
from wiregauge.plan import planned_runs
from wiregauge.records import (
    MANIFEST,
    NOTES,
    OtherVersionError,
    RunDirectoryError,
    read_manifest,
    read_notes,
)
from wiregauge.records.lock import is_locked

__all__ = ["Index", "Listed", "Stamp", "State", "folders_below", "key_of", "stamp_of"]

State = Literal[
    "complete", "running", "interrupted", "failed", "killed", "damaged", "other version", "symbolic link"
]
"""How a campaign ended, or why its directory cannot be read."""

DEEPEST: Final = 6
"""Folders below a given one that are looked into."""
PAUSE_S: Final = 1.5
"""Time between two passes, s; at least `SHARE` times as long as a pass takes."""
SHARE: Final = 10
_WATCHED: Final = (MANIFEST, "measures.json", NOTES)
_NOT_IN_KEY: Final = re.compile(r"[^A-Za-z0-9._-]+")


Stamp = tuple[tuple[int, int, int], ...]
"""`stamp_of` some files."""


class Listed(Struct, frozen=True):
    """A run directory as the list of runs shows it."""

    key: str
    """Its name in addresses."""
    path: Path
    name: str
    """Its path below the given folder, printable."""
    state: State
    trouble: str = ""
    """Why it cannot be read or did not end well, one sentence; empty for others."""
    test: str = ""
    bench: str = ""
    started: str = ""
    """RFC 3339; empty where it is unknown."""
    runs: int = 0
    planned: int = 0
    validity: str = ""
    """VALID, DEGRADED or INVALID; empty where it was not judged."""
    verdict: str = ""
    """PASS, FAIL, UNDECIDED or NONE; empty where it was not judged."""

    stamp: Stamp = ()
    """Of the files that the list is made from: another one, another state of the run."""
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """The texts of its notes."""

    @property
    def readable(self) -> bool:
        """Whether its figures can be read."""
        return self.state in ("complete", "interrupted", "failed")

    @property
    def words(self) -> str:
        """The text that a search looks at, in lower case."""
        told = (
            self.name,
            self.test,
            self.bench,
            self.state,
            self.validity,
            self.verdict,
            *self.tags,
            *self.notes,
        )
        return " ".join(told).lower()


class Index:
    """The run directories below some folders; `watch` keeps it up to date from a thread of its own."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))
        self._known: dict[Path, tuple[Stamp, Listed]] = {}
        self._by_key: Mapping[str, Listed] = {}
        self._listed: tuple[Listed, ...] = ()
        self._over = threading.Event()
        self._looking = threading.Lock()
        self.version = 0
        """A number that grows whenever the list changes."""
        self.complete = False
        """Whether every folder was looked into at least once."""

    @property
    def listed(self) -> tuple[Listed, ...]:
        """All runs, the newest first."""
        return self._listed

    def get(self, key: str) -> Listed | None:
        """The run of that key; None where there is none now."""
        return self._by_key.get(key)

    def watch(self) -> None:
        """Looks again and again until `close`."""
        while not self._over.is_set():
            begin, is_first = time.monotonic(), not self.complete
            self.look()
            # The first pass reads every run; the others look whether something changed.
            took = 0.0 if is_first else time.monotonic() - begin
            self._over.wait(max(PAUSE_S, SHARE * took))

    def close(self) -> None:
        """Ends `watch`."""
        self._over.set()

    def look(self) -> None:
        """One pass over the folders."""
        with self._looking:
            found: dict[Path, tuple[Stamp, Listed]] = {}
            shown = time.monotonic()
            for folder in self.folders:
                for path, is_link in _run_directories(folder):
                    found[path] = self._entry(folder, path, is_link=is_link)
                    # The first pass over thousands shows what it has.
                    if not self.complete and time.monotonic() - shown > PAUSE_S:
                        self._publish(found)
                        shown = time.monotonic()
                    if self._over.is_set():
                        return
            self._known = found
            self.complete = True
            self._publish(found)

    def _publish(self, found: Mapping[Path, tuple[Stamp, Listed]]) -> None:
        listed = tuple(sorted((one for _, one in found.values()), key=_newest))
        if listed != self._listed or not self.version:
            self._by_key = {one.key: one for one in listed}
            self._listed = listed
            self.version += 1

    def _entry(self, folder: Path, path: Path, *, is_link: bool) -> tuple[Stamp, Listed]:
        stamp = tuple(stamp_of(path / name) for name in _WATCHED)
        known = self._known.get(path)
        if known is not None and known[0] == stamp and known[1].state not in ("running", "killed"):
            return known
        key, name = key_of(path), _name(folder, path)
        if is_link:
            trouble = "is a symbolic link, and no link is followed: name the folder it leads to"
            return stamp, Listed(key, path, name, "symbolic link", trouble)
        return stamp, replace(_read(key, path, name), stamp=stamp)


def _newest(one: Listed) -> tuple[bool, list[int], str]:
    """Sorts by the start, the newest first; those without one last."""
    return not one.started, [-ord(letter) for letter in one.started], one.name


def _run_directories(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Every run directory at or below a folder, and whether its name is a symbolic link."""
    if _has_manifest(folder):
        yield folder, False
        return
    for _, inside in _opened_below(folder):
        for entry in inside:
            path = Path(entry.path)
            with contextlib.suppress(OSError):
                if entry.is_dir() and _has_manifest(path):
                    yield path, entry.is_symlink()


def folders_below(folder: Path) -> Iterator[Path]:
    """A folder and those below it that are no run directories; links are not followed."""
    return (place for place, _ in _opened_below(folder))


def _opened_below(folder: Path) -> Iterator[tuple[Path, Sequence[os.DirEntry[str]]]]:
    """A folder and those below it that are no run directories, with what is in each but hidden entries, by name.

    Links are not followed, and what cannot be read is left out.
    """
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        if _has_manifest(place):
            continue
        try:
            with os.scandir(place) as entries:
                inside = sorted(
                    (one for one in entries if not one.name.startswith(".")), key=lambda one: one.name
                )
        except OSError:
            continue
        yield place, inside
        if depth < DEEPEST:
            waiting += [(Path(one.path), depth + 1) for one in reversed(inside) if _is_folder(one)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _has_manifest(folder: Path) -> bool:
    try:
        return os.path.lexists(folder / MANIFEST)
    except (OSError, ValueError):
        return False


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Inode, size and modification time of a file; zeros where there is none."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def key_of(path: Path) -> str:
    """A name for addresses: readable, the same tomorrow, and of one directory only."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:10]
    return f"{_NOT_IN_KEY.sub('-', path.name)[:40].strip('.-') or 'run'}-{digest}"


def _name(folder: Path, path: Path) -> str:
    below = path.relative_to(folder)
    return printable(str(below) if below.parts else path.name)


def _read(key: str, path: Path, name: str) -> Listed:
    try:
        manifest = read_manifest(path)
        state, trouble = _state(path, manifest)
        test = manifest["test"]
        listed = Listed(
            key,
            path,
            name,
            state,
            trouble,
            str(test["name"]),
            str(manifest.get("bench", "")),
            str(manifest.get("started") or ""),
            len(manifest["runs"]),
            planned_runs(manifest["plan"]),
        )
    except OtherVersionError as error:
        return Listed(key, path, name, "other version", _without(path, error))
    except RunDirectoryError as error:
        return Listed(key, path, name, "damaged", _without(path, error))
    except (KeyError, TypeError, AttributeError):
        return Listed(key, path, name, "damaged", f"{MANIFEST}: is damaged: restore it from a copy")
    if not listed.readable:
        return listed
    with contextlib.suppress(RunDirectoryError):  # the page of the run says what is wrong with them
        found = read_notes(path)
        listed = replace(listed, tags=found.tags, notes=tuple(note.text for note in found.notes))
    return _judged(listed, manifest.get("digest"))


def _without(path: Path, error: Exception) -> str:
    """The sentence of an error without the path, which stands beside it."""
    return printable(str(error).removeprefix(f"{path}").lstrip("/: "))


def _state(path: Path, manifest: Mapping[str, Any]) -> tuple[State, str]:
    state = manifest["state"]
    if state == "running":
        if is_locked(path):
            return "running", ""
        return "killed", f"its testmaster was killed; `wiregauge show {path}` makes it readable"
    if state not in ("complete", "interrupted", "failed"):
        return "damaged", f"{MANIFEST}: is damaged: its state is none; restore it from a copy"
    reason = manifest.get("reason")
    return state, printable(str(reason)) if reason else ""


def _judged(listed: Listed, digest: object) -> Listed:
    """With the verdict that is stored, if it was made from this state of the directory.

    Only the head of the file is read, for thousands of runs: pages of the run compare all of it with its digest.
    """
    try:
        with open_regular(listed.path / "measures.json") as file:
            head = file.read(_HEAD)
        found = msgspec.json.decode(head[: head.index(_PAST_HEAD)] + b"}", type=_Head)
    except (OSError, ValueError):
        return listed
    if digest is not None and found.sources.get(MANIFEST) != digest:
        return listed
    return replace(listed, validity=printable(found.validity), verdict=printable(found.verdict))


class _Head(msgspec.Struct):
    """The first keys of `measures.json`."""

    sources: dict[str, str]
    validity: str
    verdict: str


_HEAD: Final = 4096
_PAST_HEAD: Final = b',\n"caveat":'
"""The first key that is not read."""
