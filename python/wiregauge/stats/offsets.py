"""The offset of one clock from another over time, from two-way exchanges of timestamps.

An exchange leaves four timestamps: t1 (sent, by the reference), t2 (received, by the other clock), t3 (sent back, by
the other), t4 (received, by the reference). Its offset is ((t2 - t1) + (t3 - t4)) / 2 and its delay (t4 - t1) - (t3 -
t2) (RFC 5905, 8). Whatever the network did, the true offset lies within half the delay of that. What a queue added to
an exchange is seen in its delay; what the fixed delays of the two directions differ by is not seen at all and has to
be known or be taken as the whole delay.

So the exchange of least delay in each stretch of time is a knot, knots are joined by straight lines, and every other
exchange is asked whether it could be true of the line: what contradicts it by more than its own bound (a clock that
was stepped, an oscillator that warmed up) widens the band there. The road not taken: a line through the whole run,
which is right only for a clock that keeps its frequency; it is fitted as well, to tell the drift.

A step that is smaller than what queues add contradicts nothing. But whenever a clock is set, either the exchanges
just before an instant or those just after it were made by the clock as it shows then: so the band reaches wherever
either side allows, at every instant. Where the two sides exclude each other the clock was moved, and that is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

FEWEST = 8
"""Exchanges of one knot, at least."""
MOST_KNOTS = 500
UNKNOWN_DRIFT = 2e5
"""What two clocks may drift apart where a single exchange tells nothing of it, ns/s: 100 ppm each, as IEEE Std
802.3-2022 allows a station."""
SIDE = 8
"""Exchanges before an instant, and as many after it, that say where the clock may be then."""
MOVED_SIDE = 4
"""The same, where it is asked whether the clock was moved between two exchanges."""
DRIVEN = 1e5
"""What a clock may gain that is driven, and not set, ns/s: 100 ppm."""
REACHED = 7
"""Which of the least delays tells how far the least is above the one that met no queue; see `_unreached`."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A clock that was set between two exchanges, or driven faster than clocks are."""

    begin: float
    """Seconds of that clock, as `end`."""
    end: float
    by: float
    """Against its course, at least, ns."""


@dataclass(frozen=True, slots=True)
class OffsetTrack:
    """Offset over time: straight lines between knots, continued beyond the first and the last.

    Times are seconds of the clock that is compared; offsets are that clock less the reference, ns.
    """

    at: Floats
    offset: Floats
    half_width: Floats
    """How far the true offset may be from `offset` at each knot."""
    apart: Floats
    """The part of it in which knots differ: an asymmetry is common to all, and tilts no line through two of them."""
    between: Floats
    """What exchanges between two knots contradict the line by: one value fewer than knots."""
    seen: Floats
    """Times of all exchanges."""
    reach: Floats
    """How far from the line the clock may be before the first exchange, between each two, and after the last."""
    moved: tuple[Moved, ...]
    n: int
    delay: float
    """Least delay there and back, ns."""
    asymmetry: float
    """Most that the fixed delays of the two directions were taken to differ by, ns."""
    drift: float | None
    """Mean rate of change, ppm; None of fewer than three knots."""
    drift_uncertainty: float | None
    """Half the width of its 95 % interval, or what the knots' bounds allow together if that is more; ppm."""

    def offset_at(self, seconds: ArrayLike) -> Floats:
        """Offset at times of the clock that is compared, ns."""
        x = np.asarray(seconds, dtype=np.float64)
        if len(self.at) == 1:
            return np.full(x.shape, self.offset[0])
        left, right = self._slopes()
        inside = np.interp(x, self.at, self.offset)
        before, after = x - self.at[0], x - self.at[-1]
        return np.where(
            before < 0, inside + before * left, np.where(after > 0, inside + after * right, inside)
        )

    def uncertainty_at(self, seconds: ArrayLike) -> Floats:
        """Bound of the error of `offset_at`, ns. It grows beyond the first and the last knot."""
        x = np.asarray(seconds, dtype=np.float64)
        width = np.interp(x, self.at, self.half_width)
        if len(self.at) == 1:
            return np.asarray(width + UNKNOWN_DRIFT * np.abs(x - self.at[0]), dtype=np.float64)
        either = [self.reach[np.searchsorted(self.seen, x, side=side)] for side in ("left", "right")]
        place = np.clip(np.searchsorted(self.at, x, side="right") - 1, 0, len(self.between) - 1)
        beyond = np.maximum(self.at[0] - x, 0.0) + np.maximum(x - self.at[-1], 0.0)
        tilt = (self.apart[1:] + self.apart[:-1] + self.between) / np.diff(self.at)
        width = np.maximum(width + self.between[place], np.maximum(*either))
        return np.asarray(width + beyond * tilt[place], dtype=np.float64)

    def greatest_uncertainty(self, since: float, until: float) -> float:
        """The greatest bound of the error of `offset_at` from one time to another, ns."""
        inside = self.seen[(self.seen > since) & (self.seen < until)]
        # Knots are exchanges: the band jumps there, and is straight between.
        just_before = np.nextafter(inside, -np.inf)
        return float(self.uncertainty_at(np.concatenate([[since], inside, just_before, [until]])).max())

    def _slopes(self) -> tuple[float, float]:
        slopes = np.diff(self.offset) / np.diff(self.at)
        return float(slopes[0]), float(slopes[-1])


def offset_track(
    seconds: ArrayLike,
    offset_ns: ArrayLike,
    delay_ns: ArrayLike,
    *,
    asymmetry_ns: float | None = None,
    timestamp_ns: float = 0.0,
    longest_s: float = 1.0,
) -> OffsetTrack | None:
    """The offset over time from exchanges, in any order; None of none.

    `seconds` are times of the compared clock. `asymmetry_ns` bounds the difference of the fixed delays of the two
    directions; None takes the least delay, which bounds it whatever the network. `timestamp_ns` is the error of an
    offset by reading the clocks. A knot stands for `longest_s` at most where there are exchanges enough.
    """
    x, theta, delay = (np.asarray(a, dtype=np.float64) for a in (seconds, offset_ns, delay_ns))
    good = np.isfinite(x) & np.isfinite(theta) & np.isfinite(delay)
    order = np.argsort(x[good], kind="stable")
    x, theta, delay = x[good][order], theta[good][order], delay[good][order]
    if not len(x):
        return None
    least = float(delay.min())
    # A delay that clocks with coarse readings make negative bounds nothing.
    path = max(least, 0.0)
    asymmetry = path if asymmetry_ns is None else min(asymmetry_ns, path)
    unreached = _unreached(delay)
    excess = np.maximum(delay - least, 0.0)
    knots = _knots(x, excess, longest_s)
    own = (excess[knots] + unreached) / 2 + timestamp_ns
    at, offset = x[knots], theta[knots]
    line = np.interp(x, at, offset) if len(at) > 1 else np.full(len(x), offset[0])
    if len(at) > 1:
        slopes = np.diff(offset) / np.diff(at)
        line += np.minimum(x - at[0], 0) * slopes[0] + np.maximum(x - at[-1], 0) * slopes[-1]
    allowed = (excess + unreached) / 2 + timestamp_ns + np.interp(x, at, own)
    against = np.maximum(np.abs(theta - line) - allowed, 0.0)
    between = np.zeros(max(len(at) - 1, 0))
    if len(between):
        place = np.clip(np.searchsorted(at, x, side="right") - 1, 0, len(between) - 1)
        np.maximum.at(between, place, against)
        # Where exchanges are few a bend between two knots is not seen; the neighbours tell how much there may be.
        between += _bend(at, offset, own)
    drift, uncertainty = _drift(at, offset, own)
    # The whole delay as the bound includes what even the least one met of a queue.
    shared = asymmetry / 2 - (unreached / 2 if asymmetry_ns is None else 0.0)
    width = own + shared
    course, unsure = _course(at, offset)
    each = (excess + unreached) / 2 + timestamp_ns
    reach = _reach(theta - line, line - course * (x - x[0]), each + shared)
    reach += unsure * (x[_ahead(len(x))] - x[_behind(len(x))])
    moved = _moved(x, theta - course * (x - x[0]), each)
    return OffsetTrack(
        at, offset, width, own, between, x, reach, moved, len(x), least, asymmetry, drift, uncertainty
    )


def _course(at: Floats, offset: Floats) -> tuple[float, float]:
    """What the clock usually gains, ns/s, whatever steps it made: the median over stretches, and how unsure that is."""
    if len(at) < 2:
        return 0.0, 0.0
    slopes = np.diff(offset) / np.diff(at)
    middle = float(np.median(slopes))
    # The standard error of a median is 1.25 times that of a mean.
    scatter = 1.4826 * float(np.median(np.abs(slopes - middle)))
    return middle, 2 * 1.25 * scatter / float(np.sqrt(len(slopes)))


def _behind(n: int) -> NDArray[np.intp]:
    """By stretch between n exchanges, and beyond them, the first exchange that tells of it."""
    return np.maximum(np.arange(n + 1) - SIDE, 0)


def _ahead(n: int) -> NDArray[np.intp]:
    """The last one."""
    return np.minimum(np.arange(n + 1) + SIDE - 1, n - 1)


def _sides(low: Floats, high: Floats, most: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """By exchange what the last ones up to it allow together, and what the next ones from it on do: ends of intervals.

    Where no value suits all of them, as on both sides of a step, it reaches from the one end to the other.
    """

    def together(low: Floats, high: Floats) -> tuple[Floats, Floats]:
        ahead = np.full(most - 1, np.inf)
        lows = np.lib.stride_tricks.sliding_window_view(np.concatenate([-ahead, low]), most).max(axis=1)
        highs = np.lib.stride_tricks.sliding_window_view(np.concatenate([ahead, high]), most).min(axis=1)
        return np.minimum(lows, highs), np.maximum(lows, highs)

    after = together(low[::-1], high[::-1])
    return together(low, high), (after[0][::-1], after[1][::-1])


def _reach(beside: Floats, bent: Floats, width: Floats) -> Floats:
    """By stretch between exchanges, and beyond them, how far from the line the clock may be, ns.

    `beside` is how far an exchange is from the line, `bent` the line less the clock's usual course. Between the
    exchanges of one side and those of the other the clock keeps its course or leaves it in one direction, however fast.
    """
    value = beside + bent
    before, after = _sides(value - width, value + width, SIDE)
    found = np.zeros(len(value) + 1)
    for low, high, stretch in ((*before, slice(1, None)), (*after, slice(None, -1))):
        own = found[stretch]
        for line in (bent, np.concatenate([bent[1:], bent[-1:]]), np.concatenate([bent[:1], bent[:-1]])):
            own[:] = np.maximum(own, np.maximum(np.abs(low - line), np.abs(high - line)))
    return found


def _moved(x: Floats, value: Floats, width: Floats) -> tuple[Moved, ...]:
    """Where exchanges before and after exclude each other by more than a clock that is driven gains meanwhile.

    Asymmetry is the same for all of them, and in no difference.
    """
    if len(x) < 2:
        return ()
    (low_before, high_before), (low_after, high_after) = _sides(value - width, value + width, MOVED_SIDE)
    place = np.arange(1, len(x))
    first, last = np.maximum(place - MOVED_SIDE, 0), np.minimum(place + MOVED_SIDE - 1, len(x) - 1)
    apart = np.maximum(low_after[1:] - high_before[:-1], low_before[:-1] - high_after[1:])
    excess = apart - DRIVEN * (x[last] - x[first]) / 2
    found: list[Moved] = []
    for one in np.flatnonzero(excess > 0):
        begin, end, by = float(x[one]), float(x[one + 1]), float(apart[one])
        if found and begin <= found[-1].end:
            begin, by = found[-1].begin, max(by, found.pop().by)
        found.append(Moved(begin, end, by))
    return tuple(found)


def _knots(x: Floats, excess: Floats, longest_s: float) -> NDArray[np.intp]:
    """The exchange of least delay of each stretch; no two at the same time."""
    span = x[-1] - x[0]
    count = int(np.clip(len(x) // FEWEST, min(2, len(x)), MOST_KNOTS))
    # Finer than needed gives no better line, only knots that met more of a queue.
    count = min(count, max(2, int(np.ceil(span / longest_s * 4))))
    edges = np.linspace(x[0], x[-1], count + 1)[1:-1]
    stretch = np.searchsorted(edges, x, side="right")
    best = np.lexsort((x, excess, stretch))
    first = np.unique(stretch[best], return_index=True)[1]
    chosen = best[first]
    apart = np.concatenate([[True], np.diff(x[chosen]) > 0])
    return np.asarray(chosen[apart], dtype=np.intp)


def _unreached(delay: Floats) -> float:
    """How far the least delay seen may be above that without any queue, ns.

    Near its lower edge a delay with a density there has order statistics at independent exponential steps, so the least
    is above the edge by more than the distance to the seventh with probability 2^-6, 1.6 %.
    """
    if len(delay) < REACHED:
        return float(delay.max() - delay.min())
    least = np.partition(delay, REACHED - 1)[:REACHED]
    return float(least.max() - least.min())


def _bend(at: Floats, offset: Floats, own: Floats) -> Floats:
    """By stretch between knots: how far a smooth curve may be from its chord, ns.

    A chord of length h is missed by h^2 / 8 times the second derivative at most, which the change of slope over the two
    neighbouring stretches gives; what the knots' own bounds explain is no bend.
    """
    if len(at) < 3:
        return np.zeros(len(at) - 1)
    step = np.diff(at)
    slope = np.diff(offset) / step
    unsure = (own[1:] + own[:-1]) / step
    change = np.maximum(np.abs(np.diff(slope)) - unsure[1:] - unsure[:-1], 0.0)
    second = change / ((step[1:] + step[:-1]) / 2)
    worst = np.maximum(np.concatenate([second[:1], second]), np.concatenate([second, second[-1:]]))
    return np.asarray(worst * step**2 / 8, dtype=np.float64)


def _drift(at: Floats, offset: Floats, own: Floats) -> tuple[float | None, float | None]:
    """Slope of a line through the knots, ppm, and its uncertainty: weighted least squares, and the knots' bounds."""
    if len(at) < 3:
        return None, None
    weight = 1 / np.maximum(own, 1.0) ** 2
    centre = float(np.average(at, weights=weight))
    x = at - centre
    scale = float((weight * x**2).sum())
    if scale <= 0:
        return None, None
    slope = float((weight * x * offset).sum() / scale)
    rest = offset - np.average(offset, weights=weight) - slope * x
    scatter = float(np.sqrt((weight * rest**2).sum() / (len(at) - 2) / scale))
    random = 1.96 * scatter
    # The errors of knots lie within their bounds, but a host that is busy now and then makes them depend on one
    # another: the worst that they can do together.
    bound = float((weight * np.abs(x) * own).sum() / scale)
    # ns per second are parts per thousand million.
    return slope / 1e3, max(random, bound) / 1e3
