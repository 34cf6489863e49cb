"""Reads a run directory as docs/reference/run-directory.md defines it; refuses what it cannot read with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl

from wiregauge.measures import sampling
from wiregauge.measures.evidence import number, parts
from wiregauge.measures.plan import CampaignPlan, judged_plan
from wiregauge.plan import PlanError, decode
from wiregauge.records import DamagedError, Inventory, RunDirectoryError, Traits, read_json, traits_of

T = TypeVar("T")

SCHEMA = 1
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
_COLUMNS: dict[str, pl.DataType] = {
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
}
_ORDER = (pl.col("flow"), pl.col("to"), pl.col("warm_up").not_(), pl.col("life"), pl.col("sequence"))
_MESSAGE_SCHEMAS = ("1", "2", "3")
"""The first did not know that a sender can begin its numbers anew: all its messages are of its first life. The second
did not know of messages that nobody can tell whether they arrived."""
WIRE_TIMES = ("tx_wire", "tx_wire_b", "rx_wire", "rx_wire_b")
"""Columns that tables written before there were two networks do not have; `to` is another."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The manifest with its plan, and what tracking counted (None: not tracked yet)."""

    path: Path
    manifest: Mapping[str, object]
    plan: CampaignPlan
    runs: Mapping[int, Mapping[str, object]]
    tracked: Mapping[int, Mapping[str, object]] | None
    most: int
    """Messages of a run, counted per receiver, that are held; of more a sample of about so many is."""
    inventory: Inventory
    """What the manifest says of its files: each is checked before it is read."""
    digest: str | None
    """Of the manifest; None in a directory of an older version."""

    @property
    def traits(self) -> Traits:
        """Of the bench the runs were made on."""
        return traits_of(self.manifest)

    def records(self, index: int) -> Path | None:
        """The records of a run; None when they are not there."""
        return self._found("records", index)

    def passages(self, index: int) -> Path | None:
        """Passages of the frames of a run through switches; None in a directory that an older version tracked."""
        return self._found("passages", index)

    def truth(self, index: int) -> Path | None:
        """What was true of a run; None where nobody knew it."""
        return self._found("truth", index)

    def clocks(self, index: int) -> Path | None:
        """What synchronisation programs said of the clocks of a run; None where none ran."""
        return self._found("clocks", index)

    def noise(self, index: int) -> Path | None:
        """What else the hosts of a run did; None where no host took part."""
        return self._found("noise", index)

    def _found(self, folder: str, index: int) -> Path | None:
        return self.inventory.find(self.path / folder / f"run-{index:04d}.parquet")

    def sketches(self, index: int) -> Path | None:
        """The sketches of a run; None in a directory that an older version tracked."""
        return self._found("sketches", index)

    def sampled(self, index: int) -> dict[int, int]:
        """By flow of a run that is not held whole, one in how many stretches is; empty where all are.

        Raises RunDirectoryError as `messages`.
        """
        rows = self.scan(index)
        # Without sketches, which older versions did not write, only the messages themselves can tell.
        if rows is None or self.sketches(index) is None:
            return {}
        return self.reading(index, lambda: _sampled(rows, self.most))

    def messages(self, index: int) -> pl.DataFrame | None:
        """The message table of a run, ordered by flow, warm-up first, then life and sequence; None when there is none.

        Of a run with more than `most` rows a sample in whole stretches; `stretch` tells them apart.
        Raises RunDirectoryError for a damaged file or one of another schema.
        """
        rows = self.scan(index)
        if rows is None:
            return None

        def read() -> pl.DataFrame:
            one_in = self.sampled(index)
            if one_in:
                sample = rows.filter(sampling.chosen(one_in)).with_columns(sampling.stretches(one_in))
                table = sample.collect(engine="streaming")
            else:
                table = rows.with_columns(stretch=pl.lit(0, pl.Int64)).collect()
            # Not `sort`: it needs half a gigabyte beside the table.
            return table[table.select(pl.arg_sort_by(_ORDER)).to_series()]

        return self.reading(index, read)

    def reading(self, index: int, read: Callable[[], T]) -> T:
        """What `read` finds in the message table of a run. Raises RunDirectoryError where that cannot be read."""
        return _reading(self._messages(index), read)

    def collected(self, index: int, query: pl.LazyFrame) -> pl.DataFrame:
        """The answer to a query of `scan`, read in batches. Raises RunDirectoryError as `messages`."""
        return self.reading(index, lambda: query.collect(engine="streaming"))

    def scan(self, index: int) -> pl.LazyFrame | None:
        """All rows of the message table of a run, unread, in the order of the file; None when there is none.

        Raises RunDirectoryError as `messages`.
        """
        path = self._found("messages", index)
        if path is None:
            return None
        metadata = _reading(path, lambda: pl.read_parquet_metadata(path))
        frame = pl.scan_parquet(path)
        names = _reading(path, lambda: frame.collect_schema().names())
        if (
            metadata.get("wiregauge.kind", "messages") != "messages"
            or metadata.get("wiregauge.schema", "1") not in _MESSAGE_SCHEMAS
        ):
            raise RunDirectoryError(
                f"{path}: holds {metadata.get('wiregauge.kind')} of schema {metadata.get('wiregauge.schema')}, "
                f"not messages of schema {_MESSAGE_SCHEMAS[-1]}; use the wiregauge that wrote it"
            )
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise RunDirectoryError(
                f"{path}: column {missing[0]} is missing; `wiregauge track` makes it anew"
            )
        added = [
            pl.lit(None, pl.Int64()).alias(name)
            for name in ("to", "length", *WIRE_TIMES)
            if name not in names
        ]
        if "life" not in names:
            added.append(pl.lit(0).alias("life"))
        columns = {"to": pl.Int64(), "length": pl.Int64(), "life": pl.Int64(), **_COLUMNS}
        columns |= dict.fromkeys(WIRE_TIMES, pl.Int64())
        return frame.with_columns(added).select(pl.col(name).cast(kind) for name, kind in columns.items())

    def _messages(self, index: int) -> Path:
        return self.path / "messages" / f"run-{index:04d}.parquet"


def _reading(path: Path, read: Callable[[], T]) -> T:
    """What `read` finds in the file `path`. Raises RunDirectoryError where that cannot be read."""
    try:
        return read()
    except (pl.exceptions.InvalidOperationError, pl.exceptions.SchemaError) as error:
        raise RunDirectoryError(
            f"{path}: a column has an unexpected type ({_first_line(error)}); `wiregauge track` makes it anew"
        ) from None
    except RunDirectoryError:
        raise
    # Polars raises its own family, OSError and, on damaged thrift, a panic that is no Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise RunDirectoryError(
            f"{path}: is no readable Parquet file ({_first_line(error)}); `wiregauge track` makes it anew"
        ) from None


def _sampled(rows: pl.LazyFrame, most: int) -> dict[int, int]:
    if rows.select(pl.len()).collect().item() <= most:
        return {}
    counts = rows.group_by("flow").len().collect(engine="streaming")
    return sampling.every({int(flow): int(count) for flow, count in counts.iter_rows()}, most)


def _most(tracked: Mapping[int, Mapping[str, object]] | None) -> int:
    """The fair share of a run in the messages of all runs that may be held."""
    sent = [sum(number(flow, "sent") for flow in parts(run, "flows")) for run in (tracked or {}).values()]
    share = sampling.fair(sent, sampling.ROWS)
    return sampling.ROWS if share is None else share


def open_run_directory(path: Path) -> RunDirectory:
    """Reads manifest.json and tracking.json. Raises RunDirectoryError when there is nothing to judge."""
    manifest_path = path / "manifest.json"
    if not path.is_dir():
        raise RunDirectoryError(
            f"{path}: no such directory; name the directory that `wiregauge run --out` wrote"
        )
    if not manifest_path.exists():
        raise RunDirectoryError(
            f"{path}: holds no manifest.json, so it is no run directory; name the one that `wiregauge run --out` wrote"
        )
    where = str(manifest_path)
    manifest, digest = read_json(manifest_path)
    schema = _get(manifest, "schema", int, where)
    if schema != SCHEMA:
        raise RunDirectoryError(
            f"{where}: schema {schema} is unknown to this wiregauge, which reads {SCHEMA}"
        )
    try:
        plan = judged_plan(decode(_get(manifest, "plan", dict, where)))
    except PlanError as error:
        raise RunDirectoryError(f"{where}, plan: {error}") from None
    runs = {_get(run, "index", int, where): run for run in _objects(manifest, "runs", where)}
    tracking_path = path / "tracking.json"
    tracked: dict[int, Mapping[str, object]] | None = None
    if digest is None and "files" in manifest:
        raise DamagedError(
            f"{where}: is damaged or was altered: its digest is missing; restore it from a copy"
        )
    inventory = Inventory(path, _get(manifest, "files", dict, where) if digest is not None else None)
    if inventory.find(tracking_path) is not None:
        tracking, _ = read_json(tracking_path)
        tracked = {
            _get(run, "index", int, str(tracking_path)): run
            for run in _objects(tracking, "runs", str(tracking_path))
        }
    return RunDirectory(path, manifest, plan, runs, tracked, _most(tracked), inventory, digest)


def _get(obj: Mapping[str, object], key: str, kind: type[T], where: str) -> T:
    """`obj[key]` if it is a `kind`; an int serves as a float. Raises RunDirectoryError naming `where` and the key."""
    if key not in obj:
        raise RunDirectoryError(
            f'{where}: "{key}" is missing; the file was not written by wiregauge or is damaged'
        )
    value = obj[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RunDirectoryError(
            f'{where}: "{key}" should be {_NAMES.get(kind, kind.__name__)}, not {type(value).__name__}; '
            "the file is damaged"
        )
    return value


_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def _objects(obj: Mapping[str, object], key: str, where: str) -> list[dict[str, object]]:
    """`obj[key]` as a list of objects."""
    items = _get(obj, key, list, where)
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise RunDirectoryError(f'{where}: "{key}"[{place}] should be an object; the file is damaged')
    return items


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__
