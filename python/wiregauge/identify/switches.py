"""What a switch is made of, from when frames came and left: forwarding, delay, rates and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from wiregauge.identify import service
from wiregauge.identify.errors import IdentifyError
from wiregauge.identify.passed import HEADER, Passed, Port, wire_bits

__all__ = ["BufferFit", "DelayFit", "Estimate", "PortFit", "SwitchFit", "fit_switch"]

Times = NDArray[np.int64]
FEWEST: Final = 30
"""Frames that a parameter needs."""
_PS: Final = 1e12
_NORMAL: Final = 1.96
_POLICIES: Final[tuple[Literal["buffer", "queue", "shared"], ...]] = ("buffer", "queue", "shared")
_UNITS: Final[tuple[Literal["B", "frames"], ...]] = ("B", "frames")
_RATES: Final = (0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of a port's rate for which its least service curve is given."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A parameter with its 95 % interval, from `n` frames or pairs of them."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class DelayFit:
    """What a frame that waits for no other takes."""

    mode: Literal["store-and-forward", "cut-through"] | None
    """`store-and-forward` or `cut-through`; None where frames do not tell."""
    slope: Estimate | None
    """Time from first bit in to first bit out, more per bit of the frame, ps; None: frames of one length."""
    delay: Estimate
    """Processing delay, ps, as a test names it: least and greatest seen are its interval."""
    quantiles: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class BufferFit:
    """The most that waits, and what decides over a frame that finds no room."""

    policy: Literal["buffer", "queue", "shared"]
    """`buffer`, `queue` or `shared`: tail drop by port, by priority, or by all ports together."""
    unit: Literal["B", "frames"]
    """`B` or `frames`."""
    least: int
    """So much waited, the frame that came included."""
    below: int | None
    """So much did not find room; None: nothing was lost, or nobody knows."""
    lost: int
    also: tuple[str, ...] = ()
    """Other policies that explain the same."""


@dataclass(frozen=True, slots=True)
class PortFit:
    """An output port."""

    port: str
    frames: int
    rate: Estimate | None
    """Line rate, bit/s, from frames that followed one another at once; None where too few did."""
    planned_bps: int
    guaranteed: service.Latency
    scale: service.Latency
    curves: tuple[service.Latency, ...]
    """Least latency for smaller rates: together the least service curve."""
    served: tuple[tuple[int, float], ...] = ()
    """Time since a busy period began, ps, and bits that had left by then: the slowest of each amount."""


@dataclass(frozen=True, slots=True)
class SwitchFit:
    """A switch as its records tell."""

    name: str
    delay: DelayFit
    ports: tuple[PortFit, ...]
    buffer: BufferFit
    arrivals: Mapping[int, service.Arrivals]
    """By flow, as they came to the switch."""
    untold: tuple[str, ...] = ()


def fit_switch(passed: Passed) -> SwitchFit:
    """The switch that frames passed so. Raises IdentifyError where they tell nothing."""
    untold = list(passed.untold)
    delay = _delay(passed, untold)
    ports = tuple(_port(port, delay, passed, untold) for port in passed.ports)
    return SwitchFit(
        passed.name, delay, ports, _buffer(passed, delay, untold), _arrivals(passed), tuple(untold)
    )


def _idle(port: Port) -> NDArray[np.bool_]:
    """Frames that came when all before them had left."""
    free = np.concatenate(
        ([np.iinfo(np.int64).min], port.left[:-1] + _occupied(port.lengths[:-1], port.rate_bps))
    )
    return np.asarray(port.first_in > free)


def _occupied(lengths: Times, rate_bps: float) -> Times:
    return np.rint(wire_bits(lengths) * _PS / rate_bps).astype(np.int64)


def _delay(passed: Passed, untold: list[str]) -> DelayFit:
    """The delay of frames that found their port idle.

    From first bit in to first bit out store-and-forward takes 8 / R more for each octet of a frame, cut-through none.
    """
    chosen = [(port, _idle(port)) for port in passed.ports]
    latency = np.concatenate([(port.left - port.first_in)[idle] for port, idle in chosen])
    bits = np.concatenate([8.0 * (port.lengths[idle] + 8) for port, idle in chosen])
    own = np.concatenate([_PS / port.in_rate_bps[idle] for port, idle in chosen])
    if len(latency) < FEWEST:
        raise IdentifyError(
            f"{passed.name}: {len(latency)} frames found their port idle, and {FEWEST} are needed to tell its delay; "
            "measure with less traffic as well"
        )
    slope: Estimate | None = None
    mode: Literal["store-and-forward", "cut-through"] | None = None
    if len(np.unique(bits)) > 1:
        slope, mode = _slope(bits, latency, own)
    elif np.any(latency < bits * own):
        mode = "cut-through"
    if mode is None:
        untold.append(
            "whether it stores frames or cuts through"
            + (": all frames are of one length" if slope is None else "")
            + "; taken for store-and-forward"
        )
    header = 8.0 * (HEADER + 8)
    delays = latency - own * (header if mode == "cut-through" else bits)
    values = np.sort(delays)
    shares = (0, 5, 25, 50, 75, 95, 100)
    quantiles = tuple((float(s), max(0, round(float(np.percentile(values, s))))) for s in shares)
    return DelayFit(
        mode,
        slope,
        Estimate(float(np.median(values)), float(values[0]), float(values[-1]), len(values)),
        quantiles,
    )


def _slope(
    bits: NDArray[np.float64], latency: Times, own: NDArray[np.float64]
) -> tuple[Estimate, Literal["store-and-forward", "cut-through"] | None]:
    centred = bits - bits.mean()
    slope = float(centred @ (latency - latency.mean()) / (centred @ centred))
    rest = latency - latency.mean() - slope * centred
    error = float(np.sqrt(rest @ rest / max(len(bits) - 2, 1) / (centred @ centred)))
    low, high = slope - _NORMAL * error, slope + _NORMAL * error
    per_bit = float(np.mean(own))
    # Between both lies what neither takes; each needs its own side of the middle with all of its interval.
    found = Estimate(slope, low, high, len(bits))
    if low > per_bit / 2:
        return found, "store-and-forward"
    return found, "cut-through" if high < per_bit / 2 else None


def _eligible(port: Port, delay: DelayFit) -> Times:
    """When frames may first leave: after their last bit (cut-through: their header) came and the delay passed."""
    seen = HEADER + 8 if delay.mode == "cut-through" else port.lengths + 8
    took = 8.0 * seen * _PS / port.in_rate_bps + delay.delay.value
    return np.asarray(port.first_in + np.rint(took).astype(np.int64))


def _port(port: Port, delay: DelayFit, passed: Passed, untold: list[str]) -> PortFit:
    # A frame that was stored and could have left earlier waited for the one before it, and nothing lies between them.
    latest = port.last_in + round(delay.delay.high) + passed.step_ps
    waited = np.flatnonzero(port.left[1:] > latest[1:]) + 1
    gaps = (port.left[waited] - port.left[waited - 1]).astype(np.float64)
    sent = wire_bits(port.lengths[waited - 1])
    rate = _rate(sent, gaps) if len(waited) >= FEWEST else None
    if rate is None:
        untold.append(f"the rate of {port.name}: {len(waited)} frames waited there; taken from the test")
    used = rate.value if rate is not None else float(port.rate_bps)
    order = np.argsort(port.last_in, kind="stable")
    came, bits = port.last_in[order], wire_bits(port.lengths[order])
    out = (port.left + np.rint(8.0 * (port.lengths + 8) * _PS / used).astype(np.int64))[order]
    curves = tuple(service.guaranteed_rate(came, out, bits, share * used) for share in _RATES)
    return PortFit(
        port.name,
        len(port.left),
        rate,
        port.rate_bps,
        curves[-1],
        service.scale_rate(came, out, bits, used),
        curves,
        service.served(came, out, bits, used),
    )


def _rate(bits: NDArray[np.float64], gaps: NDArray[np.float64]) -> Estimate:
    """Bits over time, with a jackknife over twenty groups in the order of time."""
    groups = np.array_split(np.arange(len(gaps)), 20)
    whole = float(bits.sum() / gaps.sum() * _PS)
    without = np.array([(bits.sum() - bits[g].sum()) / (gaps.sum() - gaps[g].sum()) * _PS for g in groups])
    error = float(np.sqrt((len(groups) - 1) / len(groups) * np.sum((without - without.mean()) ** 2)))
    return Estimate(whole, whole - _NORMAL * error, whole + _NORMAL * error, len(gaps))


def _buffer(passed: Passed, delay: DelayFit, untold: list[str]) -> BufferFit:
    """The policy and size that let in what left and keep out what was lost.

    A buffer holds what may leave and has not begun to. Of every policy the fullest buffer that took a frame and the
    emptiest that did not bound its size; a policy where these cross is none.
    """
    lost = sum(len(port.lost_in) for port in passed.ports)
    if passed.doubtful:
        untold.append(
            f"what became of {passed.doubtful} frames; the size of buffers is known from below only"
        )
    found: list[BufferFit] = []
    for policy in _POLICIES:
        sets = _sets(passed, delay, policy)
        for unit in _UNITS:
            least, below = _bounds(sets, unit)
            if lost == 0 or passed.doubtful:
                return BufferFit("buffer", "B", least, None, lost)
            if below is not None and least < below:
                found.append(BufferFit(policy, unit, least, below, lost))
    if not found:
        untold.append(
            f"why {lost} frames were lost: no size of a buffer by port, priority or switch explains them"
        )
        least, _ = _bounds(_sets(passed, delay, "buffer"), "B")
        return BufferFit("buffer", "B", least, None, lost)
    # Of several that explain it the one that is pinned down best, relative to its size.
    found.sort(key=lambda fit: ((fit.below or 0) - fit.least) / max(fit.least, 1))
    if len(found) > 1:
        others = ", ".join(f"{fit.policy} in {fit.unit}" for fit in found[1:])
        untold.append(f"which buffer is full first: {found[0].policy} in {found[0].unit}, but also {others}")
    best = found[0]
    return BufferFit(
        best.policy,
        best.unit,
        best.least,
        best.below,
        lost,
        tuple(f"{fit.policy} in {fit.unit}: {fit.least} to {(fit.below or 0) - 1}" for fit in found[1:]),
    )


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Frames of one buffer: when they entered or found no room, their lengths, and when they began to leave."""

    entered: Times
    lengths: Times
    left: Times
    refused: Times
    refused_lengths: Times


def _sets(passed: Passed, delay: DelayFit, policy: str) -> list[_Buffer]:
    parts: dict[object, list[_Buffer]] = {}
    for number, port in enumerate(passed.ports):
        entered = np.minimum(_eligible(port, delay), port.left)
        refused = port.lost_in + round(delay.delay.value)
        for priority in np.unique(np.concatenate((port.priorities, port.lost_priorities))):
            key = {"buffer": number, "queue": (number, int(priority)), "shared": 0}[policy]
            own, gone = port.priorities == priority, port.lost_priorities == priority
            part = _Buffer(
                entered[own], port.lengths[own], port.left[own], refused[gone], port.lost_lengths[gone]
            )
            parts.setdefault(key, []).append(part)
    joined = []
    for some in parts.values():
        columns = (
            np.concatenate([getattr(part, name) for part in some])
            for name in ("entered", "lengths", "left", "refused", "refused_lengths")
        )
        joined.append(_Buffer(*columns))
    return joined


def _bounds(sets: list[_Buffer], unit: str) -> tuple[int, int | None]:
    """The most that a buffer held with the frame it took, and the least with one it did not."""
    most, least = 0, None
    for one in sets:
        sizes = one.lengths if unit == "B" else np.ones_like(one.lengths)
        gone_sizes = one.refused_lengths if unit == "B" else np.ones_like(one.refused_lengths)
        order = np.argsort(one.entered, kind="stable")
        entered, inside = one.entered[order], np.concatenate(([0], np.cumsum(sizes[order])))
        leaving = np.argsort(one.left, kind="stable")
        left, outside = one.left[leaving], np.concatenate(([0], np.cumsum(sizes[leaving])))
        if len(entered):
            # Behind those that entered before it; what leaves at that very instant still has its place.
            held = inside[1:] - outside[np.searchsorted(left, entered, "right")]
            most = max(most, int(held.max()))
        if len(one.refused):
            waits = inside[np.searchsorted(entered, one.refused, "right")]
            waits = waits - outside[np.searchsorted(left, one.refused, "left")]
            tightest = int((waits + gone_sizes).min())
            least = tightest if least is None else min(least, tightest)
    return most, least


def _arrivals(passed: Passed) -> dict[int, service.Arrivals]:
    found = {}
    for flow, (times, lengths) in passed.arrivals.items():
        curve = service.arrival_curve(times, wire_bits(lengths))
        if curve is not None:
            found[flow] = curve
    return found
