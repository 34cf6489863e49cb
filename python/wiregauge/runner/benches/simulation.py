"""Runs a campaign in virtual time: the runs of a sweep in parallel on all cores, or one run on several.

A run is independent of the others, and its records are the same on any number of threads, so its results are the same
at any number of jobs. Each is tracked as soon as it is over, where it was simulated, and the manifest lists runs in the
order of the plan, whenever they ended. A thread of the pool simulates a run, or waits for another process that does:
that is a `Simulator`.

manifest.json and tracking.json, the lists of a run directory, name every run and are written as wholes. So that a
thousand runs do not take a million entries, they are written at intervals of ten times the duration of a write. A run
that ended in between keeps its spool until then, so that nothing is lost if this program is killed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct

from wiregauge import _native
from wiregauge.plan import Run, as_json
from wiregauge.plan.base import convert
from wiregauge.records import RunDirectory, RunDirectoryError, missing_runs
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import new_simulated_entry
from wiregauge.records.processing import enter_tracked, track_run
from wiregauge.records.reported import AgentReport, RunEntry
from wiregauge.runner.bench import BenchError
from wiregauge.runner.benches.simulated_live import Following
from wiregauge.runner.observer import Observer
from wiregauge.runner.stopping import Interrupted, signals_deferred

__all__ = [
    "INTERVAL",
    "SimulatedRun",
    "SimulationFailed",
    "SimulationStopped",
    "Simulator",
    "Watch",
    "simulate",
    "simulate_run",
]

_LOOK_S: Final = 0.1
_FOLLOWED_AFTER_S: Final = 0.5
"""Time after which a run under way is followed: shorter campaigns have no live figures."""
_WORTH_THREADS: Final = 200_000
"""Messages of a run from which on it is shared out among threads: fewer are simulated sooner than threads begin."""
INTERVAL: Final = 10
"""Interval between two writings of the lists, as a multiple of the time that one took."""

Watch = Callable[[float | None], None]
"""Takes the share of a run that is done, 0 to 1, None before it began. Raises SimulationStopped when it should end."""


class SimulationStopped(Exception):  # noqa: N818 - an event inside a simulation, not an error
    """Ends a simulation from its progress callback."""


class SimulationFailed(BenchError):  # noqa: N818 - read as in "raise SimulationFailed"
    """A run could not be simulated or its results not stored; the text gives the reason."""


class SimulatedRun(Struct, frozen=True):
    """A run that has ended, as the lists of its run directory will have it."""

    entry: RunEntry
    """The run's entry of the manifest."""
    tracking: dict[str, Any] | None
    """The run's entry of tracking.json; None for a run that could not be tracked."""


class Simulator(Protocol):
    """Takes a run from its plan to its tables, in this process or another."""

    def __call__(self, directory: RunDirectory, position: int, watch: Watch) -> SimulatedRun | None:
        """Simulates and tracks a run; returns None when it was stopped before it began.

        Called from several threads at a time. Raises SimulationFailed or RunDirectoryError.
        """


def simulate(
    directory: RunDirectory,
    observer: Observer,
    jobs: int,
    simulator: Simulator | None = None,
    *,
    threads: int = 1,
) -> None:
    """Simulates every run of the plan, `jobs` of them at a time, in this process unless there is a `simulator`.

    In this process a large run has up to so many threads. Raises Interrupted, SimulationFailed, or RunDirectoryError
    for a failing disk.
    """
    # What another process simulates is written elsewhere.
    following = None if simulator is not None else Following(directory.plan, directory.spool)
    here = simulator or partial(simulate_run, threads=threads)
    _Simulation(directory, observer, here, following).run(jobs)


def simulate_run(directory: RunDirectory, position: int, watch: Watch, *, threads: int = 1) -> SimulatedRun:
    """Simulates one run on up to so many threads, from its plan to its messages, in this process.

    An error becomes the reason in its entry.
    """
    plan = directory.plan
    run = plan.runs[position]
    entry = new_simulated_entry(directory.plan, position)
    entry.state = "partial"
    try:
        watch(0.0)
        report: dict[str, Any] = json.loads(
            _native.simulate_run(
                as_json(plan.network),
                as_json(run),
                str(directory.spool(run.index)),
                watch,
                threads if _messages(run) >= _WORTH_THREADS else 1,
            )
        )
        entry.agents = convert(report.pop("agents"), dict[str, AgentReport | None])
        entry.all_simulation = report
        entry.state = "complete"
    except SimulationStopped:
        pass
    except _native.NativeError as error:
        entry.reason = str(error)
    tracking = None
    try:
        tracking = track_run(directory, run.index)
    except RunDirectoryError as error:
        _fell_short(entry, str(error))
    entry.finished = utc_now()
    return SimulatedRun(entry, tracking)


def _messages(run: Run) -> int:
    return sum(send.count for send in run.sends)


def _fell_short(entry: RunEntry, reason: str | None) -> None:
    entry.state = "partial"
    entry.reason = entry.reason or reason


class _Simulation:
    """Only the main thread touches the lists; the pool's threads leave entries and shares for it."""

    def __init__(
        self,
        directory: RunDirectory,
        observer: Observer,
        simulator: Simulator,
        following: Following | None,
    ) -> None:
        self._directory = directory
        self._observer = observer
        self._simulator = simulator
        self._following = following
        self._follows_from = time.monotonic() + _FOLLOWED_AFTER_S
        self._stop = threading.Event()
        self._begun: dict[int, RunEntry] = {}
        self._shares: dict[int, float] = {}
        self._ended: list[SimulatedRun] = []
        """Finished runs that are not in the lists yet."""
        self._due = time.monotonic()
        """Time at which the lists are written next, s of the monotonic clock."""

    def run(self, jobs: int) -> None:
        runs = self._directory.plan.runs
        pool = ThreadPoolExecutor(max_workers=min(jobs, len(runs)), thread_name_prefix="simulation")
        missing = set(missing_runs(self._directory))
        waiting: dict[Future[SimulatedRun | None], int] = {}
        reason = "another run failed"
        try:
            # The first is under way before the last is submitted: a request to stop must find them all.
            with signals_deferred():
                for position, run in enumerate(runs):
                    if run.index in missing:
                        waiting[pool.submit(self._one, position)] = position
            while waiting:
                self._collect(waiting)
        except Interrupted as event:
            reason = str(event)
            self._observer.told(f"{reason}: what has been simulated is tracked and kept")
            raise
        finally:
            self._stop.set()
            if self._following is not None:
                self._following.stop()
            for future in waiting:
                future.cancel()
            with signals_deferred():
                pool.shutdown(wait=True)
                for future, position in waiting.items():
                    if future.cancelled() or future.exception() is not None:
                        continue
                    made = future.result()
                    if made is not None:
                        self._note_end(position, made, reason)
                self._enter()

    def _collect(self, waiting: dict[Future[SimulatedRun | None], int]) -> None:
        done, _ = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        shares = dict(self._shares)
        if self._following is not None and time.monotonic() >= self._follows_from:
            measured = self._following.look(shares)
            if measured is not None:
                self._observer.run_measured(measured)
        for position, share in shares.items():
            self._observer.run_progressed(position, share)
        ended: list[tuple[int, RunEntry]] = []
        failed = None
        with signals_deferred():
            for future in done:
                position = waiting.pop(future)
                made = future.result()
                if made is None:
                    raise SimulationFailed(f"run {position} was stopped, but nobody asked for it")
                self._note_end(position, made, None)
                ended.append((position, made.entry))
            if time.monotonic() >= self._due:
                failed = self._enter()
        for position, entry in ended:
            if entry.reason is not None:
                raise SimulationFailed(entry.reason)
            self._observer.run_ended(position, entry)
        if failed is not None:
            raise SimulationFailed(failed)

    def _note_end(self, position: int, made: SimulatedRun, reason: str | None) -> None:
        if made.entry.state != "complete":
            _fell_short(made.entry, reason)
        self._begun.pop(position, None)
        self._shares.pop(position, None)
        self._ended.append(made)

    def _enter(self) -> str | None:
        """Puts runs that ended or began into the lists, in the order of the plan.

        Returns why tracking.json could not be written: the runs are entered as partial then. Raises RunDirectoryError
        where the manifest cannot be written either.
        """
        at, failed = time.monotonic(), None
        ended, self._ended = self._ended, []
        tracked = {made.entry.index: made.tracking for made in ended if made.tracking is not None}
        try:
            if tracked:
                enter_tracked(self._directory, tracked)
        except RunDirectoryError as error:
            failed = str(error)
            for made in ended:
                _fell_short(made.entry, failed)
        entries = [made.entry for made in ended] + self._fresh()
        if entries:
            self._directory.enter(*entries)
            self._directory.save()
        now = time.monotonic()
        self._due = now + INTERVAL * (now - at)
        return failed

    def _fresh(self) -> list[RunEntry]:
        """Entries of runs under way that are not listed yet, whose records must be found even if this is killed."""
        entered = self._directory.run_indices
        begun = []
        # Others add to it meanwhile.
        while self._begun:
            begun.append(self._begun.popitem()[1])
        return [entry for entry in begun if entry.index not in entered]

    def _one(self, position: int) -> SimulatedRun | None:
        """One run; on a thread of the pool."""

        def watch(share: float | None) -> None:
            if share is not None:
                if position not in self._shares:
                    self._begun[position] = new_simulated_entry(self._directory.plan, position)
                self._shares[position] = share
            if self._stop.is_set():
                raise SimulationStopped

        try:
            return self._simulator(self._directory, position, watch)
        except SimulationFailed as error:
            if position not in self._shares:
                raise
            entry = new_simulated_entry(self._directory.plan, position)
            _fell_short(entry, str(error))
            entry.finished = utc_now()
            return SimulatedRun(entry, None)
