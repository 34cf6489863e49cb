"""What synchronisation programs said of the clocks during a run, as a table beside its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from wiregauge.records.beside import store_beside
from wiregauge.records.directory import RunDirectory

__all__ = ["CLOCKS_SCHEMA", "store_clock_states"]

CLOCKS_SCHEMA = 1
_COLUMNS = {
    "time": pl.Int64,
    "node": pl.String,
    "source": pl.String,
    "state": pl.String,
    "offset_ns": pl.Float64,
    "delay_ns": pl.Float64,
    "frequency_ppb": pl.Float64,
}


def store_clock_states(directory: RunDirectory, index: int, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes `clocks/run-NNNN.parquet`; nothing where nobody said anything. `time` is ps since the run's epoch.

    Raises RunDirectoryError where the disk refuses.
    """
    store_beside(pl.DataFrame(list(rows), schema=_COLUMNS), directory.clocks(index), "clocks", CLOCKS_SCHEMA)
