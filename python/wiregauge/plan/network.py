"""The network under test: `wg_plan::Network`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal

from wiregauge.plan.base import NodeIndex, Picoseconds, Plan, Variant, written
from wiregauge.plan.tsn import HostTsn, PortTsn

__all__ = [
    "NETWORK",
    "NETWORK_NODE",
    "Attachment",
    "Clock",
    "Distribution",
    "EndSystem",
    "HostEvent",
    "HostModel",
    "Hub",
    "Link",
    "Network",
    "NetworkId",
    "Node",
    "OwnFrames",
    "Switch",
    "SwitchChange",
    "TemperatureStep",
    "Timestamps",
]

NETWORK: Final = "the network"
"""The name of an agent that plays everything between the end systems; no end system may have it."""
NETWORK_NODE: Final = 0xFFFF
"""The node number of that agent in records: that of all nodes (`ALL_NODES` of `crates/record`)."""
NetworkId = Literal["A", "B"]
ForwardingMode = Literal["store-and-forward", "cut-through"]
Policing = Literal["off", "bytes", "frames"]
Integration = Literal["preemption", "timely-block", "shuffling"]


class HostCost(Plan, frozen=True):
    """Thread time that handing over a frame takes."""

    fixed: Picoseconds
    per_byte: Picoseconds


class EachFrame(Variant, frozen=True, tag="each-frame"):
    """Interrupts for every frame, on its arrival."""


class Coalesced(Variant, frozen=True, tag="coalesced"):
    """Interrupts after a number of frames, or when the first has waited for a time."""

    frames: int
    wait: Picoseconds


class Polled(Variant, frozen=True, tag="polled"):
    """Reading of frames at the multiples of a period."""

    period: Picoseconds


class Spaced(Variant, frozen=True, tag="spaced"):
    """Interrupts on arrival, with a least spacing."""

    spacing: Picoseconds


class Adaptive(Variant, frozen=True, tag="adaptive"):
    """Interrupt moderation with a least spacing that the driver adapts to the load."""


class ReceiveBuffer(Plan, frozen=True):
    """The buffer that holds received frames of a class until they are read."""

    slots: int
    fifo_bytes: int | None = None


class Stack(Plan, frozen=True):
    """Cost of a protocol's path through the operating system."""

    protocol: str
    transmit: HostCost
    receive: HostCost


class Distribution(Plan, frozen=True):
    """Times drawn at random: share of draws (ppm) that are not above a time."""

    quantiles: tuple[tuple[int, Picoseconds], ...]


class HostModel(Plan, frozen=True):
    """Model of everything between an application and the wire."""

    transmit: HostCost
    receive: HostCost
    interface_delay: Picoseconds
    interrupt_latency: Picoseconds
    interrupts: EachFrame | Coalesced | Polled | Spaced | Adaptive
    send_wake_up: Distribution
    receive_wake_up: Distribution
    relay_wake_up: Distribution
    backlog: int
    ring: int
    egress_bytes: int
    receives_load: bool = False
    card_read: HostCost | None = None
    receive_buffers: tuple[ReceiveBuffer, ReceiveBuffer, ReceiveBuffer] | None = None
    interface_receive_delay: Picoseconds = 0
    stacks: tuple[Stack, ...] = ()

    @property
    def takes_no_time(self) -> bool:
        """Whether it costs nothing and delays nothing."""
        costs = [self.transmit, self.receive, *([self.card_read] if self.card_read else [])]
        costs += [cost for stack in self.stacks for cost in (stack.transmit, stack.receive)]
        wakes = (self.send_wake_up, self.receive_wake_up, self.relay_wake_up)
        return not (
            not isinstance(self.interrupts, EachFrame)
            or self.interface_delay
            or self.interface_receive_delay
            or self.interrupt_latency
            or any(cost.fixed or cost.per_byte for cost in costs)
            or any(time for wake in wakes for _, time in wake.quantiles)
        )


class EndSystem(Variant, frozen=True, tag="end-system"):
    """Sends, receives and relays messages; one agent runs on it."""

    host: HostModel | None = None
    """Always written; older plans have none."""


class Capacity(Plan, frozen=True):
    """Capacity of a buffer."""

    bytes: int
    frames: int | None = None


class VlanPorts(Plan, frozen=True):
    """A VLAN and the ports that carry it."""

    id: int
    ports: tuple[int, ...]


class Raster(Plan, frozen=True):
    """Slots a switch serves its ports in."""

    slot: Picoseconds
    others: int


class Timestamps(Plan, frozen=True, kw_only=True):
    """Errors of the timestamps of a simulated node."""

    application_error: Distribution | None = None
    driver_error: Distribution | None = None
    wire_error: Distribution | None = None
    read_cost: Distribution | None = None
    subtract_read_cost: bool = False


class HostEvent(Plan, frozen=True, kw_only=True):
    """Something a simulated host does now and then."""

    period: Picoseconds
    offset: Picoseconds = written(0)
    duration: Picoseconds
    latency: Distribution
    ramp_to: Picoseconds | None = None
    threads: Literal["both", "send", "receive"] = written("both")


class OwnFrames(Plan, frozen=True, kw_only=True):
    """Frames that a simulated switch sends by itself."""

    period: Picoseconds
    offset: Picoseconds = written(0)
    length: int
    priority: int
    ports: tuple[int, ...] = ()


class AddressTable(Plan, frozen=True):
    """The address table of a learning switch."""

    entries: int
    entry_time: Picoseconds = 0
    ageing: Picoseconds = 0


class FrameLengths(Plan, frozen=True):
    """Lengths of frames that a switch takes, in bytes; tags are not counted in the longest."""

    shortest: int
    longest: int


class Switch(Variant, frozen=True, kw_only=True, tag="switch"):
    """Forwards frames."""

    kind: Literal["cots", "arinc664", "mixed-criticality"]
    forwarding_mode: ForwardingMode = written("store-and-forward")
    processing_delay: Picoseconds = written(0)
    drawn_delay: Distribution | None = None
    """Distribution from which the processing delay of each frame is drawn; None: `processing_delay`."""
    mixed_rate_delay: Picoseconds = 0
    frame_lengths: FrameLengths | None = None
    """Limits of frame lengths; None: those of the standard."""
    own_frames: tuple[OwnFrames, ...] = ()
    learning: bool = written(False)
    address_table: AddressTable | None = None
    strict_priority: bool = written(False)
    port_buffer: Capacity
    queue_buffer: Capacity | None = None
    shared_buffer: Capacity | None = None
    vlans: tuple[VlanPorts, ...] = ()
    policing: Policing = written("bytes")
    integration: Integration = written("timely-block")
    raster: Raster | None = None
    tsn: tuple[PortTsn, ...] = ()
    """Traffic classes of its ports, each port in one of them at most."""


class Hub(Variant, frozen=True, tag="hub"):
    """Repeats bits on a shared half-duplex medium."""

    delay: Picoseconds


class TemperatureStep(Plan, frozen=True):
    """A change of drift."""

    at: Picoseconds
    drift_ppb: int


class Clock(Plan, frozen=True):
    """A clock that the test makes imperfect."""

    offset: Picoseconds = written(0)
    drift_ppb: int = written(0)
    wander_ppb: int = written(0)
    granularity: Picoseconds = written(1)
    temperature: tuple[TemperatureStep, ...] = ()

    def error_bound_ns(self, length_ns: float) -> float:
        """The most it can be off within `length_ns` of its epoch: without wander exactly, with it at three sigma."""
        warmer = (
            sum(abs(step.drift_ppb) * max(length_ns - step.at / 1000, 0.0) for step in self.temperature)
            * 1e-9
        )
        seconds = length_ns / 1e9
        # The drift walks at random once a second; its integral has the variance sigma^2 t^3 / 3.
        walked = 3 * self.wander_ppb * math.sqrt(seconds**3 / 3)
        steady = abs(self.offset / 1000) + abs(self.drift_ppb) * length_ns * 1e-9
        return steady + warmer + walked + self.granularity / 1000


class Node(Plan, frozen=True):
    """An end system, a switch or a hub."""

    name: str
    kind: EndSystem | Switch | Hub
    mac: tuple[int, ...]
    ipv4: tuple[int, ...]
    clock: Clock | None = None
    """The model of its clock; None: a perfect one."""
    tsn: HostTsn | None = None
    """TSN settings of its interface, of an end system."""
    line_drift_ppb: int = 0
    """Frequency error of a simulated node's line clocks, ppb; positive: too fast."""
    interframe_gap: int = 12
    """The least gap that its interfaces leave behind a frame, in bytes."""
    timestamps: Timestamps | None = None
    """The model of its timestamps; None: exact."""
    events: tuple[HostEvent, ...] = ()
    """Events of its simulated host."""

    @property
    def is_end_system(self) -> bool:
        """Whether messages are sent and received here; an agent runs on it."""
        return isinstance(self.kind, EndSystem)


class Attachment(Plan, frozen=True, order=True):
    """A port of a node, counted from 1."""

    node: NodeIndex
    port: int


class Link(Plan, frozen=True):
    """A link between two ports."""

    ends: tuple[Attachment, Attachment]
    rate_bps: int
    delay: Picoseconds
    network: NetworkId = written("A")

    @property
    def nodes(self) -> tuple[int, int]:
        """The nodes it joins."""
        return self.ends[0].node, self.ends[1].node


class SwitchChange(Plan, frozen=True):
    """Switch settings that a sweep changes."""

    forwarding_mode: ForwardingMode | None = None
    policing: Policing | None = None
    integration: Integration | None = None

    def items(self) -> Iterator[tuple[str, str]]:
        """Name and new value of each changed setting."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return ((name, value) for name, value in values if value is not None)


class Network(Plan, frozen=True, dict=True):
    """Nodes and links. Node `i` of the list has the number `i`."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes, by index."""
        return tuple(node.name for node in self.nodes)

    @cached_property
    def has_loops(self) -> bool:
        """Whether links of one of the redundant networks close a loop."""
        part: dict[tuple[str, int], tuple[str, int]] = {}

        def root(node: tuple[str, int]) -> tuple[str, int]:
            while (above := part.get(node, node)) != node:
                part[node] = node = part.get(above, above)
            return node

        for link in self.links:
            a, b = (root((link.network, node)) for node in link.nodes)
            if a == b:
                return True
            part[a] = b
        return False

    @property
    def end_systems(self) -> dict[int, Node]:
        """Nodes that are end systems, by number."""
        return {number: node for number, node in enumerate(self.nodes) if node.is_end_system}

    @property
    def granularities(self) -> dict[str, float]:
        """The smallest steps of clocks that are not perfect, ns, by the names of their nodes."""
        return {node.name: node.clock.granularity / 1000 for node in self.nodes if node.clock is not None}

    def first_rate(self, node: int) -> int | None:
        """Rate of the first link of a node, bit/s."""
        return self._first_rates.get(node)

    @cached_property
    def _first_rates(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for link in self.links:
            for node in link.nodes:
                found.setdefault(node, link.rate_bps)
        return found

    def ends_of(self, link: int) -> str:
        """The nodes a link joins, by name."""
        return " ".join(self.names[node] for node in self.links[link].nodes)
