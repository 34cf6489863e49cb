"""Traffic and service of a port: arrival curves, and latencies of rate servers.

Lengths are in bits of the line, preamble and gap included (IEEE Std 802.3: 20 octets a frame), times in ps, rates in
bit/s.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

__all__ = ["Arrivals", "Latency", "arrival_curve", "guaranteed_rate", "least_burst", "scale_rate", "served"]

Bits = NDArray[np.float64]
Times = NDArray[np.int64]
_PS = 1e12
_CLASSES = 40
"""The most amounts of service that are distinguished."""


class Arrivals(Struct, frozen=True):
    """The least arrival curve of the observed frames: no interval has more."""

    frames: int
    rate_bps: float
    """Mean rate, bit/s: the bits without the last frame over the time from the first to the last."""
    burst_bits: float
    """Least token bucket of that rate that all frames pass, bits."""
    spans: tuple[tuple[int, int, float], ...]
    """For a number of successive frames: the shortest time from first to last, ps, and the most bits."""


class Latency(Struct, frozen=True):
    """The least latency, ps, with which a server of a rate explains all departures."""

    rate_bps: float
    latency_ps: float
    n: int

    @property
    def exceeded(self) -> float | None:
        """Share of frames that may take longer, with 95 % confidence, if frames were independent; None below 3 frames.

        For n independent frames of which none took longer, 1 - 0.05^(1/n) (Hanley and Lippman-Hand 1983).
        """
        return 1 - 0.05 ** (1 / self.n) if self.n else None


def least_burst(times: Times, bits: Bits, rate_bps: float) -> float:
    """The least token bucket, bits, that frames at `times` (ascending) conform to at a rate.

    The greatest value, over all i and j, of the bits of frames i to j minus what the rate passes between them
    (Le Boudec and Thiran, Network Calculus, 1.2.4).
    """
    seconds = (times - times[0]) / _PS
    after = np.cumsum(bits) - rate_bps * seconds
    before = after - bits
    return float(np.max(after - np.minimum.accumulate(before)))


def arrival_curve(times: Times, bits: Bits) -> Arrivals | None:
    """The least arrival curve of frames at `times`; None for fewer than two."""
    order = np.argsort(times, kind="stable")
    times, bits = times[order], bits[order]
    if len(times) < 2 or times[-1] == times[0]:
        return None
    rate = float(bits[:-1].sum()) / (int(times[-1] - times[0]) / _PS)
    passed = np.concatenate(([0.0], np.cumsum(bits)))
    counts = np.unique(np.geomspace(1, len(times), 24).astype(int))
    spans = tuple(
        (
            int(count),
            int(np.min(times[count - 1 :] - times[: len(times) - count + 1])),
            float(np.max(passed[count:] - passed[:-count])),
        )
        for count in counts
    )
    return Arrivals(len(times), rate, least_burst(times, bits, rate), spans)


def guaranteed_rate(came: Times, left: Times, bits: Bits, rate_bps: float) -> Latency:
    """Guaranteed-rate latency: frame k leaves by F(k) + E, F(k) = max(a(k), F(k - 1)) + l(k) / r.

    `came` ascends; `left` is the last bit out (Goyal, Lam and Vin 1995; Le Boudec and Thiran, Network Calculus, 2.1.3).
    A server with these has the service curve r (t - E).
    """
    own = bits / rate_bps * _PS
    done = np.cumsum(own)
    start = came - (done - own)
    virtual = done + np.maximum.accumulate(start)
    return Latency(rate_bps, float(np.max(left - virtual)), len(came))


def served(came: Times, left: Times, bits: Bits, rate_bps: float) -> tuple[tuple[int, float], ...]:
    """The slowest service of each amount: ps since a busy period began, and bits that had left by then.

    The busy periods are those of a server of that rate without latency: each begins with a frame that arrives when all
    before it would have been served. Below these points lies the curve of `guaranteed_rate`, which touches one of them.
    """
    own = bits / rate_bps * _PS
    done = np.cumsum(own)
    begin = came - (done - own)
    latest = np.maximum.accumulate(begin)
    # Where the greatest begin is the frame's own arrival, the server was idle.
    first = np.maximum.accumulate(np.where(begin >= latest, np.arange(len(came)), 0))
    passed = np.concatenate(([0.0], np.cumsum(bits)))
    amounts = passed[1:] - passed[first]
    times = left - came[first]
    edges = np.geomspace(amounts.min(), amounts.max() * 1.001, _CLASSES + 1)
    place = np.clip(np.digitize(amounts, edges) - 1, 0, _CLASSES - 1)
    late = times - amounts / rate_bps * _PS
    points = []
    for one in np.unique(place):
        among = np.flatnonzero(place == one)
        worst = among[np.argmax(late[among])]
        points.append((int(times[worst]), float(amounts[worst])))
    return tuple(points)


def scale_rate(came: Times, left: Times, bits: Bits, rate_bps: float) -> Latency:
    """Packet-scale rate guarantee: frame k leaves by F(k) + E, F(k) = max(a(k), min(d(k - 1), F(k - 1))) + l(k) / r.

    d(k) is its departure. RFC 3246, 2.2, and RFC 3247; stronger than a guaranteed rate, as an early departure does not
    excuse later frames.
    """
    own = bits / rate_bps * _PS
    virtual, before, worst = -np.inf, -np.inf, -np.inf
    for arrived, departed, length in zip(came.tolist(), left.tolist(), own.tolist(), strict=True):
        virtual = max(arrived, min(before, virtual)) + length
        worst = max(worst, departed - virtual)
        before = departed
    return Latency(rate_bps, float(worst), len(came))
