"""The tables of Parquet, Arrow and CSV exports: records, messages, passages, measures, series.

They are the tables of the run directory made self-contained: names instead of indices, units in column names, the run
and the point of the sweep in every row. Records, messages and passages stay lazy: rows go from file to file in batches,
whatever the size of the run.

Schema 1; columns may be added within it, none is renamed or removed (docs/reference/export.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import polars as pl
from msgspec.structs import replace

from wiregauge.export.choice import Choice, ExportError
from wiregauge.export.columns import PLACE_COLUMNS, Place, axis_column, flow_rows
from wiregauge.measures import FlowResult, Judgement, RunDirectoryError
from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.recorded import TABLE_SCHEMAS, TIMES, WIRE_TIMES, Recorded
from wiregauge.measures.quantities import flow_quantities
from wiregauge.records.notes import Note, read_notes

SCHEMA = 2

_NO_HEADER = 65_535
_NEEDED = {
    "records": ("time", "flow", "sequence", "node", "port", "length", "point", "clock", "crc", "reason"),
    "messages": (
        *("flow", "sequence", "warm_up", "outcome", "copies", "corrupted_copies", "misdirected_copies"),
        *("reordered", "reorder_extent", "late", "last_node", "last_point", "drop_reason"),
    ),
    "passages": ("flow", "sequence", "node", "port", "returning", "came", "left"),
    "sketches": ("flow", "node", "port", "series", "min", "max", "low", "high", "count"),
}
"""Columns that a valid table must have; others were added later."""
FATAL = (KeyboardInterrupt, SystemExit, MemoryError)
"""Exceptions that are not Polars' fault, though BaseException covers them as it does its panics."""


def records(directory: Recorded, choice: Choice, rows: range | None = None) -> pl.LazyFrame:
    """Every record of the selected runs, in the order of the files; all rows of each file, or these.

    Raises RunDirectoryError for a damaged file.
    """
    names = _names(directory.plan)
    parts = []
    for run, table in _of_flows(directory, choice, "records", rows):
        columns = table.collect_schema().names()
        parts.append(
            table.select(
                *_of_run(directory.plan, run),
                pl.col("time").alias("time_ps"),
                pl.when(pl.col("flow") != _NO_HEADER).then("flow").alias("flow"),
                pl.when(pl.col("flow") != _NO_HEADER).then("sequence").alias("sequence"),
                _name_of("node", names),
                pl.col("port"),
                pl.col("length").alias("length_B"),
                *(pl.col(name).cast(pl.String) for name in ("point", "clock", "crc", "reason")),
                *(
                    pl.col(name) if name in columns else pl.lit(None, pl.Boolean).alias(name)
                    for name in ("returning", "warm_up")
                ),
            )
        )
    return _together(parts, "records")


def messages(directory: Recorded, choice: Choice, rows: range | None = None) -> pl.LazyFrame:
    """Every message of the selected runs with its outcome; all rows of each file, or these.

    Raises RunDirectoryError for a damaged file.
    """
    names = _names(directory.plan)
    parts = []
    for run in _runs(directory, choice):
        table = _scan(directory, "messages", run, rows)
        columns = table.collect_schema().names()
        # Tables from before redundant networks have no receiver; nothing was multicast then.
        if "to" not in columns:
            only = {flow.id: flow.receiver for flow in run.flows}
            table = table.with_columns(to=_looked_up("flow", only, pl.UInt16()))
        if choice.flow is not None:
            chosen = [flow for flow in run.flows if choice.has_flow(flow)]
            table = table.filter(
                pl.any_horizontal(
                    (pl.col("flow") == flow.id) & ((pl.col("to") == flow.receiver) | (not flow.multicast))
                    for flow in chosen
                )
            )
        source = {flow.id: flow.source for flow in run.flows}
        parts.append(
            table.select(
                *_of_run(directory.plan, run),
                pl.col("flow"),
                _looked_up("flow", source, pl.String()).alias("from"),
                _name_of("to", names),
                # The first schema of the table did not allow for senders that restart their numbers.
                (pl.col("life") if "life" in columns else pl.lit(0)).cast(pl.UInt16).alias("life"),
                pl.col("sequence", "warm_up"),
                pl.col("outcome").cast(pl.String),
                *(
                    (pl.col(name) if name in columns else pl.lit(None, pl.Int64)).alias(f"{name}_ps")
                    for name in (*TIMES, *WIRE_TIMES)
                ),
                (pl.col("length") if "length" in columns else pl.lit(0, pl.UInt16)).alias("length_B"),
                pl.col("copies", "corrupted_copies", "misdirected_copies"),
                pl.col("reordered", "reorder_extent", "late"),
                _name_of("last_node", names),
                pl.col("last_point", "drop_reason").cast(pl.String),
            )
        )
    return _together(parts, "messages")


def passages(directory: Recorded, choice: Choice, rows: range | None = None) -> pl.LazyFrame:
    """Every passage of a frame through a switch; all rows of each file, or these.

    Raises RunDirectoryError for a damaged file.
    """
    names = _names(directory.plan)
    parts = [
        table.select(
            *_of_run(directory.plan, run),
            pl.col("flow", "sequence"),
            _name_of("node", names).alias("switch"),
            pl.col("port", "returning"),
            pl.col("came").alias("came_ps"),
            pl.col("left").alias("left_ps"),
        )
        for run, table in _of_flows(directory, choice, "passages", rows)
    ]
    return _together(parts, "passages")


def pieces(what: str, directory: Recorded, choice: Choice) -> Iterator[pl.LazyFrame]:
    """Records, messages or passages of the selected runs in pieces that fit into memory.

    An engine that reads ahead of its writer would hold all rows between them, which grows with the run.
    """
    made, size = _PIECES[what]
    runs = _runs(directory, choice)
    if not runs:
        raise ExportError(f"nothing to export: the chosen runs and flows have no {what}")
    for run in runs:
        whole = _scan(directory, what, run)
        height = int(whole.select(pl.len()).collect().item())
        for begin in range(0, max(height, 1), size):
            yield made(directory, replace(choice, run=run.index), range(begin, min(begin + size, height)))


_PIECES: dict[str, tuple[Callable[[Recorded, Choice, range | None], pl.LazyFrame], int]] = {
    "records": (records, 1 << 20),
    "messages": (messages, 1 << 18),
    "passages": (passages, 1 << 19),
}
"""The function for each table, and rows of a piece: whole row groups of the files that tracking writes."""


def sketches(directory: Recorded, choice: Choice) -> pl.LazyFrame:
    """Every cell of every sketch of tracking. Raises RunDirectoryError for a damaged file."""
    names = _names(directory.plan)
    parts = []
    for run in _runs(directory, choice):
        table = _scan(directory, "sketches", run)
        if choice.flow is not None:
            table = table.filter(
                pl.any_horizontal(
                    (pl.col("flow") == flow.id)
                    & (
                        (pl.col("node") == flow.receiver)
                        | (pl.col("series") == "residence")
                        | (not flow.multicast)
                    )
                    for flow in run.flows
                    if choice.has_flow(flow)
                )
            )
        if choice.measure is not None:
            table = table.filter(pl.col("series") == choice.measure)
        parts.append(
            table.explode("low", "high", "count").select(
                *_of_run(directory.plan, run),
                pl.col("flow"),
                _name_of("node", names),
                pl.col("port"),
                pl.col("series").alias("measure"),
                *(pl.col(name).alias(f"{name}_ps") for name in ("low", "high")),
                pl.col("count"),
                *(pl.col(name).alias(f"{name}_ps") for name in ("min", "max")),
            )
        )
    return _together(parts, "sketches")


def notes(directory: Recorded, choice: Choice) -> pl.LazyFrame:
    """A row per note that people put on the run directory, as `notes.json` has them; those on all runs with each."""
    found = [
        note
        for note in read_notes(directory.path).notes
        if (choice.run is None or note.run in (None, choice.run)) and _is_of(note, choice.flow)
    ]
    columns = {
        "run": pl.Int64,
        "flow": pl.Int64,
        "to": pl.String,
        "at_s": pl.Float64,
        "text": pl.String,
        "written": pl.String,
    }
    return pl.LazyFrame([{name: getattr(note, name) for name in columns} for note in found], schema=columns)


def _is_of(note: Note, flow: str | None) -> bool:
    named = {None, str(note.flow), f"{note.flow} to {note.to}"}
    return note.flow is None or flow in named


def measures(judgement: Judgement, choice: Choice) -> pl.LazyFrame:
    """One row per figure: for every run, and for the pooled repeats of every point."""
    rows = [
        _named(at, flow, judgement.plan, figure)
        for at, flow in flow_rows(judgement, choice)
        for figure in flow_quantities(flow)
        if choice.measure is None or figure.measure == choice.measure
    ]
    if not rows:
        raise ExportError("nothing to export: no chosen run has a flow with figures")
    kinds = {name: column.kind for name, column in PLACE_COLUMNS.items()}
    axes = {axis_column(axis): pl.String() for axis in judgement.plan.axes}
    of_run = {name: kinds.pop(name) for name in ("run", "repeat", "runs")}
    schema = {
        **of_run,
        **axes,
        **kinds,
        "measure": pl.String(),
        "statistic": pl.String(),
        "unit": pl.String(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "n": pl.UInt64(),
        "reason": pl.String(),
    }
    return pl.LazyFrame(rows, schema=schema)


def _named(at: Place, flow: FlowResult, plan: CampaignPlan, figure: Quantity) -> dict[str, object]:
    return {
        **{name: column.of(at, flow) for name, column in PLACE_COLUMNS.items()},
        **{axis_column(axis): at.point.get(axis) for axis in plan.axes},
        "measure": figure.measure,
        "statistic": figure.statistic or None,
        "unit": figure.unit,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "n": figure.n,
        "reason": figure.reason or None,
    }


def series(judgement: Judgement, choice: Choice) -> pl.LazyFrame:
    """One row per value of every selected measure, in measured order; without the warm-up."""
    parts = [
        pl.LazyFrame(
            {"time_s": flow.series[name].t, "value_ns": flow.series[name].value},
            schema={"time_s": pl.Float64(), "value_ns": pl.Float64()},
        ).select(
            *_of_run(judgement.plan, run.plan),
            pl.lit(flow.plan.id, pl.UInt16).alias("flow"),
            pl.lit(flow.plan.destination).alias("to"),
            pl.lit(name).alias("measure"),
            pl.col("time_s").fill_nan(None),
            pl.col("value_ns"),
        )
        for run in choice.runs(judgement)
        for flow in choice.flows(run)
        for name in choice.series(flow)
    ]
    return _together(parts, "values")


def _of_run(plan: CampaignPlan, run: RunPlan) -> list[pl.Expr]:
    """The columns that identify the run of a row."""
    point = [pl.lit(run.point.get(axis), pl.String).alias(axis_column(axis)) for axis in plan.axes]
    return [pl.lit(run.index, pl.UInt32).alias("run"), *point]


def _names(plan: CampaignPlan) -> dict[int, str]:
    return {index: node.name for index, node in enumerate(plan.network.nodes)}


def _name_of(column: str, names: Mapping[int, str]) -> pl.Expr:
    return _looked_up(column, names, pl.String())


def _looked_up(column: str, found: Mapping[int, object], kind: pl.DataType) -> pl.Expr:
    """The value in `found` for the number in a column; null where it has none.

    Polars' own replacement reads the whole column first; this works batch by batch.
    """
    table = pl.Series([found.get(number) for number in range(max(found, default=-1) + 2)], dtype=kind)

    def look_up(numbers: pl.Series) -> pl.Series:
        # The last entry is empty: for all numbers beyond the others.
        beyond = (numbers >= len(table)) | numbers.is_null()
        return table.gather(numbers.cast(pl.UInt32).set(beyond, len(table) - 1)).alias(column)

    return pl.col(column).map_batches(look_up, return_dtype=kind, is_elementwise=True)


def _runs(directory: Recorded, choice: Choice) -> list[RunPlan]:
    return [run for run in directory.plan.runs if run.index in directory.runs and choice.has_run(run)]


def _of_flows(
    directory: Recorded, choice: Choice, kind: str, rows: range | None
) -> Iterator[tuple[RunPlan, pl.LazyFrame]]:
    """The table of each selected run, of its selected flows."""
    for run in _runs(directory, choice):
        table = _scan(directory, kind, run, rows)
        if choice.flow is not None:
            table = table.filter(pl.col("flow").is_in([f.id for f in run.flows if choice.has_flow(f)]))
        yield run, table


def _together(parts: list[pl.LazyFrame], what: str) -> pl.LazyFrame:
    if not parts:
        raise ExportError(f"nothing to export: the chosen runs and flows have no {what}")
    return pl.concat(parts)


def _scan(directory: Recorded, kind: str, run: RunPlan, rows: range | None = None) -> pl.LazyFrame:
    """Scans a Parquet file of the run directory, or some of its rows, after a check of its head."""
    path = directory.path / kind / f"run-{run.index:04d}.parquet"
    if directory.inventory.find(path) is None:
        raise RunDirectoryError(
            f"{path}: is missing, so there are no {kind} of run {run.index} to export; choose other runs with --run"
        )
    try:
        metadata = pl.read_parquet_metadata(path)
        table = pl.scan_parquet(path, glob=False)
        columns = table.collect_schema().names()
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is not an Exception.
    except BaseException as error:
        if isinstance(error, FATAL):
            raise
        raise unreadable(path, error) from None
    if (
        metadata.get("wiregauge.kind", kind) != kind
        or metadata.get("wiregauge.schema") != TABLE_SCHEMAS[kind]
    ):
        raise RunDirectoryError(
            f"{path}: holds {metadata.get('wiregauge.kind')} of schema {metadata.get('wiregauge.schema')}, "
            f"not {kind} of schema {TABLE_SCHEMAS[kind]}; use the wiregauge that wrote it"
        )
    missing = [name for name in _NEEDED[kind] if name not in columns]
    if missing:
        raise RunDirectoryError(f"{path}: column {missing[0]} is missing; `wiregauge track` makes it again")
    return table if rows is None else table.slice(rows.start, len(rows))


def unreadable(path: Path, error: BaseException) -> RunDirectoryError:
    """The error for a Parquet file that Polars cannot read."""
    lines = str(error).splitlines() or [type(error).__name__]
    return RunDirectoryError(
        f"{path}: is no readable Parquet file ({lines[0][:160]}); `wiregauge track` makes it again"
    )
