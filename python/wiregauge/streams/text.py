"""Streams of a place as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console

from wiregauge.files import printable
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.streams.observed import Bag, Copies, Echo, Observed, Stream, Tap
from wiregauge.streams.observing import PS_PER_NS
from wiregauge.terminal import print_table

__all__ = ["lines", "tables"]

_PS_PER_SECOND: Final = 1e12
_DIGITS: Final = 6
_JITTER_LIMIT_PS: Final = 500_000_000
"""Greatest jitter at the output of an end system (ARINC 664 part 7)."""

_HEADS = (
    *("stream", "n", "period", "min", "max", "sd", "bit/s", "bytes"),
    *("missing", "duplicates", "reordered", "resets"),
)
_LINK_HEADS = ("virtual link", "BAG", "jitter", "Lmax", "rejected")
_ECHO_HEADS = ("EtherCAT", "round trip min", "mean", "max", "n", "not returned", "working counter")
_COPY_HEADS = ("redundant series", "networks", "pairs", "on one only", "skew min", "max", "SkewMax needed")


def lines(observed: Observed) -> Iterator[str]:
    """What was read, how its time was taken, and what limits it."""
    started = datetime.fromtimestamp(observed.epoch_realtime_ns / 1e9, UTC)
    taps = ", ".join(printable(tap.name) for tap in observed.taps)
    yield (
        f"{count_of(observed.frames, 'frame')} in {_time(observed.duration_ps, 4)} from {started:%Y-%m-%d %H:%M:%S} "
        f"UTC at {taps}: {count_of(len(observed.streams), 'stream')}  validity {observed.validity}"
    )
    for reason in observed.reasons:
        yield f"  - {printable(reason)}"
    for tap in observed.taps:
        origin = (
            f"{tap.timestamps.kind} timestamps"
            if tap.timestamps
            else "timestamps of an origin that the file does not state"
        )
        dropped = "an unknown number of" if tap.dropped is None else tap.dropped or "no"
        yield (
            f"{printable(tap.name)}: {origin}, in steps of {_time(tap.step_ps, 1)}; a time between frames is exact to "
            f"{_time(tap.step_ps, 1)} and the rate of that clock, which nothing here compares with another; "
            f"{dropped} frames dropped by the capture"
        )


def tables(observed: Observed, console: Console) -> None:
    """Prints the tables of streams, virtual links, EtherCAT and redundant networks."""
    several = len(observed.taps) > 1
    named = [(_name(stream, observed.taps if several else ()), stream) for stream in observed.streams]
    print_table(_HEADS, [_row(name, stream) for name, stream in named], console)
    for heads, rows in (
        (_LINK_HEADS, [_link(name, stream, stream.bags) for name, stream in named if stream.bags]),
        (_ECHO_HEADS, [_echo(name, stream, stream.echo) for name, stream in named if stream.echo]),
        (_COPY_HEADS, [_copies(series) for series in observed.copies]),
    ):
        if rows:
            console.print()
            print_table(heads, rows, console)


def _name(stream: Stream, taps: Sequence[Tap]) -> str:
    name = printable(stream.name)
    return f"{name} at {printable(taps[stream.tap].name)}" if taps else name


def _row(name: str, stream: Stream) -> tuple[str, ...]:
    period, sequence = stream.period, stream.sequence
    seconds = (stream.last_ps - stream.first_ps) / _PS_PER_SECOND
    # The first frame begins the time, so one frame fewer than there are fits into it.
    rate = f"{8 * stream.octets / stream.frames * (stream.frames - 1) / seconds:.4g}" if seconds > 0 else "-"
    counted = ["-"] * 4
    if sequence:
        counts = sequence.missing, sequence.duplicates, sequence.reordered, sequence.resets
        counted = [str(count) for count in counts]
        if sequence.is_shared and sequence.missing:
            counted[0] += " (shared)"
    return (
        name,
        str(stream.frames),
        *(_time(time) for time in (period.mean, period.min, period.max, period.sd)),
        rate,
        "-".join(str(length) for length in sorted({stream.shortest, stream.longest})),
        *counted,
    )


def _link(name: str, stream: Stream, bags: Sequence[Bag]) -> tuple[str, ...]:
    """The greatest BAG at which the jitter is within the limit, or the least one with the jitter that it needs."""
    fitting = [bag for bag in bags if bag.jitter_ps <= _JITTER_LIMIT_PS]
    bag = fitting[-1] if fitting else bags[0]
    rejected = stream.sequence.rejected if stream.sequence else None
    return (
        name,
        _time(bag.bag_ps, 3) + ("" if fitting else " (exceeded)"),
        _time(bag.jitter_ps),
        f"{stream.longest} B",
        "-" if rejected is None else str(rejected),
    )


def _echo(name: str, stream: Stream, echo: Echo) -> tuple[str, ...]:
    trip, counter = echo.round_trip, stream.values.get("working_counter")
    return (
        name,
        *(_time(time) for time in (trip.min, trip.mean, trip.max)),
        str(trip.n),
        str(echo.unreturned),
        f"{counter.min} to {counter.max}, {counter.changes} changes" if counter else "-",
    )


def _copies(series: Copies) -> tuple[str, ...]:
    first, second = (printable(name) for name in series.networks)
    edge = f" ({series.at_edge} at an edge)" if series.at_edge else ""
    return (
        printable(series.name),
        f"{first} {series.frames[0]}, {second} {series.frames[1]}",
        str(series.pairs),
        f"{first} {series.alone[0]}, {second} {series.alone[1]}{edge}",
        *(_time(time) for time in (series.skew.min, series.skew.max, series.skew_max_ps)),
    )


def _time(ps: float | None, digits: int = _DIGITS) -> str:
    return duration(None if ps is None else ps / PS_PER_NS, digits)
