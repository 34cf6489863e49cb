"""What all commands of `wiregauge calibrate` share: options, errors as one line, and the end of a calibration.

Exit codes are those of every command: 0 measured, 2 bad input, 3 this machine cannot measure it, 4 stopped early (what
was measured until then is shown and kept).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from msgspec import Struct
from rich.console import Console

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, bench_name
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, make_console, print_table, say

if TYPE_CHECKING:
    from wiregauge.calibrate.runs import Outcome
    from wiregauge.config import Test
    from wiregauge.runner import Bench
    from wiregauge.runner.benches.netns.lent import HostInterface


class Protocol(StrEnum):
    """How they are carried."""

    UDP = "udp"
    RAW = "raw"


class Mode(StrEnum):
    """What a generator keeps when a frame is late."""

    RATE = "rate"
    GAP = "gap"


class Backend(StrEnum):
    """How frames leave the host."""

    AUTO = "auto"
    UDP = "udp"
    PACKET = "packet"
    XDP = "xdp"


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help=meant("--out", ": a page (HTML) and its pictures (SVG, PNG)"),
        show_default=False,
    ),
]
StoreAt = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Folder of the calibrations.",
        show_default="WIREGAUGE_CALIBRATIONS, or the user's data folder",
    ),
]
Keep = Annotated[bool, typer.Option("--save/--no-save", help="Keep the calibration, for runs to cite.")]
Runs = Annotated[
    Path | None,
    typer.Option(
        "--runs", metavar="DIR", help="Keep the run directories behind it there.", show_default=False
    ),
]
BenchName = Annotated[
    str,
    typer.Option(
        "--bench",
        parser=bench_name,
        metavar="[sim|netns]",
        help=meant("--bench"),
    ),
]
Realtime = Annotated[bool, typer.Option("--realtime/--no-realtime", help=meant("--realtime", only="netns"))]
Rootless = Annotated[bool, typer.Option("--rootless", help="netns: use a user namespace even when root.")]
Interfaces = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="netns: two interfaces of this host, joined by a cable, instead of a virtual link; they are given back.",
        show_default=False,
    ),
]
Carried = Annotated[Protocol, typer.Option(help=meant("--protocol"))]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**63 - 1, help=meant("--seed"))]
Rate = Annotated[str, typer.Option(metavar="RATE", help=meant("--rate", ", for example 1Gbit/s"))]


class Ending(Struct, frozen=True):
    """What becomes of a calibration."""

    out: Out = None
    store: StoreAt = None
    save: Keep = True
    as_json: AsJson = False


class Trials(Struct, frozen=True):
    """How its runs are made."""

    seed: Seed = 1
    runs: Runs = None
    """Directory that keeps the runs; None: none is kept."""


class Host(Struct, frozen=True):
    """What becomes of this host while it is measured."""

    realtime: Realtime = True
    rootless: Rootless = False


class Place(Struct, frozen=True):
    """Where a calibration is measured."""

    bench: BenchName = "netns"
    rate: Rate = "1Gbit/s"
    interfaces: Interfaces = None


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Errors as one line and an exit code."""
    from wiregauge.calibrate.errors import BenchMissingError, CalibrationError, StoppedError

    try:
        yield
    except StoppedError as error:
        fail(f"{error}; nothing was measured", INCOMPLETE)
    except BenchMissingError as error:
        fail(str(error), NO_ENVIRONMENT)
    except CalibrationError as error:
        fail(str(error), BAD_INPUT)


def entered(name: str, host: Host, *, interfaces: str | None = None, line_bps: int = 0) -> Bench:
    """The bench of that name; netns goes on inside an enclosure, and what comes before is done twice."""
    from wiregauge.runner import BenchError, NetnsBench, bench_named, options_of

    taken = options_of(name)
    if interfaces is not None and (host.rootless or "interfaces" not in taken):
        other = "--rootless" if "interfaces" in taken else f"--bench {name}"
        fail(f"--interfaces has no effect with {other}; leave one of them out", BAD_INPUT)
    options = {
        "realtime": host.realtime,
        "rootless": host.rootless,
        "interfaces": interfaces.split(",") if interfaces is not None else None,
    }
    try:
        bench = bench_named(name, **{option: value for option, value in options.items() if option in taken})
        if isinstance(bench, NetnsBench) and bench.lent is not None:
            _of_rate(bench.lent, line_bps)
        bench.enter()
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    return bench


def _of_rate(lent: Iterable[HostInterface], line_bps: int) -> None:
    """Loads and gaps are shares of the link's rate: an interface that tells another one is told back."""
    from wiregauge.calibrate.identity import rate_name

    for one in lent:
        if one.rate_bps is not None and one.rate_bps != line_bps:
            right = rate_name(one.rate_bps).replace(" ", "")
            fail(f"{one.name} runs at {right}, not at {rate_name(line_bps)}; give --rate {right}", BAD_INPUT)


def finish(calibration: Any, end: Ending) -> NoReturn:
    """Keeps, draws and prints a calibration; ends the command."""
    from wiregauge.calibrate import CalibrationError, Store

    written: list[Path] = []
    troubles = []
    # What was measured is printed whatever the disk says.
    try:
        if end.save:
            calibration = Store(end.store).save(calibration)
    except CalibrationError as error:
        troubles.append(f"the calibration is not kept: {error}")
    try:
        if end.out is not None:
            written = draw(calibration, end.out)
    except CalibrationError as error:
        troubles.append(f"the pictures are missing: {error}")
    show_calibration(calibration, written, as_json=end.as_json)
    for trouble in troubles:
        say(trouble)
    whole = calibration.content["state"] == "complete" and not troubles
    raise typer.Exit(0 if whole else INCOMPLETE)


def draw(calibration: Any, out: Path) -> list[Path]:
    from wiregauge.calibrate.errors import CalibrationError
    from wiregauge.calibrate.page import write_page
    from wiregauge.calibrate.pictures import pictures
    from wiregauge.figures import printed
    from wiregauge.records import RunDirectoryError

    try:
        out.mkdir(parents=True, exist_ok=True)
        figures = pictures(calibration)
        drawn = [path for figure in figures for path in printed.save(figure, out, {"svg", "png"})]
        return [write_page(calibration, figures, out / f"{calibration.kind}.html"), *drawn]
    except OSError as error:
        raise CalibrationError(f"{out}: cannot be written ({error.strerror}); name another folder") from None
    except RunDirectoryError as error:
        raise CalibrationError(str(error)) from None


def show_calibration(calibration: Any, written: list[Path], *, as_json: bool) -> None:
    """Prints a calibration, and what was written of it."""
    from wiregauge.calibrate.text import grids, headline

    if as_json:
        print(json.dumps(calibration.content, indent=1, ensure_ascii=False))
        return
    console = make_console()
    content = calibration.content
    console.print(
        f"{calibration.kind}: {headline(calibration)}", highlight=False, markup=False, soft_wrap=True
    )
    for grid in grids(calibration):
        console.print()
        console.print(grid.title, style="bold", highlight=False, markup=False)
        print_table(grid.heads, grid.rows, console, leading=grid.leading)
        for note in grid.notes:
            console.print(f"  {note}", style="dim", highlight=False, markup=False)
    console.print()
    if content["grade"] != "VALID":
        reasons = "; ".join(content["reasons"]) or "no reason given"
        console.print(f"{content['grade']}: {reasons}", highlight=False, markup=False, soft_wrap=True)
    if content["state"] != "complete":
        console.print("stopped early: these are the figures until then", highlight=False)
    kept = f"kept as {calibration.number} in {calibration.file}" if calibration.file else "not kept"
    console.print(kept, highlight=False, markup=False, soft_wrap=True)
    for path in written:
        console.print(f"written: {path}", highlight=False, markup=False, soft_wrap=True)


def progress() -> Console:
    return make_console(stderr=True)


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def period_ps(test: Any) -> int:
    from wiregauge.calibrate.errors import CalibrationError
    from wiregauge.calibrate.runs import fault_of
    from wiregauge.config import TestError

    try:
        return int(test.compile().campaign.runs[0].sends[0].period)
    except TestError as error:
        raise CalibrationError(f"these settings make no test: {fault_of(error)}") from None


def rate_bps(text: str) -> int:
    """A rate as the test language reads it."""
    from wiregauge.calibrate.errors import CalibrationError
    from wiregauge.plan import quantity

    try:
        return quantity.rate_bps(text)
    except quantity.QuantityError as error:
        raise CalibrationError(f"--rate {error}") from None


def measured_on(place: Place, host: Host, runs: Path | None, test: Test) -> tuple[Outcome, dict[str, str]]:
    """Runs the test of a calibration on a bench; its outcome, and the identity of the instrument it was measured with.

    The netns bench goes on inside an enclosure (`entered`): what comes before is done twice.
    """
    from wiregauge import runner
    from wiregauge.calibrate import identity
    from wiregauge.calibrate.runs import run_test, workplace
    from wiregauge.cli.progress import ProgressView

    period_ps(test)
    bench = entered(place.bench, host, interfaces=place.interfaces, line_bps=rate_bps(place.rate))
    with (
        workplace(runs) as folder,
        runner.open(bench, observer=ProgressView(progress()), told=say) as trials,
    ):
        outcome = run_test(test, trials, folder)
    link = identity.link_of(outcome.campaign.network)
    return outcome, identity.here(driver=bench.traits.driver, link=link, realtime=host.realtime)


_GRADES = ("VALID", "DEGRADED", "INVALID")


def trust(outcomes: list[Any], planned: int) -> dict[str, Any]:
    """Grade, reasons and state of a calibration from those of its tests."""
    whole = len(outcomes) == planned and all(outcome.state == "complete" for outcome in outcomes)
    return {
        "grade": max((outcome.grade for outcome in outcomes), key=_GRADES.index, default="INVALID"),
        "reasons": sorted({reason for outcome in outcomes for reason in outcome.reasons}),
        "state": "complete" if whole else "interrupted",
    }


def trust_of(outcome: Any, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Of points that are graded each for itself: INVALID only where all are, else at most DEGRADED."""
    grades = [_GRADES.index(point["grade"]) for point in points]
    worst = max(grades) if min(grades) == 2 else min(max(grades), 1)
    return {
        "grade": _GRADES[worst],
        "reasons": _reasons([(_name(point), point["reasons"]) for point in points]),
        "state": outcome.state,
    }


def _name(point: dict[str, Any]) -> str:
    return str(point.get("case") or f"{point['payload_bytes']} B at {point['load_percent']} %")


def _reasons(points: list[tuple[str, list[str]]]) -> list[str]:
    """Each reason once, with the points it is of where it is not of all."""
    of: dict[str, dict[str, None]] = {}
    for name, reasons in points:
        for reason in reasons:
            of.setdefault(reason, {})[name] = None
    everywhere = len({name for name, _ in points})
    return sorted(
        reason if len(names) == everywhere else f"{', '.join(names)}: {reason}"
        for reason, names in of.items()
    )


def whole_numbers(option: str, text: str, least: int, most: int) -> list[int]:
    found = []
    for word in text.split(","):
        if not word.strip().isdecimal() or len(word) > 6 or not least <= int(word) <= most:
            fail(
                f'{option} "{word.strip()}": a whole number from {least} to {most}, several with commas',
                BAD_INPUT,
            )
        found.append(int(word))
    if len(set(found)) != len(found):
        fail(f"{option} {text}: a value is there twice", BAD_INPUT)
    return found
