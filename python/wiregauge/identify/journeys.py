"""Tables of one host's messages from its records: a row for each sent, and for each received."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from wiregauge.identify.errors import IdentifyError

MOST = 400_000
"""The most records read of a host and run: the first ones."""
_SENT = ("intended-send", "application-send", "driver-send", "wire-send")
_RECEIVED = ("wire-receive", "driver-receive", "application-receive")
_KEY = ("flow", "sequence", "returning", "warm_up")


def journeys(records: Path, node: int, flows: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The messages of `flows` that `node` sent, and those it received, each in the order of its driver.

    Columns `flow`, `length` (B, DA to FCS), and a time in ps for each point: `intended`, `application`, `driver`,
    `wire`; null where it was not recorded. A message seen twice at a point is left out: its records cannot be
    assigned.
    """
    try:
        rows = (
            pl.scan_parquet(records, glob=False)
            .filter((pl.col("node") == node) & pl.col("flow").is_in(list(flows)))
            .select(*_KEY, "length", "time", pl.col("point").cast(pl.String))
            .head(MOST)
            .collect(engine="streaming")
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise IdentifyError(f"{records}: cannot be read ({str(error).splitlines()[0][:120]})") from None
    return _sides(rows, _SENT), _sides(rows, _RECEIVED)


def _sides(rows: pl.DataFrame, points: Sequence[str]) -> pl.DataFrame:
    own = rows.filter(pl.col("point").is_in(list(points)))
    table = own.group_by(_KEY).agg(
        pl.col("length").max(),
        *(
            pl.col("time").filter(pl.col("point") == point).first().alias(point.split("-")[0])
            for point in points
        ),
        (pl.col("point").n_unique() == pl.len()).alias("is_single"),
    )
    return table.filter("is_single").drop("is_single").sort("driver", "application", "flow", "sequence")
