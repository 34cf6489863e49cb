"""Adds records that arrived after a run was stored to its stored records."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from wiregauge import _native
from wiregauge.files import put_in_place
from wiregauge.plan import as_json
from wiregauge.records.directory import RunDirectory
from wiregauge.records.errors import RunDirectoryError
from wiregauge.records.integrity import describe
from wiregauge.records.noise import store_noise
from wiregauge.records.processing import (
    begin_replacing,
    forget_tracking,
    keep_captures,
    process_run,
    retrack_run,
)

__all__ = ["add_spooled", "files_of", "is_stored"]

_TABLES: Final = ("messages", "passages", "sketches")


def files_of(directory: RunDirectory, index: int) -> Iterable[Path]:
    yield from directory.record_files(index)
    yield from directory.derived(index)
    yield from directory.measured_beside(index)
    yield from directory.captures(index).glob("*")


def is_stored(directory: RunDirectory, index: int) -> bool:
    """Whether records of a run are stored and listed; records in the spool then arrived later."""
    listed = [file for file in directory.record_files(index) if directory.is_listed(file)]
    return bool(listed) and _rows(listed) > 0


def add_spooled(directory: RunDirectory, index: int) -> bool:
    """Adds the records in the spool of a run to its stored ones, and tracks it again; whether there were any.

    The caller holds the directory. If killed meanwhile, it can be repeated: the spool goes last.
    """
    if not directory.segments(index):
        return False
    if not is_stored(directory, index):
        # A file stored without content is deleted and processed again.
        directory.strike_files(map(directory.name_of, files_of(directory, index)))
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

    return sum(int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item()) for file in files)


def _store_beside(directory: RunDirectory, index: int) -> None:
    """Stores the spooled records of a run as a further part; parts are in a folder of the run's name.

    The part's name follows from its end systems, so that a repetition replaces it.
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
