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
    """Idle slope: bandwidth of the class, in bit/s."""
    max_frame: int
    """Largest frame of the class, on the wire, bytes."""
    max_interference: int
    """Largest frame of classes that are not shaped, on the wire, bytes."""
    offload: bool
    """Whether the card does it."""


class Etf(Variant, frozen=True, tag="etf"):
    """Launch-time scheduling: frames leave at the time that each names."""

    delta: Picoseconds
    """How long before its time a frame is given to the driver."""
    offload: bool
    """Whether the card launches frames."""
    deadline: bool
    """Whether the time is a deadline, before which a frame may leave."""


class TrafficClass(Plan, frozen=True):
    """A traffic class, its priorities and how many transmit queues it has."""

    priorities: tuple[int, ...]
    """Priorities of its frames, ascending."""
    queues: int
    """Number of its transmit queues, which follow those of the classes before it."""
    shaper: Cbs | Etf | None = None
    """Its shaper; None: none."""
    preemptable: bool = False
    """Whether its frames are sent in fragments where others wait: frame preemption (IEEE Std 802.3-2022,
    clause 99).
    """


class GateEntry(Plan, frozen=True):
    """Classes whose gates are open, and for how long."""

    open: tuple[int, ...]
    """Classes whose gates are open, ascending."""
    length: Picoseconds
    """Duration of the entry."""
    mac: Literal["unchanged", "hold", "release"] = "unchanged"
    """Whether it holds the MAC of a port with preemption, or releases it."""


class GateSchedule(Plan, frozen=True):
    """A gate control list."""

    base_time: Picoseconds
    """An instant, in TAI since 1970, at which a cycle begins; others begin whole cycles before and after it.
    """
    entries: tuple[GateEntry, ...]
    """Its entries."""


class Classify(Plan, frozen=True):
    """The priority of a flow within the host."""

    flow: FlowId
    """The flow, which this host sends or returns."""
    priority: int
    """Priority of its frames, 0 to 7."""


class StreamGateEntry(Plan, frozen=True):
    """A line of a stream gate."""

    open: bool
    """Whether frames pass."""
    length: Picoseconds
    """Duration of the entry."""
    max_octets: int | None = None
    """Largest sum of frame lengths that passes in it, in bytes; None: any."""


class StreamGate(Plan, frozen=True):
    """The time intervals in which frames of a flow may arrive."""

    base_time: Picoseconds
    """As in `GateSchedule`."""
    entries: tuple[StreamGateEntry, ...]
    """Its entries."""


class Meter(Plan, frozen=True):
    """The rate and burst that frames of a flow may have."""

    rate_bps: int
    """Rate in bit/s, by the length of frames without their FCS."""
    burst: int
    """Burst size, in bytes."""


class IngressRule(Plan, frozen=True):
    """The rule that frames of a flow must meet where they arrive."""

    flow: FlowId
    """The flow."""
    offload: bool = written(False)
    """Whether the card does it."""
    gate: StreamGate | None = None
    """Gate that its frames must pass; None: none."""
    meter: Meter | None = None
    """Meter that its frames must pass; None: none."""


class HostTsn(Plan, frozen=True):
    """TSN settings of an end system's interface."""

    channels: int | None = None
    """Queues the interface is to have, as `ethtool -L`; None: as many as it has."""
    offload: Literal["off", "full", "txtime-assist"] = written("off")
    """Whether the kernel or the card applies classes and schedule."""
    txtime_delay: Picoseconds | None = None
    """Longest time from the queue discipline to the card, with `TsnOffload.TxtimeAssist`; None: not in use.
    """
    shortest_fragment: int | None = None
    """Shortest fragment that is not the last, check sequence included, bytes; None: 64."""
    hold_advance: Picoseconds | None = None
    """How long before an entry that holds the MAC the MAC is told (holdAdvance); None: as long as a fragment
    may take.
    """
    release_advance: Picoseconds | None = None
    """How long before an entry that releases the MAC the MAC is told (releaseAdvance); None: not before."""
    classes: tuple[TrafficClass, ...] = ()
    """Traffic classes by number; none: the interface keeps its queue discipline."""
    schedule: GateSchedule | None = None
    """Gate control list; None: every gate is open."""
    classify: tuple[Classify, ...] = ()
    """Priorities of flows that carry none in a tag, or another one within the host."""
    ingress: tuple[IngressRule, ...] = ()
    """Rules for arriving frames, at most one for each flow."""


class FlowScheduler(Plan, frozen=True):
    """The token bucket of a flow; rate and burst (bytes) of frames with preamble and gap."""

    flow: FlowId
    """The flow."""
    rate_bps: int
    """Committed information rate in bit/s, of frames with preamble and gap."""
    burst: int
    """Committed burst size in bytes, of frames with preamble and gap."""


class AsynchronousShaper(Plan, frozen=True):
    """Asynchronous shaping; frames of flows without a scheduler are eligible at once."""

    longest_residence: Picoseconds
    """Longest time that a frame may wait for its eligibility time; a frame that would wait longer is dropped.
    """
    schedulers: tuple[FlowScheduler, ...]
    """Token buckets of flows, at most one for each flow."""


class CyclicQueuing(Plan, frozen=True):
    """Cyclic queuing: two classes that take turns, one sending the frames of the cycle before."""

    classes: tuple[int, int]
    """Numbers of the two classes."""
    cycle: Picoseconds
    """Time for which each class sends."""
    base_time: Picoseconds
    """When a cycle begins, by the switch's own clock, after the epoch."""


HeaderField = Literal[
    "destination-mac", "vlan", "source-ip", "destination-ip", "dscp", "source-port", "destination-port"
]
"""The fields that IP stream identification compares."""
LinkPriority = Literal["low", "high"]
"""The two priorities that virtual links have at switches."""


class PortClass(Plan, frozen=True):
    """A traffic class of a port of a switch: `wg_plan::PortClass`."""

    priorities: tuple[int, ...]
    """Priorities of its frames, ascending."""
    virtual_links: tuple[LinkPriority, ...] = ()
    """Priorities of virtual links whose frames wait in it as well, ascending; other virtual links go before
    all classes.
    """
    idle_slope_bps: int | None = None
    """Idle slope of its credit-based shaper in bit/s, of frames with preamble and gap; None: strict priority.
    """
    longest_frame: int | None = None
    """Longest frame that may enter, destination address to FCS; None: any."""
    preemptable: bool = False
    """Whether its frames are sent in fragments where others wait: frame preemption (IEEE Std 802.3-2022,
    clause 99).
    """
    asynchronous: AsynchronousShaper | None = None
    """Asynchronous shaping of its streams; None: frames are eligible at once."""


class PortSchedule(Plan, frozen=True, kw_only=True):
    """A gate control list of a port; the first holds from the beginning, each further one from its base time."""

    base_time: Picoseconds
    """When a cycle begins; for a list after the first, when it takes over."""
    cycle_extension: Picoseconds = 0
    """Time by which the last cycle before the next list may be longer."""
    entries: tuple[GateEntry, ...]
    """Its entries."""

    @property
    def cycle(self) -> int:
        """Sum of the lengths of all entries, ps."""
        return sum(entry.length for entry in self.entries)


class FilterGateEntry(Plan, frozen=True):
    """A line of the gate of a stream at a switch."""

    open: bool
    """Whether frames pass."""
    length: Picoseconds
    """Duration of the entry."""
    max_octets: int | None = None
    """Largest number of octets of service data units that pass in it; None: any number."""
    priority: int | None = None
    """Priority by which the switch queues frames that pass; None: the frames' own."""


class FilterGate(Plan, frozen=True, kw_only=True):
    """The time intervals in which frames of a stream pass a switch."""

    base_time: Picoseconds
    """When a cycle begins."""
    close_on_invalid: bool = False
    """Whether a frame that comes while it is closed closes it for good."""
    close_on_octets: bool = False
    """Whether a frame beyond the octets of an entry closes it for good."""
    entries: tuple[FilterGateEntry, ...]
    """Its entries."""


class FlowMeter(Plan, frozen=True):
    """A meter with two rates, of frames from destination address to FCS; bursts in bytes."""

    rate_bps: int
    """Committed information rate, bit/s."""
    burst: int
    """Committed burst size, bytes."""
    excess_rate_bps: int = written(0)
    """Excess information rate, bit/s."""
    excess_burst: int = written(0)
    """Excess burst size, bytes."""
    coupling: bool = False
    """Whether tokens that the committed bucket has no room for go to the excess bucket."""
    colour_aware: bool = False
    """Whether a frame that came as drop eligible is never green."""
    drop_on_yellow: bool = False
    """Whether yellow frames are dropped."""
    mark_all_red: bool = False
    """Whether every frame after the first red one is red."""


class StreamFilter(Plan, frozen=True):
    """The stream filter of a flow where it enters a switch: `wg_plan::StreamFilter`."""

    flow: FlowId
    """The flow."""
    identify: Literal["destination", "source", "ip"] = written("destination")
    """How its frames are identified."""
    fields: tuple[HeaderField, ...] = ()
    """Fields that IP stream identification compares, ascending; empty: all of them."""
    max_sdu: int | None = None
    """Longest service data unit, octets; None: any."""
    block_oversize: bool = False
    """Whether a longer one blocks the stream for good."""
    gate: FilterGate | None = None
    """Gate that its frames pass; None: none of its own."""
    gate_of: FlowId | None = None
    """The flow whose filter has the gate; None: the gate is its own."""
    meter: FlowMeter | None = None
    """Meter of its frames; None: none of its own."""
    meter_of: FlowId | None = None
    """The flow whose filter has the meter; None: the meter is its own."""


class PortTsn(Plan, frozen=True, kw_only=True):
    """Traffic classes, shapers and gates of ports of a switch, and filters of streams that enter by them."""

    ports: tuple[int, ...] = ()
    """Ports with these settings, ascending; empty: those that no other settings name."""
    classes: tuple[PortClass, ...] = ()
    """Traffic classes by number, the most urgent last; none: the priorities of the switch."""
    guard_band: Picoseconds | None = None
    """Guard band: time before its gate closes in which no frame begins; None: a frame begins if it ends
    before the closing.
    """
    shortest_fragment: int | None = None
    """Shortest fragment that is not the last, check sequence included, bytes; None: 64."""
    hold_advance: Picoseconds | None = None
    """How long before an entry that holds the MAC the MAC is told (holdAdvance); None: as long as a fragment
    may take.
    """
    release_advance: Picoseconds | None = None
    """How long before an entry that releases the MAC the MAC is told (releaseAdvance); None: not before."""
    cyclic: CyclicQueuing | None = None
    """Cyclic queuing of two classes, in place of gate control lists; None: none."""
    schedules: tuple[PortSchedule, ...] = ()
    """Gate control lists in the order they take over; none: every gate is open."""
    filters: tuple[StreamFilter, ...] = ()
    """Filters of streams that enter by these ports."""


def settings_of(settings: Sequence[PortTsn], port: int) -> PortTsn | None:
    """The settings of a switch for a port: those that name it, or else those for all ports; None without any."""
    named = (tsn for tsn in settings if port in tsn.ports)
    others = (tsn for tsn in settings if not tsn.ports)
    return next(itertools.chain(named, others), None)
