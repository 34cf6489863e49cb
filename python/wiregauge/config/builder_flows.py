"""What belongs to a flow, for the builder: paths, windows, copies, reserved bandwidth and planted faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Fault", "FlowPath", "Frer", "StreamReservation", "Window"]


@dataclass(frozen=True, slots=True)
class FlowPath:
    """The path of a flow to one of its receivers: the switches and hubs it passes."""

    via: str
    to: str | None = None
    network: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The window of one output port of a time-triggered flow, set by hand."""

    port: str
    offset: str
    length: str | None = None


@dataclass(frozen=True, slots=True)
class Frer:
    """Frame replication and elimination (IEEE Std 802.1CB): a copy of each frame goes every path of the flow."""

    recovery: str | None = None
    history_length: int | None = None
    reset: str | None = None
    individual: str | None = None
    replicate_at: str | None = None
    eliminate_at: str | None = None
    intermediate_recovery: str | None = None
    latent_difference: int | None = None
    latent_period: str | None = None
    latent_reset: str | None = None


@dataclass(frozen=True, slots=True)
class StreamReservation:
    """Bandwidth that every port on the path of a flow gives it (IEEE Std 802.1Q, clauses 34 and 35)."""

    class_: str
    max_frame_size: str | None = None
    interval_frames: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault of a relay; `sequence` as in the test language (`"5 17 100-110"`) or as numbers."""

    kind: str
    sequence: str | Iterable[int]
    to: str | None = None
