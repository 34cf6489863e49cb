"""The agents of a campaign as a group: greeted, prepared, started at one instant, ended.

There is one for each end system, and, where the bench has it, one that plays the network between them.

A start is agreed upon in two steps, because no call reaches all agents at one instant. The time is announced to all,
again and farther ahead until every agent has accepted it with time to spare; only then is every agent told to begin at
it. An agent that gets this too late does not begin, and the others are stopped before the next attempt.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Final, TypeVar

from wiregauge._version import __version__
from wiregauge.runner.agents.client import Agent, AgentLostError, StartMissedError
from wiregauge.runner.agents.network import SILENCE_S, AgentPlace
from wiregauge.runner.agents.versions import disagreement
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["AgentPool"]

_AT_ONCE: Final = 16
"""Number of agents called at a time: more would only share the processors and answer later."""
_LEAST_LEAD_NS: Final = 100_000_000
"""Least time between announcement and start, ns: agents need a moment to prepare for it."""
_ROUNDS: Final = 3
"""Rounds of calls for which the lead leaves time: the announcement, the start, and one to spare."""
_MOST_LEAD_NS: Final = 60_000_000_000
_LEASE_MS: Final = 10_000
"""How long an agent may hear nothing, ms, before it ends its run and stores its records."""
_LEASE_EACH_MS: Final = 250
"""Addition to the lease per agent: before and after a run the first waits until the last has been asked."""
_TOUCH_S: Final = 3.0
"""Interval between keep-alive messages to agents when nothing else is sent."""
_ANNOUNCEMENTS: Final = 8

Answer = TypeVar("Answer")


class AgentPool:
    """One agent per end system, and the network where an agent is it."""

    def __init__(self, places: Sequence[AgentPlace], campaign: str = "") -> None:
        self._campaign = campaign
        self.agents = [Agent(place) for place in places]
        self._callers = ThreadPoolExecutor(min(_AT_ONCE, len(self.agents)) or 1, thread_name_prefix="agent")
        self._lead_ns = _LEAST_LEAD_NS

    @property
    def names(self) -> list[str]:
        """Names of the agents' places: end systems in the order of the plan, and the network."""
        return [agent.place.end_system for agent in self.agents]

    @property
    def by_name(self) -> dict[str, Agent]:
        """The agents of end systems by their names, in the order of the plan."""
        return {agent.place.end_system: agent for agent in self.agents if not agent.place.is_network}

    @property
    def network(self) -> Agent | None:
        """The one that is the network between them; None where something else is."""
        return next((agent for agent in self.agents if agent.place.is_network), None)

    def close(self) -> None:
        """Drops all connections; calls that still go on end."""
        for agent in self.agents:
            agent.release()
            agent.close()
        self._callers.shutdown(wait=False, cancel_futures=True)

    def each(self, action: Callable[[Agent], Answer]) -> list[Answer]:
        """The action on all agents; the first failure is raised after all have ended."""
        answers, failures = [], []
        for _, outcome in self.outcomes(action):
            if isinstance(outcome, AgentLostError):
                failures.append(outcome)
            else:
                answers.append(outcome)
        if failures:
            # An agent that is lost explains more than one that complains.
            raise min(failures, key=lambda failure: not (failure.gone or failure.silent))
        return answers

    def outcomes(self, action: Callable[[Agent], Answer]) -> Iterator[tuple[Agent, Answer | AgentLostError]]:
        """Runs the action on all agents; each answer or error, in the order of the plan."""
        futures = [(agent, self._callers.submit(action, agent)) for agent in self.agents]
        try:
            for agent, future in futures:
                try:
                    yield agent, future.result()
                except AgentLostError as error:
                    yield agent, error
        finally:
            for _, future in futures:
                future.cancel()

    def tell(self, action: Callable[[Agent], object], seconds: float) -> None:
        """The action on all agents, without their answers; one that is slow is not waited for longer than `seconds`."""
        futures = [self._callers.submit(_try, action, agent) for agent in self.agents]
        wait(futures, timeout=seconds)

    @contextlib.contextmanager
    def in_touch(self) -> Iterator[None]:
        """Sends signs of life to every agent within the block, however long it takes.

        Records of an hour take minutes to fetch and to track, far longer than a lease.
        """
        over = threading.Event()

        def touch(callers: ThreadPoolExecutor) -> None:
            pending: dict[int, Future[None]] = {}
            while not over.wait(_TOUCH_S):
                for place, agent in enumerate(self.agents):
                    # One that does not answer keeps none of the others waiting.
                    if place in pending and not pending[place].done():
                        continue
                    # The pool may have been shut down.
                    with contextlib.suppress(RuntimeError):
                        pending[place] = callers.submit(_try, _touch, agent)

        callers = ThreadPoolExecutor(min(_AT_ONCE, len(self.agents)) or 1, thread_name_prefix="touch")
        threading.Thread(target=touch, args=(callers,), name="in touch", daemon=True).start()
        try:
            yield
        finally:
            over.set()
            callers.shutdown(wait=False, cancel_futures=True)

    def greet(self) -> None:
        """Raises AgentLostError for an agent of another version."""
        replies = self.each(self.hello)
        for agent, reply in zip(self.agents, replies, strict=True):
            why = disagreement(reply.agent_version, reply.plan_schema, reply.record_schema)
            if why is not None:
                raise AgentLostError(f"{agent.place.called}: {why}", agent.place.end_system)

    def hello(self, agent: Agent) -> pb.HelloReply:
        """Greets one agent; its answer."""
        # Nobody is given up before the testmaster gives up.
        least_ms = int(1000 * (agent.place.patience_s - SILENCE_S)) + _LEASE_MS
        return agent.hello(__version__, least_ms + _LEASE_EACH_MS * len(self.agents), self._campaign)

    def agree_on_start(self) -> int:
        """The start time that every agent has accepted, ns of CLOCK_REALTIME; no agent has begun.

        Raises AgentLostError when they cannot agree.
        """
        for _ in range(_ANNOUNCEMENTS):
            epoch = time.time_ns() + self._lead_ns
            began = time.monotonic_ns()
            taken = False
            with contextlib.suppress(StartMissedError):
                self.each(partial(_announce, epoch))
                taken = True
            took = time.monotonic_ns() - began
            if taken and epoch - time.time_ns() > (_ROUNDS - 1) * took:
                return epoch
            self.allow_longer(_ROUNDS * took)
        raise AgentLostError(
            f"no start time could be announced to all agents, not even {self._lead_ns / 1e9:.1f} s ahead: "
            "this host is too busy for so many"
        )

    def allow_longer(self, needed_ns: int = 0) -> None:
        """Announces the next start at least twice as far ahead as the last one."""
        self._lead_ns = min(max(2 * self._lead_ns, needed_ns), _MOST_LEAD_NS)

    @property
    def lead_s(self) -> float:
        """The lead of the last announced start, s."""
        return self._lead_ns / 1e9


def _try(action: Callable[[Agent], object], agent: Agent) -> None:
    with contextlib.suppress(AgentLostError):
        action(agent)


def _touch(agent: Agent) -> None:
    agent.touch()


def _announce(epoch_realtime_ns: int, agent: Agent) -> None:
    agent.announce(epoch_realtime_ns)
