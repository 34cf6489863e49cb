"""The command line. Every command ends with one of the documented codes and never with a traceback.

0 done and within limits, 1 a limit failed, 2 bad input or usage, 3 this environment cannot run it, 4 incomplete.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from wiregauge import __version__
from wiregauge.calibrate.commands import app as calibrate_app

__all__ = ["app", "main"]

LIMIT_FAILED, BAD_INPUT, NO_ENVIRONMENT, INCOMPLETE, INTERNAL = 1, 2, 3, 4, 70

app = typer.Typer(
    name="wiregauge",
    help="Tells how deterministic an Ethernet network is, and how far that answer can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(calibrate_app)

TestFile = Annotated[Path, typer.Argument(metavar="TEST", help="Test file (XML).", show_default=False)]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="Run directory.", show_default=False)]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray|ray://HOST:PORT",
        help="Who does the work: this process, a Ray of this machine (or the cluster that RAY_ADDRESS names), or a Ray "
        "cluster. The answers are the same.",
    ),
]
StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="ray: where nodes that share no file system meet: s3://bucket/prefix or another URL of fsspec.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON of the documented schema instead of text.")]


class BenchName(StrEnum):
    """Where a test can run."""

    SIM = "sim"
    NETNS = "netns"


class OctetName(StrEnum):
    """The octet of a frame that a stamp belongs to."""

    PREAMBLE = "preamble"
    FIRST = "first"
    LAST = "last"


def main() -> NoReturn:
    """Entry point of the `wiregauge` command."""
    try:
        app()
    except BrokenPipeError:  # `wiregauge show … | head`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - only so that the interpreter can flush and close
        sys.exit(0)
    except SystemExit as end:
        # Rich ends with 1 when nobody reads any more, which would say that a limit failed.
        sys.exit(0 if isinstance(end.__context__, BrokenPipeError) else end.code)
    except Exception as error:  # noqa: BLE001 - the last line of defence between a bug and the user
        sys.exit(_report_error(error))
    sys.exit(0)


def _report_error(error: Exception) -> int:
    """One clear message for whatever went wrong; returns the exit code."""
    from wiregauge.records import RunDirectoryError

    if isinstance(error, RunDirectoryError):
        _say(str(error))
        return BAD_INPUT
    from wiregauge.cluster import EngineError, StorageError

    if isinstance(error, EngineError | StorageError):
        _say(str(error))
        return NO_ENVIRONMENT
    if os.environ.get("WIREGAUGE_TRACEBACK"):
        raise error
    _say(
        f"internal error: {type(error).__name__}: {error}. This is a bug in wiregauge, not in your test; "
        "run again with WIREGAUGE_TRACEBACK=1 in the environment and report what it prints"
    )
    return INTERNAL


def _say(text: str) -> None:
    print(f"wiregauge: {text}", file=sys.stderr)


def _fail(text: str, code: int) -> NoReturn:
    _say(text)
    raise typer.Exit(code)


def _load(test: Path) -> Any:
    from wiregauge.config import TestError, load

    try:
        return load(test)
    except TestError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from error


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"wiregauge {__version__}")
        raise typer.Exit


@app.command()
def check(
    tests: Annotated[
        list[Path], typer.Argument(metavar="TEST...", help="Test files (XML).", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Check test files: structure, references, routes, capacities. Exit code 2 names every fault found."""
    from wiregauge.config import TestError, load

    results: list[dict[str, Any]] = []
    for test in tests:
        try:
            campaign = load(test).campaign
        except TestError as error:
            results.append(
                {"file": str(test), "ok": False, "diagnostics": [d.as_dict() for d in error.diagnostics]}
            )
            if not as_json:
                print(error, file=sys.stderr)
            continue
        seconds = sum(run["warm_up"] + run["duration"] + run["drain"] for run in campaign["runs"]) / 1e12
        results.append(
            {
                "file": str(test),
                "ok": True,
                "name": campaign["name"],
                "runs": len(campaign["runs"]),
                "planned_seconds": round(seconds, 3),
                "warnings": campaign["warnings"],
            }
        )
        if not as_json:
            runs = len(campaign["runs"])
            print(f"{test}: good: {runs} run{'s' if runs != 1 else ''}, {seconds:.1f} s of traffic planned")
            for warning in campaign["warnings"]:
                print(f"{test}: note: {warning}")
    if as_json:
        print(json.dumps({"schema": 1, "tests": results}, indent=1))
    if not all(result["ok"] for result in results):
        raise typer.Exit(BAD_INPUT)


@app.command()
def run(
    test: TestFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Run directory to make.", show_default="NAME-run"),
    ] = None,
    bench: Annotated[
        BenchName | None,
        typer.Option(
            help="Where to run: sim = simulator, netns = real frames between namespaces of this machine.",
            show_default="what the test says, or sim",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="Simulated runs side by side.",
            show_default="one per processor",
        ),
    ] = None,
    engine: EngineName = "local",
    storage: StorageUrl = None,
    realtime: Annotated[
        bool | None,
        typer.Option(
            "--realtime/--no-realtime",
            help="netns: ask for real-time scheduling of servicing threads.",
            show_default="yes",
        ),
    ] = None,
    rootless: Annotated[
        bool, typer.Option("--rootless", help="netns: use a user namespace even when root.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a test on a bench, judge it and write the report."""
    from wiregauge.benches import beyond_namespaces
    from wiregauge.benches.netns import ENCLOSED
    from wiregauge.records import RunDirectory

    loaded = _load(test)
    chosen = bench if bench is not None else BenchName(loaded.campaign["bench"])
    _refuse_without_effect(chosen, jobs=jobs, realtime=realtime, rootless=rootless)
    _check_engine(engine, storage, chosen)
    target = out if out is not None else Path(f"{loaded.campaign['name']}-run")
    RunDirectory.check_free(target)
    if chosen is BenchName.NETNS:
        missing = beyond_namespaces(loaded.campaign)
        if missing:
            for line in missing:
                _say(f"{test}: {line}")
            _fail(
                "this test cannot run between namespaces; change what is named above, or run it with --bench sim",
                NO_ENVIRONMENT,
            )
        if ENCLOSED not in os.environ:
            _enclose(rootless=rootless)
    with contextlib.ExitStack() as ending:
        cluster = None
        if engine != "local":
            from wiregauge.cluster import connected

            cluster = ending.enter_context(connected(engine, storage=storage, jobs=jobs))
        _run_here(
            test,
            loaded,
            target,
            chosen,
            jobs=jobs,
            realtime=realtime is not False,
            cluster=cluster,
            disconnected=ending.close,
            as_json=as_json,
        )


def _refuse_without_effect(
    bench: BenchName, *, jobs: int | None, realtime: bool | None, rootless: bool
) -> None:
    """An option that would change nothing is a mistake somebody should know of."""
    if bench is BenchName.SIM and (rootless or realtime is not None):
        option = "--rootless" if rootless else "--realtime" if realtime else "--no-realtime"
        _fail(f"{option} has no meaning for --bench sim; leave it out or run with --bench netns", BAD_INPUT)
    if bench is BenchName.NETNS and jobs is not None:
        _fail(
            "--jobs has no meaning for --bench netns, whose runs follow one another; leave it out", BAD_INPUT
        )


def _check_engine(engine: str, storage: str | None, bench: BenchName = BenchName.SIM) -> None:
    """Refuses an engine that is none, and what would have no effect."""
    from wiregauge.cluster import EngineNameError, read_engine

    try:
        read_engine(engine)
    except EngineNameError as error:
        _fail(f"--engine {error}", BAD_INPUT)
    if engine != "local" and bench is BenchName.NETNS:
        _fail(
            "--engine has no meaning for --bench netns, whose frames are those of this machine; leave it out",
            BAD_INPUT,
        )
    if engine == "local" and storage is not None:
        _fail("--storage has an effect with --engine ray only; leave it out", BAD_INPUT)


def _enclose(*, rootless: bool) -> NoReturn:
    """Starts this very command again inside namespaces that end with it."""
    from wiregauge.benches import BenchError, enclose

    try:
        enclose(rootless=rootless)
    except BenchError as error:
        _fail(str(error), NO_ENVIRONMENT)


def _run_here(
    test: Path,
    loaded: Any,
    target: Path,
    bench: BenchName,
    *,
    jobs: int | None,
    realtime: bool,
    cluster: Any,
    disconnected: Callable[[], None],
    as_json: bool,
) -> None:
    from wiregauge.benches import NetnsBench
    from wiregauge.cluster import EngineError, StorageError, simulate_on
    from wiregauge.master import ProgressView, new_manifest, run_campaign, simulate_campaign
    from wiregauge.records import RunDirectory, RunDirectoryError

    console = Console(stderr=True)
    existed = target.exists()
    manifest = new_manifest(loaded.campaign, file=str(test), sha256=loaded.sha256, bench=bench.value)
    if bench is BenchName.NETNS:
        manifest["calibrations"] = _cited(loaded.campaign, realtime=realtime)
    try:
        directory = RunDirectory.create(target, manifest, loaded.xml)
    except RunDirectoryError as error:
        _discard(target, existed=existed)
        _fail(str(error), BAD_INPUT)
    try:
        for warning in loaded.campaign["warnings"]:
            console.print(f"note: {warning}", highlight=False, markup=False)
        runs = loaded.campaign["runs"]
        with ProgressView(console, runs, real_time=bench is BenchName.NETNS) as view:
            if cluster is not None:
                simulate_on(cluster, directory, view, jobs)
                disconnected()
            elif bench is BenchName.SIM:
                simulate_campaign(directory, view, jobs or len(os.sched_getaffinity(0)))
            else:
                run_campaign(directory, NetnsBench(loaded.campaign, realtime=realtime), view)
        with contextlib.suppress(OSError):
            (target / "spool").rmdir()
        if not directory.runs:
            reason = directory.manifest["reason"] or "nothing was run"
            directory.close()
            _discard(target, existed=existed)
            _fail(reason, INCOMPLETE if directory.manifest["state"] == "interrupted" else NO_ENVIRONMENT)
        code = _judge_and_show(directory, target, as_json=as_json, with_report=True)
    except (EngineError, StorageError):  # before any run began
        _discard(target, existed=existed)
        raise
    except RunDirectoryError as error:  # the disk failed under a run: what is on it can be judged elsewhere
        _fail(str(error), INCOMPLETE)
    finally:
        directory.close()
    raise typer.Exit(code)


def _cited(campaign: dict[str, Any], *, realtime: bool) -> list[dict[str, Any]]:
    """The calibrations this run rests on; a folder that cannot be read is worth a word, never the run."""
    from wiregauge.calibrate import CalibrationError, Store
    from wiregauge.calibrate.citing import cite

    try:
        return cite(campaign, driver="veth", realtime=realtime, store=Store())
    except CalibrationError as error:
        _say(f"no calibration is cited: {error}")
        return []


def _discard(target: Path, *, existed: bool) -> None:
    """Removes a run directory in which nothing was measured, so that the same command can be given again."""
    if not existed:
        shutil.rmtree(target, ignore_errors=True)
        return
    for entry in target.iterdir() if target.is_dir() else ():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _judge_and_show(
    directory: Any, target: Path, *, as_json: bool, with_report: bool, worst: int | None = None
) -> int:
    """Judges, shows, and with `worst` also explains, with so many messages per flow; returns the exit code."""
    from wiregauge import measures
    from wiregauge.measures import explaining
    from wiregauge.records import RunDirectoryError

    judgement = measures.judge(target)
    explanation = explaining.explain(judgement, worst=worst) if worst is not None else None
    if as_json:
        shown = measures.show_json(judgement)
        if explanation is not None:
            shown["explained"] = explaining.explain_json(explanation)
        print(measures.json_text(shown))
    else:
        measures.show_text(judgement, Console())
        if explanation is not None:
            explaining.explain_text(explanation, Console())
    unwritten: str | None = None
    if with_report:
        from wiregauge import report as reports

        try:
            path = reports.write(target)
        except RunDirectoryError as error:  # the disk may be full; what was measured is safe by now
            unwritten = str(error)
        else:
            if not as_json:
                print(f"report: {path}")
    if directory.manifest["state"] != "complete":
        _say(f"incomplete: {directory.manifest['reason']}")
    if unwritten is not None:
        _say(f"the report is missing: {unwritten}")
    if unwritten is not None or directory.manifest["state"] != "complete":
        return INCOMPLETE
    return measures.exit_code(judgement)


def _open(place: Path) -> Any:
    """Opens a run directory; one whose testmaster was killed is made readable first."""
    from wiregauge.records import RunDirectory, recover

    directory = RunDirectory.open(place)
    if directory.is_being_written():
        _fail(f"{place}: this campaign is still running; wait for it to end", INCOMPLETE)
    if recover(directory):
        why = directory.manifest.get("reason") or "tables were missing and were made anew from the records"
        _say(f"{place}: {why}")
    if not directory.runs:
        _fail(f"{place}: no run was started, there is nothing to show", INCOMPLETE)
    return directory


@app.command()
def track(
    place: RunDir,
    run: Annotated[
        list[int] | None,
        typer.Option(
            "--run", metavar="N", help="Only this run; may be given several times.", show_default=False
        ),
    ] = None,
    engine: EngineName = "local",
    parts: Annotated[
        int | None,
        typer.Option(
            "--parts",
            metavar="N",
            min=1,
            help="ray: divide the flows of a run among so many tasks.",
            show_default="one per processor",
        ),
    ] = None,
    storage: StorageUrl = None,
    as_json: AsJson = False,
) -> None:
    """Track the stored records of a run directory again, judge them and write the report.

    For tables that are damaged, missing or of an older version, for records that were put there by hand, and on
    a cluster for more records than one machine tracks in good time. Records are only read; what is made of them
    is replaced, run by run.
    """
    from wiregauge.cluster import retrack
    from wiregauge.records import RunDirectory

    _check_engine(engine, storage)
    if engine == "local" and parts is not None:
        _fail(
            "--parts has an effect with --engine ray only, here all cores are used; leave it out", BAD_INPUT
        )
    directory = RunDirectory.open(place)
    if directory.manifest["state"] == "running" or not all(
        directory.record_files(entry["index"]) for entry in directory.runs
    ):
        directory = _open(place)
    known = [entry["index"] for entry in directory.runs]
    chosen = sorted(set(run)) if run else known
    for index in chosen:
        if index not in known:
            _fail(f"--run {index}: {place} has no such run; it has {_listed(known)}", BAD_INPUT)
    stopped = retrack(
        directory,
        chosen,
        engine,
        parts=parts,
        storage=storage,
        tracked=lambda index: _say(f"run {index}: tracked"),
    )
    if stopped is not None:
        _fail(f"{stopped}: runs that were not tracked are as they were", INCOMPLETE)
    raise typer.Exit(_judge_and_show(directory, place, as_json=as_json, with_report=True))


def _listed(runs: list[int]) -> str:
    return f"runs {runs[0]} to {runs[-1]}" if len(runs) > 1 else f"run {runs[0]}" if runs else "none"


@app.command()
def show(
    place: RunDir,
    explained: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Also say what recurs, what changes, and why the worst messages of each flow took long.",
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
    as_json: AsJson = False,
) -> None:
    """Judge a run directory again and show measures, validity and verdict."""
    if worst is not None and not explained:
        _fail("--worst has an effect with --explain only; add it, or leave --worst out", BAD_INPUT)
    count = (worst or 10) if explained else None
    raise typer.Exit(_judge_and_show(_open(place), place, as_json=as_json, with_report=False, worst=count))


@app.command()
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
) -> None:
    """Write the report of run directories again, and the figures of one as files. `compare` lays two side by side."""
    from wiregauge import report as reports

    if len(places) > 1 and (png is not None or svg is not None):
        _fail("--png and --svg are for one run directory; name one, or leave them out", BAD_INPUT)
    for place in places:
        _open(place)
        print(f"report: {reports.write(place)}")
    for folder, kind in ((png, "png"), (svg, "svg")):
        if folder is not None:
            for path in reports.export_figures(places[0], folder, {kind}):
                print(f"figure: {path}")


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
    typer.Option(
        "--out", "-o", metavar="FILE", help="Also write a page (HTML, one file).", show_default=False
    ),
]


def _thresholds(texts: list[str] | None) -> list[Any]:
    from wiregauge.measures.comparing import ThresholdError, read_threshold

    try:
        return [read_threshold(text) for text in texts or []]
    except ThresholdError as error:
        _fail(f"--threshold {error}", BAD_INPUT)


def _at(option: str, texts: list[str] | None) -> dict[str, str]:
    """AXIS=VALUE of an option that chooses points."""
    chosen: dict[str, str] = {}
    for text in texts or []:
        axis, equals, value = text.partition("=")
        if not (axis and equals and value):
            _fail(f'{option} "{text}": write AXIS=VALUE, as in load=0%', BAD_INPUT)
        if axis in chosen:
            _fail(f"{option}: {axis} is given twice; a side has one value of an axis", BAD_INPUT)
        chosen[axis] = value
    return chosen


@app.command()
def compare(
    base: Annotated[
        Path, typer.Argument(metavar="BASE", help="Run directory to compare with.", show_default=False)
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Run directory to judge.", show_default=False)],
    thresholds: Thresholds = None,
    equivalence: Annotated[
        bool,
        typer.Option(
            "--equivalence",
            help="Ask whether the two are the same: judge only what --threshold names, and exit with 1 unless "
            "every such shift is shown to lie within its threshold.",
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
    """Lay two run directories side by side: what moved, by how much, and did it get worse (exit code 1)?"""
    from wiregauge import measures
    from wiregauge.measures import comparing

    wanted = _thresholds(thresholds)
    if equivalence and not wanted:
        _fail("--equivalence needs a --threshold: the same within what?", BAD_INPUT)
    at = _at("--base-at", base_at), _at("--new-at", new_at)
    for place in dict.fromkeys((base, new)):
        _open(place)
    judgements = measures.judge(base), measures.judge(new)
    try:
        found = comparing.compare(
            *judgements, thresholds=wanted, equivalence=equivalence, base_at=at[0], new_at=at[1]
        )
    except comparing.MatchError as error:
        _fail(str(error), BAD_INPUT)
    if as_json:
        print(json.dumps(comparing.compare_json(found), indent=1))
    else:
        comparing.compare_text(found, Console())
    if out is not None:
        from wiregauge import report as reports

        path = reports.write_compare(found, out)
        if not as_json:
            print(f"page: {path}")
    raise typer.Exit(found.exit_code)


class Reference(StrEnum):
    """What the runs of a trend are held against."""

    PREVIOUS = "previous"
    FIRST = "first"


@app.command()
def trend(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="DIR DIR...", help="Run directories, in any order.", show_default=False),
    ],
    thresholds: Thresholds = None,
    against: Annotated[
        Reference,
        typer.Option(
            help="Hold each run against the median of the previous ones since the last step, or the first."
        ),
    ] = Reference.PREVIOUS,
    out: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Follow figures over many runs by date: intervals, steps, and is the newest run worse (exit code 1)?"""
    from wiregauge import measures
    from wiregauge.measures import comparing

    wanted = _thresholds(thresholds)
    each = list({place.resolve(): place for place in places}.values())
    if len(each) < 2:
        _fail("a trend needs at least two different run directories; name more", BAD_INPUT)
    for place in each:
        _open(place)
    try:
        found = comparing.trend(
            [measures.judge(place) for place in each],
            thresholds=wanted,
            against="first" if against is Reference.FIRST else "previous",
        )
    except comparing.MatchError as error:
        _fail(str(error), BAD_INPUT)
    if as_json:
        print(json.dumps(comparing.trend_json(found), indent=1))
    else:
        comparing.trend_text(found, Console())
    if out is not None:
        from wiregauge import report as reports

        path = reports.write_trend(found, out)
        if not as_json:
            print(f"page: {path}")
    raise typer.Exit(found.exit_code)


@app.command()
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
            help="The other way: make a run directory from a capture (pcapng, pcap) of our messages; repeatable.",
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
            help="--from: the octet of a frame that stamps belong to, for taps that do not say.",
            show_default="first",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="--from: line rate of taps that do not say, as 1Gbit/s.",
            show_default=False,
        ),
    ] = None,
    clocks_agree: Annotated[
        str | None,
        typer.Option(
            "--clocks-agree",
            metavar="TIME",
            help="--from: by how much the clocks of several captures differ at most, as 50ns.",
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
    from wiregauge.export import Choice, ExportError, write

    if captures:
        if place is not None or to is not None or what is not None or flow is not None or measure is not None:
            _fail(
                "--from makes a run directory: it takes --out DIR, and no DIR, --to, --what, --flow or --measure",
                BAD_INPUT,
            )
        if out is None or out == "-":
            _fail("--from needs --out DIR, the run directory to make", BAD_INPUT)
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
        _fail(
            "--test, --tap, --octet, --rate, --clocks-agree and --json have an effect with --from only",
            BAD_INPUT,
        )
    if place is None or to is None or out is None:
        _fail(
            "name the run directory, --to FORMAT and --out FILE; or --from CAPTURE and --out DIR", BAD_INPUT
        )
    _open(place)
    try:
        notes = write(place, to, None if out == "-" else Path(out), what, Choice(run, flow, measure))
    except ExportError as error:
        _fail(str(error), BAD_INPUT)
    for note in notes:
        _say(note)


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
    from wiregauge.taps import Captured, CaptureError, import_captures, nanoseconds, rate_bps

    if test is None and (places or run is not None):
        _fail("--tap and --run need --test: without a test the taps themselves are the network", BAD_INPUT)
    wrong = [place for place in places if not all(place.partition("="))]
    if wrong:
        _fail(f'--tap "{wrong[0]}": write NAME=NODE or NAME=NODE:PORT', BAD_INPUT)
    loaded = _load(test) if test is not None else None
    if loaded is not None and run is None and len(loaded.campaign["runs"]) > 1:
        _fail(
            f"{test} has {len(loaded.campaign['runs'])} runs; say which was captured with --run N", BAD_INPUT
        )
    try:
        captured = Captured(
            files=captures,
            test=loaded.campaign if loaded is not None else None,
            test_file=str(test or ""),
            test_xml=loaded.xml if loaded is not None else b"",
            run=run or 0,
            places={name: node for name, _, node in (place.partition("=") for place in places)},
            octet=octet.value if octet is not None else None,
            rate_bps=rate_bps(rate) if rate is not None else None,
            agree_ns=nanoseconds(clocks_agree) if clocks_agree is not None else None,
        )
        directory = import_captures(captured, out)
    except CaptureError as error:
        _fail(str(error), BAD_INPUT)
    try:
        return _judge_and_show(directory, out, as_json=as_json, with_report=True)
    finally:
        directory.close()


@app.command()
def dissector(
    install: Annotated[
        bool,
        typer.Option(
            "--install",
            help="Put it where this user's Wireshark looks for plugins, in place of an older one.",
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
        _fail(str(error), NO_ENVIRONMENT)
    print(f"installed: {place}")


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Show which benches work here, what this machine grants to a measurement, and the cure for what it does not."""
    from wiregauge.benches import Findings, benches_here, examine

    found: Findings = examine()
    benches = benches_here(found)
    if as_json:
        print(json.dumps({**found, "benches": benches}, indent=1))
        return
    for heading, items, word in (
        ("bench", benches, "works"),
        ("what", found["findings"], "granted"),
    ):
        if not items:
            continue
        table = Table(heading, word, "detail", "cure", box=None, header_style="bold")
        for column in table.columns:
            column.overflow = "fold"  # a cure that is cut cannot be typed
        for item in items:
            mark = "[green]yes[/]" if item[word] else "[yellow]no[/]"
            detail = "" if item["detail"] == "yes" else item["detail"]
            table.add_row(escape(item["name"]), mark, escape(detail), escape(item.get("cure", "")))
        Console().print(table)
    stamping = Table("interface", "stamps", box=None, header_style="bold")
    for interface in found.get("interfaces", []):
        stamping.add_row(escape(interface["name"]), escape(interface["detail"]))
    if stamping.row_count:
        Console().print(stamping)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def agent(context: typer.Context) -> None:
    """Run the agent program (`wiregauge agent serve --help`)."""
    from wiregauge.benches.base import BenchError, agent_program

    try:
        program = str(agent_program())
    except BenchError as error:
        _fail(str(error), NO_ENVIRONMENT)
    os.execv(program, [program, *context.args])
