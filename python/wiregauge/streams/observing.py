"""Reads captures of one place, grades what they show, and stores it.

`crates/capture` finds the streams and keeps their accounts. The result is a directory with one file, `streams.json`:
what a run directory is to messages, this is to streams.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiregauge import _native
from wiregauge._version import __version__
from wiregauge.files import ForeignFileError, open_regular, printable, read_text, write_whole
from wiregauge.records import RunDirectory, RunDirectoryError

__all__ = ["FILE", "StreamsError", "networks_seen", "observe", "opened", "written"]

FILE = "streams.json"
SCHEMA = 1
_LEAST_STEPS = 3
"""Shortest median period, in steps of the timestamps, whose variation they resolve."""
_PS_PER_NS = 1000


class StreamsError(Exception):
    """The captures cannot be read, or the directory cannot be used; the text says why and what to do."""


def observe(files: Sequence[Path]) -> dict[str, Any]:
    """The streams in captures of one place, as `streams.json` has them. Raises StreamsError."""
    try:
        observed: dict[str, Any] = json.loads(
            _native.observe_captures(json.dumps({"files": [str(path) for path in files]}))
        )
        sources = {str(path): _sha256(path) for path in files}
        if len(set(sources.values())) < len(files):
            raise StreamsError(
                f"{files[0]}: a capture is named twice, or two have the same content; name each once"
            )
    except _native.NativeError as error:
        raise StreamsError(str(error)) from error
    except OSError as error:
        raise StreamsError(f"{files[0]}: cannot be read: {error.strerror}") from error
    reasons = list(_doubts(observed))
    head = {
        "schema": SCHEMA,
        "program": f"wiregauge {__version__}",
        "sources": sources,
        "complete": not any(trouble["ends_the_file"] for trouble in observed["troubles"]),
        "validity": "DEGRADED" if reasons else "VALID",
        "reasons": reasons,
    }
    return head | observed


def written(observed: Mapping[str, Any], out: Path) -> None:
    """Stores streams in a new directory. Raises StreamsError."""
    try:
        RunDirectory.check_free(out)
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / FILE, json.dumps(observed, indent=1) + "\n")
    except (RunDirectoryError, ForeignFileError) as error:
        raise StreamsError(str(error)) from error
    except OSError as error:
        raise StreamsError(f"{out}: cannot be written: {error.strerror}") from error


def opened(place: Path) -> dict[str, Any]:
    """The streams in a directory. Raises StreamsError."""
    path = place / FILE
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError) as error:
        raise StreamsError(f"{path}: cannot be read ({error}); import the captures again") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise StreamsError(f"{path}: is not of schema {SCHEMA}, the only one read; import the captures again")
    return found


def networks_seen(observed: Mapping[str, Any]) -> bool:
    """Whether two interfaces are two redundant networks rather than before and behind a device.

    Frames name networks A and B, or copies come first now on the one and now on the other, which no device can do.
    """
    return any(
        set(series["networks"]) == {"A", "B"}
        or (series["skew"]["min"] or 0) < 0 < (series["skew"]["max"] or 0)
        for series in observed["copies"]
    )


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _doubts(observed: Mapping[str, Any]) -> Iterator[str]:
    """Reasons to rely less on the figures."""
    for trouble in observed["troubles"]:
        yield f"{trouble['file']}: {trouble['count']} x {trouble['what']}"
    for tap in observed["taps"]:
        if tap["dropped"]:
            yield (
                f"{printable(tap['name'])}: the capture reports {tap['dropped']} frames as dropped; they are missing "
                "in the sequence numbers like lost ones"
            )
        if tap["turns"]:
            yield (
                f"{printable(tap['name'])}: times go back {tap['turns']} times, by up to "
                f"{tap['back_ps'] / _PS_PER_NS:g} ns: a clock was set, or frames were written out of order "
                "(reordercap IN OUT)"
            )
    if observed["beyond"]:
        yield f"{observed['beyond']} messages belong to streams beyond the greatest number that is followed"
    coarse = [
        stream
        for stream in observed["streams"]
        if "p50" in stream["period"]["quantiles"]
        and stream["period"]["quantiles"]["p50"][1]
        < _LEAST_STEPS * observed["taps"][stream["tap"]]["step_ps"]
    ]
    if coarse:
        yield (
            f"the timestamps are too coarse for the periods of {len(coarse)} streams, such as "
            f"{printable(coarse[0]['name'])}"
        )
