"""Runs tests: open a bench, run trials on it, each judged when it ends, and close.

A search that decides its next trial from the last result is three lines:

    with runner.open("sim", out) as trials:
        while rate := search.next():
            search.tell(trials.run(plan_at(rate)))

An `Observer` receives the progress of trials.
"""

from __future__ import annotations

from wiregauge.master import Observer
from wiregauge.runner.bench import Bench, BeyondBenchError
from wiregauge.runner.fetching import fetch
from wiregauge.runner.lab import OnHosts
from wiregauge.runner.live import Live
from wiregauge.runner.registry import BENCHES, OptionError, bench_named, options_of
from wiregauge.runner.simulated import Simulated
from wiregauge.runner.trials import DiskError, NothingRunError, Trials, judged, open  # noqa: A004 - as trials.open says

__all__ = [
    "BENCHES",
    "Bench",
    "BeyondBenchError",
    "DiskError",
    "Live",
    "NothingRunError",
    "Observer",
    "OnHosts",
    "OptionError",
    "Simulated",
    "Trials",
    "bench_named",
    "fetch",
    "judged",
    "open",
    "options_of",
]
