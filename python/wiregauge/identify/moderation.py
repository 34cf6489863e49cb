"""When an interface told its host of received frames: the rule behind the times at which a driver saw them.

Each rule that the test language knows is fitted and then replayed on the arrivals; the simplest one that gives the
times of the driver is taken. A rule is never chosen because its parameters look plausible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

ENOUGH = 0.98
"""Share of frames whose time a rule has to give for it to be taken at once; of others the best one is."""
_FEWEST = 20
"""Frames from which a rule other than `each` is looked for."""


@dataclass(frozen=True, slots=True)
class Moderation:
    """A rule of interrupts, times in ps; `explains` is the share of frames whose time it gives within `tolerance`."""

    kind: str
    """`each`, `coalesced`, `polled`, `burst`, `spaced`, `adaptive`, as the attribute `interrupts` has it."""
    latency: int
    """From the interrupt to the driver's look at the ring."""
    wait: int | None
    """Longest wait of the first frame, or the polling period."""
    frames: int | None
    """Frames that raise an interrupt at once; None where no batch was ever full."""
    explains: float
    tolerance: int
    n: int


def polled(came: Times, period: int) -> Times:
    """When it looks at the multiples of `period`."""
    told: Times = -(-came // period) * period
    return told


def coalesced(came: Times, wait: int, frames: int) -> Times:
    """When so many frames, or the wait of the first, raise the interrupt; `came` ascending."""
    told = np.empty_like(came)
    first = 0
    n = len(came)
    while first < n:
        ends = came[first] + wait
        last = min(first + frames, n)
        # A frame that comes at the instant of the interrupt is in time: inputs go before what is due.
        within = first + int(np.searchsorted(came[first:last], ends, side="right"))
        full = within - first == frames
        told[first:within] = came[within - 1] if full else ends
        first = within
    return told


@dataclass(frozen=True, slots=True)
class Seen:
    """Frames that `came` at an interface and were `seen` by its driver, ps, in the order of coming; `starts`: the first
    frame of each run, whose times have nothing to do with those of another."""

    came: Times
    seen: Times
    starts: Times
    tolerance: int
    """What two timestamps may differ by, ps, although nothing does."""
    done: Times | None = None
    """When the application had them, and `sizes` their bytes: for rules of a reader that goes on."""
    sizes: Times | None = None

    @property
    def waits(self) -> Times:
        """From coming to being seen."""
        return self.seen - self.came

    def by_run(self, rule: Callable[[Times], Times]) -> Times:
        """When frames are seen by a rule, latency left out."""
        return np.concatenate([rule(part) for part in np.split(self.came, self.starts[1:])])


def moderation(frames: Seen) -> Moderation:
    """The rule by which frames were seen."""
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
    """The rule that gave the times `told`, with the latency that suits them best."""
    rest = frames.seen - told
    latency = int(np.median(rest))
    explains = float(np.mean(np.abs(rest - latency) <= frames.tolerance))
    return Moderation(kind, max(latency, 0), wait, full, explains, frames.tolerance, len(rest))


def _polled(frames: Seen) -> Moderation | None:
    """Looks lie on a grid, and no frame waits longer than from one to the next."""
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
    """The longest period from `least` on of which all `steps` are multiples within `tolerance`; 0 where none is."""
    for parts in range(1, 1 + int(steps.min()) // max(least - tolerance, 1)):
        period = float(steps.min()) / parts
        # From step to step the period is known better: errors of a long one are divided by more.
        for step in np.sort(steps)[:2_000]:
            period = float(step) / max(round(float(step) / period), 1)
        off = np.abs(steps - np.round(steps / period) * period)
        if float(np.mean(off <= 2 * tolerance)) > ENOUGH:
            return round(period)
    return 0


def _coalesced(frames: Seen) -> Moderation | None:
    """Frames seen together are a batch: full ones tell the number and the latency, others the wait."""
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
"""The least time to the next interrupt, from the last one, and the frames and bytes read after it."""
_SPACINGS = (14_285_714, 50_000_000, 250_000_000)
"""Of the levels of an adaptive interface, as `crates/core/src/end_system/moderation.rs` has them, ps."""


def reading(frames: Seen, latency: int, spacing: Callable[[], Spacing]) -> Times:
    """When a driver sees frames that, once interrupted, reads until there are none; `spacing` is made for each run.

    It sees what came before as it looks, and what comes while it reads as that comes.
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
    """Frames that came when the driver had read all before them."""
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
    """At once if the driver is idle."""
    if frames.done is None:
        return None
    return _read_on(frames, "burst", lambda: lambda _last, _number, _read: 0)


def _spaced(frames: Seen) -> Moderation | None:
    """No sooner than some time after the last interrupt: what frames waited for that came too early tells it."""
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
    """As spaced, by levels."""
    return _read_on(frames, "adaptive", _Levels) if frames.done is not None else None


class _Levels:
    """The levels of an adaptive interface: from the frames and bytes of each turn to the next spacing."""

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
