"""Streams of one place: imported from captures, and shown again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wiregauge.terminal import BAD_INPUT, exit_code, fail, make_console, put

_BEFORE_AND_BEHIND = 2


def import_streams(
    captures: Sequence[Path], out: Path, *, as_json: bool, unless_two: bool = False
) -> int | None:
    """Stores and shows the streams of one place; returns the exit code.

    `unless_two`: None, and nothing stored, if two interfaces may be before and behind a device.
    """
    from wiregauge.streams import StreamsError, networks_seen, observe, written

    try:
        observed = observe(captures)
        if unless_two and len(observed["taps"]) == _BEFORE_AND_BEHIND and not networks_seen(observed):
            return None
        written(observed, out)
    except StreamsError as error:
        fail(str(error), BAD_INPUT)
    return show_streams(observed, as_json=as_json)


def is_of_streams(place: Path) -> bool:
    """Whether a directory holds streams of a place rather than a run."""
    try:
        return (place / "streams.json").is_file() and not (place / "manifest.json").exists()
    except OSError:  # a name that no file can have
        return False


def show_directory(place: Path, *, as_json: bool) -> int:
    """Shows the streams that a directory holds; returns the exit code."""
    from wiregauge.streams import StreamsError, opened

    try:
        observed = opened(place)
    except StreamsError as error:
        fail(str(error), BAD_INPUT)
    return show_streams(observed, as_json=as_json)


def show_streams(observed: Mapping[str, Any], *, as_json: bool) -> int:
    """Shows streams as text or JSON; returns the exit code."""
    from wiregauge.streams import lines, tables

    if as_json:
        print(json.dumps(observed, indent=1))
    else:
        for line in lines(observed):
            put(line)
        tables(observed, make_console())
    return exit_code(answered=observed["complete"])
