"""Progress with time left, on a terminal and in a log.

A terminal gets one moving line. Anything else, and a terminal where `CI` is set, gets whole plain lines: where a run
begins and ends, and between them now and then, ever more seldom, so that a log of days stays readable.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from wiregauge.cli.livetable import live_table, live_text
from wiregauge.cli.whole import AFTER_RUNS, RUNNING, SIMULATING_S, Whole
from wiregauge.plan import Run
from wiregauge.records.counters import known
from wiregauge.records.live import RunNow
from wiregauge.records.reported import RunEntry
from wiregauge.runner import Observer
from wiregauge.runner.live.state import planned_left_s
from wiregauge.terminal import is_verbose, say

Clock = Callable[[], float]

EVERY_S: Final = 10.0
"""A log says how it goes on after so much silence; after some minutes less often."""
LASTS_S: Final = 3.0
"""Live figures are shown of runs that last longer."""
_SELDOM: Final = 60
"""Silence is at least this part of the time so far: lines grow with the logarithm of a long trial."""
_SIMULATED: Final = 0.5
"""Share of a simulated run that simulating is; the rest is tracking its messages."""
MOST_TOLD: Final = 100
"""Runs of a trial whose begin and end a log tells one by one; of more only those that failed."""


def _messages_sent(run: Run, entry: RunEntry) -> int:
    """Messages that a run sent, without the warm-up; `entry` is the run's in the manifest."""
    own = {flow.id for flow in run.flows if not flow.exchange}
    warm_up = {send.flow: send.warm_up_count for send in run.sends}
    return sum(
        max(known(task.done) - warm_up[task.flow], 0)
        for report in entry.reports().values()
        for task in report.tasks_of("send")
        if task.flow in own
    )


def _point_label(run: Run) -> str:
    """The run's place in the sweep, as a reader would say it."""
    parts = [f"{axis} {value}" for axis, value in run.point.items()]
    if run.repeat:
        parts.append(f"repeat {run.repeat}")
    return ", ".join(parts)


def _moves(console: Console) -> bool:
    """Whether somebody sees a line move. Colours may be forced where there is no terminal; that makes none of it."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    return console.is_terminal and console.file.isatty() and not console.is_dumb_terminal


class _Log:
    """Whole lines without control characters; between those of single events seldom ones."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock = console, clock
        self._begin = self._last = clock()

    def write(self, text: str) -> None:
        """One line at once."""
        plain = "".join(c if c.isprintable() else " " for c in text)
        print(plain, file=self._console.file, flush=True)
        self._last = self._clock()

    def due(self) -> bool:
        """Whether nothing was written for so long that a reader wants to know how it goes on."""
        now = self._clock()
        return now - self._last >= max(EVERY_S, (now - self._begin) / _SELDOM)


class _Moving(Progress):
    """A line, and below it what else is known at the moment."""

    below: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """The line and what is below it."""
        yield self.make_tasks_table(self.tasks)
        if self.below is not None:
            yield self.below


def _bar(console: Console, *, disable: bool = False) -> _Moving:
    """One line that is gone when it is done."""
    return _Moving(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
        disable=disable,
    )


def _clock_text(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def _left(seconds: float) -> str:
    return f"{_clock_text(seconds)} left"


class ProgressView(Observer):
    """Shows a trial as it goes on. The work is measured in planned seconds, which are known beforehand.

    Live figures are shown of runs that last; `eager` shows them from the first on, and says those in a line. `then` are
    the stages of the command that follow the runs, as in `AFTER_RUNS`; `whole` is the share of all of it.
    """

    def __init__(
        self,
        console: Console,
        clock: Clock = time.monotonic,
        *,
        eager: bool = False,
        then: Collection[str] = ("judging",),
    ) -> None:
        self._then = {name: AFTER_RUNS[name] for name in then}
        self.whole: Whole | None = None
        self._lasts_s = 0.0 if eager else LASTS_S
        self._to_say_first = eager
        self._console, self._clock = console, clock
        self._progress: _Moving | None = None
        self._task: TaskID | None = None
        self._log: _Log | None = None
        self._now: RunNow | None = None
        self._sent = ""
        self._work: Work | None = None

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        """Begins the line, or the log."""
        self._virtual_time = virtual_time
        self._runs = runs
        self._planned = [_seconds(run) for run in runs]
        own = SIMULATING_S if virtual_time else sum(self._planned)
        fixed = "" if virtual_time else RUNNING
        self.whole = Whole({RUNNING: own, **self._then}, self._clock, fixed=fixed)
        self._started = self._clock()
        self._elapsed = [0.0] * len(runs)
        self._begun: set[int] = set()
        self._ended = 0
        if _moves(self._console):
            self._progress = _bar(self._console)
            self._progress.start()
            self._task = self._progress.add_task("starting", total=1.0, left="")
            return
        self._log = _Log(self._console, self._clock)
        if 1 < len(runs) <= MOST_TOLD:
            self._log.write(f"{len(runs)} runs, {_numbers([run.index for run in runs])}")
        if len(runs) > MOST_TOLD:
            self._log.write(f"{len(runs)} runs begin, {sum(self._planned):.0f} s of traffic in all")

    def run_began(self, position: int) -> None:
        """Names the run."""
        self._now, self._sent = None, ""
        if self._progress is not None:
            self._progress.below = None
        self.run_progressed(position, 0.0)

    def run_progressed(self, position: int, share: float) -> None:
        """Moves the line, or writes one if that is due."""
        self._elapsed[position] = share * self._planned[position]
        traffic = self._sent
        if self._log is not None and self._now is not None:
            traffic += live_text(self._now)
        if self._progress is not None and self._task is not None:
            self._progress.update(
                self._task,
                completed=self._share(),
                description=f"{self._ended} of {len(self._runs)} runs done"
                + (", messages are tracked" if self._tracks() else "")
                if self._virtual_time
                else "  ".join(filter(None, (self._label(position), self._of_all(), traffic))),
                left=self._time_left(),
            )
        elif self._log is not None:
            self._tell(self._log, position, traffic)

    def run_measured(self, now: RunNow) -> None:
        """Shows live figures, of a run that lasts. Of several runs at a time, the line has none."""
        if self._virtual_time and len(self._runs) > 1:
            return
        sent = sum(flow.sent for flow in now.flows)
        self._sent = f"{sent} messages sent" if sent and not now.left_out else ""
        if now.seconds < self._lasts_s:
            return
        if self._to_say_first and any(flow.measured for flow in now.flows):
            self._to_say_first = False
            self.told(f"first figures, {now.seconds:.1f} s into the run{live_text(now)}")
        self._now = now
        if self._progress is not None:
            self._progress.below = live_table(now)

    def told(self, line: str) -> None:
        """Says it at once, above the line that moves."""
        if self._progress is not None:
            self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
        elif self._log is not None:
            self._log.write(line)

    def run_ended(self, position: int, entry: RunEntry) -> None:
        """Writes a line for the run where none moves."""
        self._ended += 1
        self._now, self._sent = None, ""
        if self._progress is not None:
            self._progress.below = None
        self._begun.add(position)
        reason = entry.reason
        own_line = self._log is not None and (len(self._runs) <= MOST_TOLD or reason)
        if own_line:
            self._elapsed[position] = self._planned[position]
        else:
            self.run_progressed(position, 1.0)
        if self._log is not None and own_line:
            said = f"{_messages_sent(self._runs[position], entry)} messages sent"
            said += f"; {reason}" if reason else ""
            left = self._time_left() if self._ended < len(self._runs) else "done"
            self._log.write(f"{self._label(position)}: {said} ({left or 'more to come'})")

    def trial_ended(self) -> None:
        """Takes the line away, or ends the log."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if self._log is not None and len(self._runs) > MOST_TOLD:
            took = _clock_text(self._clock() - self._started)
            self._log.write(f"{self._ended} of {len(self._runs)} runs done in {took}")
        self._log = None

    def judging_began(self) -> None:
        """Shows that the program is at work; a log says so only of a trial that took a while."""
        whole = self.whole
        assert whole is not None  # the trial began
        whole.at("judging", 0.0)
        if not _moves(self._console) and self._clock() - self._started >= EVERY_S:
            _Log(self._console, self._clock).write(_told(whole))
        self._work = Work(self._console, whole, self._clock)
        self._work.__enter__()

    def judging_ended(self) -> None:
        """Takes the line away."""
        if self._work is not None:
            self._work.__exit__()
            self._work = None

    def _tell(self, log: _Log, position: int, traffic: str) -> None:
        fresh = position not in self._begun and len(self._runs) <= MOST_TOLD
        self._begun.add(position)
        if fresh:
            log.write(f"{self._label(position)}: begins")
        elif log.due():
            done = f"{_percent(self._share())} done"
            if self._tracks():
                done += ", messages are tracked"
            runs = f"{self._ended} of {len(self._runs)} runs" if self._virtual_time else self._label(position)
            log.write(", ".join(filter(None, (f"{runs}: {done}", traffic, self._time_left()))))

    def _share(self) -> float:
        """How much of the whole command is done."""
        whole = self.whole
        assert whole is not None  # the trial began
        done = sum(self._elapsed) / sum(self._planned)
        if self._virtual_time:
            # A run is done when its messages are tracked, which takes longer than to simulate it.
            done = _SIMULATED * done + (1 - _SIMULATED) * self._ended / len(self._runs)
        whole.at(RUNNING, done)
        return whole.done

    def _tracks(self) -> bool:
        """Whether every run is simulated, and one is not yet through tracking."""
        return self._virtual_time and self._elapsed == self._planned and self._ended < len(self._runs)

    def _label(self, position: int) -> str:
        """Its number, as `--run` takes it and every other output says it, and its point."""
        run = self._runs[position]
        return "  ".join(filter(None, (f"run {run.index}", _point_label(run))))

    def _of_all(self) -> str:
        return f"{self._ended} of {len(self._runs)} runs done" if len(self._runs) > 1 else ""

    def _time_left(self) -> str:
        """Planned time still to come, stretched by what the runs so far took beyond their plan, and what follows.

        Empty while nothing is known, as at the begin of a simulation.
        """
        whole = self.whole
        assert whole is not None  # the trial began
        self._share()
        total, done = sum(self._planned), sum(self._elapsed)
        if self._virtual_time:
            left = whole.left_s
            return _left(left) if left is not None and done > 0.0 else ""
        left = planned_left_s(total, done, self._clock() - self._started)
        return _left(left + sum(self._then.values()))


def _numbers(indices: Sequence[int]) -> str:
    first, last = indices[0], indices[-1]
    return f"{first} to {last}" if last - first + 1 == len(indices) else ", ".join(map(str, indices))


def _seconds(run: Run) -> float:
    return run.planned_s + 0.3


def _percent(share: float) -> str:
    # Down, so that it is 100 % when all is done and not before.
    return f"{math.floor(100 * share + 1e-9)} %"


def _told(whole: Whole) -> str:
    """A line of a log: what goes on, and how much of the whole command is done."""
    left = whole.left_s
    said = f"{whole.what}: {_percent(whole.done)} done"
    return said if left is None or whole.done >= 1.0 else f"{said}, {_left(left)}"


class Work:
    """What a command computes: judging, explaining, drawing. How much of the whole command is done, and the time left.

    It tells also while a stage does not, once a second on a terminal and after some silence in a log. `last`: nothing
    of the command follows; then a log that said anything says that all is done.
    """

    def __init__(
        self,
        console: Console,
        whole: Whole,
        clock: Clock = time.monotonic,
        *,
        last: bool = False,
        beat_s: float = 1.0,
    ) -> None:
        self._whole, self._last, self._beat_s = whole, last, beat_s
        self._clock, self._begun = clock, clock()
        moves = _moves(console)
        self._log = None if moves else _Log(console, clock)
        self._bar = _bar(console, disable=not moves)
        self._task = self._bar.add_task(whole.what, total=1.0, left="")
        self._hearing: AbstractContextManager[None] | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._beats: threading.Thread | None = None
        self._said = False

    def __enter__(self) -> Work:
        # Heavy, and not needed while frames travel.
        from wiregauge.measures.progress import heard

        self._bar.start()
        self._hearing = heard(self.at)
        self._hearing.__enter__()
        if self._beat_s:
            self._beats = threading.Thread(target=self._beat, name="progress", daemon=True)
            self._beats.start()
        return self

    def __exit__(self, failure: object = None, *more: object) -> None:
        self._over.set()
        if self._beats is not None:
            self._beats.join()
        if self._hearing is not None:
            self._hearing.__exit__(None, None, None)
        self._bar.stop()
        if is_verbose():
            say(f"{self._whole.what} took {self._clock() - self._begun:.2f} s")
        if self._last and failure is None:
            self._whole.end()
            if self._log is not None and self._said:
                self._log.write(_told(self._whole))

    def at(self, what: str, share: float) -> None:
        """So much of a stage is done, 0 to 1."""
        if not self._whole.has(what):
            return
        with self._lock:
            self._whole.at(what, share)
        self.tell()

    def tell(self) -> None:
        """Shows how it stands now."""
        with self._lock:
            left = self._whole.left_s
            self._bar.update(
                self._task,
                completed=self._whole.done,
                description=self._whole.what,
                left="" if left is None else _left(left),
            )
            if self._log is not None and self._log.due():
                self._log.write(_told(self._whole))
                self._said = True

    def _beat(self) -> None:
        while not self._over.wait(self._beat_s):
            self.tell()


class Countdown:
    """How much of a work of known length is done, and the time left."""

    def __init__(self, console: Console, what: str, seconds: float, clock: Clock = time.monotonic) -> None:
        self._what, self._seconds, self._clock = what, seconds, clock
        self._begin = clock()
        moves = _moves(console)
        self._log = None if moves else _Log(console, clock)
        self._progress = _bar(console, disable=not moves)
        self._task = self._progress.add_task(what, total=max(seconds, 0.1), left="")

    def __enter__(self) -> Countdown:
        if self._log is not None:
            self._log.write(f"{self._what}: about {self._seconds:.0f} s")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def at(self, share: float) -> None:
        """So much is done, 0 to 1."""
        spent = self._clock() - self._begin
        left = _left(max(spent * (1 - share) / share if share > 0.02 else self._seconds - spent, 0.0))
        self._progress.update(self._task, completed=share * self._seconds, left=left)
        if self._log is not None and self._log.due():
            self._log.write(f"{self._what}: {100 * share:.0f} % done, {left}")
