"""TSN settings of a host's interface: `wg_plan::host_tsn`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from wiregauge.plan.base import FlowId, Picoseconds, Plan, Variant, written

__all__ = [
    "Etf",
    "HostTsn",
    "IngressRule",
    "LinkPriority",
    "PortClass",
    "PortSchedule",
    "PortTsn",
    "TrafficClass",
    "settings_of",
]


class Cbs(Variant, frozen=True, tag="cbs"):
    """The credit-based shaper."""

    idle_slope_bps: int
    max_frame: int
    max_interference: int
    offload: bool


class Etf(Variant, frozen=True, tag="etf"):
    """Launch-time scheduling: frames leave at the time that each names."""

    delta: Picoseconds
    offload: bool
    deadline: bool


class TrafficClass(Plan, frozen=True):
    """A traffic class, its priorities and how many transmit queues it has."""

    priorities: tuple[int, ...]
    queues: int
    shaper: Cbs | Etf | None = None
    preemptable: bool = False
    """Whether its frames are sent in fragments where others wait (frame preemption)."""


class GateEntry(Plan, frozen=True):
    """Classes whose gates are open, and for how long."""

    open: tuple[int, ...]
    length: Picoseconds
    mac: Literal["unchanged", "hold", "release"] = "unchanged"
    """Whether it holds the MAC of a port with preemption, or releases it."""


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
    """The time intervals in which frames of a flow may arrive."""

    base_time: Picoseconds
    entries: tuple[StreamGateEntry, ...]


class Meter(Plan, frozen=True):
    """The rate and burst that frames of a flow may have."""

    rate_bps: int
    burst: int


class IngressRule(Plan, frozen=True):
    """The rule that frames of a flow must meet where they arrive."""

    flow: FlowId
    offload: bool = written(False)
    gate: StreamGate | None = None
    meter: Meter | None = None


class HostTsn(Plan, frozen=True):
    """TSN settings of an end system's interface."""

    channels: int | None = None
    offload: Literal["off", "full", "txtime-assist"] = written("off")
    txtime_delay: Picoseconds | None = None
    shortest_fragment: int | None = None
    """Bytes of one that is not the last; None: 64."""
    hold_advance: Picoseconds | None = None
    """Before an entry that holds the MAC; None: as long as a fragment may take."""
    release_advance: Picoseconds | None = None
    """Before one that releases it; None: not before."""
    classes: tuple[TrafficClass, ...] = ()
    schedule: GateSchedule | None = None
    classify: tuple[Classify, ...] = ()
    ingress: tuple[IngressRule, ...] = ()


class FlowScheduler(Plan, frozen=True):
    """The token bucket of a flow; rate and burst (bytes) of frames with preamble and gap."""

    flow: FlowId
    rate_bps: int
    burst: int


class AsynchronousShaper(Plan, frozen=True):
    """Asynchronous shaping; frames of flows without a scheduler are eligible at once."""

    longest_residence: Picoseconds
    schedulers: tuple[FlowScheduler, ...]


class CyclicQueuing(Plan, frozen=True):
    """Cyclic queuing: two classes that take turns, one sending the frames of the cycle before."""

    classes: tuple[int, int]
    cycle: Picoseconds
    base_time: Picoseconds


LinkPriority = Literal["low", "high"]
"""The two priorities that virtual links have at switches."""


class PortClass(Plan, frozen=True):
    """A traffic class of a port of a switch: `wg_plan::port_tsn`."""

    priorities: tuple[int, ...]
    virtual_links: tuple[LinkPriority, ...] = ()
    """Priorities of virtual links whose frames wait in it as well."""
    idle_slope_bps: int | None = None
    """Idle slope of the credit-based shaper, bit/s; None: strict priority."""
    longest_frame: int | None = None
    """The longest frame that may enter; None: any."""
    preemptable: bool = False
    """Whether its frames are sent in fragments where others wait (frame preemption)."""
    asynchronous: AsynchronousShaper | None = None


class PortSchedule(Plan, frozen=True, kw_only=True):
    """A gate control list of a port; the first holds from the beginning, each further one from its base time."""

    base_time: Picoseconds
    cycle_extension: Picoseconds = 0
    entries: tuple[GateEntry, ...]

    @property
    def cycle(self) -> int:
        """Sum of the lengths of all entries, ps."""
        return sum(entry.length for entry in self.entries)


class FilterGateEntry(Plan, frozen=True):
    """A line of the gate of a stream at a switch."""

    open: bool
    length: Picoseconds
    max_octets: int | None = None
    """Octets of service data units."""
    priority: int | None = None
    """Priority by which the switch queues frames that pass; None: the frames' own."""


class FilterGate(Plan, frozen=True, kw_only=True):
    """The time intervals in which frames of a stream pass a switch."""

    base_time: Picoseconds
    close_on_invalid: bool = False
    close_on_octets: bool = False
    entries: tuple[FilterGateEntry, ...]


class FlowMeter(Plan, frozen=True):
    """A meter with two rates, of frames from destination address to FCS; bursts in bytes."""

    rate_bps: int
    burst: int
    excess_rate_bps: int = written(0)
    excess_burst: int = written(0)
    coupling: bool = False
    colour_aware: bool = False
    drop_on_yellow: bool = False
    mark_all_red: bool = False


class StreamFilter(Plan, frozen=True):
    """The stream filter of a flow where it enters a switch: `wg_plan::stream_filters`."""

    flow: FlowId
    identify: Literal["destination", "source", "ip"] = written("destination")
    fields: tuple[str, ...] = ()
    """Fields that IP stream identification compares; empty: all of them."""
    max_sdu: int | None = None
    block_oversize: bool = False
    gate: FilterGate | None = None
    gate_of: FlowId | None = None
    """The flow whose filter has the gate; None: its own."""
    meter: FlowMeter | None = None
    meter_of: FlowId | None = None


class PortTsn(Plan, frozen=True, kw_only=True):
    """Traffic classes, shapers and gates of ports of a switch, and filters of streams that enter by them."""

    ports: tuple[int, ...] = ()
    """Ports with these settings; empty: those that no other settings name."""
    classes: tuple[PortClass, ...] = ()
    """Traffic classes of the ports; empty: from the priorities of the switch."""
    guard_band: Picoseconds | None = None
    """The guard band, ps; None: a frame begins if it is through before its gate closes."""
    shortest_fragment: int | None = None
    """Bytes of a fragment that is not the last, at least; None: 64."""
    hold_advance: Picoseconds | None = None
    release_advance: Picoseconds | None = None
    """Advances of hold and release, ps, as in a host's settings."""
    cyclic: CyclicQueuing | None = None
    schedules: tuple[PortSchedule, ...] = ()
    filters: tuple[StreamFilter, ...] = ()


def settings_of(settings: Sequence[PortTsn], port: int) -> PortTsn | None:
    """The settings of a switch for a port: those that name it, or else those for all ports; None without any."""
    named = (tsn for tsn in settings if port in tsn.ports)
    others = (tsn for tsn in settings if not tsn.ports)
    return next(itertools.chain(named, others), None)
