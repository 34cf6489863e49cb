"""The offset of one clock from another over time, from two-way exchanges of timestamps.

An exchange leaves four timestamps: t1 (sent, by the reference), t2 (received, by the other clock), t3 (sent back, by
the other), t4 (received, by the reference). Its offset is ((t2 - t1) + (t3 - t4)) / 2 and its delay (t4 - t1) - (t3 -
t2) (RFC 5905, 8). In any network the true offset lies within half the delay of this value. Queueing in an exchange
increases its delay; a difference of the fixed delays of the two directions is invisible and must be known, or be taken
as the whole delay.

So the exchange of least delay in each interval is a knot, knots are joined by straight lines, and all other exchanges
check the line: one that contradicts it by more than its own bound (a clock that was stepped, an oscillator that warmed
up) widens the band there. The road not taken: a line through the whole run, which is right only for a constant
frequency; it is fitted as well, for the drift.

A step smaller than queueing delays contradicts nothing. But at any instant either the exchanges just before it or
those just after it were made by the clock as it is then, even if it is set: so the band at every instant covers what
either side allows. Where the two sides exclude each other the clock was moved, which is reported.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

FEWEST = 8
"""The fewest exchanges per knot."""
MOST_KNOTS = 500
UNKNOWN_DRIFT = 2e5
"""Possible drift of two clocks where a single exchange shows none, ns/s: 100 ppm each, the limit of IEEE Std
802.3-2022.
"""
SIDE = 8
"""The number of exchanges before an instant, and after it, that bound the clock at that instant."""
MOVED_SIDE = 4
"""The same number for the test whether the clock was moved between two exchanges."""
DRIVEN = 1e5
"""Greatest rate at which a clock is adjusted rather than set, ns/s: 100 ppm."""
REACHED = 7
"""Rank of the delay that bounds the distance of the least one from a delay without queueing; see `_unreached`."""


class Moved(Struct, frozen=True):
    """A clock that was set between two exchanges, or adjusted faster than `DRIVEN`."""

    begin: float
    """Begin in seconds of that clock; `end` likewise."""
    end: float
    by: float
    """The least jump against its usual course, ns."""


class OffsetTrack(Struct, frozen=True):
    """Offset over time: straight lines between knots, continued beyond the first and the last.

    Times are seconds of the compared clock; offsets are that clock minus the reference, ns.
    """

    at: Floats
    offset: Floats
    half_width: Floats
    """Bound of the difference of the true offset from `offset` at each knot, ns."""
    apart: Floats
    """The part of it that differs between knots, ns: an asymmetry is common to all, and tilts no line."""
    between: Floats
    """Contradiction of the line by exchanges between two knots, ns: one value fewer than knots."""
    seen: Floats
    """Times of all exchanges."""
    reach: Floats
    """Possible distance of the clock from the line, ns: before the first exchange, between each two, after the last."""
    moved: tuple[Moved, ...]
    n: int
    delay: float
    """Least round-trip delay, ns."""
    asymmetry: float
    """Assumed greatest difference of the fixed delays of the two directions, ns."""
    drift: float | None
    """Mean rate of change, ppm; None for fewer than three knots."""
    drift_uncertainty: float | None
    """Half-width of its 95 % interval, or the joint bound of the knots' errors if greater; ppm."""

    def offset_at(self, seconds: ArrayLike) -> Floats:
        """Offset at times of the compared clock, ns."""
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
        # Knots are exchanges: the band jumps there, and is linear between them.
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
    """The offset over time from exchanges, in any order; None without exchanges.

    `seconds` are times of the compared clock. `asymmetry_ns` bounds the difference of the fixed delays of the two
    directions; None takes the least delay, which bounds it whatever the network. `timestamp_ns` is the error of an
    offset by reading the clocks. With enough exchanges a knot covers at most `longest_s`.
    """
    x, theta, delay = (np.asarray(a, dtype=np.float64) for a in (seconds, offset_ns, delay_ns))
    good = np.isfinite(x) & np.isfinite(theta) & np.isfinite(delay)
    order = np.argsort(x[good], kind="stable")
    x, theta, delay = x[good][order], theta[good][order], delay[good][order]
    if not len(x):
        return None
    least = float(delay.min())
    # A delay made negative by coarse clock readings bounds nothing.
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
        # With few exchanges a bend between two knots is not seen; the neighbours bound it.
        between += _bend(at, offset, own)
    drift, uncertainty = _drift(at, offset, own)
    # The whole delay as the bound includes the queueing of even the least one.
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
    """The usual drift of the clock, ns/s, regardless of steps: the median slope, and its uncertainty."""
    if len(at) < 2:
        return 0.0, 0.0
    slopes = np.diff(offset) / np.diff(at)
    middle = float(np.median(slopes))
    # The standard error of a median is 1.25 times that of a mean.
    scatter = 1.4826 * float(np.median(np.abs(slopes - middle)))
    return middle, 2 * 1.25 * scatter / float(np.sqrt(len(slopes)))


def _behind(n: int) -> NDArray[np.intp]:
    """Index of the first exchange that bounds the clock, for each interval between n exchanges and beyond them."""
    return np.maximum(np.arange(n + 1) - SIDE, 0)


def _ahead(n: int) -> NDArray[np.intp]:
    """Index of the last such exchange."""
    return np.minimum(np.arange(n + 1) + SIDE - 1, n - 1)


def _sides(low: Floats, high: Floats, most: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """The intervals, for each exchange, that the last ones up to it allow together, and the next ones from it on.

    Where no value fits all of them, as across a step, the interval spans from one end to the other.
    """

    def together(low: Floats, high: Floats) -> tuple[Floats, Floats]:
        ahead = np.full(most - 1, np.inf)
        lows = np.lib.stride_tricks.sliding_window_view(np.concatenate([-ahead, low]), most).max(axis=1)
        highs = np.lib.stride_tricks.sliding_window_view(np.concatenate([ahead, high]), most).min(axis=1)
        return np.minimum(lows, highs), np.maximum(lows, highs)

    after = together(low[::-1], high[::-1])
    return together(low, high), (after[0][::-1], after[1][::-1])


def _reach(beside: Floats, bent: Floats, width: Floats) -> Floats:
    """Possible distance of the clock from the line, ns, between exchanges and beyond them.

    `beside` is the distance of exchanges from the line, `bent` the line minus the clock's usual course. Between the
    exchanges of either side the clock keeps its course or leaves it in one direction, at any speed.
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
    """Where exchanges before and after exclude each other by more than an adjusted clock gains meanwhile.

    The asymmetry is common to all of them and cancels.
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
    """The exchange of least delay in each interval of time; no two at the same time."""
    span = x[-1] - x[0]
    count = int(np.clip(len(x) // FEWEST, min(2, len(x)), MOST_KNOTS))
    # A finer division gives no better line, only knots with more queueing.
    count = min(count, max(2, int(np.ceil(span / longest_s * 4))))
    edges = np.linspace(x[0], x[-1], count + 1)[1:-1]
    stretch = np.searchsorted(edges, x, side="right")
    best = np.lexsort((x, excess, stretch))
    first = np.unique(stretch[best], return_index=True)[1]
    chosen = best[first]
    apart = np.concatenate([[True], np.diff(x[chosen]) > 0])
    return np.asarray(chosen[apart], dtype=np.intp)


def _unreached(delay: Floats) -> float:
    """Bound of the least observed delay's excess over one without queueing, ns.

    Near the lower edge of a distribution with a density there, order statistics have independent exponential steps, so
    the least exceeds the edge by more than its distance to the seventh with probability 2^-6, 1.6 %.
    """
    if len(delay) < REACHED:
        return float(delay.max() - delay.min())
    least = np.partition(delay, REACHED - 1)[:REACHED]
    return float(least.max() - least.min())


def _bend(at: Floats, offset: Floats, own: Floats) -> Floats:
    """Possible distance of a smooth curve from its chord between knots, ns.

    The distance from a chord of length h is at most h^2 / 8 times the second derivative, estimated from the change of
    slope to the neighbouring chords; changes within the knots' own bounds do not count.
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
    # The errors of knots lie within their bounds, but a host that is sometimes busy correlates them:
    # take the worst that they can do together.
    bound = float((weight * np.abs(x) * own).sum() / scale)
    # ns per second are parts per billion.
    return slope / 1e3, max(random, bound) / 1e3
