"""Identifies the forwarding mode of a switch and its delay without queueing, where the frames allow it.

From first bit in to first bit out a frame takes 8 / R more for each octet if it is stored, R being the rate of its
input, and no more if it is cut through. So only frames of several lengths on one path distinguish the two, and only if
their first bits are known, as in a capture. The records of a switch have its own timestamps, of the last octet or of
the header; which of the two is determined first (`Passed.stamps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.identify.errors import IdentifyError
from wiregauge.identify.passed import HEADER, Passed, Port, wire_bits
from wiregauge.plan.ethernet import PREAMBLE

__all__ = ["FEWEST", "DelayFit", "Estimate", "Mode", "fit_delay", "from_reference", "occupied"]

Times = NDArray[np.int64]
Mode = Literal["store-and-forward", "cut-through"]
MODES: Final[tuple[Mode, ...]] = ("store-and-forward", "cut-through")
FEWEST: Final = 30
"""The fewest frames for a parameter."""
_PS: Final = 1e12
_SURE: Final = 3.3
"""Standard errors for a vote: 99.9 %."""
_CLOCKS: Final = 100e-6
"""Greatest relative error of an Ethernet oscillator (IEEE Std 802.3)."""


class Estimate(Struct, frozen=True):
    """A parameter with its 95 % interval, from `n` frames or pairs of them."""

    value: float
    low: float
    high: float
    n: int


class DelayFit(Struct, frozen=True):
    """The forwarding mode and delay of frames that do not queue."""

    mode: Mode | None
    """None where the frames do not determine it."""
    slope: Estimate | None
    """Increase of the time from first bit in to first bit out per bit of the frame, ps; None where unknown."""
    delay: Estimate
    """Processing delay, ps, as in a test; its interval spans the least and the greatest that the frames allow."""
    quantiles: tuple[tuple[float, int], ...]
    bounds: tuple[tuple[Mode, float, float], ...]
    """Least and greatest delay, ps, for each mode that may be the true one, from `from_reference`."""
    mixed: float = 0.0
    """The greatest extra delay of frames between ports of different rates, ps."""


class _Idle(Struct, frozen=True):
    """Frames that found their port idle, with their paths."""

    latency: Times
    """Time from first bit in to first bit out, ps."""
    lengths: Times
    in_rate_bps: NDArray[np.float64]
    out_rate_bps: NDArray[np.float64]
    ways: Times

    def only(self, chosen: NDArray[np.bool_]) -> _Idle:
        return _Idle(
            self.latency[chosen],
            self.lengths[chosen],
            self.in_rate_bps[chosen],
            self.out_rate_bps[chosen],
            self.ways[chosen],
        )

    @property
    def same_rate(self) -> NDArray[np.bool_]:
        return np.asarray(self.in_rate_bps == self.out_rate_bps)


def occupied(lengths: Times, rate_bps: float) -> Times:
    """Time that frames occupy a line, ps."""
    return np.rint(wire_bits(lengths) * _PS / rate_bps).astype(np.int64)


def from_reference(
    mode: Mode, lengths: Times, in_rate_bps: NDArray[np.float64], out_rate_bps: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Time from the first bit in to the begin of the processing delay, ps: after the header, or the last bit.

    A frame between lines of different rates is stored under cut-through as well.
    """
    whole = 8.0 * (lengths + PREAMBLE) * _PS / in_rate_bps
    if mode == "store-and-forward":
        return whole
    return np.where(in_rate_bps != out_rate_bps, whole, 8.0 * (HEADER + PREAMBLE) * _PS / in_rate_bps)


def fit_delay(passed: Passed, untold: list[str]) -> DelayFit:
    """Fits the delay of frames that found their port idle. Raises IdentifyError where there are too few."""
    idle = _idle_of(passed)
    if len(idle.latency) < FEWEST:
        raise IdentifyError(
            f"{passed.name}: {len(idle.latency)} frames found their port idle, and {FEWEST} are needed to tell its "
            "delay; measure with less traffic as well"
        )
    slope, mode = _mode(passed, idle)
    if mode is None:
        untold.append(
            "whether it stores frames or cuts through: no way through it has frames of several lengths"
            + (" whose first bits are known" if passed.stamps is None else "")
            + "; the model takes it for store-and-forward; send two lengths from one port to another of the same rate"
        )
    chosen = idle.only(idle.same_rate) if np.count_nonzero(idle.same_rate) >= FEWEST else idle
    certain = passed.step_ps + 1.0
    bounds: list[tuple[Mode, float, float]] = []
    for one in MODES if mode is None else (mode,):
        delays = _delays(passed, chosen, one)
        drifted = _CLOCKS * float(np.max(8.0 * (chosen.lengths + PREAMBLE) * _PS / chosen.in_rate_bps))
        slack = certain + (drifted if passed.stamps == "first" else 0.0)
        bounds.append((one, float(delays.min()) - slack, float(delays.max()) + slack))
    values = np.sort(_delays(passed, chosen, mode or "store-and-forward"))
    low, high = min(low for _, low, _ in bounds), max(high for _, _, high in bounds)
    if not np.any(chosen.same_rate):
        low = 0.0
        untold.append(
            "what of the delay is the switch's and what comes of ports of different rates: no frames passed between "
            "ports of one rate; the delay is from above only"
        )
    if passed.unseen:
        low = 0.0
        untold.append(f"how long frames waited for {passed.unseen}: the delay is from above only")
    shares = (0, 5, 25, 50, 75, 95, 100)
    quantiles = tuple((float(s), max(0, round(float(np.percentile(values, s))))) for s in shares)
    delay = Estimate(float(np.median(values)), max(0.0, low), max(0.0, high), len(values))
    return DelayFit(
        mode, slope, delay, quantiles, tuple(bounds), _mixed(passed, idle, mode, float(values[-1]))
    )


def _mixed(passed: Passed, idle: _Idle, mode: Mode | None, most: float) -> float:
    """The excess of the delay between ports of different rates over the greatest one between equal rates, ps."""
    if not np.any(idle.same_rate) or np.all(idle.same_rate):
        return 0.0
    others = _delays(passed, idle.only(~idle.same_rate), mode or "store-and-forward")
    return max(0.0, float(others.max()) - most)


def _idle_of(passed: Passed) -> _Idle:
    parts = [(number, port, _came_idle(port)) for number, port in enumerate(passed.ports)]

    def joined(name: str) -> NDArray[np.float64]:
        return np.concatenate([np.asarray(getattr(port, name))[idle] for _, port, idle in parts])

    return _Idle(
        np.concatenate([(port.left - port.first_in)[idle] for _, port, idle in parts]),
        joined("lengths").astype(np.int64),
        joined("in_rate_bps"),
        np.concatenate([np.full(np.count_nonzero(idle), float(port.rate_bps)) for _, port, idle in parts]),
        np.concatenate([1000 * number + port.in_ports[idle] for number, port, idle in parts]),
    )


def _came_idle(port: Port) -> NDArray[np.bool_]:
    """Flags of frames that arrived after all before them had left."""
    before = port.left[:-1] + occupied(port.lengths[:-1], port.rate_bps)
    return np.asarray(port.first_in > np.concatenate(([np.iinfo(np.int64).min], before)))


def _delays(passed: Passed, idle: _Idle, mode: Mode) -> NDArray[np.float64]:
    if passed.stamps is None and mode == "cut-through":
        # First bits were computed as if the switch had stamped last octets; but it stamps headers then.
        header = from_reference(mode, idle.lengths, idle.in_rate_bps, idle.in_rate_bps)
        reference = from_reference(mode, idle.lengths, idle.in_rate_bps, idle.out_rate_bps)
        whole = from_reference("store-and-forward", idle.lengths, idle.in_rate_bps, 0.0)
        return idle.latency - whole + header - reference
    return idle.latency - from_reference(mode, idle.lengths, idle.in_rate_bps, idle.out_rate_bps)


def _mode(passed: Passed, idle: _Idle) -> tuple[Estimate | None, Mode | None]:
    """The forwarding mode from the timestamps, or from paths with several lengths if all agree; and the slope."""
    found = sorted(_slopes(passed, idle), key=lambda one: -one[0].n)
    slope = found[0][0] if found else None
    if passed.stamps in ("header", "whole"):
        return slope, "cut-through" if passed.stamps == "header" else "store-and-forward"
    if passed.stamps is None:
        return None, None
    whole = 8.0 * (idle.lengths + PREAMBLE) * _PS / idle.in_rate_bps * (1 - _CLOCKS)
    if np.count_nonzero(idle.latency < whole - passed.step_ps) >= FEWEST:
        # These frames left before they had fully arrived.
        return slope, "cut-through"
    votes = {vote for _, vote in found if vote is not None}
    return slope, votes.pop() if len(votes) == 1 else None


def _slopes(passed: Passed, idle: _Idle) -> Iterator[tuple[Estimate, Mode | None]]:
    """The slope of time over length for each path with several lengths, and the mode it implies."""
    for way in np.unique(idle.ways):
        own = idle.only(idle.ways == way)
        bits = 8.0 * (own.lengths + PREAMBLE)
        if len(bits) < FEWEST or not np.ptp(bits) or own.in_rate_bps[0] != own.out_rate_bps[0]:
            continue
        centred = bits - bits.mean()
        slope = float(centred @ (own.latency - own.latency.mean()) / (centred @ centred))
        rest = own.latency - own.latency.mean() - slope * centred
        error = float(np.sqrt(rest @ rest / max(len(bits) - 2, 1) / (centred @ centred)))
        per_bit = _PS / float(own.in_rate_bps[0])
        # Errors that averaging does not reduce: timestamps, and clocks of the lines.
        certain = 2 * (passed.step_ps + 1.0) / float(np.ptp(bits)) + 2 * _CLOCKS * per_bit
        half = _SURE * error + certain
        found = Estimate(slope, slope - half, slope + half, len(bits))
        # The middle fits neither mode; each needs its side of it with the whole interval.
        stored, cut = found.low > per_bit / 2, found.high < per_bit / 2
        yield found, "store-and-forward" if stored else "cut-through" if cut else None
