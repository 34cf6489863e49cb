"""Reads the data files of flent (`.flent`, `.flent.gz`, versions 1 to 4): https://flent.org.

Of its raw values those with a number are single round trips (of ping, fping and irtt). All others are rates, counters,
or means of an interval, from which no message can be told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from wiregauge.foreign.exchanges import LARGEST_SEQUENCE, Exchange, ForeignError, Measurement, Series

__all__ = ["read"]

_NEWEST: Final = 4
_WRAP: Final = 1 << 16
"""Numbers of ICMP echo requests are of 16 bits (RFC 792)."""
_PING_PAYLOAD: Final = 56
"""What ping and fping send unless told otherwise, B."""
_US: Final = 1e3
_LISTED: Final = 8


class _Metadata(Struct, rename="upper"):
    series_meta: Mapping[str, Mapping[str, Any]] | None = None
    name: str = ""


class _File(Struct):
    version: int
    metadata: _Metadata
    results: Mapping[str, Any]
    raw_values: Mapping[str, list[dict[str, Any]]] = {}


def read(data: bytes) -> Measurement:
    """The round trips of a data file. Raises ForeignError where it has none."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        raise ForeignError(f"is no data file of flent: {error}") from None
    if file.version > _NEWEST:
        raise ForeignError(f"is of version {file.version} of flent's format; up to {_NEWEST} can be read")
    found: list[Series] = []
    left = []
    for name in file.results:
        exchanges = list(_exchanges(name, file.raw_values.get(name, [])))
        if any(one.received is not None for one in exchanges):
            command = str((file.metadata.series_meta or {}).get(name, {}).get("COMMAND", ""))
            found.append(Series(name, exchanges, _payload(command), _step(file.raw_values[name])))
        else:
            left.append(name)
    if not found:
        raise ForeignError(
            "has no numbered round trips, such as those of ping or irtt: rates, counters and means of an interval "
            f"cannot be compared message by message ({_some(left)})"
        )
    remarks = [
        ("times", "the program's own, as flent stored them; of irtt without the time in its server"),
        (
            "lost",
            "numbers without an answer, as if sent evenly; those behind the last answer are not in the file",
        ),
        (
            "size",
            f"of ping not in the file: {_PING_PAYLOAD} B of payload, its default, unless its command says",
        ),
    ]
    if left:
        remarks.append(("not compared", f"{_some(left)}: rates, counters, or means of an interval"))
    return Measurement(f"flent (format {file.version})", found, remarks)


def _exchanges(name: str, values: list[dict[str, Any]]) -> Iterator[Exchange]:
    """Numbered values as round trips that end at `t`, and the numbers between them without an answer."""
    expected: int | None = None
    first = before = 0
    for value in values:
        number, at = value.get("seq"), value.get("t")
        if not isinstance(number, int | float) or not isinstance(at, int | float):
            continue
        if not (math.isfinite(number) and math.isfinite(at)):
            raise ForeignError(f'"{name}" has a number or time that is not finite')
        if expected is None:
            first = expected = int(number)
        # The nearest number of these 16 bits, or the very number where it is longer.
        sequence = int(number)
        if sequence < _WRAP <= expected + _WRAP // 2:
            sequence += round((expected - sequence) / _WRAP) * _WRAP
        if not -_WRAP < sequence - first <= LARGEST_SEQUENCE:
            raise ForeignError(f'"{name}" has numbers of packets that are {sequence - first} apart')
        end, took = round(at * 1e9), value.get("val")
        for missing in range(expected, sequence):
            # When it was sent is not in the file: evenly between its neighbours.
            yield Exchange(
                missing - first,
                before + (end - before) * (missing + 1 - expected) // (sequence + 1 - expected),
            )
        before = end
        expected = max(expected, sequence + 1)
        if sequence < first:
            continue
        if value.get("lost") or not isinstance(took, int | float):
            yield Exchange(sequence - first, end)
        elif math.isfinite(took) and took >= 0:
            yield Exchange(sequence - first, end - round(took * 1e6), end)


def _step(values: list[dict[str, Any]]) -> float:
    """The greatest step of printed round trips, ns: ping shows three digits or more, down to microseconds."""
    if any("owd_up" in value for value in values):
        return _US
    longest = max((float(one["val"]) for one in values if isinstance(one.get("val"), int | float)), default=0)
    digits = math.floor(math.log10(longest)) - 2 if longest > 0 else -3
    return float(1e6 * 10.0 ** max(digits, -3))


def _payload(command: str) -> int:
    """The size that a command asks for with `-s` (ping) or `-l` (irtt), B."""
    size = re.search(r"\bping\S*\s.*-s\s*(\d{1,5})\b|\birtt\s.*-l\s*(\d{1,5})\b", command)
    return int(size[1] or size[2]) if size else _PING_PAYLOAD


def _some(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "") or "it has no series"
