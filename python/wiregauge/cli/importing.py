"""`import`: a directory from captures: of messages of ours, of anyone's frames before and after a device, or of the
streams of one place; or from a measurement of another program.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from wiregauge.cli.foreign import import_measurement, is_measurement
from wiregauge.cli.grouped import in_groups
from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, load_test, show_judgement
from wiregauge.cli.streaming import ContractOptions, import_streams
from wiregauge.terminal import BAD_INPUT, WITHIN, fail, put

if TYPE_CHECKING:
    from wiregauge.captures import Captured
    from wiregauge.measures import Judgement


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
    HSR_TAG = "hsr-tag"
    PRP_TRAILER = "prp-trailer"
    PTP_CORRECTION = "ptp-correction"
    MAC = "mac"


@in_groups
def import_captures(
    *,
    captures: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAPTURE...",
            help="Captures (pcapng, pcap) of Wiregauge messages, or of any traffic: of one place, or before and after "
            "a device; or one file of irtt (JSON) or flent.",
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
            help=f"Matching frames: what the device changes, of {', '.join(Ignored)}.",
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
    streams: Annotated[
        bool,
        typer.Option(
            "--streams",
            help="Report the streams of one place, whose captures these are, such as the files of a ring buffer; the "
            "default for a single interface without Wiregauge messages.",
        ),
    ] = False,
    judging: ContractOptions,
    as_json: AsJson = False,
) -> None:
    from wiregauge.captures import Captured, Comparison
    from wiregauge.plan.quantity import QuantityError, rate_bps

    places = tap or []
    if is_measurement(captures[0]):
        others = (test, places, run, timestamp_point, rate, ignore, max_residence, clock_offset)
        flags = (passive, in_order, streams, judging.are_given)
        if len(captures) > 1 or any(flags) or any(one is not None and one != [] for one in others):
            fail(
                f"{captures[0]}: is a measurement of another program: name it alone, with --out and --max-clock-offset",
                BAD_INPUT,
            )
        agree_ns = _time("--max-clock-offset", max_clock_offset)
        raise typer.Exit(import_measurement(captures[0], out, agree_ns, as_json=as_json))
    if test is None and (places or run is not None):
        fail("--tap and --run need --test: without a test the taps themselves are the network", BAD_INPUT)
    asked = passive or ignore is not None or max_residence is not None or clock_offset is not None or in_order
    if asked and test is not None:
        fail("--test judges Wiregauge messages; frames matched by their content belong to no test", BAD_INPUT)
    if streams or judging.are_given:
        _refuse_beside_streams(test, asked, timestamp_point, rate, max_clock_offset)
        raise typer.Exit(import_streams(captures, out, judging, as_json=as_json) or WITHIN)
    wrong = [place for place in places if not all(place.partition("="))]
    if wrong:
        fail(f'--tap "{wrong[0]}": write NAME=NODE or NAME=NODE:PORT', BAD_INPUT)
    line_bps = None
    try:
        line_bps = rate_bps(rate) if rate is not None else None
    except QuantityError as error:
        fail(f"--rate {error}", BAD_INPUT)
    offset_ns = _time("--max-clock-offset", max_clock_offset)
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
    raise typer.Exit(_imported(captured, out, str(test or captures[0]), as_json=as_json))


def _imported(captured: Captured, out: Path, file: str, *, as_json: bool) -> int:
    """Imports a run, or the streams of one place where the captures hold no run; returns the exit code."""
    from wiregauge import runner
    from wiregauge.captures import CaptureError, OnePlaceError, opened
    from wiregauge.results.passive_text import told

    troubles: list[str] = []

    def judged(captured: Captured) -> tuple[Judgement, list[str]]:
        with opened(captured, out) as (bench, taken), runner.open(bench, told=troubles.append) as trials:
            judgement = trials.run(taken, out, file=file)
            return judgement, [] if bench.compared is None or as_json else list(told(bench.compared))

    try:
        try:
            judgement, lines = judged(captured)
        except OnePlaceError:
            code = import_streams(captured.files, out, ContractOptions(), as_json=as_json, unless_two=True)
            if code is not None:
                return code
            judgement, lines = judged(replace(captured, comparison=replace(captured.comparison, asked=True)))
    except CaptureError as error:
        fail(str(error), BAD_INPUT)
    code = show_judgement(judgement, troubles, as_json=as_json, with_report=True)
    for line in lines:
        put(line)
    return code


def _refuse_beside_streams(*options: object) -> None:
    """Refuses what has no effect on the streams of one place."""
    if any(option not in (None, False) and option != [] for option in options):
        fail(
            "--streams, --contract and --learn report what one place saw: leave out --test, --timestamp-point, --rate, "
            "--max-clock-offset and the options of comparisons",
            BAD_INPUT,
        )


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
