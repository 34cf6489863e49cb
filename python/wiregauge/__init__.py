"""Wiregauge: how deterministic is this Ethernet network, and how far can that answer be trusted?

The command line is `wiregauge`; the packages, in the order a message passes them:

`config` reads and checks a test, `benches` builds the network under test, `master` runs the test on it,
`records` holds the run directory, `measures` turns records into figures with an uncertainty and a verdict,
`figures` and `report` show them.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("wiregauge")
except PackageNotFoundError:  # the source tree on sys.path without an installation
    __version__ = "0+uninstalled"
