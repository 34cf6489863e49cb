"""The verdicts of one figure over a history: each run held against those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.files.typed_json import Count, Figure, Key
from wiregauge.measures.comparing.comparison import Basis, Shift, Verdict
from wiregauge.measures.comparing.judging import LEVEL, judge_shift, out_of_reach
from wiregauge.measures.comparing.measured import widened
from wiregauge.measures.comparing.thresholds import Threshold
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.stats import Estimate, Events

Against = Literal["previous", "first"]

_DIFFERENT = 0.05
"""Chance below which one of the runs before counts as different from the others."""


class TrendPoint(Struct, frozen=True):
    """One figure in one run. `shift` is against the reference, with clock and timestamp errors: at the joint level, or
    where the reference is one run, with the interval that `compare` shows.

    `detectable`: the smallest shift of an unchanged figure that would have been called changed; against one run, the
    value of `compare`.
    """

    run: Count
    n: Count
    value: Estimate
    fit: bool
    reference: Figure = None
    shift: Estimate | None = None
    tolerance: Annotated[Figure, Key("threshold")] = None
    verdict: Verdict | None = None
    basis: Basis | None = None
    detectable: Figure = None


class Judging(Struct, frozen=True):
    """Parameters for judging the points of one figure. By run: its interval at the joint level, the bound of its
    clocks and timestamps, the counts behind a share, the comparison with the only run before, and for a maximum all
    values."""

    measure: str
    threshold: Threshold | None
    joint_level: float
    against: Against
    joint: Mapping[int, Estimate]
    instrument: Mapping[int, float]
    events: Mapping[int, Events]
    pairs: Mapping[int, Shift | None]
    samples: Mapping[int, stats.Sample]

    def judged(self, points: Sequence[TrendPoint]) -> tuple[TrendPoint, ...]:
        """Every fit point after the first, judged against the fit ones before it."""
        made = []
        for k, point in enumerate(points):
            before = [earlier for earlier in points[:k] if earlier.fit]
            if not point.fit or not before:
                made.append(point)
            elif point.run in self.pairs:
                made.append(_of_pair(point, self.pairs[point.run]))
            elif self.samples:
                made.append(self._of_tail(point, self._reference(before)))
            else:
                made.append(self._against(point, self._reference(before)))
        return tuple(made)

    def _reference(self, before: Sequence[TrendPoint]) -> Sequence[TrendPoint]:
        if self.against == "first":
            return before[:1]
        levels = steps(before, self.instrument)
        return [earlier for earlier in before if not levels or earlier.run >= levels[-1]]

    def _against(self, point: TrendPoint, before: Sequence[TrendPoint]) -> TrendPoint:
        halves, own = self._intervals(point, before)
        values = np.array([earlier.value.value for earlier in before])
        base = stats.reference(values, np.array(halves), self.joint_level)
        bound = self.instrument[point.run] + max(self.instrument[earlier.run] for earlier in before)
        shift = widened(stats.difference(base, own), bound)
        tolerance = self.threshold.tolerance(base.value) if self.threshold is not None else None
        good = DEFINITIONS[self.measure].better == "lower"
        verdict, basis = judge_shift(shift, tolerance, lower_is_better=good)
        detectable = _closed(shift) if basis == "no-difference" else None
        if not self.events and detectable is not None and out_of_reach("", detectable, base.value):
            verdict, basis, detectable = "undecided", "out-of-reach", None
        untold = self._untold(point, before, detectable)
        if untold is not None and (verdict == "same" or untold == "open"):
            verdict, basis, detectable = "undecided", untold, None
        return replace(
            point,
            reference=base.value,
            shift=shift,
            tolerance=tolerance,
            verdict=verdict,
            basis=basis,
            detectable=detectable,
        )

    def _of_tail(self, point: TrendPoint, before: Sequence[TrendPoint]) -> TrendPoint:
        """Judges a tail by the share of messages beyond all earlier runs, or of theirs beyond all of this run's.

        Where earlier runs already differ among each other by the same test, one more difference decides nothing.
        """
        level = 1 - self.joint_level
        test = self._tail(before, point)
        reference = max(earlier.value.value for earlier in before)
        made = replace(point, reference=reference, shift=Estimate(point.value.value - reference, None, None))
        chance = test.chance
        if chance.both <= level:
            others = [[other for other in before if other is not one] for one in before]
            differ = len(before) > 1 and any(
                self._tail(rest, one).chance.both <= _DIFFERENT / len(before)
                for one, rest in zip(before, others, strict=True)
            )
            if differ:
                return replace(made, verdict="undecided", basis="open")
            up_is_worse = DEFINITIONS[self.measure].better == "lower"
            worse = chance.up <= chance.down or not up_is_worse
            return replace(made, verdict="worse" if worse else "better", basis="significant")
        reach = test.reach(level)
        if reach is None:
            return replace(made, verdict="undecided", basis="open")
        return replace(made, verdict="same", basis="no-difference", detectable=reach)

    def _tail(self, before: Sequence[TrendPoint], point: TrendPoint) -> stats.TailTest:
        values = [run for earlier in before for run in self.samples[earlier.run].runs]
        bound = self.instrument[point.run] + max(self.instrument[earlier.run] for earlier in before)
        return stats.Pair(stats.Sample(values), self.samples[point.run], bound).tail()

    def _intervals(self, point: TrendPoint, before: Sequence[TrendPoint]) -> tuple[list[float], Estimate]:
        """95 % half-widths of the runs before, and the estimate of this one at the joint level.

        The events of a share are taken to cluster everywhere as they do where they cluster most: a run without any does
        not show how they cluster.
        """
        if not self.events:
            return [_half(earlier.value) for earlier in before], self.joint[point.run]
        runs = [*(earlier.run for earlier in before), point.run]
        many = max(self.events[run].clustered for run in runs)
        *halves, _ = (
            _half(stats.share(self.events[run].count, self.events[run].n, LEVEL, many)) for run in runs
        )
        own = self.events[point.run]
        return halves, stats.share(own.count, own.n, self.joint_level, many)

    def _untold(
        self, point: TrendPoint, before: Sequence[TrendPoint], detectable: float | None
    ) -> Basis | None:
        """The reason why an unmoved figure is not "same"; None where a change would have been found."""
        level = 1 - self.joint_level
        if not self.events:
            few = stats.least_chance(sum(earlier.n for earlier in before), point.n) > level
            return "open" if few else None
        if self.threshold is not None:
            return None
        earlier = [self.events[one.run] for one in before]
        many = max(one.clustered for one in earlier)
        base = Events(sum(one.count for one in earlier), sum(one.n for one in earlier), many)
        beyond = detectable is not None and detectable >= 1 - point.value.value
        few = stats.ShareTest(base, self.events[point.run]).too_few(level)
        return "few-events" if beyond or few else None


def _of_pair(point: TrendPoint, shift: Shift | None) -> TrendPoint:
    """A point in the form of the comparison with the only run before."""
    if shift is None:
        return point
    return replace(
        point,
        reference=shift.base.value,
        shift=shift.shown,
        tolerance=shift.tolerance,
        verdict=shift.verdict,
        basis=shift.basis,
        detectable=shift.detectable,
    )


def _closed(shift: Estimate) -> float | None:
    """The longer side of an interval that is closed."""
    if shift.low is None or shift.high is None:
        return None
    return max(shift.value - shift.low, shift.high - shift.value)


def steps(points: Sequence[TrendPoint], instrument: Mapping[int, float]) -> tuple[int, ...]:
    """Runs at which the level of a figure changed, beyond chance and beyond the instrument."""
    fit = [point for point in points if point.fit]
    if len(fit) < 3:
        return ()
    places = stats.change_points(
        np.array([point.value.value for point in fit]),
        np.array([_half(point.value) for point in fit]),
        resolution=2 * max(instrument[point.run] for point in fit),
    )
    return tuple(fit[place].run for place in places)


def _half(value: Estimate) -> float:
    """Half-width of an interval that may be asymmetric or open: its wider known side."""
    ends = [abs(end - value.value) for end in (value.low, value.high) if end is not None]
    return max(ends, default=abs(value.value))
