"""Wiregauge: how deterministic is this Ethernet network, and how far can that answer be trusted?

The command line is `wiregauge`; the packages, in the order a message passes them:

`config` reads and checks a test, `runner` builds the network under test and runs the test on it, `records` holds the
run directory, `measures` turns records into figures with an uncertainty and a verdict, `figures` and `report` show
them, `export` hands them to other tools.

In a notebook (docs/guide/notebook.ipynb shows more; the pieces are in `wiregauge.notebook`):

>>> import wiregauge as wg
>>> run = wg.open("first-run")
>>> run.latency(flow=10).percentile(99)
<latency.p99 = 11.07 µs (95 %: 11.03 µs to 17.14 µs, n = 500)>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiregauge._version import __version__

if TYPE_CHECKING:
    from wiregauge.config import Test
    from wiregauge.measures.metrics.quantity import Quantity
    from wiregauge.notebook import Checked, Measure, Run, WiregaugeError, check, open, simulate  # noqa: A004

__all__ = [
    "Checked",
    "Measure",
    "Quantity",
    "Run",
    "Test",
    "WiregaugeError",
    "__version__",
    "check",
    "open",
    "simulate",
]

# Read on first use: every command imports this package, and few need what these need.
_HOME = {"Quantity": "wiregauge.measures.metrics.quantity", "Test": "wiregauge.config"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'wiregauge' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "wiregauge.notebook")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
