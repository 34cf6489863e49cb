"""A contract: streams, how each is recognised, and what is promised of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

from msgspec import Struct, field

from wiregauge import _native
from wiregauge.streams import Copies, Stream

__all__ = ["Contract", "ContractError", "Expected", "Matcher", "identities"]

Part = int | float | str


class ContractError(ValueError):
    """The file is no contract; the message says where, why, and what to write."""


@cache
def identities() -> Mapping[str, Sequence[str]]:
    """The kinds of streams, each with the fields that tell its streams apart, whenever they are captured."""
    found: Mapping[str, Sequence[str]] = json.loads(_native.stream_identities())
    return found


class Expected(Struct, frozen=True, kw_only=True):
    """A stream of a contract."""

    name: str
    kind: str
    fields: Mapping[str, Part]
    """Parts of its identity; others may be anything."""
    network: Literal["A", "B"] | None = None
    vlans: tuple[int, ...] | None = None
    """None: any."""
    bag_ps: int = 0
    """0: it has none."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """By the key of the promise, in its unit."""
    skew_max_ps: int | None = None
    max_on_one: int | None = None
    """Frames that may be on one network only."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What it is recognised by."""
        return self.kind, tuple(sorted(self.fields.items())), self.network, self.vlans

    def is_of(self, stream: Stream) -> bool:
        """Whether a stream is this one."""
        return (
            self.kind == stream.kind
            and self.network in (None, stream.network)
            and self.vlans in (None, tuple(stream.vlans))
            and all(stream.fields.get(name) == value for name, value in self.fields.items())
        )

    def has_copies(self, copies: Copies) -> bool:
        """Whether a series of copies is of this stream."""
        return (
            self.kind == copies.kind
            and self.vlans in (None, tuple(copies.vlans))
            and all(self.fields.get(name, value) == value for name, value in copies.fields.items())
        )


class Contract(Struct, frozen=True, kw_only=True):
    """A contract as a file states it."""

    file: str
    sha256: str
    streams: tuple[Expected, ...]
    refuses_others: bool = False
    """Whether a stream that is not listed breaks it."""
    notes: tuple[str, ...] = ()
    """What of the file cannot be judged here."""


class Matcher:
    """Finds the expected stream of a stream; of several that fit, the one that says most."""

    def __init__(self, streams: Iterable[Expected]) -> None:
        self._by_parts: dict[tuple[str, tuple[str, ...]], dict[tuple[Part, ...], list[Expected]]] = {}
        for expected in streams:
            names = tuple(sorted(expected.fields))
            values = tuple(expected.fields[name] for name in names)
            self._by_parts.setdefault((expected.kind, names), {}).setdefault(values, []).append(expected)

    def expected(self, stream: Stream) -> Expected | None:
        """The expected stream that this one is."""
        found = []
        for (kind, names), by_values in self._by_parts.items():
            if kind == stream.kind and all(name in stream.fields for name in names):
                same = by_values.get(tuple(stream.fields[name] for name in names), ())
                found += [expected for expected in same if expected.is_of(stream)]
        return max(found, key=_says, default=None)


def _says(expected: Expected) -> int:
    return len(expected.fields) + (expected.network is not None) + (expected.vlans is not None)
