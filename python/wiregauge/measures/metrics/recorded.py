"""Reads a run directory as docs/reference/run-directory.md defines it; refuses unreadable ones with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import polars as pl
from msgspec import Struct, ValidationError

from wiregauge.measures.metrics import sampling
from wiregauge.measures.metrics.flow_plan import CampaignPlan, RunPlan, judged_plan
from wiregauge.measures.metrics.releases import Errors, errors_of
from wiregauge.records import (
    DamagedError,
    Inventory,
    RunDirectory,
    RunDirectoryError,
    Traits,
    read_json,
)
from wiregauge.records.counters import sum_known
from wiregauge.records.reported import RunEntry, TrackedRun, read_tracked

T = TypeVar("T")

TIMES = (
    "intended",
    "tx_app",
    "tx_drv",
    "rx_drv",
    "rx_app",
    "back_tx_app",
    "back_tx_drv",
    "back_rx_drv",
    "back_rx_app",
)
WIRE_TIMES = ("tx_wire", "tx_wire_b", "rx_wire", "rx_wire_b")
_COLUMNS: dict[str, pl.DataType] = {
    "to": pl.Int64(),
    "length": pl.Int64(),
    "life": pl.Int64(),
    "flow": pl.Int64(),
    "sequence": pl.Int64(),
    "warm_up": pl.Boolean(),
    "outcome": pl.String(),
    **{name: pl.Int64() for name in TIMES},
    "copies": pl.Int64(),
    "corrupted_copies": pl.Int64(),
    "misdirected_copies": pl.Int64(),
    "reordered": pl.Boolean(),
    "late": pl.Boolean(),
    "reorder_extent": pl.Int64(),
    "last_node": pl.Int64(),
    "last_point": pl.String(),
    "drop_reason": pl.String(),
    **{name: pl.Int64() for name in WIRE_TIMES},
}
_WIDENED = [pl.col(name).cast(kind) for name, kind in _COLUMNS.items()]
_ORDER = (pl.col("flow"), pl.col("to"), pl.col("warm_up").not_(), pl.col("life"), pl.col("sequence"))
TABLE_SCHEMAS: Final = {"records": "1", "messages": "3", "passages": "1", "sketches": "1"}
"""Schema versions of tables, as their files state them."""


class Recorded(Struct, frozen=True):
    """Read access to a run directory for judging; every file is checked before it is read."""

    directory: RunDirectory
    plan: CampaignPlan
    runs: Mapping[int, RunEntry]
    """Entries of the manifest."""
    tracked: Mapping[int, TrackedRun] | None
    """Tracking results by run; None: not tracked yet."""
    most: int
    """Number of messages of a run, counted per receiver, that are held; larger runs are sampled to about this
    number."""

    @property
    def path(self) -> Path:
        """The path of the run directory."""
        return self.directory.root

    @property
    def manifest(self) -> Mapping[str, object]:
        """The manifest of the run directory."""
        return self.directory.manifest

    @property
    def traits(self) -> Traits:
        """The traits of the bench the runs were made on."""
        return self.directory.traits

    @property
    def inventory(self) -> Inventory:
        """The manifest's list of files."""
        return self.directory.inventory

    def unseen(self, run: RunPlan) -> set[str]:
        """End systems without a capture, of a run made from captures."""
        if not self.traits.tapped:
            return set()
        ends = {end for flow in run.flows for end in (flow.source, flow.destination)}
        return ends - {tap.node for tap in self.runs[run.index].taps}

    def records(self, index: int) -> Path | None:
        """The records of a run; None when they are not there."""
        return self.inventory.find(self.directory.records(index))

    def passages(self, index: int) -> Path | None:
        """Passages of the frames of a run through switches; None where they are not there."""
        return self.inventory.find(self.directory.passages(index))

    def truth(self, index: int) -> Path | None:
        """The file of true values of a run; None where they are not known."""
        return self.inventory.find(self.directory.truth(index))

    def release_errors(self, index: int) -> Errors:
        """Lateness of single frames that left a played network; empty where it was not stored.

        Raises RunDirectoryError for a damaged table.
        """
        path = self.inventory.find(self.directory.crossings(index))
        if path is None:
            return Errors()
        return errors_of(path)

    def clocks(self, index: int) -> Path | None:
        """The clock states that synchronisation programs reported during a run; None where none ran."""
        return self.inventory.find(self.directory.clocks(index))

    def noise(self, index: int) -> Path | None:
        """The table of host activity during a run; None where no host took part."""
        return self.inventory.find(self.directory.noise(index))

    def sketches(self, index: int) -> Path | None:
        """The sketches of a run; None where they are not there."""
        return self.inventory.find(self.directory.sketches(index))

    def extremes(self, index: int) -> Path | None:
        """The extremes of a run; None where none are stored, or only those of other messages."""
        path = self.directory.extremes(index)
        listed: Mapping[str, Any] = self.inventory.files or {}
        entry = listed.get(self.directory.name_of(path))
        source = self.directory.name_of(self.directory.messages(index))
        if entry is None or entry["from"].get(source) != listed.get(source, {}).get("sha256"):
            return None
        # Extremes follow from the messages: a missing file is made again.
        return self.inventory.find(path) if path.is_file() else None

    def rows(self, index: int) -> int:
        """Messages of a run, counted per receiver. Raises RunDirectoryError as `messages`."""
        path = self.inventory.find(self.directory.messages(index))
        if path is None:
            return 0
        return self.reading(
            index, lambda: int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        )

    def sampled(self, index: int) -> dict[int, int]:
        """Sampling factors of the sampled flows of a run: one in how many stretches is read; empty where all are.

        Raises RunDirectoryError as `messages`.
        """
        rows = self.scan(index)
        if rows is None or self.sketches(index) is None:
            return {}
        return self.reading(index, lambda: _sampled(rows, self.most))

    def counts(self, index: int) -> dict[int, int]:
        """Messages of a run by flow, counted per receiver. Raises RunDirectoryError as `messages`."""
        rows = self.scan(index)
        if rows is None:
            return {}
        counted = self.collected(index, rows.group_by("flow").len())
        return {int(flow): int(count) for flow, count in counted.iter_rows()}

    def messages(self, index: int, flows: tuple[int, int] | None = None) -> pl.DataFrame | None:
        """The message table of a run, ordered by flow, warm-up first, then life and sequence; None when there is none.

        With `flows` only the rows of those numbers, first to last.

        For a run with more than `most` rows a sample in whole stretches, numbered by `stretch`. Raises
        RunDirectoryError for a damaged file or one of another schema.
        """
        rows = self.scan(index, as_stored=True)
        if rows is None:
            return None

        if flows is not None:
            rows = rows.filter(pl.col("flow").is_between(*flows))

        def read() -> pl.DataFrame:
            one_in = self.sampled(index)
            if one_in:
                # What is left out need not be widened.
                sample = rows.filter(sampling.chosen(one_in)).select(_WIDENED)
                table = sample.with_columns(sampling.stretches(one_in)).collect(engine="streaming")
            else:
                table = rows.select(_WIDENED).with_columns(stretch=pl.lit(0, pl.Int64)).collect()
            # Not `sort`: it needs half a gigabyte besides the table.
            order = table.select(pl.arg_sort_by(_ORDER)).to_series()
            return table if order.is_sorted() else table[order]

        return self.reading(index, read)

    def reading(self, index: int, read: Callable[[], T]) -> T:
        """The result of `read`, which reads the run's message table. Raises RunDirectoryError where that fails."""
        return _reading(self.directory.messages(index), read)

    def collected(self, index: int, query: pl.LazyFrame) -> pl.DataFrame:
        """The answer to a query of `scan`, read in batches. Raises RunDirectoryError as `messages`."""
        return self.reading(index, lambda: query.collect(engine="streaming"))

    def scan(self, index: int, *, as_stored: bool = False) -> pl.LazyFrame | None:
        """All rows of the message table of a run, unread, in the order of the file; None when there is none.

        Whole numbers are of 64 bit and words texts; `as_stored` they are as they were written, which is several times
        as fast. Raises RunDirectoryError as `messages`.
        """
        path = self.inventory.find(self.directory.messages(index))
        if path is None:
            return None
        metadata = _reading(path, lambda: pl.read_parquet_metadata(path))
        frame = pl.scan_parquet(path, glob=False)
        names = _reading(path, lambda: frame.collect_schema().names())
        if (
            metadata.get("wiregauge.kind", "messages") != "messages"
            or metadata.get("wiregauge.schema") != TABLE_SCHEMAS["messages"]
        ):
            raise RunDirectoryError(
                f"{path}: holds {metadata.get('wiregauge.kind')} of schema {metadata.get('wiregauge.schema')}, "
                f"not messages of schema {TABLE_SCHEMAS['messages']}; `wiregauge track` makes them again"
            )
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise RunDirectoryError(
                f"{path}: column {missing[0]} is missing; `wiregauge track` makes it again"
            )
        return frame if as_stored else frame.select(_WIDENED)


def _reading(path: Path, read: Callable[[], T]) -> T:
    """The result of `read`, which reads the file `path`. Raises RunDirectoryError where that fails."""
    try:
        return read()
    except (pl.exceptions.InvalidOperationError, pl.exceptions.SchemaError) as error:
        raise RunDirectoryError(
            f"{path}: a column has an unexpected type ({_first_line(error)}); `wiregauge track` makes it again"
        ) from None
    except RunDirectoryError:
        raise
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise RunDirectoryError(
            f"{path}: is no readable Parquet file ({_first_line(error)}); `wiregauge track` makes it again"
        ) from None


def _sampled(rows: pl.LazyFrame, most: int) -> dict[int, int]:
    if rows.select(pl.len()).collect().item() <= most:
        return {}
    counts = rows.group_by("flow").len().collect(engine="streaming")
    return sampling.every({int(flow): int(count) for flow, count in counts.iter_rows()}, most)


def _most(tracked: Mapping[int, TrackedRun] | None) -> int:
    """The fair share of a run in the messages of all runs that may be held."""
    sent = [sum_known(flow.sent for flow in run.flows) for run in (tracked or {}).values()]
    share = sampling.fair(sent, sampling.ROWS)
    return sampling.ROWS if share is None else share


def open_recorded(path: Path) -> Recorded:
    """Opens a run directory to judge it. Raises RunDirectoryError when there is nothing to judge.

    The last one is cached while its files are unchanged: judging, views and explanations each need it, and for very
    many flows the plan alone takes seconds to read.
    """
    states = tuple(_state(path / name) for name in ("manifest.json", "tracking.json"))
    directory, plan, runs, tracked = _opened(path, states)
    return Recorded(directory, plan, runs, tracked, _most(tracked))


def _state(path: Path) -> tuple[int, ...]:
    """Inode, size and modification time of a file, to notice its changes; empty where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1)
def _opened(
    path: Path, _states: tuple[tuple[int, ...], ...]
) -> tuple[RunDirectory, CampaignPlan, Mapping[int, RunEntry], Mapping[int, TrackedRun] | None]:
    directory = RunDirectory.open(path)
    plan = judged_plan(directory.plan)
    directory.forget_plan()
    runs = directory.entries()
    tracked: dict[int, TrackedRun] | None = None
    tracking_path = path / "tracking.json"
    if directory.inventory.find(tracking_path) is not None:
        tracking, _ = read_json(tracking_path, sound=directory.inventory.verified)
        try:
            tracked = read_tracked(tracking.get("runs"))
        except ValidationError as error:
            raise DamagedError(
                f"{tracking_path}: has no list of runs ({error}); `wiregauge track {path}` makes it again"
            ) from None
    return directory, plan, runs, tracked


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__
