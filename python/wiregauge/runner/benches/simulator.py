"""The simulator as a bench: runs in virtual time, in parallel."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from wiregauge.plan import Campaign, EndSystem, Node, Switch
from wiregauge.records import RunDirectory, Traits
from wiregauge.runner.bench import Bench, BeyondBenchError, Fact, Findings
from wiregauge.runner.benches.capabilities import beyond_simulator
from wiregauge.runner.benches.simulation import Simulator, simulate
from wiregauge.runner.observer import Observer

__all__ = ["SimulatorBench"]


class SimulatorBench(Bench):
    """Runs on `simulator`, by default this process, with `jobs` runs at a time, by default one per processor."""

    name = "sim"
    traits = Traits(virtual_time=True, one_clock=True, driver="simulated")

    def __init__(self, *, jobs: int | None = None, simulator: Simulator | None = None) -> None:
        self._jobs = jobs
        self._simulator = simulator

    @classmethod
    def availability(cls, found: Findings) -> tuple[bool, str, str]:
        """Available everywhere."""
        del found
        return True, "virtual time; needs no privilege", ""

    def adapt(self, campaign: Campaign) -> Campaign:
        """See `Bench`. Raises BeyondBenchError for features whose omission would flatter the figures."""
        if beyond := beyond_simulator(campaign):
            raise BeyondBenchError(beyond)
        return campaign

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: what is modelled, and how."""
        return _facts(campaign)

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        # Threads of one run gain little so far and take twice the processor time: only who asks has them.
        threads = max(1, (self._jobs or 1) // max(1, len(directory.plan.runs)))
        jobs = self._jobs or len(os.sched_getaffinity(0))
        simulate(directory, observer, jobs, self._simulator, threads=threads)


def _facts(campaign: Campaign) -> Sequence[Fact]:
    """The models and their limits, in the terms of this test."""
    nodes = campaign.network.nodes
    facts = [
        Fact(
            "network",
            "discrete-event simulation in virtual time",
            "exact to a picosecond; preamble, start delimiter and gap occupy the wire",
        ),
        Fact("hosts", _hosts(nodes), "figures of a model that the test states, not measured on a machine"),
        Fact("clocks", _clocks(nodes), "what each clock really showed is in truth/"),
        Fact(
            "repeatable",
            f"seed {campaign.seed}",
            "same test, seed and version: same records, byte by byte",
        ),
    ]
    kept = campaign.synchronise
    ignored = [name for name in ("ptp", "chrony") if kept is not None and getattr(kept, name)]
    if ignored:
        facts.append(
            Fact(
                "synchronisation",
                f"{' and '.join(ignored)} not simulated",
                "clocks are as the test describes them; exchanges are simulated",
            )
        )
    switches = [node.kind for node in nodes if isinstance(node.kind, Switch)]
    if switches:
        facts.insert(1, Fact("switches", _switches(switches), "models, not a make of switch"))
    return facts


def _hosts(nodes: Iterable[Node]) -> str:
    hosts = [node.kind.host for node in nodes if isinstance(node.kind, EndSystem)]
    ideal = sum(host is None or host.takes_no_time for host in hosts)
    if ideal == len(hosts):
        return "ideal: they take no time"
    return f"{len(hosts) - ideal} with stacks, interrupts and wake-ups" + (
        f", {ideal} ideal" if ideal else ""
    )


def _clocks(nodes: Iterable[Node]) -> str:
    wrong = [node.name for node in nodes if node.clock]
    return f"perfect but for {', '.join(wrong)}" if wrong else "perfect: no error in one-way latencies"


def _switches(switches: Iterable[Switch]) -> str:
    kinds = Counter(
        f"{one.kind}, {one.forwarding_mode}, "
        + (f"{one.processing_delay / 1e6:g} µs" if one.drawn_delay is None else "a drawn delay")
        for one in switches
    )
    return "; ".join(f"{count} of {text}" for text, count in kinds.items())
