"""Streams of one place: imported from captures, and shown again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.terminal import BAD_INPUT, exit_code, fail, make_console, put, put_lines

if TYPE_CHECKING:
    from wiregauge.streams import Observed

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
        if unless_two and len(observed.taps) == _BEFORE_AND_BEHIND and not networks_seen(observed):
            return None
        written(observed, out)
    except StreamsError as error:
        fail(str(error), BAD_INPUT)
    return _show(observed, as_json=as_json)


def holds_streams(place: Path) -> bool:
    """Whether a place is a directory of streams. Nothing is imported for one that is no directory."""
    try:
        if not place.is_dir():
            return False
    except OSError:  # a name that no file can have
        return False
    from wiregauge.streams import is_of_streams

    return is_of_streams(place)


def show_directory(place: Path, *, as_json: bool) -> int:
    """Shows the streams that a directory holds; returns the exit code."""
    from wiregauge.streams import StreamsError, opened

    try:
        observed = opened(place)
    except StreamsError as error:
        fail(str(error), BAD_INPUT)
    return _show(observed, as_json=as_json)


def _show(observed: Observed, *, as_json: bool) -> int:
    from wiregauge.streams import json_text, lines, tables

    if as_json:
        put_lines([json_text(observed)])
    else:
        for line in lines(observed):
            put(line)
        tables(observed, make_console())
    return exit_code(answered=observed.complete)
