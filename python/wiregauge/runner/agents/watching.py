"""Watches a run: the counters of its agents, and agents that fall silent."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.pool import AgentPool
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["watch"]

_EVERY_MS: Final = 100
_EACH_MS: Final = 4
"""Interval between two reports per agent, for each agent there is: together they send 250 a second at most."""
_LOOK_S: Final = 0.1
_MOST_KEPT: Final = 60
"""Seconds whose figures wait to be looked at, of an agent."""
_OVERTIME_S: Final = 12.0
"""How long a run may take beyond its planned end, s, before its agents count as stuck."""
_AFTER_S: Final = 3.0
"""How long an agent of another host, whose network may come back, is awaited after the planned end, s."""
_SILENT_S: Final = 3.0
"""How long without a sign of life such an agent must have been, s."""

Show = Callable[[float, int, int], None]
"""Takes the share of the planned time that is over, and the messages sent and received by then."""

Tell = Callable[[str], None]
"""Receives an event of the run as a sentence, as soon as an agent reports it."""

Hear = Callable[[str, pb.LiveFigures], None]
"""Takes the live figures of a second from the agent of an end system, or that of the network."""


class _Watched:
    """The state of a watched agent; written by the thread that listens to it, except `heard` and `silent_s`."""

    def __init__(self, agent: Agent, changed: threading.Event) -> None:
        self.agent = agent
        self.changed = changed
        self.sent = 0
        self.received = 0
        self.words = 0
        self.done = False
        self.error: AgentLostError | None = None
        self.figures: deque[pb.LiveFigures] = deque(maxlen=_MOST_KEPT)
        self.trouble = ""
        self.told = False
        self.heard = 0
        self.silent_s = 0.0


def watch(
    pool: AgentPool, planned_s: float, show: Show, hear: Hear | None = None, tell: Tell | None = None
) -> None:
    """Waits until every agent is done with its part; those that are stay on and are looked after until the last is.

    What agents have summed up of a second is heard before the share is shown, both on the thread that waits.

    Raises AgentLostError, naming the agent, for one that is gone or has been silent too long.
    """
    over, changed = threading.Event(), threading.Event()
    watched = [_Watched(agent, changed) for agent in pool.agents]
    interval = max(_EVERY_MS, _EACH_MS * len(watched))
    listeners = ThreadPoolExecutor(len(watched) or 1, thread_name_prefix="watch")
    following: list[Future[None]] = [listeners.submit(_follow, one, interval, over) for one in watched]
    try:
        _until_done(watched, changed, planned_s, show, hear, tell)
    finally:
        over.set()
        for agent in pool.agents:
            agent.unwatch()
        wait(following, timeout=_LOOK_S)
        listeners.shutdown(wait=False, cancel_futures=True)


def _follow(one: _Watched, interval_ms: int, over: threading.Event) -> None:
    try:
        for progress in one.agent.watch(interval_ms, over):
            one.sent, one.received = progress.sent, progress.received
            one.words += 1
            if progress.trouble and not one.trouble:
                one.trouble = progress.trouble
                one.changed.set()
            if progress.HasField("live"):
                one.figures.append(progress.live)
                one.changed.set()
            if progress.done and not one.done:
                one.done = True
                one.changed.set()
        if not one.done and not over.is_set():
            place = one.agent.place
            text = f"{place.called} stopped before the run was over"
            raise AgentLostError(text, place.end_system, gone=True)
    except AgentLostError as error:
        one.error = error
        one.changed.set()


def _until_done(
    watched: list[_Watched],
    changed: threading.Event,
    planned_s: float,
    show: Show,
    hear: Hear | None,
    tell: Tell | None,
) -> None:
    begin = last = time.monotonic()
    while not all(one.done for one in watched):
        changed.wait(_LOOK_S)
        changed.clear()
        now = time.monotonic()
        # A testmaster that was itself suspended received nothing meanwhile: that time counts as no agent's
        # silence.
        passed, last = min(now - last, 5 * _LOOK_S), now
        # Messages through the network are counted by sender and receiver already.
        ends = [one for one in watched if not one.agent.place.is_network]
        for one in watched:
            if tell is not None and one.trouble and not one.told:
                one.told = True
                tell(one.trouble)
        for one in watched:
            while hear is not None and one.figures:
                hear(one.agent.place.end_system, one.figures.popleft())
        show(
            min((now - begin) / planned_s, 1.0),
            sum(one.sent for one in ends),
            sum(one.received for one in ends),
        )
        for one in watched:
            if one.error is not None:
                raise one.error
            one.silent_s = one.silent_s + passed if one.words == one.heard else 0.0
            one.heard = one.words
            if one.silent_s > one.agent.place.patience_s:
                raise one.agent.is_silent()
            is_remote = one.agent.place.access is not None and not one.done
            if is_remote and one.silent_s > _SILENT_S and now - begin > planned_s + _AFTER_S:
                raise one.agent.is_silent(one.silent_s)
        if now - begin > planned_s + _OVERTIME_S:
            raise AgentLostError(
                f"the run is not over {_OVERTIME_S:.0f} s after its planned end; its agents hang"
            )
