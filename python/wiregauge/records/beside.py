"""Small tables beside the records of a run, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import polars as pl

from wiregauge.records.directory import RunDirectoryError

__all__ = ["store_beside"]


def store_beside(table: pl.DataFrame, place: Path, kind: str, schema: int) -> None:
    """Writes `table` as Parquet to `place`, its kind and schema in the metadata; an empty one leaves no file.

    Raises RunDirectoryError where the disk refuses.
    """
    if table.is_empty():
        return
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(beside, metadata={"wiregauge.kind": kind, "wiregauge.schema": str(schema)})
        beside.replace(place)
    except (OSError, pl.exceptions.PolarsError) as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise RunDirectoryError(f"{place}: cannot be written ({error}); free space there") from None
