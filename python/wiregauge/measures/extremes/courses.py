"""Time course of a measure of a flow: any window of it in columns, each of them exact.

It is read from the run directory (`keeping`); for small flows and runs of older versions, which store nothing, it is
computed from the messages on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.measures.extremes.building import (
    DRAWN,
    MESSAGES,
    RESIDENCE,
    Key,
    build,
    every_message,
    every_passage,
    passages_of,
    raw,
    raw_residence,
    raw_spaced,
    residences,
    series_of,
    spaced_of,
)
from wiregauge.measures.extremes.keeping import kept
from wiregauge.measures.extremes.spaced import COLUMNS
from wiregauge.measures.metrics.clocks import RunClocks, run_clocks
from wiregauge.measures.metrics.flow_plan import FlowPlan, RunPlan
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.measures.metrics.recorded import Recorded, open_recorded
from wiregauge.measures.metrics.series import clock_shift
from wiregauge.stats.pyramid import Blocks, Values, elements, levels, window

__all__ = ["Course", "CourseShape", "Courses", "courses", "measures_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PS_PER_S = 1e12
PS_PER_NS = 1e3


class CourseShape(Struct, frozen=True):
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
    """One measure of one flow at one receiver in one run.

    It is made from the blocks of a series: `ns_of` converts values of the measure `of` from ps to ns of this one; it is
    monotonic, decreasing with `falling`.
    """

    def __init__(
        self,
        levels_: Sequence[Blocks],
        of: str,
        ns_of: Callable[[Floats], Floats],
        read: Callable[[int, int], Values],
        *,
        falling: bool = False,
    ) -> None:
        self._levels, self._of, self._ns_of, self._read = levels_, of, ns_of, read
        self._falling = falling

    @property
    def span(self) -> tuple[float, float]:
        """Sending times of the first and the last message, s."""
        finest = self._levels[0]
        return int(finest.begin.min()) / PS_PER_S, int(finest.end.max()) / PS_PER_S

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the greatest of all values, ns; not a number where there is none."""
        shape = self.columns(1)
        has = shape.n > 0
        if not has.any():
            return np.nan, np.nan
        return float(shape.least[has].min()), float(shape.greatest[has].max())

    def columns(self, most: int, begin: float | None = None, end: float | None = None) -> CourseShape:
        """Messages sent from `begin` to before `end` (s; without them all), in at most `most` columns of equal time."""
        found = window(self._levels, self._of, self._span(begin, end), max(most, 1), self._read)
        has = found.n > 0

        def value(column: Integers) -> Floats:
            return np.where(has, self._ns_of(column.astype(np.float64)), np.nan)

        def instant(column: Integers) -> Floats:
            return np.where(has, column / PS_PER_S, np.nan)

        least, greatest = value(found.least), value(found.greatest)
        least_at, greatest_at = instant(found.least_at), instant(found.greatest_at)
        if self._falling:
            least, greatest, least_at, greatest_at = greatest, least, greatest_at, least_at
        return CourseShape(
            found.begin / PS_PER_S,
            found.end / PS_PER_S,
            found.count,
            found.lost,
            found.unknown,
            found.n,
            least,
            greatest,
            least_at,
            greatest_at,
        )

    def values(self, begin: float | None = None, end: float | None = None) -> Floats:
        """The value of every message sent from `begin` to before `end` (s; without them all) that has one, ns.

        They are in the order of sending, and read from the messages: `columns(1)` tells how many there are.
        """
        parts = [np.zeros((2, 0))]
        for found in elements(self._levels[0], self._span(begin, end), self._read):
            value, known = found.of[self._of]
            has = slice(None) if known is None else known
            parts.append(
                np.stack([found.at[has].astype(np.float64), self._ns_of(value[has].astype(np.float64))])
            )
        at, ns = np.concatenate(parts, axis=1)
        return np.asarray(ns[np.argsort(at, kind="stable")])

    def _span(self, begin: float | None, end: float | None) -> tuple[int, int]:
        finest = self._levels[0]
        first = int(finest.begin.min()) if begin is None else round(begin * PS_PER_S)
        return first, int(finest.end.max()) + 1 if end is None else round(end * PS_PER_S)


def measures_of(flow: FlowPlan) -> tuple[str, ...]:
    """Measures of a flow that `Courses.of` knows: those of its messages, its arrivals and its passages of switches."""
    derived = {
        "delay_variation": "latency" in series_of(flow),
        "lateness": flow.deadline_ns is not None,
        "bag_jitter": flow.bag_ns is not None,
        RESIDENCE: True,
    }
    return (*series_of(flow), *spaced_of(flow), *(name for name, there in derived.items() if there))


class Courses:
    """The courses of some flows of one run."""

    def __init__(self, directory: Recorded, run: RunPlan, flows: Iterable[FlowPlan]) -> None:
        self._directory, self._run = directory, run
        self._clocks: RunClocks = run_clocks(directory, run)
        self._flows: Mapping[Key, FlowPlan] = {(flow.id, flow.receiver): flow for flow in flows}
        self._levels: dict[Key, dict[str, list[Blocks]]] = {}

    def of(self, flow: FlowPlan, name: str) -> Course | None:
        """The time course of a measure; None where the flow has no such measure, or no message."""
        if name == "delay_variation":
            latency = self.of(flow, "latency")
            if latency is None:
                return None
            least, _ = latency.extremes
            return self._made(flow, "latency", lambda ns: ns - least)
        if name == "lateness":
            deadline = flow.deadline_ns
            offset = clock_shift(flow.main, flow, self._clocks.between(flow).outward_ns)
            return (
                None if deadline is None else self._made(flow, flow.main, lambda ns: ns + offset - deadline)
            )
        if name == "bag_jitter":
            bag = flow.bag_ns
            if bag is None:
                return None
            return self._made(flow, "bag_spacing", lambda ns: np.maximum(bag - ns, 0.0), falling=True)
        return self._made(flow, name)

    def every(self, names: Collection[str]) -> dict[Key, Values]:
        """Every message by flow, in the order of sending, with those of these measures that a flow's messages have.

        Values are in ps, rounded, clocks taken out. Only for runs small enough to be held.
        """
        found: dict[Key, Values] = {}
        for moved in (False, True):
            flows = [flow for flow in self._flows.values() if self._clocks.moved(flow) == moved]
            if flows:
                clocks = self._clocks if moved else None
                found |= every_message(self._directory, self._run, flows, clocks, names)
        return {key: self._shifted(self._flows[key], found[key]) for key in self._flows if key in found}

    def _shifted(self, flow: FlowPlan, values: Values) -> Values:
        offset = self._clocks.between(flow).outward_ns
        of = {}
        for name, (value, known) in values.of.items():
            shift = np.int64(round(clock_shift(name, flow, offset) * PS_PER_NS))
            of[name] = value - shift, known
        return replace(values, of=of).cut(np.argsort(values.at, kind="stable"))

    def every_residence(self) -> dict[Key, Values]:
        """Every passage through a switch by flow, in the order of leaving it; as `every`."""
        by_number = every_passage(self._directory, self._run)
        return {
            key: by_number[flow.id].cut(np.argsort(by_number[flow.id].at, kind="stable"))
            for key, flow in self._flows.items()
            if flow.id in by_number
        }

    @property
    def passages(self) -> int:
        """How many passages through switches the run has."""
        return passages_of(self._directory, self._run)

    def _made(
        self,
        flow: FlowPlan,
        name: str,
        made: Callable[[Floats], Floats] = lambda ns: ns,
        *,
        falling: bool = False,
    ) -> Course | None:
        """The time course of a measure that is in a series, or is computed from its ns."""
        series = MESSAGES if name in series_of(flow) else name
        found = self._series(flow, series, name)
        if not found:
            return None
        clocks = self._clocks if self._clocks.moved(flow) else None
        finest = found[0]

        def read(begin: int, end: int) -> Values:
            if series == RESIDENCE:
                return raw_residence(self._directory, self._run, flow, finest, (begin, end))
            of = raw if series == MESSAGES else raw_spaced
            return of(self._directory, self._run, flow, clocks, finest, name, (begin, end))

        shift = clock_shift(name, flow, self._clocks.between(flow).outward_ns)
        return Course(found, name, lambda ps: made(ps / PS_PER_NS - shift), read, falling=falling)

    def _series(self, flow: FlowPlan, series: str, name: str) -> list[Blocks]:
        """All levels of a series with a measure, from the store or, where it is not stored, from the messages."""
        key = flow.id, flow.receiver
        known = self._levels.setdefault(key, {})
        self._look_up(flow, series)
        if known.get(series) and name in known[series][0].of:
            return known[series]
        if series == RESIDENCE:
            blocks = residences(self._directory, self._run, [flow.id]).get(flow.id)
            known[series] = levels(blocks) if blocks is not None else []
            return known[series]
        if series != MESSAGES and series not in spaced_of(flow):
            return []
        # The series shown most are built for all flows at once: a pass over the table costs more than one
        # flow of it.
        wanted = [flow] if name not in DRAWN or series != MESSAGES else self._lacking(flow)
        names = (name,) if name not in DRAWN or series != MESSAGES else DRAWN - COLUMNS.keys()
        clocks = self._clocks if self._clocks.moved(flow) else None
        built = build(self._directory, self._run, wanted, clocks, names)
        for other, of_series in built.items():
            have = self._levels.setdefault(other, {})
            for each, blocks in of_series.items():
                if each != series:
                    continue
                have[each] = _with(have.get(each), levels(blocks))
        return known.get(series, [])

    def _look_up(self, flow: FlowPlan, series: str) -> None:
        """Reads a series from the store, unless it was read before or is not there."""
        known = self._levels.setdefault((flow.id, flow.receiver), {})
        if series not in known and not self._clocks.moved(flow):
            found = kept(self._directory, self._run, flow, series)
            if found:
                known[series] = found

    def _lacking(self, flow: FlowPlan) -> list[FlowPlan]:
        """The flow, and those that are not stored either and whose times are corrected likewise."""
        found = []
        for key, other in self._flows.items():
            if self._clocks.moved(flow) == self._clocks.moved(other):
                self._look_up(other, MESSAGES)
                if MESSAGES not in self._levels[key]:
                    found.append(other)
        return found or [flow]


def _with(have: list[Blocks] | None, found: list[Blocks]) -> list[Blocks]:
    """The blocks with the measures of both lists."""
    if have is None:
        return found
    return [replace(one, of={**one.of, **other.of}) for one, other in zip(have, found, strict=True)]


def courses(judgement: Judgement, run: RunPlan, flows: Iterable[FlowResult]) -> Courses:
    """The courses of some flows of a judged run. Raises RunDirectoryError for a file that cannot be read."""
    return Courses(open_recorded(judgement.directory), run, [flow.plan for flow in flows])
