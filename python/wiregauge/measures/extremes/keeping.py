"""The file of the extremes of a run: written while it is judged, read for figures.

Its layout is in docs/reference/run-directory.md. It follows from the messages alone, so it is stored only where their
hash is known, and used only while that is the hash it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from wiregauge.files import cure_for
from wiregauge.measures.extremes.building import RESIDENCE, Key, build, residences, series_of
from wiregauge.measures.metrics.clocks import run_clocks
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.hops import read_columns
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.records import RunDirectory, RunDirectoryError, describe, store_beside
from wiregauge.stats.pyramid import NOTHING, Blocks, Extremes, levels

__all__ = ["KEPT_FROM", "keep", "kept"]

KEPT_FROM = 1 << 15
"""Number of messages of a flow at a receiver from which its extremes are stored: smaller ones are computed as fast."""
KIND, SCHEMA = "extremes", 2
_PLACES = ("first", "past", "count", "begin", "end", "lost", "unknown")
_PARTS = Extremes.__struct_fields__
_HEAD = {"flow": pl.UInt16, "to": pl.UInt16, "series": pl.Categorical, "level": pl.UInt8}


def keep(directory: Recorded, unkept: Callable[[str], object], *, held: bool = False) -> Recorded:
    """Writes the extremes of every run that lacks them into its directory, and lists them in its manifest.

    `held`: the caller holds the directory. Where it may not be written, or another process holds it, nothing is stored:
    figures compute them. Returns the directory as it is then. Raises RunDirectoryError for files that cannot be read.
    """
    if not directory.inventory.verified or directory.manifest.get("state") == "running":
        return directory
    lacking = [
        run
        for run in directory.plan.runs
        if run.index in directory.runs and _current(directory, run) is None and _large(directory, run)
    ]
    if not lacking:
        return directory
    own = RunDirectory.open(directory.path)
    try:
        if not held:
            own.hold()
        for run in lacking:
            _write(directory, own, run)
        own.save()
    except (RunDirectoryError, OSError) as error:
        # A foreign lock or a disk that refuses makes no answer wrong.
        if isinstance(error, OSError):
            unkept(f"{directory.path}: extremes are not kept ({error.strerror or error}); {cure_for(error)}")
        return directory
    finally:
        own.close()
    return open_recorded(directory.path)


def _large(directory: Recorded, run: RunPlan) -> list[FlowPlan]:
    """Flows whose extremes are worth keeping."""
    if directory.rows(run.index) < KEPT_FROM:
        return []
    counts = directory.counts(run.index)
    large = [flow for flow in run.flows if counts.get(flow.id, 0) >= KEPT_FROM]
    if not large:
        return []
    clocks = run_clocks(directory, run)
    # Times that are corrected one by one rest on more than the messages.
    return [flow for flow in large if not clocks.moved(flow)]


def _write(directory: Recorded, own: RunDirectory, run: RunPlan) -> None:
    flows = _large(directory, run)
    built = build(directory, run, flows)
    if not built:
        return
    for flow, blocks in residences(directory, run, {flow.id for flow in flows}).items():
        for key, series in built.items():
            if key[0] == flow:
                series[RESIDENCE] = blocks
    parts = (
        _table(key, name, blocks)
        for key, series in sorted(built.items())
        for name, blocks in sorted(series.items())
    )
    table = pl.concat(parts, how="diagonal")
    path = own.extremes(run.index)
    store_beside(table, path, KIND, SCHEMA, run=run.index)
    messages = own.name_of(own.messages(run.index))
    sources = {messages: own.manifest["files"][messages]["sha256"]}
    own.note_files({own.name_of(path): describe(path, sources)})


def _table(key: Key, series: str, finest: Blocks) -> pl.DataFrame:
    """All levels of a series, the finest first, a block in a row."""
    flow, receiver = key
    parts = []
    for level, blocks in enumerate(levels(finest)):
        columns: dict[str, pl.Series] = {name: pl.Series(getattr(blocks, name)) for name in _PLACES}
        for name, one in blocks.of.items():
            empty = pl.Series(one.n == 0)
            for part in _PARTS:
                values = pl.Series(getattr(one, part))
                columns[f"{name}.{part}"] = (
                    values if part == "n" or not empty.any() else values.set(empty, None)
                )
        named = {"flow": flow, "to": receiver, "series": series, "level": level}
        head = (pl.lit(value).cast(_HEAD[name]).alias(name) for name, value in named.items())
        parts.append(pl.DataFrame(columns).select(*head, pl.all()))
    return pl.concat(parts)


def kept(directory: Recorded, run: RunPlan, flow: FlowPlan, series: str) -> list[Blocks]:
    """All levels of a series of a flow; nothing where the run directory does not keep it.

    Raises RunDirectoryError for a file that cannot be read.
    """
    path = _current(directory, run)
    if path is None:
        return []
    there = _measures_in(path, path.stat().st_mtime_ns)
    names = [name for name in there if name in ((series,) if series in there else series_of(flow))]
    columns = ("level", *_PLACES, *(f"{name}.{part}" for name in names for part in _PARTS))
    mine = (pl.col("flow") == flow.id) & (pl.col("to") == flow.receiver) & (pl.col("series") == series)
    rows = read_columns(path, columns, mine)
    return list(_levels(rows, names)) if rows.height else []


def _current(directory: Recorded, run: RunPlan) -> Path | None:
    """The extremes file of a run, if it has this version's schema; else None."""
    path = directory.extremes(run.index)
    if path is None:
        return None
    found = directory.reading(run.index, lambda: pl.read_parquet_metadata(path))
    return path if found.get("wiregauge.schema") == str(SCHEMA) else None


@cache
def _measures_in(path: Path, _written: int) -> tuple[str, ...]:
    names = pl.scan_parquet(path, glob=False).collect_schema().names()
    return tuple(name.removesuffix(".n") for name in names if name.endswith(".n"))


def _levels(rows: pl.DataFrame, names: Collection[str]) -> Iterator[Blocks]:
    least, greatest = NOTHING
    filled = {"n": 0, "least": least, "greatest": greatest, "least_at": 0, "greatest_at": 0}
    level = rows["level"].to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(level)]
    columns = {name: rows[name].cast(pl.Int64).to_numpy() for name in _PLACES}
    of = {
        name: {
            part: rows[f"{name}.{part}"].cast(pl.Int64).fill_null(filled[part]).to_numpy() for part in _PARTS
        }
        for name in names
    }
    for begin, end in pairwise(cuts):
        yield Blocks(
            **{name: column[begin:end] for name, column in columns.items()},
            of={
                name: Extremes(**{part: one[part][begin:end] for part in _PARTS}) for name, one in of.items()
            },
        )
