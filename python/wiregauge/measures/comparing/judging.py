"""Verdicts on figures that moved, each by its own rule and all of them at one stated error rate.

A figure with a threshold is judged by its interval: intervals of all judged figures hold together (Bonferroni). A
figure without one is tested for any change; those tests control the false discovery rate, figure by figure over the
points of a sweep first, then point by point. Figures with and without a threshold share the 5 % by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.measures.comparing.comparison import Basis, Dropped, Shift, SweepShift, Verdict, combined
from wiregauge.measures.comparing.thresholds import TAIL, Threshold
from wiregauge.stats import Chance, Discovery, Estimate

LEVEL = 0.95

FamilyKey = tuple[str, str, str]
"""A flow (its label and where it ends) and one of its figures, at whatever points there are."""


class Test(Protocol):
    """A statistical test: the chance of so great a change, and the smallest change it would detect."""

    @property
    def chance(self) -> Chance:
        """The chance of so great a change upwards and downwards when nothing changed."""

    def reach(self, alpha: float) -> float | None:
        """The change found with `stats.POWER` at a two-sided level; None where none would be, however great."""


class Figure(Struct, frozen=True):
    """One figure of one flow at one point, before it is judged. `test` is None where it is shown only.

    `identical`: message by message the same on both sides; `sizes` are how many there are on either, None where both
    are the very same measurement.
    """

    key: FamilyKey
    shift: Shift
    test: Test | None = None
    threshold: Threshold | None = None
    identical: bool = False
    lower_is_better: bool = True
    sizes: tuple[int, int] | None = None

    def enough(self, level: float) -> bool:
        """Whether there are values enough for any change to be found at a level."""
        return self.sizes is None or stats.least_chance(*self.sizes) <= level

    @property
    def judged(self) -> bool:
        """Whether it gets a verdict."""
        return self.test is not None or self.threshold is not None


def judge_figures(figures: Sequence[Figure]) -> tuple[list[Shift], list[SweepShift], float]:
    """The shifts with their verdicts in the order of `figures`, the sweeps' verdicts, and the rate of false
    discoveries."""
    judged = sum(figure.judged for figure in figures)
    families: dict[FamilyKey, list[int]] = {}
    for place, figure in enumerate(figures):
        if figure.judged and figure.threshold is None:
            families.setdefault(figure.key, []).append(place)
    rate = (1 - LEVEL) * sum(map(len, families.values())) / max(judged, 1)
    chances = [[_chance(figures[place]) for place in places] for places in families.values()]
    found = stats.discoveries(chances, rate)
    held = (1 - LEVEL) / max(judged, 1)
    shifts = [
        _by_threshold(figure, held) if figure.threshold is not None else figure.shift for figure in figures
    ]
    sweeps = []
    for (key, places), members, discovery in zip(families.items(), chances, found, strict=True):
        level = stats.lone_level(rate, len(families), len(places))
        for k, place in enumerate(places):
            shifts[place] = _by_test(figures[place], members[k], discovery, k, level)
        if len(places) > 1 and discovery.found:
            sweeps.append(_sweep(key, [shifts[place] for place in places], figures[places[0]], discovery))
    return shifts, sweeps, rate


def _chance(figure: Figure) -> Chance:
    return stats.NOTHING if figure.identical or figure.test is None else figure.test.chance


def _by_threshold(figure: Figure, level: float) -> Shift:
    threshold = figure.threshold
    if threshold is None:
        return figure.shift
    tolerance = threshold.tolerance(figure.shift.base.value)
    verdict: Verdict = "same"
    basis: Basis = "identical"
    if not figure.enough(level):
        verdict, basis = "undecided", "open"
    elif not figure.identical:
        verdict, basis = judge_shift(figure.shift.joint, tolerance, lower_is_better=figure.lower_is_better)
    return replace(figure.shift, tolerance=tolerance, written=threshold.written, verdict=verdict, basis=basis)


def _by_test(figure: Figure, chance: Chance, family: Discovery, place: int, level: float) -> Shift:
    """`level` is the chance below which this figure is found though nothing else changed."""
    tested = replace(figure.shift, chance=chance.both)
    if figure.test is None or (figure.identical and figure.enough(level)):
        return replace(tested, verdict="same", basis="identical")
    if family.members[place]:
        return replace(
            tested, verdict=_word(chance, lower_is_better=figure.lower_is_better), basis="significant"
        )
    reach = figure.test.reach(level)
    tested = replace(tested, detectable=reach)
    if family.found:
        return replace(tested, verdict="undecided", basis="sweep")
    if reach is None:
        basis: Basis = "few-events" if figure.shift.statistic == "share" else "open"
        return replace(tested, verdict="undecided", basis=basis)
    if out_of_reach(figure.shift.statistic, reach, figure.shift.base.value):
        return replace(tested, verdict="undecided", basis="out-of-reach", detectable=None)
    return replace(tested, verdict="same", basis="no-difference")


def out_of_reach(statistic: str, reach: float, value: float) -> bool:
    """Whether only a change greater than the figure itself would have been detected, which is no useful reach.

    For a count the whole is all messages; `stats` never returns that reach.
    """
    return statistic not in ("share", TAIL) and reach > abs(value)


def _word(chance: Chance, *, lower_is_better: bool) -> Verdict:
    return "better" if chance.down < chance.up and lower_is_better else "worse"


def _sweep(key: FamilyKey, shifts: Sequence[Shift], figure: Figure, found: Discovery) -> SweepShift:
    """The verdict on a figure over its sweep: that of the decided points, else that of all points together."""
    words = [shift.verdict for shift in shifts if shift.verdict in ("worse", "better")]
    word: Verdict = (
        ("worse" if "worse" in words else "better")
        if words
        else _word(found.chance, lower_is_better=figure.lower_is_better)
    )
    return SweepShift(key[0], key[2], len(shifts), len(words), found.chance.both, word)


def judge_shift(
    joint: Estimate, tolerance: float | None, *, lower_is_better: bool = True
) -> tuple[Verdict, Basis]:
    """The verdict on one shift from its interval, clock and timestamp errors included.

    Worse or better where the interval lies wholly beyond the tolerance (0 without one). The same with a tolerance only
    where it lies wholly inside (two one-sided tests, Schuirmann 1987); without one where it holds 0 and is closed, in
    the weak sense that no difference was found. Else undecided: an open end excludes nothing.
    """
    far = tolerance or 0.0
    up = joint.low is not None and joint.low > far
    down = joint.high is not None and joint.high < -far
    if up or down:
        better = down and lower_is_better
        return ("better" if better else "worse"), ("significant" if tolerance is None else "beyond-threshold")
    if joint.low is None or joint.high is None:
        return "undecided", "open"
    if tolerance is None:
        return "same", "no-difference"
    if -tolerance <= joint.low and joint.high <= tolerance:
        return "same", "equivalent"
    return "undecided", "open"


def row_verdict(
    figures: Mapping[str, Shift],
    counted: Mapping[str, str],
    dropped: Sequence[Dropped],
    unfit: Sequence[str],
) -> tuple[Verdict, str]:
    """The verdict of a flow at a point, and the reason where it is undecided; `counted`: the basis of its shares."""
    if unfit:
        return "undecided", f"the point is INVALID on the {' and the '.join(unfit)} side"
    words = [shift.verdict for shift in figures.values() if shift.verdict is not None]
    verdict = "undecided" if dropped and "worse" not in words else combined(words)
    if verdict != "undecided":
        return verdict, ""
    if not words and not dropped:
        return verdict, "no judged figure has enough values on both sides"
    reasons = [
        f"{grouped(names)}: {text}"
        for basis, text in _OPEN.items()
        if (names := [name for name, shift in figures.items() if _open(shift, basis)])
    ]
    few = [
        f"{name} {text}: too few events to tell a change from chance"
        for name, text in counted.items()
        if _open(figures[name], "few-events")
    ]
    return verdict, "; ".join([*few, *reasons, *(part.text for part in dropped)])


def grouped(names: Iterable[str]) -> str:
    """Names of figures with each measure named once: `latency.mean, p10 and rtt.p99`."""
    by_measure: dict[str, list[str]] = {}
    for name in names:
        measure, _, statistic = name.rpartition(".")
        by_measure.setdefault(measure, []).append(statistic)
    return " and ".join(
        f"{measure}.{', '.join(statistics)}" if measure else ", ".join(statistics)
        for measure, statistics in by_measure.items()
    )


_OPEN = {
    "sweep": "changed over the sweep, not shown at this point alone",
    "open": "too few messages to tell, at the level that all figures share",
    "out-of-reach": "only a change greater than the figure itself would be found",
    "threshold": "the interval reaches beyond the threshold",
}


def _open(shift: Shift, basis: str) -> bool:
    if shift.verdict != "undecided":
        return False
    return basis == ("threshold" if shift.tolerance is not None else shift.basis)
