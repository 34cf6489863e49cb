"""Keeps `live.json` of a run directory up to date while its campaign goes on, and obeys a request to stop it."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from wiregauge.plan import Run
from wiregauge.plan.campaign import Limit
from wiregauge.records import RunDirectory, missing_runs
from wiregauge.records.directory import utc_now
from wiregauge.records.live import (
    SCHEMA,
    FlowNow,
    LimitNow,
    Live,
    RunNow,
    Stretch,
    clear_live,
    is_asked_to_stop,
    write_live,
)
from wiregauge.records.reported import RunEntry
from wiregauge.runner.live.alarms import MEASURES, AlarmLimit
from wiregauge.runner.observer import Observer
from wiregauge.runner.stopping import Interrupted

__all__ = ["Course", "LiveState", "planned_left_s"]

EVERY_S: Final = 1.0
MOST_TOLD: Final = 50
MOST_STRETCHES: Final = 120
"""Stretches of a flow's course; of very many flows fewer, so that the file stays small."""
_LEAST_STRETCHES: Final = 16
_STRETCHES_OF_ALL: Final = 8000
_SURE: Final = 0.02
"""Share of a simulation from which on it tells how long the rest takes."""


def planned_left_s(total_s: float, done_s: float, spent_s: float) -> float:
    """Planned time still to come, stretched by what the runs so far took beyond their plan."""
    return (total_s - done_s) * (max(1.0, spent_s / done_s) if done_s > 1.0 else 1.0)


class Course:
    """All of a flow so far in at most `most` stretches: as time goes on, neighbours become one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._looks = 1
        """Looks that a stretch is made of."""
        self._in_last = 0
        self._lost = 0
        self.stretches: list[Stretch] = []

    def add(self, begin_s: float, flow: FlowNow, end_s: float) -> None:
        """Adds what was seen between two instants."""
        seen = Stretch(begin_s, end_s, flow.max_ns, flow.lost - self._lost)
        self._lost = flow.lost
        if self.stretches and self._in_last < self._looks:
            self.stretches[-1] = _joined(self.stretches[-1], seen)
            self._in_last += 1
            return
        if len(self.stretches) == self._most:
            pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
            self.stretches = [_joined(one, other) for one, other in pairs]
            self._looks *= 2
        self.stretches.append(seen)
        self._in_last = 1


def _joined(one: Stretch, other: Stretch) -> Stretch:
    greatest = max((v for v in (one.greatest_ns, other.greatest_ns) if v is not None), default=None)
    return Stretch(one.begin, other.end, greatest, one.lost + other.lost)


class _Watched:
    """A limit of the test beside the live figures of a run."""

    def __init__(self, limit: Limit, run: Run) -> None:
        self._of = limit
        self._limit = AlarmLimit(limit.measure, limit.value, limit.written)
        self._has_figures = limit.bound == "at-most" and limit.measure in MEASURES and self._limit.is_of(run)
        self._seconds = 0
        self._worst = float("-inf")
        self._worst_of: int | None = None

    def look(self, now: RunNow) -> LimitNow:
        """The limit after one more second."""
        beyond = []
        for flow in now.flows if self._has_figures else ():
            value = self._limit.observed(flow) if self._of.flow in (None, flow.flow) else None
            if value is None:
                continue
            if value > self._worst:
                self._worst, self._worst_of = value, flow.flow
            if value > self._limit.most:
                beyond.append(flow.flow)
        self._seconds += bool(beyond)
        worst = (
            f"{self._limit.in_words(self._worst)}, flow {self._worst_of}"
            if self._worst_of is not None
            else ""
        )
        return LimitNow(
            self._of.measure,
            f"{self._of.bound.replace('-', ' ')} {self._of.written}",
            self._of.flow,
            self._has_figures,
            tuple(beyond),
            self._seconds,
            worst,
        )


class LiveState(Observer):
    """Writes the state of a campaign beside its records, at most once a second; a short one leaves none.

    A disk that takes no file ends nothing: whoever looks is told how old the last one is.
    """

    def __init__(self, directory: RunDirectory, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory, self._clock = directory, clock
        self._told: deque[str] = deque(maxlen=MOST_TOLD)
        self._now: RunNow | None = None
        self._courses: dict[int, Course] = {}
        self._limits: list[_Watched] = []
        self._limits_now: tuple[LimitNow, ...] = ()
        self._stopped = False

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        """Forgets what a former process left."""
        clear_live(self._directory.root)
        missing = set(missing_runs(self._directory))
        self._runs, self._virtual_time = runs, virtual_time
        self._shares = {k: 1.0 for k, run in enumerate(runs) if run.index not in missing}
        self._ended = len(self._shares)
        self._under_way: set[int] = set()
        self._begun = self._clock()
        self._done_before = self._planned_done_s
        self._due = self._begun + EVERY_S

    def run_began(self, position: int) -> None:
        """Begins the figures of a run in real time."""
        self._begin_figures(position)
        self.run_progressed(position, 0.0)

    def _begin_figures(self, position: int) -> None:
        self._now, self._courses = None, {}
        run = self._runs[position]
        self._limits = [_Watched(limit, run) for limit in self._directory.plan.limits]
        self._limits_now = ()

    def run_progressed(self, position: int, share: float) -> None:
        """Notes the share, and writes if that is due. Raises Interrupted on a request to stop."""
        self._shares[position] = share
        self._under_way.add(position)
        now = self._clock()
        if now < self._due:
            return
        self._due = now + EVERY_S
        if not self._stopped and is_asked_to_stop(self._directory.root):
            self._stopped = True
            raise Interrupted("stopped on request from a page, or by a file `stop` in the run directory")
        with contextlib.suppress(OSError):
            write_live(self._directory.root, self._live())

    def run_measured(self, now: RunNow) -> None:
        """Adds a second of a run; in virtual time it may be another run than before."""
        if self._virtual_time and (self._now is None or self._now.position != now.position):
            self._begin_figures(now.position)
        before = self._now.seconds if self._now is not None else 0.0
        most = min(max(_STRETCHES_OF_ALL // max(len(now.flows), 1), _LEAST_STRETCHES), MOST_STRETCHES)
        for flow in now.flows:
            if flow.flow not in self._courses:
                self._courses[flow.flow] = Course(most - most % 2)
            self._courses[flow.flow].add(before, flow, now.seconds)
        self._limits_now = tuple(limit.look(now) for limit in self._limits)
        self._now = now

    def told(self, line: str) -> None:
        """Keeps the line."""
        self._told.append(line)

    def run_ended(self, position: int, entry: RunEntry) -> None:
        """Counts it."""
        del entry
        self._shares[position] = 1.0
        self._under_way.discard(position)
        self._ended += 1

    def trial_ended(self) -> None:
        """Leaves nothing: the manifest says how it ended."""
        clear_live(self._directory.root)

    @property
    def _planned_done_s(self) -> float:
        return sum(self._runs[position].planned_s * share for position, share in self._shares.items())

    def _live(self) -> Live:
        total, done = sum(run.planned_s for run in self._runs), self._planned_done_s
        share = done / total
        if self._virtual_time:
            # A run is done when its messages are tracked, which takes about as long as to simulate it.
            share = (share + self._ended / len(self._runs)) / 2
        return Live(
            schema=SCHEMA,
            written=utc_now(),
            virtual_time=self._virtual_time,
            runs=len(self._runs),
            ended=self._ended,
            share=share,
            left_s=self._left_s(total, done, share),
            shares={
                self._runs[position].index: self._shares[position] for position in sorted(self._under_way)
            },
            now=self._now,
            courses={flow: tuple(course.stretches) for flow, course in self._courses.items()},
            limits=self._limits_now,
            told=tuple(self._told),
        )

    def _left_s(self, total: float, done: float, share: float) -> float | None:
        spent = self._clock() - self._begun
        if not self._virtual_time:
            return planned_left_s(total - self._done_before, done - self._done_before, spent)
        return spent * (1 - share) / share if share > _SURE else None
