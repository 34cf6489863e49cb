"""Resumes an unfinished campaign: adds records that arrived later, and sets aside runs that are to be repeated."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from wiregauge.files import move_folder, put_in_place
from wiregauge.records.adding import files_of
from wiregauge.records.directory import RunDirectory, utc_now
from wiregauge.records.errors import RunDirectoryError
from wiregauge.records.integrity import describe
from wiregauge.records.processing import TRACKING, forget_tracking
from wiregauge.records.recovering import recover

__all__ = ["missing_runs", "resumed"]

_ASIDE: Final = "interrupted"
_TABLES: Final = ("messages", "passages", "sketches")


def missing_runs(directory: RunDirectory) -> list[int]:
    """Indices of the plan's runs that are not complete."""
    complete = {index for index, entry in directory.entries().items() if entry.state == "complete"}
    return [run.index for run in directory.plan.runs if run.index not in complete]


def resumed(root: Path) -> RunDirectory:
    """A run directory whose missing runs can be made, locked until it is closed.

    Recordings of an unfinished run go to the folder `interrupted`: no measurement is removed. Raises RunDirectoryError
    where nothing is missing, or where the directory cannot be written.
    """
    recover(RunDirectory.open(root))
    directory = RunDirectory.open(root)
    directory.hold()
    try:
        # Another process may have changed it between the look and the lock.
        directory.manifest = RunDirectory.open(root).manifest
        missing = missing_runs(directory)
        if not missing:
            raise RunDirectoryError(
                f"{root}: all its {len(directory.runs)} runs are complete; nothing is to be resumed"
            )
        _set_aside(directory, missing)
        (directory.root / "spool").mkdir(mode=0o700, exist_ok=True)
        manifest = directory.manifest
        manifest.setdefault("resumed", []).append(
            {"at": utc_now(), "state": manifest["state"], "reason": manifest["reason"], "runs": missing}
        )
        manifest["state"], manifest["reason"], manifest["finished"] = "running", None, None
        manifest["writer_pid"] = os.getpid()
        directory.save()
    except OSError as error:
        directory.close()
        raise RunDirectoryError(f"{root}: cannot be written: {error.strerror}") from error
    except RunDirectoryError:
        directory.close()
        raise
    return directory


def _set_aside(directory: RunDirectory, missing: Iterable[int]) -> None:
    """Moves the files and entries of runs that are to be repeated.

    The manifest lists the moves first. If the process is killed meanwhile, unlisted files remain in their old places;
    the next resumption moves them.
    """
    before = directory.manifest.setdefault("interrupted", [])
    for index, entry in directory.take_out(missing).items():
        number = 1 + sum(1 for one in before if one["index"] == index)
        before.append({**entry, "folder": f"{_ASIDE}/run-{index:04d}-{number}"})
    places = {int(one["index"]): directory.root / one["folder"] for one in before}
    aside = {index: place for index, place in places.items() if index in set(missing)}
    listed = directory.manifest.get("files") or {}
    begin = tuple(f"run-{index:04d}" for index in aside)
    if aside:
        old = (name for name in listed if name.partition("/")[2].startswith(begin))
        directory.strike_files([TRACKING, *old])
    directory.save()
    for index, folder in aside.items():
        _move_aside(directory, index, folder)
        forget_tracking(directory, index)
    directory.save()


def _move_aside(directory: RunDirectory, index: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in list(files_of(directory, index)):
        if path.exists():
            put_in_place(path, folder / _name_aside(directory, path))
    spools = [directory.spool(index), *(directory.root / "spool").glob(f"incomplete-{index:04d}-*")]
    for place in spools:
        if place.exists():
            move_folder(place, folder / f"spool-{place.name}")
    directory.note_files(
        {directory.name_of(path): describe(path, {}) for path in sorted(folder.iterdir()) if path.is_file()}
    )


def _name_aside(directory: RunDirectory, path: Path) -> str:
    """A unique name of a set-aside file: its kind, and its part where there are several of the kind."""
    kind, _, rest = directory.name_of(path).partition("/")
    part = rest.rpartition("/")[2]
    return f"{kind}{path.suffix}" if part.startswith("run-") else f"{kind}-{part}"
