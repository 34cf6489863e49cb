"""States of clocks: those that synchronisation programs reported during a run, stored as a table with its records, and
the names of those that the truth has by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from wiregauge.records.beside import store_beside
from wiregauge.records.directory import RunDirectory

__all__ = ["CLOCKS_SCHEMA", "NO_POWER", "PTP_STATES", "SYNC_STATES", "store_clock_states"]

CLOCKS_SCHEMA = 1

SYNC_STATES: Final = (
    "INTEGRATE",
    "WAIT_4_CYCLE_START",
    "UNSYNC",
    "FLOOD",
    "WAIT_4_CYCLE_START_CS",
    "CA_ENABLED",
    "WAIT_4_IN",
    "TENTATIVE_SYNC",
    "SYNC",
    "STABLE",
)
"""State names of devices by their codes in the truth: those of SAE AS6802, without the prefix of the device."""
NO_POWER: Final = -1
"""The code of a device without power."""
PTP_STATES: Final = (
    "INITIALIZING",
    "FAULTY",
    "DISABLED",
    "LISTENING",
    "PRE_MASTER",
    "MASTER",
    "PASSIVE",
    "UNCALIBRATED",
    "SLAVE",
)
"""Names of port states, from number 1 on (IEEE Std 1588-2019, table 20)."""


def store_clock_states(directory: RunDirectory, index: int, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes `clocks/run-NNNN.parquet`; nothing without reports. `time` is ps since the run's epoch.

    Raises RunDirectoryError where the disk refuses.
    """
    import polars as pl  # heavy, and not needed while frames travel

    columns = {
        "time": pl.Int64,
        "node": pl.String,
        "source": pl.String,
        "state": pl.String,
        "offset_ns": pl.Float64,
        "delay_ns": pl.Float64,
        "frequency_ppb": pl.Float64,
    }
    store_beside(pl.DataFrame(list(rows), schema=columns), directory.clocks(index), "clocks", CLOCKS_SCHEMA)
