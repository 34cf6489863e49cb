"""Running a campaign in virtual time: the runs of a sweep side by side on all cores.

A run knows nothing of the others, so what it leaves is the same at any number of jobs. Each is tracked as soon as it
is over, where it was simulated, and the manifest lists runs in the order of the plan, whenever they ended. A
pool of threads either simulates or waits for whoever does: that is a `Simulator`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final, Protocol

from wiregauge import _native
from wiregauge.benches.base import BenchError
from wiregauge.master.observing import Observer
from wiregauge.master.stopping import Interrupted, deaf
from wiregauge.plan import as_json
from wiregauge.records import RunDirectory, RunDirectoryError, missing_runs, process_run
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import begun_simulated

__all__ = ["SimulationFailed", "SimulationStopped", "Simulator", "Watch", "simulate", "simulate_run"]

_LOOK_S: Final = 0.1

Watch = Callable[[float | None], None]
"""Takes the share of a run that is done, 0 to 1, None before it began. Raises SimulationStopped when it should end."""


class SimulationStopped(Exception):  # noqa: N818 - an event inside a simulation, not an error
    """Ends a simulation from its progress callback."""


class SimulationFailed(BenchError):  # noqa: N818 - read as in "raise SimulationFailed"
    """A run could not be simulated, or what it left not be stored; the text says why."""


class Simulator(Protocol):
    """Whoever takes a run from its plan to its tables."""

    def __call__(self, directory: RunDirectory, position: int, watch: Watch) -> dict[str, Any] | None:
        """Simulates and tracks a run, and returns its entry of the manifest; None when it was stopped before it began.

        Called from several threads at a time. Raises SimulationFailed or RunDirectoryError.
        """


def simulate(
    directory: RunDirectory, observer: Observer, jobs: int, simulator: Simulator | None = None
) -> None:
    """Simulates every run of the plan, `jobs` of them at a time, here unless there is a `simulator`.

    Raises Interrupted, SimulationFailed, or RunDirectoryError for a failing disk.
    """
    _Simulation(directory, observer, simulator or simulate_run).run(jobs)


def simulate_run(directory: RunDirectory, position: int, watch: Watch) -> dict[str, Any]:
    """One run, from its plan to its messages, in this process; what went wrong is the reason in its entry."""
    plan = directory.plan
    run = plan.runs[position]
    entry = begun_simulated(directory.plan, position)
    entry["state"] = "partial"
    try:
        watch(0.0)
        report = json.loads(
            _native.simulate_run(as_json(plan.network), as_json(run), str(directory.spool(run.index)), watch)
        )
        entry["agents"] = report.pop("agents")
        entry["simulation"] = report
        entry["state"] = "complete"
    except SimulationStopped:
        pass
    except _native.NativeError as error:
        entry["reason"] = str(error)
    try:
        process_run(directory, run.index)
    except RunDirectoryError as error:
        entry["state"] = "partial"
        entry["reason"] = entry["reason"] or str(error)
    entry["finished"] = utc_now()
    return entry


class _Simulation:
    """Only the main thread touches the manifest; the pool's threads leave entries and shares for it."""

    def __init__(self, directory: RunDirectory, observer: Observer, simulator: Simulator) -> None:
        self._directory = directory
        self._observer = observer
        self._simulator = simulator
        self._stop = threading.Event()
        self._begun: dict[int, dict[str, Any]] = {}
        self._shares: dict[int, float] = {}

    def run(self, jobs: int) -> None:
        runs = self._directory.plan.runs
        pool = ThreadPoolExecutor(max_workers=min(jobs, len(runs)), thread_name_prefix="simulation")
        missing = set(missing_runs(self._directory))
        waiting = {
            pool.submit(self._one, position): position
            for position, run in enumerate(runs)
            if run.index in missing
        }
        reason = "another run failed"
        try:
            while waiting:
                self._collect(waiting)
        except Interrupted as event:
            reason = str(event)
            self._observer.told(f"{reason}: what has been simulated is tracked and kept")
            raise
        finally:
            self._stop.set()
            for future in waiting:
                future.cancel()
            with deaf():
                pool.shutdown(wait=True)
                for future, position in waiting.items():
                    if future.cancelled() or future.exception() is not None:
                        continue
                    entry = future.result()
                    if entry is not None:
                        self._enter([self._ended(position, entry, reason)])

    def _collect(self, waiting: dict[Future[dict[str, Any] | None], int]) -> None:
        done, _ = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        for position, share in list(self._shares.items()):
            self._observer.run_progressed(position, share)
        ended: list[tuple[int, dict[str, Any]]] = []
        with deaf():
            try:
                for future in done:
                    position = waiting.pop(future)
                    entry = future.result()
                    if entry is None:
                        raise SimulationFailed(f"run {position} was stopped, but nobody asked for it")
                    ended.append((position, self._ended(position, entry, None)))
            finally:
                # All together, since the manifest is written as a whole each time.
                self._enter([entry for _, entry in ended] + self._fresh())
        for position, entry in ended:
            if entry["reason"] is not None:
                raise SimulationFailed(entry["reason"])
            self._observer.run_ended(position, entry)

    def _fresh(self) -> list[dict[str, Any]]:
        """Runs under way that are not entered, so that what they recorded is found even if this program is killed."""
        entered = {run["index"] for run in self._directory.runs}
        begun = []
        # Others add to it meanwhile.
        while self._begun:
            begun.append(self._begun.popitem()[1])
        return [entry for entry in begun if entry["index"] not in entered]

    def _ended(self, position: int, entry: dict[str, Any], reason: str | None) -> dict[str, Any]:
        """The entry of a run that has ended."""
        if entry["state"] != "complete" and entry["reason"] is None:
            entry["reason"] = reason
        self._begun.pop(position, None)
        self._shares.pop(position, None)
        return entry

    def _enter(self, entries: list[dict[str, Any]]) -> None:
        """Replaces or adds entries, in the order of the plan, and writes the manifest."""
        if not entries:
            return
        runs = {run["index"]: run for run in self._directory.runs}
        runs.update({entry["index"]: entry for entry in entries})
        self._directory.runs[:] = [runs[index] for index in sorted(runs)]
        self._directory.save()

    def _one(self, position: int) -> dict[str, Any] | None:
        """One run; on a thread of the pool."""

        def watch(share: float | None) -> None:
            if share is not None:
                if position not in self._shares:
                    self._begun[position] = begun_simulated(self._directory.plan, position)
                self._shares[position] = share
            if self._stop.is_set():
                raise SimulationStopped

        try:
            return self._simulator(self._directory, position, watch)
        except SimulationFailed as error:
            if position not in self._shares:
                raise
            entry = begun_simulated(self._directory.plan, position)
            return {**entry, "state": "partial", "reason": str(error), "finished": utc_now()}
