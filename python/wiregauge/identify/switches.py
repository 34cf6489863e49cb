"""Identifies a switch from frames' arrivals and departures: forwarding, delay, rates and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge.identify import service
from wiregauge.identify.delays import FEWEST, DelayFit, Estimate, fit_delay, from_reference
from wiregauge.identify.passed import Passed, Port, wire_bits
from wiregauge.plan.ethernet import PREAMBLE

__all__ = ["BufferFit", "DelayFit", "Estimate", "PortFit", "SwitchFit", "fit_switch"]

Times = NDArray[np.int64]
_ALIKE: Final = 1e-5
"""Greatest relative difference between gaps of one rate."""
_MOST_ALIKE: Final = 0.75
"""Least share of queued frames whose gaps must have one rate."""
_PS: Final = 1e12
_NORMAL: Final = 1.96
_POLICIES: Final[tuple[Literal["buffer", "queue", "shared"], ...]] = ("buffer", "queue", "shared")
_UNITS: Final[tuple[Literal["B", "frames"], ...]] = ("B", "frames")
_RATES: Final = (0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of a port's rate for which its service curve is given."""


class BufferFit(Struct, frozen=True):
    """The largest buffer occupancy, and the drop policy."""

    policy: Literal["buffer", "queue", "shared"]
    """Tail drop by port (`buffer`), by priority (`queue`), or over all ports (`shared`)."""
    unit: Literal["B", "frames"]
    """Bytes (`B`) or `frames`."""
    least: int
    """Greatest occupancy that was seen, with the arriving frame."""
    below: int | None
    """Least occupancy, with the arriving frame, at which it was dropped; None: no loss, or unknown."""
    lost: int
    also: tuple[str, ...] = ()
    """Other policies that explain the data as well."""


class PortFit(Struct, frozen=True):
    """The identified parameters of an output port."""

    port: str
    frames: int
    rate: Estimate | None
    """Line rate, bit/s, from back-to-back frames; None where there are too few."""
    planned_bps: int
    guaranteed: service.Latency
    scale: service.Latency
    curves: tuple[service.Latency, ...]
    """Least latency for smaller rates: together they form the least service curve."""
    served: tuple[tuple[int, float], ...] = ()
    """The slowest service of each amount: ps since a busy period began, and bits that had left by then."""


class SwitchFit(Struct, frozen=True):
    """The identified model of a switch."""

    name: str
    delay: DelayFit
    ports: tuple[PortFit, ...]
    buffer: BufferFit
    arrivals: Mapping[int, service.Arrivals]
    """Arrival curves of flows at the switch."""
    untold: tuple[str, ...] = ()


def fit_switch(passed: Passed) -> SwitchFit:
    """Identifies the switch that frames passed. Raises IdentifyError where they determine nothing."""
    untold = list(passed.untold)
    delay = fit_delay(passed, untold)
    ports = tuple(_port(port, delay, passed, untold) for port in passed.ports)
    return SwitchFit(
        passed.name, delay, ports, _buffer(passed, delay, untold), _arrivals(passed), tuple(untold)
    )


def _entered(port: Port, delay: DelayFit, passed: Passed) -> tuple[Times, Times]:
    """The earliest and the latest time at which frames may leave, given the delay."""
    return _ready(port.first_in, port.lengths, port.in_rate_bps, port, delay, passed)


def _ready(
    first_in: Times,
    lengths: Times,
    in_rate_bps: NDArray[np.float64],
    port: Port,
    delay: DelayFit,
    passed: Passed,
) -> tuple[Times, Times]:
    found = []
    for mode, low, high in delay.bounds:
        reference = from_reference(mode, lengths, in_rate_bps, float(port.rate_bps))
        stored = from_reference("store-and-forward", lengths, in_rate_bps, 0.0)
        mixed = np.where(in_rate_bps == port.rate_bps, 0.0, delay.mixed)
        least = 0.0 if passed.unseen else low
        # If its port is busy a frame is not cut through but stored: its end may then enter the buffer.
        latest = np.maximum(reference, stored) if mode == "cut-through" else reference
        if passed.stamps is None and mode == "cut-through":
            # First bits were computed as if the switch had stamped last octets.
            later = stored - from_reference(mode, lengths, in_rate_bps, in_rate_bps)
            reference, latest = reference + later, latest + later
        found.append((first_in + reference + least, first_in + latest + high + mixed))
    early = np.min([one for one, _ in found], axis=0)
    late = np.max([one for _, one in found], axis=0)
    return np.floor(early).astype(np.int64), np.ceil(late).astype(np.int64)


def _port(port: Port, delay: DelayFit, passed: Passed, untold: list[str]) -> PortFit:
    rate, waited = (None, 0) if passed.unseen else _line_rate(port, delay, passed)
    if rate is None:
        why = (
            f"{passed.unseen} may lie between"
            if passed.unseen
            else f"{waited} frames left one behind another there"
        )
        untold.append(f"the rate of {port.name}: {why}; taken from the test")
    used = rate.value if rate is not None else float(port.rate_bps)
    order = np.argsort(port.last_in, kind="stable")
    came, bits = port.last_in[order], wire_bits(port.lengths[order])
    out = (port.left + np.rint(8.0 * (port.lengths + PREAMBLE) * _PS / used).astype(np.int64))[order]
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


def _line_rate(port: Port, delay: DelayFit, passed: Passed) -> tuple[Estimate | None, int]:
    """The line rate from frames that queued behind another, and the number of these.

    They follow one another at the line rate: if their gaps do not have one rate, or another gap of the port is shorter,
    the cause is another, and there is no estimate.
    """
    _, late = _entered(port, delay, passed)
    last = np.maximum(late, port.last_in + round(delay.delay.high))
    waited = np.flatnonzero(port.left[1:] > last[1:] + passed.step_ps) + 1
    if len(waited) < FEWEST:
        return None, len(waited)
    gaps = (port.left[waited] - port.left[waited - 1]).astype(np.float64)
    bits = wire_bits(port.lengths[waited - 1])
    usual = float(np.median(gaps / bits))
    own = np.abs(gaps - usual * bits) <= 2.0 * (passed.step_ps + 1) + _ALIKE * gaps
    if np.count_nonzero(own) < max(FEWEST, _MOST_ALIKE * len(own)):
        return None, int(np.count_nonzero(own))
    every = np.diff(port.left).astype(np.float64)
    shortest = usual * wire_bits(port.lengths[:-1]) - 2.0 * (passed.step_ps + 1) - _ALIKE * every
    if np.any(every < shortest):
        return None, int(np.count_nonzero(own))
    return _rate(bits[own], gaps[own], passed.step_ps + 1.0), int(np.count_nonzero(own))


def _rate(bits: NDArray[np.float64], gaps: NDArray[np.float64], step: float) -> Estimate:
    """Bits over time, with a jackknife over twenty groups in time order, and the error of a timestamp."""
    groups = np.array_split(np.arange(len(gaps)), 20)
    whole = float(bits.sum() / gaps.sum() * _PS)
    without = np.array([(bits.sum() - bits[g].sum()) / (gaps.sum() - gaps[g].sum()) * _PS for g in groups])
    error = float(np.sqrt((len(groups) - 1) / len(groups) * np.sum((without - without.mean()) ** 2)))
    half = _NORMAL * error + whole * step * len(gaps) / float(gaps.sum())
    return Estimate(whole, whole - half, whole + half, len(gaps))


def _buffer(passed: Passed, delay: DelayFit, untold: list[str]) -> BufferFit:
    """The drop policy and buffer size that explain which frames left and which were lost.

    A buffer holds frames that are ready and have not begun to leave. For each policy the fullest buffer that took a
    frame and the emptiest that did not bound the size; a policy where these cross is excluded.
    """
    lost = sum(len(port.lost_in) for port in passed.ports)
    if passed.doubtful:
        untold.append(
            f"what became of {passed.doubtful} frames; the size of buffers is known from below only"
        )
    if passed.unseen and lost:
        untold.append(f"how much {passed.unseen} was in the buffers; their size is known from below only")
    found: list[BufferFit] = []
    for policy in _POLICIES:
        sets = _sets(passed, delay, policy)
        for unit in _UNITS:
            least, below = _bounds(sets, unit)
            if lost == 0 or passed.doubtful or passed.unseen:
                return BufferFit("buffer", "B", least, None, lost)
            if below is not None and least < below:
                found.append(BufferFit(policy, unit, least, below, lost))
    if not found:
        untold.append(
            f"why {lost} frames were lost: no size of a buffer by port, priority or switch explains them"
        )
        least, _ = _bounds(_sets(passed, delay, "buffer"), "B")
        return BufferFit("buffer", "B", least, None, lost)
    # If several explain it, the one with the tightest bounds, relative to its size.
    found.sort(key=lambda fit: ((fit.below or 0) - fit.least) / max(fit.least, 1))
    best = found[0]
    if len(found) > 1:
        untold.append(
            "which buffer is full first: one of "
            + ", ".join(f"{fit.policy} in {fit.unit}" for fit in found)
            + "; lengths, priorities and ports that differ would tell"
        )
    return replace(
        best,
        also=tuple(f"{one.policy} in {one.unit}: {one.least} to {(one.below or 0) - 1}" for one in found[1:]),
    )


class _Buffer(Struct, frozen=True):
    """Frames of one buffer: when they entered or were dropped, their lengths, and when they began to leave."""

    entered: Times
    """Latest time of entry."""
    early: Times
    """Earliest time of entry."""
    lengths: Times
    left: Times
    refused: Times
    """Earliest time of the drop."""
    refused_late: Times
    refused_lengths: Times


def _sets(passed: Passed, delay: DelayFit, policy: str) -> list[_Buffer]:
    parts: dict[object, list[_Buffer]] = {}
    for number, port in enumerate(passed.ports):
        early, late = (np.minimum(one, port.left) for one in _entered(port, delay, passed))
        bits = np.rint(8.0 * (port.lost_lengths + PREAMBLE) * _PS / port.lost_in_rate_bps).astype(np.int64)
        refused, refused_late = _ready(
            port.lost_in - bits, port.lost_lengths, port.lost_in_rate_bps, port, delay, passed
        )
        for priority in np.unique(np.concatenate((port.priorities, port.lost_priorities))):
            key = {"buffer": number, "queue": (number, int(priority)), "shared": 0}[policy]
            own, gone = port.priorities == priority, port.lost_priorities == priority
            part = _Buffer(
                late[own],
                early[own],
                port.lengths[own],
                port.left[own],
                refused[gone],
                refused_late[gone],
                port.lost_lengths[gone],
            )
            parts.setdefault(key, []).append(part)
    joined = []
    for some in parts.values():
        columns = (
            np.concatenate([getattr(part, name) for part in some]) for name in _Buffer.__struct_fields__
        )
        joined.append(_Buffer(*columns))
    return joined


def _bounds(sets: list[_Buffer], unit: str) -> tuple[int, int | None]:
    """The greatest occupancy with an accepted frame, and the least with a dropped one; None without drops."""
    most, least = 0, None
    for one in sets:
        sizes = one.lengths if unit == "B" else np.ones_like(one.lengths)
        gone_sizes = one.refused_lengths if unit == "B" else np.ones_like(one.refused_lengths)
        order = np.argsort(one.entered, kind="stable")
        entered, inside = one.entered[order], np.concatenate(([0], np.cumsum(sizes[order])))
        leaving = np.argsort(one.left, kind="stable")
        left, outside = one.left[leaving], np.concatenate(([0], np.cumsum(sizes[leaving])))
        if len(entered):
            # Frames that entered before it are ahead; one that leaves at that very instant still occupies the buffer.
            held = inside[1:] - outside[np.searchsorted(left, entered, "right")]
            most = max(most, int(held.max()))
        if len(one.refused):
            early = np.argsort(one.early, kind="stable")
            inside = np.concatenate(([0], np.cumsum(sizes[early])))
            waits = inside[np.searchsorted(one.early[early], one.refused_late, "right")]
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
