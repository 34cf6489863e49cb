"""Going on with a campaign that did not come to its end: what came later is added, what is to be repeated set aside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from wiregauge import _native
from wiregauge.files import put_in_place
from wiregauge.plan import as_json
from wiregauge.records.directory import RunDirectory, utc_now
from wiregauge.records.errors import RunDirectoryError
from wiregauge.records.integrity import describe
from wiregauge.records.processing import (
    begin_replacing,
    forget_tracking,
    keep_captures,
    process_run,
    recover,
    retrack_run,
)

__all__ = ["add_spooled", "missing_runs", "resumed"]

_ASIDE: Final = "interrupted"


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
    missing = missing_runs(directory)
    if not missing:
        raise RunDirectoryError(
            f"{root}: all its {len(directory.runs)} runs are complete; nothing is to be resumed"
        )
    directory.hold()
    try:
        for entry in [one for one in directory.runs if one["state"] != "complete"]:
            _set_aside(directory, entry)
        spool = directory.root / "spool"
        spool.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        directory.close()
        raise RunDirectoryError(f"{root}: cannot be written: {error.strerror}") from error
    except RunDirectoryError:
        directory.close()
        raise
    manifest = directory.manifest
    manifest.setdefault("resumed", []).append(
        {"at": utc_now(), "state": manifest["state"], "reason": manifest["reason"], "runs": missing}
    )
    manifest["state"], manifest["reason"], manifest["finished"] = "running", None, None
    manifest["writer_pid"] = os.getpid()
    directory.save()
    return directory


def _set_aside(directory: RunDirectory, entry: dict[str, Any]) -> None:
    """Moves the files of a run that is to be repeated, and its entry. Killed meanwhile, it goes on where it was."""
    index = int(entry["index"])
    before = directory.manifest.setdefault("interrupted", [])
    number = 1 + sum(1 for one in before if one["index"] == index)
    folder = directory.root / _ASIDE / f"run-{index:04d}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    old = list(_files_of(directory, index))
    for path in old:
        if path.exists():
            put_in_place(path, folder / _name_aside(directory, path))
    directory.strike_files(map(directory.name_of, old))
    directory.note_files(
        {directory.name_of(path): describe(path, {}) for path in sorted(folder.iterdir()) if path.is_file()}
    )
    forget_tracking(directory, index)
    before.append({**entry, "folder": folder.relative_to(directory.root).as_posix()})
    directory.runs.remove(entry)
    directory.save()


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


def add_spooled(directory: RunDirectory, index: int) -> bool:
    """Adds what is in the spool of a run to what is stored of it, and tracks it again; whether there was anything.

    The caller holds the directory.
    """
    if not directory.segments(index):
        return False
    stored = directory.record_files(index)
    if not stored or not _rows(stored):
        # Of nothing a file was made, and is made again.
        directory.strike_files(map(directory.name_of, _files_of(directory, index)))
        forget_tracking(directory, index)
        process_run(directory, index)
        directory.save()
        return True
    try:
        _store_beside(directory, index, stored)
        keep_captures(directory, index)
        shutil.rmtree(directory.spool(index), ignore_errors=True)
        retrack_run(directory, index)
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    except OSError as error:
        raise RunDirectoryError(f"{directory.root}: cannot be written: {error.strerror}") from error
    return True


def _rows(files: list[Path]) -> int:
    import polars as pl

    return sum(int(pl.scan_parquet(file).select(pl.len()).collect().item()) for file in files)


def _store_beside(directory: RunDirectory, index: int, stored: list[Path]) -> None:
    """Makes another part of the run's records of what is spooled; the parts are in a folder of the run's name."""
    whole = directory.records(index)
    folder = whole.with_suffix("")
    folder.mkdir(exist_ok=True)
    begin_replacing(directory, index)
    part = folder / f"part-{len(list(folder.glob('*.parquet'))) + 1:04d}.parquet"
    made = directory.spool(index) / "tables"
    made.mkdir()
    plan = directory.plan
    told = json.loads(
        _native.process_run(
            as_json(plan.network),
            as_json(plan.runs[index]),
            [str(path) for path in directory.segments(index)],
            str(part),
            *(str(made / f"{name}.parquet") for name in ("messages", "passages", "sketches")),
        )
    )
    listed = dict(directory.manifest.get("files") or {})
    fresh = {directory.name_of(part): {**describe(part, {}), "segments": _told(told)}}
    if whole in stored:
        moved = folder / "part-0000.parquet"
        put_in_place(whole, moved)
        with contextlib.suppress(KeyError):
            fresh[directory.name_of(moved)] = listed[directory.name_of(whole)]
        directory.strike_files([directory.name_of(whole)])
    directory.note_files(fresh)
    directory.save()


def _told(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: summary[key] for key in ("damaged_segments", "clock_jumps")}
