"""Interface for observers of a trial's progress, such as the terminal's view."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.plan import Run
from wiregauge.records.live import RunNow
from wiregauge.records.reported import RunEntry

__all__ = ["Observer", "Several"]


class Observer:
    """Receives a trial's progress from the main thread; the default ignores it, subclasses override methods.

    `position` is that of a run in the plan; in virtual time runs go on in parallel. An exception of an observer ends
    the trial.
    """

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        """A trial of these runs of a plan begins. In real time no run is faster than its plan."""

    def run_began(self, position: int) -> None:
        """A run in real time begins; called before its agents are prepared."""

    def run_progressed(self, position: int, share: float) -> None:
        """A share of a run is done, 0 to 1."""

    def run_measured(self, now: RunNow) -> None:
        """Live figures of a run, once a second; provisional. In virtual time of one run under way at a time."""

    def told(self, line: str) -> None:
        """A live figure is beyond an alarm's limit, or something else of the run needs saying at once."""

    def run_ended(self, position: int, entry: RunEntry) -> None:
        """A run has ended; `entry` is its entry of the manifest."""

    def trial_ended(self) -> None:
        """No run follows; called however the trial ended."""

    def judging_began(self) -> None:
        """Judging of the recorded runs begins."""

    def judging_ended(self) -> None:
        """Nothing follows; called however judging ended."""


class Several(Observer):
    """Tells several observers the same, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def trial_began(self, runs: Sequence[Run], *, virtual_time: bool) -> None:
        """See `Observer`."""
        for one in self._observers:
            one.trial_began(runs, virtual_time=virtual_time)

    def run_began(self, position: int) -> None:
        for one in self._observers:
            one.run_began(position)

    def run_progressed(self, position: int, share: float) -> None:
        for one in self._observers:
            one.run_progressed(position, share)

    def run_measured(self, now: RunNow) -> None:
        for one in self._observers:
            one.run_measured(now)

    def told(self, line: str) -> None:
        for one in self._observers:
            one.told(line)

    def run_ended(self, position: int, entry: RunEntry) -> None:
        for one in self._observers:
            one.run_ended(position, entry)

    def trial_ended(self) -> None:
        for one in self._observers:
            one.trial_ended()

    def judging_began(self) -> None:
        for one in self._observers:
            one.judging_began()

    def judging_ended(self) -> None:
        for one in self._observers:
            one.judging_ended()
