"""Writes an export: everything is checked before anything is written, and the file appears atomically."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from math import isnan
from pathlib import Path

import polars as pl
from msgspec import Struct, field

from wiregauge import _native
from wiregauge.export import histograms, junit, openmetrics, tables
from wiregauge.export.choice import WHATS, Choice, ExportError, UnwrittenError
from wiregauge.files import ForeignFileError, printable, whole
from wiregauge.measures import Judgement, RunDirectoryError
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.results import judge, show_json

_BATCH = 65_536
_IN_PIECES = ("records", "messages", "passages")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Error numbers of a writer that a reader never gets; Polars reports them as text."""


class _Source(Struct, dict=True):
    """A run directory and, once figures are needed, its judgement."""

    place: Path
    what: str
    choice: Choice
    unkept: list[str] = field(default_factory=list)
    """Warnings that a judgement could not be stored."""

    @cached_property
    def directory(self) -> Recorded:
        return open_recorded(self.place)

    @cached_property
    def judgement(self) -> Judgement:
        return judge(self.place, unkept=self.unkept.append)

    def pieces(self) -> Iterator[pl.LazyFrame]:
        """The rows in pieces, at least one."""
        if self.what in _IN_PIECES:
            yield from tables.pieces(self.what, self.directory, self.choice)
        elif self.what in _WHOLE:
            yield _WHOLE[self.what](self.directory, self.choice)
        else:
            made = tables.series if self.what == "series" else tables.measures
            yield made(self.judgement, self.choice)

    def metadata(self) -> dict[str, str]:
        """The metadata of the file about its rows."""
        return {"wiregauge.kind": self.what, "wiregauge.export": str(tables.SCHEMA)}


def _parquet(source: _Source, target: Path) -> None:
    rows = pl.concat(list(source.pieces()))
    rows.sink_parquet(target, compression="zstd", metadata=source.metadata(), row_group_size=1 << 20)


def _arrow(source: _Source, target: Path) -> None:
    """Writes an Arrow IPC file, uncompressed so that it can be memory-mapped. Polars adds no schema metadata."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".wiregauge-") as rows:
        pl.concat(list(source.pieces())).sink_ipc(
            rows.name, compat_level=pl.CompatLevel.oldest(), record_batch_size=_BATCH
        )
        _native.label_table(rows.name, target, source.metadata())


def _csv(source: _Source, target: Path) -> None:
    """Writes RFC 4180: a header, CRLF, quotes where needed; an absent value is empty."""
    with target.open("wb") as file:
        for k, rows in enumerate(source.pieces()):
            piece = rows.collect()
            plain = _without_formulas(piece) if source.choice.no_formulas else piece
            plain.write_csv(file, include_header=k == 0, line_terminator="\r\n")


def _without_formulas(piece: pl.DataFrame) -> pl.DataFrame:
    """Marks texts that a spreadsheet would compute by an apostrophe (OWASP); numbers stay numbers."""
    marked = []
    for name, kind in piece.schema.items():
        if kind.base_type() in (pl.String, pl.Categorical, pl.Enum):
            text = pl.col(name).cast(pl.String)
            number = text.str.contains(r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$")
            formula = text.str.contains(r"^[=+\-@\t\r]") & ~number
            marked.append(pl.when(formula).then(pl.lit("'") + text).otherwise(text).alias(name))
    return piece.with_columns(marked)


def _json(source: _Source, target: Path) -> None:
    content = show_json(source.judgement) if source.what == "measures" else _whole_series(source)
    if source.what == "measures":
        runs = [run for run in content["runs"] if source.choice.run in (None, run["index"])]  # type: ignore[attr-defined]
        content = {**content, "runs": runs}
    with target.open("w", encoding="utf-8") as file:
        json.dump(content, file, allow_nan=False, indent=1 if source.what == "measures" else None)
        file.write("\n")


def _whole_series(source: _Source) -> dict[str, object]:
    found = [
        {
            "run": run.plan.index,
            "point": dict(run.plan.point),
            "repeat": run.plan.repeat,
            "flow": flow.plan.id,
            "from": flow.plan.source,
            "to": flow.plan.destination,
            "measure": name,
            "time_s": [None if isnan(t) else t for t in flow.series[name].t.tolist()],
            "value_ns": flow.series[name].value.tolist(),
        }
        for run in source.choice.runs(source.judgement)
        for flow in source.choice.flows(run)
        for name in source.choice.series(flow)
    ]
    if not found:
        raise ExportError("nothing to export: the chosen runs and flows have no values")
    return {"schema": tables.SCHEMA, "kind": "series", "test": source.judgement.plan.name, "series": found}


def _hlog(source: _Source, target: Path) -> None:
    found = (
        histograms.of_sketches(source.directory, source.choice)
        if source.what == "sketches"
        else histograms.of_series(source.judgement, source.choice, by_second=True)
    )
    target.write_bytes(histograms.log(source.directory.manifest, source.directory.plan.name, found))


def _hgrm(source: _Source, target: Path) -> None:
    found = (
        histograms.of_sketches(source.directory, source.choice)
        if source.what == "sketches"
        else histograms.of_series(source.judgement, source.choice, by_second=False)
    )
    target.write_bytes(histograms.percentiles(found))


def _text(make: Callable[[Judgement, Choice], bytes]) -> Callable[[_Source, Path], None]:
    def put(source: _Source, target: Path) -> None:
        target.write_bytes(make(source.judgement, source.choice))

    return put


class _Format(Struct, frozen=True):
    """A format: `whats` are the tables it can carry, the first by default; `binary`: not for a terminal."""

    title: str
    whats: tuple[str, ...]
    put: Callable[[_Source, Path], None]
    binary: bool = False
    measured: bool = True


_WHOLE = {"sketches": tables.sketches, "notes": tables.notes}
_TABLES = ("measures", "messages", "passages", "records", "series", "sketches", "notes")
_STORED = ("records", "messages", "passages", "sketches", "notes")
FORMATS: dict[str, _Format] = {
    "parquet": _Format("Apache Parquet", _TABLES, _parquet, binary=True),
    "arrow": _Format("Apache Arrow IPC file", _TABLES, _arrow, binary=True),
    "csv": _Format("CSV (RFC 4180)", _TABLES, _csv),
    "json": _Format("JSON", ("measures", "series"), _json),
    "hlog": _Format("HdrHistogram log", ("series", "sketches"), _hlog),
    "hgrm": _Format("HdrHistogram percentiles of one distribution", ("series", "sketches"), _hgrm),
    "junit": _Format("JUnit XML of the verdict", ("measures",), _text(junit.document), measured=False),
    "openmetrics": _Format("OpenMetrics text", ("measures",), _text(openmetrics.exposition)),
}


def write(
    place: Path, to: str, out: Path | None, what: str | None = None, choice: Choice | None = None
) -> tuple[str, ...]:
    """Exports the run directory `place` in format `to` into the file `out`, or to standard output (None).

    Returns remarks for the reader of the file, a sentence each.

    Raises ExportError for an impossible request, RunDirectoryError for a directory that cannot be read.
    """
    choice = choice or Choice()
    form = _format(to, what)
    source = _Source(place, what or form.whats[0], choice)
    if choice.measure is not None and (source.what in (*_IN_PIECES, "notes") or not form.measured):
        carries = "the verdict" if not form.measured else source.what
        raise ExportError(f"--measure has no effect with {carries}; leave it out")
    if to == "json" and source.what == "measures" and (choice.flow or choice.measure):
        raise ExportError(
            "json of measures is the whole of `show --json`, at most of one run; csv takes --flow and --measure"
        )
    if choice.no_formulas and to != "csv":
        raise ExportError(f"--no-formulas has no effect with {to}; leave it out")
    choice.check(source.directory.plan, frozenset(source.directory.runs))
    if out is None and form.binary and sys.stdout.isatty():
        raise ExportError(f"{to} is not for a terminal; name a file with --out")
    with _whole(out) as target:
        try:
            form.put(source, target)
        except (ExportError, RunDirectoryError):
            raise
        except OSError as error:
            raise _unwritten(out, error.strerror or str(error)) from None
        # A damaged page shows only when it is read; Polars raises its own family, or panics.
        except BaseException as error:
            if isinstance(error, tables.FATAL):
                raise
            refused = re.search(r"([^:]*) \(os error (\d+)\)", str(error))
            if refused is not None and int(refused[2]) in _FULL:
                raise _unwritten(out, refused[1].strip()) from None
            if (full := _no_room(target)) is not None:
                raise _unwritten(out, full) from None
            if source.what in _STORED:
                raise tables.unreadable(place / source.what, error) from None
            raise
    return (*_notes(source, to), *source.unkept)


def _format(to: str, what: str | None) -> _Format:
    """The format of that name. Raises ExportError where there is none, or it does not support the table."""
    if to not in FORMATS:
        raise ExportError(f'"{to}" is no format; there are {", ".join(FORMATS)}')
    form = FORMATS[to]
    if what is not None and what not in WHATS:
        raise ExportError(f'"{what}" is nothing to export; there are {", ".join(WHATS)}')
    if what is not None and what not in form.whats:
        raise ExportError(
            f"{to} carries {' or '.join(form.whats)}, not {what}; parquet, arrow and csv carry all"
        )
    return form


def _notes(source: _Source, to: str) -> tuple[str, ...]:
    if source.what != "series":
        return ()
    sparse = [
        f"flow {flow.plan.name} of run {run.plan.index}"
        for run in source.choice.runs(source.judgement)
        for flow in source.choice.flows(run)
        if flow.sampled is not None
    ]
    if not sparse:
        return ()
    named = f"{', '.join(sparse[:3])}{f' and {len(sparse) - 3} more' if len(sparse) > 3 else ''}"
    if to in ("hlog", "hgrm"):
        return (f"{named}: too large to be held in memory, so its histogram is that of the run in one piece",)
    return (
        f"{named}: too large to be held in memory, so its series is a sample of whole stretches of messages; "
        "`--what messages` and `--what sketches` have all of them",
    )


def _unwritten(out: Path | None, why: str) -> UnwrittenError:
    return UnwrittenError(f"{out if out is not None else 'standard output'}: cannot be written: {why}")


def _no_room(target: Path) -> str | None:
    """The reason why a file cannot grow, where Polars gives none; None where it could."""
    try:
        with target.open("ab", buffering=0) as file:
            file.write(bytes(1 << 16))
    except OSError as error:
        return error.strerror if error.errno in _FULL else None
    return None


@contextmanager
def _whole(out: Path | None) -> Iterator[Path]:
    """A path to write to, which becomes `out` (or is copied to standard output) on success, and is removed if not."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="wiregauge-") as folder:
            target = Path(folder) / "export"
            yield target
            with target.open("rb") as file:
                sys.stdout.flush()
                if sys.stdout.isatty():
                    for line in file:
                        shown = printable(line.decode("utf-8", "backslashreplace").rstrip("\r\n"))
                        sys.stdout.write(f"{shown}\n")
                    return
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    try:
        taken = out.is_dir() or out.exists() or out.is_symlink()
    except (OSError, ValueError) as error:  # invalid path: too long, or with a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise ExportError(f"{out}: cannot be written: {reason}; name another file") from None
    if out.is_dir():
        raise ExportError(f"{out}: is a directory; name a file")
    if taken:
        raise ExportError(
            f"{out}: already exists; results are never overwritten, so name another file or remove it"
        )
    if not out.parent.is_dir():
        raise ExportError(f"{out}: cannot be written: there is no directory {out.parent}")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise ExportError(f"{out}: cannot be written: no permission to write into {out.parent}")
    try:
        with whole(out, replacing=None) as beside:
            yield beside
    except ForeignFileError as error:  # the name was taken meanwhile
        raise ExportError(f"{out}: {error.strerror}") from None
