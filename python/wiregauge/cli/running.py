"""`check`, `run` and `track`: from a test file to a run directory that is judged."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from wiregauge.cli.shared import (
    AsJson,
    BenchName,
    EngineName,
    RunDir,
    StorageUrl,
    TestFile,
    check_engine,
    judge_and_show,
    load_test,
    open_run,
)
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, say

__all__ = ["check", "run", "track"]


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
    from wiregauge.master.stopping import leaving_at_second_request
    from wiregauge.records import RunDirectory

    loaded = load_test(test)
    chosen = bench if bench is not None else BenchName(loaded.campaign["bench"])
    _refuse_without_effect(chosen, jobs=jobs, realtime=realtime, rootless=rootless)
    check_engine(engine, storage, chosen)
    target = out if out is not None else Path(f"{loaded.campaign['name']}-run")
    RunDirectory.check_free(target)
    if chosen is BenchName.NETNS:
        missing = beyond_namespaces(loaded.campaign)
        if missing:
            for line in missing:
                say(f"{test}: {line}")
            fail(
                "this test cannot run between namespaces; change what is named above, or run it with --bench sim",
                NO_ENVIRONMENT,
            )
        if ENCLOSED not in os.environ:
            _enclose(rootless=rootless)
    with contextlib.ExitStack() as ending:
        ending.enter_context(leaving_at_second_request(INCOMPLETE))
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
        fail(f"{option} has no meaning for --bench sim; leave it out or run with --bench netns", BAD_INPUT)
    if bench is BenchName.NETNS and jobs is not None:
        fail(
            "--jobs has no meaning for --bench netns, whose runs follow one another; leave it out", BAD_INPUT
        )


def _enclose(*, rootless: bool) -> NoReturn:
    """Starts this very command again inside namespaces that end with it."""
    from wiregauge.benches import BenchError, enclose

    try:
        enclose(rootless=rootless)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)


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
    manifest = new_manifest(loaded.campaign, file=str(test), sha256=loaded.sha256, bench=bench.value)
    if bench is BenchName.NETNS:
        manifest["calibrations"] = _cited(loaded.campaign, realtime=realtime)
    directory = RunDirectory.create(target, manifest, loaded.xml)
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
            directory.discard()
            fail(reason, INCOMPLETE if directory.manifest["state"] == "interrupted" else NO_ENVIRONMENT)
        code = judge_and_show(directory, target, as_json=as_json, with_report=True)
    except (EngineError, StorageError):
        if not directory.runs:
            directory.discard()
        raise
    except RunDirectoryError as error:  # the disk failed under a run: what is on it can be judged elsewhere
        fail(str(error), INCOMPLETE)
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
        say(f"no calibration is cited: {error}")
        return []


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
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt-records",
            help="Take records that are not those the run wrote, put there by hand; the runs are DEGRADED and say so.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Track the stored records of a run directory again, judge them and write the report.

    For tables that are damaged, missing or of an older version, and on a cluster for more records than one machine
    tracks in good time. Records are only read; what is made of them is replaced, run by run.
    """
    from wiregauge.cluster import retrack
    from wiregauge.records import RunDirectory

    check_engine(engine, storage)
    if engine == "local" and parts is not None:
        fail("--parts has an effect with --engine ray only, here all cores are used; leave it out", BAD_INPUT)
    directory = RunDirectory.open(place)
    if directory.manifest["state"] == "running" or not all(
        directory.record_files(entry["index"]) for entry in directory.runs
    ):
        directory = open_run(place)
    known = [entry["index"] for entry in directory.runs]
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
    raise typer.Exit(judge_and_show(directory, place, as_json=as_json, with_report=True))


def _listed(runs: list[int]) -> str:
    return f"runs {runs[0]} to {runs[-1]}" if len(runs) > 1 else f"run {runs[0]}" if runs else "none"
