"""The measures of a run as a whole, each an object with its definition and how it is computed.

To add one: a subclass of `RunMeasure` in a file of this package, and its object in `RUN_MEASURES`.
"""

from __future__ import annotations

from wiregauge.measures.run_measures.base import OfRun, RunMeasure
from wiregauge.measures.run_measures.release import RELEASE_ERROR
from wiregauge.measures.run_measures.synchronisation import SYNCHRONISATION
from wiregauge.measures.run_measures.unplanned import UNPLANNED

__all__ = ["RUN_MEASURES", "OfRun"]

RUN_MEASURES: dict[str, RunMeasure] = {
    one.definition.name: one for one in (UNPLANNED, *SYNCHRONISATION, RELEASE_ERROR)
}
"""Measures of a run by name, in the order of their definitions."""
