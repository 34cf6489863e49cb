"""Identifies the interrupt moderation of an interface: the rule for the times at which its driver sees frames.

Each rule of the test language is fitted and then replayed on the arrivals; the simplest one that reproduces the
driver's times is chosen. A rule is never chosen because its parameters look plausible.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Times = NDArray[np.int64]

ENOUGH = 0.98
"""Share of frames whose time a rule must reproduce to be accepted at once; else the best one is used."""
_FEWEST = 20
"""The fewest frames for a rule other than `each`."""


class Moderation(Struct, frozen=True):
    """A moderation rule, times in ps; `explains` is the share of frames whose time it gives within `tolerance`."""

    kind: str
    """The attribute `interrupts`: `each`, `coalesced`, `polled`, `burst`, `spaced` or `adaptive`."""
    latency: int
    """Time from the interrupt until the driver reads the ring, ps."""
    wait: int | None
    """Longest wait of the first frame, or the polling period, ps."""
    frames: int | None
    """Number of frames that raise an interrupt at once; None where no batch was full."""
    explains: float
    tolerance: int
    n: int


def polled(came: Times, period: int) -> Times:
    """Times at which a driver that polls at the multiples of `period` sees frames."""
    told: Times = -(-came // period) * period
    return told


def coalesced(came: Times, wait: int, frames: int) -> Times:
    """Times of interrupts raised by a number of frames or the wait of the first; `came` ascending."""
    told = np.empty_like(came)
    first = 0
    n = len(came)
    while first < n:
        ends = came[first] + wait
        last = min(first + frames, n)
        # A frame that arrives at the instant of the interrupt is in time: inputs precede due events.
        within = first + int(np.searchsorted(came[first:last], ends, side="right"))
        full = within - first == frames
        told[first:within] = came[within - 1] if full else ends
        first = within
    return told


class Seen(Struct, frozen=True):
    """Frames that `came` at an interface and were `seen` by its driver, ps, in arrival order; `starts` has the index of
    the first frame of each run, whose times are unrelated to those of others.
    """

    came: Times
    seen: Times
    starts: Times
    tolerance: int
    """Greatest difference of two timestamps of the same instant, ps."""
    done: Times | None = None
    """When the application had them, with their `sizes` in bytes: for rules with a driver that keeps reading."""
    sizes: Times | None = None

    @property
    def waits(self) -> Times:
        """Time from arrival until seen, ps."""
        return self.seen - self.came

    def by_run(self, rule: Callable[[Times], Times]) -> Times:
        """Times at which a rule lets frames be seen, without latency."""
        return np.concatenate([rule(part) for part in np.split(self.came, self.starts[1:])])


def moderation(frames: Seen) -> Moderation:
    """The rule that explains the times at which frames were seen."""
    found = [_as("each", frames.came, frames)]
    if found[0].explains < ENOUGH and len(frames.came) >= _FEWEST:
        rules: tuple[Callable[[Seen], Moderation | None], ...] = (
            _polled,
            _coalesced,
            _burst,
            _spaced,
            _adaptive,
        )
        found += [one for rule in rules if (one := rule(frames)) is not None]
    taken = next((one for one in found if one.explains >= ENOUGH), None)
    return taken if taken is not None else max(found, key=lambda one: one.explains)


def _as(
    kind: str, told: Times, frames: Seen, *, wait: int | None = None, full: int | None = None
) -> Moderation:
    """The rule that gives the times `told`, with the best-fitting latency."""
    rest = frames.seen - told
    latency = int(np.median(rest))
    explains = float(np.mean(np.abs(rest - latency) <= frames.tolerance))
    return Moderation(kind, max(latency, 0), wait, full, explains, frames.tolerance, len(rest))


def _polled(frames: Seen) -> Moderation | None:
    """The polling rule: times of seeing lie on a grid, and no frame waits longer than a period."""
    least = int(frames.waits.max() - frames.waits.min())
    if least <= frames.tolerance:
        return None
    looks = [np.diff(np.unique(part)) for part in np.split(frames.seen, frames.starts[1:])]
    steps: Times = np.concatenate(looks).astype(np.int64)
    steps = steps[steps > frames.tolerance]
    if not len(steps):
        return None
    period = int(np.gcd.reduce(steps))
    if period < least * 0.9:
        period = _grid(steps, least, frames.tolerance)
    if period <= 0:
        return None
    return _as("polled", frames.by_run(lambda came: polled(came, period)), frames, wait=period)


def _grid(steps: Times, least: int, tolerance: int) -> int:
    """The longest period, at least `least`, of which all `steps` are multiples within `tolerance`; 0 without one."""
    for parts in range(1, 1 + int(steps.min()) // max(least - tolerance, 1)):
        period = float(steps.min()) / parts
        # Each step improves the period: errors of a longer one are divided by a greater number.
        for step in np.sort(steps)[:2_000]:
            period = float(step) / max(round(float(step) / period), 1)
        off = np.abs(steps - np.round(steps / period) * period)
        if float(np.mean(off <= 2 * tolerance)) > ENOUGH:
            return round(period)
    return 0


def _coalesced(frames: Seen) -> Moderation | None:
    """The coalescing rule: frames seen together are a batch; full ones give number and latency, others the wait."""
    is_first = np.diff(frames.seen, prepend=frames.seen[0]) > frames.tolerance
    is_first[frames.starts] = True
    begins = np.flatnonzero(is_first)
    sizes = np.diff(begins, append=len(frames.seen))
    waits = frames.waits
    first, last = waits[begins], waits[begins + sizes - 1]
    most, longest = int(sizes.max()), int(np.quantile(first, 0.99))
    if most < 2:
        return None
    full = (sizes == most) & (first < longest - frames.tolerance)
    is_bounded = int(np.count_nonzero(full)) >= 2
    latency = int(last[full].min()) if is_bounded else int(waits.min())
    others = first[~full]
    wait = (int(np.median(others)) if len(others) else longest) - latency
    if wait <= 0:
        return None
    number = most if is_bounded else len(waits)
    told = frames.by_run(lambda came: coalesced(came, wait, number))
    return _as("coalesced", told, frames, wait=wait, full=most if is_bounded else None)


Spacing = Callable[[int, int, int], int]
"""Least time from the last interrupt to the next, given its time, and the frames and bytes read after it."""
_SPACINGS = (14_285_714, 50_000_000, 250_000_000)
"""Spacings of an adaptive interface's levels, as in `crates/core/src/end_system/moderation.rs`, ps."""


def reading(frames: Seen, latency: int, spacing: Callable[[], Spacing]) -> Times:
    """Times at which a driver sees frames if it reads after an interrupt until none is left; `spacing` is made per run.

    It sees earlier frames as it starts to read, and those that arrive while it reads on their arrival.
    """
    assert frames.done is not None
    assert frames.sizes is not None
    told = np.empty_like(frames.came)
    ends = [*frames.starts[1:].tolist(), len(told)]
    for begin, end in zip(frames.starts.tolist(), ends, strict=True):
        came, done, sizes = (array[begin:end].tolist() for array in (frames.came, frames.done, frames.sizes))
        told[begin:end] = _turns(came, done, sizes, latency, spacing())
    return told


def _turns(came: list[int], done: list[int], sizes: list[int], latency: int, spacing: Spacing) -> list[int]:
    told: list[int] = []
    last: int | None = None
    number = read = 0
    for at, time in enumerate(came):
        if not at or time > done[at - 1]:
            due = time if last is None else max(time, last + spacing(last, number, read))
            last, number, read = due, 0, 0
        number += 1
        read += sizes[at]
        assert last is not None
        told.append(max(last + latency, time))
    return told


def _openers(frames: Seen) -> NDArray[np.bool_]:
    """Flags of frames that arrived when the driver had read all before them."""
    assert frames.done is not None
    first = frames.came > np.roll(frames.done, 1)
    first[frames.starts] = True
    return first


def _read_on(frames: Seen, kind: str, spacing: Callable[[], Spacing], wait: int | None = None) -> Moderation:
    latency = int(frames.waits[_openers(frames)].min())
    rest = np.abs(frames.seen - reading(frames, latency, spacing))
    explains = float(np.mean(rest <= frames.tolerance))
    return Moderation(kind, max(latency, 0), wait, None, explains, frames.tolerance, len(rest))


def _burst(frames: Seen) -> Moderation | None:
    """The burst rule: an immediate interrupt if the driver is idle."""
    if frames.done is None:
        return None
    return _read_on(frames, "burst", lambda: lambda _last, _number, _read: 0)


def _spaced(frames: Seen) -> Moderation | None:
    """The spacing rule: a least time after the last interrupt, known from the waits of early frames."""
    if frames.done is None:
        return None
    first = _openers(frames)
    waits = frames.waits[first]
    latency = int(waits.min())
    interrupts = frames.seen[first] - latency
    delayed = waits > latency + frames.tolerance
    delayed[0] = False
    delayed &= ~np.isin(np.flatnonzero(first), frames.starts)
    if not delayed.any():
        return None
    wait = int(np.median(np.diff(interrupts, prepend=interrupts[0])[delayed]))
    if wait <= 0:
        return None
    return _read_on(frames, "spaced", lambda: lambda _last, _number, _read: wait, wait)


def _adaptive(frames: Seen) -> Moderation | None:
    """The adaptive rule: spacing by levels."""
    return _read_on(frames, "adaptive", _Levels) if frames.done is not None else None


class _Levels:
    """The levels of an adaptive interface: the next spacing from the frames and bytes of each turn."""

    def __init__(self) -> None:
        self._level = 1

    def __call__(self, _last: int, frames: int, octets: int) -> int:
        if self._level == 0:
            if octets > 8_000 * frames:
                self._level = 2
            elif frames < 5 and octets > 512:
                self._level = 1
        elif self._level == 1:
            if octets > 10_000:
                if frames < 10 or octets > 1_200 * frames:
                    self._level = 2
                elif frames > 35:
                    self._level = 0
            elif octets > 2_000 * frames:
                self._level = 2
            elif frames <= 2 and octets < 512:
                self._level = 0
        elif (octets > 25_000 and frames > 35) or octets < 6_000:
            self._level = 1
        return _SPACINGS[self._level]
