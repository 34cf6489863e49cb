"""Reads captures of one place, grades what they show, and stores it.

`crates/capture` finds the streams and keeps their accounts. The result is a directory with one file, `streams.json`:
what a run directory is to messages, this is to streams.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wiregauge import _native
from wiregauge._version import __version__
from wiregauge.files import ForeignFileError, open_regular, printable, read_text, write_whole
from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.records import RunDirectory, RunDirectoryError, holds_instead
from wiregauge.streams.observed import SCHEMA, Observed

__all__ = [
    "PS_PER_NS",
    "StreamsError",
    "graded",
    "is_of_streams",
    "json_text",
    "networks_seen",
    "observe",
    "opened",
    "written",
]

FILE: Final = "streams.json"
_LEAST_STEPS: Final = 3
"""Shortest median period, in steps of the timestamps, whose variation they resolve."""
PS_PER_NS: Final = 1000


class StreamsError(Exception):
    """The captures cannot be read, or the directory cannot be used; the text says why and what to do."""


def observe(files: Sequence[Path], dropped: int | None = None) -> Observed:
    """The streams in captures of one place, of which `dropped` frames are missing where they do not say themselves.

    Raises StreamsError.
    """
    try:
        seen: dict[str, Any] = json.loads(
            _native.observe_captures(json.dumps({"files": [str(path) for path in files]}))
        )
        sources = {str(path): _sha256(path) for path in files}
    except _native.NativeError as error:
        raise StreamsError(str(error)) from error
    except OSError as error:
        raise StreamsError(f"{files[0]}: cannot be read: {error.strerror}") from error
    if len(set(sources.values())) < len(files):
        raise StreamsError(
            f"{files[0]}: a capture is named twice, or two have the same content; name each once"
        )
    silent = [tap for tap in seen["taps"] if tap["dropped"] is None]
    if dropped is not None and not silent:
        raise StreamsError(f"{files[0]}: states how many frames were dropped; leave out --dropped")
    for tap in silent:
        # Of several interfaces, nobody knows which it was.
        tap["dropped"] = dropped
    return graded(seen, sources)


def graded(seen: dict[str, Any], sources: dict[str, str]) -> Observed:
    """What was seen, as `crates/capture` reports it, with reasons to rely less on it."""
    head = {
        "schema": SCHEMA,
        "program": f"wiregauge {__version__}",
        "sources": sources,
        "complete": not any(trouble["ends_the_file"] for trouble in seen["troubles"]),
        "validity": "VALID",
        "reasons": [],
    }
    found = msgspec.convert(head | seen, Observed)
    reasons = list(_doubts(found))
    return replace(found, validity="DEGRADED", reasons=reasons) if reasons else found


def json_text(observed: Observed) -> str:
    """The content of `streams.json`."""
    return json.dumps(msgspec.to_builtins(observed), indent=1)


def written(observed: Observed, out: Path) -> None:
    """Stores streams in a new directory. Raises StreamsError."""
    try:
        RunDirectory.check_free(out)
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / FILE, json_text(observed) + "\n")
    except (RunDirectoryError, ForeignFileError) as error:
        raise StreamsError(str(error)) from error
    except OSError as error:
        raise StreamsError(f"{out}: cannot be written: {error.strerror}") from error


def is_of_streams(place: Path) -> bool:
    """Whether a directory holds streams of a place rather than a run."""
    return holds_instead(place, FILE)


def opened(place: Path) -> Observed:
    """The streams in a directory. Raises StreamsError."""
    path = place / FILE
    try:
        found = json.loads(read_text(path))
        schema = found.get("schema") if isinstance(found, dict) else None
        if schema == SCHEMA:
            return msgspec.convert(found, Observed)
    except (OSError, ValueError, RecursionError) as error:
        raise StreamsError(f"{path}: cannot be read ({error}); import the captures again") from error
    raise StreamsError(f"{path}: is not of schema {SCHEMA}, the only one read; import the captures again")


def networks_seen(observed: Observed) -> bool:
    """Whether two interfaces are two redundant networks rather than before and behind a device.

    Frames name networks A and B, or copies come first now on the one and now on the other, which no device can do.
    """
    return any(
        set(series.networks) == {"A", "B"} or (series.skew.min or 0) < 0 < (series.skew.max or 0)
        for series in observed.copies
    )


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _doubts(observed: Observed) -> Iterator[str]:
    """Reasons to rely less on the figures."""
    for trouble in observed.troubles:
        yield f"{trouble.file}: {trouble.count} x {trouble.what}"
    for tap in observed.taps:
        if tap.dropped:
            yield (
                f"{printable(tap.name)}: {count_of(tap.dropped, 'frame')} dropped by the capture; they are missing in "
                "the sequence numbers like lost ones"
            )
        if tap.turns:
            yield (
                f"{printable(tap.name)}: times go back {tap.turns} times, by up to "
                f"{duration(tap.back_ps / PS_PER_NS)}: a clock was set, or frames were written out of order "
                "(reordercap IN OUT)"
            )
    if observed.runts:
        yield f"{count_of(observed.runts, 'frame')} shorter than an Ethernet header, which belong to no stream"
    if observed.beyond:
        yield f"{observed.beyond} messages belong to streams beyond the greatest number that is followed"
    if observed.uncompared:
        yield f"{observed.uncompared} messages belong to redundant series beyond the greatest number that is compared"
    coarse = [
        stream
        for stream in observed.streams
        if "p50" in stream.period.quantiles
        and stream.period.quantiles["p50"][1] < _LEAST_STEPS * observed.taps[stream.tap].step_ps
    ]
    if coarse:
        yield (
            f"the timestamps are too coarse for the periods of {len(coarse)} streams, such as "
            f"{printable(coarse[0].name)}"
        )
