"""The runs of a sweep as tasks of a cluster, one each."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import Any, Final

from wiregauge.cluster import tasks
from wiregauge.cluster.engine import LOOK_S, Cluster
from wiregauge.cluster.storage import StorageError
from wiregauge.plan import plain
from wiregauge.records import RunDirectory
from wiregauge.records.reported import read_entry
from wiregauge.runner import Observer, SimulatorBench
from wiregauge.runner.benches.simulation import (
    SimulatedRun,
    SimulationFailed,
    SimulationStopped,
    Watch,
    simulate,
)

__all__ = ["OnCluster"]

_LAST_WORD_S: Final = 120.0
"""Seconds that a stopped run has to return its results."""


_AHEAD: Final = 4
"""Tasks submitted per processor of the cluster: a cluster that scales grows when some wait."""


class OnCluster(SimulatorBench):
    """The simulator with its runs on a cluster, at most `jobs` of them at a time if given."""

    def __init__(self, cluster: Cluster, *, jobs: int | None = None) -> None:
        super().__init__(jobs=jobs)
        self._cluster = cluster
        self._at_once = jobs or _AHEAD * cluster.processors

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`. Raises EngineError or StorageError before any run began."""
        with self._cluster.working_on(directory):
            simulate(directory, observer, self._at_once, _ClusterSimulator(self._cluster, directory))


class _ClusterSimulator:
    """A `Simulator` whose runs are simulated and tracked on nodes; results are moved into the run directory."""

    def __init__(self, cluster: Cluster, directory: RunDirectory) -> None:
        self._cluster = cluster
        made_from = {"test.xml": directory.manifest["files"]["test.xml"]}
        self._manifest = cluster.ray.put(json.dumps({"plan": plain(directory.plan), "files": made_from}))
        self._seen: dict[int, float] = {}
        self._read_at = float("-inf")
        self._reading = threading.Lock()

    def __call__(self, directory: RunDirectory, position: int, watch: Watch) -> SimulatedRun | None:
        """See `Simulator`."""
        cluster = self._cluster
        task = cluster.task(_simulate, f"wiregauge-run-{position}")
        ref = task.remote(cluster.place, self._manifest, position, cluster.board)
        try:
            if not self._followed(ref, position, watch):
                return None
            result = cluster.ray.get(ref)
            for name in result.files:
                cluster.bring(result, name, directory.root / name)
            cluster.forget(result)
        except (cluster.errors, ConnectionError) as error:
            raise SimulationFailed(cluster.explained(f"run {position}", error)) from error
        except StorageError as error:
            raise SimulationFailed(f"run {position}: {error}") from error
        entry = result.told["entry"]
        return None if entry is None else SimulatedRun(read_entry(entry), result.told["tracking"])

    def _followed(self, ref: Any, position: int, watch: Watch) -> bool:
        """Waits for a task; False when it was stopped without a result."""
        cluster = self._cluster
        give_up: float | None = None
        while True:
            done, _ = cluster.ray.wait([ref], timeout=LOOK_S)
            if done:
                return True
            share = self._shares().get(position)
            try:
                watch(share)
            except SimulationStopped:
                # Stop requests are repeated: a board restarted after its node died has forgotten them.
                with contextlib.suppress(cluster.errors):
                    cluster.board.stop.remote()
                now = time.monotonic()
                give_up = give_up or now + _LAST_WORD_S
                if share is None or now > give_up:
                    cluster.ray.cancel(ref, force=True)
                    return False

    def _shares(self) -> dict[int, float]:
        """The progress of runs, fetched once for all threads that request it."""
        with self._reading:
            if time.monotonic() - self._read_at >= LOOK_S:
                with contextlib.suppress(self._cluster.errors):
                    self._seen = self._cluster.ray.get(self._cluster.board.read.remote(), timeout=LOOK_S)
                self._read_at = time.monotonic()
            return self._seen


def _simulate(place: tasks.Place, manifest_json: str, position: int, board: Any) -> tasks.Result:
    """On a node: runs the task, with the board for its progress."""
    import ray

    def answered(ticket: Any, seconds: float) -> bool | None:
        # A task that Ray sees waiting loses its processor to another one for good: so poll, and sleep.
        limit = time.monotonic() + seconds
        try:
            while not ray.wait([ticket], timeout=0)[0]:
                if time.monotonic() >= limit:
                    return None
                time.sleep(0.01)
            stop: bool = ray.get(ticket)
        except ray.exceptions.RayError:
            return None
        return stop

    note = tasks.noting(lambda share: board.note.remote(position, share), answered)
    return tasks.simulate(place, manifest_json, position, note)
