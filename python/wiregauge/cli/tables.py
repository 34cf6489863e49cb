"""`table`: figures of run directories as a table for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from wiregauge.cli.figures import Labels, judged_sides
from wiregauge.cli.options import meant
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put, put_lines

__all__ = ["table"]

_BY_ENDING: Final = {".tex": "latex", ".md": "markdown", ".csv": "csv"}


def table(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR...]",
            help="Run directories; several are in one table, with a column label.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="latex (a tabular that needs no package), markdown or csv.",
            show_default="by the ending of --out; else markdown",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Columns in their order: flow, to, point_load and the like, and figures as limits name them "
            "(latency.p99, loss). Without a run directory all are listed.",
            show_default="axes, flow, to, sent, loss, p50, p99 and max of latency or rtt",
        ),
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="N", help=meant("--run"), show_default="repeats pooled")
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help=meant("--flow", '; of a multicast flow "ID to RECEIVER"'), show_default=False
        ),
    ] = None,
    labels: Labels = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help=meant("--out"), show_default="standard output"),
    ] = None,
) -> None:
    from wiregauge.export import Choice, ExportError
    from wiregauge.export.paper import FORMATS, paper_table
    from wiregauge.files import ForeignFileError, nearest, unwritten, write_whole

    if not places:
        _list()
        return
    chosen = form or (_BY_ENDING.get(out.suffix) if out is not None else None) or "markdown"
    if chosen not in FORMATS:
        fail(
            f'--format "{chosen}" is none{nearest(chosen, FORMATS)}; there are {", ".join(FORMATS)}',
            BAD_INPUT,
        )
    names = [name.strip() for name in columns.split(",")] if columns is not None else []
    if columns is not None and not all(names):
        fail(
            f'--columns "{columns}": write names with a comma between them, as in flow,latency.p99', BAD_INPUT
        )
    sides = [(side.name, side.judgement) for side in judged_sides(places, labels)]
    try:
        made = paper_table(sides, names, Choice(run, flow))
    except ExportError as error:
        fail(str(error), BAD_INPUT)
    text = FORMATS[chosen](made)
    if out is None:
        put_lines(text.splitlines())
        return
    # A CSV has no place for a mark, so none is replaced.
    mark = None if chosen == "csv" else b"Table by wiregauge."
    try:
        write_whole(out, text, replacing=mark)
    except ForeignFileError as error:
        fail(f"{out}: {error.strerror}", BAD_INPUT)
    except OSError as error:
        fail(unwritten(out, error), NO_ENVIRONMENT)
    put(f"table: {out} ({len(made.rows)} rows)")
    put(f"caption: {made.caption}")


def _list() -> None:
    """Prints every column, a line each; figures by measure."""
    from wiregauge.export.columns import PLACE_COLUMNS, figure_names
    from wiregauge.measures.definitions import DEFINITIONS

    put("What a row is of")
    put("  label              name of the run directory", indent=21)
    for column in PLACE_COLUMNS.values():
        put(f"  {column.name:18} {column.shows}", indent=21)
    put("  point_AXIS         value of an axis of the sweep", indent=21)
    put("Figures, as limits name them")
    statistics: dict[str, list[str]] = {}
    for name in figure_names():
        measure, _, statistic = name.partition(".")
        statistics.setdefault(measure, []).append(statistic)
    for measure, names in statistics.items():
        of = f" ({', '.join(filter(None, names))})" if any(names) else ""
        put(f"  {measure:18} {DEFINITIONS[measure].title}{of}", indent=21)
