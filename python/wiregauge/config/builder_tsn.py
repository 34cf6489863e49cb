"""TSN settings of a host for the builder: the elements below `<host-tsn>`, with their attributes as fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Ats",
    "Cbs",
    "Classify",
    "CyclicQueuing",
    "Etf",
    "GateEntry",
    "GateSchedule",
    "HostTsn",
    "Ingress",
    "Police",
    "Scheduler",
    "StreamGate",
    "StreamGateEntry",
    "SwitchTsn",
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
class Scheduler:
    """The token bucket of a flow."""

    flow: int
    rate: str
    burst: str


@dataclass(frozen=True, slots=True)
class Ats:
    """Asynchronous shaping of a class of a switch."""

    schedulers: Sequence[Scheduler]
    longest_residence: str | None = None


@dataclass(frozen=True, slots=True)
class CyclicQueuing:
    """Two classes that take turns; `classes` with a space between."""

    classes: str
    cycle: str
    base_time: str | None = None


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """A traffic class; `priorities` and `virtual_links` with spaces between."""

    number: int
    priorities: str
    queues: int | None = None
    shaper: Cbs | Etf | Ats | None = None
    longest_frame: str | None = None
    preemptable: str | None = None
    virtual_links: str | None = None


@dataclass(frozen=True, slots=True)
class GateEntry:
    """A line of a gate control list; `open` names classes with spaces between."""

    for_: str
    open: str | None = None
    mac: str | None = None


@dataclass(frozen=True, slots=True)
class GateSchedule:
    """A gate control list."""

    entries: Sequence[GateEntry]
    base_time: str | None = None
    cycle_time: str | None = None
    cycle_extension: str | None = None


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
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class StreamGate:
    """When frames of a flow may come."""

    entries: Sequence[StreamGateEntry]
    base_time: str | None = None
    cycle_time: str | None = None
    close_on_invalid: str | None = None
    close_on_octets: str | None = None


@dataclass(frozen=True, slots=True)
class Police:
    """How many frames of a flow may come."""

    rate: str
    burst: str
    excess_rate: str | None = None
    excess_burst: str | None = None
    coupling: str | None = None
    colour_mode: str | None = None
    drop_on_yellow: str | None = None
    mark_all_red: str | None = None


@dataclass(frozen=True, slots=True)
class Ingress:
    """What the frames of a flow have to keep to where they arrive."""

    flow: int
    gate: StreamGate | None = None
    police: Police | None = None
    offload: str | None = None
    identify: str | None = None
    fields: str | None = None
    max_sdu: str | None = None
    block_oversize: str | None = None
    gate_of: int | None = None
    meter_of: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchTsn:
    """Traffic classes, shapers and gates of ports of a switch, and filters of streams that enter by them.

    `ports` with spaces between, `None`: all others.
    """

    classes: Sequence[TrafficClass] = ()
    schedules: Sequence[GateSchedule] = ()
    cyclic: CyclicQueuing | None = None
    ingress: Sequence[Ingress] = ()
    ports: str | None = None
    guard_band: str | None = None
    shortest_fragment: str | None = None
    hold_advance: str | None = None
    release_advance: str | None = None


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
    shortest_fragment: str | None = None
    hold_advance: str | None = None
    release_advance: str | None = None


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
    | SwitchTsn
    | Ats
    | Scheduler
    | CyclicQueuing
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
    SwitchTsn: "switch-tsn",
    Ats: "ats",
    Scheduler: "scheduler",
    CyclicQueuing: "cyclic-queuing",
}
"""What each part is called in the test language."""


def parts_of(part: Part) -> tuple[tuple[str, ...], list[Part]]:
    """The names of fields that are elements below it, and those elements."""
    names = tuple(
        name
        for name in (
            "classes",
            "schedule",
            "schedules",
            "schedulers",
            "cyclic",
            "classify",
            "ingress",
            "shaper",
            "entries",
            "gate",
            "police",
        )
        if not isinstance(getattr(part, name, ""), str)
    )
    found: list[Part] = []
    for name in names:
        value = getattr(part, name)
        found.extend([] if value is None else [value] if type(value) in TAGS else value)
    return names, found
