"""Calibration of the instrument: clocks, schedule, generator, constant overhead, linearity; and its storage.

Modules that measure are imported where they are used, so that importing this package is cheap.
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
