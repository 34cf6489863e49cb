"""Tracks stored records again: locally, run after run on all cores, or on a cluster, each run divided by flow."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wiregauge.cluster import tasks
from wiregauge.cluster.engine import LOOK_S, Cluster, EngineError, connected
from wiregauge.cluster.merging import merge_entries, merge_tables
from wiregauge.plan import Run, as_json
from wiregauge.records import RunDirectory, RunDirectoryError
from wiregauge.records.processing import (
    adopt_records,
    begin_replacing,
    checked_records,
    gaps_before,
    note_retracked,
    retrack_run,
)
from wiregauge.runner.stopping import Interrupted, signals_deferred, stoppable

__all__ = ["retrack", "retrack_on"]


def retrack(
    directory: RunDirectory,
    indices: Sequence[int],
    engine: str,
    *,
    parts: int | None = None,
    storage: str | None = None,
    adopt: bool = False,
    tracked: Callable[[int], None],
) -> str | None:
    """Tracks runs again from their stored records on an engine; `tracked` is called with each finished run.

    `adopt` accepts records that differ from those the run wrote. A run is replaced atomically. Returns the reason of a
    stop, if there was one. Raises RunDirectoryError, and EngineError or StorageError of an engine that is not
    `local`.
    """
    if not adopt:
        for index in indices:
            checked_records(directory, index)
    with contextlib.ExitStack() as ending:
        cluster = ending.enter_context(connected(engine, storage=storage)) if engine != "local" else None
        directory.hold()
        ending.callback(directory.close)
        # Another process may have changed it before the lock was acquired.
        directory.manifest = RunDirectory.open(directory.root).manifest
        for index in indices if adopt else ():
            adopt_records(directory, index)
        try:
            with stoppable():
                if cluster is None:
                    for index in indices:
                        retrack_run(directory, index)
                        tracked(index)
                else:
                    with cluster.working_on(directory):
                        retrack_on(cluster, directory, indices, parts, tracked)
        except Interrupted as stop:
            return str(stop)
        finally:
            with contextlib.suppress(OSError):
                (directory.root / "spool").rmdir()
    return None


def retrack_on(
    cluster: Cluster,
    directory: RunDirectory,
    indices: Sequence[int],
    parts: int | None,
    tracked: Callable[[int], None],
) -> None:
    """Tracks runs again on a cluster that works on their directory, in `parts` each, by default one per processor.

    Raises RunDirectoryError, EngineError or StorageError.
    """
    network = cluster.ray.put(as_json(directory.plan.network))
    waiting: dict[Any, tuple[int, int]] = {}
    found: dict[int, dict[int, tasks.Result]] = {index: {} for index in indices}
    count = {index: _parts(cluster, directory.plan.runs[index], parts) for index in indices}
    try:
        for index in indices:
            run = as_json(directory.plan.runs[index])
            records = _within_reach(cluster, directory, index)
            gaps = json.dumps(gaps_before(directory, index))
            for part in range(count[index]):
                task = cluster.task(tasks.track, f"wiregauge-track-{index}-{part}")
                waiting[task.remote(cluster.place, network, run, records, gaps, part, count[index])] = (
                    index,
                    part,
                )
        while waiting:
            done, _ = cluster.ray.wait(list(waiting), timeout=LOOK_S)
            for ref in done:
                index, part = waiting.pop(ref)
                found[index][part] = _result(cluster, ref, index, part)
                if len(found[index]) == count[index]:
                    with signals_deferred():
                        _put_together(cluster, directory, index, found.pop(index))
                    tracked(index)
    finally:
        for ref in waiting:
            cluster.ray.cancel(ref, force=True)


def _parts(cluster: Cluster, run: Run, wanted: int | None) -> int:
    """The number of parts, at most one per flow: a part without flows would read all records for nothing."""
    return max(1, min(wanted or cluster.processors, len(run.flows)))


def _result(cluster: Cluster, ref: Any, index: int, part: int) -> tasks.Result:
    try:
        result: tasks.Result = cluster.ray.get(ref)
    except (cluster.errors, ConnectionError) as error:
        raise EngineError(cluster.explained(f"run {index}, part {part}", error)) from error
    return result


def _within_reach(cluster: Cluster, directory: RunDirectory, index: int) -> list[tasks.Stored]:
    """The records of a run, stored where tasks find them."""
    files = [
        tasks.Stored(f"run-{index:04d}/{path.name}", str(path.resolve()), str(path))
        for path in checked_records(directory, index)
    ]
    if cluster.storage is not None:
        for file in files:
            cluster.storage.put(Path(file.path), f"{cluster.token}/in/{file.name}")
    return files


def _put_together(
    cluster: Cluster, directory: RunDirectory, index: int, results: dict[int, tasks.Result]
) -> None:
    shares = [results[part] for part in sorted(results)]
    targets = dict(zip(("messages", "passages", "sketches"), directory.tables(index), strict=True))
    begin_replacing(directory, index)
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=_spool(directory)) as here:
        # The messages last: readers take them as the sign that all files are there.
        for table in ("passages", "sketches", "messages"):
            parts = [Path(here) / f"{table}-{part}.parquet" for part in range(len(shares))]
            for result, path in zip(shares, parts, strict=True):
                cluster.bring(result, f"{table}.parquet", path)
            merge_tables(parts, targets[table])
    note_retracked(directory, index, merge_entries([result.told for result in shares]))
    for result in shares:
        cluster.forget(result)


def _spool(directory: RunDirectory) -> Path:
    """A folder on the disk of the run directory, so that merged files can be moved into place."""
    spool = directory.root / "spool"
    try:
        spool.mkdir(exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"{spool}: cannot be written: {error.strerror}") from error
    return spool
