"""Turns segments into records and messages, for complete and for interrupted runs."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wiregauge import _native
from wiregauge.files import put_in_place
from wiregauge.plan import as_json
from wiregauge.records.contained import check_names
from wiregauge.records.directory import BESIDE, SCHEMA, RunDirectory
from wiregauge.records.errors import DamagedError, RunDirectoryError
from wiregauge.records.gaps import gaps_of
from wiregauge.records.integrity import describe, read_json
from wiregauge.records.noise import store_noise

__all__ = [
    "TRACKING",
    "adopt_records",
    "begin_replacing",
    "checked_records",
    "enter_tracked",
    "forget_tracking",
    "gaps_before",
    "keep_captures",
    "note_retracked",
    "note_tracking",
    "process_run",
    "read_tracking",
    "retrack_run",
    "track_run",
]

_ONE_WRITER: Final = threading.Lock()
"""Guards tracking.json, which belongs to all runs; runs may be processed in parallel."""


TRACKING: Final = "tracking.json"
_TOLD_BY_SEGMENTS: Final = ("damaged_segments", "clock_jumps")
_LOST: Final = {
    "file": TRACKING,
    "problem": "it was damaged, and with it went what only the segments told: whether any of them was damaged",
    "records_read": 0,
}


def process_run(directory: RunDirectory, index: int, sources: Mapping[str, str] | None = None) -> None:
    """Tracks one run from its spool, writes its Parquet files and its entry in tracking.json, and removes the spool."""
    enter_tracked(directory, {index: track_run(directory, index, sources)})


def track_run(
    directory: RunDirectory, index: int, sources: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Tracks one run from its spool and writes its Parquet files; returns its entry for tracking.json.

    `sources` are hashes of the files from which the records were made, where that is no test.
    """
    plan = directory.plan
    try:
        summary: dict[str, Any] = json.loads(
            _native.process_run(
                as_json(plan.network),
                as_json(plan.runs[index]),
                [str(path) for path in directory.segments(index)],
                str(directory.records(index)),
                *map(str, directory.tables(index)),
            )
        )
        store_noise(directory, index)
        gaps = gaps_of(directory, index, summary["damaged_segments"])
        if gaps:
            # The origin of losses is known only now; they are rare enough to track the records twice.
            told = {key: summary[key] for key in _TOLD_BY_SEGMENTS}
            summary = _tracked_again(directory, index, directory.record_files(index), gaps) | told
        for kind in BESIDE:
            spooled, stored = directory.spooled_beside(kind, index), directory.beside(kind, index)
            if spooled.exists():
                damage = json.loads(_native.store_beside(kind, index, str(spooled), str(stored)))
                if damage is not None:
                    summary["damaged_segments"].append(damage)
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    keep_captures(directory, index)
    summary["files"] = directory.describe_run(index, sources)
    for name in map(directory.name_of, directory.record_files(index)):
        summary["files"][name]["segments"] = {key: summary[key] for key in _TOLD_BY_SEGMENTS}
    return summary


def enter_tracked(directory: RunDirectory, summaries: Mapping[int, dict[str, Any]]) -> None:
    """Puts the entries of runs, by index, into tracking.json, and removes their spools.

    Spools are removed only after all files are complete and their hashes on the disk.
    """
    note_tracking(directory, summaries)
    for index in summaries:
        shutil.rmtree(directory.spool(index), ignore_errors=True)


def keep_captures(directory: RunDirectory, index: int) -> None:
    """Moves the captures of a run out of its spool: a file per node. Raises DamagedError for a node named as a path."""
    found = directory.capture_files(index)
    # Node names come from the manifest, which anyone may have written.
    check_names(found, directory.root / "manifest.json")
    place = directory.captures(index)
    try:
        if found:
            place.mkdir(parents=True, exist_ok=True)
        for name, path in found.items():
            put_in_place(path, place / name)
    except OSError as error:
        raise RunDirectoryError(
            f"{place}: cannot be written: {error.strerror}; the captures are still in {directory.spool(index)}"
        ) from error


def retrack_run(directory: RunDirectory, index: int) -> None:
    """Tracks one run again from its stored records and writes its tables and its entry in tracking.json.

    Damage and clock jumps, which only the segments showed, are copied from the previous entry.
    """
    files = checked_records(directory, index)
    gaps = gaps_before(directory, index)
    begin_replacing(directory, index)
    try:
        summary = _tracked_again(directory, index, files, gaps)
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    note_retracked(directory, index, summary)


def _tracked_again(
    directory: RunDirectory, index: int, files: Sequence[Path], gaps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        _native.retrack(
            as_json(directory.plan.network),
            as_json(directory.plan.runs[index]),
            [str(path) for path in files],
            json.dumps(gaps),
            *map(str, directory.tables(index)),
        )
    )
    return told


def gaps_before(directory: RunDirectory, index: int) -> list[dict[str, Any]]:
    """The gaps found when a run was tracked before, as far as they can still be read."""
    try:
        tracked = [entry for entry in read_tracking(directory)["runs"] if entry["index"] == index]
    except DamagedError:
        tracked = []
    listed: Mapping[str, Any] = directory.manifest.get("files") or {}
    names = map(directory.name_of, directory.record_files(index))
    tracked += [listed[name]["segments"] for name in names if "segments" in listed.get(name, {})]
    damaged: list[dict[str, Any]] = next(
        (entry["damaged_segments"] for entry in tracked if entry.get("damaged_segments")), []
    )
    return gaps_of(directory, index, damaged)


def checked_records(directory: RunDirectory, index: int) -> list[Path]:
    """The stored records of a run, each verified. Raises RunDirectoryError."""
    files = directory.record_files(index)
    if not files:
        raise RunDirectoryError(
            f"{directory.records(index)}: the records of run {index} are missing; "
            "without them it cannot be tracked again"
        )
    directory.inventory.check(files)
    return files


def adopt_records(directory: RunDirectory, index: int) -> None:
    """Lists records of a run that were put there by hand; judging will report them."""
    if not directory.inventory.verified:
        return
    listed: dict[str, Any] = directory.manifest["files"]
    stem = directory.name_of(directory.records(index)).removesuffix(".parquet")
    before = {name: listed[name] for name in listed if name.startswith((f"{stem}.", f"{stem}/"))}
    found = {directory.name_of(path): describe(path, {}) for path in directory.record_files(index)}
    directory.strike_files(before)
    for name, entry in found.items():
        same = name in before and before[name]["sha256"] == entry["sha256"]
        directory.note_files({name: before[name] if same else {**entry, "adopted": True}})
    directory.save()


def begin_replacing(directory: RunDirectory, index: int) -> None:
    """Strikes the tables of a run off the manifest's list: unlisted tables are recognised as unfinished."""
    with _ONE_WRITER:
        try:
            read_tracking(directory)
        except DamagedError:
            # The list of files repeats the results from segments; without a list they are lost, and the runs
            # will say so.
            lost = {} if directory.inventory.verified else {"lost": True}
            directory.write_json(TRACKING, {"schema": SCHEMA, **lost, "runs": []})
        if directory.inventory.verified:
            directory.strike_files([TRACKING, *map(directory.name_of, directory.derived(index))])
            directory.save()


def forget_tracking(directory: RunDirectory, index: int) -> None:
    """Takes the entry of a run out of tracking.json: its files are elsewhere."""
    with _ONE_WRITER:
        tracking = read_tracking(directory)
        tracking["runs"] = [entry for entry in tracking["runs"] if entry["index"] != index]
        directory.write_json(TRACKING, tracking)
        directory.note_files({TRACKING: describe(directory.root / TRACKING, {})})


def note_retracked(directory: RunDirectory, index: int, summary: dict[str, Any]) -> None:
    """Stores and lists the results of tracking a run again."""
    if directory.inventory.verified:
        summary["files"] = directory.describe_run(index)
    note_tracking(directory, {index: summary})
    if directory.inventory.verified:
        directory.save()


def note_tracking(directory: RunDirectory, summaries: Mapping[int, dict[str, Any]]) -> None:
    """Puts the entries of runs, by index, into tracking.json, and their files on the list of the manifest."""
    with _ONE_WRITER:
        tracking = read_tracking(directory)
        entries = {int(entry["index"]): entry for entry in tracking["runs"]}
        listed: dict[str, Any] = {}
        for index, summary in summaries.items():
            # Tracking again reads records only: results from segments are copied from before.
            files: dict[str, Any] = summary.get("files", {})
            told = [entries[index]] if index in entries else []
            told += [entry["segments"] for entry in files.values() if "segments" in entry]
            for key in _TOLD_BY_SEGMENTS:
                summary[key] = summary[key] or next((before[key] for before in told if before.get(key)), [])
            if tracking.get("lost") and not told:
                summary["damaged_segments"] = [*summary["damaged_segments"], _LOST]
            entries[index] = {**summary, "index": index}
            listed |= files
        tracking["runs"] = [entries[index] for index in sorted(entries)]
        directory.write_json(TRACKING, tracking)
        sources = {
            name: entry["sha256"]
            for run in tracking["runs"]
            for name, entry in run.get("files", {}).items()
            if name.startswith("records/")
        }
        directory.note_files({**listed, TRACKING: describe(directory.root / TRACKING, sources)})


def read_tracking(directory: RunDirectory) -> dict[str, Any]:
    """tracking.json; empty where it does not exist yet. Raises DamagedError where it does not match its digest."""
    path = directory.root / TRACKING
    # While a campaign goes on, or after it was killed, the list may be of an earlier state of the file.
    held = (
        directory.inventory.verified
        and directory.is_listed(path)
        and directory.manifest["state"] != "running"
    )
    if held:
        directory.inventory.check([path])
    elif not path.exists():
        return {"schema": SCHEMA, "runs": []}
    # A required file that is missing is damage; any other is made anew when it is needed.
    cure = (
        f"`wiregauge track {directory.root}` makes it again from the records"
        if held
        else f"remove it, and `wiregauge show {directory.root}` makes it again"
    )
    try:
        tracking, _ = read_json(path)
    except RunDirectoryError as error:
        raise DamagedError(f"{error}, or {cure}" if "restore" in str(error) else f"{error}; {cure}") from None
    if tracking.get("schema") != SCHEMA:
        raise DamagedError(
            f"{path}: schema {tracking.get('schema')!r} is unknown to this wiregauge, which reads {SCHEMA}; {cure}"
        )
    runs = tracking.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) and "index" in run for run in runs):
        raise DamagedError(f"{path}: has no list of runs; {cure}")
    return tracking
