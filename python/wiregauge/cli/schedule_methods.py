"""`schedule --topology`: an instance of tsnkit, scheduled, with the schedules of other methods beside it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.terminal import (
    BAD_INPUT,
    FAILED,
    INCOMPLETE,
    NO_ENVIRONMENT,
    WITHIN,
    fail,
    make_console,
    print_table,
    put,
    say,
)

if TYPE_CHECKING:
    from wiregauge.scheduling import Answer, Objective, Problem
    from wiregauge.scheduling.beside import Plan
    from wiregauge.scheduling.methods import Method
    from wiregauge.scheduling.tsnkit import Instance

__all__ = ["methods_beside"]


def methods_beside(
    tables: tuple[Path, Path | None],
    beside: Sequence[str],
    out: Path | None,
    limits: tuple[float, int],
    *,
    minimise: Objective,
    others: Sequence[object],
    as_json: bool,
) -> int:
    """Schedules the instance, lays the other methods beside it, and shows them; returns the exit code.

    `tables` are those of streams and links, `limits` the seconds of each method and the seed, `others` the options that
    have no effect on an instance.
    """
    streams, topology = tables
    if topology is None:
        fail("--also has an effect with --topology only; leave it out", BAD_INPUT)
    if any(others):
        fail(
            "--topology goes with --also, --minimise, --out, --time-limit, --seed and --json; leave the others out",
            BAD_INPUT,
        )
    if not limits[0]:
        fail("--time-limit 0: there is no time to look; write 10s", BAD_INPUT)
    if out is not None and (out.exists() or out.is_symlink()):
        fail(f"{out}: there is something of that name already; name a folder that does not exist", BAD_INPUT)
    from wiregauge.scheduling import ProblemError, solve
    from wiregauge.scheduling.beside import tables_of
    from wiregauge.scheduling.methods import Methods, json_of_methods, lines_of, of_answer
    from wiregauge.scheduling.tsnkit import instance_of, problem_of_instance

    seconds, seed = limits
    try:
        instance = instance_of(streams, topology)
        problem = problem_of_instance(instance)
        answer = solve(problem, objective=minimise, seconds=seconds, seed=seed)
        plan, reason = _planned(instance, problem, answer)
        found = [of_answer(instance, answer, plan, reason, minimise)]
        found += [_other(instance, text, (streams, topology), seconds) for text in beside]
    except ProblemError as error:
        fail(str(error), BAD_INPUT)
    methods = Methods(1, instance.name, len(instance.streams), len(instance.links), found)
    if out is not None and plan is not None:
        _write(out, instance.name, tables_of(plan))
    if as_json:
        print(json.dumps(json_of_methods(methods), indent=1))
    else:
        heads, rows, remarks = lines_of(methods)
        put(f"{instance.name}: {methods.streams} streams over {methods.links} links, each a shortest path")
        print_table(heads, rows, make_console())
        for line in remarks:
            put(line)
    if out is not None and plan is None:
        say(f"{out}: nothing is written, as there is no schedule")
    ours = found[0].outcome
    return WITHIN if ours == "schedule" else INCOMPLETE if ours == "none-found" else FAILED


def _planned(instance: Instance, problem: Problem, answer: Answer) -> tuple[Plan | None, str]:
    """Our schedule, or why there is none although windows were found."""
    from wiregauge.scheduling import ProblemError
    from wiregauge.scheduling.beside import plan_of_opens

    if answer.opens is None:
        return None, ""
    try:
        return plan_of_opens(instance, problem, answer.opens), ""
    except ProblemError as error:
        return None, str(error)


def _other(instance: Instance, text: str, tables: tuple[Path, Path], seconds: float) -> Method:
    """A method of tsnkit that is run, or one whose schedule is in files: NAME=PREFIX."""
    from wiregauge.scheduling.beside import plan_of_files
    from wiregauge.scheduling.methods import of_plan

    name, equals, prefix = text.partition("=")
    if not name or (equals and not prefix) or not name.replace("_", "").isalnum():
        fail(f'--also "{text}": write a method of tsnkit, such as ls, or NAME=PREFIX of its files', BAD_INPUT)
    if equals:
        return of_plan(instance, name, plan_of_files(instance, prefix), None)
    if importlib.util.find_spec("tsnkit") is None:
        fail(
            f"--also {name}: tsnkit is not installed in the Python of wiregauge; install it there, or run it and "
            f"name its files as {name}=PREFIX",
            NO_ENVIRONMENT,
        )
    return _run(instance, name, tables, seconds)


def _run(instance: Instance, name: str, tables: tuple[Path, Path], seconds: float) -> Method:
    from wiregauge.scheduling.beside import plan_of_files
    from wiregauge.scheduling.methods import of_plan, without

    with tempfile.TemporaryDirectory(prefix="wiregauge-") as place:
        command = [sys.executable, "-m", f"tsnkit.algorithms.{name}", *map(str, map(Path.resolve, tables))]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [*command, f"{place}/", "1", name],
                cwd=place,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return without(name, "none-found", "none", seconds, "")
        took = time.monotonic() - begun
        if (Path(place) / f"{name}-GCL.csv").exists():
            return of_plan(instance, name, plan_of_files(instance, f"{place}/{name}"), took)
        if "| fail" in done.stdout:
            return without(
                name, "none-exists", "stated", took, "it found no schedule; some methods are no proof of it"
            )
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        return without(
            name, "failed", "none", took, said[-1][:200] if said else f"exit code {done.returncode}"
        )


def _write(out: Path, name: str, tables: dict[str, str]) -> None:
    from wiregauge.files import new_folder, write_whole

    try:
        with new_folder(out):
            for ending, text in tables.items():
                write_whole(out / f"{name}{ending}", text, replacing=None)
    except OSError as error:
        fail(f"{error.filename or out}: cannot be written ({error.strerror})", NO_ENVIRONMENT)
