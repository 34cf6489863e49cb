"""Percentiles read off a sketch, with their intervals; of one run or of repeats, the lost beyond the largest value."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from wiregauge import stats
from wiregauge.measures.metrics.percentiles import Percentile, needed_for
from wiregauge.stats import sketch as sketches
from wiregauge.stats.sketch import Sketch

__all__ = ["ends", "percentile", "ranked", "repeated"]


def percentile(sketch: Sketch, q: float | Fraction, worth: float) -> Percentile:
    needed = needed_for(float(q))
    if sketch.n < needed:
        return Percentile(float(q), None, None, None, needed)
    low, high = sketches.scaled_interval(sketch, q, worth)
    return Percentile(float(q), sketch.quantile(q), low, high, needed, worth)


def ranked(sketch: Sketch, place: int) -> float:
    return sketch.ranked(place) if place <= sketch.n else inf


def ends(sketch: Sketch, low: int | None, high: int | None) -> tuple[float | None, float | None]:
    """Values of two ranks among those that came and, after them, the lost."""
    inside = (rank if rank is not None and rank <= sketch.n else None for rank in (low, high))
    bottom, top = sketch.around(*inside)
    return (
        inf if low is not None and low > sketch.n else bottom,
        inf if high is not None and high > sketch.n else top,
    )


def repeated(
    each: Sequence[Sketch], pooled: Sketch, q: float | Fraction, lost: int, by_run: Sequence[int] = ()
) -> Percentile:
    """A percentile of repeats with `lost` messages beyond the largest value; `by_run` has those of each run."""
    n, needed = pooled.n + lost, needed_for(float(q))
    if n < needed:
        return Percentile(float(q), None, None, None, needed)
    value = ranked(pooled, stats.rank(n, q))
    if len(each) < 2:
        return Percentile(float(q), value, None, None, needed)
    gone = by_run or [0] * len(each)
    low, high = sketches.repeated_ranks(each, pooled, q, gone, value)
    return Percentile(float(q), value, *ends(pooled, low, high), needed)
