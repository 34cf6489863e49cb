"""How a measure of a flow went over a run: any window of it in columns, of which each is exact.

What is kept in the run directory (`keeping`) answers; where nothing is kept, as of small flows and of runs of older
versions, the same is computed from the messages when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wiregauge.measures.extremes.building import Key, build, raw, series_of
from wiregauge.measures.extremes.keeping import kept
from wiregauge.measures.metrics.clocks import RunClocks, run_clocks
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.results import FlowResult, Judgement
from wiregauge.measures.metrics.series import clock_shift
from wiregauge.stats.pyramid import Blocks, Growing, Values, levels, window

__all__ = ["Course", "CourseShape", "Courses", "courses"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
T = TypeVar("T", int, Integers)

PS_PER_S = 1e12
PS_PER_NS = 1e3
_FINE = 1e6


@dataclass(frozen=True, slots=True)
class CourseShape:
    """A window of a measure in columns that together hold every message of it; instants in s, values in ns.

    A column covers `messages` sent from `begin` to `end`; `n` of them have a value, and the least and the greatest of
    these are exact (NaN where there is none), as are the instants when they were sent.
    """

    begin: Floats
    end: Floats
    messages: Integers
    lost: Integers
    unknown: Integers
    n: Integers
    least: Floats
    greatest: Floats
    least_at: Floats
    greatest_at: Floats

    @property
    def values(self) -> int:
        """Values in the window."""
        return int(self.n.sum())

    @property
    def most(self) -> int:
        """Values in the fullest column; at most 2 where every value is a mark of its own."""
        return int(self.n.max(initial=0))

    def marks(self) -> tuple[Floats, Floats]:
        """The least and the greatest of every column as instants and values, in the order of time, none twice."""
        has = self.n > 0
        t = np.concatenate([self.least_at[has], self.greatest_at[has]])
        value = np.concatenate([self.least[has], self.greatest[has]])
        marks = np.unique(np.stack([t, value], axis=1), axis=0)
        return marks[:, 0], marks[:, 1]


class Course:
    """One measure of one flow at one receiver in one run."""

    def __init__(
        self,
        levels_: list[Blocks],
        name: str,
        shift_ns: float,
        read: Callable[[int, int], Values],
        per_ns: float = PS_PER_NS,
    ) -> None:
        self._levels, self._name, self._shift, self._read = levels_, name, shift_ns, read
        self._per_ns = per_ns

    @classmethod
    def of_values(cls, t: Floats, value: Floats) -> Course | None:
        """Of values that are held, instants in s and values in ns, none of which may have a fate; None of no value."""
        known = np.isfinite(t) & np.isfinite(value)
        if not known.any():
            return None
        at = np.rint(t[known] * PS_PER_S).astype(np.int64)
        order = np.argsort(at, kind="stable")
        places, nothing = np.arange(len(order)), np.zeros(len(order), dtype=np.bool_)
        # Whole femtoseconds: the least difference of two means of picoseconds that anybody draws.
        found = np.rint(value[known][order] * _FINE).astype(np.int64)
        values = Values(places, at[order], nothing, nothing, {"value": (found, None)})
        growing = Growing()
        growing.add(values)
        finest = growing.finish()
        assert finest is not None

        def read(begin: int, end: int) -> Values:
            return values.cut(slice(int(finest.first[begin]), int(finest.past[end - 1])))

        return cls(levels(finest), "value", 0.0, read, _FINE)

    @property
    def span(self) -> tuple[float, float]:
        """When its first and its last message were sent, s."""
        finest = self._levels[0]
        return int(finest.begin.min()) / PS_PER_S, int(finest.end.max()) / PS_PER_S

    def columns(self, most: int, begin: float | None = None, end: float | None = None) -> CourseShape:
        """Messages sent from `begin` to before `end` (s; without them all), in at most `most` columns of equal time."""
        finest = self._levels[0]
        first = int(finest.begin.min()) if begin is None else round(begin * PS_PER_S)
        past = int(finest.end.max()) + 1 if end is None else round(end * PS_PER_S)
        found = window(self._levels, self._name, (first, past), max(most, 1), self._read)
        has = found.n > 0

        def value(column: Integers) -> Floats:
            return np.where(has, column / self._per_ns - self._shift, np.nan)

        def instant(column: Integers) -> Floats:
            return np.where(has, column / PS_PER_S, np.nan)

        return CourseShape(
            found.begin / PS_PER_S,
            found.end / PS_PER_S,
            found.count,
            found.lost,
            found.unknown,
            found.n,
            value(found.least),
            value(found.greatest),
            instant(found.least_at),
            instant(found.greatest_at),
        )


class Courses:
    """The courses of some flows of one run."""

    def __init__(self, directory: Recorded, run: RunPlan, flows: Iterable[FlowPlan]) -> None:
        self._directory, self._run = directory, run
        self._clocks: RunClocks = run_clocks(directory, run)
        self._flows: Mapping[Key, FlowPlan] = {(flow.id, flow.receiver): flow for flow in flows}
        moved = [flow for flow in self._flows.values() if self._clocks.moved(flow)]
        plain = {key: flow for key, flow in self._flows.items() if not self._clocks.moved(flow)}
        self._levels = kept(directory, run, plain)
        missing = [flow for key, flow in plain.items() if key not in self._levels]
        for some, clocks in ((moved, self._clocks), (missing, None)):
            if some:
                built = build(directory, run, some, clocks)
                self._levels |= {key: levels(blocks) for key, blocks in built.items()}

    def of(self, flow: FlowPlan, name: str) -> Course | None:
        """The course of a measure; None where the flow has no such measure of single messages, or no message."""
        key = flow.id, flow.receiver
        found = self._levels.get(key)
        if found is None or name not in series_of(flow):
            return None
        clocks = self._clocks if self._clocks.moved(flow) else None
        if name not in found[0].of:
            found = levels(build(self._directory, self._run, [flow], clocks, (name,))[key])
        read = partial(_raw, self._directory, self._run, flow, clocks, found[0], name)
        return Course(found, name, clock_shift(name, flow, self._clocks.between(flow).outward_ns), read)


def _raw(
    directory: Recorded,
    run: RunPlan,
    flow: FlowPlan,
    clocks: RunClocks | None,
    finest: Blocks,
    name: str,
    begin: int,
    end: int,
) -> Values:
    return raw(directory, run, flow, clocks, finest, name, (begin, end))


def courses(judgement: Judgement, run: RunPlan, flows: Iterable[FlowResult]) -> Courses:
    """The courses of some flows of a judged run. Raises RunDirectoryError for a file that cannot be read."""
    return Courses(open_recorded(judgement.directory), run, [flow.plan for flow in flows])
