"""From segments to records and messages, for runs that ended well and for those that did not."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from typing import Any, Final

from wiregauge import _native
from wiregauge.records.directory import RunDirectory, RunDirectoryError, utc_now
from wiregauge.records.entry import begun_simulated
from wiregauge.records.noise import store_noise

__all__ = ["note_tracking", "process_run", "recover", "retrack_run"]

_ONE_WRITER: Final = threading.Lock()
"""Runs may be processed side by side; tracking.json belongs to all of them."""


def process_run(directory: RunDirectory, index: int) -> None:
    """Tracks one run from its spool, writes its Parquet files and its entry in tracking.json.

    The spool is removed only after all files are whole.
    """
    plan = directory.plan
    try:
        summary = json.loads(
            _native.process_run(
                json.dumps(plan["network"]),
                json.dumps(plan["runs"][index]),
                [str(path) for path in directory.segments(index)],
                str(directory.records(index)),
                *tables(directory, index),
            )
        )
        spooled = directory.spooled_truth(index)
        if spooled.exists():
            damage = json.loads(_native.store_truth(index, str(spooled), str(directory.truth(index))))
            if damage is not None:
                summary["damaged_segments"].append(damage)
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    note_tracking(directory, index, summary)
    _keep_captures(directory, index)
    store_noise(directory, index)
    shutil.rmtree(directory.spool(index), ignore_errors=True)


def _keep_captures(directory: RunDirectory, index: int) -> None:
    """Moves the captures of a run out of its spool: one file per node."""
    spooled = directory.spooled_captures(index)
    found = {path.name: path for path in spooled.glob("*.pcapng")}
    found |= {f"{path.parent.name}.pcapng": path for path in directory.spool(index).glob("*/capture.pcapng")}
    place = directory.captures(index)
    try:
        if found:
            place.mkdir(parents=True, exist_ok=True)
        for name, path in found.items():
            path.replace(place / name)
    except OSError as error:
        raise RunDirectoryError(
            f"{place}: cannot be written: {error.strerror}; the captures are still in {directory.spool(index)}"
        ) from error


def retrack_run(directory: RunDirectory, index: int) -> None:
    """Tracks one run again from its stored records and writes its tables and its entry in tracking.json.

    What only the segments told, their damage and jumps of clocks, is kept from the entry before.
    """
    files = directory.record_files(index)
    if not files:
        raise RunDirectoryError(
            f"{directory.records(index)}: the records of run {index} are missing; "
            "without them it cannot be tracked again"
        )
    plan = directory.plan
    try:
        told = _native.retrack(
            json.dumps(plan["network"]),
            json.dumps(plan["runs"][index]),
            [str(path) for path in files],
            *tables(directory, index),
        )
    except _native.NativeError as error:
        raise RunDirectoryError(str(error)) from error
    note_tracking(directory, index, json.loads(told))


def tables(directory: RunDirectory, index: int) -> tuple[str, str, str]:
    """Where the tables of a run go: messages, passages, sketches."""
    return str(directory.messages(index)), str(directory.passages(index)), str(directory.sketches(index))


def note_tracking(directory: RunDirectory, index: int, summary: dict[str, Any]) -> None:
    """Puts the entry of a run into tracking.json."""
    with _ONE_WRITER:
        tracking = _read_tracking(directory)
        entries = [entry for entry in tracking["runs"] if entry["index"] != index]
        for before in tracking["runs"]:
            if before["index"] == index:
                for told_by_segments in ("damaged_segments", "clock_jumps"):
                    summary[told_by_segments] = summary[told_by_segments] or before.get(told_by_segments, [])
        entries.append({**summary, "index": index})
        tracking["runs"] = sorted(entries, key=lambda entry: int(entry["index"]))
        directory.write_json("tracking.json", tracking)


def _enter_spooled(directory: RunDirectory) -> None:
    """Enters simulated runs that were spooled but killed before the manifest named them.

    A simulator writes megabytes before the testmaster next looks; namespaces wait until a run is entered.
    """
    if directory.manifest["state"] != "running" or directory.manifest.get("bench") != "sim":
        return
    entered = {run["index"] for run in directory.runs}
    for position, run in enumerate(directory.plan["runs"]):
        index = run["index"]
        if index not in entered and (directory.segments(index) or directory.record_files(index)):
            directory.runs.append(begun_simulated(directory.plan, position))
    directory.runs.sort(key=lambda run: int(run["index"]))


def recover(directory: RunDirectory) -> bool:
    """Makes a campaign readable whose testmaster was killed, or whose disk was too full to track its last run.

    What the bench had spooled is tracked like any other run. Returns whether there was anything to do.
    """
    if directory.is_being_written():
        return False
    tracked = {entry["index"] for entry in _read_tracking(directory)["runs"]}
    _enter_spooled(directory)
    untracked = [run for run in directory.runs if run["index"] not in tracked]
    killed = directory.manifest["state"] == "running"
    if not killed and not untracked:
        return False
    for run in untracked:
        if run["state"] == "running":
            run["state"] = "partial"
            run["reason"] = "the testmaster was killed during this run"
            run["finished"] = utc_now()
        # Without a spool the records are stored already, and only what was made of them is gone.
        if directory.segments(run["index"]) or not directory.record_files(run["index"]):
            process_run(directory, run["index"])
        else:
            retrack_run(directory, run["index"])
    if killed:
        directory.manifest["state"] = "interrupted"
        directory.manifest["reason"] = "the testmaster was killed; what was recorded by then is shown"
        directory.manifest["finished"] = utc_now()
    directory.save()
    # Where tasks of a cluster worked for the testmaster: nobody waits for them any more.
    for left_over in (directory.root / "spool").glob("cluster-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    with contextlib.suppress(OSError):
        (directory.root / "spool").rmdir()
    return True


def _read_tracking(directory: RunDirectory) -> dict[str, Any]:
    path = directory.root / "tracking.json"
    try:
        tracking: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"schema": 1, "runs": []}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunDirectoryError(
            f"{path}: cannot be read: {error}; remove it and `wiregauge show` makes it anew"
        ) from error
    return tracking
