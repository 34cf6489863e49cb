"""What each switch did to the frames of a flow: from its records, passage by passage.

The message table follows a message from end to end and has no room for a stamp per hop; the records have them. A
passage is the record of a frame entering a switch together with each record of it leaving (a multicast frame leaves by
several ports). A frame that passes a switch more than once in one direction (a link duplicated it) is paired in the
order in which it came and left.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge.measures.plan import RunDirectoryError
from wiregauge.measures.results import Series

__all__ = ["Passages", "passages", "read_columns"]

Floats = NDArray[np.float64]
_FRAME = ("flow", "sequence", "returning", "node")


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages of one flow through switches, in the order of leaving: by node and output port."""

    frame: pl.DataFrame

    def series(self, nodes: frozenset[int] | None = None) -> Series:
        """Residence times, ns, of the passages through `nodes` (None: all)."""
        chosen = self.frame if nodes is None else self.frame.filter(pl.col("node").is_in(list(nodes)))
        return Series(
            chosen["out"].cast(pl.Float64).to_numpy() / 1e12,
            chosen["residence"].cast(pl.Float64).to_numpy() / 1000,
        )

    def hops(self) -> list[tuple[int, int, Floats]]:
        """Residence times, ns, by node and output port."""
        return [
            (int(node), int(port), part["residence"].cast(pl.Float64).to_numpy() / 1000)
            for (node, port), part in sorted(
                (key, part) for key, part in self.frame.partition_by("node", "port", as_dict=True).items()
            )
        ]


def passages(records: Path | None) -> dict[int, Passages]:
    """The passages of the measured part, by flow; none where no switch keeps records.

    Raises RunDirectoryError for a file that cannot be read.
    """
    if records is None:
        return {}
    columns = (*_FRAME, "point", "port", "time")
    passing = pl.col("point").is_in(["switch-in", "switch-out"]) & ~pl.col("warm_up")
    frame = read_columns(records, columns, passing)
    if frame.is_empty():
        return {}
    # One number instead of five columns: what is joined most should be compared fastest.
    place = pl.col("flow").cast(pl.UInt64) * 2**48 + pl.col("sequence").cast(pl.UInt64) * 2**16
    frame = frame.select(
        "point",
        "port",
        "time",
        "flow",
        "node",
        frame=place + pl.col("node") * 2 + pl.col("returning").cast(pl.UInt64),
    )
    entered = frame.filter(pl.col("point") == "switch-in").select("frame", came="time")
    left = frame.filter(pl.col("point") == "switch-out").drop("point")
    on = ["frame"]
    if not entered["frame"].is_unique().all():
        entered, left, on = (
            _numbered(entered, "came", on),
            _numbered(left, "time", ["frame", "port"]),
            ["frame", "nth"],
        )
    table = left.join(entered, on=on, how="inner", maintain_order="left").select(
        pl.col("flow", "node", "port").cast(pl.Int64), residence=pl.col("time") - pl.col("came"), out="time"
    )
    return {int(flow): Passages(part) for (flow,), part in table.partition_by("flow", as_dict=True).items()}


def _numbered(frame: pl.DataFrame, at: str, by: list[str]) -> pl.DataFrame:
    """The frame in the order of time, each record with how often the same was seen before."""
    return frame.sort(at, maintain_order=True).with_columns(nth=pl.int_range(pl.len()).over(by))


def read_columns(
    path: Path, columns: tuple[str, ...], only: pl.Expr | None = None, most: int | None = None
) -> pl.DataFrame:
    """`columns` of a Parquet file of the run directory, vocabularies as text, at most so many rows.

    Raises RunDirectoryError for a file that cannot be read.
    """
    try:
        lazy = pl.scan_parquet(path)
        words = [name for name in ("point", "reason") if name in columns]
        lazy = lazy.with_columns(pl.col(*words).cast(pl.String)) if words else lazy
        lazy = (lazy if only is None else lazy.filter(only)).select(columns)
        return (lazy if most is None else lazy.head(most)).collect()
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        raise RunDirectoryError(
            f"{path}: is no readable Parquet file ({lines[0][:160]}); simulate or run the test again"
        ) from None
