"""How agents come to begin at one instant, and how one that has fallen silent is found; with agents that are none."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from wiregauge.runner.agents import watching
from wiregauge.runner.agents.client import AgentLostError, StartMissedError
from wiregauge.runner.agents.network import SILENCE_S, AgentPlace
from wiregauge.runner.agents.pool import AgentPool
from wiregauge.runner.rpc import agent_pb2 as pb


class Pretended:
    """An agent that needs so long for a call, and speaks only as long as it is told to."""

    def __init__(
        self, name: str, call_s: float = 0.0, speaks_s: float = 1e9, patience_s: float = SILENCE_S
    ) -> None:
        self.place = AgentPlace(name, 0, "unix:/nowhere", "eth0", -1, 0, True, patience_s=patience_s)
        self.call_s = call_s
        self.speaks_s = speaks_s
        self.announced: list[int] = []
        self.left = threading.Event()

    def announce(self, epoch: int) -> None:
        time.sleep(self.call_s)
        self.announced.append(epoch)
        if time.time_ns() >= epoch:
            raise StartMissedError(f"the agent of {self.place.end_system}: too late", self.place.end_system)

    def touch(self) -> None:
        """A sign of life."""

    def watch(self, interval_ms: int, over: threading.Event) -> Iterator[Any]:
        begin = time.monotonic()
        while not self.left.wait(interval_ms / 1000):
            if time.monotonic() - begin < self.speaks_s:
                yield pb.Progress(sent=1, received=1, to_send=2, done=False)

    def release(self) -> None:
        """It was told over a Unix socket: there is no session."""

    def unwatch(self) -> None:
        self.left.set()

    def is_silent(self) -> AgentLostError:
        return AgentLostError(
            f"the agent of {self.place.end_system} is silent", self.place.end_system, silent=True
        )

    def close(self) -> None: ...


@pytest.fixture
def pool_of() -> Iterator[Any]:
    pools = []

    def make(*agents: Pretended) -> AgentPool:
        pool = AgentPool([agent.place for agent in agents])
        pool.agents = list(agents)  # type: ignore[arg-type]  # they stand in for agents
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        pool.close()


def test_all_take_the_same_time_and_it_lies_ahead(pool_of: Any) -> None:
    agents = [Pretended(f"e{n}") for n in range(3)]
    epoch = pool_of(*agents).agree_on_start()
    assert {agent.announced[-1] for agent in agents} == {epoch}
    assert epoch > time.time_ns()


def test_a_missed_start_is_announced_again_farther_ahead_to_everybody(pool_of: Any) -> None:
    """One agent needs longer than the first lead: nobody keeps the old time, and the new one leaves room."""
    agents = [Pretended("quick"), Pretended("slow", call_s=0.3)]
    pool = pool_of(*agents)
    epoch = pool.agree_on_start()
    quick, slow = (agent.announced for agent in agents)
    assert quick == slow, "both heard the same times"
    assert len(quick) > 1
    assert quick[-1] == epoch
    assert epoch - time.time_ns() > 0.3e9, "time is left for telling all to begin"
    assert pool.lead_s > 0.6, "the lead follows what hand-out took"


def test_a_pool_that_cannot_agree_says_so(pool_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Pretended("e0")
    monkeypatch.setattr("wiregauge.runner.agents.pool._MOST_LEAD_NS", 1)
    monkeypatch.setattr(agent, "call_s", 0.01)
    pool = pool_of(agent)
    pool._lead_ns = 1
    with pytest.raises(AgentLostError, match="too busy"):
        pool.agree_on_start()
    assert len(agent.announced) > 2


def test_a_silent_agent_is_named(pool_of: Any) -> None:
    pool = pool_of(Pretended("speaks"), Pretended("stops", speaks_s=0.3, patience_s=0.6))
    begin = time.monotonic()
    with pytest.raises(AgentLostError, match="agent of stops") as caught:
        watching.watch(pool, 60.0, lambda *_: None)
    assert caught.value.silent
    assert caught.value.agent == "stops"
    assert time.monotonic() - begin < 10
    assert SILENCE_S < 10


def test_agents_hear_of_a_testmaster_that_is_long_at_something_else(
    pool_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one of them does not answer: it keeps no other waiting, and is asked once at a time."""
    monkeypatch.setattr("wiregauge.runner.agents.pool._TOUCH_S", 0.02)
    agents = [Pretended("silent"), *(Pretended(f"e{n}") for n in range(20))]
    touched: Counter[str] = Counter()
    answers = threading.Event()

    def touching(agent: Pretended) -> Any:
        def touch() -> None:
            touched[agent.place.end_system] += 1
            if agent is agents[0]:
                answers.wait(30)
                raise AgentLostError("it is gone")

        return touch

    for agent in agents:
        monkeypatch.setattr(agent, "touch", touching(agent))
    pool = pool_of(*agents)
    try:
        with pool.in_touch():
            end = time.monotonic() + 20
            while min(touched[agent.place.end_system] for agent in agents[1:]) < 3 and time.monotonic() < end:
                time.sleep(0.01)
        assert min(touched[agent.place.end_system] for agent in agents[1:]) >= 3
        assert touched["silent"] == 1
    finally:
        answers.set()
    time.sleep(0.1)
    after = touched.copy()
    time.sleep(0.2)
    assert touched == after, "nobody is touched any more"


def test_a_testmaster_that_slept_blames_nobody(pool_of: Any) -> None:
    """What it slept, stopped by a signal or with its machine, is no silence of its agents."""
    slept = False

    def show(*_: object) -> None:
        nonlocal slept
        if slept:
            raise AgentLostError("looked on after it slept")
        slept = True
        time.sleep(1.5)

    agent = Pretended("e0", patience_s=0.8)
    # Words that came while it slept are as if they had not come: the listener slept, too.
    agent.speaks_s = 0.05
    with pytest.raises(AgentLostError, match="after it slept"):
        watching.watch(pool_of(agent), 60.0, show)
