"""Recurring modes and excursions of a flow's time series, as figures to compare with a paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from wiregauge import stats
from wiregauge.studies.measured import Measured
from wiregauge.studies.results import Course

__all__ = ["Leaves", "Recurring", "leaves", "recurring"]

SECOND: Final = 1e9
ALIKE: Final = 0.1
"""Greatest relative difference between a mode's period and the requested one."""


class Recurring(Struct, frozen=True):
    """The recurring modes of a time series (`stats.find_modes`), highest first; empty where there is no series."""

    course: Course
    modes: tuple[stats.Mode, ...]
    n: int

    @property
    def count(self) -> Measured:
        """The number of modes, exact."""
        if self.course.series is None:
            return self.course.absent
        found = float(len(self.modes))
        return Measured(found, "", self.n, found, found, f"modes of {self.course.source}")

    def period(self, about_s: float) -> Measured:
        """The period of the mode within a tenth of `about_s`, ns."""
        return self._bounded(about_s, "period", lambda mode: mode.period, SECOND)

    def duration(self, about_s: float) -> Measured:
        """The duration of the mode's bands, ns."""
        return self._bounded(about_s, "duration", lambda mode: mode.duration, SECOND)

    def height(self, about_s: float) -> Measured:
        """The rise of the measure in the mode's bands, ns."""
        return self._bounded(about_s, "height", lambda mode: mode.height, 1.0)

    def highest(self, about_s: float) -> Measured:
        """The greatest rise in any band of the mode, ns; an observed value without interval."""
        mode, absent = self._mode(about_s, "highest")
        return Measured(mode.highest, "ns", mode.bands, source=absent.source) if mode else absent

    def bands(self, about_s: float) -> Measured:
        """The number of cycles in which the mode was seen."""
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
        """The mode, and the figure to report where there is none."""
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
    """Searches a time series for recurring modes: seconds for a million messages, a minute for a day at 100 Hz."""
    if course.series is None:
        return Recurring(course, (), 0)
    found = stats.find_modes(course.series.t, course.series.value)
    return Recurring(course, found.modes, found.n)


class Leaves(Struct, frozen=True):
    """Excursions of a series above its level (`stats.excursions`): a queue that fills at once and drains slowly."""

    course: Course
    found: Sequence[stats.Excursion]
    n: int
    outside: tuple[float, float] | None

    @property
    def count(self) -> Measured:
        """The number of excursions, exact."""
        number = float(len(self.found))
        return self._given(lambda: Measured(number, "", self.n, number, number, self._source("excursions")))

    @property
    def height(self) -> Measured:
        """The mean height of excursions, ns."""
        return self._mean("height", "ns", [one.height for one in self.found])

    @property
    def back_after(self) -> Measured:
        """The mean number of messages until the level is reached again, of excursions that ended within the run."""
        values = [one.back_after for one in self.found if one.back_after is not None]
        return self._mean("messages until back", "messages", values)

    @property
    def slope(self) -> Measured:
        """The mean decrease per message after the peak, ns; positive if the value falls."""
        return self._mean("return per message", "ns", [-one.slope for one in self.found])

    @property
    def range_outside(self) -> Measured:
        """The range of the values outside of excursions, ns."""
        if self.outside is None:
            return self._given(lambda: self.course.absent)
        low, high = self.outside
        return self._given(lambda: Measured(high - low, "ns", self.n, source=self._source("range outside")))

    def _source(self, which: str) -> str:
        return f"{which} of {self.course.source}"

    def _given(self, made: Callable[[], Measured]) -> Measured:
        return self.course.absent if self.course.series is None else made()

    def _mean(self, which: str, unit: str, values: Sequence[float]) -> Measured:
        """The mean with Student's interval; no interval for fewer than two values."""
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
    """Searches a time series for excursions above its level."""
    if course.series is None:
        return Leaves(course, (), 0, None)
    found = stats.excursions(course.series.value)
    return Leaves(course, found.found, found.n, found.outside)
