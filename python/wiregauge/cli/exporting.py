"""`export`: a run directory in the formats of other tools; `dissector`: Wireshark's view of our messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import RunDir, readable
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put, say


def export(
    place: RunDir,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="parquet, arrow, csv, json, hlog, hgrm (HdrHistogram), junit or openmetrics.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help=meant("--out", "; - for standard output"), show_default=False
        ),
    ],
    what: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="measures, messages, passages, records, series (all values of a measure), sketches (its histogram), "
            "notes.",
            show_default="measures; series for hlog and hgrm",
        ),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option("--run", metavar="N", help=meant("--run"), show_default=False),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help=meant("--flow", '; of a multicast flow "ID to RECEIVER"'), show_default=False
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=meant("--measure", ", for example latency, rtt or ipdv"), show_default=False
        ),
    ] = None,
    no_formulas: Annotated[
        bool,
        typer.Option(
            "--no-formulas",
            help="csv: put an apostrophe before texts that begin with =, +, -, @, a tab or CR, which spreadsheets "
            "compute; numbers stay as they are.",
        ),
    ] = False,
) -> None:
    from wiregauge.export import Choice, ExportError, UnwrittenError, write

    try:
        with readable(place) as (_, here):
            notes = write(
                here, to, None if out == Path("-") else out, what, Choice(run, flow, measure, no_formulas)
            )
    except UnwrittenError as error:
        fail(str(error), NO_ENVIRONMENT)
    except ExportError as error:
        fail(str(error), BAD_INPUT)
    for note in notes:
        say(note)


def dissector(
    install: Annotated[
        bool,
        typer.Option(
            "--install",
            help="Install it into this user's Wireshark plugin folder; replaces an older one.",
        ),
    ] = False,
) -> None:
    from wiregauge.dissector import DissectorError, text
    from wiregauge.dissector import install as installed

    if not install:
        sys.stdout.write(text())
        return
    try:
        place = installed()
    except DissectorError as error:
        fail(str(error), NO_ENVIRONMENT)
    put(f"installed: {place}")
