"""Streams of a place as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final

from msgspec import Struct
from rich.console import Console

from wiregauge.files import printable
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.streams.observed import Bag, Copies, Echo, Observed, PromiseResult, Stream
from wiregauge.streams.observing import PS_PER_NS
from wiregauge.terminal import print_table

__all__ = [
    "JITTER_LIMIT_PS",
    "StreamTable",
    "lines",
    "promise_text",
    "stream_name",
    "stream_tables",
    "tables",
    "verdict_lines",
]

_PS_PER_SECOND: Final = 1e12
_DIGITS: Final = 6
JITTER_LIMIT_PS: Final = 500_000_000
"""Greatest jitter at the output of an end system (ARINC 664 part 7)."""

_RESULTS: Final = ("fail", "undecided", "pass")
_MOST_LINES: Final = 20
_MOST_NAMED: Final = 10

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


class StreamTable(Struct, frozen=True):
    """A table as text; the first column names its rows."""

    title: str
    heads: Sequence[str]
    rows: Sequence[tuple[str, ...]]


def stream_tables(observed: Observed) -> list[StreamTable]:
    """The table of streams, and those of virtual links, EtherCAT and redundant networks where there are any."""
    named = [(stream_name(stream, observed), stream) for stream in observed.streams]
    links = [_link(name, stream, stream.bags) for name, stream in named if stream.bags]
    echoes = [_echo(name, stream, stream.echo) for name, stream in named if stream.echo]
    copies = [_copies(series) for series in observed.copies]
    more = (
        StreamTable("Virtual links", _LINK_HEADS, links),
        StreamTable("EtherCAT", _ECHO_HEADS, echoes),
        StreamTable("Redundant networks", _COPY_HEADS, copies),
    )
    every = StreamTable("All streams", _HEADS, [_row(name, stream) for name, stream in named])
    return [every, *(table for table in more if table.rows)]


def tables(observed: Observed, console: Console) -> None:
    """Prints the tables."""
    for place, table in enumerate(stream_tables(observed)):
        if place:
            console.print()
        print_table(table.heads, list(table.rows), console)


def stream_name(stream: Stream, observed: Observed) -> str:
    """Name of a stream for people; with its tap where there are several."""
    name = printable(stream.name)
    return f"{name} at {printable(observed.taps[stream.tap].name)}" if len(observed.taps) > 1 else name


def verdict_lines(observed: Observed) -> Iterator[str]:
    """The verdict of a contract, and its promises: each that failed, others by promise and cause; none without one."""
    contract = observed.contract
    if contract is None:
        return
    counted = {result: sum(one.result == result for one in observed.promises) for result in _RESULTS}
    told = ", ".join(f"{count} {result}" for result, count in counted.items() if count)
    caveat = f"  {count_of(len(observed.others), 'stream')} in no contract" if observed.others else ""
    yield (
        f"verdict {observed.verdict}  {count_of(len(observed.promises), 'promise')} of {printable(contract.file)}: "
        f"{told}{caveat}"
    )
    for result in _RESULTS:
        alike: dict[tuple[str, ...], list[PromiseResult]] = {}
        for number, one in enumerate(observed.promises):
            if one.result == result:
                cause = re.split(r"[(:\d]", one.reason)[0]
                key = (
                    (str(number),)
                    if result == "fail"
                    else ((one.measure, one.bound, cause) if one.observed is not None else (cause,))
                )
                alike.setdefault(key, []).append(one)
        for members in list(alike.values())[:_MOST_LINES]:
            yield f"  {result} {_of_alike(min(members, key=_margin), len(members))}"
        if len(alike) > _MOST_LINES:
            yield f"  {result} {len(alike) - _MOST_LINES} more"
    for note in observed.notes:
        yield f"  - {printable(note)}"
    for what, names in (("not seen", observed.unseen), ("in no contract", observed.others)):
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            yield f"  {what}: {', '.join(map(printable, names[:_MOST_NAMED]))}{more}"


def _margin(one: PromiseResult) -> float:
    if one.observed is None:
        return inf
    return one.value - one.observed if one.bound == "at-most" else one.observed - one.value


def promise_text(one: PromiseResult) -> str:
    """A promise with figure, limit, n and uncertainty, and the reason where it is undecided."""
    text = f"{printable(one.stream)}: {one.measure} {one.bound.replace('-', ' ')} {one.written}"
    if one.observed is not None:
        seen = f"{one.observed:.0f} B" if one.unit == "B" else duration(one.observed, _DIGITS)
        text += f": {f'{one.observed:.0f}' if one.unit == 'frames' else seen} (n = {one.n}"
        if one.instrument is not None:
            text += f", ± {duration(one.instrument[1] - one.observed, 2)}"
        text += ")"
    return text + (f"; {one.reason}" if one.reason else "")


def _of_alike(one: PromiseResult, of: int) -> str:
    return promise_text(one) + (
        "" if of == 1 else f" (closest of {of})" if one.result == "pass" else f" (and {of - 1} more alike)"
    )


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
    fitting = [bag for bag in bags if bag.jitter_ps <= JITTER_LIMIT_PS]
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
