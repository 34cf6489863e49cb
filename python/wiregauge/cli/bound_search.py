"""`bounds --search`: the simulator driven towards the bounds of a test."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, make_console

if TYPE_CHECKING:
    from wiregauge.bounds import Answer, Source
    from wiregauge.bounds.against import Laid
    from wiregauge.bounds.searching import Found, Outcome
    from wiregauge.bounds.short_runs import ShortRuns
    from wiregauge.bounds.worst import Worst

__all__ = ["Searched", "check_out", "searched"]


class Searched:
    """What was found, and how to show it."""

    def __init__(self, worst: Sequence[Worst], outcome: Outcome, seed: int) -> None:
        self._worst, self._outcome, self._seed = worst, outcome, seed

    @property
    def exceeded(self) -> bool:
        """Whether a simulated latency was above its bound."""
        return any(one.alarms for one in self._worst)

    @property
    def simulated(self) -> dict[tuple[str, str], float]:
        """The worst simulated latency, s, by flow and target."""
        return {(one.flow, one.target): one.simulated for one in self._worst if one.simulated is not None}

    def as_json(self) -> dict[str, Any]:
        """In the form of `--json`."""
        from wiregauge.bounds.worst import search_json

        return search_json(self._worst, self._outcome, self._seed)

    def show(self, console: Console) -> None:
        """As text."""
        from wiregauge.bounds.worst import show_search

        show_search(self._worst, self._outcome, console)


def check_out(out: Path) -> None:
    """Refuses a folder that is there already."""
    if out.exists() or out.is_symlink():
        fail(f"{out}: there is something of that name already; name a folder that does not exist", BAD_INPUT)


def searched(
    file: Path,
    source: Source,
    answer: Answer,
    laid: Sequence[Laid],
    *,
    seconds: float,
    seed: int,
    out: Path | None,
) -> Searched:
    """Searches; raises `TestError` where the test has no short runs."""
    from wiregauge.bounds.best import every_answer
    from wiregauge.bounds.searching import Outcome, goals, search
    from wiregauge.bounds.short_runs import short_runs
    from wiregauge.bounds.worst import worst_of
    from wiregauge.cli.progress import Countdown

    answers = every_answer(source, answer)
    longest = max(
        (target.delay for flow in answer.flows for target in flow.targets if target.delay is not None),
        default=0.0,
    )
    plain = short_runs(file, longest)
    wanted = goals(answers, [str(flow) for flow in plain.ways], plain.names)
    if not wanted:
        fail(f"{file}: no flow has both a bound and a sender, so there is nothing to search", BAD_INPUT)
    measured: dict[tuple[str, str], float] = {}
    for one in laid:
        for flow in one.flows:
            if flow.measured is not None and not one.simulated:
                key = flow.flow, flow.target
                measured[key] = max(measured.get(key, 0.0), flow.measured)
    best = {answer.as_text: answer for answer in answers}
    try:
        if out is not None:
            out.mkdir(parents=True)
    except OSError as error:
        fail(f"--out {out}: cannot be written ({error.strerror})", NO_ENVIRONMENT)
    outcome, worst = Outcome(), []
    with Countdown(make_console(stderr=True), "search", seconds) as countdown:
        for network in (None, "A", "B"):
            own = [goal for goal in wanted if goal.network == network]
            if not own:
                continue
            runs = plain if network is None else short_runs(file, longest, network)
            done = len(outcome.found)
            share = len(own) / len(wanted)

            def tell(part: float, done: int = done, share: float = share) -> None:
                countdown.at(done / len(wanted) + part * share)

            found = search(runs, own, seconds=seconds * share, seed=seed, tell=tell)
            outcome = outcome.plus(found)
            written = _written(found, runs, out)
            why = partial(_why, answers=best, source=source, runs=runs, file=file)
            worst += worst_of(found, runs, written, measured, why)
    places = {(goal.flow, goal.target): place for place, goal in enumerate(wanted)}
    worst.sort(key=lambda one: places[one.flow, one.target])
    return Searched(worst, outcome, seed)


def _written(outcome: Outcome, runs: ShortRuns, out: Path | None) -> Mapping[tuple[str, str], Path]:
    from wiregauge.bounds.worst import write_tests

    try:
        return write_tests(outcome, runs, out) if out is not None else {}
    except OSError as error:
        if out is not None:
            # Tests that were written before are whole; a folder without any is not wanted.
            with contextlib.suppress(OSError):
                out.rmdir()
        fail(f"--out {out}: cannot be written ({error.strerror})", NO_ENVIRONMENT)


def _why(
    found: Found, answers: Mapping[str, Answer], source: Source, runs: ShortRuns, file: Path
) -> Sequence[str]:
    """Runs the worst case as anybody would, and asks which assumption of the bound its records contradict."""
    from wiregauge import runner
    from wiregauge.bounds.against import lay

    with tempfile.TemporaryDirectory(prefix="wiregauge-search-") as below:
        test = Path(below) / file.name
        test.write_bytes(runs.written(found.offsets))
        with runner.open(runner.SimulatorBench(jobs=1)) as trials:
            trials.run(test, Path(below) / "run")
        laid = lay(answers[found.goal.method], source, Path(below) / "run")
        alarms = [
            alarm
            for flow in laid.flows
            if (flow.flow, flow.target) == (found.goal.flow, found.goal.target)
            for alarm in flow.alarms
        ]
    return alarms or ("service slower than assumed, or a defect of the bound: its run alone names none",)
