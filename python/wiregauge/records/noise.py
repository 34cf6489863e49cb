"""Time series of host noise: the samples that agents wrote during a run, as one small table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from wiregauge.files import read_text
from wiregauge.records.beside import store_beside
from wiregauge.records.directory import RunDirectory
from wiregauge.records.errors import RunDirectoryError

__all__ = ["NOISE_SCHEMA", "store_noise"]

NOISE_SCHEMA = 1
SPOOLED = "noise.tsv"
_FIELDS = 4


def store_noise(directory: RunDirectory, index: int, *, beside: bool = False) -> None:
    """Gathers the samples that the agents of a run spooled into `noise/run-NNNN.parquet`; without any, there is no such
    file.

    With `beside`, stored samples of other end systems are preserved.

    A line that a killed agent left half written is left out. Raises RunDirectoryError where the disk refuses.
    """
    import polars as pl  # heavy, and not needed while frames travel

    columns = {"time": pl.Int64, "node": pl.String, "counter": pl.String, "key": pl.String, "value": pl.Int64}
    spooled = sorted(directory.spool(index).glob(f"*/{SPOOLED}"))
    rows = [row for path in spooled for row in _lines(path, directory.spooled_by(path.parent))]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    if beside and directory.noise(index).exists():
        late = table["node"].unique().to_list()
        stored = pl.read_parquet(directory.noise(index), glob=False).filter(~pl.col("node").is_in(late))
        table = pl.concat([stored.select(list(columns)), table])
    table = table.sort("time", "node", "counter", "key")
    store_beside(table, directory.noise(index), "noise", NOISE_SCHEMA)


def _lines(path: Path, node: str) -> Iterator[tuple[int, str, str, str, int]]:
    try:
        text = read_text(path, errors="replace")
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    # A line without its end may be incomplete: half a number is a number, too.
    for line in text.split("\n")[:-1]:
        fields = line.split("\t")
        if len(fields) == _FIELDS:
            with contextlib.suppress(ValueError):
                yield int(fields[0]), node, fields[1], fields[2], int(fields[3])
