"""`export`: a run directory in the formats of other tools, and run directories from captures; `dissector`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.cli.shared import AsJson, load_test, open_run, show_judgement
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, say

__all__ = ["dissector", "export"]


class OctetName(StrEnum):
    """The octet of a frame that a stamp belongs to."""

    PREAMBLE = "preamble"
    FIRST = "first"
    LAST = "last"


def export(
    place: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Run directory.", show_default=False)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="parquet, arrow, csv, json, hlog, hgrm (HdrHistogram), junit or openmetrics.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to make; - for standard output. With --from: the run directory to make.",
            show_default=False,
        ),
    ] = None,
    captures: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="CAPTURE",
            help="Import: make a run directory from a capture (pcapng, pcap) of Wiregauge messages; repeatable.",
            show_default=False,
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="TEST",
            help="--from: the test that was captured; its nodes are where the taps are.",
            show_default=False,
        ),
    ] = None,
    tap: Annotated[
        list[str] | None,
        typer.Option(
            "--tap",
            metavar="NAME=NODE[:PORT]",
            help="--from --test: the place of a tap that is not called so itself.",
            show_default=False,
        ),
    ] = None,
    octet: Annotated[
        OctetName | None,
        typer.Option(
            help="--from: the octet of a frame to which timestamps refer, for taps that do not say.",
            show_default="first",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="--from: line rate for taps that do not say, such as 1Gbit/s.",
            show_default=False,
        ),
    ] = None,
    clocks_agree: Annotated[
        str | None,
        typer.Option(
            "--clocks-agree",
            metavar="TIME",
            help="--from: maximum offset between the clocks of several captures, such as 50ns.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    what: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="measures, messages, passages, records, series (all values of a measure), sketches (its histogram).",
            show_default="measures; series for hlog and hgrm",
        ),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(
            "--run",
            metavar="N",
            help="Only this run of the sweep. With --test: the run that was captured.",
            show_default=False,
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help='Only this flow; of a multicast flow "ID to RECEIVER".', show_default=False
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this measure: latency, rtt, ipdv, …", show_default=False),
    ] = None,
) -> None:
    """Write a run directory in the format of another tool: tables, histograms, test results, metrics."""
    from wiregauge.export import Choice, ExportError, UnwrittenError, write

    if captures:
        if place is not None or to is not None or what is not None or flow is not None or measure is not None:
            fail(
                "--from makes a run directory: it takes --out DIR, and no DIR, --to, --what, --flow or --measure",
                BAD_INPUT,
            )
        if out is None or out == "-":
            fail("--from needs --out DIR, the run directory to make", BAD_INPUT)
        raise typer.Exit(
            _import(captures, Path(out), test, run, tap or [], octet, rate, clocks_agree, as_json=as_json)
        )
    if (
        test is not None
        or tap
        or octet is not None
        or rate is not None
        or clocks_agree is not None
        or as_json
    ):
        fail(
            "--test, --tap, --octet, --rate, --clocks-agree and --json have an effect with --from only",
            BAD_INPUT,
        )
    if place is None or to is None or out is None:
        fail("name the run directory, --to FORMAT and --out FILE; or --from CAPTURE and --out DIR", BAD_INPUT)
    open_run(place)
    try:
        notes = write(place, to, None if out == "-" else Path(out), what, Choice(run, flow, measure))
    except UnwrittenError as error:
        fail(str(error), NO_ENVIRONMENT)
    except ExportError as error:
        fail(str(error), BAD_INPUT)
    for note in notes:
        say(note)


def _import(
    captures: list[Path],
    out: Path,
    test: Path | None,
    run: int | None,
    places: list[str],
    octet: OctetName | None,
    rate: str | None,
    clocks_agree: str | None,
    *,
    as_json: bool,
) -> int:
    """Makes a run directory from captures, judges it and writes the report; returns the exit code."""
    from wiregauge import runner
    from wiregauge.captures import Captured, CaptureError, opened
    from wiregauge.plan.quantity import QuantityError, rate_bps, time_ns

    if test is None and (places or run is not None):
        fail("--tap and --run need --test: without a test the taps themselves are the network", BAD_INPUT)
    wrong = [place for place in places if not all(place.partition("="))]
    if wrong:
        fail(f'--tap "{wrong[0]}": write NAME=NODE or NAME=NODE:PORT', BAD_INPUT)
    line_bps, agree_ns = None, None
    try:
        line_bps = rate_bps(rate) if rate is not None else None
    except QuantityError as error:
        fail(f"--rate {error}", BAD_INPUT)
    try:
        agree_ns = time_ns(clocks_agree) if clocks_agree is not None else None
    except QuantityError as error:
        fail(f"--clocks-agree {error}", BAD_INPUT)
    loaded = load_test(test) if test is not None else None
    if loaded is not None and run is None and len(loaded.campaign.runs) > 1:
        fail(f"{test} has {len(loaded.campaign.runs)} runs; say which was captured with --run N", BAD_INPUT)
    captured = Captured(
        files=captures,
        test=loaded.campaign if loaded is not None else None,
        test_xml=loaded.xml if loaded is not None else b"",
        run=run or 0,
        places={name: node for name, _, node in (place.partition("=") for place in places)},
        octet=octet.value if octet is not None else None,
        rate_bps=line_bps,
        agree_ns=agree_ns,
    )
    troubles: list[str] = []
    try:
        with opened(captured, out) as (bench, taken), runner.open(bench, told=troubles.append) as trials:
            judgement = trials.run(taken, out, file=str(test or captures[0]))
    except CaptureError as error:
        fail(str(error), BAD_INPUT)
    return show_judgement(judgement, troubles, as_json=as_json, with_report=True)


def dissector(
    install: Annotated[
        bool,
        typer.Option(
            "--install",
            help="Install it into this user's Wireshark plugin folder; replaces an older one.",
        ),
    ] = False,
) -> None:
    """Print the Wireshark dissector of messages, ARINC 664 and protocol control frames (Lua), or install it."""
    from wiregauge.dissector import DissectorError, text
    from wiregauge.dissector import install as put

    if not install:
        sys.stdout.write(text())
        return
    try:
        place = put()
    except DissectorError as error:
        fail(str(error), NO_ENVIRONMENT)
    print(f"installed: {place}")
