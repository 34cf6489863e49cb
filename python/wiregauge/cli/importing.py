"""`import`: a run directory from captures: of messages of ours, or of anyone's frames before and after a device."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, load_test, show_judgement
from wiregauge.terminal import BAD_INPUT, fail, put


class TimestampPoint(StrEnum):
    """The octet of a frame that a timestamp belongs to."""

    PREAMBLE = "preamble"
    FIRST = "first"
    LAST = "last"


class Ignored(StrEnum):
    """What a device changes in the frames that pass it."""

    VLAN = "vlan"
    PCP = "pcp"
    TTL = "ttl"
    DSCP = "dscp"
    R_TAG = "r-tag"
    MAC = "mac"


def import_captures(
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Captures (pcapng, pcap) of Wiregauge messages, or of any traffic, before and after a device.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help=meant("--out", ": a new run directory"), show_default=False
        ),
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
            "--run",
            metavar="N",
            help=meant("--run", ", the one that was captured", only="With --test"),
            show_default=False,
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
            metavar="RATE",
            help=meant("--rate", ", for taps that do not say, for example 1Gbit/s"),
            show_default=False,
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
    passive: Annotated[
        bool,
        typer.Option(
            "--passive",
            help="Match frames by content even if Wiregauge messages are among them; the default if none are.",
        ),
    ] = False,
    ignore: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD[,FIELD...]",
            help="Matching frames: what the device changes, of vlan, pcp, ttl, dscp, r-tag, mac.",
            show_default=False,
        ),
    ] = None,
    max_residence: Annotated[
        str | None,
        typer.Option(
            "--max-residence",
            metavar="TIME",
            help="Matching frames: longest time a frame stays in the device, such as 5ms.",
            show_default="twice the longest of frames with a content of their own",
        ),
    ] = None,
    clock_offset: Annotated[
        str | None,
        typer.Option(
            "--clock-offset",
            metavar="TIME",
            help="Matching frames: what the second capture's clock shows less the first's, such as -3us; "
            "needs --max-clock-offset for its uncertainty.",
            show_default=False,
        ),
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="Matching frames: no frame overtakes another of its flow."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    from wiregauge import runner
    from wiregauge.captures import Captured, CaptureError, Comparison, opened
    from wiregauge.plan.quantity import QuantityError, rate_bps, time_ns
    from wiregauge.results.passive_text import told

    places = tap or []
    if test is None and (places or run is not None):
        fail("--tap and --run need --test: without a test the taps themselves are the network", BAD_INPUT)
    asked = passive or ignore is not None or max_residence is not None or clock_offset is not None or in_order
    if asked and test is not None:
        fail("--test judges Wiregauge messages; frames matched by their content belong to no test", BAD_INPUT)
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
    if clock_offset is not None and offset_ns is None:
        fail(
            "--clock-offset needs --max-clock-offset, by how much it may be wrong; write 0ns where it is exact",
            BAD_INPUT,
        )
    comparison = Comparison(
        asked,
        _fields(ignore),
        _time("--max-residence", max_residence),
        _time("--clock-offset", clock_offset) or 0,
        in_order,
    )
    captured = Captured(
        comparison=comparison,
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
            lines = [] if bench.compared is None or as_json else list(told(bench.compared))
    except CaptureError as error:
        fail(str(error), BAD_INPUT)
    code = show_judgement(judgement, troubles, as_json=as_json, with_report=True)
    for line in lines:
        put(line)
    raise typer.Exit(code)


def _fields(text: str | None) -> tuple[str, ...]:
    """Fields of `--ignore`."""
    fields = tuple(field.strip() for field in (text or "").split(",") if field.strip())
    unknown = [field for field in fields if field not in set(Ignored)]
    if unknown or (text is not None and not fields):
        known = ", ".join(Ignored)
        fail(f'--ignore "{unknown[0] if unknown else text}": write one or more of {known}', BAD_INPUT)
    return fields


def _time(option: str, text: str | None) -> float | None:
    """A time in ns, which may be negative for `--clock-offset` alone."""
    from wiregauge.plan.quantity import QuantityError, time_ns

    if text is None:
        return None
    negative = text.startswith("-") and option == "--clock-offset"
    try:
        found = time_ns(text.removeprefix("-") if negative else text)
    except QuantityError as error:
        fail(f"{option} {error}", BAD_INPUT)
    return -found if negative else found
