"""Which share of a whole command is done, from the stages it goes through: one number, which only grows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["AFTER_RUNS", "RUNNING", "Whole"]

Clock = Callable[[], float]

RUNNING: Final = "running"
"""The stage of the runs themselves."""
AFTER_RUNS: Final[Mapping[str, float]] = {"judging": 0.5, "explaining": 2.5, "drawing": 0.7}
"""What may follow runs and about how long it takes of a small one, s; of a large one all of it takes longer alike."""
SIMULATING_S: Final = 0.5
"""Likewise what simulating and tracking take."""
_SURE: Final = 0.02
"""Share of the work from which on it tells how long the rest takes."""
_REACH: Final = 0.95
"""How far towards its end a stage is taken to be that does not tell."""


class Whole:
    """Stages that follow one another, `rounds` times, each with the part of the work that it is.

    A stage tells its share by `at`; between two tellings, time that passes is taken for progress, ever less of it the
    longer it is, so that a stage never seems done before it says so. `fixed` is a stage that takes as many seconds as
    its part says; what the others take is told by the time they took so far.
    """

    def __init__(
        self, stages: Mapping[str, float], clock: Clock = time.monotonic, *, rounds: int = 1, fixed: str = ""
    ) -> None:
        self._stages, self._rounds, self._fixed = dict(stages), rounds, fixed
        self._clock = clock
        self._round = 0
        self._what = next(iter(self._stages))
        self._done = self._shown = 0.0
        self._told_at = self._begun = clock()
        self._computed_from: float | None = None if fixed else self._begun

    @property
    def what(self) -> str:
        """The stage that goes on."""
        return self._what

    def has(self, what: str) -> bool:
        """Whether it has such a stage."""
        return what in self._stages

    def at(self, what: str, share: float) -> None:
        """So much of a stage is done, 0 to 1. One that is begun again begins the next round."""
        names = list(self._stages)
        if names.index(what) < names.index(self._what) and self._round + 1 < self._rounds:
            self._round += 1
        begun = what != self._what
        self._what = what
        done = self._before() + min(max(share, 0.0), 1.0) * self._part()
        if begun or done > self._done:
            self._told_at = self._clock()
        if what != self._fixed and self._computed_from is None:
            self._computed_from = self._told_at
        self._done = max(self._done, done)

    def end(self) -> None:
        """All of it is done."""
        self._done = self._shown = 1.0

    @property
    def done(self) -> float:
        """The share of all, 0 to 1; never less than it was."""
        self._shown = max(self._shown, self._expected())
        return self._shown

    @property
    def left_s(self) -> float | None:
        """How long the rest takes; None while nothing tells."""
        done = self.done
        if self._what == self._fixed:
            return (1.0 - done) * self._total()
        computed = (done * self._total() - self._stages.get(self._fixed, 0.0)) / self._computed()
        if computed < _SURE:
            return None
        return self._spent() * (1.0 - computed) / computed

    def _total(self) -> float:
        return self._rounds * sum(self._stages.values())

    def _computed(self) -> float:
        return self._total() - self._stages.get(self._fixed, 0.0)

    def _part(self) -> float:
        return self._stages[self._what] / self._total()

    def _before(self) -> float:
        names = list(self._stages)
        before = sum(self._stages[name] for name in names[: names.index(self._what)])
        return (self._round * sum(self._stages.values()) + before) / self._total()

    def _spent(self) -> float:
        return self._clock() - (self._computed_from if self._computed_from is not None else self._begun)

    def _expected(self) -> float:
        if self._what == self._fixed or self._done >= 1.0:
            return self._done
        rest = (self._before() + self._part() - self._done) * self._total()
        known = self._done * self._total() - self._stages.get(self._fixed, 0.0)
        before = self._told_at - (self._computed_from if self._computed_from is not None else self._begun)
        if rest <= 0.0 or before <= 0.0 or known <= _SURE * self._computed():
            return self._done
        pace = before / known
        waited = self._clock() - self._told_at
        return self._done + _REACH * rest / self._total() * -math.expm1(-waited / (rest * pace))
