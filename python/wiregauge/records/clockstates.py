"""Clock states that synchronisation programs reported during a run, stored as a table with its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wiregauge.records.beside import store_beside
from wiregauge.records.directory import RunDirectory

__all__ = ["CLOCKS_SCHEMA", "store_clock_states"]

CLOCKS_SCHEMA = 1


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
