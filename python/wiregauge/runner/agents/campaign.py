"""Runs a plan on agents: prepare, start together, watch, collect, track; and end in good order, whatever happens.

An agent that plays the network between the end systems gets the same calls as theirs. Its report is in the entry of the
run as `network`.

Each run is tracked as soon as it is over and before the next begins, so an interrupted campaign keeps every run it
finished, and nothing competes with the agents for the processor while they measure.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import to_builtins
from msgspec.structs import replace

from wiregauge.plan import NETWORK, Run
from wiregauge.records import RunDirectory, missing_runs, process_run, store_clock_states
from wiregauge.records.counters import known
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import new_entry
from wiregauge.records.live import ClockNow
from wiregauge.records.reported import ClockGate, FirstPort, RunEntry
from wiregauge.runner.agents.client import Agent, AgentLostError, StartMissedError
from wiregauge.runner.agents.clock_hosts import AgentClockHost
from wiregauge.runner.agents.clock_relations import ClockRelations
from wiregauge.runner.agents.collecting import Collected
from wiregauge.runner.agents.network import AgentPlace, NetworkUnderTest
from wiregauge.runner.agents.pool import AgentPool
from wiregauge.runner.agents.reports import FinishedRun, network_sums
from wiregauge.runner.agents.stream_trials import try_streams, with_trials
from wiregauge.runner.agents.watching import watch
from wiregauge.runner.bench import BenchError, Fact
from wiregauge.runner.clocks.host import ClockError
from wiregauge.runner.clocks.keeper import ClockKeeper
from wiregauge.runner.live.figures import Figures
from wiregauge.runner.live.monitor import AlarmMonitor, Keep
from wiregauge.runner.observer import Observer
from wiregauge.runner.rpc import agent_pb2 as pb
from wiregauge.runner.stopping import Interrupted, signals_deferred

__all__ = ["run_on_agents"]

_STATES_BEFORE_NS: Final = 5_000_000_000
"""How long before a run clock states belong to it, ns: PTP reports once a second, and a run may be short."""
_EXPLAIN_S: Final = 1.0
"""How long to wait for the reason of a lost connection, s."""
_FINISH_S: Final = 60.0
"""How long agents may take to end a run and write their records, s."""
_END_S: Final = 3.5
"""How long they may take after the user has asked to stop, s."""
_LOST_S: Final = 1.5
"""How long an agent may take that gave no sign of life, s."""
_WITHIN_S: Final = 6.0
"""How long after the planned end of a run its records are requested, s; the command should not outlast that by much."""
_LEAST_S: Final = 0.2
_AGAIN_S: Final = 0.5
"""Interval between attempts to reach an agent that was lost, s."""
_REACH_MS: Final = 300
"""How long an agent waits for answers when it asks which addresses are on the network, ms."""
_KEEP_S: Final = 1.0
"""How long the run is not watched while captures keep the surroundings of an alarm, s."""
_SECOND_S: Final = 0.95
"""Interval between two looks at live figures, s: agents have new ones once a second."""
_STARTS: Final = 3
"""Number of attempts to start a run before its agents count as unable to start together."""


def run_on_agents(
    directory: RunDirectory,
    bench: NetworkUnderTest,
    observer: Observer,
    monitor: AlarmMonitor,
    *,
    one_clock: bool,
) -> None:
    """Runs every run of the plan, until one fails to end; `monitor` may cause that.

    Raises Interrupted, BenchError, or RunDirectoryError for a failing disk. The agents are left in any case.
    """
    try:
        monitor.check_room(directory.root, directory.plan.runs, observer.told)
        places = bench.open(directory.plan, directory.root / "spool")
        # Agents of other hosts store records under this name until they are fetched.
        directory.manifest.setdefault("campaign", secrets.token_hex(16))
        directory.save()
        monitor.begin({"test": directory.plan.name, "bench": str(directory.manifest["bench"])})
        feed = _LiveFeed(directory, observer, monitor)
        _Campaign(directory, bench, places, feed, one_clock=one_clock).run()
    except ClockError as error:
        raise BenchError(str(error)) from error
    finally:
        monitor.close()
        bench.leave()


def _keeper(directory: RunDirectory, pool: AgentPool) -> ClockKeeper | None:
    """The keeper of the clocks; None where the test has no programs for it."""
    plan = directory.plan.synchronise
    if plan is None or (plan.ptp is None and not plan.chrony):
        return None
    reference = directory.plan.network.names[plan.reference]
    return ClockKeeper(plan, reference, {name: AgentClockHost(one) for name, one in pool.by_name.items()})


def _clocks_now(keeper: ClockKeeper | None, entry: RunEntry) -> tuple[ClockNow, ...]:
    """What programs have said last of the clocks of hosts; nothing where the test has no such programs."""
    return tuple(
        ClockNow(
            one.node,
            one.source,
            one.state,
            one.is_synchronised,
            one.offset_ns,
            (one.realtime_ns - entry.epoch_realtime_ns) / 1e9,
        )
        for one in (keeper.latest() if keeper is not None else ())
    )


class _LiveFeed:
    """Forwards the live figures of a run: to the observer, and once a second to alarms and endpoint."""

    def __init__(self, directory: RunDirectory, observer: Observer, monitor: AlarmMonitor) -> None:
        self._directory = directory
        self.observer = observer
        self.monitor = monitor
        self.keep: Keep | None = None
        self.keeper: ClockKeeper | None = None

    def begin(self, position: int, run: Run, entry: RunEntry) -> None:
        """A run begins."""
        self._position, self._entry = position, entry
        self._figures = Figures(position, run, self._directory.plan.network.names)
        self._due, self._fresh = time.monotonic(), False
        self.monitor.run_begins(run.drain / 1e12)

    def update(self, agent: str, told: pb.LiveFigures) -> None:
        """An agent has summed up a second."""
        self._figures.take(agent, told)
        if told.HasField("network"):
            self._figures.take_network(network_sums(told.network))
        self._fresh = True

    def show(self, share: float) -> None:
        """Reports the share of the run that is done. Raises Interrupted where the monitor ends it."""
        self.observer.run_progressed(self._position, share)
        now = time.monotonic()
        if now < self._due:
            return
        if self._fresh:
            self._due, self._fresh = now + _SECOND_S, False
            measured = self._figures.now(_clocks_now(self.keeper, self._entry))
            self.observer.run_measured(measured)
            self.monitor.look(measured, share, self.observer.told, self.keep)
        self.monitor.look_at_disk(self._directory.root)


class _Campaign:
    def __init__(
        self,
        directory: RunDirectory,
        bench: NetworkUnderTest,
        places: Sequence[AgentPlace],
        feed: _LiveFeed,
        *,
        one_clock: bool,
    ) -> None:
        self._directory = directory
        self._bench = bench
        self._one_clock = one_clock
        self._feed = feed
        self._observer = feed.observer
        self._name = str(directory.manifest["campaign"])
        self._pool = AgentPool(places, self._name)
        self._keeper = feed.keeper = _keeper(directory, self._pool)
        self._relations = ClockRelations(self._pool.agents, self._keeper, directory.plan)
        on_machine = Counter(place.machine for place in places)
        self._on_host = {place.end_system: on_machine[place.machine] for place in places}
        self._ports: dict[str, FirstPort] = {}
        self._distrusted: dict[str, dict[str, str]] = {}
        self._lost = ""
        """The end system whose agent was lost in the present run; empty: none."""
        self._until = 0.0
        """Time after which that agent is no longer called, s of this host's monotonic clock."""

    def run(self) -> None:
        try:
            self._pool.greet()
            self._look()
            self._mend()
            if self._keeper is not None:
                self._keeper.start()
            missing = set(missing_runs(self._directory))
            for position, run in enumerate(self._directory.plan.runs):
                if run.index not in missing:
                    continue
                self._observer.run_began(position)
                if not self._one(position, run):
                    return
        except AgentLostError as error:
            raise AgentLostError(self._explain(error)) from error
        finally:
            if self._keeper is not None:
                self._keeper.stop()
            self._pool.close()

    def _look(self) -> None:
        """Adds observations of the network to the facts of the bench in the manifest."""
        agents = self._pool.by_name
        seen = self._bench.look(lambda name, addresses, size: agents[name].reach(addresses, size, _REACH_MS))
        self._directory.manifest["bench_facts"] += [to_builtins(fact) for fact in seen]

    def _mend(self) -> None:
        """Has agents tune their hosts for measuring where the bench says so; they undo it whenever the session ends."""
        told = self._directory.manifest["bench_facts"]
        for agent in self._pool.agents:
            if not agent.place.fix:
                continue
            changes = agent.mend(agent.place.interface)
            for one in changes:
                where = f"{agent.place.end_system}, {one.interface or 'its host'}"
                value = f"{one.setting}: {one.before} to {one.after}"
                note = f"refused: {one.refused}" if one.refused else "restored after the run"
                told.append(to_builtins(Fact(f"set for measuring: {where}", value, note)))
            if not changes:
                fact = Fact(f"set for measuring: {agent.place.end_system}", "nothing", "all was well")
                told.append(to_builtins(fact))
        self._directory.save()

    def _one(self, position: int, run: Run) -> bool:
        """One run; returns whether the campaign can go on."""
        unfit = self._fit(run)
        # Agents of these nodes write times as the wrong clock given by the test would have shown them.
        planted = run.planted_clocks(self._directory.plan.network)
        together = [
            agent.place.end_system
            for agent in self._pool.by_name.values()
            if (self._one_clock or not agent.place.own_clock) and agent.place.node not in planted
        ]
        entry = new_entry(run.index, together, method="same-clock")
        entry.trials = ()
        if self._keeper is not None:
            entry.clock_gate = ClockGate(unfit is None, unfit)
        self._directory.enter(entry)
        stop: Interrupted | None = None
        trouble: list[str] = []
        self._lost, self._until = "", time.monotonic() + _FINISH_S
        self._feed.begin(position, run, entry)
        self._feed.keep = partial(self._keep_frames, entry, run)
        self._bench.hold_s = self._feed.monitor.hold_s
        try:
            self._start(entry, run)
            lost = self._look_on(run)
            trouble += [lost] if lost else []
        except AgentLostError as error:
            trouble.append(self._explain(error))
        except BenchError as error:
            trouble.append(str(error))
        except Interrupted as event:
            stop = event
            trouble.append(str(event))
        with signals_deferred(), self._pool.in_touch():
            self._finish(entry, trouble, seconds=_END_S if stop is not None else _FINISH_S)
            self._count_ports(entry)
            entry.clock_offsets = {**(entry.clock_offsets or {}), **self._relations.after(entry)}
            self._feed.monitor.run_ends(entry)
            entry.captures |= self._bench.end_captures()
            entry.finished = utc_now()
            entry.state = "partial" if trouble else "complete"
            entry.reason = trouble[0] if trouble else None
            # Before the run is stored, which hashes existing files.
            self._keep_states(entry)
            self._directory.enter(entry)
            process_run(self._directory, run.index)
            self._directory.save()
            self._discard(entry)
        self._observer.run_ended(position, entry)
        if stop is not None:
            raise stop
        return not trouble

    def _look_on(self, run: Run) -> str:
        """Watches until the run is over; for a lost agent the reason, and the messages counted by then; else empty."""
        counted = (0, 0)

        def show(share: float, sent: int, received: int) -> None:
            nonlocal counted
            counted = sent, received
            self._feed.show(share)

        # Messages sent late are awaited as long as those sent in time.
        planned_s = run.planned_s + run.drain / 1e12 + self._pool.lead_s
        self._until = time.monotonic() + planned_s + _WITHIN_S
        try:
            watch(self._pool, planned_s, show, self._feed.update, self._observer.told)
        except AgentLostError as error:
            self._lost = error.agent if error.gone or error.silent else ""
            sent, received = counted
            return (
                f"{self._explain(error)}; {sent} messages sent and {received} received were counted by then, "
                "the warm-up included"
            )
        return ""

    def _fit(self, run: Run) -> str | None:
        """A reason why the clocks are not fit for a run that begins now; None where they are, or are not kept."""
        if self._keeper is None:
            return None
        planned_s = run.planned_s + run.drain / 1e12 + self._pool.lead_s
        unfit = self._keeper.wait(planned_s, self._stay_in_touch)
        contradiction = self._relations.choose()
        if contradiction is None:
            return unfit
        synchronise = self._directory.plan.synchronise
        if synchronise is not None and synchronise.refuse:
            raise ClockError(f"the clocks are not fit for a run: {contradiction}")
        return unfit or contradiction

    def _stay_in_touch(self) -> None:
        """Agents that wait for clocks know that somebody waits with them."""
        for _ in self._pool.outcomes(Agent.touch):
            pass

    def _start(self, entry: RunEntry, run: Run) -> None:
        """Starts the run on every agent at one instant: on all, or on none and again on all.

        Raises AgentLostError when that fails.
        """
        for _ in range(_STARTS):
            self._bench.prepare(run, self._directory.spooled_captures(run.index))
            self._prepare(entry, run)
            self._ports = self._bench.first_ports()
            epoch = entry.epoch_realtime_ns = self._pool.agree_on_start()
            self._directory.enter(entry)
            self._directory.save()
            try:
                self._pool.each(partial(_start, epoch))
            except StartMissedError:
                # Some agents have begun and some have not: their records belong to no run.
                self._take_back(run)
                self._pool.allow_longer()
            else:
                return
        raise AgentLostError(
            f"the agents could not be started together in {_STARTS} attempts, the last one announced "
            f"{self._pool.lead_s:.1f} s ahead: this host is too busy for so many"
        )

    def _prepare(self, entry: RunEntry, run: Run) -> None:
        """Prepares every agent and tries its streams, until each uses a backend whose frames arrive.

        Where no other backend is left the run goes on with the last, and is judged by its arrivals.
        """
        network, agents = self._directory.plan.network, self._pool.by_name
        while True:
            answers = self._pool.each(
                lambda agent: agent.prepare(
                    network,
                    run,
                    self._on_host[agent.place.end_system],
                    self._distrusted.get(agent.place.end_system, {}),
                    self._bench.hold_s,
                )
            )
            chosen = dict(zip(self._pool.names, answers, strict=True))
            chosen.pop(NETWORK, None)
            trials = try_streams(agents, chosen, run, network.names, self._pool.network)
            entry.trials = tuple(trials)
            failed = [
                trial
                for trial in trials
                if not trial.succeeded and trial.backend not in self._distrusted.get(trial.end_system, {})
            ]
            if not failed:
                return
            for trial in failed:
                self._distrusted.setdefault(trial.end_system, {})[trial.backend] = trial.text
            self._take_back(run)
            self._bench.prepare(run, self._directory.spooled_captures(run.index))

    def _keep_frames(self, entry: RunEntry, run: Run, begin_s: float, end_s: float) -> None:
        """Has captures keep the frames between two instants of the run's time, s."""
        begin, end = (entry.epoch_realtime_ns + round(1e9 * at) for at in (begin_s, end_s))
        self._bench.keep_frames(begin, end)
        network = self._directory.plan.network
        captured = {network.names[capture.on] for capture in run.captures}
        if captured - {node.name for node in network.end_systems.values()}:
            captured.add(NETWORK)
        self._pool.tell(
            lambda agent: agent.keep(begin, end) if agent.place.end_system in captured else None, _KEEP_S
        )

    def _take_back(self, run: Run) -> None:
        """Aborts a prepared or started run and discards its records."""
        self._pool.each(lambda agent: agent.finish(abort=True, seconds=_FINISH_S))
        self._bench.end_captures()
        # Agents discard their own records.
        shutil.rmtree(self._directory.spooled_captures(run.index), ignore_errors=True)

    def _count_ports(self, entry: RunEntry) -> None:
        """Stores the frames that the first port behind each end system received since the start, to compare with
        agents."""
        before, after = self._ports, self._bench.first_ports()
        self._ports = {}
        entry.first_ports = {
            name: replace(port, received=known(port.received) - known(before[name].received))
            for name, port in after.items()
            if name in before
        }

    def _keep_states(self, entry: RunEntry) -> None:
        """Stores the clock states since shortly before the run's epoch with its records."""
        if self._keeper is None or not entry.epoch_realtime_ns:
            return
        entry.ptp = self._keeper.ask() or None
        gone = self._keeper.ended()
        if gone is not None:
            entry.clock_gate = ClockGate(fit=False, reason=gone)
        epoch = entry.epoch_realtime_ns
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
        store_clock_states(self._directory, entry.index, rows)

    def _finish(self, entry: RunEntry, trouble: list[str], *, seconds: float) -> None:
        """Ends the run on every agent; one that does not end it in time is given up."""
        abort, end = bool(trouble), time.monotonic() + seconds

        def finish(agent: Agent) -> tuple[FinishedRun, AgentLostError | OSError | None]:
            """The agent's report, and the error that kept its records; in parallel, while others still write theirs."""
            is_lost = agent.place.end_system == self._lost and agent.place.access is not None
            left = min(end - time.monotonic(), _LOST_S if is_lost else seconds)
            ended = agent.finish(abort=abort, seconds=max(left, _LEAST_S))
            try:
                self._fetch(agent, entry)
            except (AgentLostError, OSError) as error:
                return ended, error
            return ended, None

        for agent, outcome in self._pool.outcomes(finish):
            name = agent.place.end_system
            try:
                if isinstance(outcome, AgentLostError):
                    raise outcome
                ended, missed = outcome
                if agent.place.is_network:
                    ended.enter_network(entry)
                else:
                    entry.agents[name] = with_trials(ended.report, entry.trials or (), name)
                if not ended.report.complete and not trouble:
                    trouble.append(f"{name}: {ended.report.incomplete_reason}")
                if missed is not None:
                    raise missed
                _note_collected(agent, entry)
            except AgentLostError as error:
                text = self._explain(error)
                if text not in trouble:
                    trouble.append(text)
                trouble[0] += self._without(agent, entry, end)
            except OSError as error:
                trouble.append(f"{self._directory.root}: cannot be written: {error.strerror}")
                self._miss(agent, entry)

    def _without(self, agent: Agent, entry: RunEntry, end: float) -> str:
        """Tries to recover the records of an agent that did not end its run; a clause that says what became of them."""
        if self._recover(agent, entry, end):
            return f"; what {agent.place.called} had recorded was fetched"
        if agent.place.shares_run_directory:
            return ""
        self._miss(agent, entry)
        if agent.place.access is None:
            return ""
        return (
            f"; what {agent.place.called} recorded stays with its host: once it is back, "
            f"`wiregauge lab fetch {self._directory.root}` has it"
        )

    def _fetch(self, agent: Agent, entry: RunEntry, kept: pb.KeptRecords | None = None) -> None:
        """Fetches all records of an agent on another host."""
        place = agent.place
        if not place.shares_run_directory:
            agent.collect(Collected(self._directory.spool(entry.index, place.node)), kept)

    def _miss(self, agent: Agent, entry: RunEntry) -> None:
        """Marks the records of an agent as not fetched; a part that was fetched is set aside."""
        name = agent.place.end_system
        report = entry.agents.get(name)
        if report is not None:
            entry.agents[name] = replace(
                report, complete=False, incomplete_reason="its records were not fetched"
            )
        with contextlib.suppress(OSError):
            self._directory.put_by(entry.index, agent.place.node)

    def _recover(self, agent: Agent, entry: RunEntry, end: float) -> bool:
        """Fetches the stored records of an agent that was lost in a run, once it is back; whether there were any.

        If the run still goes on there, a new session ends it.
        """
        place = agent.place
        if place.access is None:
            return False
        end = min(end, time.monotonic() + place.patience_s)
        if place.end_system == self._lost:
            end = min(end, self._until)
        while True:
            try:
                left = max(end - time.monotonic(), _LEAST_S)
                kept, where = agent.kept(self._name, seconds=left), (entry.index, place.node)
                ours = [one for one in kept if (one.run, one.node) == where]
                if any(one.active for one in ours):
                    self._pool.hello(agent)
                for one in ours:
                    self._fetch(agent, entry, one)
                    _note_collected(agent, entry)
            except (AgentLostError, OSError):
                if time.monotonic() > end:
                    return False
                time.sleep(_AGAIN_S)
            else:
                return bool(ours)

    def _discard(self, entry: RunEntry) -> None:
        """Lets hosts discard records that were fetched completely and stored; unreachable hosts keep theirs."""
        for agent in self._pool.agents:
            if agent.place.access is not None and agent.place.node in entry.collected:
                with contextlib.suppress(AgentLostError):
                    agent.discard(self._name, entry.index, agent.place.node)

    def _explain(self, error: AgentLostError) -> str:
        """Adds the reason of an agent's loss where the bench knows it; a connection ends before its process is seen to
        end.

        An agent that is silent is given up: its process ends.
        """
        if error.silent:
            why = self._bench.give_up(error.agent)
            return f"{error}{f': {why}' if why else ''}; it was given up"
        patience = time.monotonic() + _EXPLAIN_S
        while True:
            for agent in self._pool.agents:
                reason = self._bench.agent_failure(agent.place.end_system)
                if reason is not None:
                    return f"{agent.place.called} is gone: {reason}"
            if not error.gone or time.monotonic() > patience:
                return str(error)
            time.sleep(0.02)


def _note_collected(agent: Agent, entry: RunEntry) -> None:
    """Notes that all records of an agent on another host were fetched."""
    if not agent.place.shares_run_directory:
        entry.collected += (agent.place.node,)


def _start(epoch_realtime_ns: int, agent: Agent) -> None:
    agent.start(epoch_realtime_ns)
