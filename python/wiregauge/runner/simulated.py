"""The simulator as a bench: runs in virtual time, in parallel."""

from __future__ import annotations

import os
from collections.abc import Sequence

from wiregauge.benches import Fact, Findings, beyond_simulator, simulator_facts
from wiregauge.master import Observer, simulate
from wiregauge.master.simulation import Simulator
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory, Traits
from wiregauge.runner.bench import Bench, BeyondBenchError

__all__ = ["Simulated"]


class Simulated(Bench):
    """Runs on `simulator`, by default this process, with `jobs` runs at a time, by default one per processor."""

    name = "sim"
    traits = Traits(virtual_time=True, one_clock=True, driver="simulated")

    def __init__(self, *, jobs: int | None = None, simulator: Simulator | None = None) -> None:
        self._jobs = jobs
        self._simulator = simulator

    @classmethod
    def here(cls, found: Findings) -> tuple[bool, str, str]:
        """Available everywhere."""
        del found
        return True, "virtual time; needs no privilege", ""

    def carried(self, campaign: Campaign) -> Campaign:
        """See `Bench`. Raises BeyondBenchError for features whose omission would flatter the figures."""
        if beyond := beyond_simulator(campaign):
            raise BeyondBenchError(beyond)
        return campaign

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: what is modelled, and how."""
        return simulator_facts(campaign)

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        simulate(directory, observer, self._jobs or len(os.sched_getaffinity(0)), self._simulator)
