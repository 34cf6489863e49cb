"""The ways to a `Run`: open a run directory, or simulate a test."""

from __future__ import annotations

import threading
from os import PathLike
from pathlib import Path

from msgspec import Struct

from wiregauge import runner
from wiregauge.config import Loaded, Test, load
from wiregauge.notebook.errors import WiregaugeError, in_one_class
from wiregauge.notebook.run import Run
from wiregauge.records import RunDirectory, recover

__all__ = ["Checked", "check", "open", "simulate"]


class Checked(Struct, frozen=True):
    """A test that can be run: how many runs it plans, seconds of traffic in all of them, and what is worth knowing."""

    name: str
    runs: int
    planned_s: float
    warnings: tuple[str, ...]


def open(place: str | PathLike[str]) -> Run:  # noqa: A001 - it opens a run directory as open opens a file
    """Opens a run directory; one whose testmaster was killed is made readable first.

    Figures are computed when they are first asked for. Raises WiregaugeError when there is nothing to show.

    >>> import wiregauge as wg
    >>> wg.open("first-run").validity
    'VALID'
    >>> wg.open("nowhere")
    Traceback (most recent call last):
    wiregauge.notebook.errors.WiregaugeError: nowhere: no such directory; `wiregauge run TEST --out nowhere` makes one
    """
    path = Path(place)
    with in_one_class():
        directory = RunDirectory.open(path)
        if directory.is_being_written():
            raise WiregaugeError(f"{path}: this campaign is still running; wait for it to end")
        recover(directory)
    if not directory.runs:
        raise WiregaugeError(f"{path}: no run was started, so there is nothing to show")
    return Run(path)


def check(test: Test | str | PathLike[str]) -> Checked:
    """Checks a test: structure, references, routes, capacities. Raises WiregaugeError that names every fault found.

    >>> import wiregauge as wg
    >>> wg.check(
    ...     wg.Test("small")
    ...     .end_system("a")
    ...     .end_system("b")
    ...     .link("a", "b", rate="1Gbit/s")
    ...     .flow(1, protocol="udp", from_="a", to="b")
    ...     .send(1, period="2ms", payload="64B", count=100)
    ...     .receive(1)
    ... ).runs
    1
    """
    campaign = _loaded(test)[0].campaign
    return Checked(campaign.name, len(campaign.runs), campaign.planned_s, campaign.warnings)


def simulate(
    test: Test | str | PathLike[str], out: str | PathLike[str] | None = None, *, jobs: int | None = None
) -> Run:
    """Simulates a test (a file, or one built in Python) and opens the run directory it makes.

    `out` is the directory to make, `NAME-run` unless said; results are never overwritten. `jobs` runs are simulated
    side by side, one per processor unless said. Interrupting keeps what was simulated by then. Must be called from
    the main thread, where notebooks run their cells. Raises WiregaugeError for a bad test or place.
    """
    loaded, file = _loaded(test)
    if threading.current_thread() is not threading.main_thread():
        raise WiregaugeError(
            "simulate waits for interrupts, which only the main thread gets; call it from there"
        )
    if jobs is not None and jobs < 1:
        raise WiregaugeError(f"jobs = {jobs}: at least one run at a time has to be simulated")
    path = Path(out) if out is not None else Path(f"{loaded.campaign.name}-run")
    with in_one_class(), runner.open(runner.SimulatorBench(jobs=jobs)) as trials:
        try:
            judgement = trials.run(loaded, path, file=file)
        except runner.NothingRunError as error:
            raise WiregaugeError(f"{path}: {error}") from None
    # Segments of a run that could not be tracked are there for `open` to recover.
    return Run(path, judgement) if judgement.complete else open(path)


def _loaded(test: Test | str | PathLike[str]) -> tuple[Loaded, str]:
    """The compiled test and the name of its file."""
    with in_one_class():
        if isinstance(test, Test):
            loaded = test.compile()
            return loaded, f"{loaded.campaign.name}.xml"
        return load(Path(test)), str(test)
