"""The execution of a study: the runner makes a run directory for each part; a stopped study can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from wiregauge import report, runner
from wiregauge._version import __version__
from wiregauge.config import Loaded, TestError, load
from wiregauge.files.whole import cure_for, move_folder
from wiregauge.measures import Judgement
from wiregauge.records import RunDirectory, RunDirectoryError, missing_runs, recover
from wiregauge.records.directory import utc_now
from wiregauge.runner import Bench, DiskError, NothingRunError, Observer, Trials
from wiregauge.runner.stopping import Interrupted, stoppable
from wiregauge.studies.beside import Beside
from wiregauge.studies.declaring import Part, Study
from wiregauge.studies.results import Results
from wiregauge.studies.size import Size, StudyError

__all__ = ["RUNS", "Carried", "Going", "carry_out", "load_parts"]

RUNS = "runs"
"""Folder of the run directories in a study directory."""


class Carried(Struct):
    """The state of a study's execution."""

    study: Study
    size: Size
    bench: str
    place: Path
    started: str
    finished: str | None = None
    state: str = "running"
    """`running`, `complete`, `interrupted` or `failed`."""
    reason: str | None = None
    version: str = __version__
    judgements: dict[str, Judgement] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    beside: Beside | None = None
    """Figures of the same study from elsewhere, for comparison."""

    @property
    def results(self) -> Results:
        """The results so far, from which cells are collected."""
        return Results(self.size, self.bench, self.place, self.judgements, self.missing, self.skipped)


class Going(Protocol):
    """Receives the progress of a study; the terminal's view is one."""

    def parts_known(self, planned_s: Mapping[str, float]) -> None:
        """The parts that will run, each with its planned seconds of traffic."""

    def part_began(self, name: str) -> None:
        """A part begins, or is judged again where it was complete before."""

    def part_ended(self, name: str) -> None:
        """A part has ended."""


def load_parts(study: Study, size: Size, bench: str) -> dict[str, Loaded]:
    """Loads the tests of the parts that run on this bench in this size. Raises StudyError for an invalid test."""
    loaded = {}
    for part in study.parts:
        if part.left_out(bench, size):
            continue
        try:
            loaded[part.name] = load(study.folder / part.test, part.settings_of(bench, size))
        except TestError as error:
            raise StudyError(f"study {study.name}, part {part.name}: {error}") from None
    return loaded


def carry_out(
    carried: Carried,
    loaded: Mapping[str, Loaded],
    bench: Bench,
    *,
    observer: Observer | None = None,
    going: Going,
    told: Callable[[str], object] = print,
) -> None:
    """Runs the missing parts of a study and judges them; `carried` has the earlier parts of a resumed study.

    Raises BenchError, RunDirectoryError and TestError as the runner does; an interruption is no error.
    """
    study, size = carried.study, carried.size
    for part in study.parts:
        if reason := part.left_out(bench.name, size):
            carried.skipped[part.name] = reason
    going.parts_known({name: one.campaign.planned_s for name, one in loaded.items()})
    parts = [part for part in study.parts if part.name in loaded]
    with runner.open(bench, observer=observer, told=told) as trials:
        try:
            with stoppable():
                for part in parts:
                    if carried.reason is not None:
                        break
                    going.part_began(part.name)
                    _carry_out_part(carried, part, loaded[part.name], trials, told)
                    going.part_ended(part.name)
        except Interrupted as stop:  # between runs, or while they were judged
            _end(carried, "interrupted", str(stop))
    for part in parts:
        if part.name not in carried.judgements:
            carried.missing.setdefault(part.name, carried.reason or "it has not run")
    carried.finished = utc_now()
    if carried.state == "running":
        carried.state = "complete"


def _carry_out_part(
    carried: Carried, part: Part, loaded: Loaded, trials: Trials, told: Callable[[str], object]
) -> None:
    place = carried.place / RUNS / part.name
    try:
        judgement = _judged(place, part, loaded, trials, told)
    except NothingRunError as error:
        _end(carried, "interrupted" if error.stopped else "failed", f"{part.name}: {error}")
        carried.missing[part.name] = str(error)
        return
    except DiskError as error:
        _end(carried, "failed", f"{part.name}: {error}")
        carried.missing[part.name] = str(error)
        return
    carried.judgements[part.name] = judgement
    if judgement.state != "complete":
        _end(carried, judgement.state, f"{part.name}: {judgement.reason}")
        return
    try:
        report.write(place, judgement)
    except RunDirectoryError as error:
        told(f"{place}: the report is missing: {error}")


def _judged(
    place: Path, part: Part, loaded: Loaded, trials: Trials, told: Callable[[str], object]
) -> Judgement:
    if not (place / "manifest.json").exists():
        _set_aside(place)
        return trials.run(loaded, place, file=part.test)
    directory = RunDirectory.open(place)
    if directory.manifest["test"]["sha256"] != loaded.sha256 or directory.plan != loaded.campaign:
        raise RunDirectoryError(
            f"{place}: it was made from another version of {part.test}; begin the study anew in another directory"
        )
    recover(directory)
    if missing_runs(RunDirectory.open(place)):
        return trials.resume(place)
    return runner.judged(place, told)


def _set_aside(place: Path) -> None:
    """Moves aside what a stopped or killed run left before it was a run directory; nothing is removed."""
    if not place.exists():
        return
    aside = place.parent.parent / "interrupted"
    number = 1
    while (aside / f"{place.name}-{number}").exists():
        number += 1
    try:
        aside.mkdir(exist_ok=True)
        move_folder(place, aside / f"{place.name}-{number}")
    except OSError as error:
        raise RunDirectoryError(
            f"{place}: cannot be set aside ({error.strerror}); {cure_for(error)}"
        ) from None


def _end(carried: Carried, state: str, reason: str) -> None:
    carried.state, carried.reason = state, reason


class Pace:
    """Estimates the time left: the planned seconds of traffic, scaled by the time that the parts so far took."""

    def __init__(self, planned_s: Mapping[str, float], clock: Callable[[], float] = time.monotonic) -> None:
        self._planned = dict(planned_s)
        self._done: list[str] = []
        self._clock = clock
        self._began = clock()

    def ended(self, name: str) -> None:
        """Records that a part has ended."""
        self._done.append(name)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds left; None before the first part has ended."""
        done = sum(self._planned[name] for name in self._done)
        rest = sum(self._planned.values()) - done
        return rest * (self._clock() - self._began) / done if done > 0 else None
