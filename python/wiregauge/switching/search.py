"""Search for the highest load that keeps a loss goal: MLRsearch (draft-ietf-bmwg-mlrsearch; RFC 2544, 26.1).

A load is a lower bound where enough trials of the full length lost no more than the goal allows, an upper bound where
enough lost more, and undecided until then. Short trials only guide the search. The relevant upper bound is the
smallest upper bound, the relevant lower bound the largest lower bound below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field

__all__ = ["WIDTH", "Found", "Goal", "search"]

Class = Literal["lower", "upper", "refused", "undecided"]
Lengths = Callable[[int], tuple[float, float]]
"""For a load (ppm): the length of a trial that counts, and the total length of such trials, s."""
Measure = Callable[[int, float], float | None]
"""Loss ratio of a trial of a load (ppm) and a length (s); None where the trial was refused."""

MOST_PPM = 1_000_000
WIDTH = 0.005
"""Greatest final distance of the bounds, relative to the upper one."""
_COARSE = 0.2


class Goal(Struct, frozen=True):
    """The goal of a search.

    `exceed_ratio`: share of the full-length trials, by duration, that may lose more than `loss_ratio`. `width`: how far
    apart the bounds may end, relative to the upper one.
    """

    initial_s: float
    final_s: float
    sum_s: float
    loss_ratio: float = 0.0
    exceed_ratio: float = 0.0
    width: float = WIDTH
    confirm_s: Callable[[int], float] | None = None
    """Length of the last trial that confirms a load (ppm), s, where it is longer than the others."""

    def whole_s(self, load: int) -> float:
        """The least length of a trial that counts at a load, s."""
        return max(self.final_s, self.confirm_s(load) if self.confirm_s is not None else 0.0)

    def lengths(self, load: int) -> tuple[float, float]:
        """The length of a trial that counts at a load, and the total length of such trials, s."""
        whole = self.whole_s(load)
        return whole, self.sum_s if whole <= self.final_s else whole


class Found(Struct):
    """The bounds of a search in ppm of the link; None: there is none.

    `limited`: above the lower bound the device did not lose frames, but the generator could not offer the load.
    """

    lower: int | None
    upper: int | None
    limited: bool
    conditional: float | None
    """Forwarding rate at the lower bound, ppm: the load less the tolerated loss (conditional throughput)."""
    trials: int
    seen: dict[int, list[tuple[float, float | None]]] = field(default_factory=dict)


class _Search(Struct):
    measure: Measure
    goal: Goal
    seen: dict[int, list[tuple[float, float | None]]] = field(default_factory=dict)

    def class_of(self, load: int, length: float, total: float) -> Class:
        """The class of a load from the trials so far, for trials of this length and total length, s."""
        goal = self.goal
        low = high = short_low = short_high = 0.0
        for seconds, loss in self.seen.get(load, ()):
            if loss is None:
                return "refused"
            full = seconds >= length
            if loss <= goal.loss_ratio:
                low, short_low = (low + seconds, short_low) if full else (low, short_low + seconds)
            else:
                high, short_high = (high + seconds, short_high) if full else (high, short_high + seconds)
        excess = short_high - short_low * goal.exceed_ratio / (1 - goal.exceed_ratio)
        high += max(0.0, excess)
        whole = max(high + low, total)
        may = goal.exceed_ratio * whole
        at_best, at_worst = high <= may, whole - low <= may
        if at_best and at_worst:
            return "lower"
        return "upper" if not at_best and not at_worst else "undecided"

    def decide(self, load: int, length: float, total: float) -> Class:
        """Makes trials until the class of a load is known."""
        while (known := self.class_of(load, length, total)) == "undecided":
            self.seen.setdefault(load, []).append((length, self.measure(load, length)))
        return known


def search(
    measure: Measure, goal: Goal, *, least: int = 1000, most: int = MOST_PPM, rising: bool = False
) -> Found:
    """Searches the bounds of the load that meets the goal, between `least` and `most` ppm.

    `rising`: start at the least load and double it, for generators that cannot offer the greatest and are slow to fail.
    """
    one = _Search(measure, goal)
    phases: list[tuple[Lengths, float]] = [(lambda _: (goal.final_s, goal.sum_s), goal.width)]
    if goal.initial_s < goal.final_s:
        phases.insert(0, (lambda _: (goal.initial_s, goal.initial_s), 4 * goal.width))
    if goal.confirm_s is not None:
        phases.append((goal.lengths, goal.width))
    lower: int | None = None
    upper: int | None = None
    for lengths, width in phases:

        def holds(load: int, lengths: Lengths = lengths) -> bool:
            return one.decide(load, *lengths(load)) == "lower"

        def apart(load: int, width: float = width, lengths: Lengths = lengths) -> float:
            """The relative resolution at a load: the limit of a generator is only found coarsely."""
            return max(width, _COARSE) if one.class_of(load, *lengths(load)) == "refused" else width

        lower, upper = _bracket(holds, lower, upper, least, most, apart, rising=rising)
        while lower is not None and upper is not None and upper - lower > max(apart(upper) * upper, 1):
            middle = min(max(round(math.sqrt(lower * upper)), lower + 1), upper - 1)
            if holds(middle):
                lower = middle
            else:
                upper = middle
    return _found(one)


def _bracket(
    holds: Callable[[int], bool],
    lower: int | None,
    upper: int | None,
    least: int,
    most: int,
    apart: Callable[[int], float],
    *,
    rising: bool,
) -> tuple[int | None, int | None]:
    """A load that meets the goal and a higher one that does not, from the previous phase's; None: there is none."""
    if lower is None and upper is None:
        if not rising:
            lower, upper = (most, None) if holds(most) else (None, most)
        else:
            lower, upper = (least, None) if holds(least) else (None, least)
    elif lower is not None:
        lower, upper = (lower, upper) if holds(lower) else (None, lower)
    elif upper is not None and holds(upper):
        lower, upper = upper, None
    if lower is not None:
        return _upwards(holds, lower, upper, most, apart(lower), rising=rising)
    assert upper is not None
    return _downwards(holds, upper, least, apart(upper))


def _upwards(
    holds: Callable[[int], bool], lower: int, upper: int | None, most: int, width: float, *, rising: bool
) -> tuple[int, int | None]:
    """Raises the load from one that meets the goal: to `upper` first, then in growing steps."""
    step = width
    while lower < most:
        if upper is not None:
            load, upper = upper, None
        elif rising:
            load = min(most, 2 * lower)
        else:
            step *= 2
            load = min(most, max(lower + 1, round(lower * (1 + step))))
        if not holds(load):
            return lower, load
        lower = load
    return lower, None


def _downwards(
    holds: Callable[[int], bool], upper: int, least: int, width: float
) -> tuple[int | None, int | None]:
    """Lowers the load from one that misses the goal, in growing steps."""
    step = width
    while upper > least:
        step *= 2
        load = max(least, min(upper - 1, math.floor(upper * max(0.1, 1 - step))))
        if holds(load):
            return load, upper
        upper = load
    return None, upper


def _found(one: _Search) -> Found:
    goal = one.goal
    classes = {load: one.class_of(load, *goal.lengths(load)) for load in one.seen}
    uppers = [load for load, known in classes.items() if known == "upper"]
    refused = [load for load, known in classes.items() if known == "refused"]
    top = min([*uppers, *refused], default=None)
    lower = max(
        (load for load, known in classes.items() if known == "lower" and (top is None or load < top)),
        default=None,
    )
    conditional = None
    if lower is not None:
        full = sorted(
            loss for seconds, loss in one.seen[lower] if loss is not None and seconds >= goal.whole_s(lower)
        )
        # The loss that the share of trials which may exceed the goal leaves as the greatest.
        at = max(0, math.ceil((1 - goal.exceed_ratio) * len(full)) - 1)
        conditional = lower * (1 - full[at])
    return Found(
        lower,
        min(uppers, default=None),
        limited=bool(refused) and top in refused,
        conditional=conditional,
        trials=sum(map(len, one.seen.values())),
        seen=one.seen,
    )
