"""Progress with time left, on a terminal and in a log.

A terminal gets one moving line; anything else gets one line per run, so that a log stays readable.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

__all__ = ["ProgressView", "messages_sent", "point_label"]


def messages_sent(run: dict[str, Any], entry: dict[str, Any]) -> int:
    """Messages of the flows under test that a run sent; `entry` is the run's in the manifest."""
    exchanges = {flow["id"] for flow in run["flows"] if flow.get("exchange")}
    return sum(
        int(task["done"])
        for report in entry["agents"].values()
        for task in report["tasks"]
        if task["kind"] == "send" and task["flow"] not in exchanges
    )


def point_label(run: dict[str, Any]) -> str:
    """The run's place in the sweep, as a reader would say it."""
    parts = [f"{axis} {value}" for axis, value in run["point"].items()]
    if run["repeat"]:
        parts.append(f"repeat {run['repeat'] + 1}")
    return ", ".join(parts) or "single run"


class ProgressView:
    """Shows a campaign as it goes on. The work is measured in planned seconds, which are known beforehand.

    Runs may go on side by side. In real time no run can be faster than its plan; in virtual time it can.
    """

    def __init__(self, console: Console, runs: list[dict[str, Any]], *, real_time: bool = True) -> None:
        self._console = console
        self._real_time = real_time
        self._runs = runs
        self._planned = [_seconds(run) for run in runs]
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._elapsed = [0.0] * len(runs)
        self._ended = 0

    def __enter__(self) -> ProgressView:
        if self._console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task("starting", total=sum(self._planned), left="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, position: int) -> None:
        """A run begins."""
        self._show(position, 0, 0, 0)

    def update(self, position: int, elapsed_s: float, sent: int, received: int) -> None:
        """A run goes on."""
        self._show(position, min(elapsed_s, self._planned[position]), sent, received)

    def share(self, position: int, share: float) -> None:
        """A run has come so far, 0 to 1; others may go on beside it."""
        self._elapsed[position] = share * self._planned[position]
        if self._progress is not None and self._task is not None:
            self._progress.update(
                self._task,
                completed=sum(self._elapsed),
                description=f"{self._ended} of {len(self._runs)} runs done",
                left=self._time_left(),
            )

    def end(self, position: int, text: str) -> None:
        """A run has ended; `text` says with what."""
        self._elapsed[position] = self._planned[position]
        self._ended += 1
        label = f"run {position + 1}/{len(self._runs)}  {point_label(self._runs[position])}: {text}"
        if self._progress is None:
            self._console.print(f"{label} ({self._time_left()})", highlight=False, soft_wrap=True)
        else:
            self._show(position, self._planned[position], 0, 0)

    def _show(self, position: int, elapsed: float, sent: int, received: int) -> None:
        self._elapsed[position] = elapsed
        if self._progress is None or self._task is None:
            return
        traffic = f"  {sent} sent, {received} received" if sent else ""
        self._progress.update(
            self._task,
            completed=sum(self._elapsed),
            description=f"run {position + 1}/{len(self._runs)}  {point_label(self._runs[position])}{traffic}",
            left=self._time_left(),
        )

    def _time_left(self) -> str:
        """Planned time still to come, stretched by what the runs so far took beyond their plan."""
        total, done = sum(self._planned), sum(self._elapsed)
        spent = time.monotonic() - self._started
        stretch = spent / done if done > 1.0 else 1.0
        if self._real_time:
            stretch = max(1.0, stretch)
        left = (total - done) * stretch
        return f"{int(left // 60)}:{int(left % 60):02d} left"


def _seconds(run: dict[str, Any]) -> float:
    return float(run["warm_up"] + run["duration"] + run["drain"]) / 1e12 + 0.3
