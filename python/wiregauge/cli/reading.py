"""`show` and `report`: one run directory again; `compare` and `trend`: two and many side by side."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.reflector import show_session
from wiregauge.cli.shared import (
    A_PAGE,
    AsJson,
    RunDir,
    judge_and_show,
    leave_with_page,
    open_run,
    points_at,
    readable,
)
from wiregauge.cli.streaming import report_directory, show_streams
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, exit_code, fail, make_console, put, put_errors, say

if TYPE_CHECKING:
    from wiregauge.report import Bounded

STREAMS: Final = "streams of one place"
SESSION: Final = "a session with a reflector"


def _held(place: Path) -> str | None:
    """What a directory holds instead of a run. Nothing is imported for what is no directory."""
    try:
        if not place.is_dir():
            return None
    except OSError:  # a name that no file can have
        return None
    from wiregauge.reflectors import is_of_session
    from wiregauge.streams import is_of_streams

    return STREAMS if is_of_streams(place) else SESSION if is_of_session(place) else None


def _show_held(place: Path, held: str, *, as_json: bool) -> int:
    """Shows what a directory holds instead of a run; returns the exit code."""
    from wiregauge import reflectors, streams

    try:
        if held == STREAMS:
            return show_streams(streams.opened(place), as_json=as_json)
        return show_session(reflectors.opened(place), as_json=as_json)
    except (reflectors.SessionError, streams.StreamsError) as error:
        fail(str(error), BAD_INPUT)


def show(
    place: RunDir,
    explained: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also explain what recurs, what changes, and why the worst messages of each flow took so long.",
        ),
    ] = False,
    worst: Annotated[
        int | None,
        typer.Option(
            "--worst",
            metavar="N",
            min=1,
            max=1000,
            help="Worst messages to explain per flow.",
            show_default="10",
        ),
    ] = None,
    flows: Annotated[
        list[int] | None,
        typer.Option(
            "--flow",
            metavar="N",
            min=1,
            help=meant(
                "--flow",
                ", in full, whatever the size of the run; repeatable. Verdict and validity stay those of all flows",
            ),
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    if worst is not None and not explained:
        fail("--worst has an effect with --explain only; add it, or leave --worst out", BAD_INPUT)
    held = _held(place)
    if held is not None:
        if explained or flows:
            fail(f"{place}: holds {held}; leave --explain and --flow out", BAD_INPUT)
        raise typer.Exit(_show_held(place, held, as_json=as_json))
    count = (worst or 10) if explained else None
    with readable(place) as (directory, here):
        known = {flow.id for run in directory.plan.runs for flow in run.flows}
        for number in flows or ():
            if number not in known:
                fail(f"--flow {number}: the test has no such flow; its numbers are in test.xml", BAD_INPUT)
        code = judge_and_show(here, as_json=as_json, with_report=False, worst=count, flows=flows or ())
    raise typer.Exit(code)


def report(
    places: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run directories.", show_default=False)
    ],
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="DIR", help="Also write every figure as PNG.", show_default=False),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="DIR", help="Also write every figure as SVG.", show_default=False),
    ] = None,
    bounds: Annotated[
        bool,
        typer.Option(
            "--bounds",
            help="Show the longest latencies beside the worst-case bounds of the test; exit code 1 if one exceeds its "
            "bound.",
        ),
    ] = False,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help=meant(
                "--beside",
                " of runs of the test on the same axis, such as simulated ones; repeatable",
                only="With --bounds",
            ),
            show_default=False,
        ),
    ] = None,
) -> None:
    from wiregauge import report as reports
    from wiregauge import results
    from wiregauge.cli.progress import Work
    from wiregauge.cli.whole import AFTER_RUNS, Whole

    if len(places) > 1 and (png is not None or svg is not None):
        fail("--png and --svg are for one run directory; name one, or leave them out", BAD_INPUT)
    if beside and not bounds:
        fail("--beside has an effect with --bounds only; add it, or leave --beside out", BAD_INPUT)
    exceeded = unfit = False
    figures = sum(folder is not None for folder in (png, svg))
    # Figures that become files are explained and drawn once more.
    rounds = len(places) if len(places) > 1 else 1 + figures
    whole = Whole(AFTER_RUNS, rounds=rounds)
    for place in places:
        held = _held(place)
        if held == SESSION:
            fail(f"{place}: holds {held}, which has no page; `wiregauge show` prints it", BAD_INPUT)
        if held == STREAMS:
            if figures or bounds:
                fail(f"{place}: holds {held}; leave --png, --svg and --bounds out", BAD_INPUT)
            report_directory(place)
            continue
        open_run(place)
        with Work(make_console(stderr=True), whole):
            judgement = results.judge(place, unkept=say)
        bounded = _bounded(place, beside or []) if bounds else None
        with Work(make_console(stderr=True), whole, last=place == places[-1] and not figures):
            written = reports.write(place, judgement, bounded)
        put(f"report: {written}")
        for alarm in bounded.alarms if bounded is not None else ():
            say(f"ALARM: {alarm}")
            exceeded = True
        for sentence in bounded.invalid if bounded is not None else ():
            say(sentence)
            unfit = True
        asked = [(folder, kind) for folder, kind in ((png, "png"), (svg, "svg")) if folder is not None]
        for folder, kind in asked:
            with Work(make_console(stderr=True), whole, last=kind == asked[-1][1]):
                paths = reports.export_figures(place, folder, {kind}, judgement, bounded)
            for path in paths:
                put(f"figure: {path}")
    if code := exit_code(answered=not unfit, failed=exceeded):
        raise typer.Exit(code)


def _bounded(place: Path, beside: list[Path]) -> Bounded:
    """A run beside the bounds of its test; what has none is refused by name."""
    from wiregauge.bounds import NoAnswerError
    from wiregauge.bounds.against import NotComparableError
    from wiregauge.config import TestError
    from wiregauge.report import bounded

    try:
        return bounded(place, beside)
    except TestError as error:
        put_errors(error)
        raise typer.Exit(BAD_INPUT) from error
    except NotComparableError as error:
        fail(str(error), BAD_INPUT)
    except NoAnswerError as error:
        fail(str(error), INCOMPLETE)


Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="FIGURE=VALUE",
        help="A change up to VALUE does not matter: latency.p99=5us, 10:rtt=5% (of flow 10), loss=0.1%. "
        "May be given several times.",
        show_default=False,
    ),
]


PageFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help=meant("--out", f": {A_PAGE}"), show_default=False),
]


def compare(
    base: Annotated[
        Path,
        typer.Argument(
            metavar="BASE",
            help="Run directory or session to compare with, or a file of irtt (JSON) or flent.",
            show_default=False,
        ),
    ],
    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW", help="Run directory or session to judge, or such a file.", show_default=False
        ),
    ],
    thresholds: Thresholds = None,
    equivalence: Annotated[
        bool,
        typer.Option(
            "--equivalence",
            help="Ask whether the two are the same: judge only what --threshold names; exit code 0 if "
            "every such shift is shown to lie within its threshold, 1 if one lies beyond, 4 if the data cannot tell.",
        ),
    ] = False,
    base_at: Annotated[
        list[str] | None,
        typer.Option(
            "--base-at", metavar="AXIS=VALUE", help="Take only these points of BASE.", show_default=False
        ),
    ] = None,
    new_at: Annotated[
        list[str] | None,
        typer.Option(
            "--new-at",
            metavar="AXIS=VALUE",
            help="Take only these points of NEW. An axis given on both sides takes no part in matching.",
            show_default=False,
        ),
    ] = None,
    out: PageFile = None,
    as_json: AsJson = False,
) -> None:
    from wiregauge import report as reports
    from wiregauge.cli.foreign import run_directories

    wanted = _thresholds(thresholds)
    if equivalence and not wanted:
        fail("--equivalence needs a --threshold", BAD_INPUT)
    at = points_at("--base-at", base_at), points_at("--new-at", new_at)
    each = tuple(dict.fromkeys((base, new)))
    if out is not None:
        reports.check_page(out)
    with run_directories(each) as directories:
        _compared(directories, (base, new), at, wanted, out, equivalence=equivalence, as_json=as_json)


def _compared(
    directories: Mapping[Path, Path],
    sides: tuple[Path, Path],
    at: tuple[Mapping[str, str], Mapping[str, str]],
    wanted: list[Any],
    out: Path | None,
    *,
    equivalence: bool,
    as_json: bool,
) -> NoReturn:
    """Judges the directory of each side, compares and shows them, and ends with the answer."""
    from msgspec.structs import replace

    from wiregauge import report as reports
    from wiregauge import results
    from wiregauge.cli.progress import Work
    from wiregauge.cli.whole import AFTER_RUNS, Whole
    from wiregauge.measures import comparing
    from wiregauge.results.comparing import compare_chunks, compare_text

    base, new = sides
    judged = {}
    whole = Whole({"judging": AFTER_RUNS["judging"]}, rounds=len(directories))
    for place, directory in directories.items():
        with Work(make_console(stderr=True), whole, last=place == sides[-1]):
            judged[place] = results.judge(directory, unkept=say)
    try:
        found = comparing.compare(
            judged[base], judged[new], thresholds=wanted, equivalence=equivalence, base_at=at[0], new_at=at[1]
        )
    except comparing.MatchError as error:
        text = str(error)
        for place, directory in directories.items():
            text = text.replace(str(directory), str(place))
        fail(text, BAD_INPUT)
    found = replace(found, base=replace(found.base, directory=base), new=replace(found.new, directory=new))
    if as_json:
        for chunk in compare_chunks(found):
            sys.stdout.write(chunk)
        put()
    else:
        compare_text(found, make_console())
    leave_with_page(found.exit_code, out, partial(reports.write_compare, found), as_json=as_json)


class Reference(StrEnum):
    """What the runs of a trend are held against."""

    PREVIOUS = "previous"
    FIRST = "first"


def trend(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR...", help="Run directories, in any order.", show_default=False),
    ],
    thresholds: Thresholds = None,
    reference: Annotated[
        Reference,
        typer.Option(
            help="Hold each run against the median of the previous ones since the last step, or the first."
        ),
    ] = Reference.PREVIOUS,
    out: PageFile = None,
    as_json: AsJson = False,
) -> None:
    from wiregauge import report as reports
    from wiregauge import results
    from wiregauge.measures import comparing
    from wiregauge.results.comparing import trend_json, trend_text

    wanted = _thresholds(thresholds)
    each = list({os.path.realpath(place): place for place in places}.values())
    if len(each) < 2:
        fail("a trend needs at least two different run directories; name more", BAD_INPUT)
    if out is not None:
        reports.check_page(out)
    for place in each:
        open_run(place)
    try:
        found = comparing.trend(
            [results.judge(place, unkept=say) for place in each],
            thresholds=wanted,
            against="first" if reference is Reference.FIRST else "previous",
        )
    except comparing.MatchError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        print(json.dumps(trend_json(found), indent=1))
    else:
        trend_text(found, make_console())
    leave_with_page(found.exit_code, out, partial(reports.write_trend, found), as_json=as_json)


def _thresholds(texts: list[str] | None) -> list[Any]:
    from wiregauge.measures.comparing import ThresholdError, read_threshold

    try:
        return [read_threshold(text) for text in texts or []]
    except ThresholdError as error:
        fail(f"--threshold {error}", BAD_INPUT)
