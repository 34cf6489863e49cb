"""What recurs in the course of a flow, and where it leaves its level, as figures that can be laid beside a paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wiregauge import stats
from wiregauge.studies.measured import Measured
from wiregauge.studies.results import Course

__all__ = ["Leaves", "Recurring", "leaves", "recurring"]

SECOND: Final = 1e9
ALIKE: Final = 0.1
"""How far the period of a mode may be from the one that is asked for, as a share of it."""


@dataclass(frozen=True, slots=True)
class Recurring:
    """The recurring modes of a course (`stats.find_modes`), highest first. None of a course that there is not."""

    course: Course
    modes: tuple[stats.Mode, ...]
    n: int

    @property
    def count(self) -> Measured:
        """How many there are; exact, as the search says all it finds."""
        if self.course.series is None:
            return self.course.absent
        found = float(len(self.modes))
        return Measured(found, "", self.n, found, found, f"modes of {self.course.source}")

    def period(self, about_s: float) -> Measured:
        """Period of the mode whose period is within a tenth of `about_s`, ns."""
        return self._bounded(about_s, "period", lambda mode: mode.period, SECOND)

    def duration(self, about_s: float) -> Measured:
        """How long its bands last, ns."""
        return self._bounded(about_s, "duration", lambda mode: mode.duration, SECOND)

    def height(self, about_s: float) -> Measured:
        """By how much its bands lift the measure, ns."""
        return self._bounded(about_s, "height", lambda mode: mode.height, 1.0)

    def highest(self, about_s: float) -> Measured:
        """The greatest rise in any of its bands, ns; it is what happened and has no interval."""
        mode, absent = self._mode(about_s, "highest")
        return Measured(mode.highest, "ns", mode.bands, source=absent.source) if mode else absent

    def bands(self, about_s: float) -> Measured:
        """In how many cycles it was seen."""
        mode, absent = self._mode(about_s, "bands")
        if mode is None:
            return absent
        return Measured(float(mode.bands), "", mode.bands, source=absent.source)

    def _bounded(
        self, about_s: float, which: str, of: Callable[[stats.Mode], stats.Bounded], scale: float
    ) -> Measured:
        mode, absent = self._mode(about_s, which)
        if mode is None:
            return absent
        found = of(mode)
        return Measured(
            found.value * scale, "ns", mode.bands, found.low * scale, found.high * scale, absent.source
        )

    def _mode(self, about_s: float, which: str) -> tuple[stats.Mode | None, Measured]:
        """The mode, and what a figure of it is if there is none."""
        if self.course.series is None:
            return None, self.course.absent
        source = f"{which} of the mode of {about_s:g} s, {self.course.source}"
        near = [mode for mode in self.modes if abs(mode.period.value / about_s - 1) < ALIKE]
        if near:
            return min(near, key=lambda mode: abs(mode.period.value - about_s)), Measured(
                None, "ns", source=source
            )
        others = ", ".join(f"{mode.period.value:.4g} s" for mode in self.modes) or "none"
        return None, Measured(
            None, "ns", source=source, reason=f"no mode has a period near {about_s:g} s; found: {others}"
        )


def recurring(course: Course) -> Recurring:
    """Searches a course for recurring modes: some seconds for a million messages, a minute for a day of 100 Hz."""
    if course.series is None:
        return Recurring(course, (), 0)
    found = stats.find_modes(course.series.t, course.series.value)
    return Recurring(course, found.modes, found.n)


@dataclass(frozen=True, slots=True)
class Leaves:
    """Where a course leaves its level upwards (`stats.excursions`): a queue that fills at once and empties slowly."""

    course: Course
    found: Sequence[stats.Excursion]
    n: int
    outside: tuple[float, float] | None

    @property
    def count(self) -> Measured:
        """How often; exact."""
        number = float(len(self.found))
        return self._given(lambda: Measured(number, "", self.n, number, number, self._source("excursions")))

    @property
    def height(self) -> Measured:
        """Mean of how far it leaves it, ns."""
        return self._mean("height", "ns", [one.height for one in self.found])

    @property
    def back_after(self) -> Measured:
        """Mean of the messages until it is back on its level; of those that came back within the run."""
        values = [one.back_after for one in self.found if one.back_after is not None]
        return self._mean("messages until back", "messages", values)

    @property
    def slope(self) -> Measured:
        """Mean of what it comes back with every message, ns; positive if it does."""
        return self._mean("return per message", "ns", [-one.slope for one in self.found])

    @property
    def range_outside(self) -> Measured:
        """Greatest less least value outside of them, ns."""
        if self.outside is None:
            return self._given(lambda: self.course.absent)
        low, high = self.outside
        return self._given(lambda: Measured(high - low, "ns", self.n, source=self._source("range outside")))

    def _source(self, which: str) -> str:
        return f"{which} of {self.course.source}"

    def _given(self, made: Callable[[], Measured]) -> Measured:
        return self.course.absent if self.course.series is None else made()

    def _mean(self, which: str, unit: str, values: Sequence[float]) -> Measured:
        """The mean with Student's interval from how they differ; none of fewer than two."""
        if self.course.series is None:
            return self.course.absent
        source = self._source(which)
        if not values:
            return Measured(None, unit, source=source, reason="it never leaves its level and comes back")
        half = (
            stats.repeated_mean_half_width(np.array(values), np.full(len(values), 1 / len(values)))
            if len(values) > 1
            else None
        )
        value = float(np.mean(values))
        low, high = (None, None) if half is None else (value - half, value + half)
        return Measured(value, unit, len(values), low, high, source)


def leaves(course: Course) -> Leaves:
    """Searches a course for stretches above its level."""
    if course.series is None:
        return Leaves(course, (), 0, None)
    found = stats.excursions(course.series.value)
    return Leaves(course, found.found, found.n, found.outside)
