"""What synchronisation programs said of the clocks during a run, as a table beside its records."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping

import polars as pl

from wiregauge.records.directory import RunDirectory, RunDirectoryError

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
    table = pl.DataFrame(list(rows), schema=_COLUMNS)
    if table.is_empty():
        return
    place = directory.clocks(index)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(
            beside, metadata={"wiregauge.kind": "clocks", "wiregauge.schema": str(CLOCKS_SCHEMA)}
        )
        beside.replace(place)
    except (OSError, pl.exceptions.PolarsError) as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise RunDirectoryError(f"{place}: cannot be written ({error}); free space there") from None
