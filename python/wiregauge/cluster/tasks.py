"""The functions that run on the nodes.

Every task may be run again at any moment, even while an attempt believed dead still works: each attempt has its own
folder, and only the folder named in an answer is ever read. So results are complete or absent.
This module does not import Ray: `engine` makes tasks of its functions, and the board is used by its methods' names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

import wiregauge
from wiregauge import _native
from wiregauge.cluster.storage import Storage
from wiregauge.plan import Run
from wiregauge.records import RunDirectory
from wiregauge.records.reported import entry_json
from wiregauge.runner.benches.simulation import SimulationStopped, simulate_run

__all__ = ["Board", "Place", "Result", "Stored", "look", "simulate", "sweep_away", "track"]

_NOTE_EVERY_S: Final = 0.2


class Board:
    """The progress of each task, and whether it should stop; one actor for all of them.

    Its state may be lost: when its node dies, another one starts empty.
    """

    def __init__(self) -> None:
        self._shares: dict[int, float] = {}
        self._stopped = False

    def note(self, position: int, share: float) -> bool:
        """Stores the share of a run that is done, 0 to 1; returns whether it should stop.

        After the stop request no further run counts as begun.
        """
        if not self._stopped or position in self._shares:
            self._shares[position] = share
        return self._stopped

    def read(self) -> dict[int, float]:
        """The shares of all runs that have begun."""
        return self._shares

    def stop(self) -> None:
        """Requests every task to stop."""
        self._stopped = True


class Place(Struct, frozen=True):
    """The place that tasks and testmaster share."""

    token: str
    """Identifies this command on every node."""
    shared: str | None
    """A folder that all nodes see under this path; else None."""
    storage: str | None
    """The URL of a storage that all nodes reach; else None."""


class Stored(Struct, frozen=True):
    """A file of stored records."""

    name: str
    """Its name in the storage."""
    path: str
    """Its path on all nodes, without a storage."""
    said: str
    """Its name for the testmaster."""


class Result(Struct, frozen=True):
    """The files and the answer of an attempt."""

    attempt: str
    files: tuple[str, ...]
    """Paths relative to the attempt's folder."""
    told: dict[str, Any]


def scratch(token: str) -> Path:
    """The working folder of this node; `sweep_away` removes it."""
    return Path(tempfile.gettempdir()) / token


def look(place: Place) -> dict[str, Any]:
    """Checks and reports what a node needs before it gets any work."""
    seen: bool | str = place.shared is None or Path(place.shared).is_dir()
    if place.storage is not None:
        here = scratch(place.token) / "seen"
        try:
            Storage(place.storage).get(f"{place.token}/seen", here)
        except Exception as error:  # noqa: BLE001 - reported by whoever asked
            seen = str(error)
    return {"host": socket.gethostname(), "version": wiregauge.__version__, "seen": seen}


def sweep_away(token: str) -> None:
    """Removes the files of attempts on this node."""
    shutil.rmtree(scratch(token), ignore_errors=True)


def simulate(place: Place, manifest_json: str, position: int, note: Callable[[float], bool]) -> Result:
    """Simulates and tracks one run of a plan; `note` takes the share done and says whether to stop.

    From the manifest `plan` and the sources in `files` are needed. The entry of the result is None when the task was
    stopped before it began.
    """
    with _attempt(place, f"run-{position:04d}") as folder:
        directory = RunDirectory(folder, {**json.loads(manifest_json), "runs": []})
        (folder / "records").mkdir()
        (folder / "messages").mkdir()

        def watch(share: float | None) -> None:
            if share is not None and note(share):
                raise SimulationStopped

        if note(0.0):
            return _delivered(place, folder, {"entry": None, "tracking": None})
        made = simulate_run(directory, position, watch)
        if made.tracking is not None:
            shutil.rmtree(folder / "spool", ignore_errors=True)
        return _delivered(place, folder, {"entry": entry_json(made.entry), "tracking": made.tracking})


def track(
    place: Place,
    network_json: str,
    run_json: str,
    records: Sequence[Stored],
    gaps_json: str,
    part: int,
    parts: int,
) -> Result:
    """Tracks one part of the flows of a run from its records, with the testmaster's file names in errors."""
    index = msgspec.json.decode(run_json, type=Run).index
    if place.storage is None:
        here = [file.path for file in records]
    else:
        here = [str(_fetched(place, place.storage, file.name)) for file in records]
    with _attempt(place, f"run-{index:04d}-part-{part:04d}") as folder:
        tables = [str(folder / f"{name}.parquet") for name in ("messages", "passages", "sketches")]
        told = json.loads(_native.track_part(network_json, run_json, here, gaps_json, part, parts, *tables))
        said = dict(zip(here, (file.said for file in records), strict=True))
        for damage in told["damaged_segments"]:
            damage["file"] = said.get(damage["file"], damage["file"])
        return _delivered(place, folder, told)


def noting(
    post: Callable[[float], Any], answered: Callable[[Any, float], bool | None]
) -> Callable[[float], bool]:
    """Turns a remote board into a call that does not wait for it.

    `post` sends a share and returns a ticket; `answered` waits some seconds for its answer, None if there is none. The
    first call waits: a task that was stopped before it began must not begin.
    """
    last = float("-inf")
    ticket: Any = None
    stop = False

    def note(share: float) -> bool:
        nonlocal last, ticket, stop
        first = ticket is None
        if first or time.monotonic() - last >= _NOTE_EVERY_S:
            if not first:
                stop = bool(answered(ticket, 0.0)) or stop
            ticket, last = post(share), time.monotonic()
            if first:
                stop = bool(answered(ticket, 10.0))
        return stop

    return note


@contextlib.contextmanager
def _attempt(place: Place, name: str) -> Iterator[Path]:
    """A folder unique to this attempt; removed on failure."""
    root = Path(place.shared) if place.shared is not None else scratch(place.token)
    if place.shared is None:
        root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{name}-{uuid.uuid4().hex}"
    # Without its parent: a missing shared folder was removed because nobody waits for the answer any more.
    folder.mkdir()
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _delivered(place: Place, folder: Path, told: dict[str, Any]) -> Result:
    files = tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()))
    if place.storage is not None:
        storage = Storage(place.storage)
        for name in files:
            storage.put(folder / name, f"{place.token}/{folder.name}/{name}")
        shutil.rmtree(folder, ignore_errors=True)
    return Result(folder.name, files, told)


def _fetched(place: Place, url: str, name: str) -> Path:
    """A file of the storage on this node, fetched once for all tasks."""
    local = scratch(place.token) / "in" / name
    local.parent.mkdir(parents=True, exist_ok=True)
    with local.with_name(f".{local.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not local.exists():
            Storage(url).get(f"{place.token}/in/{name}", local)
    return local
