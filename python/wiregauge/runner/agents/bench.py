"""A bench whose end systems are agents."""

from __future__ import annotations

from wiregauge.records import RunDirectory
from wiregauge.runner.agents.network import NetworkUnderTest
from wiregauge.runner.bench import Bench
from wiregauge.runner.live.monitor import AlarmMonitor
from wiregauge.runner.observer import Observer

__all__ = ["AgentBench"]


class AgentBench(Bench, NetworkUnderTest):
    """A bench that has the network under test; the testmaster makes its runs, and `monitor` looks on."""

    def __init__(self, *, realtime: bool = True, monitor: AlarmMonitor | None = None) -> None:
        self._realtime = realtime
        self._monitor = monitor or AlarmMonitor()

    def enter(self) -> None:
        """Binds the address that live figures are served at. Raises BenchError where it is unavailable."""
        self._monitor.enter()

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        # gRPC, imported with it, is needed only by commands that talk to agents
        from wiregauge.runner.agents.campaign import run_on_agents

        run_on_agents(directory, self, observer, self._monitor, one_clock=self.traits.one_clock)
