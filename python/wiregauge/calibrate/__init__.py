"""The instrument measures itself: clocks, schedule, generator, constant overhead, linearity; and keeps what it found.

Modules that measure are imported where they are used; what is here is light enough for every start of the program.
"""

from __future__ import annotations

from wiregauge.calibrate.errors import BenchMissingError, CalibrationError
from wiregauge.calibrate.store import KINDS, Calibration, Store, make, schema_path, store_folder

__all__ = [
    "KINDS",
    "BenchMissingError",
    "Calibration",
    "CalibrationError",
    "Store",
    "make",
    "schema_path",
    "store_folder",
]
