"""`export`: a run directory in the formats of other tools; `dissector`: Wireshark's view of our messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import load_test, readable
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put, say

_MOST_REASONS: Final = 20


def export(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Run directory; with --to inet a test file (XML), too.", show_default=False
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="parquet, arrow, csv, json, hlog, hgrm (HdrHistogram), junit, openmetrics; or inet: the test as a "
            "simulation of OMNeT++ (NED and ini), into a new folder.",
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

    if to == "inet":
        if out == Path("-") or no_formulas or any(one is not None for one in (what, flow, measure)):
            fail(
                "--to inet writes a test into a new folder; of the options only --run has an effect",
                BAD_INPUT,
            )
        _to_inet(place, out, run or 0)
        return
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


def _to_inet(place: Path, out: Path, run: int) -> None:
    """Writes one run of a test, or of a run directory's test, as a simulation of INET."""
    from wiregauge.files import new_folder, write_whole
    from wiregauge.inet import InetError, inet_files

    if place.is_dir():
        with readable(place) as (directory, _):
            campaign = directory.plan
    else:
        campaign = load_test(place).campaign
    if not 0 <= run < len(campaign.runs):
        fail(f"--run {run}: the test has {len(campaign.runs)} runs, from 0", BAD_INPUT)
    if out.exists() or out.is_symlink():
        fail(f"{out}: there is something of that name already; name a folder that does not exist", BAD_INPUT)
    try:
        files = inet_files(campaign, run)
    except InetError as error:
        for reason in error.reasons[:_MOST_REASONS]:
            say(f"{place}: {reason}, which the export to INET does not carry")
        raise typer.Exit(BAD_INPUT) from None
    try:
        with new_folder(out):
            for name, text in files.items():
                write_whole(out / name, text, replacing=None)
    except OSError as error:
        fail(f"{error.filename or out}: cannot be written ({error.strerror})", NO_ENVIRONMENT)


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
