"""`import`: a run directory from captures of others, judged like a run of ours."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.cli.shared import AsJson, load_test, show_judgement
from wiregauge.terminal import BAD_INPUT, fail


class TimestampPoint(StrEnum):
    """The octet of a frame that a timestamp belongs to."""

    PREAMBLE = "preamble"
    FIRST = "first"
    LAST = "last"


def import_captures(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...", help="Captures (pcapng, pcap) of Wiregauge messages.", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Run directory to make.", show_default=False)
    ],
    test: Annotated[
        Path | None,
        typer.Option(
            "--test",
            metavar="TEST",
            help="The test that was captured; its nodes are where the taps are.",
            show_default=False,
        ),
    ] = None,
    tap: Annotated[
        list[str] | None,
        typer.Option(
            "--tap",
            metavar="NAME=NODE[:PORT]",
            help="With --test: the place of a tap that is not called so itself; repeatable.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(
            "--run", metavar="N", help="With --test: the run that was captured.", show_default=False
        ),
    ] = None,
    timestamp_point: Annotated[
        TimestampPoint | None,
        typer.Option(
            "--timestamp-point",
            help="The octet of a frame to which timestamps refer, for taps that do not say.",
            show_default="first",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="Line rate for taps that do not say, such as 1Gbit/s.", show_default=False
        ),
    ] = None,
    max_clock_offset: Annotated[
        str | None,
        typer.Option(
            "--max-clock-offset",
            metavar="TIME",
            help="Maximum offset between the clocks of several captures, such as 50ns.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a run directory from captures, judge it and write the report."""
    from wiregauge import runner
    from wiregauge.captures import Captured, CaptureError, opened
    from wiregauge.plan.quantity import QuantityError, rate_bps, time_ns

    places = tap or []
    if test is None and (places or run is not None):
        fail("--tap and --run need --test: without a test the taps themselves are the network", BAD_INPUT)
    wrong = [place for place in places if not all(place.partition("="))]
    if wrong:
        fail(f'--tap "{wrong[0]}": write NAME=NODE or NAME=NODE:PORT', BAD_INPUT)
    line_bps, offset_ns = None, None
    try:
        line_bps = rate_bps(rate) if rate is not None else None
    except QuantityError as error:
        fail(f"--rate {error}", BAD_INPUT)
    try:
        offset_ns = time_ns(max_clock_offset) if max_clock_offset is not None else None
    except QuantityError as error:
        fail(f"--max-clock-offset {error}", BAD_INPUT)
    loaded = load_test(test) if test is not None else None
    if loaded is not None and run is None and len(loaded.campaign.runs) > 1:
        fail(f"{test} has {len(loaded.campaign.runs)} runs; say which was captured with --run N", BAD_INPUT)
    captured = Captured(
        files=captures,
        test=loaded.campaign if loaded is not None else None,
        test_xml=loaded.xml if loaded is not None else b"",
        run=run or 0,
        places={name: node for name, _, node in (place.partition("=") for place in places)},
        octet=timestamp_point.value if timestamp_point is not None else None,
        rate_bps=line_bps,
        agree_ns=offset_ns,
    )
    troubles: list[str] = []
    try:
        with opened(captured, out) as (bench, taken), runner.open(bench, told=troubles.append) as trials:
            judgement = trials.run(taken, out, file=str(test or captures[0]))
    except CaptureError as error:
        fail(str(error), BAD_INPUT)
    raise typer.Exit(show_judgement(judgement, troubles, as_json=as_json, with_report=True))
