"""Opens a file of another program and tells which it is of."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from wiregauge.files import LARGEST, open_regular
from wiregauge.foreign import flent, irtt, sessions
from wiregauge.foreign.exchanges import ForeignError, Measurement

__all__ = ["measured"]

_GZIP: Final = b"\x1f\x8b"
_PROGRAMS: Final[Sequence[tuple[Callable[[bytes], Measurement], set[str]]]] = (
    (irtt.read, {"round_trips", "version"}),
    (flent.read, {"raw_values", "results", "metadata"}),
)
"""Readers, each with the keys by which its files are known."""


def measured(path: Path) -> Measurement:
    """The measurement in a file, compressed by gzip or not, or in the folder of a session. Raises ForeignError."""
    if path.is_dir():
        return sessions.read(path)
    try:
        data = _content(path)
    except (OSError, EOFError, zlib.error) as error:
        raise ForeignError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        keys = set(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ForeignError(_unknown(path)) from None
    for read, needed in _PROGRAMS:
        if needed <= keys:
            try:
                return read(data)
            except ForeignError as error:
                raise ForeignError(f"{path}: {error}") from None
    if {"results", "metadata"} <= keys:
        raise ForeignError(
            f"{path}: has no raw values, so no single round trip; flent stores them since version 0.14"
        )
    raise ForeignError(_unknown(path))


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        packed = file.peek(2)[:2] == _GZIP
        with gzip.open(file) if packed else file as opened:
            data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(0, f"is too large: at most {LARGEST} B are read")
    return data


def _unknown(path: Path) -> str:
    return (
        f"{path}: is neither a run directory nor a measurement of another program; name a directory, the JSON of "
        "`irtt client -o`, or a data file of flent"
    )
