"""Runs tests: open a bench, run trials on it, each judged when it ends, and close.

A search that decides its next trial from the last result is three lines:

    with runner.open("sim", out) as trials:
        while rate := search.next():
            search.tell(trials.run(plan_at(rate)))

An `Observer` receives the progress of trials.
"""

from __future__ import annotations

from wiregauge.runner.bench import Bench, BenchError, BeyondBenchError, Fact
from wiregauge.runner.benches.hosts import HostsBench
from wiregauge.runner.benches.netns.bench import NetnsBench
from wiregauge.runner.benches.simulator import SimulatorBench
from wiregauge.runner.fetching import fetch
from wiregauge.runner.observer import Observer
from wiregauge.runner.registry import BENCHES, OptionError, bench_named, options_of
from wiregauge.runner.trials import DiskError, NothingRunError, Trials, judged, open  # noqa: A004 - as trials.open says

__all__ = [
    "BENCHES",
    "Bench",
    "BenchError",
    "BeyondBenchError",
    "DiskError",
    "Fact",
    "HostsBench",
    "NetnsBench",
    "NothingRunError",
    "Observer",
    "OptionError",
    "SimulatorBench",
    "Trials",
    "bench_named",
    "fetch",
    "judged",
    "open",
    "options_of",
]
