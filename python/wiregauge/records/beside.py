"""Tables stored with the records of a run, written completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.files import whole
from wiregauge.records.errors import RunDirectoryError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["store_beside"]


def store_beside(table: pl.DataFrame, place: Path, kind: str, schema: int, run: int | None = None) -> None:
    """Writes `table` as Parquet to `place`, its kind, schema and run in the metadata; an empty one leaves no file.

    Raises RunDirectoryError where the disk refuses.
    """
    from polars.exceptions import PolarsError

    if table.is_empty():
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole(place) as beside:
            said = {"wiregauge.kind": kind, "wiregauge.schema": str(schema)}
            if run is not None:
                said["wiregauge.run"] = str(run)
            table.write_parquet(beside, metadata=said)
    except (OSError, PolarsError) as error:
        raise RunDirectoryError(f"{place}: cannot be written ({error}); free space there") from None
