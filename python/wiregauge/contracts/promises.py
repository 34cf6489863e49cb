"""What a contract can promise of a stream: one entry for each, from its key in a file to its figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from wiregauge.streams import PS_PER_NS, Observed, Stream

__all__ = ["PROMISES", "Figure", "Promise", "clock_range"]

_CLOCKS: Final = 1e-4
"""Greatest difference of the rates of two clocks, as a share: 100 ppm, as in the tolerant jitter of streams."""
Unit = Literal["ns", "B", "frames"]


class Figure(Struct, frozen=True):
    """A figure of a stream: its value in the unit of the promise, None without one; n; the error of two clocks."""

    value: float | None
    n: int
    clocks: float = 0.0
    missing: str = ""
    """Why there is none."""


class Promise(Struct, frozen=True):
    """A promise. A frame that the capture lacks `hides` a violation, or else `feigns` one."""

    key: str
    measure: str
    bound: Literal["at-most", "at-least"]
    unit: Unit
    lack: Literal["hides", "feigns"]
    figure: Callable[[Stream, Observed, float], Figure]
    """From a stream, what else was seen, and the BAG of the contract in ps (0: it has none)."""
    if_unseen: Callable[[Observed], Figure] | None = None
    """The figure of a stream of which no frame was seen; None: there is none."""


def clock_range(ps: float) -> float:
    """How far two clocks may differ over a time, ns."""
    return abs(ps) * _CLOCKS / PS_PER_NS


def _jitter(stream: Stream, _seen: Observed, bag_ps: float) -> Figure:
    if stream.period.n == 0:
        return Figure(None, 0, missing="a single frame has no spacing")
    found = next((bag for bag in stream.bags if bag.bag_ps == bag_ps), None)
    if found is None:
        return Figure(None, 0, missing="only virtual links have regulators")
    return Figure(found.tolerant_jitter_ps / PS_PER_NS, stream.period.n)


def _longest(stream: Stream, _seen: Observed, _bag: float) -> Figure:
    return Figure(stream.longest, stream.frames)


def _least_interval(stream: Stream, _seen: Observed, _bag: float) -> Figure:
    return _time(stream.period.min, stream.period.n)


def _greatest_interval(stream: Stream, seen: Observed, _bag: float) -> Figure:
    """An open silence at either end of the capture lasted at least so long."""
    silences = (stream.first_ps, seen.duration_ps - stream.last_ps)
    return _time(max(stream.period.max or 0, *silences), stream.period.n)


def _silence(seen: Observed) -> Figure:
    return _time(seen.duration_ps, 0)


def _mean_interval(stream: Stream, _seen: Observed, _bag: float) -> Figure:
    return _time(stream.period.mean, stream.period.n)


def _time(ps: float | None, n: int) -> Figure:
    if ps is None:
        return Figure(None, 0, missing="a single frame has no spacing")
    return Figure(ps / PS_PER_NS, n, clock_range(ps))


def _counter(name: Literal["missing", "duplicates", "reordered", "rejected"]) -> Callable[..., Figure]:
    def figure(stream: Stream, _seen: Observed, _bag: float) -> Figure:
        sequence = stream.sequence
        count = getattr(sequence, name) if sequence is not None else None
        if sequence is None or count is None:
            return Figure(None, 0, missing=f"its frames show no numbers by which {name} frames could be told")
        if sequence.numbered < stream.frames:
            cut = stream.frames - sequence.numbered
            return Figure(
                None,
                sequence.numbered,
                missing=f"{cut} of {stream.frames} frames have no number: capture whole frames (snap length)",
            )
        if name == "missing" and sequence.is_shared:
            return Figure(None, 0, missing="other streams may take numbers of the same series")
        return Figure(count, sequence.numbered)

    return figure


def _round_trip(stream: Stream, _seen: Observed, _bag: float) -> Figure:
    trip = stream.echo.round_trip if stream.echo is not None else None
    if trip is None or trip.max is None:
        return Figure(None, 0, missing="no frame of it came back")
    return _time(trip.max, trip.n)


def _unreturned(stream: Stream, _seen: Observed, _bag: float) -> Figure:
    if stream.echo is None:
        return Figure(None, 0, missing="no frame of it came back")
    return Figure(stream.echo.unreturned, stream.frames)


PROMISES: Final = (
    Promise("max-jitter", "bag_jitter", "at-most", "ns", "hides", _jitter),
    Promise("lmax", "frame_length", "at-most", "B", "hides", _longest),
    Promise("min-interval", "shortest_interval", "at-least", "ns", "hides", _least_interval),
    Promise("max-interval", "longest_interval", "at-most", "ns", "feigns", _greatest_interval, _silence),
    Promise("min-period", "mean_interval", "at-least", "ns", "hides", _mean_interval),
    Promise("max-period", "mean_interval", "at-most", "ns", "feigns", _mean_interval),
    Promise("max-missing", "missing", "at-most", "frames", "feigns", _counter("missing")),
    Promise("max-duplicates", "duplicates", "at-most", "frames", "hides", _counter("duplicates")),
    Promise("max-reordered", "reordered", "at-most", "frames", "hides", _counter("reordered")),
    Promise("max-rejected", "rejected", "at-most", "frames", "feigns", _counter("rejected")),
    Promise("max-round-trip", "longest_round_trip", "at-most", "ns", "hides", _round_trip),
    Promise("max-unreturned", "unreturned", "at-most", "frames", "feigns", _unreturned),
)
"""What one stream shows by itself; promises on two networks are judged by the series of copies."""
