"""TSN settings of a host's interface: `wg_plan::host_tsn`."""

from __future__ import annotations

from typing import Literal

from wiregauge.plan.base import FlowId, Picoseconds, Plan, Variant, written

__all__ = ["HostTsn", "IngressRule", "TrafficClass"]


class Cbs(Variant, frozen=True, tag="cbs"):
    """The credit-based shaper."""

    idle_slope_bps: int
    max_frame: int
    max_interference: int
    offload: bool


class Etf(Variant, frozen=True, tag="etf"):
    """Frames leave at the time that each of them names."""

    delta: Picoseconds
    offload: bool
    deadline: bool


class TrafficClass(Plan, frozen=True):
    """A traffic class, its priorities and how many transmit queues it has."""

    priorities: tuple[int, ...]
    queues: int
    shaper: Cbs | Etf | None = None


class GateEntry(Plan, frozen=True):
    """Classes whose gates are open, and for how long."""

    open: tuple[int, ...]
    length: Picoseconds


class GateSchedule(Plan, frozen=True):
    """A gate control list."""

    base_time: Picoseconds
    entries: tuple[GateEntry, ...]


class Classify(Plan, frozen=True):
    """The priority of a flow within the host."""

    flow: FlowId
    priority: int


class StreamGateEntry(Plan, frozen=True):
    """A line of a stream gate."""

    open: bool
    length: Picoseconds
    max_octets: int | None = None


class StreamGate(Plan, frozen=True):
    """When frames of a flow may come."""

    base_time: Picoseconds
    entries: tuple[StreamGateEntry, ...]


class Meter(Plan, frozen=True):
    """How many may come."""

    rate_bps: int
    burst: int


class IngressRule(Plan, frozen=True):
    """What the frames of a flow have to keep to where they arrive."""

    flow: FlowId
    offload: bool = written(False)
    gate: StreamGate | None = None
    meter: Meter | None = None


class HostTsn(Plan, frozen=True):
    """TSN settings of an end system's interface."""

    channels: int | None = None
    offload: Literal["off", "full", "txtime-assist"] = written("off")
    txtime_delay: Picoseconds | None = None
    classes: tuple[TrafficClass, ...] = ()
    schedule: GateSchedule | None = None
    classify: tuple[Classify, ...] = ()
    ingress: tuple[IngressRule, ...] = ()
