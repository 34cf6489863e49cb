"""Running a campaign in virtual time: the runs of a sweep side by side on all cores.

A run knows nothing of the others, so what it leaves is the same at any number of jobs. Each is tracked as soon as it
is over, on the thread that simulated it, and the manifest lists runs in the order of the plan, whenever they ended.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final

from wiregauge import _native
from wiregauge.benches import simulator_facts
from wiregauge.master.progress import ProgressView
from wiregauge.master.stopping import Interrupted, deaf, stoppable
from wiregauge.records import RunDirectory, RunDirectoryError, process_run
from wiregauge.records.directory import utc_now

__all__ = ["simulate_campaign"]

_LOOK_S: Final = 0.1


class _Stop(Exception):  # noqa: N818 - an event inside a simulation, not an error
    """Ends a simulation from its progress callback."""


class _FailedError(Exception):
    """A run could not be simulated, or what it left not be stored; the text says why."""


def simulate_campaign(directory: RunDirectory, view: ProgressView, jobs: int) -> None:
    """Simulates every run of the plan. The manifest tells how it ended; only a failing disk raises."""
    manifest = directory.manifest
    with stoppable():
        try:
            manifest["bench_facts"] = [vars(fact) for fact in simulator_facts(directory.plan)]
            directory.save()
            _Simulation(directory, view).run(jobs)
            manifest["state"] = "complete"
        except Interrupted as stop:
            manifest["state"], manifest["reason"] = "interrupted", str(stop)
        except (_FailedError, RunDirectoryError) as error:
            manifest["state"], manifest["reason"] = "failed", str(error)
        finally:
            manifest["finished"] = utc_now()
            directory.save()


class _Simulation:
    """Only the main thread touches the manifest; the pool's threads leave entries and shares for it."""

    def __init__(self, directory: RunDirectory, view: ProgressView) -> None:
        self._directory = directory
        self._view = view
        self._stop = threading.Event()
        self._network = json.dumps(directory.plan["network"])
        self._begun: dict[int, dict[str, Any]] = {}
        self._shares: dict[int, float] = {}

    def run(self, jobs: int) -> None:
        runs = self._directory.plan["runs"]
        pool = ThreadPoolExecutor(max_workers=min(jobs, len(runs)), thread_name_prefix="simulation")
        waiting = {pool.submit(self._one, position, run): position for position, run in enumerate(runs)}
        reason = "another run failed"
        try:
            while waiting:
                self._collect(waiting)
        except Interrupted as event:
            reason = str(event)
            raise
        finally:
            self._stop.set()
            for future in waiting:
                future.cancel()
            with deaf():
                pool.shutdown(wait=True)
                for future, position in waiting.items():
                    if not future.cancelled() and future.exception() is None:
                        self._keep(position, future.result(), reason)

    def _collect(self, waiting: dict[Future[dict[str, Any]], int]) -> None:
        done, _ = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        for position, share in list(self._shares.items()):
            self._view.share(position, share)
        for future in done:
            position = waiting[future]
            with deaf():
                entry = future.result()
                del waiting[future]
                self._keep(position, entry, None)
            if entry["reason"] is not None:
                raise _FailedError(entry["reason"])
            sent = sum(
                task["done"]
                for report in entry["agents"].values()
                for task in report["tasks"]
                if task["kind"] == "send"
            )
            self._view.end(position, f"{sent} messages sent")
        with deaf():
            self._enter_begun()

    def _enter_begun(self) -> None:
        """Enters the runs under way, so that what they had recorded is found even if this program is killed."""
        entered = {run["index"] for run in self._directory.runs}
        fresh = [entry for entry in list(self._begun.values()) if entry["index"] not in entered]
        self._begun.clear()
        if fresh:
            self._enter(fresh)

    def _keep(self, position: int, entry: dict[str, Any], reason: str | None) -> None:
        """Enters a run that has ended into the manifest."""
        if entry["state"] != "complete" and entry["reason"] is None:
            entry["reason"] = reason
        self._begun.pop(position, None)
        self._shares.pop(position, None)
        self._enter([entry])

    def _enter(self, entries: list[dict[str, Any]]) -> None:
        """Replaces or adds entries, in the order of the plan."""
        runs = {run["index"]: run for run in self._directory.runs}
        runs.update({entry["index"]: entry for entry in entries})
        self._directory.runs[:] = [runs[index] for index in sorted(runs)]
        self._directory.save()

    def _one(self, position: int, run: dict[str, Any]) -> dict[str, Any]:
        """One run, from its plan to its messages; on a thread of the pool."""
        entry: dict[str, Any] = {
            "index": run["index"],
            "state": "running",
            "reason": None,
            "epoch_realtime_ns": 0,
            "started": utc_now(),
            "finished": None,
            "agents": {},
            "clock_offsets": {
                node["name"]: {"offset_ns": 0, "uncertainty_ns": 0, "method": "simulated"}
                for node in self._directory.plan["network"]["nodes"]
                if node["kind"]["type"] == "end-system" and not node.get("clock")
            },
        }
        self._begun[position] = dict(entry)
        entry["state"] = "partial"

        def watch(share: float) -> None:
            self._shares[position] = share
            if self._stop.is_set():
                raise _Stop

        try:
            watch(0.0)
            report = json.loads(
                _native.simulate_run(
                    self._network, json.dumps(run), str(self._directory.spool(run["index"])), watch
                )
            )
            entry["agents"] = report.pop("agents")
            entry["simulation"] = report
            entry["state"] = "complete"
        except _Stop:
            pass
        except _native.NativeError as error:
            entry["reason"] = str(error)
        try:
            process_run(self._directory, run["index"])
        except RunDirectoryError as error:
            entry["state"] = "partial"
            entry["reason"] = entry["reason"] or str(error)
        entry["finished"] = utc_now()
        return entry
