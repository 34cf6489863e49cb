"""`check`, `run` and `track`: from a test file to a run directory that is judged."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiregauge.cli.alarms import (
    AlarmTexts,
    CaptureAround,
    DiskSize,
    MetricsAddress,
    OnAlarm,
    check_alarms,
    monitor_options,
)
from wiregauge.cli.options import FIXES, meant
from wiregauge.cli.shared import (
    AsJson,
    EngineName,
    RunDir,
    Settings,
    StorageUrl,
    bench_name,
    check_engine,
    judge_and_show,
    load_test,
    open_run,
    show_judgement,
    who_plays,
)
from wiregauge.cli.tsn import show_host_commands
from wiregauge.cli.whole import AFTER_RUNS
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, make_console, put, put_errors, say

if TYPE_CHECKING:
    from wiregauge.cli.progress import ProgressView
    from wiregauge.config import Loaded
    from wiregauge.measures import Judgement
    from wiregauge.plan import Campaign
    from wiregauge.records import Traits
    from wiregauge.runner import Bench


def check(
    tests: Annotated[
        list[Path], typer.Argument(metavar="TEST...", help="Test files (XML).", show_default=False)
    ],
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    from wiregauge.config import TestError, load

    results: list[dict[str, Any]] = []
    for test in tests:
        try:
            campaign = load(test, settings or ()).campaign
        except TestError as error:
            results.append(
                {
                    "file": str(test),
                    "ok": False,
                    "faults": error.total,
                    "diagnostics": [d.as_dict() for d in error.diagnostics],
                }
            )
            if not as_json:
                put_errors(error)
            continue
        results.append(
            {
                "file": str(test),
                "ok": True,
                "name": campaign.name,
                "runs": len(campaign.runs),
                "planned_seconds": round(campaign.planned_s, 3),
                "warnings": list(campaign.warnings),
            }
        )
        if not as_json:
            runs = len(campaign.runs)
            put(
                f"{test}: good: {runs} run{'s' if runs != 1 else ''}, {campaign.planned_s:.1f} s of traffic planned"
            )
            for warning in campaign.warnings:
                put(f"{test}: note: {warning}")
    if as_json:
        print(json.dumps({"schema": 1, "tests": results}, indent=1))
    if not all(result["ok"] for result in results):
        raise typer.Exit(BAD_INPUT)


def run(
    test: Annotated[
        Path | None,
        typer.Argument(metavar="TEST", help="Test file (XML); none with --resume.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant("--out", ": a new run directory"),
            show_default="NAME-run",
        ),
    ] = None,
    bench: Annotated[
        str | None,
        typer.Option(
            parser=bench_name,
            metavar="[sim|netns|lab]",
            help=meant("--bench", ", lab = between hosts"),
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
            help=meant("--jobs"),
            show_default="one per processor",
        ),
    ] = None,
    engine: EngineName = "local",
    storage: StorageUrl = None,
    realtime: Annotated[
        bool | None,
        typer.Option(
            "--realtime/--no-realtime",
            help=meant("--realtime", only="netns"),
            show_default="yes",
        ),
    ] = None,
    rootless: Annotated[
        bool, typer.Option("--rootless", help="netns: use a user namespace even when root.")
    ] = False,
    switches: Annotated[
        str | None,
        typer.Option(
            "--switches",
            parser=who_plays,
            metavar="[model|kernel]",
            help="netns: what plays switches and links: the simulator's engine in real time, or kernel bridges.",
            show_default="model",
        ),
    ] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", min=0, help=meant("--seed", ", in place of the test's"), show_default=False
        ),
    ] = None,
    lab: Annotated[
        Path | None,
        typer.Option(
            "--lab",
            metavar="PATH",
            help=meant("--lab", only="lab"),
            show_default="WIREGAUGE_LAB, or ~/.config/wiregauge/lab",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="TIME",
            help="lab: how long to wait for hosts that other tests use.",
            show_default="not at all",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help=meant("--resume", ": make the runs that the campaign lacks"),
            show_default=False,
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help=meant("--fix", f" ({FIXES}) while the test goes on, and as before when it ends", only="lab"),
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="lab: only ask the hosts, and print the tc and ethtool commands of their TSN settings.",
        ),
    ] = False,
    alarm: AlarmTexts = None,
    on_alarm: OnAlarm = None,
    metrics: MetricsAddress = None,
    disk: DiskSize = None,
    capture_around: CaptureAround = None,
    as_json: AsJson = False,
) -> None:
    from wiregauge.cli.progress import ProgressView
    from wiregauge.records import RunDirectory
    from wiregauge.runner.stopping import exit_on_second_signal

    # An option that would change nothing is a mistake somebody should know of.
    given = {
        "rootless": rootless or None,
        "realtime": realtime,
        "switches": switches,
        "jobs": jobs,
        "lab": lab,
        "wait": _seconds(wait),
        "fix": fix or None,
        **monitor_options(alarm, on_alarm, metrics, disk, capture_around),
    }
    if resume is not None:
        fixed = {"TEST": test, "--out": out, "--bench": bench, "--set": settings, "--seed": seed}
        fixed |= {"--switches": switches}
        fixed |= {"--engine ray": None if engine == "local" else engine, "--dry-run": dry_run or None}
        raise typer.Exit(_resumed(resume, given, fixed, as_json=as_json))
    if test is None:
        fail("name a test file, or an interrupted run directory with --resume", BAD_INPUT)
    beside = [*(settings or []), *([f"test.seed={seed}"] if seed is not None else [])]
    loaded = load_test(test, beside)
    opened = _opened(bench if bench is not None else loaded.campaign.bench, given)
    check_alarms(given["alarm"], loaded.campaign, given["capture_around"])
    check_engine(engine, storage, opened.name)
    if dry_run:
        _show_dry_run(opened, test, loaded.campaign, as_json=as_json)
        return
    target = out if out is not None else Path(f"{loaded.campaign.name}-run")
    RunDirectory.check_free(target)
    with _refusals(test, opened.name, bridged=switches == "kernel"):
        opened.adapt(loaded.campaign)
        opened.enter()
    with exit_on_second_signal(INCOMPLETE):
        with contextlib.ExitStack() as ending:
            if engine != "local":
                from wiregauge.cluster import OnCluster, connected

                opened = OnCluster(
                    ending.enter_context(connected(engine, storage=storage, jobs=jobs)), jobs=jobs
                )
            troubles: list[str] = []
            observer = ProgressView(make_console(stderr=True), then=AFTER_RUNS)
            judgement = _trial(
                opened, test, loaded, target, observer, realtime=realtime is not False, told=troubles.append
            )
        code = show_judgement(judgement, troubles, as_json=as_json, with_report=True, whole=observer.whole)
    raise typer.Exit(code)


@contextlib.contextmanager
def _refusals(test: Path, bench: str, *, bridged: bool = False) -> Iterator[None]:
    """Ends the command with what a bench cannot do; `bridged`: kernel bridges were asked for."""
    from wiregauge.runner import BenchError, BeyondBenchError

    try:
        yield
    except BeyondBenchError as error:
        for line in error.reasons:
            say(f"{test}: {line}")
        other = "leave out --switches kernel" if bridged else "run it with --bench sim"
        fail(f"this test cannot run on bench {bench}; change what is named above, or {other}", NO_ENVIRONMENT)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)


def _show_dry_run(opened: Bench, test: Path, campaign: Campaign, *, as_json: bool) -> None:
    """Prints what hosts would be told."""
    from wiregauge.runner import HostsBench

    if not isinstance(opened, HostsBench):
        fail(
            f"--dry-run has no effect with --bench {opened.name}; leave it out or run with --bench lab",
            BAD_INPUT,
        )
    with _refusals(test, opened.name):
        show_host_commands(opened.adapt(campaign), opened.interfaces, as_json=as_json)


def _seconds(text: str | None) -> float | None:
    """A time given on the command line, s."""
    from wiregauge.plan.quantity import QuantityError, time_ns

    if text is None:
        return None
    try:
        return time_ns(text) / 1e9
    except QuantityError as error:
        fail(f"--wait {error}", BAD_INPUT)


def _opened(chosen: str, given: Mapping[str, object]) -> Bench:
    """The bench of this name, with the options that are not None."""
    from wiregauge.runner import BenchError, OptionError, bench_named

    try:
        return bench_named(chosen, **given)
    except OptionError as error:
        no = "no-" if given[error.option] is False else ""
        fail(f"--{no}{error.option.replace('_', '-')} {error}", BAD_INPUT)
    except BenchError as error:
        fail(str(error), BAD_INPUT)


def _resumed(
    place: Path, options: Mapping[str, object], fixed: Mapping[str, object], *, as_json: bool
) -> int:
    """Makes the runs that a run directory lacks; the exit code. What is `fixed` by the directory may not be given."""
    from wiregauge import runner
    from wiregauge.cli.progress import ProgressView
    from wiregauge.records import RunDirectory, missing_runs
    from wiregauge.runner import BenchError
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.stopping import exit_on_second_signal

    for name, value in fixed.items():
        if value is not None:
            fail(f"{name} has no effect with --resume: the run directory says it; leave it out", BAD_INPUT)
    directory = RunDirectory.open(place)
    if directory.is_being_written():
        fail(f"{place}: this campaign is still running; wait for it to end", INCOMPLETE)
    bench = _opened(directory.manifest["bench"], {**options, "switches": directory.traits.switches or None})
    check_alarms(options["alarm"], directory.plan, options["capture_around"])
    troubles: list[str] = []
    try:
        bench.enter()
        with exit_on_second_signal(INCOMPLETE):
            if bench.name == "lab":
                lab = options["lab"]
                assert lab is None or isinstance(lab, Path)
                if missing_runs(directory):
                    runner.fetch(place, lab, troubles.append, strict=True)
            observer = ProgressView(make_console(stderr=True), then=AFTER_RUNS)
            with runner.open(bench, observer=observer, told=troubles.append) as trials:
                judgement = trials.resume(place)
            return show_judgement(
                judgement, troubles, as_json=as_json, with_report=True, whole=observer.whole
            )
    except runner.NothingRunError as error:
        fail(str(error), INCOMPLETE if error.stopped else NO_ENVIRONMENT)
    except runner.DiskError as error:
        fail(str(error), INCOMPLETE)
    except (BenchError, LabError) as error:
        fail(str(error), NO_ENVIRONMENT)


def _trial(
    bench: Bench,
    test: Path,
    loaded: Loaded,
    target: Path,
    observer: ProgressView,
    *,
    realtime: bool,
    told: Callable[[str], object],
) -> Judgement:
    from wiregauge import runner
    from wiregauge.plan.processors import CURE

    console = make_console(stderr=True)
    for warning in loaded.warnings:
        if not bench.traits.virtual_time and warning.endswith(CURE):
            continue  # real hosts take the time that they take, whatever their models say
        console.print(f"note: {warning}", highlight=False, markup=False, soft_wrap=True)
    cited = None if bench.traits.virtual_time else _cited(loaded.campaign, bench.traits, realtime=realtime)
    try:
        with runner.open(bench, observer=observer, told=told) as trials:
            return trials.run(loaded, target, file=str(test), calibrations=cited)
    except runner.NothingRunError as error:
        fail(str(error), INCOMPLETE if error.stopped else NO_ENVIRONMENT)
    except runner.DiskError as error:
        fail(str(error), INCOMPLETE)


def _cited(campaign: Campaign, traits: Traits, *, realtime: bool) -> list[dict[str, Any]]:
    """The calibrations this run rests on; a folder that cannot be read is worth a word, never the run."""
    from wiregauge.calibrate import CalibrationError, Store
    from wiregauge.calibrate.citing import cite

    try:
        return cite(campaign, driver=traits.driver, realtime=realtime, store=Store())
    except CalibrationError as error:
        say(f"no calibration is cited: {error}")
        return []


def track(
    place: RunDir,
    run: Annotated[
        list[int] | None,
        typer.Option("--run", metavar="N", help=meant("--run", "; repeatable"), show_default=False),
    ] = None,
    engine: EngineName = "local",
    parts: Annotated[
        int | None,
        typer.Option(
            "--parts",
            metavar="N",
            min=1,
            help="ray: number of tasks among which the flows of a run are divided.",
            show_default="one per processor",
        ),
    ] = None,
    storage: StorageUrl = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt-records",
            help="Accept records that the run did not write (put there by hand); the runs are DEGRADED and say so.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """For tables that are damaged, missing or of another schema, and on a cluster for more records than one machine
    tracks in good time. Records are only read; what is made of them is replaced, run by run.
    """
    from wiregauge.cluster import retrack
    from wiregauge.records import RunDirectory

    check_engine(engine, storage)
    if engine == "local" and parts is not None:
        fail("--parts has an effect with --engine ray only, here all cores are used; leave it out", BAD_INPUT)
    directory = RunDirectory.open(place)
    if directory.manifest["state"] == "running" or not all(
        directory.record_files(index) for index in directory.run_indices
    ):
        directory = open_run(place)
    known = directory.run_indices
    chosen = sorted(set(run)) if run else known
    for index in chosen:
        if index not in known:
            fail(f"--run {index}: {place} has no such run; it has {_listed(known)}", BAD_INPUT)
    stopped = retrack(
        directory,
        chosen,
        engine,
        parts=parts,
        storage=storage,
        adopt=adopt,
        tracked=lambda index: say(f"run {index}: tracked"),
    )
    if stopped is not None:
        fail(f"{stopped}: runs that were not tracked are as they were", INCOMPLETE)
    raise typer.Exit(judge_and_show(place, as_json=as_json, with_report=True))


def _listed(runs: list[int]) -> str:
    return f"runs {runs[0]} to {runs[-1]}" if len(runs) > 1 else f"run {runs[0]}" if runs else "none"
