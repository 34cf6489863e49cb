"""A campaign whose testmaster was killed, or whose disk was full, becomes readable."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from typing import Any

from wiregauge.records.adding import add_spooled, is_stored
from wiregauge.records.directory import RunDirectory, utc_now
from wiregauge.records.entry import new_simulated_entry, note_collected
from wiregauge.records.errors import UnfinishedError, UnwritableError
from wiregauge.records.integrity import describe
from wiregauge.records.live import clear_live
from wiregauge.records.processing import TRACKING, process_run, read_tracking, retrack_run
from wiregauge.records.reported import RunEntry

__all__ = ["recover"]


def _enter_spooled(directory: RunDirectory) -> None:
    """Enters simulated runs that were spooled but killed before the manifest named them.

    A simulator writes megabytes before the testmaster next looks; namespaces wait until a run is entered.
    """
    if directory.manifest["state"] != "running" or not directory.traits.virtual_time:
        return
    entered = directory.run_indices
    directory.enter(
        *(
            new_simulated_entry(directory.plan, position)
            for position, index in enumerate(run.index for run in directory.plan.runs)
            if index not in entered and (directory.segments(index) or directory.record_files(index))
        )
    )


def recover(directory: RunDirectory) -> bool:
    """Makes a campaign readable whose testmaster was killed, or whose disk was too full to track its last run.

    What the bench had spooled is tracked like any other run. Returns whether there was anything to do. Raises
    RunDirectoryError, also where another process is doing the same; UnfinishedError where nothing can be written.
    """
    if directory.is_being_written() or not _is_unfinished(directory):
        return False
    try:
        directory.hold()
    except UnwritableError as error:
        why = (
            "its testmaster was killed"
            if directory.manifest["state"] == "running"
            else "its tables are unfinished"
        )
        raise UnfinishedError(
            f"{directory.root}: {why}, and what it left can only be made readable where it can be written "
            f"({error.reason}); copy the directory to such a place and name the copy"
        ) from error
    try:
        # Another process may have finished it between the look and the lock.
        directory.manifest = RunDirectory.open(directory.root).manifest
        if not _is_unfinished(directory):
            return False
        _finish(directory)
    finally:
        directory.close()
    return True


def _is_unfinished(directory: RunDirectory) -> bool:
    return directory.manifest["state"] == "running" or bool(_untracked(directory, read_tracking(directory)))


def _untracked(directory: RunDirectory, tracking: Mapping[str, Any]) -> list[RunEntry]:
    """Entries of runs that tracking has not finished; a table that is on the list and gone is damage, not that."""
    tracked = {entry["index"] for entry in tracking["runs"]}
    unlisted = directory.inventory.verified and directory.manifest["state"] != "running"
    return [
        run
        for run in directory.entries().values()
        if run.index not in tracked or (unlisted and not directory.is_listed(directory.messages(run.index)))
    ]


def _finish(directory: RunDirectory) -> None:
    killed = directory.manifest["state"] == "running"
    tracking = read_tracking(directory)
    if killed:
        _enter_spooled(directory)
        # Hashes were on the disk before spools were removed.
        for entry in tracking["runs"]:
            directory.note_files(entry.get("files", {}))
    _end_running(directory)
    for run in _untracked(directory, tracking):
        _sort_collected(directory, run)
        if directory.segments(run.index) and is_stored(directory, run.index):
            # They came later than those that are stored, and somebody was killed while they were added.
            add_spooled(directory, run.index)
            continue
        # Without a spool the records are stored already, and only the files made from them are missing.
        if directory.segments(run.index) or not directory.record_files(run.index):
            process_run(directory, run.index)
        else:
            if killed:  # brought from a cluster as a whole, but not yet noted
                directory.note_files(
                    {
                        directory.name_of(path): describe(path, {})
                        for path in directory.record_files(run.index)
                        if not directory.is_listed(path)
                    }
                )
            retrack_run(directory, run.index)
    if killed:
        if (directory.root / TRACKING).exists():
            directory.note_files({TRACKING: describe(directory.root / TRACKING, {})})
        directory.manifest["state"] = "interrupted"
        directory.manifest["reason"] = "the testmaster was killed; what was recorded by then is shown"
        directory.manifest["finished"] = utc_now()
        for entry in tracking["runs"]:  # killed between the last hash and the end of its spool
            shutil.rmtree(directory.spool(entry["index"]), ignore_errors=True)
    directory.save()
    clear_live(directory.root)
    # Spools of cluster tasks, for which nobody waits any more.
    for left_over in (directory.root / "spool").glob("cluster-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    with contextlib.suppress(OSError):
        (directory.root / "spool").rmdir()


def _end_running(directory: RunDirectory) -> None:
    for run in directory.entries().values():
        if run.state == "running":
            run.state, run.finished = "partial", utc_now()
            run.reason = "the testmaster was killed during this run"
            directory.enter(run)


def _sort_collected(directory: RunDirectory, entry: RunEntry) -> None:
    """Enters the end systems whose records were fetched completely; incomplete records are set aside."""
    if directory.manifest.get("bench") != "lab":
        return
    whole = directory.collected(entry.index)
    for place in directory.spool(entry.index).glob("node-*"):
        node = int(place.name.removeprefix("node-"))
        if node not in whole:
            directory.put_by(entry.index, node)
    note_collected(directory, entry, whole)
