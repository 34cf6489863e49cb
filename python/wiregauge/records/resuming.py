"""Going on with a campaign that did not come to its end: what came later is added, what is to be repeated set aside."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from wiregauge import _native
from wiregauge.files import move_folder, put_in_place
from wiregauge.plan import as_json
from wiregauge.records.directory import RunDirectory, utc_now
from wiregauge.records.errors import RunDirectoryError
from wiregauge.records.integrity import describe
from wiregauge.records.noise import store_noise
from wiregauge.records.processing import (
    TRACKING,
    begin_replacing,
    forget_tracking,
    keep_captures,
    process_run,
    recover,
    retrack_run,
)

__all__ = ["add_spooled", "is_stored", "missing_runs", "resumed"]

_ASIDE: Final = "interrupted"
_TABLES: Final = ("messages", "passages", "sketches")


def missing_runs(directory: RunDirectory) -> list[int]:
    """The runs of the plan that have not come to their end, by index."""
    complete = {entry["index"] for entry in directory.runs if entry["state"] == "complete"}
    return [run.index for run in directory.plan.runs if run.index not in complete]


def resumed(root: Path) -> RunDirectory:
    """A run directory whose missing runs can be made, held until it is closed.

    What an unfinished run had recorded goes to the folder `interrupted`: nothing that was measured is removed. Raises
    RunDirectoryError where nothing is missing, or where the directory cannot be written.
    """
    recover(RunDirectory.open(root))
    directory = RunDirectory.open(root)
    directory.hold()
    try:
        # Somebody else may have worked on it between the look and the lock.
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
    """Moves what there is of runs that are to be repeated, and their entries.

    The manifest says so first. Whoever is killed meanwhile leaves files in their old places that are on no list; the
    next to come moves them.
    """
    before = directory.manifest.setdefault("interrupted", [])
    for entry in [one for one in directory.runs if one["state"] != "complete"]:
        index = int(entry["index"])
        number = 1 + sum(1 for one in before if one["index"] == index)
        before.append({**entry, "folder": f"{_ASIDE}/run-{index:04d}-{number}"})
        directory.runs.remove(entry)
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
    for path in list(_files_of(directory, index)):
        if path.exists():
            put_in_place(path, folder / _name_aside(directory, path))
    spools = [directory.spool(index), *(directory.root / "spool").glob(f"incomplete-{index:04d}-*")]
    for place in spools:
        if place.exists():
            move_folder(place, folder / f"spool-{place.name}")
    directory.note_files(
        {directory.name_of(path): describe(path, {}) for path in sorted(folder.iterdir()) if path.is_file()}
    )


def _files_of(directory: RunDirectory, index: int) -> Iterable[Path]:
    yield from directory.record_files(index)
    yield from directory.tables(index)
    yield from (directory.truth(index), directory.clocks(index), directory.noise(index))
    yield from directory.captures(index).glob("*")


def _name_aside(directory: RunDirectory, path: Path) -> str:
    """Its kind, and what tells it from others of this kind."""
    kind, _, rest = directory.name_of(path).partition("/")
    part = rest.rpartition("/")[2]
    return f"{kind}{path.suffix}" if part.startswith("run-") else f"{kind}-{part}"


def is_stored(directory: RunDirectory, index: int) -> bool:
    """Whether records of a run are stored and listed: what is spooled besides came later."""
    listed = [file for file in directory.record_files(index) if directory.is_listed(file)]
    return bool(listed) and _rows(listed) > 0


def add_spooled(directory: RunDirectory, index: int) -> bool:
    """Adds what is in the spool of a run to what is stored of it, and tracks it again; whether there was anything.

    The caller holds the directory. Killed meanwhile, it can be done again: the spool goes last.
    """
    if not directory.segments(index):
        return False
    if not is_stored(directory, index):
        # Of nothing a file was made, and is made again.
        directory.strike_files(map(directory.name_of, _files_of(directory, index)))
        forget_tracking(directory, index)
        process_run(directory, index)
        directory.save()
        return True
    try:
        _store_beside(directory, index)
        store_noise(directory, index, beside=True)
        keep_captures(directory, index)
        retrack_run(directory, index)
        shutil.rmtree(directory.spool(index), ignore_errors=True)
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    except OSError as error:
        raise RunDirectoryError(f"{directory.root}: cannot be written: {error.strerror}") from error
    return True


def _rows(files: list[Path]) -> int:
    import polars as pl

    return sum(int(pl.scan_parquet(file).select(pl.len()).collect().item()) for file in files)


def _store_beside(directory: RunDirectory, index: int) -> None:
    """Makes another part of the run's records of what is spooled; the parts are in a folder of the run's name.

    Its name follows from whose records they are, so that what is done twice is there once.
    """
    begin_replacing(directory, index)
    segments = directory.segments(index)
    made = directory.spool(index) / "tables"
    made.mkdir(exist_ok=True)
    plan = directory.plan
    fresh, tables = made / "records.parquet", [made / f"{name}.parquet" for name in _TABLES]
    told = json.loads(
        _native.process_run(
            as_json(plan.network),
            as_json(plan.runs[index]),
            [str(path) for path in segments],
            str(fresh),
            *map(str, tables),
        )
    )
    whole = directory.records(index)
    folder = whole.with_suffix("")
    folder.mkdir(exist_ok=True)
    nodes = ",".join(sorted({path.parent.name for path in segments}))
    part = folder / f"late-{hashlib.sha256(nodes.encode()).hexdigest()[:12]}.parquet"
    first = folder / "part-0000.parquet"
    if whole.exists():
        put_in_place(whole, first)
    put_in_place(fresh, part)
    listed = directory.manifest.get("files") or {}
    old = listed.get(directory.name_of(whole)) or listed.get(directory.name_of(first))
    entries = {directory.name_of(part): {**describe(part, {}), "segments": _told_by(told)}}
    if first.exists():
        entries[directory.name_of(first)] = old or describe(first, {})
    directory.strike_files([directory.name_of(whole)])
    directory.note_files(entries)
    directory.save()


def _told_by(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: summary[key] for key in ("damaged_segments", "clock_jumps")}
