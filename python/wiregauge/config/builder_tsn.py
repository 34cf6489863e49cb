"""TSN settings of a host for the builder: the elements below `<host-tsn>`, with their attributes as fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Cbs",
    "Classify",
    "Etf",
    "GateEntry",
    "GateSchedule",
    "HostTsn",
    "Ingress",
    "Police",
    "StreamGate",
    "StreamGateEntry",
    "TrafficClass",
]


@dataclass(frozen=True, slots=True)
class Cbs:
    """The credit-based shaper of a class."""

    idle_slope: str
    max_frame: str | None = None
    max_interference: str | None = None
    offload: str | None = None


@dataclass(frozen=True, slots=True)
class Etf:
    """Launch times in a class."""

    delta: str | None = None
    offload: str | None = None
    deadline: str | None = None


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """A traffic class; `priorities` with spaces between."""

    number: int
    priorities: str
    queues: int | None = None
    shaper: Cbs | Etf | None = None


@dataclass(frozen=True, slots=True)
class GateEntry:
    """A line of a gate control list; `open` names classes with spaces between."""

    for_: str
    open: str | None = None


@dataclass(frozen=True, slots=True)
class GateSchedule:
    """A gate control list."""

    entries: Sequence[GateEntry]
    base_time: str | None = None
    cycle_time: str | None = None


@dataclass(frozen=True, slots=True)
class Classify:
    """The priority of a flow within the host."""

    flow: int
    priority: int


@dataclass(frozen=True, slots=True)
class StreamGateEntry:
    """A line of a stream gate."""

    state: str
    for_: str
    max_octets: str | None = None


@dataclass(frozen=True, slots=True)
class StreamGate:
    """When frames of a flow may come."""

    entries: Sequence[StreamGateEntry]
    base_time: str | None = None
    cycle_time: str | None = None


@dataclass(frozen=True, slots=True)
class Police:
    """How many frames of a flow may come."""

    rate: str
    burst: str


@dataclass(frozen=True, slots=True)
class Ingress:
    """What the frames of a flow have to keep to where they arrive."""

    flow: int
    gate: StreamGate | None = None
    police: Police | None = None
    offload: str | None = None


@dataclass(frozen=True, slots=True)
class HostTsn:
    """TSN settings of an end system's interface."""

    classes: Sequence[TrafficClass] = ()
    schedule: GateSchedule | None = None
    classify: Sequence[Classify] = ()
    ingress: Sequence[Ingress] = ()
    channels: int | None = None
    offload: str | None = None
    txtime_delay: str | None = None


Part = (
    HostTsn
    | TrafficClass
    | Cbs
    | Etf
    | GateSchedule
    | GateEntry
    | Classify
    | Ingress
    | StreamGate
    | StreamGateEntry
    | Police
)
TAGS: dict[type, str] = {
    HostTsn: "host-tsn",
    TrafficClass: "traffic-class",
    Cbs: "cbs",
    Etf: "etf",
    GateSchedule: "gate-schedule",
    GateEntry: "gate-entry",
    Classify: "classify",
    Ingress: "ingress",
    StreamGate: "stream-gate",
    StreamGateEntry: "stream-gate-entry",
    Police: "police",
}
"""What each part is called in the test language."""


def parts_of(part: Part) -> tuple[tuple[str, ...], list[Part]]:
    """The names of fields that are elements below it, and those elements."""
    names = tuple(
        name
        for name in ("classes", "schedule", "classify", "ingress", "shaper", "entries", "gate", "police")
        if hasattr(part, name)
    )
    found: list[Part] = []
    for name in names:
        value = getattr(part, name)
        found.extend([] if value is None else [value] if type(value) in TAGS else value)
    return names, found
