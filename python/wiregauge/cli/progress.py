"""Progress with time left, on a terminal and in a log.

A terminal gets one moving line; anything else gets one line per run, so that a log stays readable.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from wiregauge.master import Observer
from wiregauge.plan import Run


def _messages_sent(run: Run, entry: Mapping[str, Any]) -> int:
    """Messages of the flows under test that a run sent; `entry` is the run's in the manifest."""
    exchanges = {flow.id for flow in run.flows if flow.exchange}
    return sum(
        int(task["done"])
        for report in entry["agents"].values()
        for task in report["tasks"]
        if task["kind"] == "send" and task["flow"] not in exchanges
    )


def _point_label(run: Run) -> str:
    """The run's place in the sweep, as a reader would say it."""
    parts = [f"{axis} {value}" for axis, value in run.point.items()]
    if run.repeat:
        parts.append(f"repeat {run.repeat + 1}")
    return ", ".join(parts) or "single run"


def _bar(console: Console, *, disable: bool = False) -> Progress:
    """One line that is gone when it is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
        disable=disable,
    )


def _left(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"


class ProgressView(Observer):
    """Shows a trial as it goes on. The work is measured in planned seconds, which are known beforehand."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        """Begins the line."""
        self._virtual_time = virtual_time
        self._runs = runs
        self._planned = [_seconds(run) for run in runs]
        self._started = time.monotonic()
        self._elapsed = [0.0] * len(runs)
        self._ended = 0
        if self._console.is_terminal:
            self._progress = _bar(self._console)
            self._progress.start()
            self._task = self._progress.add_task("starting", total=sum(self._planned), left="")

    def run_began(self, position: int) -> None:
        """Names the run."""
        self.run_progressed(position, 0.0)

    def run_progressed(self, position: int, share: float, sent: int = 0, received: int = 0) -> None:
        """Moves the line."""
        self._elapsed[position] = share * self._planned[position]
        if self._progress is None or self._task is None:
            return
        traffic = f"  {sent} sent, {received} received" if sent else ""
        self._progress.update(
            self._task,
            completed=sum(self._elapsed),
            description=f"{self._ended} of {len(self._runs)} runs done"
            if self._virtual_time
            else f"{self._label(position)}{traffic}",
            left=self._time_left(),
        )

    def run_ended(self, position: int, entry: Mapping[str, Any]) -> None:
        """Writes a line for the run where none moves."""
        self._ended += 1
        self.run_progressed(position, 1.0)
        if self._progress is None:
            said = f"{_messages_sent(self._runs[position], entry)} messages sent"
            said += f"; {entry['reason']}" if entry["reason"] else ""
            self._console.print(
                f"{self._label(position)}: {said} ({self._time_left()})", highlight=False, soft_wrap=True
            )

    def trial_ended(self) -> None:
        """Takes the line away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _label(self, position: int) -> str:
        return f"run {position + 1}/{len(self._runs)}  {_point_label(self._runs[position])}"

    def _time_left(self) -> str:
        """Planned time still to come, stretched by what the runs so far took beyond their plan."""
        total, done = sum(self._planned), sum(self._elapsed)
        spent = time.monotonic() - self._started
        stretch = spent / done if done > 1.0 else 1.0
        if not self._virtual_time:
            stretch = max(1.0, stretch)
        return _left((total - done) * stretch)


def _seconds(run: Run) -> float:
    return run.planned_s + 0.3


class Countdown:
    """How much of a work of known length is done, and the time left; nothing where nobody watches."""

    def __init__(self, console: Console, what: str, seconds: float) -> None:
        self._what, self._seconds, self._console = what, seconds, console
        self._begin = time.monotonic()
        self._progress = _bar(console, disable=not console.is_terminal)
        self._task = self._progress.add_task(what, total=max(seconds, 0.1), left="")

    def __enter__(self) -> Countdown:
        if not self._console.is_terminal:
            self._console.print(f"{self._what}: about {self._seconds:.0f} s", highlight=False)
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def at(self, share: float) -> None:
        """So much is done, 0 to 1."""
        spent = time.monotonic() - self._begin
        left = spent * (1 - share) / share if share > 0.02 else self._seconds - spent
        self._progress.update(self._task, completed=share * self._seconds, left=_left(max(left, 0.0)))
