"""Running a campaign: hand out, start together, watch, collect, track; and end in good order, whatever happens.

Each run is tracked as soon as it is over and before the next begins, so an interrupted campaign keeps every run
it finished, and nothing competes with the agents for the processor while they measure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

from wiregauge import __version__, _native
from wiregauge.benches.base import AgentPlace, Bench, BenchError
from wiregauge.clocks import ClockError, ClockKeeper
from wiregauge.clocks.keeper import EndSystem
from wiregauge.master.client import Agent, AgentLostError
from wiregauge.master.host import host_facts
from wiregauge.master.progress import ProgressView, messages_sent
from wiregauge.master.stopping import Interrupted, deaf, stoppable
from wiregauge.records import RunDirectory, RunDirectoryError, process_run, store_clock_states
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import begun

__all__ = ["new_manifest", "run_campaign"]

_LEAD_NS: Final = 200_000_000
"""How far ahead the start is announced: agents need a moment to be waiting for it."""
_WATCH_MS: Final = 100
_STATES_BEFORE_NS: Final = 5_000_000_000
"""How much of the clocks' past belongs to a run: PTP speaks once a second, and a run may be short."""
_EXPLAIN_S: Final = 1.0
"""How long to wait for the reason of a lost connection."""
_OVERTIME_S: Final = 12.0
"""How long after its planned end a run may take before its agents count as stuck."""


def new_manifest(
    campaign: dict[str, Any], *, file: str, sha256: str, bench: str, plan: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The manifest of a campaign about to begin."""
    return {
        "schema": 1,
        "program": {"name": "wiregauge", "version": __version__},
        "test": {"name": campaign["name"], "file": file, "sha256": sha256},
        "seed": campaign["seed"],
        "bench": bench,
        "state": "running",
        "reason": None,
        "started": utc_now(),
        "finished": None,
        "writer_pid": _own_pid(),
        "host": host_facts(),
        "bench_facts": [],
        "plan": plan or campaign,
        "runs": [],
    }


def run_campaign(directory: RunDirectory, bench: Bench, view: ProgressView) -> None:
    """Runs every run of the plan. The manifest tells how it ended; only a failing disk raises."""
    manifest = directory.manifest
    keeper: ClockKeeper | None = None
    with stoppable():
        try:
            places = bench.open()
            manifest["bench_facts"] = [vars(fact) for fact in bench.facts()]
            directory.save()
            keeper = _keeper(directory, bench, places)
            if keeper is not None:
                keeper.start()
            _Campaign(directory, bench, places, view, keeper).run()
            manifest["state"] = "complete"
            if any(run["state"] != "complete" for run in directory.runs):
                manifest["state"] = "failed"
                manifest["reason"] = next(
                    run["reason"] for run in directory.runs if run["state"] != "complete"
                )
        except Interrupted as stop:
            manifest["state"], manifest["reason"] = "interrupted", str(stop)
        except (AgentLostError, BenchError, ClockError, RunDirectoryError) as error:
            manifest["state"], manifest["reason"] = "failed", str(error)
        finally:
            manifest["finished"] = utc_now()
            if keeper is not None:
                keeper.stop()
            bench.close()
            directory.save()


def _keeper(directory: RunDirectory, bench: Bench, places: Sequence[AgentPlace]) -> ClockKeeper | None:
    """Who keeps the clocks, where the test has programs for it."""
    plan = directory.plan.get("synchronise") or {}
    if plan.get("ptp") is None and not plan.get("chrony"):
        return None
    reference = directory.plan["network"]["nodes"][plan["reference"]]["name"]
    hosts = [EndSystem(place.end_system, place.interface, bench.inside(place.end_system)) for place in places]
    return ClockKeeper(plan, reference, hosts)


class _Campaign:
    def __init__(
        self,
        directory: RunDirectory,
        bench: Bench,
        places: Sequence[AgentPlace],
        view: ProgressView,
        keeper: ClockKeeper | None,
    ) -> None:
        self._keeper = keeper
        self._directory = directory
        self._bench = bench
        self._view = view
        # Their agents write times as the wrong clock the test gives them would have shown them.
        self._planted = {node["name"] for node in directory.plan["network"]["nodes"] if node.get("clock")}
        self._agents = [Agent(place) for place in places]
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(self._agents)), thread_name_prefix="agent")

    def run(self) -> None:
        try:
            self._greet()
            for position, run in enumerate(self._directory.plan["runs"]):
                self._view.begin(position)
                if not self._one(position, run):
                    return
        finally:
            for agent in self._agents:
                agent.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _greet(self) -> None:
        for agent, reply in zip(
            self._agents, self._each(lambda agent: agent.hello(__version__)), strict=True
        ):
            ours = (_native.PLAN_SCHEMA, _native.SEGMENT_SCHEMA)
            theirs = (reply["plan_schema"], reply["record_schema"])
            if theirs != ours:
                raise AgentLostError(
                    f"the agent of {agent.place.end_system} is version {reply['agent_version']} (plan and segment "
                    f"schema {theirs}); this testmaster is {__version__} ({ours}); install the same version on both"
                )

    def _one(self, position: int, run: dict[str, Any]) -> bool:
        """One run; returns whether the campaign can go on."""
        unfit = self._keeper.wait() if self._keeper is not None else None
        names = (agent.place.end_system for agent in self._agents)
        together = (name for name in names if name not in self._planted)
        entry = begun(run["index"], together, method="same-clock")
        if self._keeper is not None:
            entry["clock_gate"] = {"fit": unfit is None, "reason": unfit}
        self._directory.runs.append(entry)
        stop: Interrupted | None = None
        trouble: list[str] = []
        try:
            self._bench.prepare(run, self._directory.spooled_captures(run["index"]))
            network = self._directory.plan["network"]
            self._each(
                lambda agent: agent.prepare(
                    network, run, str(self._directory.spool(run["index"], agent.place.end_system).resolve())
                )
            )
            entry["epoch_realtime_ns"] = time.time_ns() + _LEAD_NS
            self._directory.save()
            self._each(lambda agent: agent.start(entry["epoch_realtime_ns"]))
            self._watch(position, run)
        except AgentLostError as error:
            trouble.append(self._explain(error))
        except BenchError as error:
            trouble.append(str(error))
        except Interrupted as event:
            stop = event
            trouble.append(str(event))
        with deaf():
            self._finish(entry, trouble)
            entry["captures"] = self._bench.end_captures()
            entry["finished"] = utc_now()
            entry["state"] = "partial" if trouble else "complete"
            entry["reason"] = trouble[0] if trouble else None
            # Before the run is stored, which hashes what is there.
            self._keep_states(entry)
            process_run(self._directory, run["index"])
            self._directory.save()
        sent = messages_sent(run, entry)
        self._view.end(position, f"{sent} messages sent" + (f"; {trouble[0]}" if trouble else ""))
        if stop is not None:
            raise stop
        return not trouble

    def _keep_states(self, entry: dict[str, Any]) -> None:
        """What was seen of the clocks since the run's epoch, and a little before, goes beside its records."""
        if self._keeper is None or not entry["epoch_realtime_ns"]:
            return
        asked = self._keeper.ask()
        if asked:
            entry["ptp"] = asked
        gone = self._keeper.ended()
        if gone is not None:
            entry["clock_gate"] = {"fit": False, "reason": gone}
        epoch = entry["epoch_realtime_ns"]
        rows = [
            {
                "time": (state.realtime_ns - epoch) * 1000,
                "node": state.node,
                "source": state.source,
                "state": state.state,
                "offset_ns": state.offset_ns,
                "delay_ns": state.delay_ns,
                "frequency_ppb": state.frequency_ppb,
            }
            for state in self._keeper.states(epoch - _STATES_BEFORE_NS, time.time_ns())
        ]
        store_clock_states(self._directory, entry["index"], rows)

    def _watch(self, position: int, run: dict[str, Any]) -> None:
        """Waits for all agents to be done, showing what they count."""
        counts = {agent.place.end_system: (0, 0) for agent in self._agents}
        errors: list[AgentLostError] = []
        alive = threading.Semaphore(0)
        over = threading.Event()

        def follow(agent: Agent) -> None:
            done = False
            try:
                for progress in agent.watch(_WATCH_MS, over):
                    counts[agent.place.end_system] = (progress.sent, progress.received)
                    if progress.done and not done:
                        done = True
                        alive.release()
                if not done:
                    raise AgentLostError(
                        f"the agent of {agent.place.end_system} stopped before the run was over", gone=True
                    )
            except AgentLostError as error:
                errors.append(error)
            finally:
                if not done:
                    alive.release()

        followed = [self._pool.submit(follow, agent) for agent in self._agents]
        try:
            self._until_done(position, run, counts, errors, alive)
        finally:
            # Agents that are done go on receiving what others send late, and are looked after until the last is done.
            over.set()
            for agent in self._agents:
                agent.unwatch()
            wait(followed, timeout=_OVERTIME_S)

    def _until_done(
        self,
        position: int,
        run: dict[str, Any],
        counts: dict[str, tuple[int, int]],
        errors: list[AgentLostError],
        alive: threading.Semaphore,
    ) -> None:
        # What is sent late is waited for as long as what is sent in time.
        planned = (run["warm_up"] + run["duration"] + 2 * run["drain"]) / 1e12 + _LEAD_NS / 1e9
        begin = time.monotonic()
        remaining = len(self._agents)
        while remaining:
            if alive.acquire(timeout=0.1):
                remaining -= 1
            elapsed = time.monotonic() - begin
            self._view.update(
                position, elapsed, sum(c[0] for c in counts.values()), sum(c[1] for c in counts.values())
            )
            if errors:
                raise errors[0]
            if elapsed > planned + _OVERTIME_S:
                raise AgentLostError(
                    f"the run is not over {_OVERTIME_S:.0f} s after its planned end; its agents hang"
                )

    def _finish(self, entry: dict[str, Any], trouble: list[str]) -> None:
        for agent in self._agents:
            name = agent.place.end_system
            try:
                report = agent.finish(abort=bool(trouble))
                entry["agents"][name] = report
                if not report["complete"] and not trouble:
                    trouble.append(f"{name}: {report['incomplete_reason']}")
                if not agent.place.shares_run_directory:
                    self._collect(agent, entry["index"])
            except AgentLostError as error:
                text = self._explain(error)
                if text not in trouble:
                    trouble.append(text)

    def _collect(self, agent: Agent, index: int) -> None:
        place = self._directory.spool(index, agent.place.end_system)
        place.mkdir(parents=True, exist_ok=True)

        def store(file: str, data: bytes) -> None:
            # The name comes over the network: only its last part is used.
            with (place / Path(file).name).open("ab") as out:
                out.write(data)

        agent.collect(store)

    def _explain(self, error: AgentLostError) -> str:
        """Adds why the agent is gone where the bench knows; a connection ends before its process is seen to end."""
        patience = time.monotonic() + _EXPLAIN_S
        while True:
            for agent in self._agents:
                reason = self._bench.agent_failure(agent.place.end_system)
                if reason is not None:
                    return f"the agent of {agent.place.end_system} is gone: {reason}"
            if not error.gone or time.monotonic() > patience:
                return str(error)
            time.sleep(0.02)

    def _each(self, action: Callable[[Agent], Any]) -> list[Any]:
        """The action on all agents at once; the first failure is raised after all have ended."""
        futures = [self._pool.submit(action, agent) for agent in self._agents]
        results, failure = [], None
        for future in futures:
            try:
                results.append(future.result())
            except AgentLostError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return results


def _own_pid() -> int:
    import os

    return os.getpid()
