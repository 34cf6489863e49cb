"""Streams of a place as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wiregauge.files import printable
from wiregauge.terminal import print_table

__all__ = ["lines", "tables"]

_PS_PER_SECOND = 1e12
_UNITS = ((1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1, "ps"))
_JITTER_LIMIT_PS = 500_000_000
"""Greatest jitter at the output of an end system (ARINC 664 part 7)."""

_HEADS = (
    *("stream", "n", "period", "min", "max", "sd", "bit/s", "bytes"),
    *("missing", "duplicates", "reordered", "resets"),
)
_LINK_HEADS = ("virtual link", "BAG", "jitter", "Lmax", "rejected")
_ECHO_HEADS = ("EtherCAT", "round trip min", "mean", "max", "n", "not returned", "working counter")
_COPY_HEADS = ("redundant series", "networks", "pairs", "on one only", "skew min", "max", "SkewMax needed")


def lines(observed: Mapping[str, Any]) -> Iterator[str]:
    """What was read, how its time was taken, and what limits it."""
    started = datetime.fromtimestamp(observed["epoch_realtime_ns"] / 1e9, UTC)
    taps = ", ".join(printable(tap["name"]) for tap in observed["taps"])
    yield (
        f"{observed['frames']} frames in {_time(observed['duration_ps'])} from {started:%Y-%m-%d %H:%M:%S} UTC at "
        f"{taps}: {len(observed['streams'])} streams  validity {observed['validity']}"
    )
    for reason in observed["reasons"]:
        yield f"  - {printable(reason)}"
    for tap in observed["taps"]:
        known = tap["timestamps"]
        origin = (
            f"{known['kind']} timestamps" if known else "timestamps of an origin that the file does not state"
        )
        yield (
            f"{printable(tap['name'])}: {origin}, in steps of {_time(tap['step_ps'])}; a time between frames is exact "
            f"to {_time(tap['step_ps'])} and the rate of that clock, which nothing here compares with another"
        )


def tables(observed: Mapping[str, Any], console: Any) -> None:
    """Prints the tables of streams, virtual links, EtherCAT and redundant networks."""
    streams = observed["streams"]
    several = len(observed["taps"]) > 1
    names = [_name(stream, observed["taps"] if several else ()) for stream in streams]
    print_table(_HEADS, [_row(name, stream) for name, stream in zip(names, streams, strict=True)], console)
    named = list(zip(names, streams, strict=True))
    links = [_link(name, stream) for name, stream in named if stream["bags"]]
    echoes = [_echo(name, stream) for name, stream in named if stream["echo"]]
    for heads, rows in (
        (_LINK_HEADS, links),
        (_ECHO_HEADS, echoes),
        (_COPY_HEADS, [_copies(series) for series in observed["copies"]]),
    ):
        if rows:
            console.print()
            print_table(heads, rows, console)


def _name(stream: Mapping[str, Any], taps: Sequence[Mapping[str, Any]]) -> str:
    name = printable(stream["name"])
    return f"{name} at {printable(taps[stream['tap']]['name'])}" if taps else name


def _row(name: str, stream: Mapping[str, Any]) -> tuple[str, ...]:
    period, sequence = stream["period"], stream["sequence"]
    seconds = (stream["last_ps"] - stream["first_ps"]) / _PS_PER_SECOND
    mean_octets = stream["octets"] / stream["frames"]
    # The first frame begins the time, so one frame fewer than there are fits into it.
    rate = f"{8 * mean_octets * (stream['frames'] - 1) / seconds:.4g}" if seconds > 0 else "-"
    lengths = {stream["shortest"], stream["longest"]}
    counted = (
        [str(sequence[key]) for key in ("missing", "duplicates", "reordered", "resets")]
        if sequence
        else ["-"] * 4
    )
    if sequence and sequence["is_shared"] and sequence["missing"]:
        counted[0] += " (shared)"
    return (
        name,
        str(stream["frames"]),
        *(_time(period[key]) for key in ("mean", "min", "max", "sd")),
        rate,
        "-".join(str(length) for length in sorted(lengths)),
        *counted,
    )


def _link(name: str, stream: Mapping[str, Any]) -> tuple[str, ...]:
    """The greatest BAG at which the jitter is within the limit, or the least one with the jitter that it needs."""
    fitting = [bag for bag in stream["bags"] if bag["jitter_ps"] <= _JITTER_LIMIT_PS]
    bag = fitting[-1] if fitting else stream["bags"][0]
    rejected = stream["sequence"]["rejected"] if stream["sequence"] else None
    return (
        name,
        _time(bag["bag_ps"]) + ("" if fitting else " (exceeded)"),
        _time(bag["jitter_ps"]),
        f"{stream['longest']} B",
        "-" if rejected is None else str(rejected),
    )


def _echo(name: str, stream: Mapping[str, Any]) -> tuple[str, ...]:
    trip, counter = stream["echo"]["round_trip"], stream["values"].get("working_counter")
    return (
        name,
        *(_time(trip[key]) for key in ("min", "mean", "max")),
        str(trip["n"]),
        str(stream["echo"]["unreturned"]),
        f"{counter['min']} to {counter['max']}, {counter['changes']} changes" if counter else "-",
    )


def _copies(series: Mapping[str, Any]) -> tuple[str, ...]:
    first, second = (printable(name) for name in series["networks"])
    edge = f" ({series['at_edge']} at an edge)" if series["at_edge"] else ""
    return (
        printable(series["name"]),
        f"{first} {series['frames'][0]}, {second} {series['frames'][1]}",
        str(series["pairs"]),
        f"{first} {series['alone'][0]}, {second} {series['alone'][1]}{edge}",
        _time(series["skew"]["min"]),
        _time(series["skew"]["max"]),
        _time(series["skew_max_ps"]),
    )


def _time(ps: float | None) -> str:
    if ps is None:
        return "-"
    unit, name = next(((unit, name) for unit, name in _UNITS if abs(ps) >= unit), (1e3, "ns"))
    return f"{ps / unit:.6g} {name}"
